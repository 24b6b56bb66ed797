# SPDX-License-Identifier: Apache-2.0
"""`LiveSource`: opened once, asked again and again; one `Snapshot` of all switches, whatever some of them do."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import DeadRow, LoopRow, Snapshot
from fairlane_controller.live.view import Place, ReaderOptions, SwitchReader
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import TOPOLOGY, RunState, read_run_state
from fairlane_controller.state.store import Stamp, Store
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.setup import endpoint_of

if TYPE_CHECKING:
    from fairlane_controller.gnmi.queues import GnmiQueues

ANSWER_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class LoopSample:
    """One answer."""

    rows: tuple[LoopRow, ...] | None = None
    "None: no loop runs."
    error: FairlaneError | None = None
    measured: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict[str, dict[int, dict[str, Any]]])
    "By switch and port."


async def read_loop(folder: Path | None) -> LoopSample:
    """Ask the loop of a run-state folder; what is wrong with it is in the answer, nothing is raised for it."""
    if folder is None:
        return LoopSample()
    status, measured = await asyncio.gather(_ask(folder, "status"), _ask(folder, "measure"))
    if isinstance(status, FairlaneError):
        return LoopSample() if status.code is ErrorCode.NO_LOOP else LoopSample(error=status)
    rows = tuple(
        LoopRow(
            str(one["switch"]),
            bool(one.get("connected")),
            one.get("error"),
            one.get("flows"),
            one.get("flows_missed"),
            one,
        )
        for one in status
    )
    found = LoopSample(rows)
    for one in measured if not isinstance(measured, FairlaneError) else ():  # not every loop has some
        values = {key: value for key, value in one.items() if key not in ("switch", "port")}
        found.measured.setdefault(str(one["switch"]), {})[int(one["port"])] = values
    return found


async def _ask(folder: Path, op: str) -> list[dict[str, Any]] | FairlaneError:
    try:
        return await ask(folder, {"op": op}, ANSWER_TIMEOUT_S)
    except FairlaneError as ex:
        return ex
    except ValueError as ex:
        return FairlaneError(ErrorCode.INTERNAL, f"the control loop's answer to {op!r} is no JSON: {ex}")


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
    topology that is started again under the same name is found again by its run state.
    """

    def __init__(
        self,
        targets: LiveTargets,
        options: ReaderOptions | None = None,
        client_factory: Callable[..., SwitchClient] = SwitchClient,
        endpoint_for: Callable[[Any], Endpoint] = endpoint_of,
    ) -> None:
        self._options = options or ReaderOptions()
        self._queues_of = _queues_by_target(targets.run)
        self._client_factory = client_factory
        self._endpoint_for = endpoint_for
        self._run = targets.run
        self._readers = {e.name: self._reader(e) for e in targets.endpoints}
        self._first = True
        self._store = Store(targets.run.folder) if targets.run else None
        self._run_stamp: Stamp | None = self._stamp(TOPOLOGY)
        self._is_there = False
        "Whether the topology has a run state: it has not ended in order."
        self._asking = asyncio.Lock()
        self.snapshots = 0
        "How many were taken."

    @property
    def run(self) -> RunState | None:
        """The topology, as its run state says it now."""
        return self._run

    @property
    def _folder(self) -> Path | None:
        return self._run.folder if self._run else None

    def _reader(self, endpoint: Endpoint) -> SwitchReader:
        return SwitchReader(endpoint, self._options, self._queues_of, self._client_factory)

    async def __aenter__(self) -> LiveSource:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections."""
        await asyncio.gather(*(reader.close() for reader in self._readers.values()))

    async def snapshot(self) -> Snapshot:
        """Everything now; raises BAD_FILE only (a file of the run state that cannot be understood)."""
        async with self._asking:
            await self._follow_run_state()
            wait, self._first = self._first, False
            time_s = time.time()
            run, loop = self._run, await read_loop(self._folder)
            states = {s.name: s for s in run.switches} if run else {}
            details = {row.switch: row.details for row in loop.rows or ()}
            samples = await asyncio.gather(
                *(
                    reader.read(
                        Place(
                            name,
                            states.get(name),
                            self._folder,
                            details.get(name),
                            loop.measured.get(name, {}),
                            run.program if run else "",
                        ),
                        wait=wait,
                    )
                    for name, reader in self._readers.items()
                )
            )
            self.snapshots += 1
        intervals = [i for reader in self._readers.values() if (i := reader.interval_s) is not None]
        return Snapshot(
            time_s=time_s,
            topology=run.name if run else None,
            target=run.target if run else None,
            title=run.title if run else "",
            hosts={host.ip: host.name for host in run.hosts if host.ip} if run else {},
            switches=tuple(row for row, _ in samples),
            ports=tuple(port for _, sample in samples for port in sample.ports),
            objects=tuple(row for _, sample in samples for row in sample.objects),
            drops=tuple(drop for _, sample in samples for drop in sample.drops),
            loop=loop.rows,
            loop_error=loop.error.to_json() if loop.error else None,
            dead=_dead_of(run) if run is not None and self._is_there else (),
            interval_s=max(intervals) if intervals else None,
            programs={one.program.name: one.program for one in self._readers.values() if one.program is not None},
        )

    async def _follow_run_state(self) -> None:
        """A topology that was started anew has other addresses, maybe on another target; one that ended keeps its last ones, and its switches do not answer."""
        folder = self._folder
        stamp = self._stamp(TOPOLOGY)
        self._is_there = stamp is not None
        if folder is None or stamp is None or stamp == self._run_stamp:
            return
        try:
            run = read_run_state(folder)
        except FairlaneError:
            return  # it went away meanwhile, or is about to be replaced
        another_target = self._run is not None and run.target != self._run.target
        self._run, self._run_stamp = run, stamp
        if another_target:
            self._queues_of = _queues_by_target(run)
        ended: list[SwitchReader] = []
        for switch in run.switches:
            reader, endpoint = self._readers.get(switch.name), self._endpoint_for(switch)
            if reader is not None and (another_target or reader.endpoint != endpoint):
                ended.append(reader)
                self._readers[switch.name] = self._reader(endpoint)
        for reader in ended:
            with contextlib.suppress(Exception):
                await reader.close()

    def _stamp(self, documents: str) -> Stamp | None:
        """Another one when these documents have changed; None where they cannot be read."""
        with contextlib.suppress(FairlaneError):
            return self._store.stamp(documents) if self._store is not None else None
        return None


_WITHOUT = {
    "fairlane-wire": "no packet crosses an emulated link",
    "launcher": "`make stop` removes what is left of the topology",
}
"What follows from a death, where no other line says it."


def _dead_of(run: RunState) -> tuple[DeadRow, ...]:
    """The processes of the topology that have died."""
    dead = [(one.what, one.pid) for one in run.processes if one.has_died]
    more = {what: f": {_WITHOUT[what]}" if what in _WITHOUT else "" for what, _ in dead}
    return tuple(DeadRow(what, pid, f"{what} (process {pid}) has died{more[what]}") for what, pid in dead)


def _queues_by_target(run: RunState | None) -> type[GnmiQueues] | None:
    """gNMI, which a switch may serve or not; BMv2 does not, and is not asked."""
    if run is not None and run.target == "bmv2":
        return None
    from fairlane_controller.gnmi.queues import GnmiQueues  # with all of gRPC

    return GnmiQueues
