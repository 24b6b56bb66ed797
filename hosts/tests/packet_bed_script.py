# SPDX-License-Identifier: Apache-2.0
"""What happens to which segment in the packet bed: a `Script`, and the counting that applies it to one connection after the other.

Data segments are numbered by their first transmission: 1 is the first, in the order of their sequence numbers. `60` means
the first transmission of the 60th, `(60, 1)` its first retransmission, `(60, 2)` the second. ACKs are those without data,
numbered from 1 as they come.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

Which = int | tuple[int, int]
ConnectionKey = tuple[int, int]


@dataclass(frozen=True)
class Span:
    """A time: `for_s` seconds from `from_s` after the first data segment, or from the `from_data`-th data segment on."""

    for_s: float
    from_s: float | None = None
    from_data: int | None = None

    def __post_init__(self) -> None:
        assert (self.from_s is None) != (self.from_data is None), "say either from_s or from_data"


@dataclass(frozen=True)
class Script:
    """Nothing by default: every segment passes."""

    drop: Sequence[Which] = ()
    corrupt: Sequence[Which] = ()
    """A bit of the payload is flipped."""
    corrupt_header: Sequence[Which] = ()
    """A bit of the sequence number is flipped."""
    drop_acks: Sequence[int] = ()
    corrupt_acks: Sequence[int] = ()
    """A bit of the acknowledgement number is flipped."""
    holds: Sequence[Span] = ()
    """Delay spikes: what would leave meanwhile, in both directions, leaves together at the end."""
    outages: Sequence[Span] = ()
    """What arrives meanwhile, in both directions, is lost."""
    data_outages: Sequence[Span] = ()
    """The same towards the receiver only: the ACKs of what came before pass."""
    loss: float = 0.0
    """Probability for each data segment."""
    corruption: float = 0.0
    ack_loss: float = 0.0
    seed: int = 1


@dataclass
class Numbering:
    """Numbers one connection's data segments by their sequence numbers (relative to the first byte of data)."""

    highest: int = 0
    first: dict[int, int] = field(default_factory=dict[int, int])
    repeated: dict[int, int] = field(default_factory=dict[int, int])
    acks: int = 0

    def data(self, seq: int, length: int) -> tuple[int, int]:
        """(n, k): the n-th data segment, its k-th retransmission (0: first transmission)."""
        if seq >= self.highest:
            self.highest = seq + length
            self.first[seq] = len(self.first) + 1
            return self.first[seq], 0
        # A retransmission may begin inside a segment when the kernel has split or joined some.
        number = self.first.get(seq) or max((n for s, n in self.first.items() if s <= seq), default=0)
        self.repeated[number] = self.repeated.get(number, 0) + 1
        self.highest = max(self.highest, seq + length)
        return number, self.repeated[number]

    def ack(self) -> int:
        self.acks += 1
        return self.acks


@dataclass(frozen=True)
class Fate:
    """What happens to a segment: `drop` is the reason or empty, `flip` the byte behind the start of the TCP header."""

    drop: str = ""
    flip: tuple[int, int] | None = None
    """(byte offset in the segment, bit mask)."""


PASS = Fate()
_SEQUENCE_BIT, _ACKNOWLEDGEMENT_BIT = (4, 0x40), (8, 0x40)


def _named(which: Sequence[Which]) -> frozenset[tuple[int, int]]:
    return frozenset(w if isinstance(w, tuple) else (w, 0) for w in which)


class Director:
    """Applies a script. Times in ns on the caller's clock."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._drop, self._corrupt = _named(script.drop), _named(script.corrupt)
        self._corrupt_header = _named(script.corrupt_header)
        self._data_chance = random.Random(f"{script.seed} data")
        self._ack_chance = random.Random(f"{script.seed} ack")
        self._holds = [_Timed(span) for span in script.holds]
        self._outages = [_Timed(span) for span in script.outages]
        self._data_outages = [_Timed(span) for span in script.data_outages]

    def on_data(self, now_ns: int, number: int, repeated: int, header: int, payload: int) -> Fate:
        """`header`, `payload`: bytes of the TCP header and behind it."""
        for timed in (*self._holds, *self._outages, *self._data_outages):
            timed.on_data(now_ns, number, repeated)
        # Two draws for each segment, whatever comes of them: what is chosen does not shift what follows.
        lost, spoilt = self._data_chance.random(), self._data_chance.random()
        which = (number, repeated)
        if self._in([*self._outages, *self._data_outages], now_ns):
            return Fate("outage")
        if which in self._drop:
            return Fate("script")
        if lost < self.script.loss:
            return Fate("loss")
        if which in self._corrupt_header:
            return Fate(flip=_SEQUENCE_BIT)
        if which in self._corrupt or spoilt < self.script.corruption:
            return Fate(flip=(header + payload // 2, 0x01))
        return PASS

    def on_ack(self, now_ns: int, number: int) -> Fate:
        lost = self._ack_chance.random()
        if self._in(self._outages, now_ns):
            return Fate("outage")
        if number in self.script.drop_acks:
            return Fate("script")
        if lost < self.script.ack_loss:
            return Fate("loss")
        if number in self.script.corrupt_acks:
            return Fate(flip=_ACKNOWLEDGEMENT_BIT)
        return PASS

    def on_other(self, now_ns: int) -> Fate:
        """SYN and what carries no number."""
        return Fate("outage") if self._in(self._outages, now_ns) else PASS

    def release_ns(self, due_ns: int) -> int:
        """When a segment leaves that would leave at `due_ns`."""
        for timed in self._holds:
            if timed.contains(due_ns):
                return timed.end_ns
        return due_ns

    @staticmethod
    def _in(spans: list[_Timed], now_ns: int) -> bool:
        return any(timed.contains(now_ns) for timed in spans)


class _Timed:
    def __init__(self, span: Span) -> None:
        self.span = span
        self.start_ns: int | None = None
        self.end_ns = 0

    def on_data(self, now_ns: int, number: int, repeated: int) -> None:
        span = self.span
        if self.start_ns is not None or repeated:
            return
        if span.from_s is not None:
            self._begin(now_ns + round(span.from_s * 1e9))
        elif span.from_data is not None and number >= span.from_data:
            self._begin(now_ns)

    def _begin(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.end_ns = start_ns + round(self.span.for_s * 1e9)

    def contains(self, now_ns: int) -> bool:
        return self.start_ns is not None and self.start_ns <= now_ns < self.end_ns
