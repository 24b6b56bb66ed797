# SPDX-License-Identifier: Apache-2.0
"""The parameters and metrics of all experiments: their names are columns of the results, their labels the plots' axes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, get_args

from fairlane_controller.program.port_program import AqmProgram
from fairlane_hosts.programs import COUNTERS
from fairlane_hosts.simulator import SIMULATOR_VARIANTS
from fairlane_hosts.variants import VARIANTS

from fairlane_lab.definition.strict import Runtime
from fairlane_lab.programs import find_part, known_parts, of_programs
from fairlane_lab.programs.part import LabPart
from fairlane_lab.programs.part import Name as Name

_UNITS = {
    "bps": ("Mbit/s", 1e-6),
    "ms": ("ms", 1.0),
    "s": ("s", 1.0),
    "packets": ("packets", 1.0),
    "bytes": ("bytes", 1.0),
}
_ORDER = ("first", "second", "third", "fourth")
_WHOLE, _TEXT = Name("", kind=int), Name("", kind=str)
"""With the words of the column as their label."""


def _share(label: str, head: str = "") -> Name:
    return Name(label, "%", 100, head=head)


def _of_column(title: str, unit: str) -> Name:
    """A column of a program: times that packets wait are read in ms."""
    return Name(title, "ms", 1000) if unit == "s" else Name(title, unit)


def _complete(names: Mapping[str, Name | str]) -> dict[str, Name]:
    """Names and labels of columns as names: with the unit of a column's last word, and its words where there is no label."""
    found: dict[str, Name] = {}
    for column, about in names.items():
        name = Name(about) if isinstance(about, str) else about
        words = column.split("_")
        unit, scale = _UNITS.get(words[-1], ("", 1.0)) if len(words) > 1 and not name.unit else (name.unit, name.scale)
        found[column] = replace(name, label=name.label or " ".join(words), unit=unit, scale=scale)
    return found


PARAMETERS: dict[str, Name] = {
    **_complete(
        {
            "case": _TEXT,
            "control": _TEXT,
            "scheme": _TEXT,
            "sender": _TEXT,
            "variant": _TEXT,
            **{f"variant_{index}": Name(f"{word} variant", kind=str) for index, word in enumerate(_ORDER, 1)},
            "rate_bps": Name("rate", kind=int),
            "rate_after_bps": Name("rate after the change", kind=int),
            "delay_ms": "one-way delay",
            "delay_after_ms": "one-way delay after the change",
            "delay_1_ms": "first group's delay",
            "delay_2_ms": "second group's delay",
            "buffer_packets": Name("buffer", kind=int),
            "buffer_share": "share of the buffer for each queue",
            "qdisc": _TEXT,
            "queues": Name("queues that share the buffer", kind=int),
            "buffer_bdp": Name("buffer", "bandwidth-delay products"),
            "distribution": Name("distribution of the sizes", kind=str),
            "mean_bytes": Name("mean size", "KB", 1e-3, kind=int),
            "load": "",
            "ber": "bit error rate",
            "loss": "packet loss rate",
            "preset": Name("link", kind=str),
            "jitter_ms": "jitter",
            "ge_enter": "bursts begin, per packet",
            "ge_leave": "bursts end, per packet",
            "ge_loss": "loss in bursts",
            "ge_ber": "bit error rate in bursts",
            "ge_good_ms": "between bursts, mean",
            "ge_bad_ms": "burst, mean",
            "duplicate": "packets doubled",
            "dama_frame_ms": "frame of the grants",
            "dama_delay_ms": "from request to grant",
            "dama_cra_bps": "rate without a request",
            "spike_s": "delay spike",
            "spike_blocks": Name("what the spike blocks", kind=str),
            "spike_direction": Name("direction of the spike", kind=str),
            "rto_min_s": "smallest RTO",
            "file_bytes": Name("file size", kind=int),
            "flows": _WHOLE,
            **{f"flows_{index}": Name(f"flows of the {word} group", kind=int) for index, word in enumerate(_ORDER, 1)},
            "offset_s": "start offset",
            "window_packets": Name("largest window", kind=int),
            "window_bytes": Name("window", "KB", 1 / 1024, kind=int),
            "receive_windows": Name("receive buffer", "windows", kind=int),
            "times": Name("transfers", kind=int),
            "interval_s": "between transfers",
            "tick_s": Name("tick of the clock", "ms", 1000),
            "delayed_ack_s": Name("delayed ACK", "ms", 1000),
            "backoff": _TEXT,
            "read_interval_s": Name("the server reads after", "ms", 1000),
            "timestamps": "",
            "program": _TEXT,
            "distance": _TEXT,
            "weight": "",
            "mss_bytes": Name("segment", kind=int),
            "ipv6": Name("IPv6", kind=bool),
            "error_naming": Name("segment that an ACK names", kind=str),
            "errors_in": _TEXT,
            "spare_retransmissions": "retransmissions spared",
            "receiver_program": "receiver has the sender's program",
            "start_s": "start",
            "stop_s": "stop",
            "duration_s": "duration",
            "warmup_s": "warm-up",
        }
    ),
    **of_programs("parameters"),
}
"""What a file may call a parameter. Set by the lab itself: `case`, `offset_s`, and `control`, the label of the axis of that name.
With a `sender`, points that differ in it alone meet the same world in the same repeat."""

SET_BY_THE_LAB = frozenset({"case", "control", "offset_s"})

RUN_METRICS: dict[str, Name] = {
    **_complete(
        {
            "throughput_bps": Name("throughput", head="through-\nput"),
            "goodput_bps": "goodput",
            "utilisation": _share("utilisation", "util."),
            "fairness": _share("fairness (min/max)"),
            "jain": Name("Jain index"),
            "jain_100ms": Name("Jain index over 0.1 s, mean"),
            "jain_1s": Name("Jain index over 1 s, mean"),
            "jain_10s": Name("Jain index over 10 s, mean"),
            "fair_after_s": Name(
                "from a change to a second that is shared fairly (Jain index 0.95)", head="fair after"
            ),
            "worst_5s_use": _share("utilisation of the worst 5 s"),
            "delay_p99_ms": "99 % of the smoothed RTTs, above a flow's smallest",
            "least_share": _share("smallest flow, of its fair share"),
            "cut_s": "warm-up that was cut",
            "unsteady": _share("runs without a steady state"),
            "retransmits": _WHOLE,
            "timeouts": _WHOLE,
            "drops": _WHOLE,
            "queue_packets": "mean queue",
            "completion_s": Name("completion time (median)", head="compl.", never_beside="unfinished"),
            "completion_p95_s": Name("completion time (95 %)", never_beside="unfinished"),
            "slowdown": "slowdown of a transfer (mean)",
            "slowdown_p99": "slowdown of a transfer (99 %)",
            "slowdown_short": "slowdown up to 100 kB (mean)",
            "slowdown_short_p99": "slowdown up to 100 kB (99 %)",
            "slowdown_long": "slowdown above 1 MB (mean)",
            "slowdown_long_p99": "slowdown above 1 MB (99 %)",
            "transfers": Name("finished transfers", kind=int),
            "unfinished": Name("transfers cut", kind=int),
            "transfer_s": Name("transfer time, first data to last ACK (mean)", never_beside="transfer_bps"),
            "transfer_bps": "throughput of a transfer",
            "packets_sent": "packets sent for a transfer",
            "ceiling_bps": "ceiling",
            "segments_sent": Name("data segments sent", kind=int),
            "wasted_share": _share("sent and not new"),
            "fair_share_ratio": "times its fair share",
            "window_reductions": _WHOLE,
            **{name: Name(counter.label, kind=int) for name, counter in COUNTERS.items()},
            "after_spike_bytes": Name("delivered in 5 s after the spike", "KB", 1e-3),
            "after_spike_drops": Name("queue drops from the spike on, to 5 s after it", kind=int),
            "after_spike_retransmits": Name("retransmissions from the spike on, to 5 s after it", kind=int),
            "recovery_s": Name("from the spike's end to 90 % of the new rate", never_beside="after_spike_bytes"),
            "bw_est_bps": "BW_est at the undo",
            "bw_est_ratio": "BW_est at the undo over the new rate",
            "relative_time": Name("transfer time, relative", "%", 100),
            "relative_packets": Name("packets sent, relative", "%", 100),
            "relative_goodput": "goodput, relative",
            "relative_throughput": "throughput, relative",
        }
    ),
    **{each.name: _of_column(each.title, each.unit) for each in (AqmProgram.delay, AqmProgram.marks)},
    **of_programs("run_metrics"),
}
"""One value a run. `metric[group]` is the same of one group of flows, for those in GROUP_METRICS."""


def _of_runs(*names: str) -> dict[str, Name]:
    return {name: RUN_METRICS[name] for name in names}


FLOW_METRICS: dict[str, Name] = {
    **_of_runs("goodput_bps"),
    "share": _share("share of the goodput"),
    **_of_runs("retransmits", "timeouts", "segments_sent", "wasted_share", "fair_share_ratio", "window_reductions"),
    **_complete(
        {
            "cwnd_packets": "mean cwnd",
            "cwnd_peak_packets": "largest cwnd",
            "cwnd_p95_packets": "cwnd (95 %)",
            "srtt_ms": "smoothed RTT",
            "played_bps": Name("bit rate played (mean)", head="played"),
            "stalled_share": _share("stalls, of the time watched", "stalled"),
            "rate_switches": Name("changes of the bit rate", kind=int),
        }
    ),
}

OBJECT_METRICS: dict[str, Name] = of_programs("object_metrics")
"""Of an object of a program, such as a VC: `vc_ratio[vc1]`."""

_OF_GROUPS = (
    "transfers",
    "unfinished",
    *(name for name in RUN_METRICS if name.startswith(("completion_", "slowdown"))),
)
GROUP_METRICS = frozenset({*FLOW_METRICS, *OBJECT_METRICS, *_OF_GROUPS})
"""`goodput_bps[reno]`: mean over the group's flows, except `share`, `retransmits`, `timeouts`, `segments_sent`, `window_reductions`, `rate_switches`: their sum,
and `cwnd_peak_packets`, `cwnd_p95_packets`: of all their samples. `fair_share_ratio` is a flow's goodput over the mean of all greedy flows."""

SERIES_METRICS: dict[str, Name] = {
    **_complete({"cwnd_packets": "cwnd", "ssthresh_packets": "ssthresh"}),
    **_of_runs("goodput_bps"),
    "srtt_ms": FLOW_METRICS["srtt_ms"],
    "queue_packets": Name("waiting packets", "packets"),
    **_of_runs("throughput_bps"),
    "rate_bps": PARAMETERS["rate_bps"],
    **of_programs("series_metrics"),
}

LIMIT_SERIES = tuple(part.limit_series for part in known_parts() if part.limit_series)
"""Of SERIES_METRICS, limits of a queue."""

TRANSFER_METRICS: dict[str, Name] = _complete(
    {
        "completion_s": "completion time",
        "bytes": Name("size", "bytes", kind=int),
        "retransmits": _WHOLE,
        "ran_s": "transfer time, first data to last ACK",
        "packets": Name("packets sent", kind=int),
        "slowdown": "",
    }
)

OTHER_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("experiment", "point", "runtime", "target", "configuration", "drawn"), str),
    **dict.fromkeys(("flow", "group", "metric", "switch", "about", "vc"), str),
    **dict.fromkeys(("repeat", "seed", "port", "port_rate_bps"), int),
    **dict.fromkeys(("greedy", "complete"), bool),
}
"""Columns of the tables that are no parameter and no metric, and no number with a fraction."""


SWITCH_PARAMETERS = {"control", "program", "scheduler", "queues", "buffer_share", "qdisc"}.union(
    *(part.of_the_switch for part in known_parts())
)
"""What the switch does: a run's seed does not depend on it."""
SENDER_PARAMETERS = frozenset({"sender", "variant", "window_bytes", "receive_windows"})
"""With a parameter `sender`: what senders that are compared in pairs differ in."""


def part_of(program: str) -> LabPart:
    """The lab's part of a program; what its ports can be set to, and what it measures, have names from now on. Raises FairlaneError."""
    part = find_part(program)
    for name, field in part.control_model.model_fields.items():
        PARAMETERS.setdefault(name, Name(name.replace("_", " "), kind=int if field.annotation is int else str))
    SWITCH_PARAMETERS.update(part.of_the_switch)
    for column in part.measured:
        RUN_METRICS.setdefault(column.name, _of_column(column.title, column.unit))
    return part


def beside(params: Mapping[str, Any], to: Collection[str]) -> tuple[tuple[str, Any], ...]:
    """What must be the same at the point that one with these parameters is relative to: all but what is compared; with a parameter of the
    switch, all that the switch does; with `sender`, all that the sender is."""
    apart = set(to)
    apart |= SENDER_PARAMETERS if "sender" in apart else SWITCH_PARAMETERS if apart & SWITCH_PARAMETERS else set()
    return tuple((name, value) for name, value in sorted(params.items()) if name not in apart)


def split_quotient(metric: str) -> tuple[str, str]:
    """`("a", "b")` of `a / b`; the second is empty where nothing is divided."""
    above, _, below = metric.partition("/")
    return above.strip(), below.strip()


def split_metric(metric: str) -> tuple[str, str]:
    """`("goodput_bps", "reno")` of `goodput_bps[reno]`; the group is empty where there is none."""
    name, _, group = metric.removesuffix("]").partition("[")
    return name, group


def find_name(column: str) -> Name | None:
    """What is known of a parameter or a metric, whatever table it is in."""
    for table in (RUN_METRICS, FLOW_METRICS, OBJECT_METRICS, SERIES_METRICS, TRANSFER_METRICS, PARAMETERS):
        if column in table:
            return table[column]
    return None


def column_kind(column: str) -> type:
    """The type of a column, by its name alone."""
    found = find_name(column)
    return OTHER_COLUMNS.get(column, float) if found is None else found.kind


RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)
"""Simulated hosts, and Linux's own TCP in virtual time; Linux's own TCP in real time."""


def variants(runtimes: Collection[str]) -> list[str]:
    """The senders that every one of `runtimes` knows: no kernel has the textbook's, nor those of L4S."""
    return [*VARIANTS, *([] if {"kernel", "mininet"} & set(runtimes) else SIMULATOR_VARIANTS)]
