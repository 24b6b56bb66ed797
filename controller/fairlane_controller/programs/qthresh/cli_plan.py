# SPDX-License-Identifier: Apache-2.0
"""`fairlane threshold plan`: equations (5) to (9) without a switch."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from fairlane.cli import (
    JsonOption,
    Seconds,
    number_option,
    packet_bytes_option,
    print_json,
    print_table,
    queue_packets_option,
    rate_bps,
    time_option,
)
from fairlane.text import counted, format_rate, format_size, format_time

from . import model as qthresh

DELAY, T_ACK = Seconds(0), Seconds(0)


def plan_command(
    rate: Annotated[
        int, number_option("--rate", rate_bps, metavar="RATE", help="Bottleneck bandwidth BW, e.g. 2Mbit.")
    ],
    delay: Annotated[Seconds, time_option("--delay", help="One-way delay of the bottleneck link, e.g. 2ms.")] = DELAY,
    packet_bytes: Annotated[int, packet_bytes_option("Mean packet length L_D, e.g. 1000 or 1500B.")] = 1000,
    flows: Annotated[int, typer.Option("--flows", help="Number of connections N_C.", min=1)] = 2,
    t_ack: Annotated[
        Seconds, time_option("--t-ack", help="All delay that is not twice the link's: access links, receiver.")
    ] = T_ACK,
    t_res: Annotated[
        Seconds | None, time_option("--t-res", help="Measured T_res; replaces --delay and --t-ack.")
    ] = None,
    weight: Annotated[float, typer.Option("--weight", "-w", help="Weight of the flow or class.")] = 1.0,
    k: Annotated[float, typer.Option("--k", help="Constant of proportionality of eq. (9).")] = qthresh.DEFAULT_K,
    queue_packets: Annotated[
        int, queue_packets_option("Capacity of the queue (upper bound).")
    ] = qthresh.QTHRESH_MAX_PACKETS,
    as_json: JsonOption = False,
) -> None:
    """Compute the threshold for a link on paper: equations (5) to (9), no switch needed.

    Examples: `fairlane threshold plan --rate 2Mbit --delay 2ms --packet-bytes 1000 --flows 2`, `fairlane threshold plan --rate 5Mbps --t-res 6.8ms --json`
    """
    t_res_s = t_res if t_res is not None else qthresh.response_time_s(delay, t_ack)
    plan = qthresh.plan(rate, float(t_res_s), packet_bytes, flows, k=k, weight=weight, capacity_packets=queue_packets)
    if as_json:
        print_json(asdict(plan))
        return
    rows = [
        ("BW", format_rate(plan.rate_bps), "bandwidth"),
        ("L_D", format_size(plan.packet_bytes), "packet length"),
        ("N_C", plan.connections, "connections"),
        ("T_D", format_time(plan.t_d_s), "time to send one packet, eq. (5)"),
        ("T_res", format_time(plan.t_res_s), "departure of a packet to its ACK, eq. (6)"),
        ("W", counted(plan.smallest_window_packets, "packet"), "smallest window of one flow alone, eq. (7)"),
        ("W_full", counted(plan.full_window_packets, "packet"), "smallest full window of each flow"),
        ("W_best", f"{plan.w_best_packets:.2f} packets", "best window of each flow, eq. (8)"),
        (
            "Qthresh",
            counted(plan.qthresh_packets, "packet"),
            f"w·k·W_best = {plan.qthresh_exact_packets:.2f}, eq. (9)",
        ),
    ]
    print_table("plan", ("symbol", "value", "meaning"), rows)
