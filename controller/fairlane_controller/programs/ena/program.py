# SPDX-License-Identifier: Apache-2.0
"""`p4src/ena.p4` (docs/schemes.md): ports that are the far side of a satellite link, their entries, counters and drop reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairlane import (
    Column,
    Config,
    Entries,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
    Plan,
    PortNumber,
    PortPlan,
    PortState,
    Program,
    Reason,
    RunState,
    Section,
    Settings,
    SwitchName,
)

FIELDS = {"far_side_in": "ingress_port", "far_side_out": "egress_port"}
ACTIONS = {"far_side_in": "check_segments", "far_side_out": "mark_acks"}
REASON_CORRUPTED = 13


class FarSide(Section):
    """ENA: a port that is the far side of a satellite link."""

    switch: SwitchName
    port: PortNumber


class Ena(Program):
    """ENA in the switch: a far side names corrupted segments in the ACKs of receivers that cannot."""

    name = "ena"
    title = "ENA: the switch names corrupted segments for receivers that cannot."
    p4 = "../../../../p4src/compiled/ena"
    tables = ("far_side_in", "far_side_out")
    first_commands = ("ena show",)
    ports_title = "far-side ports"
    reasons = {REASON_CORRUPTED: Reason("corrupted", "TCP checksum wrong, and nobody to tell")}
    columns = (
        Column("ena_corrupted", "corrupted, named", "packets", "corrupted segments that were named", "ena_corrupted"),
        Column("ena_strays", "by their gap", "packets", "of these, found by the gap that they left", "ena_strays"),
        Column("ena_notified", "ACKs that name one", "packets", "ACKs that name a segment", "ena_notified"),
        Column("ena_no_room", "no room", "packets", "ACKs that should name one and had no room", "ena_no_room"),
        Column(
            "ena_no_place", "no place", "packets", "ACKs of flows that the program had no place for", "ena_no_place"
        ),
        Column("dropped", "dropped", "packets", "corrupted segments that were dropped", reason=REASON_CORRUPTED),
    )

    class Settings(Settings):
        """One port."""

        far_side: bool = False
        "ENA: whether the port is the far side of a satellite link."

    class Sections(Section):
        """At the top of `fairlane.toml`."""

        far_sides: tuple[FarSide, ...] | None = None
        "ENA: all far sides."

    def entries(self, port: PortState, settings: Any) -> Iterator[P4TableEntry]:
        """Both tables name a far side."""
        if settings.far_side:
            for table in self.tables:
                match, action = P4TableMatch({FIELDS[table]: port.port}), P4TableAction(ACTIONS[table])
                yield P4TableEntry(table, match=match, action=action)

    def ports_of(self, switch: str, current: Entries) -> dict[int, Any]:
        """The ports in either table."""
        del switch
        found = {int(entry[FIELDS[entry.table_id]]) for entry in current.values()}
        return {port: self.Settings(far_side=True) for port in sorted(found)}

    def check(self, config: Config, run: RunState | None) -> Iterable[str]:
        """A port occurs once, and is there."""
        sides = (config.sections.far_sides if config.sections else None) or ()
        seen: dict[tuple[str, int], int] = {}
        for index, side in enumerate(sides):
            at, place = f"far_sides[{index}]", (side.switch, side.port)
            if place in seen:
                yield f"{at}: {side.switch}:{side.port} is far_sides[{seen[place]}] too; a port may occur once"
            seen.setdefault(place, index)
            if run is not None:
                yield from run.unknown_place(at, side.switch, side.port)

    def plan(self, config: Config, run: RunState | None) -> Plan:
        """The section names all far sides, a port's own setting that port's."""
        sides = config.sections.far_sides if config.sections else None
        if sides is not None:
            named = {(side.switch, side.port): self.Settings(far_side=True) for side in sides}
            config = Config({**named, **(config.ports or {})}, exact=True)
        return PortPlan(self, config, run)

    def read_config(self, current: Mapping[str, Entries], run: RunState) -> Config:
        """As the section."""
        places = (super().read_config(current, run).ports or {}).keys()
        sides = tuple(FarSide(switch=switch, port=port) for switch, port in places)
        return Config(sections=self.Sections(far_sides=sides))
