# SPDX-License-Identifier: Apache-2.0
"""The run time on a topology: settings that are remembered, options, and what people ask for through the control socket.

Requests that take changes back, or write single entries, answer with what takes them back in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from fairlane_controller.errors import unknown_name
from fairlane_controller.history.policies import policy_before, put_policy, write_with_settings
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.control import loop_runs
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.programs.qthresh.control import QthreshControl
from fairlane_controller.programs.qthresh.flow_weights import WeightRules
from fairlane_controller.programs.qthresh.follower import DryFollower
from fairlane_controller.programs.qthresh.options import QthreshOptions
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient


class QthreshTopology(TopologyControl):
    """Settings of the policies of all switches."""

    control_type = QthreshControl
    requests = ("threshold_set", "threshold_auto", "scheme_set", "policy_put", "table_write", "flow_weights")

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
        self.options = self.options.of_loop(loop)

    async def handle(self, agents: Mapping[str, SwitchAgent], request: Request) -> Any:
        """A change of a threshold, a scheme, entries or weights."""
        if request["op"] == "flow_weights":
            rules = WeightRules.parse(request["rules"])
            self.options = replace(self.options, flow_weight=rules)
            for agent in agents.values():
                agent.control.use_options()
            return {"rules": len(rules.rules)}
        agent = agents.get(str(request["switch"]))
        if agent is None:
            raise unknown_name("switch", str(request["switch"]), agents)
        if request["op"] in ("policy_put", "table_write"):
            return await take_back(agent, self.store, request)
        assert isinstance(agent.control, QthreshControl)
        return await agent.control.change(request)

    def follow(self, log: Any) -> Callable[[Callable[[], None]], Coroutine[Any, Any, None]] | None:
        """Where a loop runs, decide by what it measures."""
        if self.run is None or not loop_runs(self.run.folder):
            return None
        return DryFollower(self.run, log, self.options).run


Request = dict[str, Any]
MAX_LOGGED = 20
"""Updates of one request that an event holds."""


async def take_back(agent: SwitchAgent, store: LoopStore, request: Request) -> list[Request]:
    """`policy_put` or `table_write` (docs/design-control.md): all or nothing; returns the requests that undo it."""
    port, traffic_class = int(request.get("port", 0)), int(request.get("class", 0))

    async def change(client: SwitchClient) -> list[Request]:
        if request["op"] == "policy_put":
            before = await policy_before(client, store, port, traffic_class)
            await put_policy(client, store, request)
            return [before]
        return [await write_with_settings(client, store, request)]

    undo = await agent.exclusively(change)
    agent.event("changed", request=_brief(request), why=_why(request))
    return undo


def _brief(request: Request) -> Request:
    """A request as the event log keeps it: of many updates only how many there are."""
    updates = request.get("updates", ())
    return {**request, "updates": len(updates)} if len(updates) > MAX_LOGGED else request


def _why(request: Request) -> str:
    """What was asked for, in words."""
    if request["op"] == "policy_put":
        policy = request["policy"]
        now = "none" if policy is None else str(policy["scheme"])
        if policy is not None and policy["qthresh_packets"] is not None:
            now += f" with {policy['qthresh_packets']} packets, weight {policy['weight']:g}"
        return f"asked for by {request['op']}: the policy of port {request['port']} class {request['class']} is {now}"
    counts = Counter(f"{one['update']} {one['table']}" for one in request["updates"])
    entries = ", ".join(f"{count} x {what}" for what, count in counts.items()) or "no entry"
    settings = ", ".join(request.get("settings") or ())
    return f"asked for by {request['op']}: {entries}" + (f"; settings of port/class {settings}" if settings else "")
