# SPDX-License-Identifier: Apache-2.0
"""Changes of links over time: whether they fit together, when each is due, and what they do to a running topology."""

from __future__ import annotations

import heapq
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

from fairlane_controller.errors import FairlaneError, short
from fairlane_switch.control import ControlError
from fairlane_switch.link_control import WAYS, effects, make_change, senders, spike_problem
from fairlane_switch.wire import WireClient

from fairlane_topology.links import Link, LinkChange, LinkEnd

if TYPE_CHECKING:
    from fairlane_topology.network import Network

WIRE_AWAY_S = 15.0
"""How long a change waits for the wire: one that has died is started again."""
RETRY_S = 0.1
ROUNDS_CHECKED = 2
"""A rule that repeats itself is checked for its first two times: then all settings have been in force."""


def schedule(changes: Sequence[LinkChange], until_s: float = float("inf")) -> Iterator[tuple[float, LinkChange]]:
    """(seconds, change) of everything before `until_s`, in order of time; endless where a rule repeats itself and there is no end."""

    def times(index: int, change: LinkChange) -> Iterator[tuple[float, int]]:
        for number in count() if change.every_s is not None else range(1):
            at_s = change.at_s + number * (change.every_s or 0.0)
            if at_s >= until_s:
                return
            yield at_s, index

    for at_s, index in heapq.merge(*(times(index, change) for index, change in enumerate(changes))):
        yield at_s, changes[index]


def change_problems(changes: Sequence[LinkChange], links: Sequence[Link]) -> Iterator[tuple[int, str, str]]:
    """(index, key, what is wrong) of changes that name no link, or whose settings do not fit those in force by then."""
    by_name = {link.name: link for link in links}
    for index, change in enumerate(changes):
        if change.link not in by_name:
            yield index, "link", f"there is no link {short(repr(change.link))}; there are {', '.join(by_name)}"
            return
    in_force = {(link.name, way): getattr(link, way) for link in links for way in WAYS}
    due = [
        (change.at_s + number * (change.every_s or 0.0), index)
        for index, change in enumerate(changes)
        for number in range(1 if change.every_s is None else ROUNDS_CHECKED)
    ]
    for _, index in sorted(due):
        link = by_name[changes[index].link]
        todo = effects(changes[index].change, link)
        for way, sender in senders(link, changes[index].direction).items():
            changed = in_force[link.name, way].model_copy(update=todo.settings[way])
            in_force[link.name, way] = changed
            problem = changed.problem()
            if sender in todo.port_spikes and (why := spike_problem(way, dict(changed))):
                problem = "spike_blocks", f"{why}; allowed: delivery"
            if problem:
                yield index, problem[0], problem[1]
                return


def apply(network: Network, change: LinkChange) -> list[tuple[LinkEnd, int]]:
    """Make one change in a running topology; returns the ports that have another rate from now on, and that, bit/s. The run state has them too.

    Raises:
        RuntimeError: with the link, and the words of wire or switch.
    """
    made = change.change
    try:
        todo = make_change(made, network.topology.link(change.link), network.wire_control, network)
    except (FairlaneError, RuntimeError) as error:
        raise RuntimeError(f"change of {change.link}: {error}") from error
    return [(end, made.rate_bps or 0) for end in todo.ports]


def restore(network: Network, changes: Iterable[LinkChange]) -> None:
    """Put the links that these changes touched back to what the topology says. Raises RuntimeError."""
    changed = [(network.topology.link(change.link), change.change) for change in changes]
    ports = {end for link, change in changed for end in effects(change, link).ports}
    try:
        for link in {link.name: link for link, _ in changed if link.is_emulated}.values():
            with WireClient(network.wire_control) as wire:
                for way in WAYS:
                    wire.set(link.name, direction=way, **getattr(link, way).model_dump())
        for end in sorted(ports, key=str):
            network.set_rate(end, network.topology.ports[end.node][end.port].rate_bps or 0)
    except (FairlaneError, RuntimeError) as error:
        raise RuntimeError(f"putting links back: {error}") from None


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Player:
    """Plays a topology's changes from now on, in a thread of its own; leaving it ends it. `report` gets what fails."""

    def __init__(
        self,
        network: Network,
        changes: Sequence[LinkChange],
        report: Callable[[str], None] = _to_stderr,
    ) -> None:
        self._network = network
        self._changes = changes
        self._report = report
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._play, name="changes", daemon=True)

    def __enter__(self) -> Player:
        self._began_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(timeout=10)

    def _play(self) -> None:
        for at_s, change in schedule(self._changes):
            if self._ended.wait(max(0.0, self._began_s + at_s - time.monotonic())):
                return
            try:
                self._apply(change)
            except RuntimeError as error:
                if not self._ended.is_set():
                    self._report(f"error: at {at_s:g} s: {error}; no further changes")
                return

    def _apply(self, change: LinkChange) -> None:
        """Make a change; where the wire is away, when it is back. Raises RuntimeError."""
        give_up_s = time.monotonic() + WIRE_AWAY_S
        while True:
            try:
                apply(self._network, change)
                return
            except RuntimeError as error:
                cause, in_time = error.__cause__, time.monotonic() < give_up_s
                away = isinstance(cause, ControlError) and cause.is_unreachable and in_time
                if not away or self._ended.wait(RETRY_S):
                    raise
