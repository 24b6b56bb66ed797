# SPDX-License-Identifier: Apache-2.0
"""τ of one port's link out of its probes, and when to send the next one; the time is an argument, no I/O.

A probe is sent `period_s` after the last. One that comes back later than usual, or is not back when it should be, makes the
next ones follow quickly, so that a change of the link's delay is sure after a few round trips. Where nothing ever answered (a host,
a foreign switch) probes become rare.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fairlane_controller.measure.changes import LinkChange
from fairlane_controller.measure.estimators import Estimate, QuantileWindow
from fairlane_controller.measure.probe import FRAME_BYTES, PLACES, Probe


@dataclass(frozen=True)
class ProbeOptions:
    """How often a link is probed, and what is a change of it."""

    period_s: float = 0.2
    quick_s: float = 0.05
    "Between two probes while a change is suspected."
    quick_count: int = 6
    "So many quick ones at most, until a probe is again as expected."
    unanswered_s: float = 5.0
    "Between two probes at last, where no probe was ever answered; it begins with `period_s` and doubles."
    silent_s: float = 1.0
    "Between two probes where answers came once, but none for five times as long."
    timeout_s: float = 5.0
    "A probe that is not back is given up."


@dataclass
class LinkProbe:
    """The probes of one port; times are seconds of the loop's clock."""

    options: ProbeOptions
    nonces: Callable[[], int] = lambda: secrets.randbits(29)
    sent: int = 0
    answered: int = 0
    _next_s: float = 0.0
    _last_sent_s: float = 0.0
    _place: int = 0
    _misses: int = 0
    "Probes sent since the last answer."
    _answer_s: float | None = None
    _quick_left: int = 0
    _suspected: bool = False
    _out: dict[int, float] = field(default_factory=dict[int, float])
    "Nonce → when it was sent."
    _taken: deque[float] = field(default_factory=lambda: deque[float](maxlen=16))
    "What the last probes took from packet-out to packet-in, queues included."
    _window: QuantileWindow = field(init=False)

    def __post_init__(self) -> None:
        self._quick_left = self.options.quick_count
        # A low quantile, because a late thread or a frame in the way only adds. Four probes in a row beyond what was usual are a change of
        # the link: what is usual ends at the 95 % quantile, since jitter is no change, and less than 0.5 ms is none. They differ among
        # themselves by half of the change at most, and span 0.12 s: a machine that stands still makes several late, each by another time,
        # and they come at once.
        self._window = QuantileWindow(
            0.25,
            10.0,
            shift_count=4,
            shift_ratio=0.2,
            shift_floor=0.0005,
            shift_quantile=0.95,
            shift_spread=0.5,
            shift_span_s=0.12,
        )

    # ---- sending ---------------------------------------------------------------------------------------------------

    def due_s(self, now_s: float) -> float:
        """When to send the next probe: `now_s` or later."""
        if self._quick_left > 0 and (self._suspected or self._overdue(now_s)):
            return min(self._next_s, max(now_s, self._last_sent_s + self.options.quick_s))
        return max(now_s, self._next_s)

    def check_s(self, now_s: float) -> float:
        """When to ask `due_s` again at the latest."""
        return min(self.due_s(now_s), now_s + self.options.quick_s) if self._out else self.due_s(now_s)

    def send(self, now_s: float) -> Probe:
        """The probe that leaves now."""
        options = self.options
        if self.due_s(now_s) < self._next_s:
            self._quick_left -= 1
        self._out = {nonce: sent_s for nonce, sent_s in self._out.items() if now_s - sent_s < options.timeout_s}
        self._place = (self._place + 1) % PLACES
        nonce = ((self.nonces() & 0x1FFF_FFFF) or 1) << 3 | self._place
        # The switch knows one probe a place: the older one there is lost.
        self._out = {other: sent_s for other, sent_s in self._out.items() if other % PLACES != self._place}
        self._out[nonce] = now_s
        self.sent += 1
        self._last_sent_s = now_s
        self._misses += 1
        self._next_s = now_s + self._pause(now_s)
        return Probe(nonce)

    def _pause(self, now_s: float) -> float:
        options = self.options
        if self._answer_s is None:
            return min(options.unanswered_s, options.period_s * 2.0 ** min(self._misses - 1, 16))
        return options.silent_s if now_s - self._answer_s > 5 * options.silent_s else options.period_s

    def _overdue(self, now_s: float) -> bool:
        """Is a probe not back that should be?"""
        if len(self._taken) < 3 or not self._out:
            return False
        return now_s - min(self._out.values()) > 1.5 * max(self._taken) + 0.02

    # ---- receiving ---------------------------------------------------------------------------------------------------

    def on_home(self, now_s: float, probe: Probe, rate_bps: float | None) -> LinkChange | None:
        """A probe that came back; `rate_bps` is the line's, for the probe's own serialisation at both ends: None where a frame
        takes no time on the line. Returns the change of τ that it makes sure."""
        sent_s = self._out.pop(probe.nonce, None)
        away_s = probe.link_time_s()
        # What a link with bit errors makes of the times is mostly more than it can have been.
        if sent_s is None or away_s is None or away_s > now_s - sent_s + 0.005:
            return None
        two_tau_s = away_s - (0.0 if rate_bps is None else 2 * 8.0 * FRAME_BYTES / rate_bps)
        self.answered += 1
        self._misses, self._answer_s = 0, now_s
        self._taken.append(now_s - sent_s)
        two_tau_s = max(two_tau_s, 0.0)
        self._suspected = self._window.side(two_tau_s) not in (None, 0)
        shift = self._window.add(now_s, two_tau_s)
        if shift is not None or not self._suspected:
            self._quick_left = self.options.quick_count
        if shift is None:
            return None
        self._suspected = False
        self._taken.clear()
        return LinkChange.of("delay", shift, 0.5)

    def forget_since(self, time_s: float) -> None:
        """What was measured since then used the wrong rate of the line."""
        self._window.forget_since(time_s)

    def two_tau_s(self, now_s: float) -> Estimate | None:
        """2τ in seconds; None where no probe was answered within the window."""
        return self._window.estimate(now_s)
