# SPDX-License-Identifier: Apache-2.0
"""The controller's client on a simulated switch: entries, refusals, digests and idle notifications in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.measure.source import DIGEST_PORT_REPORT
from fairlane_controller.programs.qthresh.lab import key_of
from fairlane_controller.programs.qthresh.names import Scheme
from fairlane_controller.programs.qthresh.policies import Policy, limit_entry, read_managed
from fairlane_controller.programs.qthresh.settings import QthreshPort
from fairlane_controller.state.run_state import PortState
from fairlane_controller.switch.changeset import put_entries
from fairlane_controller.switch.client import SwitchClient
from fairlane_lab.programs import find_program
from fairlane_lab.sim.client import SimSwitch
from fairlane_lab.sim.config import resolve
from fairlane_lab.sim.world import SimWorld
from finsy import GRPCStatusCode, P4Schema
from finsy.p4entity import decode_stream
from finsy.proto import p4d, p4r
from sim_scenarios import cbr, scenario

pytest.importorskip("fairlane_switch.native", reason="the simulator is not built: make setup")
Result = TypeVar("Result")


@pytest.fixture
def world() -> Iterator[SimWorld]:
    """A dumbbell with one UDP flow of 200 kbit/s from 1 s to 3 s, its switches set up, s1's port 3 managed."""
    made = SimWorld(resolve(scenario(cbr("a", "h1", 200_000, start_s=1.0, stop_s=3.0)), 20_000_000))
    made.loop.stop_on_messages = True
    made.loop.run_until_complete(made.set_up())
    yield made
    made.close()


def with_client(world: SimWorld, work: Callable[[SwitchClient], Awaitable[Result]]) -> Result:
    """Run `work` with a writing client on s1, for at most 10 s of virtual time."""

    async def main() -> Result:
        async with world.client(world.endpoint("s1"), write=True) as client:
            return await asyncio.wait_for(work(client), 10.0)

    return world.loop.run_until_complete(main())


def test_what_is_written_is_read_back_and_right_entries_are_left_alone(world: SimWorld) -> None:
    async def work(client: SwitchClient) -> tuple[Any, ...]:
        entries = [
            limit_entry(PortState(port=3, queue_packets=40), QthreshPort()),
            Policy(3, 0, Scheme.QTHRESH, 7, weight=1.5).entry,
        ]
        written = [await put_entries(client, entries) for _ in range(2)]
        return written, (await read_managed(client)).ports[3].limit_packets, (await read_managed(client))[1][3, 0]

    written, packets, policy = with_client(world, work)
    assert written == [2, 0]
    assert packets == 40
    assert (policy.qthresh_packets, policy.weight) == (7, 1.5)
    assert world.simulation.now_ns == 0


def test_a_refused_update_is_named_and_the_good_ones_are_applied(world: SimWorld) -> None:
    key = key_of(world.config.flows[0])  # the set-up gave it slot 0

    async def work(client: SwitchClient) -> set[tuple[int, GRPCStatusCode]]:
        with pytest.raises(FairlaneError, match=r"switch s1 .* refused 1 update: update 0: ALREADY_EXISTS") as caught:
            await client.write([+key.entry(5)])
        assert caught.value.code is ErrorCode.REFUSED
        with pytest.raises(FairlaneError, match="polciy"):
            await client.read_table("polciy")
        found = await client.write_each_with_reasons(
            [+limit_entry(PortState(port=2, queue_packets=9), QthreshPort()), +key.entry(5)]
        )
        return {(index, refusal.code) for index, refusal in found.items()}

    assert with_client(world, work) == {(1, GRPCStatusCode.ALREADY_EXISTS)}

    async def managed(client: SwitchClient) -> set[int]:
        return set((await read_managed(client))[0])

    assert with_client(world, managed) == {2, 3}


def test_a_switch_without_a_program_says_so(world: SimWorld) -> None:
    native = pytest.importorskip("fairlane_switch.native")
    bare = native.Simulation(json.dumps(world.config.document())).p4rt("s1")
    world.switches["s1"] = SimSwitch("s1", bare, find_program("qthresh").schema, native.P4RuntimeError)

    async def work(client: SwitchClient) -> None:
        await client.read_table("policy")

    with pytest.raises(FairlaneError, match="switch s1 at virtual-time has no program yet") as caught:
        with_client(world, work)
    assert caught.value.code is ErrorCode.NO_PIPELINE


def test_digests_come_at_their_instant_to_the_one_who_listens(world: SimWorld) -> None:
    key = key_of(world.config.flows[0])

    async def work(client: SwitchClient) -> tuple[float, list[dict[str, Any]]]:
        await client.write([-key.entry(0)])
        await client.enable_digest("new_flow_t", max_list=1, max_timeout_s=0.02)
        async for values in client.digests("new_flow_t"):
            return asyncio.get_running_loop().time(), values
        raise AssertionError

    at_s, values = with_client(world, work)
    (value,) = values
    assert (value["src_port"], value["dst_port"], value["egress_port"]) == (key.src_port, key.dst_port, 3)
    assert int(value["src"]) == int(key.src)
    assert 1.001 < at_s < 1.004  # the flow's start, 1 ms of access link, its frame's 0.8 ms


def test_an_entry_that_aged_out_is_told(world: SimWorld) -> None:
    key = key_of(world.config.flows[0])

    async def work(client: SwitchClient) -> tuple[float, list[str]]:
        await client.write([-key.entry(0), +replace(key.entry(3), idle_timeout_ns=2 * 10**9)])
        async for notification in client.switch.read_idle_timeouts():
            return asyncio.get_running_loop().time(), [entry.table_id for entry in notification]
        raise AssertionError

    at_s, tables = with_client(world, work)
    assert tables == ["flow_v4"]
    assert 2.0 <= at_s < 2.5 or 5.0 <= at_s < 5.5  # since it was written, or since its last packet


def test_our_decoding_of_a_digest_is_finsy_s() -> None:
    schema: P4Schema = find_program("qthresh").schema
    digest = schema.digests[DIGEST_PORT_REPORT]
    members = [p4d.P4Data(bitstring=bytes([1, number])) for number in range(8)]
    message = p4r.StreamMessageResponse(
        digest=p4r.DigestList(
            digest_id=digest.id, list_id=7, data=[p4d.P4Data(struct=p4d.P4StructLike(members=members))]
        )
    )

    class Once:
        def messages(self) -> list[bytes]:
            return [message.SerializeToString()]

    switch = SimSwitch("s1", cast("Any", Once()), schema, RuntimeError)

    async def main() -> Any:
        lists = switch.read_digests(DIGEST_PORT_REPORT)
        waiting = asyncio.ensure_future(anext(lists))
        await asyncio.sleep(0)
        switch.deliver()
        return await waiting

    assert asyncio.run(main()) == decode_stream(message, schema)
