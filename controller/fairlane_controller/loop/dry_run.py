# SPDX-License-Identifier: Apache-2.0
"""`fairlane run --dry-run`: measures and decides as the loop does, reports it as the same events with `dry_run`, and writes nothing.

Digests and probes are for a switch's primary controller alone. So where a loop of ours runs, its measurements are asked for; where
nobody is, we are the primary with an election id below every writer's, until somebody else comes. A program that decides by
counters, which every reader may read, observes as its backup does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.run import LoopTarget, report_ready, run_until_signal, topology_of
from fairlane_controller.state.events import EventLog


async def run_dry(targets: Iterable[LoopTarget], on_ready: Callable[[], None]) -> None:
    """Dry runs of all targets until SIGTERM or SIGINT; `on_ready` when each switch was read for the first time."""
    jobs: list[Coroutine[Any, Any, Any]] = []
    ready: list[asyncio.Event] = []
    logs: list[EventLog] = []
    for target in targets:
        log = EventLog(target.log_path, frequent=target.program.frequent_events, dry_run=True)
        logs.append(log)
        topology = topology_of(target)
        follow = topology.follow(log)
        if follow is not None:
            ready.append(asyncio.Event())
            jobs.append(follow(ready[-1].set))
            continue
        for endpoint, state in target.switches():
            agent = SwitchAgent(endpoint, topology, log, state=state, dry_run=True)
            if topology.dry_run_observes:
                agent.stand_by()
            jobs.append(agent.run())
            ready.append(agent.ready)
    try:
        await run_until_signal(asyncio.gather(report_ready(ready, on_ready), *jobs))
    finally:
        for log in logs:
            log.close()
