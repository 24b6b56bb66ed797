# SPDX-License-Identifier: Apache-2.0
"""What a switch has refused and is asked again: each on its own, with growing pauses, told as events and bounded in number."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient

Act = Callable[[SwitchClient], Awaitable[object]]
"""Writes one thing; raises FairlaneError REFUSED when the switch does not take it."""


class Log(Protocol):
    """Where events go."""

    def write(self, event: str, **fields: Any) -> None:
        """One event with its stable name."""
        ...


@dataclass(frozen=True)
class RetryOptions:
    """How often a refused update is tried again."""

    first_pause_s: float = 1.0
    longest_pause_s: float = 60.0
    "Each pause is twice the one before, up to this."
    most: int = 1024
    "Updates that are remembered; what is refused beyond is reported and not tried again."


@dataclass
class _Refused:
    act: Act | None
    "None: whoever wants it attempts it again."
    again_s: float
    pause_s: float
    attempts: int = 1


class Retries:
    """The refused updates of one switch, by a name that people understand (`table policy, port 3, class 0`)."""

    def __init__(self, log: Log, switch: str, options: RetryOptions | None = None) -> None:
        self._log = log
        self._switch = switch
        self._options = options or RetryOptions()
        self._refused: dict[str, _Refused] = {}
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._refused)

    def names(self) -> list[str]:
        """What is refused at present."""
        return sorted(self._refused)

    def clear(self) -> None:
        """Forget all: the switch has lost everything, and gets it anew."""
        self._refused.clear()

    def pausing(self, name: str) -> bool:
        """Whether it was refused, and its next attempt is not due yet."""
        refused = self._refused.get(name)
        return refused is not None and asyncio.get_running_loop().time() < refused.again_s

    def note(self, name: str, message: str, act: Act | None) -> None:
        """The switch has refused it: told with its reason, and tried again by `run`; without `act` by the next `attempt` only."""
        now_s, options = asyncio.get_running_loop().time(), self._options
        refused = self._refused.get(name)
        if refused is None:
            if len(self._refused) >= options.most:
                why = f"{name} was refused and is not tried again: {options.most} others wait already; {message}"
                self._log.write("refused", switch=self._switch, update=name, attempts=1, again_s=None, why=why)
                return
            refused = self._refused[name] = _Refused(act, now_s + options.first_pause_s, options.first_pause_s)
        else:
            refused.act = act
            refused.attempts += 1
            refused.pause_s = min(2 * refused.pause_s, options.longest_pause_s)
            refused.again_s = now_s + refused.pause_s
        if act is not None:
            self._some.set()
        pause_s = refused.pause_s
        self._log.write(
            "refused",
            switch=self._switch,
            update=name,
            attempts=refused.attempts,
            again_s=pause_s,
            why=f"the switch refused {name}, so it is tried again in {pause_s:g} s: {message}",
        )

    def accepted(self, name: str) -> None:
        """The switch has accepted it, or it is no longer needed."""
        refused = self._refused.pop(name, None)
        if refused is not None:
            times = "once" if refused.attempts == 1 else f"{refused.attempts} times"
            why = f"the switch has taken {name}, which it had refused {times}"
            self._log.write("accepted", switch=self._switch, update=name, attempts=refused.attempts, why=why)

    async def attempt(self, client: SwitchClient, name: str, act: Act, *, keep: bool = True) -> bool:
        """Do it now, unless it pauses; whether the switch took it. Raises what is no refusal.

        `keep` False: what is refused is not tried again by itself, only by the next `attempt` after the pause."""
        if self.pausing(name):
            return False
        try:
            await act(client)
        except FairlaneError as ex:
            if ex.code is not ErrorCode.REFUSED:
                raise
            self.note(name, ex.message, act if keep else None)
            return False
        self.accepted(name)
        return True

    async def run(self, client: SwitchClient) -> None:
        """Try again what is due, until cancelled. Raises what is no refusal."""
        while True:
            if not any(refused.act for refused in self._refused.values()):
                self._some.clear()
                await self._some.wait()
            await asyncio.sleep(self._options.first_pause_s / 4)
            now_s = asyncio.get_running_loop().time()
            for name, refused in list(self._refused.items()):
                if refused.act is not None and refused.again_s <= now_s and self._refused.get(name) is refused:
                    await self.attempt(client, name, refused.act)
