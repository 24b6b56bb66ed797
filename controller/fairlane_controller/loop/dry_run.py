# SPDX-License-Identifier: Apache-2.0
"""`fairlane run --dry-run`: measures and decides as the loop does, tells it as the same events with `dry_run`, and writes nothing.

Digests and probes are for a switch's primary controller alone. So a dry run is the primary with an election id below every
writer's, until somebody else comes, and is refused where a loop of ours runs. A program that decides by counters, which every
reader may read, observes as its backup does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.run import LoopTarget, run_until_signal, topology_of
from fairlane_controller.state.ask import loop_runs
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
        topology = topology_of(target)
        if not topology.dry_run_observes and target.folder is not None and loop_runs(target.folder):
            problem = f"a loop runs in {target.folder}, and reports what it decides: `fairlane log --event decision`"
            raise FairlaneError(ErrorCode.LOOP_RUNNING, f"{problem}; --dry-run is for a topology without one")
        path = target.event_log or (target.folder / EVENTS_FILE if target.folder else None)
        log = DryLog(path, target.program.frequent_events)
        logs.append(log)
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
