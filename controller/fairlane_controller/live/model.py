# SPDX-License-Identifier: Apache-2.0
"""The rows of a snapshot: plain frozen data with units in the names. None is what cannot be known, and never 0.

A field made by `_column` is a `Column`: its name, unit and metric are declared once for tables, metrics and exports.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

from fairlane_controller.program.contract import NO_PROGRAM, Program
from fairlane_controller.program.rows import CAPACITY, CONTROL, GOODPUT, QUEUE, Column, Kind, plotted

_ADDRESS = re.compile(r"\d+(?:\.\d+){3}")
SCHEMA = 2
"""Version of the document that `--json` prints: it grows when a key goes or means something else."""


class _Row:
    """A row that becomes plain data."""

    def to_json(self) -> dict[str, Any]:
        """The fields by their names; `values`, the program's columns, stand beside them."""
        plain = {name: _plain(value) for name, value in vars(self).items()}
        return plain | plain.pop("values", {})


def _plain(value: Any) -> Any:
    if isinstance(value, _Row):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in cast("Mapping[str, Any]", value).items()}
    return round(value, 6) if isinstance(value, float) else value


class _OfPort(_Row):
    """A row of a port."""

    switch: str
    port: Any

    @property
    def place(self) -> tuple[str, int]:
        """(switch, port)."""
        return self.switch, self.port

    @property
    def name(self) -> str:
        """`s1:3`."""
        return f"{self.switch}:{self.port}"


def _column(title: str, unit: str = "", doc: str = "", default: Any = None, **more: Any) -> Any:
    """A field that is a column of every such row, whatever the program; without `metric` it has none."""
    return field(
        default=default, metadata={"column": {"title": title, "unit": unit, "doc": doc, "metric": None, **more}}
    )


def _columns_in(row: type) -> tuple[Column, ...]:
    return tuple(Column(one.name, **one.metadata["column"]) for one in fields(row) if "column" in one.metadata)


@dataclass(frozen=True)
class SwitchRow(_Row):
    """One switch, whether or not it answers."""

    switch: str
    grpc: str
    device_id: int
    reachable: bool
    program: str | None
    "Its program's name; None: no program, or an unknown one."
    error: Mapping[str, str] | None = None
    '`{"code", "message"}` of what is wrong.'
    read_ms: float | None = None
    "How long the reading took."


@dataclass(frozen=True)
class PortRow(_OfPort):
    """One egress port: all that the run state names, and every one that the program manages."""

    switch: str
    port: int
    interface: str | None = _column("interface")
    managed: bool = _column("managed", doc="Whether the program has settings for it.", default=False, value_type=bool)
    rate_bps: float | None = _column(
        "rate",
        "bit/s",
        "Rate of the port's shaper; no series when unlimited.",
        metric="fairlane_port_rate_bits_per_second",
    )
    tx_bps: float | None = _column("sent", "bit/s")
    utilisation: float | None = _column(
        "of line",
        doc="What was sent since the scrape before, of the rate (or of the measured BW).",
        value_type=float,
        metric="fairlane_port_utilisation_ratio",
    )
    waiting_packets: int | None = _column(
        "waiting", "packets", "Packets that wait at the port.", metric="fairlane_queue_packets"
    )
    waiting_bytes: int | None = _column(
        "waiting", "bytes", "Bytes that wait at the port.", metric="fairlane_queue_bytes"
    )
    capacity_packets: int | None = _column(
        "capacity", "packets", "Packets that may wait at the port.", metric="fairlane_queue_capacity_packets"
    )
    drops_per_s: float | None = _column("drops/s", "/s")
    dropped_packets: int | None = _column(
        "dropped",
        "packets",
        "At its queue, by the program or by the traffic manager: the sum of its `DropRow.in_queue`.",
    )
    sent_packets: int | None = _column("sent", "packets", "Packets sent.", metric="fairlane_port_sent_packets_total")
    sent_bytes: int | None = _column("sent", "bytes", "Bytes of frames sent.", metric="fairlane_port_sent_bytes_total")
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "The program's columns."
    measured: Mapping[str, Any] | None = None
    """What the loop measures (`Program.measured`), as its control socket reports it: `{"bw_bps": {"value", "count", "age_s", "uncertainty"}, …}`."""  # fmt: skip

    def estimate(self, name: str) -> Mapping[str, Any]:
        """What the loop measures under a name.

        Args:
            name: Of one of `Program.measured`, with its unit: `bw_bps`.

        Returns:
            value, count, age_s, uncertainty; empty: not known, or a value for each object.
        """
        found: Mapping[str, Any] = (self.measured or {}).get(name) or {}
        return found if "value" in found else {}


PORT_COLUMNS = _columns_in(PortRow)
"""Those that every port has."""


@dataclass(frozen=True)
class ObjectRow(_OfPort):
    """An object of a port, of one of the program's kinds: a flow, a VC, a class."""

    switch: str
    port: int | None
    "None where it is not known."
    kind: str
    key: str
    "Its name, unique among those of its kind and port."
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "The kind's columns; None is what is not known."

    def __getitem__(self, column: str) -> Any:
        """The value of a column; None where it is not known."""
        return self.values.get(column)

    def to_json(self) -> dict[str, Any]:
        """`{"switch", "port", "flow": "tcp …", …}`."""
        return {"switch": self.switch, "port": self.port, self.kind: self.key, **_plain(self.values)}


@dataclass(frozen=True)
class DropRow(_OfPort):
    """Packets that ended at a switch for one reason; a reason without any packet has no row."""

    switch: str
    port: int | None
    "Ingress for reasons of the packet itself, egress for those of the queue; None: of the whole switch."
    reason: str = _column("reason", default="")
    packets: int = _column("packets", "packets", default=0)
    per_s: float | None = _column("rate", "/s")
    by: str = _column("by", default="program")
    "`program` (the P4 program), `queue` (the traffic manager), `link` (the port itself)."
    object: str | None = _column("of")
    "Whose packets they were (a VC), where the program knows it."
    in_queue: bool = False
    "Whether it was at the port's queue, and not for a fault of the packet or of the line."


DROP_COLUMNS = _columns_in(DropRow)


@dataclass(frozen=True)
class LoopRow(_Row):
    """The control loop's view of one switch."""

    switch: str
    connected: bool
    error: Mapping[str, str] | None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "The whole row of its `status`, with what its program reports: `flows`."

    def to_json(self) -> dict[str, Any]:
        """The row of its `status`."""
        plain = super().to_json()
        return {**plain.pop("details"), **plain}


@dataclass(frozen=True)
class DeadRow(_Row):
    """A process of the topology that has died: it was not stopped by a command, and it was not restarted (yet)."""

    process: str
    "What it is: `fairlane-switch network`, `fairlane-switch s1`, `host h1`, `launcher`, …"
    pid: int
    message: str


@dataclass(frozen=True)
class Snapshot(_Row):
    """Everything at one time."""

    time_s: float
    "Unix time."
    topology: str | None
    "The name by which commands find it."
    target: str | None
    switches: tuple[SwitchRow, ...]
    ports: tuple[PortRow, ...] = ()
    objects: tuple[ObjectRow, ...] = ()
    drops: tuple[DropRow, ...] = ()
    loop: tuple[LoopRow, ...] | None = None
    "None: no loop runs."
    loop_error: Mapping[str, str] | None = None
    "What is wrong with the loop itself."
    dead: tuple[DeadRow, ...] = ()
    interval_s: float | None = None
    "Since the snapshot before: what the rates are over."
    title: str = ""
    "What its file calls it: `dumbbell`."
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    "Names of hosts by their addresses."
    programs: Mapping[str, Program] = field(default_factory=dict[str, Program])
    "Those that the switches run, by name: their columns and kinds are what there is to show."

    def to_json(self) -> dict[str, Any]:
        """The document of `--json`: `schema` is its version; objects stand under the plural of their kind (`flows`, `vcs`)."""
        rest = {name: _plain(value) for name, value in vars(self).items() if name not in ("objects", "programs")}
        objects = {kind.many: [row.to_json() for row in self.objects_of_kind(kind.name)] for kind in self.kinds}
        programs = {
            name: {
                "title": program.title,
                "columns": [column.to_json() for column in program.columns],
                "measured": [column.to_json() for column in program.measured],
                "kinds": [kind.to_json() for kind in program.kinds],
            }
            for name, program in self.programs.items()
        }
        return {"schema": SCHEMA, **rest, **objects, "programs": programs}

    def named(self, text: str) -> str:
        """The name of an object with hosts' names for their addresses: `tcp h1:40000 → h3:5001`."""
        found = _ADDRESS.sub(lambda address: self.hosts.get(address[0], address[0]), text)
        return text if found == text else found.replace(" > ", " → ")

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that its programs have."""
        return tuple({kind.name: kind for program in self.programs.values() for kind in program.kinds}.values())

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of ports that its programs have."""
        return _different(one for program in self.programs.values() for one in program.columns)

    @property
    def measured(self) -> tuple[Column, ...]:
        """What the loops of its programs measure at ports; single estimates, not those of objects."""
        return _different(one for program in self.programs.values() for one in program.measured if one.metric)

    def program_of(self, switch: str) -> Program:
        """What a switch runs; NO_PROGRAM where that has no contract."""
        name = next((row.program for row in self.switches if row.switch == switch), None)
        return self.programs.get(name or "", NO_PROGRAM)

    def kinds_at(self, row: PortRow) -> tuple[Kind, ...]:
        """The kinds of objects that a port may have, by the program of its switch."""
        return self.program_of(row.switch).kinds

    def queue_drops(self, row: PortRow) -> dict[str, int]:
        """`dropped_packets` of a port by reason."""
        found: Counter[str] = Counter()
        for drop in self.drops:
            if drop.in_queue and drop.place == row.place:
                found[drop.reason] += drop.packets
        return dict(found)

    def objects_of_kind(self, kind: str) -> tuple[ObjectRow, ...]:
        """All objects of a kind."""
        return tuple(row for row in self.objects if row.kind == kind)

    def objects_of(self, row: PortRow, kind: Kind) -> tuple[ObjectRow, ...]:
        """The objects of a port, those with the largest goodput first."""
        found = (one for one in self.objects if one.kind == kind.name and one.place == row.place)
        column = kind.plotted(GOODPUT)
        return tuple(sorted(found, key=lambda one: -(one[column.name] or 0.0)) if column is not None else found)

    def port(self, switch: str, port: int) -> PortRow | None:
        """That port's row, or None."""
        return next((row for row in self.ports if row.place == (switch, port)), None)

    @property
    def managed_ports(self) -> tuple[PortRow, ...]:
        """The ports whose queues the control plane manages."""
        return tuple(row for row in self.ports if row.managed)

    def queue_of(self, row: PortRow) -> tuple[float | None, float | None, str]:
        """What waits at a port, what may wait, and the unit: packets unless its program counts something else (cells)."""
        program = self.program_of(row.switch)
        own = plotted(program.columns, QUEUE)
        if own is None or row.values.get(own.name) is None:
            return row.waiting_packets, row.capacity_packets, "packets"
        limit = plotted(program.columns, CAPACITY)
        return row.values[own.name], row.values.get(limit.name) if limit else None, own.unit

    def marks_of(self, row: PortRow) -> dict[str, float]:
        """Levels of a port's queue that its program acts at, in the queue's unit, by title (LBO, HBO)."""
        program, unit = self.program_of(row.switch), self.queue_of(row)[2]
        columns = [one for one in program.columns if one.plot == CONTROL and one.unit == unit]
        return {one.title: value for one in columns if (value := row.values.get(one.name)) is not None}


def _different(columns: Iterable[Column]) -> tuple[Column, ...]:
    """One column for each name."""
    return tuple({one.name: one for one in columns}.values())
