# SPDX-License-Identifier: Apache-2.0
"""`BatchReading`: what is asked for at once is one request, also on a target that reads no registers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from fairlane_controller.switch.reading import BatchReading
from finsy import P4ClientError, P4CounterData, P4CounterEntry, P4RegisterEntry, P4TableEntry
from finsy.proto import p4r


class Target:
    """Answers each read in a turn of its own: a table has one entry, cell n of a counter or a register has n."""

    def __init__(self, *, registers: bool) -> None:
        self.requests: list[list[str]] = []
        self.endpoint = SimpleNamespace(name="s1")
        self._registers = registers

    async def read_all(self, entities: Sequence[Any], on_progress: Any) -> list[Any]:
        on_progress()
        self.requests.append([type(one).__name__ for one in entities])
        await asyncio.sleep(0.01)
        if not self._registers and any(isinstance(one, P4RegisterEntry) for one in entities):
            refused = grpc.aio.AioRpcError(grpc.StatusCode.UNIMPLEMENTED, grpc.aio.Metadata(), grpc.aio.Metadata())
            raise P4ClientError(refused, "ReadRequest", msg=p4r.ReadRequest())
        return [self._answer(one) for one in entities]

    @staticmethod
    def _answer(asked: Any) -> Any:
        if isinstance(asked, P4CounterEntry):
            return P4CounterEntry(
                asked.counter_id, index=asked.index, data=P4CounterData(packet_count=asked.index or 0)
            )
        if isinstance(asked, P4RegisterEntry):
            return P4RegisterEntry(asked.register_id, index=asked.index, data=asked.index)  # type: ignore[arg-type]
        return P4TableEntry(asked.table_id)


@pytest.mark.parametrize("registers", [True, False])
async def test_what_is_asked_for_at_once_is_one_request(registers: bool) -> None:
    target: Any = Target(registers=registers)
    reading = BatchReading(target)

    async def late() -> Any:
        await asyncio.sleep(0.005)  # the answer is on its way
        return await asyncio.gather(reading.counters("c", [1]), reading.table("t"))

    async def work() -> None:
        table, counters, cells, (late_counters, late_table) = await asyncio.gather(
            reading.table("t"), reading.counters("c", [1, 2]), reading.registers("r", [3]), late()
        )
        assert (len(table), len(late_table), late_counters[1].packet_count) == (1, 1, 1)
        assert {index: cell.packet_count for index, cell in counters.items()} == {1: 1, 2: 2}
        assert cells == ({3: 3} if registers else None)

    await work()
    assert target.requests[0] == ["P4TableEntry", "P4CounterEntry", "P4CounterEntry", "P4RegisterEntry"]
    del target.requests[:]
    await reading.begin()
    await work()
    assert [len(request) for request in target.requests] == [4 if registers else 3], "all of it, once"
