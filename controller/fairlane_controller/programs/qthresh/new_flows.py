# SPDX-License-Identifier: Apache-2.0
"""The outcome of a switch's notifications of new flows: counted, reported together when there are many, paused when refused; memory and log are bounded."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from fairlane_controller.loop.retries import Log
from fairlane_controller.programs.qthresh.flows import FlowKey

MISSED_PERIOD_S = 10.0
"Missed flows are reported at once, and then together once in this time while they go on."
SINGLE_EVENTS, SINGLE_PERIOD_S = 100, 1.0
"Flows of a period that get an event each; what is beyond gets one event together."
TOGETHER = {"flow": "flows", "flow_gone": "flows_gone"}
MAX_PAUSES = 4096
"Flows whose pause is remembered; the oldest is forgotten first."
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


@dataclass
class NewFlowCounts:
    """What became of the switch's notifications of new flows."""

    told: int = 0
    "All that came."
    entries: int = 0
    "Got an entry."
    known: int = 0
    "Notifications of flows that had an entry already, or that came twice in one digest."
    missed: int = 0
    "Every slot was taken: the flow stays in its fallback slot."
    refused: int = 0
    "The switch refused the entry, or has done so and the flow pauses."
    lost: int = 0
    "Came while there was no room for them; not acknowledged, so the switch tells the flow again."


class MissedFlows:
    """Says that flows are missed: at once, then together in one event a period while it goes on."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._flows: dict[str, int] = {}
        self._told_s: dict[str, float] = {}

    def tell(self, switch: str, flows: int, reason: str) -> None:
        """So many more notifications stayed without an entry, for that reason."""
        now_s = asyncio.get_running_loop().time()
        self._flows[reason] = self._flows.get(reason, 0) + flows
        if reason in self._told_s and now_s - self._told_s[reason] < MISSED_PERIOD_S:
            return
        told = self._flows.pop(reason)
        self._told_s[reason] = now_s
        why = f"{told} new flows share the fallback slots by hash, without an entry of their own: {reason}"
        self._log.write("flows_missed", switch=switch, flows=told, why=why)


class FlowEvents:
    """Reports flows that came (`flow`) and went (`flow_gone`): an event each; in a flood one event per period for all of them."""

    def __init__(self, log: Log, event: str) -> None:
        self._log = log
        self._event = event
        self._period_began_s = -SINGLE_PERIOD_S
        self._room = 0
        self._together = 0
        self._first = ""
        self._flush_later: asyncio.TimerHandle | None = None

    def tell(self, switch: str, flows: Sequence[tuple[FlowKey, int | None]]) -> None:
        """These flows, with their slots where they have one."""
        if not flows:
            return
        now_s = asyncio.get_running_loop().time()
        if now_s - self._period_began_s >= SINGLE_PERIOD_S:
            self._period_began_s, self._room = now_s, SINGLE_EVENTS
        if len(flows) <= self._room and not self._together:
            self._room -= len(flows)
            for key, slot in flows:
                more = {} if slot is None else {"slot": slot}
                self._log.write(self._event, switch=switch, flow=str(key), **more)
            return
        self._first = self._first or str(flows[0][0])
        self._together += len(flows)
        if self._flush_later is None:
            wait_s = self._period_began_s + SINGLE_PERIOD_S - now_s
            self._flush_later = asyncio.get_running_loop().call_later(wait_s, self.flush, switch)

    def flush(self, switch: str) -> None:
        """Report now what is collected for the end of the period."""
        if self._flush_later is not None:
            self._flush_later.cancel()
            self._flush_later = None
        if self._together:
            self._log.write(TOGETHER[self._event], switch=switch, flows=self._together, first=self._first)
            self._together, self._first = 0, ""


class FlowPauses:
    """Flows whose update was refused, the newest ones: each may be tried again after a pause that grows."""

    def __init__(self) -> None:
        self._pauses: OrderedDict[FlowKey, tuple[float, float]] = OrderedDict()

    def holds(self, key: FlowKey, now_s: float) -> bool:
        """Whether the flow's pause is not over."""
        found = self._pauses.get(key)
        return found is not None and now_s < found[0]

    def refused(self, key: FlowKey, now_s: float) -> float:
        """The pause in seconds that begins now."""
        _, before_s = self._pauses.pop(key, (0.0, FIRST_PAUSE_S / 2))
        pause_s = min(2 * before_s, LONGEST_PAUSE_S)
        self._pauses[key] = (now_s + pause_s, pause_s)
        if len(self._pauses) > MAX_PAUSES:
            self._pauses.popitem(last=False)
        return pause_s

    def accepted(self, key: FlowKey) -> None:
        """The switch has taken the flow's update."""
        self._pauses.pop(key, None)

    def clear(self) -> None:
        """Another connection."""
        self._pauses.clear()
