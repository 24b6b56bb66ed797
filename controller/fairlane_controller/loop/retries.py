# SPDX-License-Identifier: Apache-2.0
"""What a switch has refused and is asked for again: each on its own, with growing pauses, reported as events and bounded in number."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""Each pause is twice the one before, up to this."""
MAX_REFUSED = 1024
"""Updates that are remembered; what is refused beyond is reported and not tried again."""

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


class Retries:
    """The refused updates of one switch, by a name that people understand (`table policy, port 3, class 0`)."""

    def __init__(self, log: Log, switch: str) -> None:
        self._log = log
        self._switch = switch
        self._refused: dict[str, _Refused] = {}
        self._some = asyncio.Event()

    def names(self) -> list[str]:
        """What is refused at present."""
        return sorted(self._refused)

    def clear(self) -> None:
        """Forget all: the switch has lost everything, and gets it anew."""
        self._refused.clear()

    def note(self, name: str, message: str, act: Act | None) -> None:
        """The switch has refused it: reported with its reason, and tried again.

        Args:
            name: of the update, for people.
            message: the switch's reason.
            act: what `run` tries again; None: the next `attempt` does.
        """
        if name not in self._refused and len(self._refused) >= MAX_REFUSED:
            why = f"{name} was refused and is not tried again: {MAX_REFUSED} others wait already; {message}"
            self._log.write("refused", switch=self._switch, update=name, attempts=1, again_s=None, why=why)
            return
        refused = self._refused.setdefault(name, _Refused())
        refused.act = act
        refused.attempts += 1
        pause_s = refused.pause_s = min(2 * refused.pause_s or FIRST_PAUSE_S, LONGEST_PAUSE_S)
        refused.retry_s = asyncio.get_running_loop().time() + pause_s
        if act is not None:
            self._some.set()
        why = f"the switch refused {name}, so it is tried again in {pause_s:g} s: {message}"
        self._log.write(
            "refused", switch=self._switch, update=name, attempts=refused.attempts, again_s=pause_s, why=why
        )

    async def attempt(self, client: SwitchClient, what: str, act: Act, *, keep: bool = True) -> bool:
        """Do it now, unless it pauses.

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
            self.note(what, ex.message, act if keep else None)
            return False
        refused = self._refused.pop(what, None)
        if refused is not None:
            times = "once" if refused.attempts == 1 else f"{refused.attempts} times"
            why = f"the switch has taken {what}, which it had refused {times}"
            self._log.write("accepted", switch=self._switch, update=what, attempts=refused.attempts, why=why)
        return True

    async def run(self, client: SwitchClient) -> None:
        """Try again what is due, until cancelled. Raises what is no refusal."""
        while True:
            if not any(refused.act for refused in self._refused.values()):
                self._some.clear()
                await self._some.wait()
            await asyncio.sleep(FIRST_PAUSE_S / 4)
            for name, refused in list(self._refused.items()):
                if refused.act is not None and self._refused.get(name) is refused:
                    await self.attempt(client, name, refused.act)
