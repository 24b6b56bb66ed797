# SPDX-License-Identifier: Apache-2.0
"""What a program shows: columns of its ports, kinds of objects of a port (flows, VCs), drop reasons, and the rows themselves.

Everything that shows a topology (`status`, `watch`, the page, metrics, `export`, `--json`) shows these, and knows no program by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

QUEUE, CAPACITY, GOODPUT, CONTROL, DROPS = "queue", "capacity", "goodput", "control", "drops"
"""Values of `Column.plot`: what waits, what may wait, what gets through, what the program controls by, what is lost."""
_METRIC_UNITS = (("_bps", "_bits_per_second"), ("drops_per_s", "drops_per_second"), ("_s", "_seconds"))


@dataclass(frozen=True)
class Column:
    """One value of a port or an object: a column of status and watch, a key of `--json`, a metric, a field of an export."""

    name: str
    "Key of `--json` and end of the metric's name, with its unit where it has one: `waiting_packets`, `rate_bps`."
    title: str
    "Heading of a table."
    unit: str = ""
    "packets, bytes, cells, bit/s, s; empty: a bare number or a word."
    doc: str = ""
    "One sentence: what it is."
    counter: str = ""
    "A counter of the P4 program that is indexed by egress port: the core reads it, and `rows` need not."
    reason: int | None = None
    "As `counter`: the cell of `drops` of this reason at the port."
    register: str = ""
    "As `counter`: a register of the P4 program; not known where the target reads no registers (BMv2)."
    setting: str = ""
    "A key of the program's `Settings`: the value that the port has."
    scale: float = 1.0
    "The value is the register's cell times this: 1e-6 for us."
    ratio: tuple[str, str] | None = None
    """Names of two totals among the program's columns: the value is what the first grew by over what the second grew by, since the
    reading before (a mean delay: of all waiting, over packets). The core computes it."""
    total: bool = False
    "Only increases (a Prometheus counter); always so with `counter` or `reason`."
    plot: str = ""
    "The chart that it is drawn in: `queue`, `capacity`, `goodput`, `control` or `drops`; empty: none."
    wide: bool = False
    "Shown only where there is room: `fairlane describe`, `--json`, `export`."
    metric: str | None = ""
    "Its metric's whole name; empty: made of kind and name (none for words and wide columns); None: no metric."
    value_type: type | None = None
    "int, float, bool or str; None: by the unit."
    source: str = ""
    "Of a measured value: what it is measured by, where the measurement does not say (`t_res_source` beside `t_res_s`)."

    @property
    def quantity(self) -> str:
        """The name without its unit: `t_res` of `t_res_s`."""
        return self.name.rpartition("_")[0] if self.unit else self.name

    @property
    def python_type(self) -> type:
        """int for counts of packets, bytes and cells, float for other units, str without a unit, unless `value_type` says otherwise."""
        if self.value_type is not None:
            return self.value_type
        return int if self.unit in ("packets", "bytes", "cells") else float if self.unit else str

    def metric_name(self, kind: str) -> str | None:
        """The name of its metric.

        Args:
            kind: What has the value: `port`, or the name of a kind (`flow`).

        Returns:
            The name; None: it has no metric.
        """
        if self.metric or self.metric is None or self.wide or self.python_type is str:
            return self.metric or None
        name = "queue_" + self.name.removeprefix("waiting_") if self.name.startswith("waiting_") else self.name
        for short, unit in _METRIC_UNITS:
            if name.endswith(short):
                name = name.removesuffix(short) + unit
                break
        return f"fairlane_{kind}_{name}{'_total' if self.is_total else ''}"

    def to_json(self) -> dict[str, str | bool]:
        """What a page needs to show it."""
        return {"name": self.name, "title": self.title, "unit": self.unit, "plot": self.plot, "wide": self.wide}

    @property
    def is_total(self) -> bool:
        """Whether the value only increases: a rate can be made of it."""
        return self.total or bool(self.counter) or self.reason is not None


BW = Column("bw_bps", "BW", "bit/s", "BW: drain rate while packets waited.", metric="fairlane_measured_bandwidth_bits_per_second", source="reports")  # fmt: skip
TAU = Column("tau_s", "τ", "s", "Propagation delay of the link behind the port, by probes.", metric="fairlane_measured_tau_seconds", source="probes", wide=True)  # fmt: skip
"""What a `PortMeter` measures, as all programs with one show it."""


@dataclass(frozen=True)
class Kind:
    """A kind of objects that a port has: its name in commands and `--json` (`flow`), the table's heading, its columns."""

    name: str
    title: str
    columns: tuple[Column, ...]
    plural: str = ""
    "Key of `--json` and kind of rows of `export`; empty: the name and an s."
    brief: bool = False
    "There are few at a port: shown in a line each and not as a table."
    label: str = ""
    "Label of its metrics; empty: the name."

    @property
    def many(self) -> str:
        """The plural."""
        return self.plural or f"{self.name}s"

    @property
    def short(self) -> str:
        """The word before the name of one of them, and the label of its metrics."""
        return self.label or self.name

    def plotted(self, plot: str) -> Column | None:
        """Its first column of a chart."""
        return plotted(self.columns, plot)

    def to_json(self) -> dict[str, Any]:
        """What a page needs to show it."""
        columns = [column.to_json() for column in self.columns]
        return {
            "name": self.name,
            "label": self.short,
            "title": self.title,
            "plural": self.many,
            "brief": self.brief,
            "columns": columns,
        }


def plotted(columns: Iterable[Column], plot: str) -> Column | None:
    """The first column that is drawn in a chart.

    Args:
        columns: The columns.
        plot: The chart (`Column.plot`).
    """
    return next((column for column in columns if column.plot == plot), None)


@dataclass(frozen=True)
class Reason:
    """Why a program drops a packet: the low bits of an index of the counter `drops`."""

    name: str
    meaning: str
    "One short sentence for people."
    in_queue: bool = False
    "Whether it is a decision about the queue (a threshold, no room) and not a fault of the packet."


@dataclass(frozen=True)
class Row:
    """The values of a port (`kind` empty) or of one object of it. Values of a port with the names of the core's (`waiting_packets`,
    `waiting_bytes`, `capacity_packets`, `sent_packets`, `sent_bytes`, `dropped_packets`) replace the core's."""

    port: int | None
    "None: of an object whose port is not known."
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "By the columns' names; a value that is not known is left out or None, and never 0."
    kind: str = ""
    key: str = ""
    "Which object: unique among those of its kind and port."
