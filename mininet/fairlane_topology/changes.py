# SPDX-License-Identifier: Apache-2.0
"""Changes of links over time: whether they fit together, when each is due, and what they do to a running topology."""

from __future__ import annotations

import heapq
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from fairlane_controller.errors import FairlaneError, short
from fairlane_switch.wire import Direction as Way
from fairlane_switch.wire import WireClient, WireUnreachableError

from fairlane_topology.links import Endpoint, Link, LinkChange

if TYPE_CHECKING:
    from fairlane_topology.network import Network

WAYS: tuple[Way, Way] = ("a_to_b", "b_to_a")
WIRE_AWAY_S = 15.0
"""How long a change waits for the wire: one that has died is started again."""
RETRY_S = 0.1
ROUNDS_CHECKED = 2
"""A rule that repeats itself is checked for its first two times: then all settings have been in force."""
PortRate = tuple[str, int, int]
"""(switch, port, bit/s)."""


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
        change = changes[index]
        link = by_name[change.link]
        for way, sender in _senders(change, link).items():
            changed = in_force[link.name, way].model_copy(update=_update(change, sender))
            in_force[link.name, way] = changed
            problem = changed.problem()
            if _blocks_port(change, sender) and (changed.rate_bps or changed.trace):
                why = f"the queue before the wire's own rate or trace ({way}) would go on; allowed: delivery"
                problem = "spike_blocks", why
            if problem:
                yield index, problem[0], problem[1]
                return


def _senders(change: LinkChange, link: Link) -> dict[Way, Endpoint]:
    """The directions that it means, with the end that sends in each."""
    ends: dict[Way, Endpoint] = {"a_to_b": link.a, "b_to_a": link.b}
    return {way: end for way, end in ends.items() if change.direction in (way, "both")}


def _update(change: LinkChange, sender: Endpoint) -> dict[str, Any]:
    """New values of `Direction`; at a host's end the wire has the rate."""
    at_host = sender.port == 0 and change.bandwidth_bps is not None
    return change.options | ({"rate_bps": change.bandwidth_bps} if at_host else {})


def _blocks_port(change: LinkChange, sender: Endpoint) -> bool:
    """Whether its spike stops a switch's port: where a host sends, the wire has the line."""
    return change.spike_s is not None and change.spike_blocks == "line" and sender.port != 0


@dataclass(frozen=True)
class Effects:
    """What one change does, by place."""

    wire: tuple[tuple[Way, dict[str, Any]], ...]
    """(direction, new settings by the wire's names)."""
    ports: tuple[PortRate, ...]
    wire_spikes: tuple[Way, ...] = ()
    """Directions."""
    port_spikes: tuple[tuple[str, int], ...] = ()
    """(switch, port)."""


def effects(change: LinkChange, link: Link) -> Effects:
    """What a change does to the wire and to the switch ports at the ends of its link."""
    senders = _senders(change, link)
    updates: list[tuple[Way, dict[str, Any]]] = [(way, _update(change, end)) for way, end in senders.items()]
    if len(updates) == 2 and updates[0][1] == updates[1][1]:
        updates = [("both", updates[0][1])]
    spiked: list[Way] = [
        way for way, end in senders.items() if change.spike_s is not None and not _blocks_port(change, end)
    ]
    ends = senders.values()
    rate_bps = change.bandwidth_bps
    return Effects(
        wire=tuple((way, update) for way, update in updates if update),
        ports=tuple((end.node, end.port, rate_bps) for end in ends if end.port and rate_bps is not None),
        wire_spikes=("both",) if len(spiked) == 2 else tuple(spiked),
        port_spikes=tuple((end.node, end.port) for end in ends if _blocks_port(change, end)),
    )


def apply(network: Network, change: LinkChange, frame_bytes: int) -> tuple[PortRate, ...]:
    """Make one change in a running topology; returns the rates that ports have from now on. The run state has them too.

    Raises:
        RuntimeError: with the link, and the words of wire or switch.
    """
    link = next(link for link in network.topology.links if link.name == change.link)
    todo = effects(change, link)
    spike_s = change.spike_s or 0.0
    try:
        for switch, port in todo.port_spikes:
            network.switches[switch].spike_port(port, spike_s)
        if todo.wire or todo.wire_spikes or change.outage_s is not None:
            with WireClient(network.wire_control) as wire:
                for way, settings in todo.wire:
                    wire.set(link.name, direction=way, **settings)
                for way in todo.wire_spikes:
                    wire.spike(link.name, spike_s * 1e6, direction=way, blocks=change.spike_blocks or "delivery")
                if change.outage_s is not None:
                    wire.outage(link.name, change.outage_s * 1e6, direction=change.direction)
        _set_rates(network, todo.ports, frame_bytes)
    except (FairlaneError, RuntimeError) as error:
        raise RuntimeError(f"change of {change.link}: {error}") from error
    return todo.ports


def restore(network: Network, changes: Iterable[LinkChange], frame_bytes: int) -> None:
    """Put the links that these changes touched back to what the topology says. Raises RuntimeError."""
    by_name = {link.name: link for link in network.topology.links}
    changed = [(by_name[change.link], change) for change in changes]
    specs = network.topology.ports
    ports = {(switch, port) for link, change in changed for switch, port, _ in effects(change, link).ports}
    try:
        for link in {link.name: link for link, _ in changed if link.is_emulated}.values():
            with WireClient(network.wire_control) as wire:
                for way in WAYS:
                    wire.set(link.name, direction=way, **getattr(link, way).model_dump())
        rates = [(switch, port, specs[switch][port].rate_bps or 0) for switch, port in sorted(ports)]
        _set_rates(network, rates, frame_bytes)
    except (FairlaneError, RuntimeError) as error:
        raise RuntimeError(f"putting links back: {error}") from None


def _set_rates(network: Network, rates: Iterable[PortRate], frame_bytes: int) -> None:
    for switch, port, rate_bps in rates:
        network.switches[switch].set_port_rate(port, rate_bps, frame_bytes)
        network.remember_rate(switch, port, rate_bps)


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Player:
    """Plays a topology's changes from now on, in a thread of its own; leaving it ends it. `report` gets what fails."""

    def __init__(
        self,
        network: Network,
        changes: Sequence[LinkChange],
        frame_bytes: int,
        report: Callable[[str], None] = _to_stderr,
    ) -> None:
        self._network = network
        self._changes = changes
        self._frame_bytes = frame_bytes
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
                apply(self._network, change, self._frame_bytes)
                return
            except RuntimeError as error:
                away = isinstance(error.__cause__, WireUnreachableError) and time.monotonic() < give_up_s
                if not away or self._ended.wait(RETRY_S):
                    raise
