# SPDX-License-Identifier: Apache-2.0
"""The controller's GFR code on gfr.p4 itself, in virtual time: VCs that come and go, schemes switched under load, VCs deleted."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.program.registry import load_program
from fairlane_controller.program.setup import apply_plan, read_rows, set_up_program
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.config import GfrState, Scheme
from fairlane_controller.programs.gfr.control import GfrTopology
from fairlane_controller.programs.gfr.plan import GfrPlan, make_plan
from fairlane_controller.switch.reading import BatchReading
from fairlane_lab.programs import find_program
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Flow
from fairlane_lab.sim.config import resolve
from fairlane_lab.sim.world import SimWorld
from sim_scenarios import DUMBBELL, cbr, scenario

pytest.importorskip("fairlane_switch.native", reason="the simulator is not built: make setup")


CAPACITY_BPS = 2_000_000
PORT = 3


class Log:
    """Events with the instant of the loop at which they were written."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        """One event."""
        self.events.append({"event": event, "t_s": round(asyncio.get_running_loop().time(), 3), **fields})


def plan_of(before: GfrState | None = None, vcs: tuple[int, ...] = (1, 2), **port: Any) -> GfrPlan:
    """s1's port 3 with VC `vc1` from h1 (0.5 Mbit/s) and `vc2` from h2 (1 Mbit/s)."""
    bottleneck = {
        "switch": "s1",
        "port": PORT,
        "capacity": CAPACITY_BPS,
        "queues": "fifo",
        "lbo_cells": 100,
        "hbo_cells": 300,
        "qmax_cells": 400,
    }
    made = [
        {"name": f"vc{n}", "mcr": 500_000 * n, "match": [{"switch": "s1", "ingress_port": n, "src": f"10.0.{n}.0/24"}], "edge": [f"s1:{n}"]}
        for n in vcs
    ]  # fmt: skip
    return make_plan(
        GfrState.model_validate({"ports": [{**bottleneck, **port}], "vcs": made}), before or GfrState(), None, "test"
    )


def world_of(*flows: Flow, **port: Any) -> SimWorld:
    """The dumbbell with room for 400 packets at the bottleneck, and `port`'s further options there; its switches run gfr.p4."""
    topology = copy.deepcopy(DUMBBELL)
    topology["switches"]["s1"]["ports"]["3"] |= {"queue_packets": 400, **port}
    config = resolve(scenario(*flows, topology=topology), 20_000_000)
    world = SimWorld(replace(config, program=find_program("gfr")))
    world.loop.stop_on_messages = False
    return world


async def set_up(world: SimWorld, plan: GfrPlan) -> None:
    """Program, routes and plan."""
    for state in world.run_state.switches:
        async with world.client(world.endpoint(state.name), write=True) as client:
            await set_up_program(client, load_program("gfr"), plan, state)


STEADY = (cbr("a", "h1", 1_200_000), cbr("b", "h2", 600_000))
"""1.2 and 0.6 Mbit/s of payload for a line of 2 Mbit/s: a queue, and no drop."""


@pytest.fixture
def steady() -> Iterator[SimWorld]:
    """`STEADY` on the dumbbell."""
    world = world_of(*STEADY)
    yield world
    world.close()


async def seen(world: SimWorld, plan: GfrPlan) -> dict[str, Any]:
    """The bottleneck with its VCs, as the views have them."""
    names = {f"id {number}": vc for vc, number in plan.state.numbers[""].items()}
    async with world.client(world.endpoint("s1")) as client:
        rows = await read_rows(client, load_program("gfr"))
    (port,) = (row for row in rows if not row.kind)
    return {**port.values, "vcs": [{**row.values, "vc": names[row.key]} for row in rows if row.kind == "vc"]}


async def accepted_without_vc(world: SimWorld) -> int:
    """Frames of no VC that the bottleneck accepted."""
    verdicts = [verdict for verdict in program.Verdict if verdict.accepted]
    indices = [program.verdict_index(program.NO_VC_SLOT + PORT, clp, one) for clp in (0, 1) for one in verdicts]
    async with world.client(world.endpoint("s1")) as client:
        return sum(
            cell.packet_count
            for cell in (await BatchReading(client).counters(program.COUNTER_VERDICTS, indices)).values()
        )


async def until(t_s: float) -> None:
    """Let virtual time pass to an instant."""
    await asyncio.sleep(t_s - asyncio.get_running_loop().time())


def test_n_and_w_follow_the_vcs_that_send() -> None:
    world = world_of(cbr("a", "h1", 400_000, stop_s=12.0), cbr("b", "h2", 400_000, start_s=3.4, stop_s=6.2))
    log, plan = Log(), plan_of()
    shares: dict[float, tuple[int, dict[str, int]]] = {}

    async def main() -> None:
        await set_up(world, plan)
        agent = SwitchAgent(world.endpoint("s1"), GfrTopology(plan=plan), log, client_factory=world.client)
        task = asyncio.create_task(agent.run())
        for t_s in (0.5, 2.5, 4.5, 9.5, 14.5):
            await until(t_s)
            row = await seen(world, plan)
            shares[t_s] = row["active_vcs"], {vc["vc"]: vc["w_bps"] for vc in row["vcs"]}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not [event for event in log.events if event["event"] == "error"]

    try:
        world.loop.run_until_complete(main())
    finally:
        world.close()
    both = {"vc1": 750_000, "vc2": 1_250_000}
    first = {"vc1": CAPACITY_BPS, "vc2": both["vc2"]}  # vc2 would begin with what it had beside vc1
    nobody = {"vc1": CAPACITY_BPS, "vc2": CAPACITY_BPS}
    assert shares == {0.5: (2, both), 2.5: (1, first), 4.5: (2, both), 9.5: (1, first), 14.5: (1, nobody)}
    told = [(e["t_s"], e["n"], e["started"], e["stopped"]) for e in log.events if e["event"] == "gfr_active"]
    assert told == [
        (0.0, 2, ["vc1", "vc2"], []), (2.0, 1, [], ["vc2"]), (4.0, 2, ["vc2"], []), (9.0, 1, [], ["vc2"]), (14.0, 0, [], ["vc1"]),
    ]  # fmt: skip


def test_what_the_line_drains_is_measured_and_followed(steady: SimWorld) -> None:
    log = Log()
    plan = replace(plan_of(capacity=2 * CAPACITY_BPS, follow_capacity=True), run=steady.run_state)

    async def main() -> tuple[dict[str, Any], dict[str, Any]]:
        await set_up(steady, plan)
        agent = SwitchAgent(steady.endpoint("s1"), GfrTopology(plan=plan), log, client_factory=steady.client)
        task = asyncio.create_task(agent.run())
        await until(8.0)
        (values,) = agent.control.measurements()
        row = await seen(steady, plan)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return values, row

    steady.loop.stop_on_messages = True
    measured, row = steady.loop.run_until_complete(main())
    (event,) = [event for event in log.events if event["event"] == "gfr_capacity"]
    assert event["followed"]
    assert event["measured_bps"] == pytest.approx(CAPACITY_BPS, rel=0.001)
    assert measured["bw_bps"]["value"] == pytest.approx(CAPACITY_BPS, rel=0.001)
    assert measured["tau_s"]["value"] == pytest.approx(0.002, rel=0.02)
    assert (row["lbo_cells"], row["hbo_cells"]) == (64, 150), "at least two frames, and half"
    assert sum(vc["w_bps"] for vc in row["vcs"]) == pytest.approx(CAPACITY_BPS, rel=0.001)


@pytest.mark.parametrize("port", [{}, {"scheduler": "wrr"}], ids=["fifo", "fifo and wrr"])
def test_schemes_are_switched_under_load_without_a_frame_lost(port: dict[str, Any]) -> None:
    """Every 250 ms another scheme, and with a scheduler also another kind of queues, while frames wait."""
    try:
        world = world_of(*STEADY, **port)
    except RunError as problem:
        if "unknown field `scheduler`" not in str(problem):
            raise
        pytest.skip("the simulator was built before its ports had a scheduler: make setup")
    kinds = ["fifo", "wrr"] if port else ["fifo"]
    first = plan_of(scheme="drop_tail")
    waiting: list[int] = []

    async def main() -> dict[str, Any]:
        await set_up(world, first)
        plan, at_s = first, 0.0
        for number, scheme in enumerate([*get_args(Scheme)] * 8):
            at_s += 0.25
            await until(at_s)
            waiting.append((await seen(world, plan))["waiting_cells"])
            plan = plan_of(plan.state, scheme=scheme, queues=kinds[number // 3 % len(kinds)])
            async with world.client(world.endpoint("s1"), write=True) as client:
                await apply_plan(client, load_program("gfr"), plan)
            assert (await seen(world, plan))["scheme"] == scheme
        return await seen(world, plan)

    try:
        row = world.loop.run_until_complete(main())
        ends: list[dict[str, Any]] = json.loads(world.simulation.flows())
    finally:
        world.close()
    counted = {vc["vc"]: (vc["arrived_packets"], vc["accepted_packets"], vc["refused_packets"]) for vc in row["vcs"]}
    assert all(arrived == accepted > 800 and refused == 0 for arrived, accepted, refused in counted.values()), counted
    assert max(waiting) > 0  # there was a queue to lose something from
    sent, got = sum(flow["sent_segments"] for flow in ends), sum(flow["received_bytes"] for flow in ends) / 972
    assert 0 <= sent - got < 20  # on their way or waiting


def test_a_deleted_vc_leaves_no_cell_behind(steady: SimWorld) -> None:
    """Its frames are of no VC from the next one on, and the other VC has the whole line."""
    plan = plan_of()

    async def main() -> tuple[dict[str, Any], dict[str, Any], int, list[int]]:
        await set_up(steady, plan)
        await until(2.0)
        before = await seen(steady, plan)
        assert not await accepted_without_vc(steady)
        alone = plan_of(plan.state, vcs=(1,))
        async with steady.client(steady.endpoint("s1"), write=True) as client:
            await apply_plan(client, load_program("gfr"), alone)
            await until(6.0)
            after = await seen(steady, alone)
            cells = await BatchReading(client).registers(program.REGISTER_VC_CELLS, (0, 1, program.NO_VC_SLOT + PORT))
        assert cells is not None
        accepted = await accepted_without_vc(steady)
        return before, after, accepted, [cells[0], cells[1], cells[program.NO_VC_SLOT + PORT]]

    before, after, accepted, cells = steady.loop.run_until_complete(main())
    assert [vc["vc"] for vc in before["vcs"]] == ["vc1", "vc2"]
    (vc1,) = after["vcs"]
    assert vc1["w_bps"] == CAPACITY_BPS
    assert accepted > 200
    assert cells[1] == 0
    assert sum(cells) == after["waiting_cells"]


def test_the_edge_tags_what_is_above_mcr(steady: SimWorld) -> None:
    """In two seconds vc1 sends 1.2 Mbit/s of payload with 0.5 Mbit/s guaranteed, vc2 0.6 with 1: CLP 1 is vc1's alone."""
    plan = plan_of(scheme="proposed")

    async def main() -> dict[str, Any]:
        await set_up(steady, plan)
        await until(10.0)
        return await seen(steady, plan)

    row = steady.loop.run_until_complete(main())
    one, two = (
        {clp: sum(v.get(clp, 0) for v in vc["verdicts"].values()) for clp in ("clp0", "clp1")} for vc in row["vcs"]
    )
    frames_a_second = 1_200_000 / (8 * 972)
    share = 500_000 / (frames_a_second * 21 * 424)  # MCR over the line rate of its frames of 1000 bytes, 21 cells each
    burst = 200 / 21
    total = one["clp0"] + one["clp1"]
    assert one["clp0"] == pytest.approx(share * total + burst, rel=0.03)
    assert two["clp1"] == 0


def test_a_thousand_vcs_are_applied_and_left_alone() -> None:
    world = world_of(cbr("a", "h1", 400_000, stop_s=1.0))
    vcs = [
        {"name": f"vc{n}", "mcr": 1_000, "match": [{"switch": "s1", "src": f"10.{1 + n // 200}.{n % 200}.0/24"}], "edge": ["s1:1"]}
        for n in range(1000)
    ]  # fmt: skip
    port = {
        "switch": "s1",
        "port": PORT,
        "capacity": CAPACITY_BPS,
        "queues": "fifo",
        "lbo_cells": 100,
        "hbo_cells": 300,
        "qmax_cells": 400,
    }
    plan = make_plan(GfrState.model_validate({"ports": [port], "vcs": vcs}), GfrState(), None, "test")

    async def main() -> tuple[int, int]:
        await set_up(world, plan)
        async with world.client(world.endpoint("s1"), write=True) as client:
            again = await apply_plan(client, load_program("gfr"), plan)
            return len(await client.read_table(program.TABLE_VC_SHARE)), again

    try:
        assert world.loop.run_until_complete(main()) == (1000, 0)
    finally:
        world.close()
