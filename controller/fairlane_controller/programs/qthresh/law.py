# SPDX-License-Identifier: Apache-2.0
"""The law of the thresholds: what each flow of a port may have waiting, from what it got, the line and the path; pure, in virtual time.

Once a period dt the counters of all flows of a port are read (`Law.step`). x_i is the rate of flow i per unit of its weight, f the mean
of those that want more, e_i = x_i/f - 1.

**Who wants more.** A flow that does not grow while the line idles has what it asks for, until it grows, or loses it on a full line; so has
one that sends less than any window and loses nothing, or pure ACKs. A small share alone says nothing: beside a greedy flow it may be all that is left.

**Short paths**, whose saw-tooth lasts a few periods. The threshold of a flow moves around eq. (9), an integral controller on its share:

    z_i <- z_i - k_i * e_i * dt - k_c * mean(z) * dt
    c   <- c + k_u * (U - u) * dt  while the line idles and packets are refused, else c falls back to 0
    Qthresh_i = Qthresh_(9) * w_i * exp(z_i + c - k_p * e_i)

What all z_i have in common goes to 0 by itself, unless a flow has far less than its share of a full line: so (9) stays the measure of the
whole queue, and gives way where one of the flows needs a shorter one. c lifts it where it is too small for the line (u used, U wanted). No z_i falls
while the line idles. Thresholds are whole packets: what rounding cuts off is carried to the next period.

**Long paths.** There a saw-tooth lasts many periods: a threshold would sweep over its whole range within one, and a window that was
halved too early is missing for the rest of it. So (9) alone bounds what waits, and one flow at a time loses one packet, a tap. Its
account says whether it is due: a_i' = x_i/f - 1 since its last tap, so that a saw-tooth ends when its mean has reached the mean of all,
whatever its shape: nothing has to be known of a sender. A flow is tapped

- while the line is full, when it is above f, does not give way itself, and its account has reached 0 and another flow gives way to it (its
  rate falls without a loss), or its account has become so large that it cannot be the other half of flows that halve in turn;
- when so many packets wait that the queue would soon refuse by itself: whose account is largest.

A flow whose window several taps did not make smaller (BBR; no congestion control) is held by a threshold as on a short path.

**Lanes** need no law for the shares, but one for their length (`LaneLength`): T_res is what lies behind the switch, and a flow fills its lane
again after a loss only if it is as long as the whole path, the sender's side too.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

Flow = TypeVar("Flow", bound=Hashable)

PERIOD_S = 1.0
"dt: between two steps. A write a second and port is what a switch takes beside its traffic."
LONGEST_STEPS = 5.0
"After more steps than this (a lost connection, a line that was not measured) the counters are only taken: the integral over it would sweep over the whole range."
FLOWS_PER_S = 85.0
"With more flows than this the steps are farther apart: reading, deciding and writing take 0.08 ms a flow (256 flows, n = 30), and are to take less than 1 % of a processor."
ACTIVE_S = 2.0
"A flow without a packet for this long has no share to get: longer than the smallest RTO and its first backoff."
YOUNG_S = 2.0
"So long is a new flow taken for a short one."
LEAST_PACKETS = 0.5
"In a round trip: a sender whose window is full has one on its way at least. One that sends fewer, and lost none in a saw-tooth, asks for no more."
LEAST_LENGTH = 0.25
"Of the longest packets of any flow: one whose packets are shorter, such as pure ACKs, has no data that wait for a share."
MAX_FLOWS = 256
"With more flows than this (9) alone decides: their entries could not be read and written in a period."
FULL = 0.97
"Of the line, in one period: above it the line is full. Below 1 by what a step cuts off at both ends."
CONTENT_STEPS = 5
"So many steps on an idle line without growth, and half a saw-tooth, show that a flow has what it asks for: CUBIC stands still in the middle of one."
CONTENT_GROWTH = 0.03
"And this is growth, in all of them: Reno's on a path of 300 packets is 1 % of its rate a second."
SQUEEZED = 0.8
"A flow that has less than this part of what it asked for, on a full line, wants it back."
LONG_STEPS = 5.0
"A path is long when its saw-tooth takes more steps: with fewer, a mean over it says nothing."
ACCOUNT_TEETH = 3.0
"An account forgets in so many saw-teeth, in ten steps at least."
SETTLED_TRIPS = 4.0
"Round trips until a tap shows: the packet is missed in the first, the window is smaller in the second, and a step must be mostly of that."
DEEP = 0.6
"Of what (9) or the port lets wait: with more the queue would soon refuse by itself, several packets of whoever comes."
FAR = 0.03
"In saw-teeth at the fair rate: the account from which on a flow is tapped although nobody yields to it. Flows that halve in turn never have it."
STEADY = 0.02
"A rate that falls by less than this in a step does not yield."
TAP_ERROR = 0.02
"e_i from which on a flow is tapped: less is within what a step cuts off."
TAP_TAKES = 0.5
"A tap takes at most this part of a window. One flow may always be tapped; more of them when the packets that wait make up for what they lose."
SLOWED = 0.9
"A flow whose window was never below this part of it after a tap did not slow down: CUBIC's falls to 0.7."
DEAF_TAPS = 2
"So many such taps, without one that brought it to its share between them, show that taps do not reach it: BBR's window falls by itself every 10 s, but not for long."
INTEGRAL_PER_S = 0.5
"k_i: how fast the logarithm of the threshold moves for a flow that gets twice its share."
PROPORTIONAL = 0.2
"k_p."
COMMON_PER_S = 0.1
"k_c;"
STARVED = 0.1
"0 while a flow has less than its share of a full line by more than this: the others' thresholds may all have to fall, so that it finds room."
HIGH_FACTOR = 4.0
"A tuned threshold is at most this multiple of (9), and at least two packets."
UTILISATION = 0.98
"U."
UTILISATION_PER_S = 2.0
"k_u."
UTILISATION_MISSING_MAX = 0.03
"No more than this of one period's idleness counts: a host that stood still says nothing of thresholds."
IDLE_UTILISATION = 0.9
"Below this u no z_i falls."
IDLE_PER_S = 0.7
"and that of a flow below its share rises at least so fast: a doubling a second."
UTILISATION_OVER_S = 3.0
"u is a mean over about this time: the queue's own movement is no idle line."
MAX_COMMON_FACTOR = 1.5
"exp(c) at most."
LANE_STEPS = 3
"A saw-tooth in a lane counts when it, or several together, lasted so many steps."
LANE_STEP = 1.5
"By so much the lanes become longer at once: in four steps five times as long."
LANE_FORGET_PER_S = 0.005
"and so slowly shorter, as long as no flow misses it: flows with the long way may have gone."


def step_s(flows: int) -> float:
    """dt in seconds with so many flows: `PERIOD_S`, and more with many."""
    return max(PERIOD_S, min(flows, MAX_FLOWS) / FLOWS_PER_S)


@dataclass(frozen=True)
class FlowCount:
    """Counters of one flow so far, in packets and bytes; `weight` is its share (QoS)."""

    arrived_packets: int
    arrived_bytes: int
    dropped_packets: int
    dropped_bytes: int
    weight: float = 1.0

    @property
    def carried_bytes(self) -> int:
        """Bytes that were admitted."""
        return self.arrived_bytes - self.dropped_bytes


@dataclass(frozen=True)
class Port:
    """What is known of a port at a step."""

    line_bps: float
    "BW."
    packet_s: float
    "T_D, above 0."
    t_res_s: float
    capacity_packets: int
    waiting_packets: float
    other_bps: float = 0.0
    "What flows take that are not tuned."

    @property
    def path_packets(self) -> float:
        """T_res / T_D + 1: what the path holds, (7)."""
        return self.t_res_s / self.packet_s + 1.0


class Why(str, Enum):
    """Why a flow has what it has."""

    YOUNG = "young"
    "Taken for a short one."
    IDLE = "idle"
    "Sends nothing, less than any window, or no data."
    CONTENT = "content"
    "It does not grow on an idle line."
    ALONE = "alone"
    "No other flow wants a share."
    TUNED = "tuned"
    "A short path: its threshold follows its share."
    FREE = "free"
    "A long path: (9) bounds it, and it is not above its share."
    TAPPED = "tapped"
    "A long path: it loses a packet now."
    HELD = "held"
    "It does not slow down when it loses packets."


@dataclass(frozen=True)
class Decision:
    """One flow at a step."""

    why: Why
    rate_bps: float
    "Per unit of weight."
    error: float
    "e_i."
    exact_packets: float | None = None
    "The threshold as a real number; None: (9)."
    qthresh_packets: int | None = None

    @property
    def tap(self) -> bool:
        """Whether it loses a packet now."""
        return self.why is Why.TAPPED

    def to_json(self) -> dict[str, Any]:
        """For the event log."""
        return {
            "why": self.why.value,
            "rate_bps": round(self.rate_bps),
            "error": round(self.error, 3),
            "qthresh_packets": self.qthresh_packets,
        }


@dataclass(eq=False)
class _State:
    """One flow between steps."""

    born_s: float
    log_factor: float
    "z_i."
    weight: float = 1.0
    model_packets: float = 1.0
    "(9) with the weight."
    error: float = 0.0
    "e_i."
    log_lowest: float = -math.inf
    "z_i of two packets."
    carry: float = 0.0
    "What rounding cut off so far, in packets."
    moved_s: float = -math.inf
    "When its counters last grew,"
    sent_packets: int = 0
    "by how many packets in this step,"
    packet_bytes: float = 0.0
    "and how long they were."
    refused_s: float = -math.inf
    "When it last lost a packet,"
    refused_steps: int = 0
    "and in how many steps in a row it has."
    last: FlowCount | None = None
    rate_bps: float = 0.0
    before_bps: float = 0.0
    "x_i at this step and at the one before."
    idle_bps: list[float] = field(default_factory=list[float])
    "Its rates in the steps in a row in which the line idled and nothing was refused."
    content_bps: float | None = None
    "It has what it asks for up to this rate."
    account_s: float = 0.0
    "a_i, in seconds of the fair rate."
    tapped_s: float = -math.inf
    tapped_packets: float = 0.0
    "When it last lost a packet for its account, and its window then;"
    lowest_packets: float = math.inf
    "its smallest window since."
    awaits_tap: bool = False
    "It has not lost that packet yet: too few were waiting at the port."
    deaf: int = 0
    "Taps that did not slow it down since one that brought it to its share."

    @property
    def is_deaf(self) -> bool:
        """Whether taps do not reach it."""
        return self.deaf >= DEAF_TAPS

    def forget_path(self) -> None:
        """The path has become short or long."""
        self.account_s, self.deaf = 0.0, 0

    def window_packets(self, port: Port) -> float:
        """Its share of the line, of what the path and the queue contain."""
        return self.rate_bps * self.weight / port.line_bps * (port.path_packets + port.waiting_packets)

    def take(self, now_s: float, count: FlowCount, elapsed_s: float) -> tuple[int, int]:
        """Take its counters; what it carried since the last step in bytes, and how many packets it lost."""
        before, self.last, self.weight = self.last, count, count.weight
        if before is None or count.arrived_packets < before.arrived_packets:  # a new entry: counters from 0, no tap
            self.moved_s, self.rate_bps, self.sent_packets, self.awaits_tap = now_s, 0.0, count.arrived_packets, False
            return count.carried_bytes, count.dropped_packets
        got, lost = count.carried_bytes - before.carried_bytes, count.dropped_packets - before.dropped_packets
        self.sent_packets = count.arrived_packets - before.arrived_packets
        if self.sent_packets:
            self.moved_s = now_s
            self.packet_bytes = (count.arrived_bytes - before.arrived_bytes) / self.sent_packets
        self.refused_steps = self.refused_steps + 1 if lost > 0 else 0
        if lost > 0:
            self.refused_s, self.awaits_tap = now_s, False
        if elapsed_s > 0 and count.weight > 0:
            self.before_bps, self.rate_bps = self.rate_bps, 8 * got / elapsed_s / count.weight
        return got, lost


@dataclass
class Law(Generic[Flow]):
    """The flows of one port between steps."""

    last: dict[Flow, Decision] = field(default_factory=lambda: {})
    "The newest decision."
    log_common: float = 0.0
    "c."
    utilisation: float | None = None
    "u; None before the first step."
    is_long: bool = False
    _states: dict[Flow, _State] = field(default_factory=lambda: {})
    _at_s: float = -math.inf
    _step_s: float = 1.0
    "dt."
    _queue_packets: float = 0.0
    "What waits, smoothed over some steps."
    _tooth_s: float = 1.0
    "A saw-tooth of a sender with delayed ACKs."
    _full_steps: int = 0
    "So many steps in a row the line was full."

    def step(
        self,
        now_s: float,
        counts: Mapping[Flow, FlowCount],
        port: Port,
        model_packets: Mapping[Flow, float],
        in_force_packets: Mapping[Flow, int] | None = None,
        step_s: float | None = None,
    ) -> dict[Flow, Decision] | None:
        """What each flow should have from now on.

        Args:
            now_s: when the counters were read.
            counts: the counters of all flows so far.
            port: what is known of it.
            model_packets: (9) for each flow, with its weight.
            in_force_packets: the tuned thresholds; a flow that is new here goes on from its one.
            step_s: how far apart the steps are; None: `PERIOD_S`.

        Returns:
            A decision for each flow; one without `qthresh_packets` means what (9) says, as all do where fewer than two flows want a share, or more than
            `MAX_FLOWS`. None at the first step, also after `LONGEST_STEPS`, and in an outage: what is in force stays.
        """
        elapsed_s, self._at_s, self._step_s = now_s - self._at_s, now_s, step_s or PERIOD_S
        is_first = elapsed_s > LONGEST_STEPS * self._step_s
        elapsed_s = 0.0 if is_first else elapsed_s
        self._meet(now_s, model_packets, in_force_packets or {}, first=is_first)
        taken = [self._states[flow].take(now_s, count, elapsed_s) for flow, count in counts.items()]
        if elapsed_s <= 0:
            return None
        carried_bps = 8 * sum(carried for carried, _ in taken) / elapsed_s
        used = (carried_bps + port.other_bps) / port.line_bps
        self._watch_line(used, sum(refused for _, refused in taken), elapsed_s)
        self._watch_path(port, elapsed_s)
        active = [one for one in self._states.values() if now_s - one.moved_s <= ACTIVE_S and one.weight > 0]
        if active and carried_bps <= 0:  # an outage: nothing to learn
            return None
        for one in active:
            self._find_content(one, used, refused_now=one.refused_s >= now_s)
        rtt_s = port.t_res_s + self._queue_packets * port.packet_s
        trips = elapsed_s / max(rtt_s, port.packet_s)
        shortest = LEAST_LENGTH * max((one.packet_bytes for one in active), default=0.0)
        wanting = [
            one
            for one in active
            if one.content_bps is None
            and now_s - one.born_s > YOUNG_S
            and (one.sent_packets >= LEAST_PACKETS * trips or now_s - one.refused_s <= self._tooth_s)
            and one.packet_bytes >= shortest
        ]
        is_shared = 2 <= len(wanting) <= MAX_FLOWS
        taps, controlled = set[_State](), list[_State]()
        if is_shared:
            fair_bps = sum(one.rate_bps for one in wanting) / len(wanting)
            for one in wanting:
                one.error = one.rate_bps / fair_bps - 1.0 if fair_bps > 0 else 0.0  # others had the whole line
            if self.is_long:
                taps = self._tap(now_s, elapsed_s, wanting, used, rtt_s, port)
            controlled = [one for one in wanting if one.is_deaf or not self.is_long]
            # A step moves a threshold by no more when steps are farther apart: what it did shows at the next one only.
            self._integrate(controlled, elapsed_s * PERIOD_S / self._step_s, rtt_s)
        else:
            for one in self._states.values():
                one.forget_path()
        self.last = {}
        for flow, one in self._states.items():
            if one in controlled:
                self.last[flow] = self._hold(one, port.capacity_packets)
            elif one in wanting and is_shared:
                self.last[flow] = Decision(Why.TAPPED if one in taps else Why.FREE, one.rate_bps, one.error)
            else:
                why = Why.ALONE if one in wanting else self._why_not(now_s, one)
                self.last[flow] = Decision(why, one.rate_bps, 0.0)
        return self.last

    def report(self, written: int, planned_packets: float) -> dict[str, Any]:
        """The fields of the event `tuned`; its sentence says what was done, and how full the line is.

        Args:
            written: how many flows' entries were written.
            planned_packets: (9) of the first class that is tuned.
        """
        used = min(self.utilisation or 0.0, 1.0)
        flows = {str(flow): one.to_json() for flow, one in self.last.items()}
        taps = sum(one.tap for one in self.last.values())
        text = f"{written} of {len(flows)} flows' entries changed, {taps} of them to lose a packet; the line is {100 * used:.0f} % used"
        state = {"planned_packets": round(planned_packets, 2), "utilisation": round(used, 4), "is_long": self.is_long}
        return {"why": text, "written": written, **state, "flows": flows}

    def _meet(self, now_s: float, model: Mapping[Flow, float], in_force: Mapping[Flow, int], *, first: bool) -> None:
        """Flows that are new here, and those that are gone."""
        for flow, model_packets in model.items():
            if flow not in self._states:
                packets = in_force.get(flow)
                factor = 1.0 if packets is None else packets / model_packets
                # What was tuned already is no short flow.
                born_s = now_s if packets is None and not first else -math.inf
                self._states[flow] = _State(born_s, math.log(max(factor, 1e-3)))
            self._states[flow].model_packets = model_packets
        self._states = {flow: self._states[flow] for flow in model}

    def _watch_line(self, used: float, refused: int, elapsed_s: float) -> None:
        """u, and c after it."""
        part = 1.0 - math.exp(-elapsed_s / UTILISATION_OVER_S)
        usual = 1.0 if self.utilisation is None else self.utilisation
        # `used` is above 1 while the queue grows: the mean has to be right.
        self.utilisation = usual + part * (used - usual)
        missing = UTILISATION - self.utilisation
        if missing <= 0 or self.is_long:
            self.log_common -= COMMON_PER_S * self.log_common * elapsed_s
        elif refused:
            self.log_common += UTILISATION_PER_S * min(missing, UTILISATION_MISSING_MAX) * elapsed_s
        self.log_common = min(max(self.log_common, 0.0), math.log(MAX_COMMON_FACTOR))

    def _watch_path(self, port: Port, elapsed_s: float) -> None:
        """How long a saw-tooth lasts: a round trip for each packet of a window, since half of it grows by half a packet each (delayed ACKs)."""
        part = 1.0 - math.exp(-elapsed_s / UTILISATION_OVER_S)
        self._queue_packets += part * (port.waiting_packets - self._queue_packets)
        flows = max(1, sum(one.rate_bps > 0 for one in self._states.values()))
        inside = port.path_packets + self._queue_packets
        tooth_s = inside / flows * inside * port.packet_s
        limit_s = LONG_STEPS * self._step_s * (0.8 if self.is_long else 1.0)
        if (tooth_s > limit_s) != self.is_long:
            self.is_long = not self.is_long
            for one in self._states.values():
                one.forget_path()
        self._tooth_s = max(tooth_s, self._step_s)

    def _find_content(self, one: _State, used: float, *, refused_now: bool) -> None:
        """Whether the flow has what it asks for."""
        is_full = used >= FULL
        if one.content_bps is not None and (
            one.rate_bps > one.content_bps or (is_full and one.rate_bps < SQUEEZED * one.content_bps)
        ):
            one.content_bps = None
        if is_full or refused_now:
            one.idle_bps.clear()
            return
        one.idle_bps.append(one.rate_bps)
        if len(one.idle_bps) <= max(CONTENT_STEPS, self._tooth_s / 2 / self._step_s):
            return
        first = one.idle_bps.pop(0)
        if one.rate_bps <= first * (1.0 + CONTENT_GROWTH):
            one.content_bps = max(first, one.rate_bps) * (1.0 + 2 * CONTENT_GROWTH)

    def _why_not(self, now_s: float, one: _State) -> Why:
        if one.content_bps is not None and now_s - one.moved_s <= ACTIVE_S:
            return Why.CONTENT
        return Why.YOUNG if now_s - one.born_s <= YOUNG_S else Why.IDLE

    def _tap(
        self, now_s: float, elapsed_s: float, wanting: Sequence[_State], used: float, rtt_s: float, port: Port
    ) -> set[_State]:
        """The flows that lose a packet now; accounts, and who does not react."""
        over_s = max(ACCOUNT_TEETH * self._tooth_s, 10 * self._step_s)
        settled_s = max(elapsed_s, SETTLED_TRIPS * rtt_s) - 1e-6
        for one in wanting:
            one.account_s += one.error * elapsed_s - one.account_s * elapsed_s / over_s
            if not one.awaits_tap and now_s > one.tapped_s > -math.inf:
                one.lowest_packets = min(one.lowest_packets, one.window_packets(port))
            slowed = one.lowest_packets <= SLOWED * one.tapped_packets
            if not one.is_deaf and slowed and one.error <= TAP_ERROR:
                one.deaf = 0
            elif one.is_deaf and now_s - one.tapped_s > over_s:
                # So long it had a threshold: the next packet that it loses shows whether it still needs one.
                one.deaf = DEAF_TAPS - 1
        self._full_steps = self._full_steps + 1 if used >= FULL else 0
        if not self._full_steps:
            return set()
        largest = min(sum(one.model_packets for one in wanting), float(port.capacity_packets))
        if port.waiting_packets >= DEEP * largest:
            usual_s = sum(one.account_s for one in wanting) / len(wanting)
            due = [one for one in wanting if one.account_s >= usual_s]
        else:
            due = self._due(now_s, wanting, settled_s + elapsed_s)
        ready = [
            one
            for one in due
            if not one.is_deaf
            and not one.awaits_tap
            and (now_s - max(one.tapped_s, one.refused_s) >= settled_s or one.refused_steps > DEAF_TAPS)
        ]
        chosen = set[_State]()
        missing = 0.0
        for one in sorted(ready, key=lambda each: -each.account_s):
            packets = one.window_packets(port)
            missing += TAP_TAKES * packets
            if chosen and missing > port.waiting_packets:
                break
            if SLOWED * one.tapped_packets < one.lowest_packets < math.inf:
                one.deaf += 1
            one.tapped_s, one.tapped_packets, one.lowest_packets, one.account_s = now_s, packets, math.inf, 0.0
            if one.is_deaf:
                waits = port.waiting_packets * packets / (port.path_packets + port.waiting_packets)
                one.log_factor = math.log(max(2.0, waits) / one.model_packets)
            elif one.refused_s < now_s:  # else it has just lost one
                chosen.add(one)
                one.awaits_tap = True
        return chosen

    def _due(self, now_s: float, wanting: Sequence[_State], quiet_s: float) -> list[_State]:
        """The flows whose saw-tooth may end, while there is room for more packets to wait."""
        gives_way = {one for one in wanting if one.rate_bps < (1.0 - STEADY) * one.before_bps}
        some_do = any(now_s - one.refused_s > quiet_s for one in gives_way)
        least_s = 0.0 if some_do else FAR * self._tooth_s
        return [
            one
            for one in wanting
            if one.error > TAP_ERROR
            and one.account_s >= least_s
            and one not in gives_way
            # In the first full step every rate has just grown: a flow that gives way by itself cannot be known yet.
            and (self._full_steps > 1 or now_s - one.refused_s <= 2 * self._tooth_s)
        ]

    def _integrate(self, controlled: Sequence[_State], elapsed_s: float, rtt_s: float) -> None:
        """z of all flows; one that has no threshold of its own goes back to (9)."""
        common = 0.0
        used = self.utilisation or 0.0
        if controlled and not self.is_long and (used < UTILISATION or min(one.error for one in controlled) > -STARVED):
            common = sum(one.log_factor for one in controlled) / len(controlled)
        slower = min(1.0, 0.2 * PERIOD_S / max(rtt_s, 1e-9))
        for one in self._states.values():
            if one not in controlled:
                step = -COMMON_PER_S * one.log_factor
            else:
                step = -INTEGRAL_PER_S * slower * min(max(one.error, -1.0), 1.0) - COMMON_PER_S * common
                if used < IDLE_UTILISATION:
                    step = max(step, IDLE_PER_S if self.is_long and one.error < 0.0 else 0.0)
            one.log_factor = min(max(one.log_factor + step * elapsed_s, one.log_lowest), math.log(HIGH_FACTOR))

    def _hold(self, one: _State, capacity_packets: int) -> Decision:
        """The threshold as a real number and in whole packets."""
        shift = one.log_factor + self.log_common - PROPORTIONAL * min(max(one.error, -1.0), 1.0)
        factor = math.exp(min(shift, math.log(HIGH_FACTOR)))
        one.log_lowest = math.log(2.0 / one.model_packets)
        exact = min(max(one.model_packets * factor, 2.0), float(capacity_packets))
        packets = max(2, min(math.floor(exact + one.carry + 0.5), capacity_packets))
        one.carry = min(max(one.carry + exact - packets, -1.0), 1.0)
        return Decision(Why.HELD if self.is_long else Why.TUNED, one.rate_bps, one.error, exact, packets)


@dataclass
class _Tooth:
    """A flow's time from one loss to the next."""

    last: FlowCount
    fair_bytes: float | None = None
    "The mean of all flows by its beginning; None: no loss yet, or it was interrupted."
    began: FlowCount | None = None
    steps: int = 0


@dataclass
class LaneLength(Generic[Flow]):
    """How many times as long as (9) the lanes of a port are: once, and longer where a flow loses packets and still has less than its share.

    A flow that has its lane for itself and loses packets of it has no other reason to have less than the others: after each loss its window does not
    fill the path before the lane has run empty. So each saw-tooth is looked at, from one loss of a flow to its next: one in which it had less than
    the mean of all shows that the lanes are too short.
    """

    factor: float = 1.0
    mean_weight: float = 1.0
    "Of the flows that send."
    _teeth: dict[Flow, _Tooth] = field(default_factory=lambda: {})
    _fair_bytes: float = 0.0
    "What a flow with exactly the mean would have got so far, per unit of weight."
    _at_s: float | None = None

    def step(self, now_s: float, counts: Mapping[Flow, FlowCount], longest: float = math.inf) -> float:
        """`factor` from now on.

        Args:
            now_s: when the counters were read.
            counts: the counters of all flows of the port so far.
            longest: the port has no room for more, in multiples of (9).
        """
        elapsed_s, self._at_s = 0.0 if self._at_s is None else now_s - self._at_s, now_s
        self.factor = max(1.0, self.factor * (1.0 - LANE_FORGET_PER_S * elapsed_s))
        got: dict[Flow, float] = {}
        losing: list[_Tooth] = []
        for flow, count in counts.items():
            tooth = self._teeth.get(flow)
            if tooth is None or count.arrived_packets < tooth.last.arrived_packets or count.weight <= 0:
                self._teeth[flow] = _Tooth(count)
                continue
            taken = (count.carried_bytes - tooth.last.carried_bytes) / count.weight
            if taken > 0:
                got[flow] = taken
                tooth.steps += 1
            else:
                tooth.began = None
            if count.dropped_packets > tooth.last.dropped_packets:
                losing.append(tooth)
            tooth.last = count
        self._teeth = {flow: tooth for flow, tooth in self._teeth.items() if flow in counts}
        if len(got) < 2:
            for tooth in self._teeth.values():
                tooth.began = None
        else:
            self.mean_weight = sum(counts[flow].weight for flow in got) / len(got)
            self._fair_bytes += sum(got.values()) / len(got)
            short = [tooth for tooth in losing if self._falls_short(tooth)]
            if short:
                self.factor *= LANE_STEP
                for tooth in self._teeth.values():
                    tooth.began = None  # what began in shorter lanes says nothing of these
        self.factor = max(1.0, min(self.factor, longest))
        return self.factor

    def _falls_short(self, tooth: _Tooth) -> bool:
        """Whether the saw-tooth that ends here gave its flow less than the mean; the next one begins."""
        began, fair_bytes = tooth.began, tooth.fair_bytes
        if began is not None and tooth.steps < LANE_STEPS:
            return False
        tooth.began, tooth.fair_bytes, tooth.steps = tooth.last, self._fair_bytes, 0
        if began is None or fair_bytes is None:
            return False
        carried = (tooth.last.carried_bytes - began.carried_bytes) / tooth.last.weight
        return carried < (1.0 - TAP_ERROR) * (self._fair_bytes - fair_bytes)
