# SPDX-License-Identifier: Apache-2.0
"""The comparison of what a program counts with what waits: what is certainly wrong is set right, and nothing else is touched."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, cast

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortInfo, PortsClient
from fairlane_controller.measure import occupancy
from fairlane_controller.measure.occupancy import CountedState, OccupancyKeeper
from fairlane_controller.programs.gfr.names import COUNTED as GFR
from fairlane_controller.programs.qthresh.names import COUNTED as QTHRESH
from fairlane_controller.switch.client import SwitchClient
from finsy import P4CounterData, P4CounterEntry, P4RegisterEntry
from finsy.p4entity import P4Entity

PORTS = (1, 3)


class Model:
    """A switch that counts: registers, queues and what was admitted; `between` happens before each of its answers."""

    def __init__(self, state: CountedState = QTHRESH) -> None:
        self.state = state
        self.registers: dict[tuple[str, int], int] = {}
        self.waiting: dict[int, int] = dict.fromkeys(PORTS, 0)
        self.admitted: dict[int, int] = dict.fromkeys(PORTS, 0)
        self.writes = 0
        self.asked_queues = 0
        self.reads_registers = True
        self.serves_gnmi = True
        self.endpoint = "s1"

    def between(self) -> None:
        """Nothing happens."""

    def admit(self, port: int) -> None:
        self.admitted[port] += 1
        self.waiting[port] += 1
        self.add(port, 1)

    def leave(self, port: int) -> None:
        if self.waiting[port]:
            self.waiting[port] -= 1
            self.add(port, -1)

    def add(self, port: int, packets: int) -> None:
        """Each port's packets are of the slot of its number."""
        for cell in [*((name, port) for name in self.state.of_port), (self.state.of_slot, port)]:
            self.registers[cell] = max(0, self.registers.get(cell, 0) + packets)

    async def read_entities(self, entities: Sequence[Any]) -> list[P4Entity]:
        self.between()
        if isinstance(entities[0], P4CounterEntry):
            return [self._counter(entity) for entity in entities]
        if not self.reads_registers:
            raise FairlaneError(ErrorCode.REFUSED, "registers are not read")
        return [
            P4RegisterEntry(
                _name(entity), index=entity.index, data=self.registers.get((_name(entity), entity.index), 0)
            )
            for entity in entities
        ]

    def _counter(self, entity: Any) -> P4CounterEntry:
        assert entity.counter_id == "admitted"
        port, cell = divmod(entity.index, self.state.admitted_cells)
        packets = 0 if cell else self.admitted.get(port, 0)
        return P4CounterEntry("admitted", index=entity.index, data=P4CounterData(packet_count=packets))

    async def write(self, updates: Sequence[Any]) -> None:
        self.between()
        self.writes += 1
        for update in updates:
            self.registers[_name(update), _index(update)] = 0

    async def ports(self) -> list[PortInfo]:
        self.between()
        self.asked_queues += 1
        return [PortInfo(port, f"eth{port}", waiting_packets=packets) for port, packets in self.waiting.items()]

    async def __aenter__(self) -> Model:
        if not self.serves_gnmi:
            raise FairlaneError(ErrorCode.REFUSED, "no gNMI")
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def left(self) -> dict[tuple[str, int], int]:
        return {cell: count for cell, count in self.registers.items() if count}


def _name(update: Any) -> str:
    return str(update.register_id)


def _index(update: Any) -> int:
    assert update.data == 0
    return int(update.index)


def keeper_of(model: Model, events: list[dict[str, Any]]) -> OccupancyKeeper:
    def tell(event: str, **fields: Any) -> None:
        events.append({"event": event, **fields})

    return OccupancyKeeper(model.state, lambda: cast("PortsClient", model), tell)


def look(
    model: Model,
    events: list[dict[str, Any]] | None = None,
    times: int = 1,
    keeper: OccupancyKeeper | None = None,
) -> None:
    keeper = keeper or keeper_of(model, [] if events is None else events)

    async def run() -> None:
        for _ in range(times):
            await keeper.poll(cast("SwitchClient", model), PORTS)

    asyncio.run(run())


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occupancy, "PAUSE_S", 0.0)


@pytest.mark.parametrize("state", [QTHRESH, GFR])
def test_a_count_that_stands_while_nothing_waits_is_set_to_0_and_told(state: CountedState) -> None:
    model, events = Model(state), list[dict[str, Any]]()
    model.add(3, 100)
    model.registers[state.of_slot, state.slots - 1] = 7  # of a flow without a port that we know
    look(model, events)
    assert model.left() == {}
    (event,) = events
    assert (event["event"], event["ports"], event["slots"]) == ("occupancy_corrected", {3: 100}, 2)
    assert "port 3 counted 100, 2 slots counted some as waiting: set to 0" in event["why"]
    look(model, events)
    assert len(events) == 1


def test_where_nothing_is_counted_the_queues_are_not_even_asked() -> None:
    model = Model()
    model.registers["flow_occupancy", 5] = 0
    look(model)
    assert model.asked_queues == 0


def test_a_port_with_packets_in_its_queue_is_left_alone() -> None:
    """Too much by 3 while 2 wait: it may be that 3 are under way, so it is looked at again later."""
    model = Model()
    model.admit(3)
    model.admit(3)
    model.add(3, 3)
    look(model)
    assert model.writes == 0
    model.leave(3)
    model.leave(3)
    look(model)
    assert model.left() == {}


def test_nothing_is_corrected_while_another_port_has_packets() -> None:
    """A slot does not say which port it is at."""
    model, events = Model(), list[dict[str, Any]]()
    model.admit(1)
    model.add(3, 5)
    look(model, events)
    assert (model.writes, events) == (0, [])
    model.leave(1)
    look(model, events)
    assert model.left() == {}
    assert (events[0]["ports"], events[0]["slots"]) == ({3: 5}, 1)


@pytest.mark.parametrize("seed", range(300))
def test_counts_that_are_right_are_never_touched_whatever_comes_between(seed: int) -> None:
    numbers = random.Random(seed)
    model = Model()

    def between() -> None:
        for _ in range(numbers.randrange(4)):
            (model.admit if numbers.random() < 0.45 else model.leave)(numbers.choice(PORTS))

    model.between = between  # type: ignore[method-assign]
    look(model, times=20)
    assert model.writes == 0


@pytest.mark.parametrize("seed", range(100))
def test_counts_that_are_wrong_are_right_when_the_traffic_has_gone_whatever_came_between(seed: int) -> None:
    numbers = random.Random(seed)
    model = Model()

    def between() -> None:
        if numbers.random() < 0.1:
            (model.admit if numbers.random() < 0.3 else model.leave)(numbers.choice(PORTS))

    model.between = between  # type: ignore[method-assign]
    for port in PORTS:
        model.add(port, numbers.randrange(1, 50))
    keeper = keeper_of(model, [])
    look(model, times=20, keeper=keeper)
    model.between = lambda: None  # type: ignore[method-assign]
    for port in PORTS:
        while model.waiting[port]:
            model.leave(port)
    look(model, times=2, keeper=keeper)
    # A packet that came beside the writing is counted out of a count that was 0 already: never less than 0.
    assert model.left() == {}


def test_targets_that_do_not_tell_are_left_alone() -> None:
    bmv2 = Model()
    bmv2.reads_registers = False
    with pytest.raises(FairlaneError, match="registers are not read"):
        look(bmv2)
    other = Model()
    other.add(3, 1)
    other.serves_gnmi = False
    with pytest.raises(FairlaneError, match="no gNMI"):
        look(other)
