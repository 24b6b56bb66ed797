# SPDX-License-Identifier: Apache-2.0
"""The video source: one connection a flow, segment by segment, each at the rate that a player's buffer asks for (BBA-0).

Huang, Johari, McKeown, Trunnell, Watson: A Buffer-Based Approach to Rate Adaptation, SIGCOMM 2014, Algorithm 1; the same as
switch/crates/apps/src/video.rs. The acknowledgment of a segment's last byte stands for the player's next request: it takes the way that a
request would. Where the buffer is full, the next segment is asked for when it has room for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ..errors import HostsError
from .interactive import NEVER_NS, MessageSender
from .options import SendOptions, check_range
from .records import Record, RecordWriter
from .send import Flow, run_sender
from .signals import StopSignal


@dataclass(frozen=True)
class VideoOptions:
    """What `fairlane-traffic video` does."""

    send: SendOptions
    bitrates_bps: tuple[int, ...]
    """The ladder, rising."""
    segment_s: float
    buffer_s: float
    """Play time that the player holds at most."""
    reservoir_s: float
    """With no more than this waiting to be played the lowest rate is asked for …"""
    cushion_s: float
    """… and with this more the highest."""

    def check(self) -> None:
        """Raises HostsError `option`."""
        rates = self.bitrates_bps
        if len(rates) < 2 or any(low >= high for low, high in pairwise(rates)):
            raise HostsError("option", f"--bitrates-bps {','.join(map(str, rates))} is not two or more rates that rise")
        check_range("bitrates-bps", rates[0], 1000, 400_000_000_000)
        check_range("segment-s", self.segment_s, 0.1, 60)
        check_range("reservoir-s", self.reservoir_s, 0, 86_400)
        check_range("cushion-s", self.cushion_s, 0.001, 86_400)
        check_range("buffer-s", self.buffer_s, self.reservoir_s + self.cushion_s + self.segment_s, 3 * 86_400)


class Player:
    """How much waits to be played, and at which rate the next segment is asked for. Instants in ns."""

    def __init__(self, options: VideoOptions) -> None:
        self._rates = options.bitrates_bps
        self._segment_ns, self._buffer_ns = round(options.segment_s * 1e9), round(options.buffer_s * 1e9)
        self._reservoir_ns, self._cushion_ns = round(options.reservoir_s * 1e9), round(options.cushion_s * 1e9)
        self._plays_until_ns = 0
        self._last = 0

    def take(self, now_ns: int) -> int:
        """A segment is there; returns when the next one is asked for."""
        self._plays_until_ns = max(self._plays_until_ns, now_ns) + self._segment_ns
        return max(now_ns, self._plays_until_ns - (self._buffer_ns - self._segment_ns))

    def ask(self, now_ns: int) -> int:
        """Bytes of the segment to ask for."""
        self._last = self._next_rate(max(0, self._plays_until_ns - now_ns))
        return self._rates[self._last] * self._segment_ns // 8_000_000_000

    def _next_rate(self, buffered_ns: int) -> int:
        """Algorithm 1: the place of the next rate in the ladder."""
        rates, last = self._rates, self._last
        if buffered_ns <= self._reservoir_ns:
            return 0
        if buffered_ns >= self._reservoir_ns + self._cushion_ns:
            return len(rates) - 1
        f = (rates[-1] - rates[0]) * (buffered_ns - self._reservoir_ns)  # as the rates below: times the cushion
        scaled = [(rate - rates[0]) * self._cushion_ns for rate in rates]
        if f >= scaled[min(last + 1, len(rates) - 1)]:
            return max(i for i, rate in enumerate(scaled) if rate < f)
        if f <= scaled[max(last - 1, 0)]:
            return min(i for i, rate in enumerate(scaled) if rate > f)
        return last


class _VideoSender(MessageSender):
    def __init__(self, options: VideoOptions, flows: list[Flow], writer: RecordWriter, stop: StopSignal) -> None:
        super().__init__(options.send, flows, writer, stop)
        self._players = [Player(options) for _ in flows]

    def message(self, flow: Flow, at_ns: int) -> tuple[int, int]:
        return self._players[flow.index].ask(at_ns), at_ns + NEVER_NS

    def acknowledged(self, flow: Flow, now_ns: int) -> None:
        self.ask_at(flow, self._players[flow.index].take(now_ns))


def video(options: VideoOptions) -> Record:
    """Run it; returns the summary that it also writes. Raises HostsError as `send` does."""
    options.check()
    return run_sender(options.send, lambda flows, writer, stop: _VideoSender(options, flows, writer, stop))
