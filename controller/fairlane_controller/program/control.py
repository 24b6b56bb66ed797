# SPDX-License-Identifier: Apache-2.0
"""What a program does at run time on one switch: take over, listen to digests, measure, decide, write.

class Control(SwitchControl):
    @on_digest("port_report_t")
    async def report(self, client, values): ...

    @every(0.25)
    async def decide(self, client): ...
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fairlane_controller.state.run_state import RunState, SwitchState
from fairlane_controller.switch.client import Endpoint, SwitchClient

_F = TypeVar("_F", bound=Callable[..., Any])
_HOOK = "_fairlane_hook"


class Attempt(Protocol):
    """Try to write something; a refusal is noted and tried again later (`keep`: until it succeeds)."""

    async def __call__(
        self, client: SwitchClient, what: str, write: Callable[[SwitchClient], Awaitable[Any]], *, keep: bool = True
    ) -> bool:
        """Whether it was written now."""
        ...


@dataclass
class SwitchContext:
    """What a control has of the session that runs it."""

    endpoint: Endpoint
    event: Callable[..., None]
    "`event(name, why=…, **fields)`: one line of the event log."
    attempt: Attempt
    run: RunState | None = None
    switch: SwitchState | None = None
    options: Any = None
    "`Program.LoopSettings`, as they are now."
    folder: Path | None = None
    "The run-state folder."
    writes: asyncio.Lock = field(default_factory=asyncio.Lock)
    "Held by whoever writes to the switch."


class SwitchControl:
    """The run time of a program on one switch; made once, and kept over lost connections. Its clock is the event loop's."""

    def __init__(self, context: SwitchContext) -> None:
        self.context = context

    async def observe(self, client: SwitchClient) -> None:
        """As the backup: remember what the switch would need after a restart. Reads only."""

    async def take_over(self, client: SwitchClient) -> None:
        """Go on from what the switch has: called with each new connection, before `jobs`."""

    def jobs(self, client: SwitchClient) -> Sequence[Coroutine[Any, Any, Any]]:
        """What runs while the switch is connected: by default the methods with `on_digest`, `on_idle` and `every`."""
        hooks = [(method, getattr(method, _HOOK)) for _, method in inspect.getmembers(self) if hasattr(method, _HOOK)]
        return [job(method, client) for method, job in hooks]

    async def changed(self, client: SwitchClient) -> None:
        """Somebody else wrote entries or settings: read them again and go on from them."""

    def use_options(self, options: Any) -> None:
        """Work with these `LoopSettings` from now on."""
        self.context.options = options

    def status(self) -> dict[str, Any]:
        """What it knows, as plain data, beside what the core says of the switch."""
        return {}

    def measurements(self) -> list[dict[str, Any]]:
        """What it measures, one object a managed port."""
        return []


def _hook(job: Callable[[Any, SwitchClient], Coroutine[Any, Any, Any]]) -> Callable[[_F], _F]:
    def mark(method: _F) -> _F:
        setattr(method, _HOOK, job)
        return method

    return mark


def on_digest(name: str, *, max_list: int = 64, max_delay_s: float = 0.02) -> Callable[[_F], _F]:
    """Call `method(client, values)` for each list of a digest's values; the digest is enabled first."""

    async def listen(method: Any, client: SwitchClient) -> None:
        enable = partial(enable_digest, name=name, max_list=max_list, max_delay_s=max_delay_s)
        await method.__self__.context.attempt(client, f"digest {name}", enable)
        async for values in client.digests(name):
            await method(client, values)

    return _hook(listen)


def every(period_s: float | Callable[[Any], float]) -> Callable[[_F], _F]:
    """Call `method(client)` again and again; the period in seconds may be a function of the control."""

    async def repeat(method: Any, client: SwitchClient) -> None:
        while True:
            await asyncio.sleep(period_s if isinstance(period_s, (int, float)) else period_s(method.__self__))
            await method(client)

    return _hook(repeat)


def on_idle(table: str) -> Callable[[_F], _F]:
    """Call `method(client, entries)` for entries of a table that nothing matched for their idle time."""

    async def listen(method: Any, client: SwitchClient) -> None:
        async for notification in client.switch.read_idle_timeouts(queue_size=10_000):
            entries = [entry for entry in notification if entry.table_id == table]
            if entries:
                await method(client, entries)

    return _hook(listen)


async def enable_digest(client: SwitchClient, *, name: str, max_list: int = 64, max_delay_s: float = 0.02) -> None:
    """Have a digest sent in lists of at most `max_list`, at most `max_delay_s` old."""
    await client.enable_digest(name, max_list=max_list, max_timeout_s=max_delay_s, ack_timeout_s=1.0)
