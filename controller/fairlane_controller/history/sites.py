# SPDX-License-Identifier: Apache-2.0
"""Where a change is made: the switches, reached when they are needed. A running loop is the primary, so it writes what others change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

from finsy import GRPCStatusCode

from fairlane_controller.errors import find_by_name
from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.gnmi.ports import PortsClient
from fairlane_controller.state.ask import ask, loop_runs, own_loop
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import Endpoint, SwitchClient, endpoint_of
from fairlane_controller.switch.faults import Refusal
from fairlane_controller.switch.updates import plain_updates
from fairlane_controller.typed import typed


class LoopClient(SwitchClient):
    """A reader whose writes a running loop makes."""

    def __init__(self, endpoint: Endpoint, folder: Path) -> None:
        """Connect to nothing yet; `folder`: the loop's run-state folder."""
        super().__init__(endpoint)
        self._folder = folder

    @property
    def writes(self) -> bool:
        """True: the loop writes."""
        return True

    async def write_each_with_reasons(self, updates: Sequence[Any]) -> dict[int, Refusal]:
        """Write all that the switch takes; what it refused, by index."""
        plain = plain_updates(updates, self.switch.p4info)
        if not plain:
            return {}
        by = "the configuration file" if own_loop.get() else typed()
        request = {"op": "table_write", "switch": self.endpoint.name, "put": True, "updates": plain, "command": by}  # fmt: skip
        answer: dict[str, Any] = await ask(self._folder, request)
        return {int(at): Refusal(GRPCStatusCode[code], text) for at, (code, text) in answer["refused"].items()}


class Sites:
    """`async with Sites(run) as sites: client = await sites.reader("s1")`; connections last until the end."""

    def __init__(self, run: RunState | None, given: Iterable[Endpoint] = (), *, writes: bool = False) -> None:
        """Connect to nothing yet.

        Args:
            run: the topology; None: the switches `given` alone, and nothing is remembered.
            given: switches that were named by their address, or chosen; empty: all of the topology.
            writes: the only switch that there is will be written: one connection reads and writes it.
        """
        self.run = run
        named = {one.name: one for one in given}
        known = {} if run is None or named else {one.name: endpoint_of(one) for one in run.switches}
        self.endpoints: Mapping[str, Endpoint] = {**known, **named}
        self._writes = writes and len(self.endpoints) == 1
        self.folder = run.folder if run is not None and run.folder.parts else None
        self.loop_folder = self.folder if self.folder is not None and loop_runs(self.folder) else None
        "The run-state folder, where a loop runs."
        self._clients: dict[str, SwitchClient] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Sites:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def endpoint(self, switch: str) -> Endpoint:
        """Where a switch is; UNKNOWN_NAME when there is none of that name."""
        return find_by_name("switch", switch, self.endpoints)

    async def reader(self, switch: str) -> SwitchClient:
        """A client that reads; raises what is wrong with the switch."""
        return await self._client(switch, self._writes)

    async def writer(self, switch: str) -> SwitchClient:
        """A client that may write; raises what is wrong with the switch."""
        return await self._client(switch, True)

    async def _client(self, switch: str, writes: bool) -> SwitchClient:
        known = self._clients.get(switch)
        if known is not None and (known.writes or not writes):
            return known
        endpoint = self.endpoint(switch)
        by_loop = self.loop_folder and LoopClient(endpoint, self.loop_folder)
        client = await self._stack.enter_async_context(by_loop or SwitchClient(endpoint, write=writes))
        self._clients[switch] = client
        return client

    def ports(self, switch: str) -> AbstractAsyncContextManager[PortsClient]:
        """The client of a switch's ports."""
        return open_ports(self.endpoint(switch), self.run)

    async def poke(self) -> None:
        """Have a running loop read again what is remembered, and what its switches have."""
        if self.loop_folder is not None:
            await ask(self.loop_folder, {"op": "poke"})
