# SPDX-License-Identifier: Apache-2.0
"""Changes of links over time: whether they fit together, when each is due, and what they do to a running topology."""

from __future__ import annotations

import heapq
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fairlane_controller.errors import short
from fairlane_switch.wire import Direction as Way
from fairlane_switch.wire import WireClient, WireError, WireUnreachableError

from fairlane_topology.links import Direction, LinkChange

WAYS: tuple[Way, Way] = ("a_to_b", "b_to_a")
WIRE_AWAY_S = 15.0
"""How long a change waits for the wire: one that has died is started again."""
AGAIN_S = 0.1
ROUNDS_CHECKED = 2
"""A rule that repeats itself is checked for its first two times: then all settings have been in force."""


class EndLike(Protocol):
    """One end of a link: a node and its port, 0 at a host."""

    @property
    def node(self) -> str: ...
    @property
    def port(self) -> int: ...


class LinkLike(Protocol):
    """A checked link (`fl_topology.Link`)."""

    @property
    def name(self) -> str: ...
    @property
    def a(self) -> EndLike: ...
    @property
    def b(self) -> EndLike: ...
    @property
    def a_to_b(self) -> Direction: ...
    @property
    def b_to_a(self) -> Direction: ...


def schedule(changes: Sequence[LinkChange], until_s: float = float("inf")) -> Iterator[tuple[float, LinkChange]]:
    """(seconds, change) of everything before `until_s`, in order of time; endless where a rule repeats itself and there is no end."""
    due = [(change.at_s, index, 0) for index, change in enumerate(changes) if change.at_s < until_s]
    heapq.heapify(due)
    while due:
        at_s, index, number = heapq.heappop(due)
        change = changes[index]
        yield at_s, change
        if change.every_s is not None:
            again_s = change.at_s + (number + 1) * change.every_s
            if again_s < until_s:
                heapq.heappush(due, (again_s, index, number + 1))


def ways(change: LinkChange) -> tuple[Way, ...]:
    """The directions that it means."""
    return WAYS if change.direction == "both" else (change.direction,)


def change_problems(changes: Sequence[LinkChange], links: Sequence[LinkLike]) -> Iterator[tuple[int, str, str]]:
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
        for way in ways(change):
            changed = in_force[change.link, way].model_copy(update=_update(change, by_name[change.link], way))
            in_force[change.link, way] = changed
            problem = changed.problem()
            if _blocks_port(change, by_name[change.link], way) and (changed.rate_bps or changed.trace):
                problem = (
                    "spike_blocks",
                    f"the queue before the wire's own rate or trace ({way}) would go on; allowed: delivery",
                )
            if problem:
                yield index, problem[0], problem[1]
                return


def _update(change: LinkChange, link: LinkLike, way: str) -> dict[str, Any]:
    """New values of `Direction` for one direction; at a host's end the wire has the rate."""
    update = change.options
    update.pop("rate_bps", None)
    end = _sender(link, way)
    if end.port == 0 and change.bandwidth_bps is not None:
        update["rate_bps"] = change.bandwidth_bps
    return update


def _sender(link: LinkLike, way: str) -> EndLike:
    """The end that sends in a direction."""
    return link.a if way == "a_to_b" else link.b


def _blocks_port(change: LinkChange, link: LinkLike, way: str) -> bool:
    """Whether its spike stops a switch's port: where a host sends, the wire has the line."""
    return change.spike_s is not None and change.spike_blocks == "line" and _sender(link, way).port != 0


@dataclass(frozen=True)
class Effects:
    """What one change does, by place."""

    wire: tuple[tuple[str, dict[str, Any]], ...]
    """(direction, new settings by the wire's names)."""
    ports: tuple[tuple[str, int, int], ...]
    """(switch, port, bit/s)."""
    wire_spikes: tuple[Way, ...] = ()
    """Directions."""
    port_spikes: tuple[tuple[str, int], ...] = ()
    """(switch, port)."""


def effects(change: LinkChange, link: LinkLike) -> Effects:
    """What a change does to the wire and to the switch ports at the ends of its link."""
    updates = {way: _update(change, link, way) for way in ways(change)}
    told = (
        [("both", updates["a_to_b"])]
        if len(updates) == 2 and updates["a_to_b"] == updates["b_to_a"]
        else updates.items()
    )
    ends: dict[Way, EndLike] = {way: _sender(link, way) for way in ways(change)}
    ports = [
        (end.node, end.port, change.bandwidth_bps)
        for end in ends.values()
        if end.port and change.bandwidth_bps is not None
    ]
    blocked: list[Way] = [way for way in ends if _blocks_port(change, link, way)]
    spiked: list[Way] = [way for way in ends if change.spike_s is not None and way not in blocked]
    return Effects(
        wire=tuple((way, update) for way, update in told if update),
        ports=tuple(ports),
        wire_spikes=("both",) if len(spiked) == 2 else tuple(spiked),
        port_spikes=tuple((ends[way].node, ends[way].port) for way in blocked),
    )


class NetworkLike(Protocol):
    """A running topology (`fl_net.Network`)."""

    @property
    def topology(self) -> Any: ...
    @property
    def switches(self) -> Any: ...
    def wire_control(self) -> Any: ...
    def remember_rates(self, rates: Iterable[tuple[str, int, int]]) -> None: ...


def apply(network: NetworkLike, change: LinkChange, frame_bytes: int) -> tuple[tuple[str, int, int], ...]:
    """Make one change in a running topology; returns the (switch, port, bit/s) that have new rates.

    The run state has the new rates too. Raises RuntimeError with the link, and what wire or switch say.
    """
    link = next(link for link in network.topology.links if link.name == change.link)
    todo = effects(change, link)
    try:
        for switch, port in todo.port_spikes:
            network.switches[switch].spike_port(port, change.spike_s)
        if todo.wire or todo.wire_spikes or change.outage_s is not None:
            with WireClient(network.wire_control()) as wire:
                for way, settings in todo.wire:
                    wire.request({"op": "set", "link": link.name, "direction": way, **settings})
                for way in todo.wire_spikes:
                    blocks = change.spike_blocks or "delivery"
                    wire.spike(link.name, (change.spike_s or 0.0) * 1e6, direction=way, blocks=blocks)
                if change.outage_s is not None:
                    wire.outage(link.name, change.outage_s * 1e6, direction=change.direction)
        for switch, port, rate_bps in todo.ports:
            network.switches[switch].set_port_rate(port, rate_bps, frame_bytes)
            network.remember_rates([(switch, port, rate_bps)])
    except (WireError, WireUnreachableError, RuntimeError) as error:
        raise RuntimeError(f"change of {change.link}: {error}") from error
    return todo.ports


def restore(network: NetworkLike, changes: Iterable[LinkChange], frame_bytes: int) -> None:
    """Put what these changes touched back to what the topology says. Raises RuntimeError."""
    links = {link.name: link for link in network.topology.links}
    touched: dict[tuple[str, str], set[str]] = {}
    ports: dict[tuple[str, int], None] = {}
    for change in changes:
        for way in ways(change):
            keys = touched.setdefault((change.link, way), set())
            keys.update(_update(change, links[change.link], way))
        ports |= {(switch, port): None for switch, port, _ in effects(change, links[change.link]).ports}
    try:
        for (name, way), keys in touched.items():
            options = getattr(links[name], way).model_dump(include=keys)
            if options:
                with WireClient(network.wire_control()) as wire:
                    wire.request({"op": "set", "link": name, "direction": way, **options})
        for switch, port in ports:
            rate_bps = network.topology.ports[switch][port].rate_bps or 0
            network.switches[switch].set_port_rate(port, rate_bps, frame_bytes)
            network.remember_rates([(switch, port, rate_bps)])
    except (WireError, WireUnreachableError, RuntimeError) as error:
        raise RuntimeError(f"putting links back: {error}") from None


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Player:
    """Plays a topology's changes from now on, in a thread of its own; leaving it ends it. `tell` hears of every change, and of what fails."""

    def __init__(
        self,
        network: NetworkLike,
        changes: Sequence[LinkChange],
        frame_bytes: int,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._network = network
        self._changes = changes
        self._frame_bytes = frame_bytes
        self._tell: Callable[[str], None] = tell or _to_stderr
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
                    self._tell(f"error: at {at_s:g} s: {error}; no further changes")
                return

    def _apply(self, change: LinkChange) -> None:
        """Make a change; where the wire is away, when it is back. Raises RuntimeError."""
        patient_until_s = time.monotonic() + WIRE_AWAY_S
        while True:
            try:
                apply(self._network, change, self._frame_bytes)
                return
            except RuntimeError as error:
                away = isinstance(error.__cause__, WireUnreachableError) and time.monotonic() < patient_until_s
                if not away or self._ended.wait(AGAIN_S):
                    raise
