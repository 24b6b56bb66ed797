# SPDX-License-Identifier: Apache-2.0
"""`fairlane threshold plan`: equations (5) to (9) without a switch."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from fairlane_controller.cli.output import print_json, print_table
from fairlane_controller.programs.qthresh import model as qthresh
from fairlane_controller.units import counted, format_rate, format_size, format_time, parse_rate, parse_size, parse_time

RateOption = Annotated[str, typer.Option("--rate", help="Bottleneck bandwidth BW, e.g. 2Mbit.", metavar="RATE")]
DelayOption = Annotated[
    str, typer.Option("--delay", help="One-way delay of the bottleneck link, e.g. 2ms.", metavar="TIME")
]
PacketOption = Annotated[
    str, typer.Option("--packet", help="Mean packet length L_D, e.g. 1000 or 1500B.", metavar="SIZE")
]
FlowsOption = Annotated[int, typer.Option("--flows", help="Number of connections N_C.", min=1)]
TAckOption = Annotated[
    str, typer.Option("--t-ack", help="All delay that is not twice the link's: access links, receiver.", metavar="TIME")
]
TResOption = Annotated[
    str | None, typer.Option("--t-res", help="Measured T_res; replaces --delay and --t-ack.", metavar="TIME")
]
WeightOption = Annotated[float, typer.Option("--weight", help="Weight of the flow or class.")]
KOption = Annotated[float, typer.Option("--k", help="Constant of proportionality of eq. (9).")]
CapacityOption = Annotated[int, typer.Option("--capacity", help="Capacity of the queue in packets (upper bound).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def plan_command(
    rate: RateOption,
    delay: DelayOption = "0",
    packet: PacketOption = "1000",
    flows: FlowsOption = 2,
    t_ack: TAckOption = "0",
    t_res: TResOption = None,
    weight: WeightOption = 1.0,
    k: KOption = qthresh.DEFAULT_K,
    capacity: CapacityOption = qthresh.QTHRESH_MAX_PACKETS,
    as_json: JsonOption = False,
) -> None:
    """Compute the threshold for a link on paper: equations (5) to (9), no switch needed.

    Examples: `fairlane threshold plan --rate 2Mbit --delay 2ms --packet 1000 --flows 2`, `fairlane threshold plan --rate 5Mbps --t-res 6.8ms --json`
    """
    if t_res is not None:
        t_res_s = parse_time(t_res, "--t-res")
    else:
        t_res_s = qthresh.response_time_s(parse_time(delay, "--delay"), parse_time(t_ack, "--t-ack"))
    plan = qthresh.plan(
        parse_rate(rate, "--rate"),
        t_res_s,
        parse_size(packet, "--packet"),
        flows,
        k=k,
        weight=weight,
        capacity_packets=capacity,
    )
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
