# SPDX-License-Identifier: Apache-2.0
"""Compares what a program counts as waiting with what waits, and sets it right where it is certainly wrong.

On the embedded switch the program is told of every packet that ends, so nothing should be found. What can still bend the
counts is a hand that writes registers, or a program of one's own. Only one case is corrected, the one that does not heal by
itself: a port whose queues are empty, in two looks with not one packet admitted between the first reading and the last, and
which counts something all the same. A count that is too small mends itself when the queue is empty (it saturates at 0).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from finsy import P4RegisterEntry

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortsClient
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.units import counted

PERIOD_S = 5.0
"Between two looks at the counts of the ports."
PAUSE_S = 0.2
"Between the two looks that must agree."
SLOTS_A_LOOK = 512


@dataclass(frozen=True)
class CountedState:
    """Where a program counts what waits."""

    of_port: tuple[str, ...]
    "Registers by port; the first one says whether something is counted."
    of_slot: str
    slots: int
    admitted: str
    "Counter of what was counted in."
    admitted_cells: int
    "Its cells a port."


class OccupancyKeeper:
    """Looks after the counts of one switch."""

    def __init__(
        self,
        state: CountedState,
        open_ports: Callable[[], PortsClient],
        tell: Callable[..., None],
    ) -> None:
        """`open_ports`: who knows the queues. `tell(event, **fields)` says what was set right."""
        self._state = state
        self._open_ports = open_ports
        self._tell = tell
        self._slots_owed = False
        "A port was wrong, and so are some slots; a slot does not say which port it is at, so they wait for all to be empty."

    async def keep_forever(self, client: SwitchClient, ports: Callable[[], Iterable[int]]) -> None:
        """Look at the managed `ports` until cancelled; a target that does not let us look is left alone."""
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                looked = await self.poll(client, sorted(ports()))
            except FairlaneError as problem:
                if problem.code is not ErrorCode.SWITCH_UNREACHABLE:
                    looked = False  # nobody serves gNMI there
                else:
                    continue  # the session finds out
            if not looked:
                await asyncio.Event().wait()

    async def poll(self, client: SwitchClient, ports: Sequence[int]) -> bool:
        """Look once, and correct what is certainly wrong. False where the target reads no registers (BMv2)."""
        held = await client.read_registers(self._state.of_port[0], ports)
        if held is None:
            return False
        if not any(held.values()) and not self._slots_owed:
            return True
        async with self._open_ports() as queues:
            # What was admitted is read before all else and after it: what comes between is seen.
            came = await self._admitted(client, ports)
            first = await self._look_at(client, queues, ports)
            if not self._slots_owed and not any(count and not waiting for count, waiting in first.values()):
                return True
            await asyncio.sleep(PAUSE_S)
            second, now = await self._look_at(client, queues, ports), await self._admitted(client, ports)
            # Nothing waited, nothing was admitted, and the count stood.
            quiet = [
                port
                for port in ports
                if first[port] == second[port] == (second[port][0], 0) and came[port] == now[port]
            ]
            wrong = {port: second[port][0] for port in quiet if second[port][0]}
            if wrong:
                self._slots_owed = True
                names = self._state.of_port
                await client.write([~P4RegisterEntry(name, index=port, data=0) for name in names for port in wrong])
            slots = 0
            if self._slots_owed and len(quiet) == len(ports):
                slots = await self._correct_slots(client, queues, now)
        if wrong or slots:
            texts = [f"port {port} counted {count}" for port, count in wrong.items()]
            texts += [f"{counted(slots, 'slot')} counted some"] if slots else []
            why = f"nothing waits and nothing came, but {', '.join(texts)} as waiting: set to 0"
            self._tell("occupancy_corrected", ports=wrong, slots=slots, why=why)
        return True

    async def _admitted(self, client: SwitchClient, ports: Iterable[int]) -> dict[int, int]:
        """What each port has let in so far."""
        cells = self._state.admitted_cells
        indices = {port: range(port * cells, port * cells + cells) for port in ports}
        found = await client.read_counters(self._state.admitted, [index for mine in indices.values() for index in mine])
        return {port: sum(found[index].packet_count for index in mine) for port, mine in indices.items()}

    async def _look_at(
        self, client: SwitchClient, queues: PortsClient, ports: Sequence[int]
    ) -> dict[int, tuple[int, int]]:
        """What the program counts at each port, and what waits there; a port that the switch does not have holds nothing."""
        found = await client.read_registers(self._state.of_port[0], ports) or {}
        waiting = {one.port: one.waiting_packets or 0 for one in await queues.ports()}
        return {port: (found[port], waiting.get(port, 0)) for port in ports}

    async def _correct_slots(self, client: SwitchClient, queues: PortsClient, admitted: dict[int, int]) -> int:
        """Nothing waits at any managed port, so no flow or VC has anything waiting: piece by piece, as long as nothing comes."""
        corrected = 0
        for start in range(0, self._state.slots, SLOTS_A_LOOK):
            indices = range(start, min(start + SLOTS_A_LOOK, self._state.slots))
            found = await client.read_registers(self._state.of_slot, indices) or {}
            wrong = [slot for slot, count in found.items() if count]
            if not wrong:
                continue
            looked = await self._look_at(client, queues, list(admitted))
            if any(waiting for _, waiting in looked.values()) or await self._admitted(client, admitted) != admitted:
                return corrected
            await client.write([~P4RegisterEntry(self._state.of_slot, index=slot, data=0) for slot in wrong])
            corrected += len(wrong)
        self._slots_owed = False
        return corrected
