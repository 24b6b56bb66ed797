# SPDX-License-Identifier: Apache-2.0
"""The metric `drops` is the same in every runtime: what Mininet's watch reads of a switch is what the simulator reads of it."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load
from fairlane_lab.sim.config import resolve
from fairlane_lab.sim.world import SimWorld, snapshot
from fairlane_lab.testbed import port_watch
from fairlane_lab.testbed.port_watch import PortWatch
from fairlane_switch.port_control import PortCounts

CASES = [
    ("codel-reno", {"flows": [10], "rate_bps": [2_000_000]}, "aqm_dropped"),
    ("gfr-table2", {"control": ["proposed+ WRR"]}, ""),
    ("demo", {"scheme": ["qthresh"]}, ""),
    ("demo", {"scheme": ["drop_tail"]}, ""),
]


@pytest.mark.parametrize(("experiment", "values", "counted"), CASES)
def test_mininet_counts_the_drops_that_the_simulator_counts(
    experiment: str, values: dict[str, list[Any]], counted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = expand(load(experiment), Selection(values=values, repeats=1))[0]
    world = SimWorld(resolve(one, 10**9))

    def ports_of(path: str) -> list[PortCounts]:
        rows = (row for row in json.loads(world.simulation.ports()) if row["switch"] == path)
        names = ("rate_bps", "queue_packets", "rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "refused_packets")
        return [
            PortCounts(port=row["port"], drops=row["drops"], **{name: row.get(name, 0) for name in names})
            for row in rows
        ]

    monkeypatch.setattr(port_watch, "read_ports", ports_of)
    monkeypatch.setattr(port_watch, "READ_MAX_S", 60.0)
    bed: Any = SimpleNamespace(
        target="embedded",
        ports=dict.fromkeys(world.config.managed),
        part=world.part,
        network=SimpleNamespace(switches={name: SimpleNamespace(control=name) for name in world.managed_switches()}),
    )
    watch = PortWatch(bed, 0.1, False, ())

    async def observe() -> tuple[dict[Any, int], Any]:
        await world.set_up()
        await asyncio.sleep(6.0)
        for switch in world.managed_switches():
            async with world.client(world.endpoint(switch)) as client:
                await watch.read_ports(client)
        seen = await snapshot(world)
        return {key: seen.ports[key]["drops"] for key in world.config.managed}, seen.of_program

    try:
        drops, of_program = world.loop.run_until_complete(observe())
    finally:
        world.close()
    assert {key: value for key, ((_, value),) in watch.samples.drops.items()} == drops
    assert sum(drops.values()) > 0
    if counted:
        assert sum(drops.values()) == sum(values[counted] for ports in of_program.values() for values in ports.values())


@pytest.mark.parametrize("name", ["qthresh-table2", "gfr-table2"])
def test_mininet_reads_what_a_program_sent_and_the_queues_of_flows_that_the_simulator_has(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = expand(load(name), Selection(repeats=1))
    one = next(each for each in points if each.control.scheme not in ("drop_tail", "lanes"))
    world = SimWorld(resolve(one, 10**9))
    monkeypatch.setattr(port_watch, "READ_MAX_S", 60.0)
    ((switch, port),) = world.config.managed
    part = world.part
    bed: Any = SimpleNamespace(target="bmv2", ports={(switch, port): None}, part=part)
    sinks = frozenset(each.key.dst_port for each in world.config.flows)
    watch = PortWatch(bed, 0.1, True, list(sinks))

    async def observe() -> None:
        await world.set_up()
        await asyncio.sleep(6.0)
        async with world.client(world.endpoint(switch)) as client:
            await watch.read_counters(client)
            if part.flow_register:
                await watch.find_flows(client)
                await watch.read_flows(client)

    try:
        world.loop.run_until_complete(observe())
        rows = json.loads(world.simulation.ports())
        sent = next(row for row in rows if (row["switch"], row["port"]) == (switch, port))
    finally:
        world.close()
    samples, key = watch.samples, (switch, port)
    ((_, tx_packets),) = samples.tx_packets[key]
    ((_, tx_bytes),) = samples.tx_bytes[key]
    assert tx_packets == pytest.approx(sent["tx_packets"] + sent["waiting_packets"], abs=2)
    assert tx_bytes == pytest.approx(sent["tx_bytes"] + 1014 * sent["waiting_packets"], rel=0.01)
    if part.flow_register:
        of_flows = [value for ((_, value),) in samples.flows.values()]
        assert len(of_flows) == len(world.config.flows)
        assert sum(of_flows) == pytest.approx(sent["waiting_packets"], abs=1)
