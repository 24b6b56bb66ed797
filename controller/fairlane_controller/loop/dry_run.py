# SPDX-License-Identifier: Apache-2.0
"""`fairlane run --dry-run`: measures and decides as the loop does, reports it as the same events with `dry_run`, and writes nothing.

Digests and probes are for a switch's primary controller alone. So where a loop of ours runs, its measurements are asked for; where
nobody is, we are the primary with an election id below every writer's, until somebody else comes. A program that decides by
counters, which every reader may read, observes as its backup does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from pathlib import Path
from typing import Any

from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.run import LoopTarget, report_ready, run_until_signal, topology_of
from fairlane_controller.state.events import EventLog


class DryLog(EventLog):
    """The event log of a dry run: every event says that it is one. It never turns the file over, which another loop may write."""

    def __init__(self, path: Path | None, frequent: Collection[str] = ()) -> None:
        super().__init__(path, max_bytes=1 << 62, frequent=frequent)

    def write(self, event: str, **fields: Any) -> None:
        """One event."""
        super().write(event, **fields, dry_run=True)


async def run_dry(targets: Iterable[LoopTarget], on_ready: Callable[[], None]) -> None:
    """Dry runs of all targets until SIGTERM or SIGINT; `on_ready` when each switch was read for the first time."""
    jobs: list[Coroutine[Any, Any, Any]] = []
    ready: list[asyncio.Event] = []
    logs: list[EventLog] = []
    for target in targets:
        log = DryLog(target.log_path, target.program.frequent_events)
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
