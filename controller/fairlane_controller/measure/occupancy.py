# SPDX-License-Identifier: Apache-2.0
"""Compares what a program counts as waiting with what waits, and corrects it where it is certainly wrong.

On the embedded switch the program sees the end of every packet, so nothing should be found. Counts can still be wrong after somebody
wrote registers, or with a program of one's own. Only the case that does not end by itself is corrected: a port whose queues are empty
in two readings, with no packet admitted between the first reading and the last, and which counts something all the same. A count that
is too small corrects itself when the queue is empty (it saturates at 0).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from finsy import P4RegisterEntry

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortsClient
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.units import counted

PERIOD_S = 5.0
"""Between two comparisons."""
PAUSE_S = 0.2
"""Between the two readings that must agree."""
SLOTS_A_READING = 512


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
    """Corrects the counts of one switch.

    Args:
        state: where they are.
        open_ports: opens a client that knows the queues.
        tell: `tell(event, **fields)` reports what was corrected.
    """

    def __init__(self, state: CountedState, open_ports: Callable[[], PortsClient], tell: Callable[..., None]) -> None:
        self._state = state
        self._open_ports = open_ports
        self._tell = tell
        self._slots_wrong = False
        "A port was wrong, and so are some slots; a slot has no port, so they wait until all ports are empty."

    async def keep_forever(self, client: SwitchClient, ports: Callable[[], Iterable[int]]) -> None:
        """Compare the managed `ports` until cancelled; a target that cannot be read is left alone."""
        can_read = True
        while can_read:
            await asyncio.sleep(PERIOD_S)
            try:
                can_read = await self.poll(client, sorted(ports()))
            except FairlaneError as problem:  # the session notices a lost connection; else no gNMI is served
                can_read = problem.code is ErrorCode.SWITCH_UNREACHABLE
        await asyncio.Event().wait()

    async def poll(self, client: SwitchClient, ports: Collection[int]) -> bool:
        """Compare once, and correct what is certainly wrong. False where the target reads no registers (BMv2)."""
        state = self._state
        counts = await client.read_registers(state.of_port[0], ports)
        if counts is None:
            return False
        if not any(counts.values()) and not self._slots_wrong:
            return True
        async with self._open_ports() as queues:
            # What was admitted is read before all else and after it, so that a packet in between is noticed.
            before = await self._admitted(client, ports)
            first = await self._counts(client, queues, ports)
            if not self._slots_wrong and all(waiting or not count for count, waiting in first.values()):
                return True
            await asyncio.sleep(PAUSE_S)
            second, now = await self._counts(client, queues, ports), await self._admitted(client, ports)
            quiet = [port for port in ports if first[port] == second[port] and before[port] == now[port]]
            quiet = [port for port in quiet if not second[port][1]]
            wrong = {port: second[port][0] for port in quiet if second[port][0]}
            if wrong:
                self._slots_wrong = True
                await client.write(
                    [~P4RegisterEntry(name, index=port, data=0) for name in state.of_port for port in wrong]
                )
            slots = (
                await self._correct_slots(client, queues, now) if self._slots_wrong and len(quiet) == len(ports) else 0
            )
        if wrong or slots:
            texts = [f"port {port} counted {count}" for port, count in wrong.items()]
            texts += [f"{counted(slots, 'slot')} counted some"] if slots else []
            why = f"nothing waits and nothing came, but {', '.join(texts)} as waiting: set to 0"
            self._tell("occupancy_corrected", ports=wrong, slots=slots, why=why)
        return True

    async def _admitted(self, client: SwitchClient, ports: Iterable[int]) -> dict[int, int]:
        """Number of packets that each port has admitted."""
        cells = self._state.admitted_cells
        indices = {port: range(port * cells, port * cells + cells) for port in ports}
        found = await client.read_counters(self._state.admitted, [index for mine in indices.values() for index in mine])
        return {port: sum(found[index].packet_count for index in mine) for port, mine in indices.items()}

    async def _counts(
        self, client: SwitchClient, queues: PortsClient, ports: Collection[int]
    ) -> dict[int, tuple[int, int]]:
        """What the program counts at each port, and what waits there."""
        found = await client.read_registers(self._state.of_port[0], ports) or {}
        waiting = {one.port: one.waiting_packets or 0 for one in await queues.ports()}
        return {port: (found[port], waiting.get(port, 0)) for port in ports}

    async def _correct_slots(self, client: SwitchClient, queues: PortsClient, admitted: dict[int, int]) -> int:
        """Nothing waits at any managed port, so no flow or VC has anything waiting: set slots to 0 while no packet comes."""
        corrected = 0
        for start in range(0, self._state.slots, SLOTS_A_READING):
            indices = range(self._state.slots)[start : start + SLOTS_A_READING]
            found = await client.read_registers(self._state.of_slot, indices) or {}
            wrong = [slot for slot, count in found.items() if count]
            if not wrong:
                continue
            counts = await self._counts(client, queues, admitted.keys())
            if any(waiting for _, waiting in counts.values()) or await self._admitted(client, admitted) != admitted:
                return corrected
            await client.write([~P4RegisterEntry(self._state.of_slot, index=slot, data=0) for slot in wrong])
            corrected += len(wrong)
        self._slots_wrong = False
        return corrected
