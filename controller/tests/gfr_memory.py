# SPDX-License-Identifier: Apache-2.0
"""A switch in memory behind `SwitchClient`: tables and counters with P4Runtime's rules, every batch remembered, refusals on demand.

It knows the real program's P4Info and forwards nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from fairlane_controller.program.registry import load_program
from fairlane_controller.program.setup import change_set
from fairlane_controller.programs.gfr.plan import GfrPlan
from fairlane_controller.switch.bounded import BoundedSwitch
from fairlane_controller.switch.changeset import apply
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.entities import EntityChange
from finsy import P4ClientError, P4CounterData, P4CounterEntry, P4Schema, P4TableEntry
from finsy.p4entity import decode_entity, encode_entities, encode_updates
from finsy.proto import p4r, rpc_status

P4INFO = Path(__file__).resolve().parents[2] / "p4src" / "compiled" / "gfr.p4info.txtpb"
ALREADY_EXISTS, NOT_FOUND, RESOURCE_EXHAUSTED = 6, 5, 8
Refuse = Callable[[p4r.Update], int]
"""The code with which an update is refused; 0: it is not."""


@cache
def schema() -> P4Schema:
    """gfr.p4's P4Info; the test is skipped where it was not compiled."""
    if not P4INFO.is_file():
        pytest.skip(f"{P4INFO.name} is not compiled")
    return P4Schema(P4INFO)


class _Events:
    def add_listener(self, event: Any, listener: Any) -> None:
        """Nothing ever happens here."""


class MemorySwitch:
    """Stands where the client has finsy's `Switch`."""

    is_primary = True
    primary_id = 1

    def __init__(self, name: str = "s1") -> None:
        self.name = name
        self.p4info = schema()
        self.ee = _Events()
        self.tables: dict[bytes, p4r.TableEntry] = {}
        self.counters: dict[tuple[int, int], p4r.CounterData] = {}
        self.arrived: dict[bytes, int] = {}
        "Direct counters by the entry's key."
        self.batches: list[list[p4r.Update]] = []
        self.refuse: Refuse = lambda update: 0  # noqa: ARG005

    async def __aexit__(self, *_: object) -> None:
        """The client goes."""

    # ---- what a test does ----------------------------------------------------------------------------------------

    def entries(self, table: str) -> list[P4TableEntry]:
        """What a table holds."""
        number = self.p4info.tables[table].id
        held = [p4r.Entity(table_entry=entry) for entry in self.tables.values() if entry.table_id == number]
        return [cast("P4TableEntry", decode_entity(entity, self.p4info)) for entity in held]

    def state(self) -> dict[bytes, bytes]:
        """Everything that the tables hold, comparable."""
        return {key: entry.SerializeToString(deterministic=True) for key, entry in self.tables.items()}

    def arrive(self, table: str, packets: int, **match: int) -> None:
        """Count packets on the entry with that match."""
        for key, entry in self.tables.items():
            decoded = cast("P4TableEntry", decode_entity(p4r.Entity(table_entry=entry), self.p4info))
            if decoded.table_id == table and dict(decoded.match or {}) == match:
                self.arrived[key] = self.arrived.get(key, 0) + packets
                return
        raise AssertionError(f"no entry {match} in {table}")

    # ---- what the client calls -----------------------------------------------------------------------------------

    async def read_all(self, entities: Sequence[Any], _on_progress: Callable[[], None]) -> list[Any]:
        """What `_read` finds."""
        return [*self._read(entities)]

    def _read(self, entities: Iterable[Any]) -> Iterator[Any]:
        """Tables by their id with what is asked for, counters by index."""
        for entity in encode_entities(entities, self.p4info):
            if entity.WhichOneof("entity") == "counter_entry":
                wanted = entity.counter_entry
                data = self.counters.get((wanted.counter_id, wanted.index.index), p4r.CounterData())
                yield P4CounterEntry(
                    self.p4info.counters[wanted.counter_id].alias,
                    index=wanted.index.index,
                    data=P4CounterData.decode(data),
                )
                continue
            asked = entity.table_entry
            for key, held in list(self.tables.items()):
                if held.table_id == asked.table_id:
                    answer = p4r.TableEntry()
                    answer.CopyFrom(held)
                    if not asked.HasField("meter_config"):
                        answer.ClearField("meter_config")
                    if asked.HasField("counter_data"):
                        answer.counter_data.packet_count = self.arrived.get(key, 0)
                    yield decode_entity(p4r.Entity(table_entry=answer), self.p4info)

    async def write(self, entities: Iterable[Any]) -> None:
        """One batch: the good updates are applied, the others reported one by one."""
        updates = [cast("p4r.Update", update) for update in encode_updates(entities, self.p4info)]
        self.batches.append(updates)
        codes = [self.refuse(update) or self._apply(update) for update in updates]
        if any(codes):
            raise self._error(codes)

    def _apply(self, update: p4r.Update) -> int:
        if update.entity.WhichOneof("entity") == "counter_entry":
            counter = update.entity.counter_entry
            self.counters[counter.counter_id, counter.index.index] = counter.data
            return 0
        entry = update.entity.table_entry
        named = p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
        key = named.SerializeToString(deterministic=True)
        inserts = update.type == p4r.Update.INSERT
        if inserts == (key in self.tables):
            return ALREADY_EXISTS if inserts else NOT_FOUND
        if update.type == p4r.Update.DELETE:
            del self.tables[key]
            self.arrived.pop(key, None)
        else:
            self.tables[key] = entry
        return 0

    def _error(self, codes: list[int]) -> P4ClientError:
        status = rpc_status.Status(code=2, message="a batch")
        for code in codes:
            status.details.add().Pack(
                p4r.Error(canonical_code=code, message="no room" if code == RESOURCE_EXHAUSTED else "")
            )
        details = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
        error = grpc.aio.AioRpcError(grpc.StatusCode.UNKNOWN, grpc.aio.Metadata(), details, details="a batch")
        return P4ClientError(error, "WriteRequest", schema=self.p4info)


class MemoryClient(SwitchClient):
    """`SwitchClient` on a `MemorySwitch`; its factory is `clients_of`."""

    def __init__(self, endpoint: Endpoint, *, at: MemorySwitch, **options: Any) -> None:
        super().__init__(endpoint, **options)
        self._at = at

    async def _connect(self, timeout_s: float) -> None:  # noqa: ARG002
        self._switch = cast("BoundedSwitch", self._at)


def clients_of(*switches: MemorySwitch) -> Callable[[str], SwitchClient]:
    """Makes a writing client of a switch's name."""
    named = {switch.name: switch for switch in switches}
    return lambda name: MemoryClient(Endpoint(name, "memory"), at=named[name], write=True)


async def deploy(plan: GfrPlan, client_of: Callable[[str], SwitchClient]) -> Mapping[str, Sequence[EntityChange]]:
    """The plan into all its switches, or into none; the changes by switch."""
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(client_of(name)) for name in plan.concerned}
        change = await change_set(load_program("gfr"), plan, clients)
        await apply(change, clients)
    return change.entries
