# SPDX-License-Identifier: Apache-2.0
"""BW, T_res, τ, T_ACK, L_D and N_C of one egress port from the data plane's reports, T_res samples and probes; no I/O, no clock."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from fairlane_controller.measure.estimators import Estimate, LinkChange, QuantileWindow
from fairlane_controller.measure.tau import LinkProbe, Probe

WINDOW_S = 10.0
"""How long an observation counts."""
RUN_COUNT = 4
"""Number of T_res samples in a row, of whatever flows, that must all lie beyond what their flows had: the path has changed,
and what was before is forgotten for all flows. With few samples each, no single flow could decide for long."""
RUN_S = 1.0
"""They span this time at least: delayed-ACK timers come in bursts. Two are enough when no flow had a usual sample for this
time: after a delay has risen, samples come once a round trip, and spurious timeouts spoil many."""
MAX_FLOWS = 256
"""Flows whose T_res is measured separately; the one with the oldest sample is removed first."""
SAMPLES_PER_S = 128.0
"""T_res samples that count with more than `few_flows`, those of each flow equally far apart: a sample takes the loop's time;"""
MANY_FLOWS_PERIOD_S = 2.0
"""and the max age of the T_res of so many flows."""
T_ACK_MIN_COUNT = 3
"""Min number of T_res samples for T_ACK."""
T_ACK_WINDOW_S = 30.0
"""Where every ACK was late for so long, the path behind the link has become longer."""
NO_ACKS_S = 3.0
"""When BW has been known for so long and no ACK was ever timed, the link carries no TCP, and T_res is 2τ."""


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
    """What the target's timestamps include, and how many flows are few."""

    sample_includes_t_d: bool = True
    """Whether a frame's own serialisation is in its T_res sample: yes where the dequeue is the start of the
    transmission (embedded switch), no where a frame is sent at once when it is dequeued (BMv2)."""
    few_flows: int = 64
    "Of so many flows each T_res sample counts."


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


def plain(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate as plain data; an infinite uncertainty is None."""
    if estimate is None:
        return None
    uncertainty = None if math.isinf(estimate.uncertainty) else estimate.uncertainty
    return {**vars(estimate), "age_s": round(estimate.age_s, 3), "uncertainty": uncertainty}


@dataclass
class PortMeter:
    """Takes the observations of one port; times are seconds of any one clock.

    ```
    BW       unknown --report--> known --a report disagrees--> in doubt --three agree on another--> known
                                   ^                              |
                                   +------- a report agrees ------+
    T_res    waits (_recent)     counts                         waits; once BW is known, what waited counts

    path     as usual --a sample beyond what its flow had--> run (_run: its times, on one side) --it is long enough--> as usual, what
               ^                                              |                                   was before it is forgotten
               +-- a sample as usual, or on the other side ---+
    ```
    """

    options: MeasureOptions
    line_bps: float | None = None
    "Rate of the port as configured, for what a probe takes on the line while BW is not known."
    report: Callable[[LinkChange], None] = lambda _: None
    "Gets every change of the link as soon as it is confirmed."

    def __post_init__(self) -> None:
        self.link = LinkProbe()
        # Weighted by busy time; the services are exact, what disturbs them is rare and large.
        self._bw = QuantileWindow(0.5, WINDOW_S, shift_count=3, shift_ratio=0.05)
        self._l_d = QuantileWindow(0.5, WINDOW_S)
        # Above the median, because a flow with few packets is missed in some intervals; not the maximum, because a flow that gets its entry
        # is counted twice in that interval, in its fallback slot and in its own.
        self._n_c = QuantileWindow(0.75, 5.0, shift_count=0)
        # Lower than T_res's: where probes report the link's changes, what remains are delayed-ACK timers, which last for seconds.
        self._t_ack = QuantileWindow(0.1, T_ACK_WINDOW_S, shift_count=0)
        self._t_res = OrderedDict[int, QuantileWindow]()
        "By flow; the one with the newest sample last."
        self._waiting: int | None = None
        self._recent = deque[tuple[float, TResSample]](maxlen=64)
        "Samples as they came: their T_D is known only with BW."
        self._doubt_s: float | None = None
        "Since when the reports contradict BW: T_res samples wait until it is known."
        self._run: list[float] = []
        "Times of the last T_res samples that all lay on one side of what their flows had."
        self._run_side = 0
        self._usual_s = -math.inf
        "Time of the last usual sample, or of the end of the last run."
        self._port_s: float | None = None
        "The port's T_res at the last measurement without a run."
        self._last_t_ack: tuple[float, Estimate] | None = None
        "When T_ACK was last known, and what it was."
        self._bw_begins_s = math.inf
        self._forget_paths()

    def on_report(self, now_s: float, report: PortReport) -> None:
        """One `port_report_t`."""
        self._waiting = report.waiting_packets
        if report.flows > 0:
            self._n_c.add(now_s, float(report.flows))
        if report.busy_us <= 0 or report.busy_packets <= 0 or report.busy_bytes <= 0:
            return  # nothing ever waited: the line's rate is not known
        bw_bps = 8e6 * report.busy_bytes / report.busy_us
        begins, disagrees = not self._bw.count, self._bw.side(bw_bps) not in (None, 0)
        self._bw_begins_s = min(self._bw_begins_s, now_s)
        shift = self._bw.add(now_s, bw_bps, weight=float(report.busy_us))
        self._l_d.add(now_s, report.busy_bytes / report.busy_packets, weight=float(report.busy_packets))
        if shift is not None:
            self.link.forget_since(shift.since_s)  # these probes used the old rate for their serialisation
            self._t_ack.forget_since(
                -math.inf
            )  # it has the way back, and timers that are usual at one rate are not at another
            self.report(LinkChange(**vars(shift), what="rate"))
        if begins or shift is not None:
            # What came before has another T_D and, after a hand-over, another path; what came since is right.
            self._t_res.clear()
            self._forget_paths()
            self._count_again(-math.inf if shift is None else shift.since_s)
        elif disagrees:
            self._doubt_s = now_s if self._doubt_s is None else self._doubt_s
        elif self._doubt_s is not None:
            self._count_again(self._doubt_s)

    def _count_again(self, since_s: float) -> None:
        """BW is known: the samples that have waited since then count."""
        self._doubt_s = None
        self._end_run(since_s)
        for time_s, sample in self._recent:
            if time_s >= since_s:
                self._count_sample(time_s, sample)

    def on_probe(self, now_s: float, probe: Probe) -> None:
        """A probe that came back."""
        rate_bps = None
        if self.options.sample_includes_t_d:
            rate_bps = self.line_bps if (bw_bps := self._bw.value(now_s)) is None else bw_bps
        change = self.link.on_home(now_s, probe, rate_bps)
        if change is not None:
            # T_res of the old delay is of no use now; until there are samples of the new one, 2τ and T_ACK stand for it.
            self._forget_before(change.since_s)
            while self._recent and self._recent[0][0] < change.since_s:
                self._recent.popleft()
            self._end_run(now_s)
            self._port_s = None
            self.report(change)
            return
        two_tau_s = self.link.two_tau_s(now_s)
        t_res_s = None if self._run or self._doubt_s is not None else self._t_res_of_paths(now_s)[0]
        if t_res_s is None or two_tau_s is None or t_res_s.count < T_ACK_MIN_COUNT:
            return
        self._t_ack.add(now_s, max(0.0, t_res_s.value - two_tau_s.value))
        t_ack_s = self._t_ack.estimate(now_s)
        assert t_ack_s is not None
        self._last_t_ack = now_s, t_ack_s

    def on_t_res(self, now_s: float, sample: TResSample) -> None:
        """One `t_res_t`. It waits until BW is known where the sample includes the frame's own T_D."""
        flows, window = len(self._t_res), self._t_res.get(sample.flow_hash)
        if (
            flows > self.options.few_flows
            and window is not None
            and window.count
            and now_s - window.last_s < flows / SAMPLES_PER_S
        ):
            return
        self._recent.append((now_s, sample))
        if self._doubt_s is None:
            self._count_sample(now_s, sample)

    def _count_sample(self, now_s: float, sample: TResSample) -> None:
        t_res_s = sample.t_res_us * 1e-6
        if self.options.sample_includes_t_d:
            bw_bps = self._bw.value(now_s)
            if bw_bps is None:
                return
            t_res_s -= 8.0 * sample.frame_bytes / bw_bps
        if t_res_s <= 0:
            return  # less than its own serialisation: it cannot be true
        window = self._t_res.get(sample.flow_hash)
        if window is None:
            # A low quantile, because a delayed-ACK timer or a late thread only adds; not the minimum, because a spurious retransmission can
            # make a rare sample small.
            window = self._t_res[sample.flow_hash] = QuantileWindow(0.25, WINDOW_S, shift_count=6, shift_ratio=0.25)
        self._t_res.move_to_end(sample.flow_hash)
        if len(self._t_res) > MAX_FLOWS:
            self._t_res.popitem(last=False)
        side = window.side(t_res_s, self._run[0] if self._run else math.inf)
        if side is None and self._port_s is not None:  # the flow has few samples to compare with: compare with the port
            higher, lower = (self._port_s * (1.0 + part * window.shift_ratio) for part in (1, -1))
            side = 1 if t_res_s > higher else -1 if t_res_s < lower else 0
        window.add(now_s, t_res_s)
        if side is None:
            return
        if side == 0 or side == -self._run_side:
            self._end_run(now_s)
        if side:
            self._run_side = side
            self._run.append(now_s)
            self._find_shift(now_s)

    def _find_shift(self, now_s: float) -> None:
        """Forget what was before a run of samples on one side, once it is long enough."""
        if len(self._run) < 2:
            return
        probed = self.link.two_tau_s(now_s) is not None
        many = len(self._run) >= RUN_COUNT and now_s - self._run[0] >= RUN_S
        behind = probed and self._run_side > 0
        if behind and not (many and self._run[-1] - self._run[0] >= T_ACK_WINDOW_S):
            return  # the link is as it was: delayed-ACK timers, which end; what does not is a longer path behind the link
        if many or now_s - self._usual_s >= RUN_S:
            # The first may have been under way in the change.
            since_s, count, before_s = self._run[1 if len(self._run) > 2 else 0], len(self._run), self._port_s
            self._forget_before(since_s)
            self._end_run(now_s)
            after = self._t_res_of_paths(now_s)[0]
            if behind:
                self._t_ack.forget_since(-math.inf)
            if (behind or not probed) and before_s is not None and after is not None:
                self.report(LinkChange(before_s, after.value, since_s, count, "path"))

    def _end_run(self, now_s: float) -> None:
        self._run, self._run_side, self._usual_s = [], 0, now_s

    def measurement(self, now_s: float) -> PortMeasurement:
        """Everything that is known at `now_s`."""
        self._find_shift(now_s)
        of_acks_s, longest_s = self._t_res_of_paths(now_s)
        if not self._run:
            self._port_s = None if of_acks_s is None else of_acks_s.value
        two_tau_s, tau_s, t_ack_s = self.link.two_tau_s(now_s), None, None
        if two_tau_s is not None:
            tau_s = replace(two_tau_s, value=two_tau_s.value / 2, uncertainty=two_tau_s.uncertainty / 2)
        if self._last_t_ack is not None:
            since_s, last = self._last_t_ack
            t_ack_s = self._t_ack.estimate(now_s)
            if t_ack_s is None and (of_acks_s is None or of_acks_s.count < T_ACK_MIN_COUNT):
                t_ack_s = replace(last, age_s=now_s - since_s)  # hardly an ACK was timed: the last one, as old as it is
        t_res_s, source = of_acks_s, "" if of_acks_s is None else "acks"
        if two_tau_s is not None and t_ack_s is not None:
            # (6) with the usual T_ACK, because ACKs come with delayed-ACK timers of their own.
            both = math.hypot(two_tau_s.uncertainty, t_ack_s.uncertainty)
            t_res_s, source = replace(two_tau_s, value=two_tau_s.value + t_ack_s.value, uncertainty=both), "probes"
        elif two_tau_s is not None and of_acks_s is None and now_s - self._bw_begins_s >= NO_ACKS_S:
            t_res_s, source = two_tau_s, "probes_alone"
        return PortMeasurement(
            bw_bps=self._bw.estimate(now_s),
            t_res_s=t_res_s,
            l_d_bytes=self._l_d.estimate(now_s),
            n_c=self._n_c.estimate(now_s),
            waiting_packets=self._waiting,
            tau_s=tau_s,
            t_ack_s=t_ack_s,
            t_res_source=source,
            longest_s=longest_s,
        )

    def _t_res_of_paths(self, now_s: float) -> tuple[Estimate | None, Estimate | None]:
        """T_res of the port and of the flow whose path is longest.

        The port's is the median of the flows' own, because they may have different paths behind it. A flow with fewer than three
        samples counts where no flow has more.
        """
        at_s, port, longest = self._paths
        if len(self._t_res) > self.options.few_flows and now_s - at_s < MANY_FLOWS_PERIOD_S:
            return port, longest
        flows: list[tuple[float, QuantileWindow]] = []
        for flow_hash, window in list(self._t_res.items()):
            value = window.value(now_s)
            if value is None:
                del self._t_res[flow_hash]
            else:
                flows.append((value, window))
        flows = sorted([flow for flow in flows if flow[1].count >= 3] or flows, key=itemgetter(0))
        port = longest = None
        if flows:
            middle = flows[(len(flows) - 1) // 2][1].estimate(now_s)
            longest = max(flows, key=itemgetter(0))[1].estimate(now_s)
            count, last_s = sum(window.count for _, window in flows), max(window.last_s for _, window in flows)
            port = None if middle is None else replace(middle, count=count, age_s=max(0.0, now_s - last_s))
        self._paths = now_s, port, longest
        return port, longest

    def _forget_before(self, time_s: float) -> None:
        for window in self._t_res.values():
            window.forget_before(time_s)
        self._forget_paths()

    def _forget_paths(self) -> None:
        self._paths: tuple[float, Estimate | None, Estimate | None] = -math.inf, None, None
