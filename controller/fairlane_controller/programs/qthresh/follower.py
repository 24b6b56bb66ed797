# SPDX-License-Identifier: Apache-2.0
"""A dry run beside a running loop: decides by what that measures, and writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fairlane import RunState
from fairlane.changes import EventLog, ask
from fairlane.measure import PortMeasurement

from . import why
from .decide import Outcome, ThresholdDecider, measured_for
from .options import QthreshOptions
from .policies import Scheme
from .store import LoopStore, Mode


class DryFollower:
    """Decides by what the running loop of a folder measures; P4Runtime is not used at all."""

    def __init__(self, run: RunState, log: EventLog, options: QthreshOptions) -> None:
        self._run, self._log, self._options = run, log, options
        self._store = LoopStore(run.folder)
        self._deciders: dict[tuple[str, int, int], ThresholdDecider] = {}
        self._held: dict[tuple[str, int, int], int] = {}
        self._outcomes: dict[tuple[str, int, int], Outcome] = {}

    async def run(self, ready: Callable[[], None]) -> None:
        """Until cancelled, or the loop ends: raises NO_LOOP then."""
        self._log.write("took_over", why="a loop runs: what it measures is decided by, and nothing is written")
        first = True
        while True:
            await self.poll()
            if first:
                first = False
                ready()
            await asyncio.sleep(self._options.loop.evaluate_period)

    async def poll(self) -> None:
        """Ask and decide once."""
        rows = await ask(self._run.folder, {"op": "measure"})
        measured = {(row["switch"], int(row["port"])): PortMeasurement.from_json(row) for row in rows}
        for switch in await ask(self._run.folder, {"op": "status"}):
            for policy in switch["policies"]:
                key = str(switch["switch"]), int(policy["port"]), int(policy["class"])
                if policy["scheme"] != Scheme.DROP_TAIL.value and key[:2] in measured:
                    self._decide(key, policy, measured[key[:2]])

    def _decide(self, key: tuple[str, int, int], policy: dict[str, Any], measured: PortMeasurement) -> None:
        settings = self._store.policy(*key)
        held = int(policy["qthresh_packets"])
        decider = self._deciders.setdefault(key, ThresholdDecider(self._options.loop, in_force_packets=held))
        if self._held.get(key) != held:  # the loop itself has written
            decider.in_force_packets = self._held[key] = held
        if settings.mode is not Mode.AUTO:
            return
        now_s = asyncio.get_running_loop().time()
        measured = measured_for(policy.get("lanes", 0), measured)
        decision = decider.evaluate(
            now_s,
            measured,
            weight=float(policy["weight"]),
            k=settings.k,
            capacity_packets=self._capacity(key[0], key[1]),
            min_packets=settings.min_packets,
            max_packets=settings.max_packets,
            lanes=policy.get("lanes", 0),
        )
        told = "threshold" if decision.outcome is Outcome.WRITE else "decision"
        if decision.outcome is Outcome.WRITE and decision.qthresh_packets is not None:
            decider.record_write(now_s, decision.qthresh_packets)
        elif decision.outcome is self._outcomes.get(key):
            return
        self._outcomes[key] = decision.outcome
        place = {"switch": key[0], "port": key[1], "class": key[2]}
        text = why.explain_decision(decision, measured, settings.k)
        self._log.write(told, **place, why=text, **decision.to_json(), measured=measured.to_json())

    def _capacity(self, switch: str, number: int) -> int:
        ports = self._run.switch(switch).ports
        return next((port.queue_packets for port in ports if port.port == number), 0)
