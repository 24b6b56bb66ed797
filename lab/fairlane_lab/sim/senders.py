# SPDX-License-Identifier: Apache-2.0
"""A flow's sender and receiver as the `tcp` object of the simulator's configuration."""

from __future__ import annotations

from typing import Any

from fairlane_hosts.errors import HostsError
from fairlane_hosts.simulator import (
    TEXTBOOK_VARIANTS,
    TIMESTAMP_BYTES,
    find_simulated,
    with_error_naming,
    without_receiver_programs,
)

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Flow, TcpOptions, with_given

QUICK_ACKS = 255
"""So many segments of a new connection are acknowledged at once: Linux goes on with it for as long as the receive window opens.

With 255 a start-up on 2 Mbit/s peaks at 109 packets, as the kernel does (108 and 109); with TCP_MAX_QUICKACKS, 16, at 84.
"""
QUICK_ACKS_MAX = 16
"""TCP_MAX_QUICKACKS, which counts where the receive window is fixed."""


def _quick_acks(options: TcpOptions) -> int:
    """Segments of a new connection that are acknowledged at once: half of what a fixed window holds (tcp_incr_quickack())."""
    if not options.receive_window_bytes:
        return QUICK_ACKS
    return min(QUICK_ACKS_MAX, max(2, options.receive_window_bytes // (2 * options.mss_bytes)))


def tcp_object(flow: Flow, shared: TcpOptions) -> dict[str, Any]:
    """The `tcp` object of a flow's connections. Raises RunError for a variant or an option that there is not."""
    try:
        variant = find_simulated(flow.variant)
    except HostsError as error:
        raise RunError(f"flow {flow.name}: {error}") from error
    options = with_given(shared, flow)
    tcp: dict[str, Any] = {
        "mss_bytes": options.mss_bytes,
        "delayed_ack": not options.acks_at_once,
        "quick_acks": _quick_acks(options),
        "timestamps": options.timestamps,
        "window_scale": True,
        "receive_window_bytes": options.receive_window_bytes,
        "initial_window_packets": options.initial_window_packets,
        "cwnd_clamp_packets": flow.window_packets,
        "rto_min_ns": round(options.rto_min_s * 1e9),
        **variant,
    }
    if tcp["timestamps"] and not options.timestamps:
        tcp["mss_bytes"] -= TIMESTAMP_BYTES  # the kernel takes the option from the segment (RFC 6691)
    if "initial_window_packets" in flow.tcp:
        tcp["initial_window_packets"] = options.initial_window_packets
    if options.delayed_ack_s:
        tcp["delayed_ack_timeout_ns"] = round(options.delayed_ack_s * 1e9)
    if options.backoff != TcpOptions.backoff:
        tcp["backoff"] = options.backoff
    if options.tick_s:
        tcp["tick_ns"] = round(options.tick_s * 1e9)
        if "rto_min_ns" in variant:  # MRTO's: a tick
            tcp["rto_min_ns"] = tcp["tick_ns"]
    if options.ecn:
        tcp["ecn"] = True
    tcp = with_error_naming(tcp, options.error_naming)
    if not options.receiver_program:
        tcp = without_receiver_programs(tcp)
    if "rto_min_s" in flow.tcp:
        tcp["rto_min_ns"] = round(options.rto_min_s * 1e9)
    if options.sack is not None and (options.sack or tcp["recovery"] == "sack"):
        tcp["recovery"] = "sack" if options.sack else "newreno"
        tcp["rack"] = options.sack and flow.variant not in TEXTBOOK_VARIANTS
    return tcp
