# SPDX-License-Identifier: Apache-2.0
"""The on/off source: one connection a flow, greedy while on, silent while off; lengths of both drawn at random (`chance.py`)."""

from __future__ import annotations

import select
import time
from dataclasses import dataclass

from ..errors import HostsError
from .chance import Chance
from .options import DISTRIBUTIONS, SendOptions, check_range
from .records import Record, RecordWriter
from .send import Flow, Sender, run_sender
from .signals import StopSignal

UNSENT_BYTES = 4096
"""Little, so that what was written before an end is soon gone."""


@dataclass(frozen=True)
class OnOffOptions:
    """What `fairlane-traffic onoff` does."""

    send: SendOptions
    on_mean_s: float
    off_mean_s: float
    distribution: str = "exponential"
    shape: float = 1.2
    seed: int = 1
    names: tuple[str, ...] = ("flow",)
    """Names of the flows, from which (and the seed) their chance follows."""

    def check(self) -> None:
        """Raises HostsError `option`."""
        check_range("on-s", self.on_mean_s, 0.001, 86_400)
        check_range("off-s", self.off_mean_s, 0.001, 86_400)
        check_chance(self.distribution, self.shape)
        check_names(self.names, self.send.flows)


def check_chance(distribution: str, shape: float) -> None:
    """Raises HostsError `option`."""
    if distribution not in DISTRIBUTIONS:
        raise HostsError("option", f"--distribution {distribution!r} is not one of {', '.join(DISTRIBUTIONS)}")
    if distribution == "pareto" and not 1 < shape <= 100:
        raise HostsError("option", f"--shape {shape:g} is out of range: above 1 (below there is no mean), to 100")


def check_names(names: tuple[str, ...], flows: int) -> None:
    """Raises HostsError `option`."""
    if len(names) != flows:
        raise HostsError("option", f"--names has {len(names)} names for {flows} flows")


class _OnOffSender(Sender):
    def __init__(self, options: OnOffOptions, flows: list[Flow], writer: RecordWriter, stop: StopSignal) -> None:
        super().__init__(options.send, flows, writer, stop)
        self.onoff = options
        self._chances = [Chance(options.seed, name) for name in options.names]
        self._toggle_ns = [flow.start_ns for flow in flows]

    def next_due_ns(self) -> int:
        return min(self._toggle_ns)

    def start_due(self, now_ns: int) -> None:
        for flow in self.flows:
            while now_ns >= self._toggle_ns[flow.index] and flow.finished_ns is None:
                flow.writing = not flow.writing
                mean_s = self.onoff.on_mean_s if flow.writing else self.onoff.off_mean_s
                length_s = self._chances[flow.index].draw(self.onoff.distribution, mean_s, self.onoff.shape)
                self._toggle_ns[flow.index] += max(1, round(length_s * 1e9))
                self.poll.modify(flow.connection.fileno(), select.EPOLLRDHUP | (select.EPOLLOUT if flow.writing else 0))
            if flow.finished_ns is not None:
                self._toggle_ns[flow.index] = time.monotonic_ns() + 10**12


def onoff(options: OnOffOptions) -> Record:
    """Run it; returns the summary that it also writes. Raises HostsError as `send` does."""
    options.check()
    return run_sender(options.send, lambda flows, writer, stop: _OnOffSender(options, flows, writer, stop))
