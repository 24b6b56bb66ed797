# SPDX-License-Identifier: Apache-2.0
"""The live loop of one switch, for every program: connect, become primary, reconcile, serve; again when the connection is lost."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from finsy import P4ClientError, P4TableEntry

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.changeset import Writing, missing, read_entries
from fairlane_controller.switch.client import (
    LISTENER_ID,
    Endpoint,
    SwitchClient,
    backup_election_id,
    pipeline_of,
    route_entries,
)
from fairlane_controller.switch.entities import EntityChange, entity_key
from fairlane_controller.switch.faults import Refusal, translate
from fairlane_controller.switch.updates import match_of
from fairlane_controller.units import counted

PING_PERIOD_S = 2.0
PING_TIMEOUT_S = 5.0
"Timeout of a silent connection: it may be broken without a notification."
OBSERVE_PERIOD_S = 1.0
"How often a backup reads what its switch has."
RETRY_S = 0.2
"Between two attempts to reach a switch that does not answer."
LONGEST_RETRY_S = 5.0
"A switch that answers, but with errors, is asked again with growing pauses up to this."

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""Each pause is twice the one before, up to this."""
MAX_REFUSED = 1024
"""Updates that are remembered; what is refused beyond is reported and not tried again."""

_T = TypeVar("_T")
Act = Callable[[SwitchClient], Awaitable[object]]
"""Writes one thing; raises FairlaneError REFUSED when the switch does not take it."""


class Log(Protocol):
    """Where events go."""

    def write(self, event: str, **fields: Any) -> None:
        """One event with its stable name."""
        ...


@dataclass
class _Refused:
    act: Act | None = None
    "None: whoever wants it attempts it again."
    retry_s: float = 0.0
    pause_s: float = 0.0
    attempts: int = 0


class SwitchAgent:
    """Runs until cancelled. When it ends, for any reason, the switch keeps its entries and settings.

    Its time is the running event loop's, in seconds; its clients come from `client_factory`, which takes the arguments of
    `SwitchClient`: so it works in another time and over another transport.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        topology: TopologyControl,
        log: Log,
        *,
        state: SwitchState | None = None,
        client_factory: Callable[..., SwitchClient] = SwitchClient,
        connect_timeout_s: float = 2.0,
        dry_run: bool = False,
    ) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: the switch.
            topology: the run time of its program.
            log: where events go.
            state: what the run state says of the switch; None: it is not restored after a restart.
            client_factory: makes a client, as `SwitchClient` does.
            connect_timeout_s: until the switch answers.
            dry_run: bid an election id below every writer's, and write nothing.
        """
        self.endpoint = endpoint
        self.topology = topology
        self.log = log
        self.state = state
        self.dry_run = dry_run
        self.client: SwitchClient | None = None
        "While it is connected and served."
        self.last_error: FairlaneError | None = None
        self.ready = asyncio.Event()
        "Set when the switch was taken over, or is observed, for the first time."
        self.writes = asyncio.Lock()
        "Held by whoever writes to the switch."
        self._refused: dict[str, _Refused] = {}
        "By names that people understand, over lost connections too; forgotten when everything is written anew."
        self._some_refused = asyncio.Event()
        self._client_factory = client_factory
        self._connect_timeout_s = connect_timeout_s
        self._election_id = LISTENER_ID if dry_run else None
        "None: above the primary's. It stays the same after the first connection, so that two controllers do not take turns."
        self._may_lead = asyncio.Event()
        self._may_lead.set()
        self._half_restored = False
        "The connection was lost while a restarted switch got its program and entries back."
        self._cookie: int | None = None
        "Of the program in the last session, where we may restore it: a switch that has loaded one by itself since then has no cookie."
        self._failures = 0
        self._served = False
        self.control = topology.control_type(self, topology)

    def event(self, event: str, **fields: Any) -> None:
        """One line of the event log, of this switch."""
        self.log.write(event, switch=self.endpoint.name, **fields)

    def stand_by(self) -> None:
        """Be the backup, which reads and writes nothing, until `lead`. Call it before `run`."""
        self._may_lead.clear()
        self._election_id = backup_election_id()

    def lead(self) -> None:
        """From now on write: with an election id above everybody's who came before."""
        self._election_id = None
        self._may_lead.set()

    # ---- sessions ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, serve, and again when the connection is lost. Whatever goes wrong, it is reported and tried again."""
        while True:
            self._served = False
            # A task of its own: gRPC cancels the call that was on its way when the connection broke, and that must not look
            # as if somebody had cancelled us.
            session = asyncio.create_task(self._session())
            try:
                await asyncio.wait((session,))
            finally:
                if not session.done():
                    session.cancel()
                    await asyncio.gather(session, return_exceptions=True)
            self._report_end(session)
            await asyncio.sleep(self._pause_s())

    def _pause_s(self) -> float:
        """Short for a switch that is away; growing for one that answers with errors, so that it is not flooded."""
        away = self.last_error is None or self.last_error.code in (ErrorCode.SWITCH_UNREACHABLE, ErrorCode.NOT_PRIMARY)
        self._failures = 0 if away or self._served else self._failures + 1
        return min(RETRY_S * 2**self._failures, LONGEST_RETRY_S)

    def _report_end(self, session: asyncio.Task[None]) -> None:
        """One event of how a session ended, unless it ended as the one before. gRPC may have cancelled a call of a good one."""
        problem = self._lost() if session.cancelled() else session.exception()
        if self._served and (session.cancelled() or problem is None):
            self.event("disconnected")
        elif problem is not None:
            error = problem if isinstance(problem, FairlaneError) else _internal(problem)
            if self.last_error is None or self.last_error.message != error.message:
                self.event("error", code=error.code.value, message=error.message)
            self.last_error = error

    def _new_client(self, *, write: bool = True, **options: Any) -> SwitchClient:
        options |= {"election_id": self._election_id, "timeout_s": self._connect_timeout_s}
        client = self._client_factory(self.endpoint, write=write, **options)
        client.drops_entries = self.dry_run
        return client

    async def _session(self) -> None:
        leads = self._may_lead.is_set()
        async with self._new_client(write=leads, require_primary=False) as client:
            if not leads:
                await self._stand_by(client)
                return
            self._election_id = client.election_id
            if not client.is_primary:
                await self._wait_for_promotion(client)
            cookie = await client.cookie()
            if not client.has_pipeline or self._half_restored or (cookie is None and self._cookie is not None):
                await self._restore(client)
                cookie = await client.cookie()
            self._cookie = None if self.state is None or self.dry_run else cookie
            await self.control.take_over(client)
            self.client, self.last_error, self._served = client, None, True
            self.ready.set()
            try:
                await self._run_until(client.down, client, [*self.control.jobs(client), self._retry_forever(client)])
            finally:
                self.client = None
                self.last_error = self._lost()

    async def _stand_by(self, client: SwitchClient) -> None:
        """Observe until we may lead, or the switch gets a program; SWITCH_UNREACHABLE when the connection is lost before."""
        self.last_error = None
        self.event("standing_by", why="another controller is the primary; this one takes over when it ends")
        self.ready.set()
        await self._run_until(client.disconnected, client, [self._may_lead.wait(), self._observe_forever(client)])
        if not self._may_lead.is_set() and client.disconnected.is_set():
            raise self._lost()

    async def _observe_forever(self, client: SwitchClient) -> None:
        """Until the switch has a program that it did not have when we connected: only another connection learns it."""
        while client.has_pipeline or await client.cookie() is None:
            if client.has_pipeline:
                await self.control.observe(client)
            await asyncio.sleep(OBSERVE_PERIOD_S)

    async def _wait_for_promotion(self, client: SwitchClient) -> None:
        primary_id = client.switch.primary_id
        if self._election_id is not None and primary_id == self._election_id:
            # Nobody else has our id: a connection of ours that broke has it, or another client got it when it did.
            self._election_id += 1
            raise ErrorCode.NOT_PRIMARY(
                f"{self.endpoint}: our own lost connection is still the primary; bidding higher"
            )
        self.event("backup", primary_id=primary_id)
        self.last_error = ErrorCode.NOT_PRIMARY(f"{self.endpoint}: another controller is primary; waiting for it to go")
        await self._run_until(client.disconnected, client, [client.promoted.wait()])
        if client.disconnected.is_set() or not client.promoted.is_set():
            raise self.endpoint.unreachable("closed the connection")
        self.event("promoted")

    async def _run_until(
        self, end: asyncio.Event, client: SwitchClient, jobs: Sequence[Coroutine[Any, Any, Any]]
    ) -> None:
        """Do all jobs until one ends, or `end`; raises what one of them raised, or that the connection is silent."""
        tasks = [asyncio.create_task(job) for job in (end.wait(), *jobs, self._ping_forever(client))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except P4ClientError as ex:
            raise translate(ex, str(self.endpoint)) from None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ping_forever(self, client: SwitchClient) -> None:
        while True:
            await asyncio.sleep(PING_PERIOD_S)
            await client.ping(PING_TIMEOUT_S)

    # ---- a switch that has restarted -----------------------------------------------------------------------------

    async def _restore(self, client: SwitchClient) -> None:
        """Give a switch that has restarted what the run state and our memory say; again in the next session when this one ends
        before. Leaves `client` open."""
        if self.state is None or self.dry_run:
            why = "a dry run loads none" if self.dry_run else "run `fairlane config init`"
            raise ErrorCode.NO_PIPELINE(f"{self.endpoint} has no program yet: {why}")
        self._half_restored = True
        was = "has its own program" if client.has_pipeline else "had no program"
        self._refused.clear()
        await client.close()
        entries, routes = list(self.control.entries_after_restart()), len(self.state.routes)
        try:
            async with self._new_client(pipeline=pipeline_of(self.state)) as loader:
                changes = await missing(loader, [*route_entries(loader, self.state), *entries])
                refused = await Writing().write(loader, changes, keep_going=True)
        except FairlaneError as ex:
            # It lost the new program: what is there the next time is somebody else's, or nothing is.
            self._half_restored = ex.code is not ErrorCode.NO_PIPELINE
            raise
        for index, refusal in refused.items():
            _, entry = changes[index].entries
            assert entry is not None
            self._put_later(entry, refusal)
        self.event(
            "restored",
            routes=routes,
            entries=len(entries),
            why=f"the switch {was}, so it has restarted: it got program, {counted(routes, 'route')} and "
            f"{counted(len(entries), 'entry')} of the program again",
        )
        await client.__aenter__()
        self._half_restored = False

    def _put_later(self, entry: P4TableEntry, refusal: Refusal) -> None:
        """The switch refused an entry that it should have: the others are there, this one is tried again."""

        async def put(client: SwitchClient) -> None:
            async with self.writes:
                current = await read_entries(client, [entry.table_id])
                if entity_key(client.canonical(entry)) not in current:  # else somebody has written it since
                    await client.write([EntityChange(None, entry).update])
                await self.control.changed(client)

        name = ", ".join([f"table {entry.table_id}", *(f"{field} {value}" for field, value in match_of(entry))])
        self.note_refusal(name, str(refusal), put)

    # ---- what the switch has refused -----------------------------------------------------------------------------

    def note_refusal(self, name: str, message: str, act: Act | None) -> None:
        """The switch has refused an update: reported with its reason, and tried again with growing pauses.

        Args:
            name: of the update, for people (`table policy, port 3, class 0`).
            message: the switch's reason.
            act: what is tried again; None: the next `attempt` does.
        """
        if name not in self._refused and len(self._refused) >= MAX_REFUSED:
            why = f"{name} was refused and is not tried again: {MAX_REFUSED} others wait already; {message}"
            self.event("refused", update=name, attempts=1, again_s=None, why=why)
            return
        refused = self._refused.setdefault(name, _Refused())
        refused.act = act
        refused.attempts += 1
        pause_s = refused.pause_s = min(2 * refused.pause_s or FIRST_PAUSE_S, LONGEST_PAUSE_S)
        refused.retry_s = asyncio.get_running_loop().time() + pause_s
        if act is not None:
            self._some_refused.set()
        why = f"the switch refused {name}, so it is tried again in {pause_s:g} s: {message}"
        self.event("refused", update=name, attempts=refused.attempts, again_s=pause_s, why=why)

    async def attempt(self, client: SwitchClient, what: str, act: Act, *, keep: bool = True) -> bool:
        """Write something now, unless it pauses after a refusal.

        Args:
            client: of the switch.
            what: the update, for people.
            act: writes it.
            keep: False: what is refused is not tried again by itself, only by the next `attempt` after the pause.

        Returns:
            Whether the switch took it.

        Raises:
            FairlaneError: what is no refusal.
        """
        refused = self._refused.get(what)
        if refused is not None and asyncio.get_running_loop().time() < refused.retry_s:
            return False
        try:
            await act(client)
        except FairlaneError as ex:
            if ex.code is not ErrorCode.REFUSED:
                raise
            self.note_refusal(what, ex.message, act if keep else None)
            return False
        refused = self._refused.pop(what, None)
        if refused is not None:
            times = "once" if refused.attempts == 1 else f"{refused.attempts} times"
            why = f"the switch has taken {what}, which it had refused {times}"
            self.event("accepted", update=what, attempts=refused.attempts, why=why)
        return True

    async def _retry_forever(self, client: SwitchClient) -> None:
        while True:
            if not any(refused.act for refused in self._refused.values()):
                self._some_refused.clear()
                await self._some_refused.wait()
            await asyncio.sleep(FIRST_PAUSE_S / 4)
            for name, refused in list(self._refused.items()):
                if refused.act is not None and self._refused.get(name) is refused:
                    await self.attempt(client, name, refused.act)

    # ---- what people ask for -----------------------------------------------------------------------------------

    def connected(self) -> SwitchClient:
        """The client; raises what is wrong when there is none."""
        if self.client is None:
            raise self.last_error or self.endpoint.unreachable("is not connected")
        return self.client

    async def exclusively(self, change: Callable[[SwitchClient], Awaitable[_T]]) -> _T:
        """Run a change of what the switch has while nothing else writes, and go on from what it has then."""
        client = self.connected()
        async with self.writes:
            try:
                return await change(client)
            finally:
                await self.control.changed(client)

    async def reread(self) -> None:
        """Go on from what the switch has now: somebody else has changed it."""
        async with self.writes:
            await self.control.changed(self.connected())

    def status(self) -> dict[str, Any]:
        """The loop's view of its switch."""
        return {
            "switch": self.endpoint.name,
            "connected": self.client is not None,
            "error": self.last_error.to_json() if self.last_error else None,
            "refused": sorted(self._refused),
            **self.control.status(),
        }

    def _lost(self) -> FairlaneError:
        return self.endpoint.unreachable("does not answer: the connection was lost")


def _internal(problem: BaseException) -> FairlaneError:
    """The text of an unexpected error, with the source line where it was raised."""
    if isinstance(problem, P4ClientError):
        return ErrorCode.REFUSED(str(problem))
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return ErrorCode.INTERNAL(f"{type(problem).__name__}: {problem}{where}")
