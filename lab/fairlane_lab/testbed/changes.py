# SPDX-License-Identifier: Apache-2.0
"""What happens in the middle of a run: a link's settings through the wire's control socket, a switch port's rate at the switch."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fairlane_switch.wire import WireClient, WireError, WireUnreachableError

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Change
from fairlane_lab.testbed.bed import Bed
from fairlane_lab.testbed.port_watch import PortKey
from fairlane_lab.testbed.scripts import fl_topology


class Changes:
    """The changes of one run; `apply_due` is called often, `due_s` says when it is next needed."""

    def __init__(self, bed: Bed, changes: Sequence[Change], zero_ns: int) -> None:
        """Raises RunError for a link that the topology has not."""
        self._bed = bed
        self._zero_s = zero_ns / 1e9
        self._left = sorted(changes, key=lambda change: change.at_s)
        self._done: list[Change] = []
        self.rates: list[tuple[float, PortKey, int]] = []
        """(s after zero, port, bit/s) of what was done."""
        links = {link.name for link in bed.network.topology.links}
        for change in changes:
            if change.link not in links:
                raise RunError(f"there is no link {change.link!r} to change; there are {', '.join(sorted(links))}")

    @property
    def due_s(self) -> float | None:
        """CLOCK_MONOTONIC instant of the next change, or None."""
        return self._zero_s + self._left[0].at_s if self._left else None

    def apply_due(self) -> None:
        """Make every change whose time has come. Raises RunError when wire or switch refuse one."""
        while self._left and time.monotonic() >= self._zero_s + self._left[0].at_s:
            self._apply(self._left.pop(0))

    def undo(self) -> None:
        """Put links and ports back to what the topology says, for the next run. Raises RunError."""
        for name in dict.fromkeys(change.link for change in self._done):
            link = next(link for link in self._bed.network.topology.links if link.name == name)
            if link.is_emulated:
                self._tell_wire(Change(0.0, name, "a_to_b"), _settings(link.a_to_b))
                self._tell_wire(Change(0.0, name, "b_to_a"), _settings(link.b_to_a))
        for switch, port in dict.fromkeys(key for _, key, _ in self.rates):
            rate_bps = self._bed.network.topology.ports[switch][port].rate_bps or 0
            self._bed.set_port_rate(switch, port, rate_bps)
        self._done.clear()

    def _apply(self, change: Change) -> None:
        self._done.append(change)
        settings = {
            "delay_us": None if change.delay_ms is None else round(change.delay_ms * 1000),
            "loss": change.loss,
            "ber": change.ber,
        }
        given = {name: value for name, value in settings.items() if value is not None}
        if given or change.spike_s is not None or change.outage_s is not None:
            self._tell_wire(change, given)
        if change.rate_bps is not None:
            try:
                self._set_rate(change, change.rate_bps)
            except RuntimeError as error:
                raise RunError(f"change of {change.link} at {change.at_s:g} s: {error}") from None

    def _tell_wire(self, change: Change, given: dict[str, float]) -> None:
        try:
            with WireClient(self._bed.network.wire_control()) as wire:
                if given:
                    wire.request({"op": "set", "link": change.link, "direction": change.direction, **given})
                if change.spike_s is not None:
                    wire.spike(change.link, change.spike_s * 1e6, direction=change.direction)
                if change.outage_s is not None:
                    wire.outage(change.link, change.outage_s * 1e6, direction=change.direction)
        except (WireError, WireUnreachableError) as error:
            raise RunError(f"change of {change.link} at {change.at_s:g} s: {error}") from None

    def _set_rate(self, change: Change, rate_bps: int) -> None:
        link = next(link for link in self._bed.network.topology.links if link.name == change.link)
        ends = {"a_to_b": [link.a], "b_to_a": [link.b], "both": [link.a, link.b]}[change.direction]
        for end in ends:
            if end.port:
                self._bed.set_port_rate(end.node, end.port, rate_bps)
                self.rates.append((time.monotonic() - self._zero_s, (end.node, end.port), rate_bps))


def _settings(way: fl_topology.Direction) -> dict[str, float]:
    return {"delay_us": way.delay_us, "loss": way.loss, "ber": way.ber}
