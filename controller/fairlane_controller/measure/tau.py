# SPDX-License-Identifier: Apache-2.0
"""The probe of a link as a frame; τ of one port's link from its probes, and when to send the next one; the time is an argument, no I/O.

A probe that comes back later than usual, or is overdue, makes the next ones follow quickly, so that a change of the link's
delay is confirmed after a few round trips. Where nothing ever answered (a host, a foreign switch) probes become rare.
"""

from __future__ import annotations

import secrets
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fairlane_controller.measure.estimators import Estimate, LinkChange, QuantileWindow

ETHERTYPE = 0x88B5
MAGIC = 0xFA1A
KIND_OUT, KIND_BACK = 1, 2
FRAME_BYTES = 60
"""The shortest Ethernet frame, without its FCS."""
PLACES = 8
"""Probes that a port may have outstanding: the low 3 bits of their nonces differ."""
PACKET_IN_REASON = 127
_MACS = bytes.fromhex("0180c200000e") + bytes.fromhex("020000000001")
"""To the nearest bridge (IEEE 802.1Q table 8-1): no bridge sends it on."""
_HEAD = struct.Struct("!12sHHBxI6s6sI")


@dataclass(frozen=True)
class Probe:
    """A probe of a link as it is in a frame (`p4src/include/control/probe.p4`); times in microseconds.

    ```
     0                   1                   2                   3
     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    + Ethernet header, EtherType 0x88B5 (IEEE 802 local experimental 1) +
    |         magic 0xFA1A          |     kind      |       0       |
    |                             nonce                             |
    |                  departed_us (48)             |  returned_us  |
    |                             (48)              |    turn_us    |
    |             (32)              |           0 …  to 60 bytes    |
    ```
    """

    nonce: int
    "32 bit, not 0."
    kind: int = KIND_OUT
    departed_us: int = 0
    "Start of its transmission, on the clock of the switch that measures."
    returned_us: int = 0
    "Back there, on the same clock."
    turn_us: int = 0
    "What it stayed at the other end, on that one's clock."

    def emit(self) -> bytes:
        """The frame, padded to `FRAME_BYTES`."""
        departed, returned = (time_us.to_bytes(6, "big") for time_us in (self.departed_us, self.returned_us))
        head = _HEAD.pack(_MACS, ETHERTYPE, MAGIC, self.kind, self.nonce, departed, returned, self.turn_us)
        return head.ljust(FRAME_BYTES, b"\0")

    @classmethod
    def parse(cls, frame: bytes) -> Probe | None:
        """The probe in a frame; None where there is none."""
        if len(frame) < _HEAD.size:
            return None
        _, ether_type, magic, kind, nonce, departed, returned, turn_us = _HEAD.unpack_from(frame)
        if (ether_type, magic) != (ETHERTYPE, MAGIC):
            return None
        return cls(nonce, kind, int.from_bytes(departed, "big"), int.from_bytes(returned, "big"), turn_us)

    def link_time_s(self) -> float | None:
        """Time between the two switches and on their lines, in seconds; None where its timestamps are impossible (the link has
        flipped bits)."""
        away_us = self.returned_us - self.departed_us - self.turn_us
        return away_us * 1e-6 if self.departed_us > 0 and away_us >= 0 else None


PERIOD_S = 0.2
"""Between two probes."""
QUICK_S = 0.05
"""Between two probes while a change is suspected."""
QUICK_COUNT = 6
"""Max number of quick probes, until one is as expected."""
UNANSWERED_S = 5.0
"""Max time between two probes where none was ever answered; it begins with PERIOD_S and doubles."""
SILENT_S = 1.0
"""Between two probes where none was answered for five times as long."""
TIMEOUT_S = 5.0
"""A probe that has not come back is given up."""


def _delay_window() -> QuantileWindow:
    # A low quantile, because a late thread or a frame in the way only adds. Four probes in a row beyond what was usual are a change of
    # the link: what is usual ends at the 95 % quantile, since jitter is no change, and less than 0.5 ms is none. They differ among
    # themselves by half of the change at most, and span 0.12 s: a machine that stops makes several late, each by another time,
    # and they come at once.
    return QuantileWindow(0.25, 10.0, shift_count=4, shift_ratio=0.2, shift_floor=0.0005, shift_quantile=0.95, shift_spread=0.5, shift_span_s=0.12)  # fmt: skip


@dataclass
class LinkProbe:
    """The probes of one port; times are seconds of the loop's clock."""

    nonces: Callable[[], int] = lambda: secrets.randbits(29)
    _next_s: float = 0.0
    _last_sent_s: float = 0.0
    _place: int = 0
    _misses: int = 0
    "Probes sent since the last answer."
    _answer_s: float | None = None
    _quick_left: int = QUICK_COUNT
    _suspected: bool = False
    _out: dict[int, float] = field(default_factory=dict[int, float])
    "Nonce → when it was sent."
    _taken: deque[float] = field(default_factory=lambda: deque[float](maxlen=16))
    "Times from packet-out to packet-in of the last probes, queues included."
    _window: QuantileWindow = field(default_factory=_delay_window)

    def due_s(self, now_s: float) -> float:
        """When to send the next probe: `now_s` or later."""
        overdue = len(self._taken) >= 3 and now_s - min(self._out.values(), default=now_s) > 1.5 * max(self._taken) + 0.02  # fmt: skip
        if self._quick_left > 0 and (self._suspected or overdue):
            return min(self._next_s, max(now_s, self._last_sent_s + QUICK_S))
        return max(now_s, self._next_s)

    def check_s(self, now_s: float) -> float:
        """When to call `due_s` next, at the latest."""
        return min(self.due_s(now_s), now_s + QUICK_S) if self._out else self.due_s(now_s)

    def send(self, now_s: float) -> Probe:
        """The probe that leaves now."""
        if self.due_s(now_s) < self._next_s:
            self._quick_left -= 1
        self._place = (self._place + 1) % PLACES
        nonce = ((self.nonces() & 0x1FFF_FFFF) or 1) << 3 | self._place
        # The switch knows one probe a place: the older one there is lost.
        self._out = {
            other: sent_s
            for other, sent_s in self._out.items()
            if now_s - sent_s < TIMEOUT_S and other % PLACES != self._place
        }
        self._out[nonce] = self._last_sent_s = now_s
        self._misses += 1
        if self._answer_s is None:
            pause_s = min(UNANSWERED_S, PERIOD_S * 2.0 ** min(self._misses - 1, 16))
        else:
            pause_s = SILENT_S if now_s - self._answer_s > 5 * SILENT_S else PERIOD_S
        self._next_s = now_s + pause_s
        return Probe(nonce)

    def on_home(self, now_s: float, probe: Probe, rate_bps: float | None) -> LinkChange | None:
        """A probe has come back.

        Args:
            now_s: when.
            probe: as it came.
            rate_bps: the line's, for the probe's own serialisation at both ends; None where a frame takes no time on the line.

        Returns:
            The change of τ that this probe confirms.
        """
        sent_s, away_s = self._out.pop(probe.nonce, None), probe.link_time_s()
        # Bit errors of the link mostly make times that are longer than possible.
        if sent_s is None or away_s is None or away_s > now_s - sent_s + 0.005:
            return None
        two_tau_s = max(0.0, away_s - (0.0 if rate_bps is None else 2 * 8.0 * FRAME_BYTES / rate_bps))
        self._misses, self._answer_s = 0, now_s
        self._taken.append(now_s - sent_s)
        self._suspected = self._window.side(two_tau_s) not in (None, 0)
        shift = self._window.add(now_s, two_tau_s)
        if shift is not None or not self._suspected:
            self._quick_left = QUICK_COUNT
        if shift is None:
            return None
        self._suspected = False
        self._taken.clear()
        return LinkChange(shift.before / 2, shift.after / 2, shift.since_s, shift.count, "delay")

    def forget_since(self, time_s: float) -> None:
        """Remove what was measured since then: it used the wrong rate of the line."""
        self._window.forget_since(time_s)

    def two_tau_s(self, now_s: float) -> Estimate | None:
        """2τ in seconds; None where no probe was answered within the window."""
        return self._window.estimate(now_s)
