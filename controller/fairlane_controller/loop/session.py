# SPDX-License-Identifier: Apache-2.0
"""The life of whatever keeps one switch: connect, become primary, take over, serve, and again when the connection is lost."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from finsy import P4ClientError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import Endpoint, SwitchClient, writer_election_id
from fairlane_controller.switch.faults import translate


class Log(Protocol):
    """Where events go: `loop.events.EventLog`, or what a test has."""

    def write(self, event: str, **fields: Any) -> None:
        """One event with its stable name."""
        ...


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
        self._election_id = writer_election_id()

    async def run(self) -> None:
        """Connect, serve, and again when the connection is lost. Whatever goes wrong, it is told and tried again."""
        while True:
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
            await asyncio.sleep(self._retry_s)

    def _judge(self, session: asyncio.Task[None]) -> None:
        """Note how a session ended."""
        problem = self._lost() if session.cancelled() else session.exception()
        if problem is None:
            return
        ex = problem if isinstance(problem, FairlaneError) else _internal(problem)
        if self.last_error is None or self.last_error.message != ex.message:
            self._event("error", code=ex.code.value, message=ex.message)
        self.last_error = ex

    async def _session(self) -> None:
        client = self._client_factory(
            self.endpoint,
            write=True,
            election_id=self._election_id,
            timeout_s=self._connect_timeout_s,
            require_primary=False,
        )
        async with client:
            if not client.is_primary:
                await self._wait_for_promotion(client)
            if not client.has_pipeline:
                await self._restore(client)
            await self._take_over(client)
            self.client, self.last_error = client, None
            try:
                await self._serve(client)
            finally:
                self.client = None
                self.last_error = self._lost()
        self._event("disconnected")

    async def _wait_for_promotion(self, client: SwitchClient) -> None:
        self._event("backup", primary_id=client.switch.primary_id)
        self.last_error = FairlaneError(
            ErrorCode.NOT_PRIMARY, f"{self.endpoint}: another controller is primary; waiting for it to go"
        )
        waits = [asyncio.create_task(event.wait()) for event in (client.disconnected, client.promoted)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
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
        tasks = [asyncio.create_task(job) for job in (client.down.wait(), *jobs)]
        self.ready.set()
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
    """An error that nobody foresaw, with the place where it happened."""
    if isinstance(problem, P4ClientError):
        return FairlaneError(ErrorCode.REFUSED, str(problem))
    frames = traceback.extract_tb(problem.__traceback__)
    place = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return FairlaneError(ErrorCode.INTERNAL, f"{type(problem).__name__}: {problem}{place}")
