# SPDX-License-Identifier: Apache-2.0
"""The run time on a topology: settings that are remembered, options, and what people ask for through the control socket.

Requests that take changes back, or write single entries, answer with what takes them back in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from fairlane_controller.errors import find_by_name, unknown_name
from fairlane_controller.history.journal import Change, record
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.program.requests import checked
from fairlane_controller.programs.qthresh import changes
from fairlane_controller.programs.qthresh.control import QthreshControl
from fairlane_controller.programs.qthresh.follower import DryFollower
from fairlane_controller.programs.qthresh.options import QthreshOptions
from fairlane_controller.programs.qthresh.requests import REQUESTS
from fairlane_controller.programs.qthresh.settings import WeightRules
from fairlane_controller.programs.qthresh.store import LoopStore
from fairlane_controller.programs.qthresh.table_write import write_with_settings
from fairlane_controller.state.ask import loop_runs
from fairlane_controller.state.intent import making
from fairlane_controller.state.run_state import RunState
from fairlane_controller.state.store import Documents, Store
from fairlane_controller.switch.client import SwitchClient


class QthreshTopology(TopologyControl):
    """Settings of the policies of all switches."""

    control_type = QthreshControl
    requests = REQUESTS

    def __init__(
        self,
        run: RunState | None = None,
        *,
        probes: bool = True,
        options: QthreshOptions | None = None,
        store: LoopStore | None = None,
    ) -> None:
        super().__init__(run, probes=probes)
        self.store = store or LoopStore(run.folder if run is not None else None)
        options = options or QthreshOptions(probes=probes)
        if run is not None and run.target == "bmv2":
            options = replace(options, measure=replace(options.measure, sample_includes_t_d=False))
        self.options = options

    def use_loop(self, loop: Any) -> None:
        """Decide, tune and forget as it says."""
        self.options = self.options.options_of_loop(loop)

    async def handle(self, agents: Mapping[str, SwitchAgent], request: Request) -> Any:
        """A change of a threshold, a scheme, entries or weights."""
        if request["op"] == "flow_weights":
            rules = WeightRules.parse(request["rules"])
            self.options = replace(self.options, flow_weight=rules)
            for agent in agents.values():
                agent.control.use_options()
            return {"rules": len(rules.rules)}
        if request["op"] == "explain":
            return _control(find_by_name("switch", str(request["switch"]), agents)).explain(request["port"])
        if request["op"] == "policies":
            return await change_policies(agents, self.run, self.store, request)
        if request["op"] in TopologyControl.requests:
            return await super().handle(agents, request)
        return await _control(find_by_name("switch", str(request["switch"]), agents)).change(request)

    async def write_entries(self, client: SwitchClient, request: Request) -> Request:
        """With settings of policies."""
        return await write_with_settings(client, self.store, request)

    def follow(self, log: Any) -> Callable[[Callable[[], None]], Coroutine[Any, Any, None]] | None:
        """Where a loop runs, decide by what it measures."""
        if self.run is None or not loop_runs(self.run.folder):
            return None
        return DryFollower(self.run, log, self.options).run


Request = dict[str, Any]


async def change_policies(
    agents: Mapping[str, SwitchAgent], run: RunState | None, store: LoopStore, request: Request
) -> list[dict[str, Any]]:
    """`policies`: a change on several switches, all or none; returns the policies then in force.

    A command's change is recorded in the journal, in the transaction of the settings: also when who asked has gone.
    """
    asked = checked({**request["change"], "switch": "any", "port": 1}, REQUESTS)
    if asked["op"] not in changes.DECIDE:
        raise unknown_name("op", asked["op"], changes.DECIDE)
    asked = {**asked, "port": request.get("port"), "every": request.get("every")}
    chosen = {name: find_by_name("switch", name, agents) for name in sorted(request.get("switches") or agents)}
    async with AsyncExitStack() as stack:
        for agent in chosen.values():
            await stack.enter_async_context(agent.writes)
        clients = {name: agent.connected() for name, agent in chosen.items()}
        current = await changes.read_ports(clients, run)
        plan = changes.plan_policies(current, store, asked, lambda name: chosen[name].endpoint)
        intent = making.get()

        def write(file: Store, documents: Documents) -> None:
            if intent is not None:
                record(file, Change(intent.command, undo=plan.undo), documents)
            else:
                file.put(documents)

        await changes.make(plan, clients, store, write)
        del asked["every"]
        results: list[dict[str, Any]] = []
        for name, new in plan.policies:
            told = {**asked, "switch": name, "port": new.port}
            results.append({"switch": name, **await _control(chosen[name]).adopt(new, current[name], told)})
        return results


def _control(agent: SwitchAgent) -> QthreshControl:
    assert isinstance(agent.control, QthreshControl)
    return agent.control
