# SPDX-License-Identifier: Apache-2.0
"""`fairlane run --dry-run`: measures and decides as the loop does, tells it as the same events with `dry_run`, and writes nothing.

Digests and probes are for a switch's primary controller alone. So where a loop of ours runs, its measurements are asked for; where
nobody is, we are the primary with an election id below every writer's, until somebody else comes. The program gfr is looked at
as its backup looks at it: by counters, which every reader may read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop import why
from fairlane_controller.loop.agent import AgentOptions, SwitchAgent
from fairlane_controller.loop.control import ask, loop_runs
from fairlane_controller.loop.events import EVENTS_FILE, EventLog
from fairlane_controller.loop.run import LoopTarget, until_signalled
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.measure.port import PortMeasurement
from fairlane_controller.measure.prober import listen_probes, send_probes
from fairlane_controller.measure.source import listen_reports, listen_t_res
from fairlane_controller.programs.gfr.activity import ActivityAgent
from fairlane_controller.programs.gfr.setup import is_gfr, plan_in_force
from fairlane_controller.programs.gfr.store import GfrStore
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.decide import Outcome, ThresholdDecider
from fairlane_controller.programs.qthresh.policies import Policy, Scheme, read_limits, read_policies
from fairlane_controller.state.loop_state import Mode
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import LISTENER_ID, SwitchClient
from fairlane_controller.switch.setup import endpoint_of

DRY = {"dry_run": True}


class DryLog(EventLog):
    """The event log of a dry run: every event says that it is one. It never turns the file over, which another loop may write."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, max_bytes=1 << 62)

    def write(self, event: str, **fields: Any) -> None:
        """One event."""
        super().write(event, **fields, **DRY)


class DryAgent(SwitchAgent):
    """Measures one switch and decides its thresholds; it goes on as if they had been written, and none is."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._election_id = LISTENER_ID

    async def _restore(self, client: SwitchClient) -> None:  # noqa: ARG002
        raise FairlaneError(ErrorCode.NO_PIPELINE, f"{self.endpoint} has no program, and a dry run loads none")

    async def _take_over(self, client: SwitchClient) -> None:
        self._limits = await read_limits(client)
        self._look_at(await read_policies(client))
        for name in (program.DIGEST_T_RES, program.DIGEST_PORT_REPORT):
            await client.enable_digest(name, max_list=64, max_timeout_s=0.02, ack_timeout_s=1.0)
        self._event(
            "took_over", ports=sorted(self._limits), why="nobody else is the primary: we measure, and write nothing"
        )

    async def _serve(self, client: SwitchClient) -> None:
        jobs: list[Coroutine[Any, Any, Any]] = [
            listen_reports(client, self._meter),
            listen_t_res(client, self._meter),
            self._evaluate_forever(client),
        ]
        if self._options.probes:
            jobs += [send_probes(client, self._managed_meters), listen_probes(client, self._meter)]
        await self._serve_together(client, jobs)

    async def _put_threshold(self, client: SwitchClient, new: Policy) -> bool:  # noqa: ARG002
        return True


class DryFollower:
    """Decides by what the running loop of a folder measures; P4Runtime is not used at all."""

    def __init__(self, run: RunState, log: EventLog, options: AgentOptions) -> None:
        self._run, self._log, self._options = run, log, options
        self._store = LoopStore(run.folder, dry_run=True)
        self._deciders: dict[tuple[str, int, int], ThresholdDecider] = {}
        self._held: dict[tuple[str, int, int], int] = {}
        self._outcomes: dict[tuple[str, int, int], Outcome] = {}

    async def run(self, ready: Callable[[], None]) -> None:
        """Until cancelled, or the loop ends: raises NO_LOOP then."""
        self._log.write("took_over", why="a loop runs: what it measures is decided by, and nothing is written")
        first = True
        while True:
            await self.look()
            if first:
                first = False
                ready()
            await asyncio.sleep(self._options.evaluate_period_s)

    async def look(self) -> None:
        """Ask and decide once."""
        rows = await ask(self._run.folder, {"op": "measure"})
        measured = {(row["switch"], int(row["port"])): PortMeasurement.from_json(row) for row in rows}
        for switch in await ask(self._run.folder, {"op": "status"}):
            for policy in switch["policies"]:
                key = str(switch["switch"]), int(policy["port"]), int(policy["class"])
                if policy["scheme"] == Scheme.QTHRESH.value and key[:2] in measured:
                    self._decide(key, policy, measured[key[:2]])

    def _decide(self, key: tuple[str, int, int], policy: dict[str, Any], measured: PortMeasurement) -> None:
        settings = self._store.policy(*key)
        held = int(policy["qthresh_packets"])
        decider = self._deciders.setdefault(key, ThresholdDecider(self._options.decide, in_force_packets=held))
        if self._held.get(key) != held:  # the loop itself has written
            decider.in_force_packets = self._held[key] = held
        if settings.mode is not Mode.AUTO:
            return
        now_s = asyncio.get_running_loop().time()
        decision = decider.evaluate(
            now_s,
            measured,
            weight=float(policy["weight"]),
            k=settings.k,
            capacity_packets=self._capacity(key[0], key[1]),
            min_packets=settings.min_packets,
            max_packets=settings.max_packets,
        )
        told = "threshold" if decision.outcome is Outcome.WRITE else "decision"
        if decision.outcome is Outcome.WRITE and decision.qthresh_packets is not None:
            decider.written(now_s, decision.qthresh_packets)
        elif decision.outcome is self._outcomes.get(key):
            return
        self._outcomes[key] = decision.outcome
        place = {"switch": key[0], "port": key[1], "class": key[2]}
        text = why.of_decision(decision, measured, settings.k)
        self._log.write(told, **place, why=text, **decision.to_json(), measured=measured.to_json())

    def _capacity(self, switch: str, number: int) -> int:
        ports = self._run.switch(switch).ports
        return next((port.queue_packets for port in ports if port.port == number), 0)


def dry_gfr_agents(run: RunState, log: EventLog) -> list[ActivityAgent]:
    """The activity agents of a topology's switches, as readers that write nothing."""
    plan = plan_in_force(GfrStore(run.folder).state, run)
    agents = [ActivityAgent(endpoint_of(switch), plan, log, dry_run=True) for switch in run.switches]
    for agent in agents:
        agent.stand_by()
    return agents


async def run_dry(targets: Iterable[LoopTarget], options: AgentOptions, on_ready: Callable[[], None]) -> None:
    """Dry runs of all targets until SIGTERM or SIGINT; `on_ready` when the first look was taken at each."""
    jobs: list[Coroutine[Any, Any, Any]] = []
    waits: list[Coroutine[Any, Any, Any]] = []
    logs: list[EventLog] = []
    for target in targets:
        path = target.event_log or (target.folder / EVENTS_FILE if target.folder else None)
        log = DryLog(path)
        logs.append(log)
        if target.run is not None and is_gfr(target.run):
            watchers = dry_gfr_agents(target.run, log)
            jobs += [agent.run() for agent in watchers]
            waits += [agent.standing_by.wait() for agent in watchers]
        elif target.run is not None and loop_runs(target.run.folder):
            seen = asyncio.Event()
            jobs.append(DryFollower(target.run, log, options).run(seen.set))
            waits.append(seen.wait())
        else:
            store = LoopStore(target.folder, dry_run=True)
            states = {state.name: state for state in target.run.switches} if target.run else {}
            agents = [DryAgent(e, store, log, options, target.run, states.get(e.name)) for e in target.endpoints]
            jobs += [agent.run() for agent in agents]
            waits += [agent.ready.wait() for agent in agents]
    tasks = [asyncio.ensure_future(job) for job in jobs]
    telling = asyncio.ensure_future(_tell(waits, on_ready))
    try:
        await until_signalled(asyncio.gather(*tasks))
    finally:
        for task in (*tasks, telling):
            task.cancel()
        await asyncio.gather(*tasks, telling, return_exceptions=True)
        for log in logs:
            log.close()


async def _tell(waits: Iterable[Coroutine[Any, Any, Any]], on_ready: Callable[[], None]) -> None:
    await asyncio.gather(*waits)
    on_ready()
