# SPDX-License-Identifier: Apache-2.0
"""What happens to links in the middle of a run: settings through the wire's control socket, a switch port's rate at the switch."""

from __future__ import annotations

import time
from collections import deque

from fairlane_topology.links import LinkChange
from fairlane_topology.topology import PortKey

from fairlane_lab.link_changes import changes_of
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario
from fairlane_lab.testbed.bed import Bed


class Changes:
    """The changes of one run; `apply_due` is called often, `due_s` says when it is next needed."""

    def __init__(self, bed: Bed, scenario: Scenario, zero_ns: int) -> None:
        """Raises RunError for a change that makes no sense."""
        self._bed = bed
        self._zero_s = zero_ns / 1e9
        self._left = deque(changes_of(scenario, bed.network.topology))
        self._done: list[LinkChange] = []
        self.rates: list[tuple[float, PortKey, int]] = []
        """(s after zero, port, bit/s) of what was done."""
        self.over_s = 0.0
        """CLOCK_MONOTONIC instant at which the last spike or outage is over: nothing can end one early."""

    @property
    def due_s(self) -> float | None:
        """CLOCK_MONOTONIC instant of the next change, or None."""
        return self._zero_s + self._left[0][0] if self._left else None

    def apply_due(self) -> None:
        """Make every change whose time has come. Raises RunError when wire or switch refuse one."""
        while self._left and time.monotonic() >= self._zero_s + self._left[0][0]:
            at_s, change = self._left.popleft()
            self._done.append(change)
            try:
                ports = self._bed.change_link(change)
            except RuntimeError as error:
                raise RunError(f"at {at_s:g} s: {error}") from None
            now_s = time.monotonic() - self._zero_s
            self.over_s = max(self.over_s, self._zero_s + now_s + max(change.spike_s or 0.0, change.outage_s or 0.0))
            self.rates += [(now_s, port, rate_bps) for port, rate_bps in ports]

    def undo(self) -> None:
        """Put links and ports back to what the topology says, for the next run. Raises RunError."""
        try:
            self._bed.restore_links(self._done)
        except RuntimeError as error:
            raise RunError(str(error)) from None
        self._done.clear()
