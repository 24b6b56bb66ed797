# SPDX-License-Identifier: Apache-2.0
"""`LiveSource` on real switches: what a snapshot holds, few requests for it, switches that go and come back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
import unused_ports
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.source import LiveSource
from fairlane_controller.programs.qthresh.flows import Flow, FlowKey
from fairlane_controller.state.run_state import RunState, read_run_state
from fairlane_controller.switch.bounded import BoundedSwitch
from fairlane_controller.switch.client import Endpoint, SwitchClient, endpoint_of
from live_switch import LiveSwitch

pytestmark = pytest.mark.timed

DEADLINE_S = 20.0
VIEW = "fairlane_controller.live.view"


@dataclass(frozen=True)
class Targets:
    """What `LiveSource` wants to know."""

    endpoints: tuple[Endpoint, ...]
    run: RunState | None = None


def targets_of(switch: LiveSwitch) -> Targets:
    """The topology of a live switch."""
    run = read_run_state(switch.folder)
    return Targets(tuple(endpoint_of(s) for s in run.switches), run)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers that try again at once."""
    monkeypatch.setattr(f"{VIEW}.RETRY_S", 0.05)


@contextlib.asynccontextmanager
async def source_of(switch: LiveSwitch) -> AsyncGenerator[LiveSource]:
    """Opened on a live switch."""
    async with LiveSource(targets_of(switch)) as source:
        yield source


async def until(source: LiveSource, what: str, check: Callable[[Snapshot], Any]) -> Snapshot:
    """The first snapshot for which `check` is true."""
    end = time.monotonic() + DEADLINE_S
    while True:
        snapshot = await source.snapshot()
        if check(snapshot):
            return snapshot
        assert time.monotonic() < end, f"waited for {what}: {snapshot.switches}"
        await asyncio.sleep(0.05)


def flow_entry(src: str, slot: int, weight: int = 0) -> Any:
    """An entry as the loop makes it."""
    key = FlowKey(4, _number(src), _number("10.0.3.3"), 6, 4000, 5001)
    return +key.entry(slot, Flow((3, 0), weight / 256 if weight else None))


def _number(address: str) -> int:
    a, b, c, d = map(int, address.split("."))
    return a << 24 | b << 16 | c << 8 | d


async def put_flows(switch: LiveSwitch, entries: Iterable[Any]) -> None:
    """Written as the loop would."""
    async with SwitchClient(targets_of(switch).endpoints[0], write=True) as client:
        await client.write(list(entries))


async def test_a_snapshot_of_a_switch(switch: LiveSwitch) -> None:
    await put_flows(switch, [flow_entry("10.0.1.1", 0), flow_entry("10.0.2.2", 1, weight=512)])
    async with source_of(switch) as source:
        first, second = await source.snapshot(), await source.snapshot()
    (row,) = second.switches
    assert (row.reachable, row.program, row.error) == (True, "qthresh", None)
    assert [(p.port, p.managed) for p in second.ports] == [(1, False), (3, True)]
    port = second.port("s1", 3)
    assert port is not None
    assert (port.rate_bps, port.capacity_packets, port.dropped_packets) == (2e6, 50, 0)
    classes, flows = second.objects_of_kind("policy"), second.objects_of_kind("flow")
    assert [(p["scheme"], p["qthresh_packets"], p["mode"]) for p in classes] == [("qthresh", 6, "auto")]
    assert port.values["collisions"] == 0
    assert [(f.port, f["slot"], f["qthresh_packets"], f["weight"]) for f in flows] == [(3, 0, 6, 1.0), (3, 1, 12, 2.0)]
    has_registers = switch.target == "embedded"
    assert {f["waiting_packets"] for f in flows} == {0 if has_registers else None}
    assert port.waiting_packets == (0 if has_registers else None), "what cannot be read is None, never 0"
    assert (first.interval_s, first.ports[1].tx_bps) == (None, None)
    assert second.interval_s is not None
    assert (port.tx_bps, port.utilisation, flows[0]["goodput_bps"]) == (0.0, 0.0, 0.0)
    assert second.loop is None
    document = json.loads(json.dumps(second.to_json()))
    assert (document["schema"], document["flows"][1]["weight"], document["policies"][0]["policy"]) == (2, 2.0, "0")


async def test_few_requests_in_the_first_snapshot_and_one_in_those_after_the_second(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the tables, the program's cells, the columns' cells, those of all programs; then all at once."""
    await put_flows(switch, [flow_entry("10.0.1.1", 0)])
    reads: list[int] = []
    plain = BoundedSwitch.read_all

    async def counted(self: BoundedSwitch, entities: Any, on_progress: Callable[[], None] = lambda: None) -> Any:
        reads.append(len(entities))
        return await plain(self, entities, on_progress)

    monkeypatch.setattr(BoundedSwitch, "read_all", counted)
    async with source_of(switch) as source:
        await source.snapshot()
        assert len(reads) <= (4 if switch.target == "embedded" else 5), reads  # BMv2 refuses registers once
        await source.snapshot()
        del reads[:]
        for _ in range(3):
            await source.snapshot()
    assert len(reads) == 3, reads


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
async def test_a_long_answer_is_no_silent_switch(switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of thousands of flows take longer than the time limit, which is for a switch that says nothing."""
    plain, silent = SwitchClient.read_all, False

    async def slow(self: SwitchClient, entities: Any, on_progress: Callable[[], None] = lambda: None) -> Any:
        for _ in range(15):
            await asyncio.sleep(60.0 if silent else 0.1)
            on_progress()
        return await plain(self, entities, on_progress)

    monkeypatch.setattr(SwitchClient, "read_all", slow)
    monkeypatch.setattr(f"{VIEW}.READ_TIMEOUT_S", 1.0)
    async with source_of(switch) as source:
        (row,) = (await source.snapshot()).switches
        assert (row.error, row.program) == (None, "qthresh")
        silent = True
        (row,) = (await source.snapshot()).switches
        assert row.error is not None
        assert "did not answer a read within 1 s" in row.error["message"]


async def test_a_switch_that_goes_and_comes_back(switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{VIEW}.CONNECT_TIMEOUT_S", 600.0)
    async with source_of(switch) as source:
        assert (await source.snapshot()).switches[0].reachable
        switch.kill()
        gone = await until(source, "the switch to be gone", lambda s: not s.switches[0].reachable)
        assert (gone.ports, gone.objects) == ((), ())
        assert gone.switches[0].error is not None
        assert gone.switches[0].error["code"] == "switch_unreachable"
        # A snapshot does not wait for a switch that is away: that would take as long as an attempt to connect.
        await asyncio.wait_for(source.snapshot(), DEADLINE_S)
        await asyncio.to_thread(switch.start)
        bare = await until(source, "the switch to be back", lambda s: s.switches[0].reachable)
        assert (bare.switches[0].program, bare.ports) == (None, ())
        await asyncio.to_thread(switch.fairlane, "config", "init", "--scheme", "drop_tail")
        whole = await until(source, "the program", lambda s: s.switches[0].program == "qthresh" and s.ports)
        assert [one["scheme"] for one in whole.objects_of_kind("policy")] == ["drop_tail"]


async def test_one_that_falls_silent_holds_a_snapshot_up_for_one_time_limit(switch: LiveSwitch) -> None:
    assert switch.process is not None
    async with source_of(switch) as source:
        assert (await source.snapshot()).switches[0].error is None
        switch.process.send_signal(signal.SIGSTOP)
        try:
            began_s = time.monotonic()
            (row,) = (await source.snapshot()).switches
            assert time.monotonic() - began_s < 4.0
        finally:
            switch.process.send_signal(signal.SIGCONT)
    assert row.error is not None
    assert "did not answer a read within 2 s" in row.error["message"]


async def test_one_that_never_answers_does_not_hold_the_others_up(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, waiting = targets_of(switch), asyncio.Event()
    away = Endpoint("s2", f"127.0.0.1:{unused_ports.unused()}")

    class Away(SwitchClient):
        """The first attempt fails, the second one never ends."""

        async def __aenter__(self) -> SwitchClient:
            if attempts:
                waiting.set()
                await asyncio.Event().wait()
            attempts.append(self)
            raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, "nobody answers")

    def client_of(endpoint: Endpoint, **options: Any) -> SwitchClient:
        return (Away if endpoint == away else SwitchClient)(endpoint, **options)

    attempts: list[SwitchClient] = []
    targets = Targets((away, *there.endpoints), there.run)
    monkeypatch.setattr(f"{VIEW}.SwitchClient", client_of)
    async with LiveSource(targets) as source:
        first = await source.snapshot()
        assert [(row.switch, row.reachable) for row in first.switches] == [("s2", False), ("s1", True)]
        while not waiting.is_set():
            assert (await source.snapshot()).port("s1", 3) is not None
        assert (await source.snapshot()).port("s1", 3) is not None


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
async def test_a_topology_that_is_started_anew_is_found_by_its_run_state(switch: LiveSwitch) -> None:
    async with source_of(switch) as source:
        await source.snapshot()
        switch.kill()
        switch.grpc_port = unused_ports.unused()
        switch.write_state()
        await asyncio.to_thread(switch.start)
        await asyncio.to_thread(switch.fairlane, "config", "init", "--scheme", "qthresh")
        snapshot = await until(source, "the new address", lambda s: bool(s.ports))
        assert snapshot.switches[0].grpc.endswith(f":{switch.grpc_port}")


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
async def test_the_loop_is_in_the_picture_and_digests_stay_its_own(switch: LiveSwitch) -> None:
    async with source_of(switch) as source:
        await source.snapshot()
        with switch.loop():
            snapshot = await until(source, "the loop", lambda s: s.loop and s.loop[0].connected)
            assert snapshot.loop is not None
            port = snapshot.port("s1", 3)
            assert port is not None
            assert port.measured is not None
            assert "bw_bps" in port.measured
            assert (await asyncio.to_thread(switch.loop_status))["connected"], "a reader takes nothing from the loop"
        ended = await until(source, "the loop's end", lambda s: s.loop is None)
        assert ended.loop_error is None


async def test_a_fault_while_connecting_is_an_error_of_the_row_and_the_next_attempt_is_made(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[SwitchClient] = []
    plain = SwitchClient.__aenter__

    async def broken_once(self: SwitchClient) -> SwitchClient:
        attempts.append(self)
        if len(attempts) == 1:
            raise KeyError("not foreseen")
        return await plain(self)

    monkeypatch.setattr(SwitchClient, "__aenter__", broken_once)
    async with source_of(switch) as source:
        (row,) = (await asyncio.wait_for(source.snapshot(), DEADLINE_S)).switches
        assert row.error is not None
        assert "unexpected answer: KeyError: 'not foreseen'" in row.error["message"]
        await until(source, "the second attempt", lambda one: bool(one.ports))
