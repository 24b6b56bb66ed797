# SPDX-License-Identifier: Apache-2.0
"""Changes of links over time: whether they fit together, when each is due, and what they do to a running topology."""

from __future__ import annotations

import heapq
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice, repeat, takewhile
from typing import TYPE_CHECKING

from fairlane_controller.errors import FairlaneError, short
from fairlane_controller.state.run_state import read_run_state
from fairlane_switch.control import ControlError
from fairlane_switch.link_control import WAYS, RunningPorts, effects, make_change, senders, spike_problem
from fairlane_switch.wire import WireClient

from fairlane_topology.links import Link, LinkChange, LinkEnd

if TYPE_CHECKING:
    from fairlane_topology.network import Network

WIRE_AWAY_S = 15.0
"""How long a change waits for the wire: one that has died is started again."""
RETRY_S = 0.1
ROUNDS_CHECKED = 2
"""A rule that repeats itself is checked for its first two times: then all settings have been in force."""


def _times_s(change: LinkChange) -> Iterator[float]:
    """When it happens; endless where it repeats itself."""
    rounds = range(1) if change.every_s is None else count()
    return (change.at_s + number * (change.every_s or 0.0) for number in rounds)


def schedule(changes: Sequence[LinkChange], until_s: float = float("inf")) -> Iterator[tuple[float, LinkChange]]:
    """(seconds, change) of everything before `until_s`, in order of time; endless where a rule repeats itself and there is no end."""
    due = heapq.merge(*(zip(_times_s(change), repeat(index)) for index, change in enumerate(changes)))
    return ((at_s, changes[index]) for at_s, index in takewhile(lambda one: one[0] < until_s, due))


def change_problems(changes: Sequence[LinkChange], links: Sequence[Link]) -> Iterator[tuple[int, str, str]]:
    """(index, key, what is wrong) of changes that name no link, or whose settings do not fit those in force by then."""
    by_name = {link.name: link for link in links}
    for index, change in enumerate(changes):
        if change.link not in by_name:
            yield index, "link", f"there is no link {short(repr(change.link))}; there are {', '.join(by_name)}"
            return
    in_force = {(link.name, way): getattr(link, way) for link in by_name.values() for way in WAYS}
    rounds = (islice(_times_s(change), ROUNDS_CHECKED) for change in changes)
    for _, index in sorted((at_s, index) for index, times in enumerate(rounds) for at_s in times):
        link = by_name[changes[index].link]
        todo = effects(changes[index].change, link)
        for way, sender in senders(link, changes[index].direction).items():
            changed = in_force[link.name, way].model_copy(update=todo.settings[way])
            in_force[link.name, way] = changed
            problem = changed.problem()
            if sender in todo.port_spikes and (why := spike_problem(way, dict(changed))):
                problem = "spike_blocks", f"{why}; allowed: delivery"
            if problem:
                yield index, problem[0].replace("_us", "_ms"), problem[1]
                return


def apply(network: Network, change: LinkChange) -> list[tuple[LinkEnd, int]]:
    """Make one change in a running topology; returns the ports that have another rate from now on, and that, bit/s. The run state has them too.

    Raises:
        RuntimeError: with the link, and the words of wire or switch.
    """
    made = change.change
    try:
        run = read_run_state(network.folder)
        todo = make_change(made, network.topology.link(change.link), run.wire, RunningPorts(run))
    except (FairlaneError, RuntimeError) as error:
        raise RuntimeError(f"change of {change.link}: {error}") from error
    return [(end, made.rate_bps or 0) for end in todo.ports]


def restore(network: Network, changes: Iterable[LinkChange]) -> None:
    """Put the links that these changes touched back to what the topology says. Raises RuntimeError."""
    changed = [(network.topology.link(change.link), change.change) for change in changes]
    ports = {end for link, change in changed for end in effects(change, link).ports}
    try:
        run = read_run_state(network.folder)
        for link in {link.name: link for link, _ in changed if link.is_emulated}.values():
            with WireClient(run.wire) as wire:
                for way in WAYS:
                    wire.set(link.name, direction=way, **getattr(link, way).model_dump())
        for end in sorted(ports, key=str):
            RunningPorts(run).set_rate(end, network.topology.ports[end.node][end.port].rate_bps or 0)
    except (FairlaneError, RuntimeError) as error:
        raise RuntimeError(f"putting links back: {error}") from None


@contextmanager
def playing(
    network: Network,
    changes: Sequence[LinkChange],
    report: Callable[[str], object] = lambda text: print(text, file=sys.stderr, flush=True),
) -> Generator[None]:
    """Make a topology's changes from now on, in a thread of its own, until the block is left. `report` gets what fails."""
    began_s, ended = time.monotonic(), threading.Event()

    def play() -> None:
        for at_s, change in schedule(changes):
            if ended.wait(max(0.0, began_s + at_s - time.monotonic())):
                return
            try:
                _apply_when_there(network, change, ended)
            except RuntimeError as error:
                if not ended.is_set():
                    report(f"error: at {at_s:g} s: {error}; no further changes")
                return

    thread = threading.Thread(target=play, name="changes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=10)


def _apply_when_there(network: Network, change: LinkChange, ended: threading.Event) -> None:
    """Make a change; where the wire is away, when it is back. Raises RuntimeError."""
    give_up_s = time.monotonic() + WIRE_AWAY_S
    while True:
        try:
            apply(network, change)
            return
        except RuntimeError as error:
            cause, in_time = error.__cause__, time.monotonic() < give_up_s
            away = isinstance(cause, ControlError) and cause.is_unreachable and in_time
            if not away or ended.wait(RETRY_S):
                raise
