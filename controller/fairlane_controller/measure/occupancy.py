# SPDX-License-Identifier: Apache-2.0
"""Compares what a program counts as waiting with what waits, and corrects it where it is certainly wrong.

On the embedded switch the program sees the end of every packet, so nothing should be found. Counts can still be wrong after somebody
wrote registers, or with a program of one's own. Only the case that does not end by itself is corrected: all managed ports are empty in
two readings, no packet was admitted between the first reading and the last, and a port counts something all the same. A count that is
too small corrects itself when the queue is empty (it saturates at 0).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from finsy import P4CounterEntry, P4RegisterEntry

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortsClient
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.reading import read_cells
from fairlane_controller.units import counted

PERIOD_S = 5.0
"""Between two comparisons."""
PAUSE_S = 0.2
"""Between the two readings that must agree."""
CELLS = 512
"""Of a register, in one write."""


@dataclass(frozen=True)
class CountedState:
    """Where a program counts what waits."""

    of_port: tuple[str, ...]
    "Registers by port; the first one is not 0 where something is counted."
    of_slot: str
    slots: int
    admitted: str
    "Counter of what was counted in."
    admitted_cells: int
    "Its cells a port."


class OccupancyKeeper:
    """Corrects the counts of one switch.

    Args:
        state: where they are.
        open_ports: opens a client that knows the queues.
        report: `report(event, **fields)` gets what was corrected.
    """

    def __init__(self, state: CountedState, open_ports: Callable[[], PortsClient], report: Callable[..., None]) -> None:
        self._state = state
        self._open_ports = open_ports
        self._report = report

    async def keep_forever(self, client: SwitchClient, ports: Callable[[], Iterable[int]]) -> None:
        """Compare the managed `ports` until cancelled; a target that cannot be read is left alone."""
        can_read = True
        while can_read:
            await asyncio.sleep(PERIOD_S)
            try:
                await self.poll(client, sorted(ports()))
            except FairlaneError as problem:  # the session notices a lost connection; else no gNMI is served
                can_read = problem.code is ErrorCode.SWITCH_UNREACHABLE
        await asyncio.Event().wait()

    async def poll(self, client: SwitchClient, ports: Collection[int]) -> None:
        """Compare once, and correct what is certainly wrong. Raises FairlaneError where the target reads no registers (BMv2)."""
        state = self._state
        counts = await read_cells(client, P4RegisterEntry, state.of_port[0], ports)
        if not any(counts.values()):
            return
        async with self._open_ports() as queues:
            # What was admitted is read before all else and after it, so that a packet in between is noticed.
            admitted = await self._admitted(client, ports)

            async def is_quiet() -> bool:
                now, waiting = await read_cells(client, P4RegisterEntry, state.of_port[0], ports), await queues.ports()
                if now != counts or any(one.waiting_packets for one in waiting if one.port in counts):
                    return False
                return await self._admitted(client, ports) == admitted

            if not await is_quiet():
                return
            await asyncio.sleep(PAUSE_S)
            slots = await self._nonzero_slots(client)
            wrong = {port: count for port, count in counts.items() if count}
            # The ports' cells come last: until they are 0, the next comparison continues what this one began.
            parts = [[(state.of_slot, slot) for slot in slots[at : at + CELLS]] for at in range(0, len(slots), CELLS)]
            for part in [*parts, [(name, port) for name in state.of_port for port in wrong]]:
                if not await is_quiet():
                    return
                await client.write([~P4RegisterEntry(name, index=index, data=0) for name, index in part])
        texts = [f"port {port} counted {count}" for port, count in wrong.items()]
        texts += [f"{counted(len(slots), 'slot')} counted some"] if slots else []
        why = f"nothing waits and nothing came, but {', '.join(texts)} as waiting: set to 0"
        self._report("occupancy_corrected", ports=wrong, slots=len(slots), why=why)

    async def _admitted(self, client: SwitchClient, ports: Iterable[int]) -> int:
        """Number of packets that the ports have admitted."""
        cells = self._state.admitted_cells
        indices = [port * cells + cell for port in ports for cell in range(cells)]
        found = await read_cells(client, P4CounterEntry, self._state.admitted, indices)
        return sum(one.packet_count for one in found.values() if one)

    async def _nonzero_slots(self, client: SwitchClient) -> list[int]:
        counts = await read_cells(client, P4RegisterEntry, self._state.of_slot, range(self._state.slots))
        return [slot for slot, count in counts.items() if count]
