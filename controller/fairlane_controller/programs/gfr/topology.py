# SPDX-License-Identifier: Apache-2.0
"""The run time on a topology: the configuration in force, and the edits of it that people ask for through the control socket."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, cast

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.programs.gfr.control import ActivityOptions, GfrControl
from fairlane_controller.programs.gfr.deploy import Plan, deploy_to, make_plan, plan_in_force
from fairlane_controller.programs.gfr.edit import apply_edit, locate_problem, source_of
from fairlane_controller.programs.gfr.paths import Place
from fairlane_controller.programs.gfr.requests import REQUESTS
from fairlane_controller.programs.gfr.store import GfrStore
from fairlane_controller.state.locks import change_lock
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.units import counted


class GfrTopology(TopologyControl):
    """The plan of all switches."""

    control_type = GfrControl
    requests = REQUESTS
    needs_all_switches = True
    dry_run_observes = True

    def __init__(
        self,
        run: RunState | None = None,
        *,
        probes: bool = True,
        options: ActivityOptions | None = None,
        plan: Plan | None = None,
    ) -> None:
        """`plan`: instead of what is remembered."""
        super().__init__(run, probes=probes)
        if run is None and plan is None:
            raise FairlaneError(ErrorCode.NO_TOPOLOGY, "VCs are a whole topology's: name its run state by --state")
        self.options = options or ActivityOptions(probes=probes)
        self._changes = asyncio.Lock()
        self._store = GfrStore(run.folder if run is not None and plan is None else None)
        self.plan = plan or plan_in_force(self._store.state, cast("RunState", run))

    def use_loop(self, loop: Any) -> None:
        """Look so often, and count a VC as active for so long."""
        self.options = replace(self.options, period_s=loop.activity_period, active_s=loop.active_time)

    def lead(self, controls: Mapping[str, GfrControl]) -> None:
        """With the configuration that is remembered now."""
        assert self.run is not None
        self._store = GfrStore(self.run.folder)
        self._use(plan_in_force(self._store.state, self.run), controls)

    def _use(self, plan: Plan, controls: Mapping[str, GfrControl]) -> None:
        self.plan = plan
        for control in controls.values():
            control.use_plan()

    def guard(self) -> AbstractAsyncContextManager[Any]:
        """No change without a loop meanwhile."""
        assert self.run is not None
        return change_lock(self.run.folder)

    async def handle(self, agents: Mapping[str, SwitchAgent], request: dict[str, Any]) -> dict[str, Any]:
        """One edit into all switches or none; returns entries written by switch."""
        controls = {name: cast("GfrControl", agent.control) for name, agent in agents.items()}
        async with self._changes:
            before = self._store.state
            config = apply_edit(before.config, request)
            try:
                plan = make_plan(config, before, time.time(), self.run, source_of(request))
            except FairlaneError as problem:
                raise locate_problem(problem, request, config.model_dump(mode="json")) from None
            async with contextlib.AsyncExitStack() as stack:
                for agent in agents.values():
                    await stack.enter_async_context(agent.writes)
                clients = [_connected(agents, name) for name in plan.switches]
                active: dict[Place, frozenset[str]] = {}
                for control in controls.values():
                    active |= control.active_places() or {}
                done = await deploy_to(plan, clients, self._store, active)
                self._use(plan, controls)
        written = {name: len(changes) for name, changes in done.items()}
        source = source_of(request)
        log = next(iter(agents.values())).log
        log.write(
            "gfr_changed",
            request=request["op"],
            source=source,
            written=written,
            why=f"asked for by {request['op']} ({source}): {counted(sum(written.values()), 'entry')} on {', '.join(written) or 'no switch'}",
        )
        return {"written": written}


def _connected(agents: Mapping[str, SwitchAgent], name: str) -> SwitchClient:
    if name not in agents:
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"this needs a change of switch {name}, which the running loop does not keep (it keeps {', '.join(agents)})",
        )
    return agents[name].connected()
