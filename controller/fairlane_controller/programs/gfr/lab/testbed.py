# SPDX-License-Identifier: Apache-2.0
"""`gfr` in Mininet: the control loop gets the scenario's VCs; what left each managed port and waits there is sampled, and once a second what each VC has lost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from fairlane.switch import COUNTER_ADMITTED, SwitchClient
from fairlane_lab.atm import atm_cells
from fairlane_lab.programs.part import MininetPart
from fairlane_lab.run_result import RunResult
from fairlane_lab.scenario import Scenario
from fairlane_lab.testbed.collect import RunRecords
from fairlane_lab.testbed.plan import Plan
from fairlane_lab.testbed.port_watch import Look, PortWatch, Samples
from finsy import P4CounterData, P4CounterEntry, P4RegisterEntry

from .. import names as gfr_program
from ..allocation import Allocation
from ..cli_vc import VCS
from ..plan import GfrStore
from .config import gfr_config
from .counters import added, grown, read_refusals
from .results import vc_results, vc_samples, vc_series
from .ways import gfr_ports

REFUSALS_EVERY_S = 1.0


class GfrInMininet(MininetPart):
    """VCs and schemes through the control loop; VCs in the results."""

    def begin(self, scenario: Scenario, plan: Plan) -> dict[tuple[str, int], int | None]:
        del plan
        config = gfr_config(scenario, self.bed.network.topology)
        plain = config.model_dump(mode="json")
        VCS.change(str(self.bed.state), lambda data: data.update(plain), scenario.point, from_file=True)
        return {}

    def watch(self) -> type[PortWatch]:
        return GfrPortWatch

    def finish(self, result: RunResult, seen: RunRecords) -> None:
        scenario, window = seen.running.scenario, seen.window
        ports = list(gfr_ports(scenario, self.bed.network.topology).values())
        of_vcs = vc_samples(scenario, seen.carried, window.zero_s)
        result.vcs = vc_results(scenario, ports, of_vcs, _refused(seen.samples, window.start_s, window.end_s))
        result.series += vc_series(of_vcs)


def _refused(samples: Samples, start_s: float, end_s: float) -> dict[str, dict[str, int]]:
    """Frames that each VC lost in the measured window, by verdict; to the second."""
    parts: list[dict[str, dict[str, int]]] = []
    for points in samples.of_program.values():
        before = [counts for t, counts in points if t <= start_s] or [points[0][1]]
        after = [counts for t, counts in points if t <= end_s] or [points[0][1]]
        parts.append(grown(before[-1], after[-1]))
    return added(parts)


class GfrPortWatch(PortWatch):
    """A `PortWatch` of gfr.p4's counters: `admitted` by port, `vc_verdicts`; the register QT where it can be read."""

    def _looks(self) -> Sequence[tuple[Look, float]]:
        return [(self._read_ports, self._period_s), (self._read_vcs, REFUSALS_EVERY_S)]

    @cached_property
    def _allocation(self) -> Allocation:
        return GfrStore(self._bed.state).state.allocation

    async def _read_vcs(self, client: SwitchClient, name: str) -> None:
        now_s = time.monotonic()
        self.samples.of_program[name].append((now_s, await read_refusals(client, self._allocation)))

    async def _read_ports(self, client: SwitchClient, name: str) -> None:
        numbers = self._numbers(name)
        entities: list[Any] = [P4CounterEntry(COUNTER_ADMITTED, index=number) for number in numbers]
        if self._bed.target == "embedded":
            entities += [P4RegisterEntry(gfr_program.REGISTER_PORT_CELLS, index=number) for number in numbers]
        at_s, found = await self._read_at_once(client, entities)
        if at_s is None:
            return
        samples = self.samples
        for number in numbers:
            data: P4CounterData = found[COUNTER_ADMITTED, number]
            cells = found.get((gfr_program.REGISTER_PORT_CELLS, number), 0)
            share = cells / max(1.0, atm_cells(data.packet_count, data.byte_count))
            waiting = share * data.packet_count  # frames of the mean length so far
            samples.waiting[name, number].append((at_s, waiting))
            samples.tx_packets[name, number].append((at_s, data.packet_count - waiting))
            samples.tx_bytes[name, number].append((at_s, data.byte_count - share * data.byte_count))
