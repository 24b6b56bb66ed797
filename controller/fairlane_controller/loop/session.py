# SPDX-License-Identifier: Apache-2.0
"""The session of one switch: connect, become primary, reconcile, serve; again when the connection is lost."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from finsy import P4ClientError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.retries import Log, Retries
from fairlane_controller.switch.client import Endpoint, SwitchClient, backup_election_id
from fairlane_controller.switch.faults import translate

__all__ = ["Log", "SwitchSession"]

PING_PERIOD_S = 2.0
PING_TIMEOUT_S = 5.0
"Timeout of a silent connection: it may be broken without a notification."
OBSERVE_PERIOD_S = 1.0
"How often a backup looks at what its switch holds."
LONGEST_RETRY_S = 5.0
"A switch that answers, but with errors, is asked again with growing pauses up to this."


class SwitchSession:
    """Runs until cancelled; what it does with its switch is in `_restore`, `_take_over` and `_serve`.

    Its time is the running event loop's, in seconds; its clients come from `client_factory`, which takes the arguments of
    `SwitchClient`: so it works in another time and over another transport.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        log: Log,
        connect_timeout_s: float,
        retry_s: float,
        client_factory: Callable[..., SwitchClient],
    ) -> None:
        """`retry_s` lies between two attempts to reach a switch that does not answer."""
        self.endpoint = endpoint
        self.ready = asyncio.Event()
        "Set when the switch was taken over for the first time."
        self.last_error: FairlaneError | None = None
        self.client: SwitchClient | None = None
        "While it is connected and served."
        self._log = log
        self._connect_timeout_s = connect_timeout_s
        self._retry_s = retry_s
        self._client_factory = client_factory
        self._election_id: int | None = None
        "None: above the primary that is there; kept from the first connection on, so that two controllers do not take turns."
        self.retries = Retries(log, endpoint.name)
        "Updates that the switch refuses, over lost connections too; forgotten when everything is written anew."
        self.standing_by = asyncio.Event()
        "Set while this is connected as the backup."
        self._may_lead = asyncio.Event()
        self._may_lead.set()
        self._half_restored = False
        "The connection was lost while a restarted switch got its program and entries back."
        self._failures = 0
        self._served = False

    def stand_by(self) -> None:
        """Be the backup, which looks on and writes nothing, until `lead`. Call it before `run`."""
        self._may_lead.clear()
        self._election_id = backup_election_id()

    def lead(self) -> None:
        """From now on write: with an election id above everybody's who came before."""
        self._election_id = None
        self._may_lead.set()

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
            self._judge(session)
            await asyncio.sleep(self._pause_s())

    def _pause_s(self) -> float:
        """Short for a switch that is away; growing for one that answers with errors, so that it is not flooded."""
        away = self.last_error is None or self.last_error.code in (ErrorCode.SWITCH_UNREACHABLE, ErrorCode.NOT_PRIMARY)
        self._failures = 0 if away or self._served else self._failures + 1
        return min(self._retry_s * 2**self._failures, max(LONGEST_RETRY_S, self._retry_s))

    def _judge(self, session: asyncio.Task[None]) -> None:
        """Note how a session ended."""
        if (
            session.cancelled() and self._served
        ):  # gRPC cancelled a call of a session that was well: it is over as any other
            self._event("disconnected")
            return
        problem = self._lost() if session.cancelled() else session.exception()
        if problem is None:
            return
        ex = problem if isinstance(problem, FairlaneError) else _internal(problem)
        if self.last_error is None or self.last_error.message != ex.message:
            self._event("error", code=ex.code.value, message=ex.message)
        self.last_error = ex

    async def _session(self) -> None:
        leads = self._may_lead.is_set()
        client = self._client_factory(
            self.endpoint,
            write=leads,
            election_id=self._election_id,
            timeout_s=self._connect_timeout_s,
            require_primary=False,
        )
        async with client:
            if not leads:
                await self._stand_by(client)
                return
            self._election_id = client.election_id
            if not client.is_primary:
                await self._wait_for_promotion(client)
            if not client.has_pipeline or self._half_restored:
                await self._restore_whole(client)
            await self._take_over(client)
            self.client, self.last_error, self._served = client, None, True
            try:
                await self._serve(client)
            finally:
                self.client = None
                self.last_error = self._lost()
        self._event("disconnected")

    async def _restore_whole(self, client: SwitchClient) -> None:
        """`_restore`, and again in the next session when this one ends before it is done."""
        self._half_restored = True
        self.retries.clear()
        try:
            await self._restore(client)
        except FairlaneError as ex:
            # Nobody has a program for it, or it lost the new one: what is there the next time is not ours, or nothing is.
            self._half_restored = ex.code is not ErrorCode.NO_PIPELINE
            raise
        self._half_restored = False

    async def _stand_by(self, client: SwitchClient) -> None:
        """Look on until we may lead, or the switch gets a program; SWITCH_UNREACHABLE when the connection is lost before."""
        self.last_error = None
        if not self.standing_by.is_set():
            self._event("standing_by", why="another controller is the primary; this one takes over when it ends")
        self.standing_by.set()
        jobs: list[Coroutine[Any, Any, Any]] = [self._may_lead.wait(), self._observe_forever(client)]
        try:
            await self._run_until_first_ends(client, jobs)
            if not self._may_lead.is_set() and client.disconnected.is_set():
                raise self._lost()
        finally:
            self.standing_by.clear()

    async def _observe_forever(self, client: SwitchClient) -> None:
        """Until the switch has a program that it did not have when we connected: only another connection learns it."""
        while client.has_pipeline or await client.cookie() is None:
            if client.has_pipeline:
                await self._observe(client)
            await asyncio.sleep(OBSERVE_PERIOD_S)

    async def _observe(self, client: SwitchClient) -> None:
        """As the backup: remember what the switch would need after a restart. Reads only."""

    async def _wait_for_promotion(self, client: SwitchClient) -> None:
        primary_id = client.switch.primary_id
        if self._election_id is not None and primary_id == self._election_id:
            # Nobody else has our id: it is held by a connection of ours that broke, or was given to a bystander when it did.
            self._election_id += 1
            raise FairlaneError(
                ErrorCode.NOT_PRIMARY, f"{self.endpoint}: our own lost connection is still the primary; bidding higher"
            )
        self._event("backup", primary_id=primary_id)
        self.last_error = FairlaneError(
            ErrorCode.NOT_PRIMARY, f"{self.endpoint}: another controller is primary; waiting for it to go"
        )
        await self._run_until_first_ends(client, [client.promoted.wait()], until=client.disconnected)
        if client.disconnected.is_set() or not client.promoted.is_set():
            raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint} closed the connection")
        self._event("promoted")

    async def _restore(self, client: SwitchClient) -> None:
        """The switch has no program: it was restarted, or never had one. Leaves `client` open."""
        raise NotImplementedError

    async def _take_over(self, client: SwitchClient) -> None:
        """Go on from what the switch holds."""
        raise NotImplementedError

    async def _serve(self, client: SwitchClient) -> None:
        """Until the connection is lost; most of all `_serve_together`."""
        raise NotImplementedError

    async def _serve_together(self, client: SwitchClient, jobs: Sequence[Coroutine[Any, Any, Any]]) -> None:
        """Do all jobs until one of them ends, or `client` is down; from here on we are ready."""
        self.ready.set()
        await self._run_until_first_ends(client, [*jobs, self.retries.run(client)], until=client.down)

    async def _run_until_first_ends(
        self, client: SwitchClient, jobs: Sequence[Coroutine[Any, Any, Any]], until: asyncio.Event | None = None
    ) -> None:
        """Do all jobs until one ends, or `until` (None: a lost connection); raises what one of them raised.

        A connection that is silent counts as lost."""
        ends = until or client.disconnected
        tasks = [asyncio.create_task(job) for job in (ends.wait(), *jobs, self._ping_forever(client))]
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

    def connected(self) -> SwitchClient:
        """The client; raises what is wrong when there is none."""
        if self.client is None:
            raise self.last_error or FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint} is not connected")
        return self.client

    def _lost(self) -> FairlaneError:
        return FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint} does not answer: the connection was lost")

    def _event(self, event: str, **fields: Any) -> None:
        self._log.write(event, switch=self.endpoint.name, **fields)


def _internal(problem: BaseException) -> FairlaneError:
    """The text of an unexpected error, with the source line where it was raised."""
    if isinstance(problem, P4ClientError):
        return FairlaneError(ErrorCode.REFUSED, str(problem))
    frames = traceback.extract_tb(problem.__traceback__)
    place = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return FairlaneError(ErrorCode.INTERNAL, f"{type(problem).__name__}: {problem}{place}")
