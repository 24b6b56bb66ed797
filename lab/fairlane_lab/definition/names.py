# SPDX-License-Identifier: Apache-2.0
"""The parameters and metrics of all experiments: their names are columns of the results, their labels the plots' axes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fairlane_hosts.variants import VARIANTS

from fairlane_lab.sim.variants import SIM_VARIANTS


@dataclass(frozen=True)
class Name:
    """A column: what a human reads beside it."""

    label: str
    unit: str = ""
    scale: float = 1.0
    """Shown value = value · scale."""


PARAMETERS: dict[str, Name] = {
    "case": Name("case"),
    "control": Name("control"),
    "scheme": Name("scheme"),
    "threshold": Name("Qthresh", "packets"),
    "scheduler": Name("scheduler"),
    "sender": Name("sender"),
    "variant": Name("variant"),
    "variant_1": Name("first variant"),
    "variant_2": Name("second variant"),
    "variant_3": Name("third variant"),
    "rate_bps": Name("rate", "Mbit/s", 1e-6),
    "rate_after_bps": Name("rate after the spike", "Mbit/s", 1e-6),
    "delay_ms": Name("one-way delay", "ms"),
    "buffer_packets": Name("buffer", "packets"),
    "ber": Name("bit error rate"),
    "loss": Name("packet loss rate"),
    "preset": Name("link"),
    "jitter_ms": Name("jitter", "ms"),
    "ge_enter": Name("bursts begin, per packet"),
    "ge_leave": Name("bursts end, per packet"),
    "ge_loss": Name("loss in bursts"),
    "ge_ber": Name("bit error rate in bursts"),
    "spike_s": Name("delay spike", "s"),
    "file_bytes": Name("file size", "bytes"),
    "flows": Name("flows"),
    "offset_s": Name("start offset", "s"),
    "window_packets": Name("largest window", "packets"),
    "window_bytes": Name("window", "KB", 1 / 1024),
    "receive_windows": Name("receive buffer", "windows"),
    "times": Name("transfers"),
    "interval_s": Name("between transfers", "s"),
    "stall_at_s": Name("first stall of the path", "s"),
    "program": Name("program"),
    "ena_receiver": Name("receiver knows ENA"),
    "distance": Name("distance"),
    "weight": Name("weight"),
    "lbo_cells": Name("LBO", "cells"),
    "hbo_cells": Name("HBO", "cells"),
    "qmax_cells": Name("buffer", "cells"),
    "rate_form": Name("form of r_i"),
    "rate_alpha": Name("alpha of r_i"),
    "threshold_mbs": Name("T_i", "MBS"),
    "tcps": Name("TCPs a VC"),
    "mss_bytes": Name("segment", "bytes"),
    "udp_bps": Name("UDP rate", "Mbit/s", 1e-6),
    "start_s": Name("start", "s"),
    "duration_s": Name("duration", "s"),
    "warmup_s": Name("warm-up", "s"),
}
"""What a file may call a parameter. Set by the lab itself: `case`, `offset_s`, and `control`, the label of the axis of that name.
With a `sender`, points that differ in it alone meet the same world in the same repeat."""

SET_BY_THE_LAB = frozenset({"case", "control", "offset_s"})

RUN_METRICS: dict[str, Name] = {
    "throughput_bps": Name("throughput", "Mbit/s", 1e-6),
    "goodput_bps": Name("goodput", "Mbit/s", 1e-6),
    "utilisation": Name("utilisation", "%", 100),
    "fairness": Name("fairness (min/max)", "%", 100),
    "jain": Name("Jain index"),
    "retransmits": Name("retransmits"),
    "timeouts": Name("timeouts"),
    "drops": Name("drops"),
    "queue_packets": Name("mean queue", "packets"),
    "qthresh_packets": Name("Qthresh in force", "packets"),
    "bw_bps": Name("measured BW", "Mbit/s", 1e-6),
    "t_res_ms": Name("measured T_res", "ms"),
    "l_d_bytes": Name("measured L_D", "bytes"),
    "n_c": Name("measured N_C"),
    "completion_s": Name("completion time (median)", "s"),
    "completion_p95_s": Name("completion time (95 %)", "s"),
    "transfers": Name("finished transfers"),
    "unfinished": Name("transfers cut"),
    "transfer_s": Name("transfer time, first data to last ACK (mean)", "s"),
    "transfer_bps": Name("throughput of a transfer", "Mbit/s", 1e-6),
    "packets_sent": Name("packets sent for a transfer"),
    "ceiling_bps": Name("ceiling", "Mbit/s", 1e-6),
    "segments_sent": Name("data segments sent"),
    "wasted_share": Name("sent and not new", "%", 100),
    "fair_share_ratio": Name("times its fair share"),
    "window_reductions": Name("window reductions"),
    "ena_corrupted": Name("corrupted segments attributed"),
    "ena_notified": Name("ACKs with ENA received"),
    "ena_kept": Name("recoveries without reduction"),
    "ena_reduced": Name("recoveries with reduction"),
    "after_spike_bytes": Name("delivered in 5 s after the spike", "KB", 1e-3),
    "after_spike_drops": Name("queue drops from the spike on, to 5 s after it"),
    "after_spike_retransmits": Name("retransmissions from the spike on, to 5 s after it"),
    "recovery_s": Name("from the spike's end to 90 % of the new rate", "s"),
    "relative_time": Name("transfer time, relative", "%", 100),
    "relative_packets": Name("packets sent, relative", "%", 100),
    "relative_goodput": Name("goodput, relative"),
    "relative_throughput": Name("throughput, relative"),
    "goodput_share": Name("of the ideal", "%", 100),
    "mcr_met": Name("MCR met", "%", 100),
    "mcr_met_5s": Name("MCR, worst 5 s", "%", 100),
}
"""One value a run. `metric[group]` is the same of one group of flows, for those in GROUP_METRICS."""

FLOW_METRICS: dict[str, Name] = {
    "goodput_bps": Name("goodput", "Mbit/s", 1e-6),
    "share": Name("share of the goodput", "%", 100),
    "retransmits": Name("retransmits"),
    "timeouts": Name("timeouts"),
    "segments_sent": Name("data segments sent"),
    "wasted_share": Name("sent and not new", "%", 100),
    "fair_share_ratio": Name("times its fair share"),
    "window_reductions": Name("window reductions"),
    "cwnd_packets": Name("mean cwnd", "packets"),
    "cwnd_peak_packets": Name("largest cwnd", "packets"),
    "srtt_ms": Name("smoothed RTT", "ms"),
}

VC_METRICS: dict[str, Name] = {
    "vc_goodput_bps": Name("goodput", "Mbit/s", 1e-6),
    "vc_ratio": Name("of its ideal", "%", 100),
    "mcr_met": Name("MCR met", "%", 100),
    "mcr_met_5s": Name("MCR, worst 5 s", "%", 100),
}
"""Of a VC, program `gfr`: `vc_ratio[vc1]`. `mcr_met` and `mcr_met_5s` without a VC are the least of all."""

GROUP_METRICS = frozenset({*FLOW_METRICS, *VC_METRICS, "completion_s", "completion_p95_s", "transfers"})
"""`goodput_bps[reno]`: mean over the group's flows, except `share`, `retransmits`, `timeouts`, `segments_sent`, `window_reductions`: their sum,
and `cwnd_peak_packets`: the largest. `fair_share_ratio` is a flow's goodput over the mean of all greedy flows."""

SERIES_METRICS: dict[str, Name] = {
    "cwnd_packets": Name("cwnd", "packets"),
    "ssthresh_packets": Name("ssthresh", "packets"),
    "goodput_bps": Name("goodput", "Mbit/s", 1e-6),
    "srtt_ms": Name("smoothed RTT", "ms"),
    "queue_packets": Name("waiting packets", "packets"),
    "qthresh_packets": Name("Qthresh", "packets"),
    "throughput_bps": Name("throughput", "Mbit/s", 1e-6),
    "bw_bps": Name("measured BW", "Mbit/s", 1e-6),
    "t_res_ms": Name("measured T_res", "ms"),
    "vc_goodput_bps": Name("goodput", "Mbit/s", 1e-6),
}

TRANSFER_METRICS: dict[str, Name] = {
    "completion_s": Name("completion time", "s"),
    "bytes": Name("size", "bytes"),
    "retransmits": Name("retransmits"),
    "ran_s": Name("transfer time, first data to last ACK", "s"),
    "packets": Name("packets sent"),
}

RUNTIMES = ("sim", "mininet")

SIM_ONLY_VARIANTS = tuple(name for name in SIM_VARIANTS if name not in VARIANTS)
"""Senders that the simulator has and Linux has not."""

MININET_ONLY_VARIANTS = tuple(name for name in VARIANTS if name not in SIM_VARIANTS)


def variants(runtimes: Collection[str]) -> list[str]:
    """The variants that every one of `runtimes` knows."""
    known = [*VARIANTS, *SIM_ONLY_VARIANTS]
    if "sim" in runtimes:
        known = [name for name in known if name not in MININET_ONLY_VARIANTS]
    if "mininet" in runtimes:
        known = [name for name in known if name not in SIM_ONLY_VARIANTS]
    return known
