# SPDX-License-Identifier: Apache-2.0
"""The live loop: measures by digests and probes, adds flow entries, decides and tunes thresholds of each switch."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from fairlane import RunState, Session, SwitchControl, TopologyControl, enable_digest, port_state, runs_program
from fairlane.measure import (
    DIGEST_PORT_REPORT,
    DIGEST_T_RES,
    LinkChange,
    PortMeter,
    PortReport,
    TResSample,
    listen_digest,
)
from fairlane.switch import DIGEST_LIST_S, SwitchClient
from fairlane.text import counted
from finsy import P4TableEntry

from . import law, names
from .decide import MIN_WRITE_INTERVAL_S, Outcome, ThresholdDecider, explain_decision, lane_room, measured_for_lanes
from .flows import Flow, FlowKey, Flows, give_hash_key
from .law import FlowCount, LaneLength, Law, Port
from .policies import InForce, LoopStore, Policy, SetupPlan, read_managed
from .settings import PolicySettings, QthreshLoop

EVALUATE_PERIOD_S = 0.25
"Between two decisions about a threshold."
MANY_FLOWS_LIST_S = 0.1
"""Max delay of a list of T_res samples with more flows than `few_flows`: each list takes the loop's time, however long it is."""


Key = tuple[int, int]
"""(egress port, class)."""
Counts = Mapping[FlowKey, FlowCount]


@dataclass
class _Class:
    """What the loop knows of one policy with thresholds."""

    policy: Policy
    decider: ThresholdDecider
    outcome: Outcome | None = None
    "Of the newest decision that was reported."
    planned: float | None = None
    "(9) in packets, not rounded."
    longest: float = 1.0
    "A flow's part of what the port has room for, in multiples of (9)."
    tuned_s: float = -math.inf
    "When its flows' weights were last written."
    is_waiting: bool = False
    "Whether its new threshold waits for its turn."


@dataclass
class _Port:
    """What the loop knows of one managed port."""

    meter: PortMeter
    capacity_packets: int = 0
    "What may wait there."
    law: Law[FlowKey] | None = None
    lanes: LaneLength[FlowKey] | None = None
    others: tuple[float, dict[FlowKey, int]] = -math.inf, {}
    "When flows that are not tuned were counted, and their bytes."
    changed_s: float = -math.inf
    "When the link last changed."


class QthreshControl(SwitchControl):
    """Listens to digests, adds flow entries, tunes thresholds. When it ends, thresholds and flows stay in the switch."""

    topology: QthreshTopology

    def __init__(self, session: Session, topology: QthreshTopology) -> None:
        super().__init__(session, topology)
        self._ports: dict[int, _Port] = {}
        self._policies: dict[Key, Policy] = {}
        "All, also those without thresholds."
        self._classes: dict[Key, _Class] = {}
        self._max_delay_s = DIGEST_LIST_S
        "Of a list of T_res samples."
        self._flows = Flows(session, idle_timeout_s=self._loop.flow_idle, weight_of_new=self._loop.weight_of)

    # ---- life ------------------------------------------------------------------------------------------------

    def entries_after_restart(self) -> list[P4TableEntry]:
        """Limits of the managed ports, and the policies that were in force, as far as they are known."""
        run, state = self.topology.run, self.session.state
        assert run is not None
        assert state is not None
        policies = list(self._policies.values()) or self.topology.store.read_policies(state.name)
        known = {str(one.key): one.fitted(port_state(run, (state.name, one.port))).entry for one in policies}
        return list(SetupPlan(run).wanted(state.name, known).entries)

    async def observe(self, client: SwitchClient) -> None:
        """The policies that the switch would need after a restart."""
        if runs_program("qthresh", client.table_names()):
            self._policies = (await read_managed(client)).policies

    async def take_over(self, client: SwitchClient) -> None:
        """Read limits, policies and flows of the switch and go on from there; then listen to the digests."""
        self._classes = {}
        self._use(await read_managed(client))
        flows, text = 0, "there is no other primary: we measure, and write nothing"
        if not self.session.dry_run:
            flows = await self._flows.take_over(client)
            if self.topology.run is not None:
                await self.session.attempt(client, "hash key", give_hash_key)
            found = f"{counted(flows, 'flow entry')}, {counted(len(self._policies), 'policy')}"
            text = f"we are the primary controller and go on from what the switch has: {found}"
        for name in (DIGEST_T_RES, DIGEST_PORT_REPORT):
            await enable_digest(self.session, client, name)
        self._max_delay_s = DIGEST_LIST_S
        self.session.event("took_over", flows=flows, policies=self._shown_policies(), why=text)

    def _shown_policies(self) -> list[dict[str, Any]]:
        return [
            {"port": one.port, **one.values, "mode": self._settings(key).mode}
            for key, one in sorted(self._policies.items())
        ]

    def _use(self, found: InForce) -> None:
        """Go on from the limits, policies and thresholds that are in force."""
        self._policies = found.policies
        settings = found.ports
        self._ports = {number: self._ports.get(number) or self._new_port(number) for number in settings}
        for number, port in self._ports.items():
            port.capacity_packets = settings[number].limit_packets or 0
        classes: dict[Key, _Class] = {}
        for key, policy in found.policies.items():
            if policy.is_limited:
                one = classes[key] = self._classes.get(key) or _Class(policy, ThresholdDecider())
                one.policy, one.decider.in_force_packets = policy, policy.qthresh_packets
        self._classes = classes

    async def changed(self, client: SwitchClient) -> None:
        """Somebody may have changed limits, policies or settings: decide on from what there is now."""
        self._use(await read_managed(client))
        self.topology.store.remember(self._name, self._policies.values())
        for number, port in self._ports.items():
            if (port.law or port.lanes) and not self._tuning(number):
                await self._end_tuning(client, number)

    def use_options(self) -> None:
        """Flows that have an entry keep its idle time and weight."""
        self._flows.weight_of_new, self._flows.idle_timeout_s = self._loop.weight_of, self._loop.flow_idle

    def jobs(self, client: SwitchClient) -> list[Coroutine[Any, Any, Any]]:
        """Measure and decide; where it is no dry run, keep flows and counts too."""
        writes = not self.session.dry_run
        jobs: list[Coroutine[Any, Any, Any]] = [
            listen_digest(client, DIGEST_PORT_REPORT, self._meter_of, PortReport, PortMeter.on_report),
            listen_digest(client, DIGEST_T_RES, self._meter_of, TResSample, PortMeter.on_t_res),
        ]
        if writes:
            jobs += self._flows.jobs(client)
        jobs.append(self._evaluate_forever(client))  # before the flows are tuned, where both are due
        if writes:
            jobs.append(self._tune_forever(client))
        counted = names.COUNTED if writes and self.topology.run is not None else None
        return jobs + self.link_jobs(client, lambda: {port: one.meter for port, one in self._ports.items()}, counted)

    @property
    def _loop(self) -> Any:
        return self.topology.loop

    @property
    def _name(self) -> str:
        return self.session.endpoint.name

    def _settings(self, key: Key) -> PolicySettings:
        return self.topology.store.policy(self._name, *key)

    # ---- measurements ----------------------------------------------------------------------------------------

    def _new_port(self, port: int) -> _Port:
        state = self.session.state.port(port) if self.session.state else None
        line_bps = float(state.rate_bps) if state is not None and state.rate_bps else None
        report = partial(self._link_changed, port)
        return _Port(PortMeter(self.topology.measure, line_bps=line_bps, report=report))

    def _meter_of(self, port: int) -> PortMeter | None:
        return self._ports[port].meter if port in self._ports else None

    def _link_changed(self, port: int, change: LinkChange) -> None:
        self._ports[port].changed_s = _now_s()
        self.report_link(port, change)

    # ---- (9): the thresholds of classes ------------------------------------------------------------------------

    async def _evaluate_forever(self, client: SwitchClient) -> None:
        while True:
            await asyncio.sleep(EVALUATE_PERIOD_S)
            if not self.session.dry_run:
                self.topology.store.remember(self._name, self._policies.values())
            async with self.session.writes:
                for key, one in sorted(self._classes.items()):
                    settings = self._settings(key)
                    if settings.threshold is None and key[0] in self._ports:
                        await self._evaluate(client, one, self._ports[key[0]], settings)

    async def _evaluate(self, client: SwitchClient, one: _Class, port: _Port, settings: PolicySettings) -> None:
        now_s, policy, room, longer = _now_s(), one.policy, float(port.capacity_packets), 1.0
        measured, has_lane = port.meter.measurement(now_s), bool(policy.lanes.own)
        if has_lane:
            measured, mean_weight = measured_for_lanes(measured), 1.0
            if port.lanes is not None and settings.self_tuning and one.planned is not None:
                longer, mean_weight = port.lanes.factor, port.lanes.mean_weight
            if measured.n_c is not None:
                room = lane_room(port.capacity_packets, measured.n_c.value, mean_weight)
        in_force = settings.model_copy(update={"weight": policy.weight})
        decision = one.decider.evaluate(
            now_s, measured, in_force, room, longer=longer, has_lane=has_lane, spacing_us=policy.spacing_us
        )
        if decision.plan is not None:
            one.planned, one.longest = decision.exact_packets, room / (settings.k * decision.plan.w_best_packets)
        writes = decision.outcome is Outcome.WRITE
        # A threshold waits a second after the flows' weights were written, where the link has not just changed.
        has_just_tuned = (
            now_s - port.changed_s > 2 * MIN_WRITE_INTERVAL_S and now_s - one.tuned_s < MIN_WRITE_INTERVAL_S - 1e-6
        )
        one.is_waiting = writes and has_just_tuned
        if one.is_waiting:
            return
        if writes and decision.qthresh_packets is not None:
            new = replace(policy, qthresh_packets=decision.qthresh_packets, spacing_us=decision.spacing_us)
            what = f"the threshold of port {new.port} class {new.traffic_class}"
            write = partial(SwitchClient.write, updates=[~new.entry])
            if not await self.session.attempt(client, what, write, keep=False):
                return
            self._policies[new.key] = one.policy = new
            one.decider.record_write(now_s, new.qthresh_packets)
        if writes or decision.outcome is not one.outcome:
            fields = {"why": explain_decision(decision, measured), "measured": measured.to_json()}
            self._event("threshold" if writes else "decision", one, **asdict(decision), **fields)
        one.outcome = decision.outcome

    def _event(self, event: str, one: _Class, **fields: Any) -> None:
        self.session.event(event, **{"port": one.policy.port, "class": one.policy.traffic_class, **fields})

    # ---- the law: the thresholds of flows ----------------------------------------------------------------------

    async def _tune_forever(self, client: SwitchClient) -> None:
        while True:
            step_s = law.step_s(len(self._flows))
            await asyncio.sleep(step_s)
            is_many = len(self._flows) > self.topology.measure.few_flows
            max_delay_s = MANY_FLOWS_LIST_S if is_many else DIGEST_LIST_S
            if max_delay_s != self._max_delay_s:
                self._max_delay_s = max_delay_s
                await enable_digest(self.session, client, DIGEST_T_RES, max_delay_s=max_delay_s)
            if not any(map(self._tuning, self._ports)):
                continue
            is_many = len(self._flows) > law.MAX_FLOWS
            counts = {} if is_many else await self._flows.read_flow_counts(client)
            async with self.session.writes:
                # As they are now: somebody may have set one by hand while the counters were read.
                for port in sorted(self._ports):
                    classes = self._tuning(port)
                    if is_many:
                        await self._end_tuning(client, port)
                    elif shared := [one for one in classes if not one.policy.lanes.own]:
                        await self._tune(client, self._ports[port], shared, counts, step_s)
                    if not is_many and (lanes := [one for one in classes if one.policy.lanes.own]):
                        self._check_lanes(self._ports[port], lanes, counts)

    def _tuning(self, port: int) -> list[_Class]:
        """The policies of a port whose flows the law decides about, or whose lanes may have to be longer than (9)."""
        found = [(one, self._settings(key)) for key, one in sorted(self._classes.items()) if key[0] == port]
        return [
            one for one, known in found if known.threshold is None and known.self_tuning and one.planned is not None
        ]

    def _flows_of(self, classes: Sequence[_Class], counts: Counts) -> dict[FlowKey, _Class]:
        """The flows of these policies, with the policy of each."""
        return {
            flow: one
            for one in classes
            for flow, value in self._flows.values.items()
            if value.place == one.policy.key and flow in counts
        }

    def _weighed(self, flows: Mapping[FlowKey, _Class], counts: Counts) -> dict[FlowKey, FlowCount]:
        """Their counters, each with its flow's own weight, or its class's."""
        values = self._flows.values
        return {
            flow: replace(counts[flow], weight=values[flow].weight or one.policy.weight) for flow, one in flows.items()
        }

    def _check_lanes(self, port: _Port, classes: Sequence[_Class], counts: Counts) -> None:
        lanes = port.lanes = port.lanes or LaneLength()
        before, longest = lanes.factor, max(one.longest for one in classes)
        after = lanes.step(_now_s(), self._weighed(self._flows_of(classes, counts), counts), longest)
        if after > before:
            text = f"lanes are {after:.2f} times as long as (9) says: a flow that lost packets had less than its share"
            self._event("lanes", classes[0], why=text, factor=round(after, 3))

    async def _tune(
        self, client: SwitchClient, port: _Port, classes: Sequence[_Class], counts: Counts, step_s: float
    ) -> None:
        """The flows' own thresholds of one port with these policies: in the switch weights beside their class's threshold, and taps."""
        now_s, flows, line = _now_s(), self._flows, self._line(port, classes, counts)
        if line is None or any(one.is_waiting or not one.decider.may_write(now_s) for one in classes):
            return  # one write a second and port: the threshold's comes first, and the law counts on from its last step
        of = self._flows_of(classes, counts)
        mine = self._weighed(of, counts)
        model = {flow: (one.planned or 0.0) * mine[flow].weight for flow, one in of.items()}
        tuned = {
            flow: one.policy.qthresh_packets * weight >> 8
            for flow, one in of.items()
            if (weight := flows.values[flow].tuned)
        }
        port.law = port.law or Law()
        decided = port.law.step(now_s, mine, line, model, tuned, step_s)
        if decided is None:
            return
        tap = flows.next_tap() if any(one.tap for one in decided.values()) else 0
        changed: dict[FlowKey, Flow] = {}
        for flow, one in decided.items():
            if one.tap:
                changed[flow] = replace(flows.values[flow], tuned=None, tap=tap)
            elif one.qthresh_packets is not None:
                policy, weight = of[flow].policy, mine[flow].weight
                packets = round(min(max(one.qthresh_packets, weight), port.capacity_packets * weight))
                tuned_weight = names.weight_for(packets, policy.qthresh_packets)
                changed[flow] = replace(flows.values[flow], tuned=tuned_weight, tap=0)
        await flows.untune(client, mine.keys() - changed.keys())
        if written := await flows.change(client, changed):
            for one in classes:
                one.tuned_s = _now_s()
            self._event("tuned", classes[0], **port.law.report(written, classes[0].planned or 0.0))

    def _line(self, port: _Port, classes: Sequence[_Class], counts: Counts) -> Port | None:
        """What the law has to know of a port, also what flows of other policies take; None while something is not measured."""
        now_s, keys = _now_s(), [one.policy.key for one in classes]
        measured = port.meter.measurement(now_s)
        bw, t_res, l_d = measured.bw_bps, measured.t_res_s, measured.l_d_bytes
        if bw is None or t_res is None or l_d is None:
            return None
        octets = {
            flow: counts[flow].carried_bytes
            for flow, value in self._flows.values.items()
            if value.place and value.place[0] == keys[0][0] and value.place not in keys and flow in counts
        }
        (before_s, before), port.others = port.others, (now_s, octets)
        grown = sum(max(0, now - before.get(flow, 0)) for flow, now in octets.items())
        return Port(
            line_bps=bw.value,
            packet_s=8.0 * l_d.value / bw.value,
            t_res_s=t_res.value,
            capacity_packets=port.capacity_packets,
            waiting_packets=float(measured.waiting_packets or 0),
            other_bps=8 * grown / (now_s - before_s) if now_s > before_s else 0.0,
        )

    async def _end_tuning(self, client: SwitchClient, port: int) -> None:
        """The law ends here: flows of policies that it does not tune have their own or their class's weight again."""
        self._ports[port].law = self._ports[port].lanes = None
        values = self._flows.values
        await self._flows.untune(client, [flow for flow, one in values.items() if one.place and one.place[0] == port])

    # ---- what people ask for ----------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Flows and policies."""
        flows = self._flows
        of_flows = {"flows": len(flows), "flows_missed": flows.counts["missed"], "new_flows": flows.status()}
        return {**of_flows, "policies": self._shown_policies()}

    def measurements(self) -> list[dict[str, Any]]:
        """One object a managed port."""
        return [
            {"port": port, **one.meter.measurement(_now_s()).to_json()} for port, one in sorted(self._ports.items())
        ]


def _now_s() -> float:
    return asyncio.get_running_loop().time()


class QthreshTopology(TopologyControl):
    """What the switches of a topology share: settings of policies, and options."""

    control_type = QthreshControl

    def __init__(self, run: RunState | None = None, *, probes: bool = True, store: LoopStore | None = None) -> None:
        """Begin without connections.

        Args:
            run: the topology; None: single switches, which get no hash key, and whose counts are not compared with their queues.
            probes: whether to send probes.
            store: the settings of policies; None: those of the topology's state file.
        """
        super().__init__(run, probes=probes)
        self.store = store or LoopStore(run.folder if run is not None else None)
        self.loop = QthreshLoop()
