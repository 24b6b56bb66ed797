# SPDX-License-Identifier: Apache-2.0
"""The rows of `variants` as the `tcp` object of the simulator's configuration, and senders that only the simulator has.

A name means what it means on a Linux host with the sysctls of its row: the same C header of `hosts/cc`, the kernel's recovery
(NewReno, or SACK with RACK; with PRR unless the congestion control owns the window) and its timers.
`reno-classic`, `tahoe-classic` and `sack-classic` are the textbook's senders, which no kernel has; `prague` (cc/prague.h) and `dctcp-l4s`
(DCTCP with ECT(1)) send what no kernel lets BPF send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .build import sender_library
from .variants import VARIANTS, Variant, find_variant

LINUX_INITIAL_WINDOW = 10
"""RFC 6928; the papers' senders begin as the experiment says."""
TIMESTAMP_BYTES = 12
"""RFC 7323's option, padded."""
JIFFY_NS = 4_000_000
"""At HZ=250: the least RTO of `mrto`."""


def simulated(variant: Variant) -> Mapping[str, Any]:
    """The `tcp` object of a row of the table, without what the experiment sets.

    A sender of the user's own is compiled first, where it changed. Raises HostsError `not-built`.
    """
    sysctls = variant.sysctls
    tcp: dict[str, Any] = {
        "cc": str(sender_library(variant)) if variant.folder else variant.header,
        "recovery": "sack" if sysctls["tcp_sack"] else "newreno",
        "prr": True,
        "limited_transmit": True,
        "dupack_threshold": sysctls["tcp_reordering"],
        "frto": sysctls["tcp_frto"] == 2,
        "slow_start_after_idle": bool(sysctls["tcp_slow_start_after_idle"]),
        "rto_rule": "linux",
    }
    has = {
        "rack": sysctls["tcp_sack"],
        "timestamps": sysctls["tcp_timestamps"],
        "ecn": sysctls["tcp_ecn"] == 1,
        "erto": "erto" in variant.programs,
    }
    tcp |= {name: True for name, holds in has.items() if holds}
    if variant.optional_sysctls["tcp_rto_min_us"] == 1:
        tcp["rto_min_ns"] = JIFFY_NS
    if "ena" in variant.receiver_programs:
        tcp |= {"cc": f"ena_{variant.header}{'_plus' if 'FL_ENA_PLUS' in variant.defines else ''}", "ena": True}
        tcp["ena_naming"] = "lowest" if "ena-lowest" in variant.receiver_programs else "own"
    if "FL_ALPHA" in variant.defines:
        tcp |= {name: variant.defines[f"FL_{name.upper()}"] for name in ("alpha", "beta", "gamma")}
    if variant.builtin or variant.defines.get("FL_INITIAL_WINDOW") == LINUX_INITIAL_WINDOW:
        tcp["initial_window_packets"] = LINUX_INITIAL_WINDOW
    return {**tcp, **variant.simulator}


_TEXTBOOK: Mapping[str, Any] = {**simulated(VARIANTS["newreno"]), "prr": False}

TEXTBOOK_VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "reno-classic": {**_TEXTBOOK, "recovery": "reno"},
    "tahoe-classic": {**_TEXTBOOK, "recovery": "tahoe", "limited_transmit": False},
    "sack-classic": {**_TEXTBOOK, "recovery": "sack"},
}
"""The textbook's senders. RFC 6675 instead of the kernel's RACK, with SACK."""

_L4S: Mapping[str, Any] = {**simulated(VARIANTS["dctcp"]), "ect1": True}
SIMULATOR_VARIANTS: Mapping[str, Mapping[str, Any]] = {
    **TEXTBOOK_VARIANTS,
    "prague": {**_L4S, "cc": "prague"},
    "dctcp-l4s": _L4S,
}
"""Senders that only the simulator has: the textbook's, and those of L4S, whose data is ECT(1) (RFC 9331)."""


def find_simulated(name: str) -> Mapping[str, Any]:
    """The `tcp` object of a sender by its name. Raises HostsError `unknown-variant`, `not-built`."""
    return SIMULATOR_VARIANTS[name] if name in SIMULATOR_VARIANTS else simulated(find_variant(name))


def with_error_naming(tcp: Mapping[str, Any], naming: str | None) -> dict[str, Any]:
    """A `tcp` object whose receiver, where it names corrupted segments, names its `own` or the `lowest`; None: as it does."""
    return {**tcp, "ena_naming": naming} if naming and "ena" in tcp else dict(tcp)


def without_receiver_programs(tcp: Mapping[str, Any]) -> dict[str, Any]:
    """A `tcp` object whose receiver has none of the host programs that its sender asks for."""
    return {**tcp, "ena": False} if "ena" in tcp else dict(tcp)


def congestion_control(name: str) -> str:
    """What the simulator calls the congestion control of sender `name`. Raises HostsError `unknown-variant`."""
    if name in SIMULATOR_VARIANTS:
        return str(SIMULATOR_VARIANTS[name]["cc"])
    variant = find_variant(name)
    return variant.header if variant.folder else str(simulated(variant)["cc"])
