# SPDX-License-Identifier: Apache-2.0
"""The TCP variants that the simulator has, by the names of `fairlane_hosts.variants`, as the `tcp` object of its configuration.

A name means what it means on a Linux host with the sysctls of its row there: the same C headers of `hosts/cc`, the kernel's
recovery (NewReno, or SACK with RACK; with PRR unless the congestion control owns the window) and its timers.
`reno-classic`, `tahoe-classic` and `sack-classic` are the textbook's senders, which no kernel has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import Any

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Flow, TcpOptions

QUICK_ACKS = 255
"""So many segments of a new connection are acknowledged at once: Linux goes on with it for as long as the receive window opens.

With 255 a start-up on 2 Mbit/s peaks at 109 packets, as the kernel does (108 and 109); with TCP_MAX_QUICKACKS, 16, at 84.
"""
QUICK_ACKS_MAX = 16
"""TCP_MAX_QUICKACKS, which counts where the receive window is fixed."""
DELAYED_ACK_TIMEOUT_NS = 40_000_000
"""Linux's TCP_DELACK_MIN."""
LINUX_INITIAL_WINDOW = 10
"""RFC 6928; variants of ours begin as `TcpOptions.initial_window_packets` says."""

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
_ENA: Mapping[str, Any] = MappingProxyType({"ena": True})

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


def _quick_acks(options: TcpOptions) -> int:
    """Segments of a new connection that are acknowledged at once: half of what a fixed window holds (tcp_incr_quickack())."""
    if not options.receive_window_bytes:
        return QUICK_ACKS
    return min(QUICK_ACKS_MAX, max(2, options.receive_window_bytes // (2 * options.mss_bytes)))


TEXTBOOK_VARIANTS = tuple(name for name in SIM_VARIANTS if name.endswith("-classic"))
"""RFC 6675 instead of the kernel's RACK, with SACK."""


def tcp_object(flow: Flow, shared: TcpOptions) -> dict[str, Any]:
    """The `tcp` object of a flow's connections. Raises RunError for a variant or an option that there is not."""
    variant = SIM_VARIANTS.get(flow.variant)
    if variant is None:
        known = ", ".join(SIM_VARIANTS)
        raise RunError(f"flow {flow.name}: the simulator has no variant {flow.variant!r}; it has {known}")
    allowed = [field.name for field in fields(TcpOptions)]
    for name in flow.tcp:
        if name not in allowed:
            raise RunError(f"flow {flow.name}: tcp has no option {name!r}; allowed: {', '.join(allowed)}")
    options = TcpOptions(**{**asdict(shared), **flow.tcp})
    tcp: dict[str, Any] = {
        "mss_bytes": options.mss_bytes,
        "delayed_ack": options.delayed_ack,
        "delayed_ack_timeout_ns": DELAYED_ACK_TIMEOUT_NS,
        "quick_acks": _quick_acks(options),
        "timestamps": options.timestamps,
        "window_scale": True,
        "receive_window_bytes": options.receive_window_bytes,
        "initial_window_packets": options.initial_window_packets,
        "cwnd_clamp_packets": flow.window_packets,
        "rto_min_ns": round(options.rto_min_s * 1e9),
        **variant,
    }
    if "initial_window_packets" in flow.tcp:
        tcp["initial_window_packets"] = options.initial_window_packets
    if tcp.get("ena"):
        tcp["ena_receiver"] = options.ena_receiver
    if "rto_min_s" in flow.tcp:
        tcp["rto_min_ns"] = round(options.rto_min_s * 1e9)
    if options.sack is not None and (options.sack or tcp["recovery"] == "sack"):
        tcp["recovery"] = "sack" if options.sack else "newreno"
        tcp["rack"] = options.sack and flow.variant not in TEXTBOOK_VARIANTS
    return tcp
