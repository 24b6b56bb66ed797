# SPDX-License-Identifier: Apache-2.0
"""Ten thousand new flows a second on the wire: bounded memory, no missed election, and every notification accounted for."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from fairlane_controller.measure.port import MeasureOptions
from fairlane_controller.measure.source import DIGEST_T_RES
from fairlane_controller.program import learned
from fairlane_controller.programs.qthresh.control import MANY_FLOWS_LIST_S
from fairlane_controller.state.ask import ask
from fairlane_controller.state.events import EventLog
from fairlane_controller.switch import bounded
from fairlane_controller.switch.bounded import BoundedSwitch
from fairlane_controller.switch.client import Endpoint, SwitchClient
from finsy import P4DigestEntry, SwitchOptions
from finsy.p4client import P4Client
from finsy.p4entity import P4DigestList
from finsy.proto import p4d, p4r, p4r_grpc
from learned_tools import at_port_3, flows_of, key
from live_switch import COMPILED, LiveSwitch, idle, wait_until
from live_topology import Controller, controllers
from test_controller_frames import ipv4_frame

pytestmark = pytest.mark.timed

FLOWS_PER_S = 10_000
FLOOD_S = 2.0
RSS_GROWTH_MB = 200.0


class Flood(threading.Thread):
    """A datagram of another of `flows` each time, `FLOWS_PER_S` for `FLOOD_S`; what the machine stalled in is made up for."""

    def __init__(self, switch: LiveSwitch, flows: int = 65_000) -> None:
        super().__init__(daemon=True)
        self.sent = 0
        self._flows = flows
        self._interface = switch.interfaces[1] + "x"
        payload = struct.pack("!HHHH", 1, 5001, 20, 0) + bytes(12)
        self._frame = bytearray(ipv4_frame(17, "10.0.1.1", "10.0.3.1", payload))

    def run(self) -> None:
        started = time.monotonic()
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
            wire.bind((self._interface, 0))
            while (elapsed := time.monotonic() - started) < FLOOD_S:
                for _ in range(max(0, min(500, int(elapsed * FLOWS_PER_S) - self.sent))):
                    self._frame[34:36] = struct.pack("!H", 1 + self.sent % self._flows)  # UDP source port
                    wire.send(self._frame)
                    self.sent += 1
                time.sleep(0.002)


def test_a_flood_of_new_flows_is_kept_or_counted(wired_switch: LiveSwitch) -> None:
    switch = wired_switch
    if switch.target != "embedded":
        pytest.skip("BMv2 takes fewer packets than this flood has")
    with controllers(Controller(switch.folder, "run", *idle(switch.folder, "300s"))) as (loop,):
        loop.wait_ready()
        switch.fairlane("threshold", "set", "8")
        before_mb = most_mb = loop.resident_mb()
        flood = Flood(switch)
        flood.start()
        slowest_s = 0.0
        while flood.is_alive():
            asked = time.monotonic()
            asyncio.run(ask(switch.folder, {"op": "status"}))
            slowest_s = max(slowest_s, time.monotonic() - asked)
            most_mb = max(most_mb, loop.resident_mb())
            flood.join(0.1)
        wait_until("the last entry to be written", lambda: settled(switch), 60)
        most_mb = max(most_mb, loop.resident_mb())
        status = switch.loop_status()
        counts = status["new_flows"]
        print(
            f"flood: sent {flood.sent}, {counts}, RSS {before_mb:.0f} to {most_mb:.0f} MB, answers within {slowest_s:.2f} s"
        )

        # Handled and missed together are what the switch has told.
        handled = counts["entries"] + counts["known"]
        assert handled + counts["missed"] + counts["refused"] + counts["lost"] == counts["told"]
        assert 0 < counts["told"] <= flood.sent
        assert counts["entries"] == status["flows"] == len(switch.json("p4", "table_dump", "flow_v4")["entries"])
        assert status["flows_missed"] == counts["missed"]
        # Nobody was thrown out, and people were answered meanwhile.
        assert status["connected"]
        assert not switch.events("error") + switch.events("disconnected") + switch.events("backup")
        # Bounded: memory, and what the log says of it.
        assert most_mb - before_mb < RSS_GROWTH_MB
        wait_until("all entries to be in the log", lambda: flows_in_log(switch) == counts["entries"])
        single, together = switch.events("flow"), switch.events("flows")
        periods = (together[-1]["monotonic_ns"] - single[0]["monotonic_ns"]) / 1e9 / learned.SINGLE_PERIOD_S
        assert len(single) <= (periods + 2) * learned.SINGLE_EVENTS
        assert len(together) < counts["entries"] / 10
        assert len(switch.events("flows_missed")) <= 2
        # The loop is as alive as before.
        assert switch.json("threshold", "set", "9")[0]["via"] == "loop"


def samples_wait_s(switch: LiveSwitch) -> float:
    """How long the switch lets T_res samples wait for their list."""

    async def read() -> float:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as client:
            (entry,) = await client.read_all([P4DigestEntry(DIGEST_T_RES)])
            return cast("P4DigestEntry", entry).max_timeout_ns / 1e9

    return asyncio.run(read())


def test_samples_of_many_flows_come_in_fewer_lists(wired_switch: LiveSwitch) -> None:
    switch, flows = wired_switch, MeasureOptions().few_flows + 1
    with controllers(Controller(switch.folder, "run", *idle(switch.folder, "3s"))) as (loop,):
        loop.wait_ready()
        switch.fairlane("threshold", "set", "8")
        flood = Flood(switch, flows)
        flood.start()
        wait_until("the entries of all flows", lambda: switch.loop_status()["flows"] == flows)
        wait_until("the lists of many flows", lambda: samples_wait_s(switch) == MANY_FLOWS_LIST_S)
        wait_until("the lists of few", lambda: samples_wait_s(switch) == 0.02)
        flood.join()


class FullClient:
    """A connection that tells flows faster than anybody writes, and loses some itself."""

    endpoint = Endpoint("s1", "memory")

    def __init__(self, lists: int) -> None:
        self.lists = lists
        self.written = 0

    async def digests(self, name: str) -> AsyncIterator[list[dict[str, int]]]:
        """Lists of 64 flows each, then silence."""
        assert name == "new_flow_t"
        for number in range(self.lists):
            yield [
                {"ip_version": 4, "src": 1, "dst": 2, "protocol": 6, "src_port": 64 * number + n, "dst_port": 5001}
                | {"egress_port": 3, "traffic_class": 0}
                for n in range(64)
            ]
        self.lists = 0
        await asyncio.Event().wait()

    def digests_lost(self, _name: str) -> int:
        """What the connection had no room for."""
        return 7

    async def write_each_with_reasons(self, updates: Sequence[Any]) -> dict[int, Any]:
        """Takes everything, in its time."""
        await asyncio.sleep(0)
        self.written += len(updates) // 2
        return {}


async def test_what_finds_no_room_is_counted_and_told_once(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    flows, client = flows_of(log), FullClient(lists=50)
    listening, *others = flows.jobs(cast("SwitchClient", client))
    task = asyncio.create_task(listening)
    for job in others:
        job.close()
    while client.lists:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    log.close()
    counts = flows.status()
    assert counts["told"] == 50 * 64 + 7
    assert counts["entries"] == client.written == 50 * 64
    assert counts["lost"] == 7
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    missed = [event for event in events if event["event"] == "flows_missed"]
    assert len(missed) == 1
    assert "they came faster than their entries could be written" in missed[0]["why"]


async def test_a_digest_without_room_is_counted_and_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    options = SwitchOptions(p4info=COMPILED / "qthresh.p4info.txtpb")
    switch = BoundedSwitch("s1", "127.0.0.1:1", options)
    digest = switch.p4info.digests["new_flow_t"]
    members = [p4d.P4Data(bitstring=bytes([n])) for n in (4, 1, 2, 6, 7, 8, 3, 0, 0)]
    value = p4d.P4Data(struct=p4d.P4StructLike(members=members))
    message = p4r.StreamMessageResponse(digest=p4r.DigestList(digest_id=digest.id, list_id=5, data=[value, value]))
    tell = switch._stream_digest_message  # pyright: ignore[reportPrivateUsage]
    lists = switch.read_digests("new_flow_t", queue_size=2)
    first = asyncio.ensure_future(anext(lists))
    await asyncio.sleep(0)
    for _ in range(3):
        tell(message)

    def decode(*_: object) -> None:
        pytest.fail("decoded without room")

    with monkeypatch.context() as patch:
        patch.setattr(bounded, "decode_digest", decode)
        tell(message)
    got = await first
    assert got.list_id == 5
    assert got.data == P4DigestList.decode(message, switch.p4info).data
    assert switch.digests_lost["new_flow_t"] == 4
    await cast("AsyncGenerator[P4DigestList, None]", lists).aclose()


async def test_an_answer_may_have_any_size() -> None:
    """BMv2 sends a table as one message; gRPC alone takes 4 MB."""
    entry = p4r.Entity(table_entry=p4r.TableEntry(metadata=bytes(5 << 20)))

    class Big(p4r_grpc.P4RuntimeServicer):  # pyright: ignore
        async def Read(self, request: Any, context: Any) -> AsyncIterator[p4r.ReadResponse]:
            del request, context
            yield p4r.ReadResponse(entities=[entry])

    server = grpc.aio.server()
    p4r_grpc.add_P4RuntimeServicer_to_server(Big(), server)  # pyright: ignore
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    client = P4Client(f"127.0.0.1:{port}")
    try:
        await client.open()
        call: Any = client._stub.Read(p4r.ReadRequest(), timeout=10)  # pyright: ignore
        assert [len(answer.entities) async for answer in call] == [1]
    finally:
        await client.close()
        await server.stop(None)


async def test_in_a_flood_the_flows_of_a_request_are_one_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "SINGLE_EVENTS", 3)
    monkeypatch.setattr(learned, "SINGLE_PERIOD_S", 0.05)
    log = EventLog(tmp_path / "events.jsonl")
    flows, client = flows_of(log), cast("SwitchClient", FullClient(lists=0))
    await flows.insert(client, {})
    await flows.insert(client, at_port_3(0, 1))
    await flows.insert(client, at_port_3(2, 3))  # more than the period has room for
    await flows.insert(client, at_port_3(4))
    await asyncio.sleep(0.1)
    await flows.insert(client, at_port_3(5))
    await flows.insert(client, at_port_3(*range(6, 10)))
    log.close()
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    reported = [(event["event"], event.get("slot"), event.get("flows"), event.get("first")) for event in events]
    assert reported == [
        ("flow", 0, None, None),
        ("flow", 1, None, None),
        ("flows", None, 2, str(key(2))),
        ("flow", 4, None, None),
        ("flow", 5, None, None),
        ("flows", None, 4, str(key(6))),
    ]


def flows_in_log(switch: LiveSwitch) -> int:
    """Flows that the event log says got an entry."""
    return len(switch.events("flow")) + sum(event["flows"] for event in switch.events("flows"))


def settled(switch: LiveSwitch) -> bool:
    """Whether nothing waits, and nothing more has come for a while."""
    first = switch.loop_status()["new_flows"]
    time.sleep(0.3)
    return switch.loop_status()["new_flows"] == first
