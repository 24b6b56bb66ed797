# SPDX-License-Identifier: Apache-2.0
"""Which VCs are active by their counters, and what the agent writes when that changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gfr_configs as configs
import pytest
from fairlane_controller.errors import FairlaneError
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.config import GfrState
from fairlane_controller.programs.gfr.control import GfrControl, GfrTopology
from fairlane_controller.programs.gfr.plan import GfrPlan, make_plan
from fairlane_controller.switch.client import Endpoint
from finsy import P4TableAction, P4TableEntry
from finsy.proto import p4r
from gfr_memory import RESOURCE_EXHAUSTED, MemorySwitch, clients_of, deploy

LINE_BPS = 51_840_000


class Log:
    """Events, remembered."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        """One event."""
        self.events.append({"event": event, **fields})


# ---- the agent -------------------------------------------------------------------------------------------------------


async def started() -> tuple[MemorySwitch, GfrControl, GfrPlan, Log]:
    """A switch with five VCs, and an agent that has not looked yet."""
    switch, log = MemorySwitch(), Log()
    plan = make_plan(configs.config(), GfrState(), None, "x")
    await deploy(plan, clients_of(switch))
    return switch, control_of(plan, log), plan, log


def control_of(plan: GfrPlan, log: Log) -> GfrControl:
    """What keeps s1."""
    control = SwitchAgent(Endpoint("s1", "memory"), GfrTopology(plan=plan), log).control
    assert isinstance(control, GfrControl)
    return control


def n_of(switch: MemorySwitch) -> int:
    """N in the port's entry."""
    (entry,) = switch.entries(program.TABLE_PORT_SCHEME)
    assert isinstance(entry.action, P4TableAction)
    return int(entry.action.args["n"])


def w_of(switch: MemorySwitch) -> dict[int, int]:
    """w by VC id."""

    def w(entry: P4TableEntry) -> int:
        assert isinstance(entry.action, P4TableAction)
        return int(entry.action.args["w"])

    return {int(entry["vc"]): w(entry) for entry in switch.entries(program.TABLE_VC_SHARE)}


async def active_after(polls: list[tuple[float, int]]) -> list[bool]:
    """Whether vc1 is active after each poll, (seconds, frames of it since the poll before); vc2 sends all the time."""
    switch, agent, _, _ = await started()
    found: list[bool] = []
    async with clients_of(switch)("s1") as client:
        for at_s, frames in polls:
            switch.arrive("vc_share", frames, egress_port=6, vc=1)
            switch.arrive("vc_share", 1, egress_port=6, vc=2)
            await agent.poll(client, at_s)
            active = agent.status()["ports"][0]["active"]
            assert "vc2" in active
            found.append("vc1" in active)
    return found


async def test_a_vc_is_active_for_t_active_after_its_last_arrival() -> None:
    polls = [(10.0, 0), (11.0, 0), (12.0, 0), (13.0, 1), (14.0, 0), (15.0, 0)]
    assert await active_after(polls) == [True, True, False, True, True, False], "at first nothing is known of it"


async def test_a_counter_that_began_anew_is_an_arrival() -> None:
    assert await active_after([(0.0, 100), (5.0, 0), (6.0, -97)]) == [True, False, True]


async def test_one_batch_of_modifies_when_the_active_vcs_change() -> None:
    switch, agent, _, log = await started()
    async with clients_of(switch)("s1") as client:
        assert not await agent.poll(client, 0.0)  # all count as active, as the entries say already
        for at_s in (1.0, 2.0):
            switch.arrive("vc_share", 10, egress_port=6, vc=1)
            switch.arrive("vc_share", 10, egress_port=6, vc=2)
            written = await agent.poll(client, at_s)
        assert written
        assert not await agent.poll(client, 2.5)
    assert len(switch.batches) == 2
    assert {update.type for update in switch.batches[1]} == {p4r.Update.MODIFY}
    assert n_of(switch) == 2
    w = w_of(switch)
    assert w[1] == round(2e6 + (LINE_BPS - 6e6) / 2)
    assert w[5] == round(10e6 + (LINE_BPS - 16e6) / 3)  # what it would get if it began now
    last = log.events[-1]
    assert (last["n"], last["active"], last["stopped"]) == (2, ["vc1", "vc2"], ["vc3", "vc4", "vc5"])
    assert last["why"] == "nothing of vc3, vc4, vc5 arrived for 2 s: N is 2"
    assert (last["w_bps"]["vc1"], last["w_bps"]["vc2"]) == (24_920_000, 26_920_000)
    assert log.events[0]["why"].startswith("frames of vc1, vc2, vc3, vc4, vc5 arrived: N is 5")
    assert agent.status()["ports"][0]["n"] == 2


async def test_nobody_active_leaves_n_at_one() -> None:
    switch, agent, _, _ = await started()
    async with clients_of(switch)("s1") as client:
        await agent.poll(client, 0.0)
        await agent.poll(client, 5.0)
    assert n_of(switch) == 1
    assert set(w_of(switch).values()) == {LINE_BPS}


async def test_a_refused_batch_is_taken_back_and_tried_again() -> None:
    switch, agent, _, _ = await started()
    held = switch.state()
    number = switch.p4info.tables[program.TABLE_VC_SHARE].id
    async with clients_of(switch)("s1") as client:
        await agent.poll(client, 0.0)
        calls = iter((0, 0, RESOURCE_EXHAUSTED))

        def refuse(update: p4r.Update) -> int:
            return next(calls, 0) if update.entity.table_entry.table_id == number else 0

        switch.refuse = refuse
        with pytest.raises(FairlaneError, match=r"refused 1 update:"):
            await agent.poll(client, 5.0)
        assert switch.state() == held
        assert await agent.poll(client, 6.0)
    assert n_of(switch) == 1


async def test_the_status_names_what_the_switch_refuses() -> None:
    _, control, _, _ = await started()
    agent = control.session
    assert isinstance(agent, SwitchAgent)
    assert agent.status()["refused"] == []
    agent.note_refusal("digest port_report_t", "no room", None)
    assert agent.status()["refused"] == ["digest port_report_t"]


async def test_a_new_configuration_while_it_runs() -> None:
    switch, agent, plan, _ = await started()
    async with clients_of(switch)("s1") as client:
        await agent.poll(client, 0.0)
        await agent.poll(client, 5.0)
        data = configs.data()
        data["vcs"] = [data["vcs"][0], {"name": "gold", "mcr": "6Mbit", "match": [{"switch": "s1", "ingress_port": 7}]}]
        new = make_plan(configs.state_of(data), plan.state, None, "x")
        await deploy(replace(new, active={("s1", 6): ()}), clients_of(switch))
        assert n_of(switch) == 1
        agent.topology.plan = new
        assert await agent.poll(client, 6.0)  # gold is new: active until T_active says otherwise
        assert n_of(switch) == 1
        assert agent.status()["ports"][0]["active"] == ["gold"]
        switch.arrive("vc_share", 1, egress_port=6, vc=1)
        assert await agent.poll(client, 7.0)
    assert n_of(switch) == 2
    assert sorted(w_of(switch).values()) == [round(2e6 + 21.92e6), round(6e6 + 21.92e6)]
