# SPDX-License-Identifier: Apache-2.0
"""The run time of a program whose law is `Program.decide`: read each managed port again and again, decide, write what differs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from finsy import P4TableEntry

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.contract import Program
from fairlane_controller.program.control import SwitchControl, TopologyControl, every
from fairlane_controller.program.rates import RateBook
from fairlane_controller.program.reading import BatchReading
from fairlane_controller.program.setup import complete_rows
from fairlane_controller.state.run_state import PortState
from fairlane_controller.switch.changeset import ChangeSet, apply
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.difference import difference, entries_by_key, read_entries, sort_entries
from fairlane_controller.switch.shared import COUNTER_PASSED


class DecidingControl(SwitchControl):
    """One switch. What the loop has decided is in the switch's entries: a new loop goes on from there."""

    topology: DecidingTopology

    def __init__(self, session: Any, topology: DecidingTopology) -> None:
        super().__init__(session, topology)
        self._settings: dict[int, Any] = {}
        "What each managed port has."
        self._rates = RateBook()
        self._reading: BatchReading | None = None
        self._failed: str = ""
        "What was wrong with the newest decision."

    @property
    def _program(self) -> Program:
        return self.topology.program

    def entries_after_restart(self) -> list[P4TableEntry]:
        """What the switch had, else what the topology says."""
        if not self._settings:
            return list(super().entries_after_restart())
        entries = [
            one for port, held in self._settings.items() for one in self._program.entries(self._port(port), held)
        ]
        return sort_entries(entries, self._program.tables)

    async def observe(self, client: SwitchClient) -> None:
        """The settings that the switch would need after a restart."""
        await self.changed(client)

    async def take_over(self, client: SwitchClient) -> None:
        """Go on from what the switch has."""
        self._rates.forget()
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
            for port, held in self._settings.items():
                wanted = self._decide(port, held, seen.get(port, {}))
                if wanted is not None and wanted != held:
                    await self._write(client, port, held, wanted)

    async def _read(self) -> dict[int, dict[str, Any]]:
        """The row of each managed port: the program's columns, what was sent, and how fast each total grows."""
        reading, program = self._reading, self._program
        assert reading is not None
        self._rates.begin(asyncio.get_running_loop().time())
        await reading.begin()
        rows = await complete_rows(program, reading, self.session.state)
        seen = {row.port: dict(row.values) for row in rows if not row.kind and row.port is not None}
        for port, cell in (await reading.counters(COUNTER_PASSED, seen)).items():
            seen[port] |= {"sent_packets": cell.packet_count, "sent_bytes": cell.byte_count}
        totals = ["sent_packets", "sent_bytes", *(column.name for column in program.columns if column.is_total)]
        for port, values in seen.items():
            values |= {f"{name}_per_s": reading.per_s((name, port), values.get(name)) for name in totals}
        return seen

    def _decide(self, port: int, held: Any, seen: Mapping[str, Any]) -> Any:
        """What a port is to have; None where the law fails, which is told once: the switch keeps what it has."""
        program = self._program
        try:
            wanted = program.decide(self._port(port), held, seen, self.topology.loop)
            if not isinstance(wanted, program.Settings):
                raise TypeError(f"it returned {type(wanted).__name__} and not its Settings")
            wanted = program.Settings.model_validate(wanted.model_dump())  # ranges hold for a law too
            fixed = [key for key in program.Settings.model_fields if key not in program.decided]
            if changed := [key for key in fixed if getattr(wanted, key) != getattr(held, key)]:
                raise ValueError(f"it changed {', '.join(changed)}, which `decided` does not name")
        except Exception as ex:  # a law of somebody else: whatever it does, the loop goes on
            self._report_failed(port, f"{type(ex).__name__}: {ex}")
            return None
        self._failed = ""
        return wanted

    def _report_failed(self, port: int, why: str) -> None:
        if why != self._failed:
            self._failed = why
            self.session.event("error", port=port, code=ErrorCode.INTERNAL.value, why=f"decide of port {port}: {why}")

    async def _write(self, client: SwitchClient, port: int, held: Any, wanted: Any) -> None:
        program, state = self._program, self._port(port)
        before, after = (entries_by_key(client, program.entries(state, one)) for one in (held, wanted))
        changes = difference(before, after, program.tables)

        async def write(client: SwitchClient) -> None:
            await apply(ChangeSet({client.endpoint.name: changes}), {client.endpoint.name: client})

        if await self.session.attempt(client, f"the settings of port {port}", write, keep=False):
            self._settings[port] = wanted
            decided = {key: getattr(wanted, key) for key in program.decided}
            words = ", ".join(f"{key} from {getattr(held, key):g} to {value:g}" for key, value in decided.items())
            self.session.event("decided", port=port, why=words, **decided)

    def _port(self, port: int) -> PortState:
        state = self.session.state
        return (state.port(port) if state is not None else None) or PortState(port=port)

    def status(self) -> dict[str, Any]:
        """What each port has that the loop decides."""
        names = self._program.decided
        ports = [{"port": port, **{key: getattr(one, key) for key in names}} for port, one in self._settings.items()]
        return {"ports": ports, "failed": self._failed or None}


class DecidingTopology(TopologyControl):
    """All switches of a topology whose program has a law."""

    control_type = DecidingControl

    def __init__(self, run: Any = None, *, probes: bool = True) -> None:
        """Raises BAD_INPUT without a topology: nothing says there which ports are managed."""
        if run is None:
            raise FairlaneError(ErrorCode.BAD_INPUT, "a loop that decides needs a topology: name it by --state")
        super().__init__(run, probes=probes)
        self.loop: Any = self.program.LoopSettings()

    def use_loop(self, loop: Any) -> None:
        """Take the program's keys of `[loop]` into use."""
        self.loop = loop
