# SPDX-License-Identifier: Apache-2.0
"""The run time of a program whose law is `Program.decide`: poll each managed port, decide, write what differs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from finsy import P4TableEntry

from fairlane_controller.errors import ErrorCode
from fairlane_controller.program.contract import Config, PortPlan, Program, port_state
from fairlane_controller.program.control import SwitchControl, TopologyControl, every
from fairlane_controller.program.setup import complete_rows
from fairlane_controller.switch.changeset import (
    ChangeSet,
    apply,
    difference,
    entries_by_key,
    read_entries,
    sort_entries,
)
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.reading import BatchReading, RateBook
from fairlane_controller.switch.shared import COUNTER_PASSED


class DecidingControl(SwitchControl):
    """One switch. What the loop has decided is in the switch's entries: a new loop continues from there."""

    def __init__(self, session: Any, topology: DecidingTopology) -> None:
        super().__init__(session, topology)
        self._program: Program = topology.program
        self._settings: dict[int, Any] = {}
        "The settings of each managed port."
        self._rates = RateBook()
        self._reading: Any = None
        self._failed: dict[int, str] = {}
        "What was wrong with the newest decision about a port."

    def entries_after_restart(self) -> Iterable[P4TableEntry]:
        """The entries of the last settings, else of what the topology says."""
        if not self._settings:
            return super().entries_after_restart()
        name = self.session.endpoint.name
        config = Config({(name, port): one for port, one in self._settings.items()})
        wanted = PortPlan(self._program, config, self.topology.run).wanted(name, {})
        return sort_entries(wanted.entries, self._program.tables)

    async def observe(self, client: SwitchClient) -> None:
        """Read the settings that the switch would need after a restart."""
        await self.changed(client)

    async def take_over(self, client: SwitchClient) -> None:
        """Continue from the switch's entries."""
        self._rates = RateBook()
        self._reading = BatchReading(client, per_s=self._rates.per_s)
        await self.changed(client)

    async def changed(self, client: SwitchClient) -> None:
        """Read the settings again."""
        current = await read_entries(client, self._program.tables)
        self._settings = self._program.ports_of(self.session.endpoint.name, current)

    @every(lambda control: control.topology.program.decide_every_s)
    async def poll(self, client: SwitchClient) -> None:
        """Read all managed ports, and decide about each."""
        seen = await self._read()
        async with self.session.writes:
            for port, current in self._settings.items():
                wanted = self._decide(port, current, seen.get(port, {}))
                if wanted is not None and wanted != current:
                    await self._write(client, port, current, wanted)

    async def _read(self) -> dict[int, dict[str, Any]]:
        """The row of each managed port: the program's columns, what was sent, and the rate of each total."""
        reading, columns = self._reading, self._program.columns
        self._rates.begin(asyncio.get_running_loop().time())
        await reading.begin()
        rows = await complete_rows(self._program, reading, self.session.state)
        seen = {row.port: dict(row.values) for row in rows if not row.kind and row.port is not None}
        totals = ["sent_packets", "sent_bytes", *(column.name for column in columns if column.is_total)]
        for port, cell in (await reading.counters(COUNTER_PASSED, seen)).items():
            values = seen[port] | {"sent_packets": cell.packet_count, "sent_bytes": cell.byte_count}
            rates = {f"{name}_per_s": reading.per_s((name, port), values.get(name)) for name in totals}
            seen[port] = values | rates
        return seen

    def _decide(self, port: int, current: Any, seen: Mapping[str, Any]) -> Any:
        """The port's new settings; None where the law fails, which is one event: the port stays as it is."""
        program, place = self._program, (self.session.endpoint.name, port)
        loop = self.topology.loop or program.LoopSettings()
        try:
            found = program.decide(port_state(self.topology.run, place), current, seen, loop)
            decided = found.model_dump(include={*program.decided})
            wanted = program.Settings.model_validate({**current.model_dump(), **decided})  # ranges hold for a law too
        except Exception as ex:  # a law of somebody else: whatever it does, the loop goes on
            failed = f"{type(ex).__name__}: {ex}"
            if failed != self._failed.get(port):
                self._failed[port] = failed
                why = f"decide of port {port}: {failed}"
                self.session.event("error", port=port, code=ErrorCode.INTERNAL.value, why=why)
            return None
        self._failed.pop(port, None)
        return wanted

    async def _write(self, client: SwitchClient, port: int, current: Any, wanted: Any) -> None:
        program, name = self._program, client.endpoint.name
        state = port_state(self.topology.run, (name, port))
        # Of this port alone: what others have is neither read nor written.
        before, after = (entries_by_key(client, program.entries(state, one)) for one in (current, wanted))
        changes = ChangeSet({name: difference(before, after, program.tables)})

        async def write(client: SwitchClient) -> None:
            await apply(changes, {name: client})

        if await self.session.attempt(client, f"the settings of port {port}", write, keep=False):
            self._settings[port] = wanted
            decided = {key: getattr(wanted, key) for key in program.decided}
            words = ", ".join(f"{key} from {getattr(current, key)} to {value}" for key, value in decided.items())
            self.session.event("decided", port=port, why=words, **decided)

    def status(self) -> dict[str, Any]:
        """The decided settings of each port, and what was wrong with the newest decision."""
        names = self._program.decided
        ports = [{"port": port, **{key: getattr(one, key) for key in names}} for port, one in self._settings.items()]
        return {"ports": ports, "failed": "; ".join(self._failed.values()) or None}


class DecidingTopology(TopologyControl):
    """All switches of a topology whose program has a law."""

    control_type = DecidingControl
    listens = False
