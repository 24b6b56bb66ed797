# SPDX-License-Identifier: Apache-2.0
"""BW, T_res, τ, T_ACK, L_D and N_C of one egress port out of the data plane's reports, T_res samples and probes; no I/O, no clock."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, cast

from fairlane_controller.measure.changes import LinkChange
from fairlane_controller.measure.estimators import Estimate, QuantileWindow
from fairlane_controller.measure.probe import Probe
from fairlane_controller.measure.tau import LinkProbe, ProbeOptions

NEVER = 1_000_000
"""Samples that must agree on a shift, where none is looked for."""


@dataclass(frozen=True)
class PortReport:
    """The digest `port_report_t`: what a managed port did since its last report."""

    interval_us: int
    busy_us: int
    "Time in which the line worked and packets waited, whole services only."
    busy_bytes: int
    busy_packets: int
    flows: int
    "Flows that had a packet admitted in the interval."
    waiting_packets: int = 0
    waiting_bytes: int = 0


@dataclass(frozen=True)
class TResSample:
    """The digest `t_res_t`: from a data packet's dequeue to the return of its ACK."""

    flow_hash: int
    frame_bytes: int
    t_res_us: int


@dataclass(frozen=True)
class MeasureOptions:
    """Windows and quantiles."""

    window_s: float = 10.0
    "How long an observation counts."
    t_res_shift_count: int = 4
    """So many T_res samples in a row, of whatever flows, that all lie beyond what their flows had: the path has changed,
    and what was before is forgotten for all flows. With few samples each, none of them could tell alone for long."""
    t_res_shift_s: float = 1.0
    """They span this time at least: delayed-ACK timers come in bursts. Two are enough when nothing else was heard of any
    flow for this time: after a delay has risen, samples come once a round trip, and spurious timeouts spoil many."""
    max_flows: int = 256
    "Flows whose T_res is held apart; the one heard longest ago goes first."
    few_flows: int = 64
    "Of so many flows each T_res sample counts;"
    t_res_per_s: float = 128.0
    "of more, so many samples a second at most, each flow's as far apart: a sample takes the loop's time, and together they say enough;"
    t_res_again_s: float = 2.0
    "and what they say is reckoned again after this time."
    sample_includes_t_d: bool = True
    """Whether a frame's own serialisation is in its T_res sample: yes where the dequeue is the start of the
    transmission (embedded switch), no where a frame is sent at once when it is dequeued (BMv2)."""
    probe: ProbeOptions = field(default_factory=ProbeOptions)
    t_res_min_count: int = 3
    "With fewer samples than this the ACKs' T_res says nothing of T_ACK."
    t_ack_window_s: float = 30.0
    "T_ACK may take its time: where for so long every ACK was late, the path behind the link has become longer."
    no_acks_s: float = 3.0
    "BW is known for so long, and no ACK was ever timed: this link carries no TCP, and T_res is 2τ."


@dataclass(frozen=True)
class PortMeasurement:
    """What is known of a port now; None where nothing is."""

    bw_bps: Estimate | None = None
    t_res_s: Estimate | None = None
    l_d_bytes: Estimate | None = None
    n_c: Estimate | None = None
    waiting_packets: int | None = None
    tau_s: Estimate | None = None
    "One way on the link, of probes."
    t_ack_s: Estimate | None = None
    "T_res - 2τ: all delay behind the link and the way back from there (6)."
    t_res_source: str = ""
    """What `t_res_s` is of: `acks`, `probes` (2τ of the probes and the usual T_ACK of the ACKs, as old as that is), `probes_alone`
    (2τ: no ACK was ever timed); empty without it."""
    longest_s: Estimate | None = None
    "T_res of the flow whose path is longest."

    def to_json(self) -> dict[str, Any]:
        """Plain data with units in the names; an infinite uncertainty is null."""
        return {name: plain(value) if isinstance(value, Estimate) else value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PortMeasurement:
        """The inverse of `to_json`; names that are missing are not known."""
        values: dict[str, Any] = {name: data[name] for name in cls.__annotations__ if data.get(name) is not None}
        for name, value in values.items():
            if isinstance(value, dict):
                values[name] = parsed(cast("dict[str, Any]", value))
        return cls(**values)


@dataclass
class PortMeter:
    """Takes the observations of one port; times are seconds of any one clock.

    ```
    BW       unknown --report--> known --a report disagrees--> in doubt --three agree on another--> known
                                   ^                              |
                                   +------- a report agrees ------+
    T_res    waits (_recent)     counts                         waits; once BW is known, what waited counts

    path     as usual --a sample beyond what its flow had--> run (_run: its times, on one side) --it says enough--> as usual, what
               ^                                              |                                   was before it is forgotten
               +-- a sample as usual, or on the other side ---+
    ```
    """

    options: MeasureOptions
    line_bps: float | None = None
    "Rate of the port as configured, for what a probe takes on the line while BW is not known."
    tell: Callable[[LinkChange], None] = lambda _: None
    "Hears of every change of the link as soon as it is sure."
    link: LinkProbe = field(init=False)
    discarded: int = 0
    "Observations that could not be true (no time, T_res below the frame's own serialisation)."
    _waiting: int | None = None
    _bw: QuantileWindow = field(init=False)
    _l_d: QuantileWindow = field(init=False)
    _n_c: QuantileWindow = field(init=False)
    _t_res: OrderedDict[int, QuantileWindow] = field(default_factory=lambda: OrderedDict[int, QuantileWindow]())
    _recent: deque[tuple[float, TResSample]] = field(default_factory=lambda: deque[tuple[float, TResSample]](maxlen=64))
    "Samples as they came: their T_D is known only with BW."
    _doubt_s: float | None = None
    "Since when the reports contradict BW: T_res samples wait until it is known again."
    _run: list[float] = field(default_factory=list[float])
    "Times of the last T_res samples that all lay on one side of what their flows had."
    _run_side: int = 0
    _paths_at: tuple[float, Estimate | None, Estimate | None] = -math.inf, None, None
    "When `_paths` were last reckoned, and what they were."
    _port_s: float | None = None
    "The port's T_res when it was last looked at, and no run was on."
    _t_ack: QuantileWindow = field(init=False)
    _last_t_ack: tuple[float, Estimate] | None = None
    "When T_ACK was last known, and what it was."
    _bw_begins_s: float | None = None
    _usual_s: float = -math.inf
    "When a sample was last as expected, or the run's count began anew."

    def __post_init__(self) -> None:
        window_s = self.options.window_s
        self.link = LinkProbe(self.options.probe)
        # Weighted by busy time; the services are exact, what disturbs them is rare and large.
        self._bw = QuantileWindow(0.5, window_s, shift_count=3, shift_ratio=0.05)
        self._l_d = QuantileWindow(0.5, window_s)
        # Above the median, because a flow with few packets is missed in some intervals; not the maximum, because a flow that gets its entry
        # is counted twice in that interval, in its fallback slot and in its own.
        self._n_c = QuantileWindow(0.75, 5.0, shift_count=NEVER)
        # Lower than T_res's: where probes tell of the link's changes, what remains are delayed-ACK timers, which last for seconds.
        self._t_ack = QuantileWindow(0.1, self.options.t_ack_window_s, shift_count=NEVER)

    def on_report(self, now_s: float, report: PortReport) -> None:
        """One `port_report_t`."""
        self._waiting = report.waiting_packets
        if report.flows > 0:
            self._n_c.add(now_s, float(report.flows))
        if report.busy_us <= 0 or report.busy_packets <= 0 or report.busy_bytes <= 0:
            return  # nothing ever waited: the interval says nothing about the line
        bw_bps = 8e6 * report.busy_bytes / report.busy_us
        begins, disagrees = self._bw.since_s is None, self._bw.side(bw_bps) not in (None, 0)
        if self._bw_begins_s is None:
            self._bw_begins_s = now_s
        shift = self._bw.add(now_s, bw_bps, weight=float(report.busy_us))
        self._l_d.add(now_s, report.busy_bytes / report.busy_packets, weight=float(report.busy_packets))
        if begins or shift is not None:
            # What came before has another T_D and, after a hand-over, another path; what came since is right.
            self._t_res.clear()
            self._reckon_again()
            if shift is not None:
                self.link.forget_since(shift.since_s)  # their own serialisation was reckoned with the old rate
                self._t_ack.clear()  # holds the way back, and timers that are usual at one rate are not at another
                self.tell(LinkChange.of("rate", shift))
            self._take_again(-math.inf if shift is None else shift.since_s)
        elif disagrees:
            self._doubt_s = now_s if self._doubt_s is None else self._doubt_s
        elif self._doubt_s is not None:
            self._take_again(self._doubt_s)

    def on_probe(self, now_s: float, probe: Probe) -> None:
        """A probe that came back."""
        rate_bps = None
        if self.options.sample_includes_t_d:
            rate_bps = self.line_bps if (bw_bps := self._bw.value(now_s)) is None else bw_bps
        change = self.link.on_home(now_s, probe, rate_bps)
        if change is not None:
            # T_res of the old delay says nothing now; until there are samples of the new one, 2τ and T_ACK stand for it.
            self._forget_before(change.since_s)
            while self._recent and self._recent[0][0] < change.since_s:
                self._recent.popleft()
            self._end_run(now_s)
            self._port_s = None
            self.tell(change)
            return
        two_tau_s = self.link.two_tau_s(now_s)
        t_res_s = None if self._run or self._doubt_s is not None else self._paths(now_s)[0]
        if t_res_s is None or two_tau_s is None or t_res_s.count < self.options.t_res_min_count:
            return
        self._t_ack.add(now_s, max(0.0, t_res_s.value - two_tau_s.value))
        t_ack = self._t_ack.estimate(now_s)
        if t_ack is not None:
            self._last_t_ack = now_s, t_ack

    def _take_again(self, since_s: float) -> None:
        """BW is known (again): what was held back since then counts."""
        self._doubt_s = None
        self._end_run(since_s)
        for time_s, sample in self._recent:
            if time_s >= since_s:
                self._take(time_s, sample)

    def on_t_res(self, now_s: float, sample: TResSample) -> None:
        """One `t_res_t`. Held back until BW is known where the sample holds the frame's own T_D."""
        if self._has_reported_enough(now_s, sample.flow_hash):
            return
        self._recent.append((now_s, sample))
        if self._doubt_s is None:
            self._take(now_s, sample)

    def _has_reported_enough(self, now_s: float, flow_hash: int) -> bool:
        """Whether a flow, one of many, has given a sample a short time ago."""
        flows, window = len(self._t_res), self._t_res.get(flow_hash)
        if flows <= self.options.few_flows or window is None or not window.count:
            return False
        return now_s - window.last_s < flows / self.options.t_res_per_s

    def _take(self, now_s: float, sample: TResSample) -> None:
        t_res_s = sample.t_res_us * 1e-6
        if self.options.sample_includes_t_d:
            bw_bps = self._bw.value(now_s)
            if bw_bps is None:
                return
            t_res_s -= 8.0 * sample.frame_bytes / bw_bps
        if t_res_s <= 0:
            self.discarded += 1
            return
        window = self._t_res.get(sample.flow_hash)
        if window is None:
            # Low, because a delayed-ACK timer or a late thread only adds; not the minimum, because a spurious retransmission can make a rare
            # sample small.
            window = QuantileWindow(0.25, self.options.window_s, shift_count=6, shift_ratio=0.25)
            self._t_res[sample.flow_hash] = window
            while len(self._t_res) > self.options.max_flows:
                self._t_res.popitem(last=False)
        self._t_res.move_to_end(sample.flow_hash)
        began_s = self._run[0] if self._run else math.inf
        side = window.side(t_res_s, began_s)
        if side is None and self._port_s is not None:  # a flow that has little to compare with: then with the port
            higher, lower = (self._port_s * (1.0 + part * window.shift_ratio) for part in (1, -1))
            side = 1 if t_res_s > higher else -1 if t_res_s < lower else 0
        window.add(now_s, t_res_s)
        if side is None:
            return
        if side == 0 or side == -self._run_side:
            self._end_run(now_s)
        if side == 0:
            return
        self._run_side = side
        self._run.append(now_s)
        self._find_shift(now_s)

    def _find_shift(self, now_s: float) -> None:
        """Forget what was before a run of samples on one side, once it tells enough."""
        options = self.options
        if len(self._run) < 2:
            return
        probed = self.link.two_tau_s(now_s) is not None
        many = len(self._run) >= options.t_res_shift_count and now_s - self._run[0] >= options.t_res_shift_s
        behind = probed and self._run_side > 0
        if behind and not (many and self._run[-1] - self._run[0] >= options.t_ack_window_s):
            return  # the link is as it was: delayed-ACK timers, which end; what does not is a longer path behind the link
        if many or now_s - self._usual_s >= options.t_res_shift_s:
            # The first may have been on its way in the change.
            since_s, count, before_s = self._run[1 if len(self._run) > 2 else 0], len(self._run), self._port_s
            self._forget_before(since_s)
            self._end_run(now_s)
            after = self._paths(now_s)[0]
            if behind:
                self._t_ack.clear()
            if (behind or not probed) and before_s is not None and after is not None:
                self.tell(LinkChange("path", before_s, after.value, since_s, count))

    def _end_run(self, now_s: float) -> None:
        self._run, self._run_side, self._usual_s = [], 0, now_s

    def measurement(self, now_s: float) -> PortMeasurement:
        """Everything that is known at `now_s`."""
        self._find_shift(now_s)
        of_acks, longest_s = self._paths(now_s)
        if not self._run:
            self._port_s = None if of_acks is None else of_acks.value
        two_tau_s, t_ack_s = self.link.two_tau_s(now_s), self._t_ack_now(now_s)
        t_res_s, source = self._best_t_res(now_s, of_acks, two_tau_s, t_ack_s)
        return PortMeasurement(
            bw_bps=self._bw.estimate(now_s),
            t_res_s=t_res_s,
            l_d_bytes=self._l_d.estimate(now_s),
            n_c=self._n_c.estimate(now_s),
            waiting_packets=self._waiting,
            tau_s=None if two_tau_s is None else _half(two_tau_s),
            t_ack_s=t_ack_s,
            t_res_source=source,
            longest_s=longest_s,
        )

    def _t_ack_now(self, now_s: float) -> Estimate | None:
        """T_ACK; where no ACK was timed within the window the last one, as old as it is."""
        if self._last_t_ack is None:
            return None
        since_s, last = self._last_t_ack
        return self._t_ack.estimate(now_s) or replace(last, age_s=now_s - since_s)

    def _best_t_res(
        self, now_s: float, of_acks: Estimate | None, two_tau_s: Estimate | None, t_ack_s: Estimate | None
    ) -> tuple[Estimate | None, str]:
        """T_res and its source: (6) with τ of the probes and the usual T_ACK where both are known, for ACKs come with delayed-ACK
        timers of their own; else the ACKs alone."""
        options = self.options
        if two_tau_s is not None:
            if t_ack_s is not None:
                both = math.hypot(two_tau_s.uncertainty, t_ack_s.uncertainty)
                value = two_tau_s.value + t_ack_s.value
                return replace(two_tau_s, value=value, uncertainty=both), "probes"
            if of_acks is None and self._bw_begins_s is not None and now_s - self._bw_begins_s >= options.no_acks_s:
                return two_tau_s, "probes_alone"
        return of_acks, "" if of_acks is None else "acks"

    def _paths(self, now_s: float) -> tuple[Estimate | None, Estimate | None]:
        """T_res of the port and of the flow whose path is longest. The port's is the median of the flows' own: they may have different
        paths behind it. A flow with fewer than three samples counts where none has more."""
        at_s, middle, longest = self._paths_at
        if len(self._t_res) > self.options.few_flows and now_s - at_s < self.options.t_res_again_s:
            return middle, longest
        flows: list[tuple[float, QuantileWindow]] = []
        for flow_hash, window in list(self._t_res.items()):
            value = window.value(now_s)
            if value is None:
                del self._t_res[flow_hash]
            else:
                flows.append((value, window))
        flows = sorted([flow for flow in flows if flow[1].count >= 3] or flows, key=itemgetter(0))
        middle = longest = None
        if flows:
            middle = flows[(len(flows) - 1) // 2][1].estimate(now_s)
            longest = max(flows, key=itemgetter(0))[1].estimate(now_s)
            count, last_s = sum(window.count for _, window in flows), max(window.last_s for _, window in flows)
            middle = None if middle is None else replace(middle, count=count, age_s=max(0.0, now_s - last_s))
        self._paths_at = now_s, middle, longest
        return middle, longest

    def _forget_before(self, time_s: float) -> None:
        for window in self._t_res.values():
            window.forget_before(time_s)
        self._reckon_again()

    def _reckon_again(self) -> None:
        self._paths_at = -math.inf, None, None


def _half(two: Estimate) -> Estimate:
    return replace(two, value=two.value / 2, uncertainty=two.uncertainty / 2)


def plain(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate as plain data; an infinite uncertainty is None."""
    if estimate is None:
        return None
    return {
        "value": estimate.value,
        "count": estimate.count,
        "age_s": round(estimate.age_s, 3),
        "uncertainty": None if math.isinf(estimate.uncertainty) else estimate.uncertainty,
    }


def parsed(data: Mapping[str, Any]) -> Estimate:
    """The inverse of `plain`."""
    uncertainty = math.inf if data["uncertainty"] is None else data["uncertainty"]
    return Estimate(data["value"], data["count"], data["age_s"], uncertainty)
