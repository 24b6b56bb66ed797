# SPDX-License-Identifier: Apache-2.0
"""`fairlane run --dry-run`: measures and decides as the loop does, reports it as the same events with `dry_run`, and writes nothing.

Digests and probes are for a switch's primary controller alone. So a dry run is the primary with an election id below every
writer's, until somebody else comes, and is refused where a loop of ours runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlane_controller.errors import ErrorCode
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.run import LoopTarget, run_until_signal, topology_of
from fairlane_controller.state.ask import loop_runs
from fairlane_controller.state.events import EventLog, log_of


async def run_dry(target: LoopTarget, on_ready: Callable[[], None]) -> None:
    """Dry run of a target until SIGTERM or SIGINT; `on_ready` when each switch was read for the first time."""
    topology = topology_of(target)
    if target.folder is not None and loop_runs(target.folder):
        problem = f"a loop runs in {target.folder}, and reports what it decides: `fairlane log --event decision`"
        raise ErrorCode.LOOP_RUNNING(f"{problem}; --dry-run is for a topology without one")
    log = EventLog(log_of(target.run), frequent=target.program.frequent_events, dry_run=True)
    agents = [SwitchAgent(endpoint, topology, log, state=state, dry_run=True) for endpoint, state in target.switches()]
    try:
        await run_until_signal(agents, asyncio.gather(*(agent.run() for agent in agents)), on_ready)
    finally:
        log.close()
