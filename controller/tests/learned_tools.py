# SPDX-License-Identifier: Apache-2.0
"""Learned tables in memory: a session whose events are kept, and flows by number."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Any, cast

from fairlane_controller.program.control import Session
from fairlane_controller.programs.qthresh.flows import Flow, FlowKey, Flows
from fairlane_controller.state.events import EventLog
from fairlane_controller.switch.client import Endpoint, SwitchClient


class MemorySession:
    """Of a switch `s1`; `attempt` does nothing."""

    endpoint = Endpoint("s1", "memory")

    def __init__(self, log: EventLog | None = None) -> None:
        self.log = log or EventLog(None)
        self.writes = asyncio.Lock()

    def event(self, event: str, **fields: Any) -> None:
        """Into the log."""
        self.log.write(event, switch="s1", **fields)

    async def attempt(
        self, client: SwitchClient, what: str, act: Callable[[SwitchClient], Awaitable[Any]], *, keep: bool = True
    ) -> bool:
        """As if the switch took it."""
        del client, what, act, keep
        return True


def flows_of(log: EventLog | None = None, idle_timeout_s: float = 30.0, **options: Any) -> Flows:
    """Qthresh's flows of a switch."""
    return Flows(cast("Session", MemorySession(log)), idle_timeout_s=idle_timeout_s, **options)


def key(number: int, version: int = 4) -> FlowKey:
    """A flow of its own for each number."""
    src = int(ipaddress.ip_address("10.0.0.1" if version == 4 else "2001:db8::1"))
    return FlowKey(version, src, src + 1, 6, number, 5001)


def at_port_3(*numbers: int) -> dict[FlowKey, Flow]:
    """Flows of class 0 at port 3."""
    return {key(number): Flow((3, 0)) for number in numbers}
