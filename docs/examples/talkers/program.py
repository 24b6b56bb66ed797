# SPDX-License-Identifier: Apache-2.0
"""A program that learns: each pair of hosts that talks gets an entry and a slot, and is counted (docs/programs.md)."""

from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import Any, NamedTuple

from fairlane import (
    Column,
    Kind,
    LearnedTable,
    P4TableAction,
    Program,
    Reading,
    Row,
    Session,
    SwitchClient,
    SwitchControl,
    SwitchState,
    TopologyControl,
)
from finsy import P4CounterData


class Talker(NamedTuple):
    """The key of an entry, by the names of the digest and of the match."""

    src: int
    dst: int

    def __str__(self) -> str:
        return f"{IPv4Address(self.src)} > {IPv4Address(self.dst)}"


class Control(SwitchControl):
    """Entries come by the digest `new_talker_t`, and go after 30 s without a packet."""

    def __init__(self, session: Session, topology: Any) -> None:
        super().__init__(session, topology)
        self.talkers = LearnedTable[Talker, None](
            session, "new_talker_t", ("talker",), 1024, key=Talker, action="set_talker", counter="large"
        )

    async def take_over(self, client: SwitchClient) -> None:
        await self.talkers.take_over(client)

    def jobs(self, client: SwitchClient) -> Sequence[Any]:
        return self.talkers.jobs(client)

    def status(self) -> dict[str, Any]:
        return {"talkers": self.talkers.status()}


class Topology(TopologyControl):
    """All switches."""

    control_type = Control


class Talkers(Program):
    """What each pair of IPv4 hosts sends."""

    name = "talkers"
    title = "Counts what each pair of hosts sends."
    p4 = "talkers"
    dynamic_tables = ("talker",)
    control = "program:Topology"
    columns_of_talkers = (
        Column("packets", "packets", "packets", "frames since the entry was made", total=True),
        Column("bytes", "bytes", "bytes", "bytes of these", total=True),
        Column("large_packets", "large", "packets", "frames of 1,000 bytes or more", total=True),
    )
    kinds = (Kind("talker", "pairs of hosts that talk", columns_of_talkers),)

    async def rows(self, reading: Reading, switch: SwitchState | None) -> list[Row]:
        entries = [(entry, entry.action) for entry in await reading.table("talker", counters=True)]
        slots = {int(action.args["slot"]): entry for entry, action in entries if isinstance(action, P4TableAction)}
        large = await reading.counters("large", slots)
        rows: list[Row] = []
        for slot, entry in sorted(slots.items()):
            sent = entry.counter_data or P4CounterData()
            values = {"packets": sent.packet_count, "bytes": sent.byte_count, "large_packets": large[slot].packet_count}
            rows.append(Row(None, values, "talker", str(Talker(entry["src"], entry["dst"]))))
        return rows
