# SPDX-License-Identifier: Apache-2.0
"""The parameters and metrics of all experiments: their names are columns of the results, their labels the plots' axes."""

from __future__ import annotations

from collections.abc import Collection

from fairlane_hosts.programs import COUNTERS
from fairlane_hosts.simulator import SIMULATOR_VARIANTS
from fairlane_hosts.variants import VARIANTS

from fairlane_lab.programs import find_part, known_parts
from fairlane_lab.programs.part import LabPart
from fairlane_lab.programs.part import Name as Name

PARAMETERS: dict[str, Name] = {
    "case": Name("case", kind=str),
    "control": Name("control", kind=str),
    "scheme": Name("scheme", kind=str),
    "sender": Name("sender", kind=str),
    "variant": Name("variant", kind=str),
    "variant_1": Name("first variant", kind=str),
    "variant_2": Name("second variant", kind=str),
    "variant_3": Name("third variant", kind=str),
    "variant_4": Name("fourth variant", kind=str),
    "rate_bps": Name("rate", "Mbit/s", 1e-6, kind=int),
    "rate_after_bps": Name("rate after the change", "Mbit/s", 1e-6, kind=int),
    "delay_ms": Name("one-way delay", "ms"),
    "delay_after_ms": Name("one-way delay after the change", "ms"),
    "delay_1_ms": Name("first group's delay", "ms"),
    "delay_2_ms": Name("second group's delay", "ms"),
    "buffer_packets": Name("buffer", "packets", kind=int),
    "buffer_share": Name("share of the buffer for each queue"),
    "queues": Name("queues that share the buffer", kind=int),
    "buffer_bdp": Name("buffer", "bandwidth-delay products"),
    "distribution": Name("distribution of the sizes", kind=str),
    "mean_bytes": Name("mean size", "KB", 1e-3, kind=int),
    "load": Name("load"),
    "ber": Name("bit error rate"),
    "loss": Name("packet loss rate"),
    "preset": Name("link", kind=str),
    "jitter_ms": Name("jitter", "ms"),
    "ge_enter": Name("bursts begin, per packet"),
    "ge_leave": Name("bursts end, per packet"),
    "ge_loss": Name("loss in bursts"),
    "ge_ber": Name("bit error rate in bursts"),
    "spike_s": Name("delay spike", "s"),
    "spike_blocks": Name("what the spike blocks", kind=str),
    "spike_direction": Name("direction of the spike", kind=str),
    "rto_min_s": Name("smallest RTO", "s"),
    "file_bytes": Name("file size", "bytes", kind=int),
    "flows": Name("flows", kind=int),
    "flows_1": Name("flows of the first group", kind=int),
    "flows_2": Name("flows of the second group", kind=int),
    "flows_3": Name("flows of the third group", kind=int),
    "flows_4": Name("flows of the fourth group", kind=int),
    "offset_s": Name("start offset", "s"),
    "window_packets": Name("largest window", "packets", kind=int),
    "window_bytes": Name("window", "KB", 1 / 1024, kind=int),
    "receive_windows": Name("receive buffer", "windows", kind=int),
    "times": Name("transfers", kind=int),
    "interval_s": Name("between transfers", "s"),
    "tick_s": Name("tick of the clock", "ms", 1000),
    "delayed_ack_s": Name("delayed ACK", "ms", 1000),
    "backoff": Name("backoff", kind=str),
    "read_interval_s": Name("the server reads after", "ms", 1000),
    "timestamps": Name("timestamps"),
    "program": Name("program", kind=str),
    "distance": Name("distance", kind=str),
    "weight": Name("weight"),
    "mss_bytes": Name("segment", "bytes", kind=int),
    "error_naming": Name("segment that an ACK names", kind=str),
    "errors_in": Name("errors in", kind=str),
    "spare_retransmissions": Name("retransmissions spared"),
    "receiver_program": Name("receiver has the sender's program"),
    "start_s": Name("start", "s"),
    "stop_s": Name("stop", "s"),
    "duration_s": Name("duration", "s"),
    "warmup_s": Name("warm-up", "s"),
    **{name: about for part in known_parts() for name, about in part.parameters.items()},
}
"""What a file may call a parameter. Set by the lab itself: `case`, `offset_s`, and `control`, the label of the axis of that name.
With a `sender`, points that differ in it alone meet the same world in the same repeat."""

SET_BY_THE_LAB = frozenset({"case", "control", "offset_s"})

RUN_METRICS: dict[str, Name] = {
    "throughput_bps": Name("throughput", "Mbit/s", 1e-6, head="through-\nput"),
    "goodput_bps": Name("goodput", "Mbit/s", 1e-6),
    "utilisation": Name("utilisation", "%", 100, head="util.", most=1),
    "fairness": Name("fairness (min/max)", "%", 100, most=1),
    "jain": Name("Jain index", most=1),
    "jain_100ms": Name("Jain index over 0.1 s, mean", most=1),
    "jain_1s": Name("Jain index over 1 s, mean", most=1),
    "jain_10s": Name("Jain index over 10 s, mean", most=1),
    "fair_after_s": Name("from a change to a second that is shared fairly (Jain index 0.95)", "s", head="fair after"),
    "worst_5s_use": Name("utilisation of the worst 5 s", "%", 100, most=1),
    "delay_p99_ms": Name("99 % of the RTTs, above a flow's smallest", "ms"),
    "least_share": Name("smallest flow, of its fair share", "%", 100, most=1),
    "cut_s": Name("warm-up that was cut", "s"),
    "unsteady": Name("runs without a steady state", "%", 100, most=1),
    "retransmits": Name("retransmits", kind=int),
    "timeouts": Name("timeouts", kind=int),
    "drops": Name("drops", kind=int),
    "queue_packets": Name("mean queue", "packets"),
    "completion_s": Name("completion time (median)", "s", head="compl."),
    "completion_p95_s": Name("completion time (95 %)", "s"),
    "slowdown": Name("slowdown of a transfer (mean)"),
    "slowdown_p99": Name("slowdown of a transfer (99 %)"),
    "slowdown_short": Name("slowdown up to 100 kB (mean)"),
    "slowdown_short_p99": Name("slowdown up to 100 kB (99 %)"),
    "slowdown_long": Name("slowdown above 1 MB (mean)"),
    "slowdown_long_p99": Name("slowdown above 1 MB (99 %)"),
    "transfers": Name("finished transfers", kind=int),
    "unfinished": Name("transfers cut", kind=int),
    "transfer_s": Name("transfer time, first data to last ACK (mean)", "s"),
    "transfer_bps": Name("throughput of a transfer", "Mbit/s", 1e-6),
    "packets_sent": Name("packets sent for a transfer"),
    "ceiling_bps": Name("ceiling", "Mbit/s", 1e-6),
    "segments_sent": Name("data segments sent", kind=int),
    "wasted_share": Name("sent and not new", "%", 100, most=1),
    "fair_share_ratio": Name("times its fair share"),
    "window_reductions": Name("window reductions", kind=int),
    **{name: Name(counter.label, kind=int) for name, counter in COUNTERS.items()},
    "after_spike_bytes": Name("delivered in 5 s after the spike", "KB", 1e-3),
    "after_spike_drops": Name("queue drops from the spike on, to 5 s after it", kind=int),
    "after_spike_retransmits": Name("retransmissions from the spike on, to 5 s after it", kind=int),
    "recovery_s": Name("from the spike's end to 90 % of the new rate", "s"),
    "bw_est_bps": Name("BW_est at the undo", "Mbit/s", 1e-6),
    "bw_est_ratio": Name("BW_est at the undo over the new rate"),
    "relative_time": Name("transfer time, relative", "%", 100),
    "relative_packets": Name("packets sent, relative", "%", 100),
    "relative_goodput": Name("goodput, relative"),
    "relative_throughput": Name("throughput, relative"),
    **{name: about for part in known_parts() for name, about in part.run_metrics.items()},
}
"""One value a run. `metric[group]` is the same of one group of flows, for those in GROUP_METRICS."""

FLOW_METRICS: dict[str, Name] = {
    "goodput_bps": Name("goodput", "Mbit/s", 1e-6),
    "share": Name("share of the goodput", "%", 100, most=1),
    "retransmits": Name("retransmits", kind=int),
    "timeouts": Name("timeouts", kind=int),
    "segments_sent": Name("data segments sent", kind=int),
    "wasted_share": Name("sent and not new", "%", 100, most=1),
    "fair_share_ratio": Name("times its fair share"),
    "window_reductions": Name("window reductions", kind=int),
    "cwnd_packets": Name("mean cwnd", "packets"),
    "cwnd_peak_packets": Name("largest cwnd", "packets"),
    "cwnd_p95_packets": Name("cwnd (95 %)", "packets"),
    "srtt_ms": Name("smoothed RTT", "ms"),
    "played_bps": Name("bit rate played (mean)", "Mbit/s", 1e-6, head="played"),
    "stalled_share": Name("stalls, of the time watched", "%", 100, head="stalled", most=1),
    "rate_switches": Name("changes of the bit rate", kind=int),
}

OBJECT_METRICS: dict[str, Name] = {name: about for part in known_parts() for name, about in part.object_metrics.items()}
"""Of an object of a program, such as a VC: `vc_ratio[vc1]`."""

GROUP_METRICS = frozenset(
    {
        *FLOW_METRICS,
        *OBJECT_METRICS,
        "transfers",
        *(name for name in RUN_METRICS if name.startswith(("completion_", "slowdown"))),
    }
)
"""`goodput_bps[reno]`: mean over the group's flows, except `share`, `retransmits`, `timeouts`, `segments_sent`, `window_reductions`, `rate_switches`: their sum,
and `cwnd_peak_packets`, `cwnd_p95_packets`: of all their samples. `fair_share_ratio` is a flow's goodput over the mean of all greedy flows."""

SERIES_METRICS: dict[str, Name] = {
    "cwnd_packets": Name("cwnd", "packets"),
    "ssthresh_packets": Name("ssthresh", "packets"),
    "goodput_bps": Name("goodput", "Mbit/s", 1e-6),
    "srtt_ms": Name("smoothed RTT", "ms"),
    "queue_packets": Name("waiting packets", "packets"),
    "throughput_bps": Name("throughput", "Mbit/s", 1e-6),
    **{name: about for part in known_parts() for name, about in part.series_metrics.items()},
}

LIMIT_SERIES = tuple(part.limit_series for part in known_parts() if part.limit_series)
"""Of SERIES_METRICS, limits of a queue."""

TRANSFER_METRICS: dict[str, Name] = {
    "completion_s": Name("completion time", "s"),
    "bytes": Name("size", "bytes", kind=int),
    "retransmits": Name("retransmits", kind=int),
    "ran_s": Name("transfer time, first data to last ACK", "s"),
    "packets": Name("packets sent", kind=int),
    "slowdown": Name("slowdown"),
}

OTHER_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("experiment", "point", "runtime", "target", "configuration", "drawn"), str),
    **dict.fromkeys(("flow", "group", "metric", "switch", "about", "vc"), str),
    **dict.fromkeys(("repeat", "seed", "port", "port_rate_bps"), int),
    **dict.fromkeys(("greedy", "complete"), bool),
}
"""Columns of the tables that are no parameter and no metric, and no number with a fraction."""


SWITCH_PARAMETERS = {"control", "program", "scheduler", "queues", "buffer_share"}.union(
    *(part.switch_parameters | part.control_model.model_fields.keys() for part in known_parts())
)
"""What the switch does: a run's seed does not depend on it."""
SENDER_PARAMETERS = frozenset({"sender", "variant", "window_bytes", "receive_windows"})
"""With a parameter `sender`: what senders that are compared in pairs differ in."""


def part_of(program: str) -> LabPart:
    """The lab's part of a program; what its ports can be set to, and what it measures, have names from now on. Raises FairlaneError."""
    part = find_part(program)
    for name, field in part.control_model.model_fields.items():
        PARAMETERS.setdefault(name, Name(name.replace("_", " "), kind=int if field.annotation is int else str))
        SWITCH_PARAMETERS.add(name)
    for column in part.measured:
        RUN_METRICS.setdefault(column.name, Name(column.title, column.unit))
    return part


def find_name(column: str) -> Name | None:
    """What is known of a parameter or a metric, whatever table it is in."""
    for table in (RUN_METRICS, FLOW_METRICS, OBJECT_METRICS, SERIES_METRICS, TRANSFER_METRICS, PARAMETERS):
        if column in table:
            return table[column]
    return None


def column_kind(column: str) -> type:
    """The type of a column, by its name alone."""
    if column.startswith("drops_"):
        return int
    found = find_name(column)
    return OTHER_COLUMNS.get(column, float) if found is None else found.kind


RUNTIMES = ("sim", "kernel", "mininet")
"""Simulated hosts, and Linux's own TCP in virtual time; Linux's own TCP in real time."""


def variants(runtimes: Collection[str]) -> list[str]:
    """The senders that every one of `runtimes` knows: no kernel has the textbook's, nor those of L4S."""
    return [*VARIANTS, *([] if {"kernel", "mininet"} & set(runtimes) else SIMULATOR_VARIANTS)]
