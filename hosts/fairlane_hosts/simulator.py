# SPDX-License-Identifier: Apache-2.0
"""The TCP variants that the simulator has, by the names of `variants`, as the `tcp` object of its configuration.

A name means what it means on a Linux host with the sysctls of its row there: the same C headers of `hosts/cc`, the kernel's
recovery (NewReno, or SACK with RACK; with PRR unless the congestion control owns the window) and its timers.
`reno-classic`, `tahoe-classic` and `sack-classic` are the textbook's senders, which no kernel has.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

LINUX_INITIAL_WINDOW = 10
"""RFC 6928; variants of ours begin as the experiment says."""
JIFFY_NS = 4_000_000
"""At HZ=250: the floor of Linux's RTO above SRTT is one of them (`mrto`)."""

_LINUX: Mapping[str, Any] = MappingProxyType(
    {
        "recovery": "newreno",
        "prr": True,
        "limited_transmit": True,
        "dupack_threshold": 3,
        "frto": False,
        "slow_start_after_idle": True,
        "rto_rule": "linux",
    }
)
_SACK: Mapping[str, Any] = MappingProxyType({**_LINUX, "recovery": "sack", "rack": True})
_FRTO: Mapping[str, Any] = MappingProxyType({**_LINUX, "frto": True})
_ERTO: Mapping[str, Any] = MappingProxyType({**_SACK, "frto": True, "erto": True})
_MRTO: Mapping[str, Any] = MappingProxyType({**_LINUX, "rto_min_ns": JIFFY_NS})
_TEXTBOOK: Mapping[str, Any] = MappingProxyType({**_LINUX, "cc": "reno", "prr": False})
_OWNS_WINDOW: Mapping[str, Any] = MappingProxyType({"prr": False})
"""Its header has a `cong_control`."""

_TAHOE: Mapping[str, Any] = MappingProxyType({**_LINUX, **_OWNS_WINDOW, "cc": "tahoe"})
_RENO: Mapping[str, Any] = MappingProxyType({**_LINUX, **_OWNS_WINDOW, "cc": "reno_recovery"})
_ENA: Mapping[str, Any] = MappingProxyType({"ena": True, "receiver_program": True})

SIM_VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "tahoe": _TAHOE,
        "reno": _RENO,
        "newreno": {**_LINUX, "cc": "reno"},
        "sack": {**_SACK, "cc": "reno"},
        "vegas": {**_LINUX, "cc": "vegas", "alpha": 1, "beta": 3, "gamma": 1},
        "vegas-linux": {**_LINUX, "cc": "vegas_linux", "alpha": 2, "beta": 4, "gamma": 1},
        "westwood": {**_LINUX, "cc": "westwood"},
        "frto": {**_FRTO, "cc": "reno"},
        "erto": {**_ERTO, "cc": "erto"},
        "bcr": {**_ERTO, "cc": "bcr"},
        "ena-tahoe": {**_TAHOE, **_ENA},
        "ena-reno": {**_RENO, **_ENA},
        "ena-sack": {**_SACK, **_ENA, "cc": "reno"},
        "org": {**_LINUX, "cc": "reno"},
        "nss": {**_LINUX, **_OWNS_WINDOW, "cc": "nss"},
        "nca": {**_LINUX, "cc": "nca"},
        "fst1": {**_LINUX, "cc": "reno", "dupack_threshold": 1},
        "mrto": {**_MRTO, "cc": "reno"},
        "nss-mrto": {**_MRTO, **_OWNS_WINDOW, "cc": "nss"},
        "nca-mrto": {**_MRTO, "cc": "nca"},
        "reno-linux": {**_LINUX, "cc": "reno_linux", "initial_window_packets": LINUX_INITIAL_WINDOW},
        "reno-classic": {**_TEXTBOOK, "recovery": "reno"},
        "tahoe-classic": {**_TEXTBOOK, "recovery": "tahoe", "limited_transmit": False},
        "sack-classic": {**_TEXTBOOK, "recovery": "sack"},
    }
)

TEXTBOOK_VARIANTS = tuple(name for name in SIM_VARIANTS if name.endswith("-classic"))
"""RFC 6675 instead of the kernel's RACK, with SACK."""
