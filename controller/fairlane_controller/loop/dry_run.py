# SPDX-License-Identifier: Apache-2.0
"""`fairlane run --dry-run`: measures and decides as the loop does, tells it as the same events with `dry_run`, and writes nothing.

Digests and probes are for a switch's primary controller alone. So where a loop of ours runs, its measurements are asked for; where
nobody is, we are the primary with an election id below every writer's, until somebody else comes. A program that decides by
counters, which every reader may read, looks on as its backup does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from pathlib import Path
from typing import Any

from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.run import LoopTarget, run_until_signal, topology_of
from fairlane_controller.state.events import EVENTS_FILE, EventLog

DRY = {"dry_run": True}


class DryLog(EventLog):
    """The event log of a dry run: every event says that it is one. It never turns the file over, which another loop may write."""

    def __init__(self, path: Path | None, frequent: Collection[str] = ()) -> None:
        super().__init__(path, max_bytes=1 << 62, frequent=frequent)

    def write(self, event: str, **fields: Any) -> None:
        """One event."""
        super().write(event, **fields, **DRY)


async def run_dry(targets: Iterable[LoopTarget], on_ready: Callable[[], None]) -> None:
    """Dry runs of all targets until SIGTERM or SIGINT; `on_ready` when the first look was taken at each."""
    jobs: list[Coroutine[Any, Any, Any]] = []
    waits: list[Coroutine[Any, Any, Any]] = []
    logs: list[EventLog] = []
    for target in targets:
        path = target.event_log or (target.folder / EVENTS_FILE if target.folder else None)
        log = DryLog(path, target.program.frequent_events)
        logs.append(log)
        topology = topology_of(target)
        follow = topology.follow(log)
        if follow is not None:
            seen = asyncio.Event()
            jobs.append(follow(seen.set))
            waits.append(seen.wait())
            continue
        for endpoint, state in target.switches():
            agent = SwitchAgent(endpoint, topology, log, state=state, dry_run=True)
            if topology.dry_run_observes:
                agent.stand_by()
            jobs.append(agent.run())
            waits.append((agent.standing_by if topology.dry_run_observes else agent.ready).wait())
    tasks = [asyncio.ensure_future(job) for job in jobs]
    telling = asyncio.ensure_future(_tell(waits, on_ready))
    try:
        await run_until_signal(asyncio.gather(*tasks))
    finally:
        for task in (*tasks, telling):
            task.cancel()
        await asyncio.gather(*tasks, telling, return_exceptions=True)
        for log in logs:
            log.close()


async def _tell(waits: Iterable[Coroutine[Any, Any, Any]], on_ready: Callable[[], None]) -> None:
    await asyncio.gather(*waits)
    on_ready()
