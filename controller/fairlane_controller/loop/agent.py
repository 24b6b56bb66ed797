# SPDX-License-Identifier: Apache-2.0
"""The live loop of one switch, for every program: its session, and in it what the program's control does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from finsy import P4TableEntry

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.session import Log, SwitchSession
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.changeset import Writing
from fairlane_controller.switch.client import LISTENER_ID, Endpoint, SwitchClient
from fairlane_controller.switch.difference import missing, read_entries
from fairlane_controller.switch.entities import EntityChange, entity_key
from fairlane_controller.switch.faults import Refusal
from fairlane_controller.switch.setup import pipeline_of, route_entries
from fairlane_controller.units import counted

_T = TypeVar("_T")


@dataclass(frozen=True)
class SessionOptions:
    """How a session reaches its switch."""

    connect_timeout_s: float = 2.0
    retry_s: float = 0.2
    "Between two attempts to reach a switch that does not answer."


class SwitchAgent(SwitchSession):
    """Runs until cancelled. When it ends, for any reason, the switch keeps its entries and settings."""

    def __init__(
        self,
        endpoint: Endpoint,
        topology: TopologyControl,
        log: Log,
        options: SessionOptions | None = None,
        state: SwitchState | None = None,
        client_factory: Callable[..., SwitchClient] = SwitchClient,
        *,
        dry_run: bool = False,
    ) -> None:
        """`dry_run`: with an election id below every writer's, and nothing is written."""
        options = options or SessionOptions()

        def dry_client(*arguments: Any, **keywords: Any) -> SwitchClient:
            client = client_factory(*arguments, **keywords)
            client.drops_entries = True
            return client

        factory = dry_client if dry_run else client_factory
        super().__init__(endpoint, log, options.connect_timeout_s, options.retry_s, factory)
        self.topology = topology
        self.state = state
        self.writes = asyncio.Lock()
        "Held by whoever writes to the switch."
        self.dry_run = dry_run
        if dry_run:
            self._election_id = LISTENER_ID
        self.control = topology.control_type(self, topology)

    @property
    def log(self) -> Log:
        """Where events go."""
        return self._log

    def event(self, event: str, **fields: Any) -> None:
        """One line of the event log, of this switch."""
        self._event(event, **fields)

    async def attempt(
        self, client: SwitchClient, what: str, act: Callable[[SwitchClient], Awaitable[Any]], *, keep: bool = True
    ) -> bool:
        """Write something now; what the switch refuses is tried again later (`Retries.attempt`)."""
        return await self.retries.attempt(client, what, act, keep=keep)

    # ---- life ------------------------------------------------------------------------------------------------

    async def _restore(self, client: SwitchClient) -> None:
        """A switch without a program was restarted: give it back what the run state and our memory say."""
        if self.dry_run:
            raise FairlaneError(ErrorCode.NO_PIPELINE, f"{self.endpoint} has no program, and a dry run loads none")
        if self.state is None:
            raise FairlaneError(
                ErrorCode.NO_PIPELINE, f"{self.endpoint} has no program yet: run `fairlane config init`"
            )
        await client.close()
        loader = self._client_factory(
            self.endpoint,
            write=True,
            election_id=self._election_id,
            pipeline=pipeline_of(self.state),
            timeout_s=self._connect_timeout_s,
        )
        entries = list(self.control.entries_after_restart())
        async with loader:
            changes = await missing(loader, [*route_entries(loader, self.state), *entries])
            refused = await Writing().write(loader, changes, keep_going=True)
        for index, refusal in refused.items():
            _, entry = changes[index].entries
            assert entry is not None
            self._put_later(entry, refusal)
        routes = len(self.state.routes)
        self._event(
            "restored",
            routes=routes,
            entries=len(entries),
            why=f"the switch had no program, so it has restarted: it got program, {counted(routes, 'route')} and "
            f"{counted(len(entries), 'entry')} of the program again",
        )
        await client.__aenter__()

    def _put_later(self, entry: P4TableEntry, refusal: Refusal) -> None:
        """The switch refused an entry that it should hold: the others are there, this one is tried again."""

        async def put(client: SwitchClient) -> None:
            async with self.writes:
                current = await read_entries(client, [entry.table_id])
                if entity_key(client.canonical(entry)) not in current:  # else somebody has written it since
                    await client.write([EntityChange(None, entry).update])
                await self.control.changed(client)

        self.retries.note(f"table {entry.table_id}, {_match_text(entry)}", str(refusal), put)

    async def _observe(self, client: SwitchClient) -> None:
        await self.control.observe(client)

    async def _take_over(self, client: SwitchClient) -> None:
        await self.control.take_over(client)

    async def _serve(self, client: SwitchClient) -> None:
        await self._serve_together(client, self.control.jobs(client))

    # ---- what people ask for -----------------------------------------------------------------------------------

    async def exclusively(self, change: Callable[[SwitchClient], Awaitable[_T]]) -> _T:
        """Run a change of what the switch holds while nothing else writes, and go on from what it holds then."""
        client = self.connected()
        async with self.writes:
            try:
                return await change(client)
            finally:
                await self.control.changed(client)

    def status(self) -> dict[str, Any]:
        """The loop's view of its switch."""
        return {
            "switch": self.endpoint.name,
            "connected": self.client is not None,
            "error": self.last_error.to_json() if self.last_error else None,
            "refused": self.retries.names(),
            **self.control.status(),
        }


def _match_text(entry: P4TableEntry) -> str:
    match: dict[str, Any] = dict(entry.match or {})
    return ", ".join(f"{name} {value}" for name, value in match.items())
