# SPDX-License-Identifier: Apache-2.0
"""What a program shows: columns of its ports, kinds of objects of a port (flows, VCs), drop reasons, and the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from finsy import P4CounterData, P4TableEntry


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
    total: bool = False
    "Only increases (a Prometheus counter); always so with `counter` or `reason`."

    @property
    def is_total(self) -> bool:
        """Whether the value only increases: a rate can be made of it."""
        return self.total or bool(self.counter) or self.reason is not None


@dataclass(frozen=True)
class Kind:
    """A kind of objects that a port has: its name in commands and `--json` (`flow`), the table's heading, its columns."""

    name: str
    title: str
    columns: tuple[Column, ...]


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
    """The values of a port (`kind` empty) or of one object of it."""

    port: int
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "By the columns' names; a value that is not known is left out or None, and never 0."
    kind: str = ""
    key: str = ""
    "Which object: unique among those of its kind and port."


class Reading(Protocol):
    """One reading of one switch, as `Program.rows` gets it; equal requests of several programs' parts are read once."""

    @property
    def switch(self) -> str:
        """Name of the switch."""
        ...

    async def table(self, name: str, *, counters: bool = False) -> list[P4TableEntry]:
        """The entries of a table, with their direct counters where asked."""
        ...

    async def counters(self, name: str, indices: Iterable[int]) -> Mapping[int, P4CounterData]:
        """Cells of an indexed counter."""
        ...

    def per_s(self, key: object, total: float) -> float | None:
        """How fast a total grows, by the reading before; None at the first."""
        ...
