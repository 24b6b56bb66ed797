# SPDX-License-Identifier: Apache-2.0
"""`LiveSource`: opened once, read many times; one `Snapshot` of all switches, also when some of them do not answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import DeadRow, LoopRow, Snapshot
from fairlane_controller.live.view import SwitchReader
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import RunState, read_run_state
from fairlane_controller.switch.client import Endpoint, endpoint_of

ANSWER_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class LoopSample:
    """What a control loop answered."""

    rows: tuple[LoopRow, ...] | None = None
    "None: no loop runs."
    error: FairlaneError | None = None
    measured: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict[str, dict[int, dict[str, Any]]])
    "By switch and port."


async def read_loop(folder: Path | None) -> LoopSample:
    """Ask the loop of a run-state folder; what is wrong with it is in the answer, nothing is raised for it."""
    if folder is None:
        return LoopSample()
    status, measured = await asyncio.gather(
        *(ask(folder, {"op": op}, ANSWER_TIMEOUT_S) for op in ("status", "measure")), return_exceptions=True
    )
    if isinstance(status, BaseException):
        error = status if isinstance(status, FairlaneError) else ErrorCode.INTERNAL(f"loop: {status}")
        return LoopSample(error=None if error.code is ErrorCode.NO_LOOP else error)
    rows = tuple(LoopRow(one["switch"], one["connected"], one.get("error"), one) for one in status)
    found = LoopSample(rows)
    some: list[dict[str, Any]] = [] if isinstance(measured, BaseException) else measured  # not every loop has some
    for one in some:
        values = {key: value for key, value in one.items() if key not in ("switch", "port")}
        found.measured.setdefault(one["switch"], {})[one["port"]] = values
    return found


class LiveTargets(Protocol):
    """What a command resolved: `cli.targets.Targets`, or anything like it."""

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """The switches."""
        ...

    @property
    def run(self) -> RunState | None:
        """The topology that they belong to, if there is one."""
        ...


class LiveSource:
    """`async with LiveSource(targets) as source: await source.snapshot()`.

    The first snapshot waits for every switch as long as a connection may take; the later ones never wait for one that is away. A
    topology that is restarted under the same name is found by its run state.
    """

    def __init__(self, targets: LiveTargets) -> None:
        self._asking = asyncio.Lock()
        self._begin(targets.run, targets.endpoints)

    def _begin(self, run: RunState | None, endpoints: Iterable[Endpoint]) -> None:
        self._run, self._first = run, True
        self._readers = {one.name: SwitchReader(one) for one in endpoints}

    async def __aenter__(self) -> LiveSource:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections; the next snapshot makes new ones."""
        self._first = True
        await asyncio.gather(*(reader.close() for reader in self._readers.values()))

    async def snapshot(self) -> Snapshot:
        """Everything now; a fault of a switch or of the loop is in its row, and nothing is raised."""
        async with self._asking:
            is_there = await self._follow_run_state()
            wait, self._first = self._first, False
            time_s, run = time.time(), self._run
            loop = await read_loop(run.folder if run else None)
            details = {row.switch: row.details for row in loop.rows or ()}
            samples = await asyncio.gather(
                *(
                    reader.read(run, details.get(name), loop.measured.get(name, {}), wait=wait)
                    for name, reader in self._readers.items()
                )
            )
        intervals = [i for reader in self._readers.values() if (i := reader.interval_s) is not None]
        return Snapshot(
            time_s=time_s,
            topology=run.name if run else None,
            target=run.target if run else None,
            title=run.title if run else "",
            hosts={host.ip: host.name for host in run.hosts if host.ip} if run else {},
            switches=tuple(row for row, _ in samples),
            ports=tuple(row for _, (ports, _, _) in samples for row in ports),
            objects=tuple(row for _, (_, objects, _) in samples for row in objects),
            drops=tuple(row for _, (_, _, drops) in samples for row in drops),
            loop=loop.rows,
            loop_error=loop.error.to_json() if loop.error else None,
            dead=_dead_of(run) if run is not None and is_there else (),
            interval_s=max(intervals, default=None),
            programs={one.program.name: one.program for one in self._readers.values() if one.program is not None},
        )

    async def _follow_run_state(self) -> bool:
        """Take the addresses and the target of a topology that was started anew; whether the topology has a run state.

        The addresses of one that ended stay, and its switches do not answer.
        """
        if self._run is None:
            return False
        try:
            run = read_run_state(self._run.folder)
        except FairlaneError:
            return False
        another_target, self._run = run.target != self._run.target, run
        endpoints = {one.name: endpoint_of(one) for one in run.switches if one.name in self._readers}
        if another_target or any(self._readers[name].endpoint != one for name, one in endpoints.items()):
            await self.close()
            self._begin(run, endpoints.values())
        return True


def _dead_of(run: RunState) -> tuple[DeadRow, ...]:
    """The processes of the topology that have died."""
    dead = (one for one in run.processes if one.has_died)
    return tuple(DeadRow(one.what, one.pid, f"{one.what} (process {one.pid}) has died") for one in dead)
