# SPDX-License-Identifier: Apache-2.0
"""The live loop of one switch: measures by digests and probes, keeps flow entries, decides and tunes thresholds."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlane import Session, SwitchControl, enable_digest, runs_program
from fairlane.measure import (
    DIGEST_PORT_REPORT,
    DIGEST_T_RES,
    LinkChange,
    OccupancyKeeper,
    PortMeasurement,
    PortMeter,
    listen_probes,
    listen_reports,
    listen_t_res,
    send_probes,
)
from fairlane.switch import DIGEST_LIST_S, SwitchClient, open_ports
from finsy import P4TableEntry

from . import names as program
from . import why
from .decide import Outcome, ThresholdDecider, lane_room, measured_for
from .flows import FlowKey, Flows, give_hash_key
from .law import FlowCount, LaneLength, Law, Port
from .model import transmission_time_s
from .options import QthreshOptions
from .policies import Policy, PortLimit, policy_json, read_managed
from .store import LoopStore, Mode
from .wanted import set_up_entries

if TYPE_CHECKING:
    from .topology import QthreshTopology


MANY_FLOWS_LIST_S = 0.1
"""How long T_res samples wait for their list with more flows than `few_flows`: each list takes the loop's time, whatever it holds."""

SPACING_TRIPS = 3.0
"""Between two refusals of a flow in its lane, in T_res: a round trip in which a whole threshold by (9), about two windows, waits."""


class QthreshControl(SwitchControl):
    """Listens to digests, keeps flow entries, tunes thresholds. When it ends, the switch keeps its thresholds and flows."""

    topology: QthreshTopology

    def __init__(self, session: Session, topology: QthreshTopology) -> None:
        super().__init__(session, topology)
        self._limits: dict[int, PortLimit] = {}
        self._policies: dict[tuple[int, int], Policy] = {}
        self._deciders: dict[tuple[int, int], ThresholdDecider] = {}
        self._outcomes: dict[tuple[int, int], Outcome] = {}
        self._planned: dict[tuple[int, int], float] = {}
        "(9) of each policy in packets, not rounded."
        self._longest: dict[tuple[int, int], float] = {}
        "A flow's part of what the port of a policy holds, in multiples of (9)."
        self._laws: dict[int, Law[FlowKey]] = {}
        self._lanes: dict[int, LaneLength[FlowKey]] = {}
        "By port."
        self._others: dict[int, tuple[float, dict[FlowKey, int]]] = {}
        "When flows of a port that are not tuned were counted, and their bytes."
        self._tuned_s: dict[tuple[int, int], float] = {}
        "When the flows' weights of a policy were last written."
        self._lists_wait = False
        "Whether T_res samples come in the lists of many flows."
        self._waiting: set[tuple[int, int]] = set()
        "Policies whose new threshold waits for its turn."
        self._link_changed_s: dict[int, float] = {}
        self._meters: dict[int, PortMeter] = {}
        self._flows = Flows(session, self._options.loop.flow_idle, self._options.flow_weight)

    @property
    def _options(self) -> QthreshOptions:
        return self.topology.options

    @property
    def _store(self) -> LoopStore:
        return self.topology.store

    @property
    def _name(self) -> str:
        return self.session.endpoint.name

    # ---- life ------------------------------------------------------------------------------------------------

    def entries_after_restart(self) -> list[P4TableEntry]:
        """Limits of the managed ports, and the policies that were in force, as far as anybody remembers."""
        run, state = self.topology.run, self.session.state
        assert run is not None
        assert state is not None
        policies = list(self._policies.values()) or self._store.read_policies(self._name)
        return set_up_entries(run, state, {}, policies=policies)

    async def observe(self, client: SwitchClient) -> None:
        """The policies that the switch would need after a restart."""
        if runs_program("qthresh", client.table_names()):
            self._policies = (await read_managed(client)).policies

    async def take_over(self, client: SwitchClient) -> None:
        """Read what the switch holds and go on from there: limits, policies, flows; then listen to the digests."""
        self._limits, policies, *_ = await read_managed(client)
        self._deciders.clear()
        self._outcomes.clear()
        self._use_policies(policies)
        ports = sorted(self._limits)
        flows = 0
        if not self.session.dry_run:
            flows = await self._flows.take_over(client)
            if self._options.keeps_counts:
                await self.session.attempt(client, "hash key", give_hash_key)
        for name in (DIGEST_T_RES, DIGEST_PORT_REPORT):
            await enable_digest(self.session, client, name)
        self._lists_wait = False
        if self.session.dry_run:
            self.session.event("took_over", ports=ports, why="there is no other primary: we measure, and write nothing")
            return
        self.session.event(
            "took_over",
            flows=flows,
            ports=ports,
            policies=[policy_json(policy) for _, policy in sorted(self._policies.items())],
            why=why.explain_take_over(flows, len(self._policies)),
        )

    def _use_policies(self, policies: dict[tuple[int, int], Policy]) -> None:
        """Continue the decisions from the thresholds that are in force."""
        self._policies = policies
        limited = {key: policy for key, policy in policies.items() if policy.is_limited}
        self._deciders = {key: self._deciders.get(key) or ThresholdDecider(self._options.loop) for key in limited}
        for key, policy in limited.items():
            self._deciders[key].in_force_packets = policy.qthresh_packets

    def jobs(self, client: SwitchClient) -> list[Coroutine[Any, Any, Any]]:
        """Measure and decide; where it is no dry run, keep flows and counts too."""
        writes = not self.session.dry_run
        jobs: list[Coroutine[Any, Any, Any]] = [listen_reports(client, self._meter), listen_t_res(client, self._meter)]
        if writes:
            jobs += self._flows.jobs(client)
        jobs.append(self._evaluate_forever(client))  # before the flows are tuned, where both are due
        if writes:
            jobs.append(self._tune_forever(client))
        if self._options.probes:
            jobs += [send_probes(client, self._managed_meters), listen_probes(client, self._meter)]
        if writes and self._options.keeps_counts:
            open_queues = partial(open_ports, self.session.endpoint, self.topology.run)
            keeper = OccupancyKeeper(program.COUNTED, open_queues, self.session.event)
            jobs.append(keeper.keep_forever(client, lambda: self._limits))
        return jobs

    # ---- thresholds ------------------------------------------------------------------------------------------

    def _meter(self, port: int) -> PortMeter | None:
        if port not in self._limits:
            return None
        meter = self._meters.get(port)
        if meter is None:
            meter = self._meters[port] = PortMeter(
                self._options.measure, line_bps=self._line_bps(port), tell=partial(self._link_changed, port)
            )
        return meter

    def _managed_meters(self) -> dict[int, PortMeter]:
        return {port: meter for port in self._limits if (meter := self._meter(port)) is not None}

    def _line_bps(self, port: int) -> float | None:
        """The port's rate in the run state, where it says one."""
        ports = self.session.state.ports if self.session.state else ()
        return next((float(state.rate_bps) for state in ports if state.port == port and state.rate_bps), None)

    def _link_changed(self, port: int, change: LinkChange) -> None:
        self._link_changed_s[port] = _now_s()
        self.session.event("link_changed", port=port, why=change.why, **change.to_json())

    async def _evaluate_forever(self, client: SwitchClient) -> None:
        while True:
            await asyncio.sleep(self._options.loop.evaluate_period)
            if not self.session.dry_run:
                self._store.remember(self._name, self._policies.values())
            async with self.session.writes:
                for key in sorted(self._deciders):
                    await self._evaluate(client, key)

    async def _tune_forever(self, client: SwitchClient) -> None:
        while True:
            step_s = self._options.law.step_s(min(len(self._flows), self._options.law.max_flows))
            await asyncio.sleep(step_s)
            await self._space_lists(client)
            ports = sorted({port for port, _ in self._deciders if self._tuned_keys(port) or self._lane_keys(port)})
            if not ports:
                continue
            is_many = len(self._flows) > self._options.law.max_flows
            counts = {} if is_many else await self._flows.read_flow_counts(client)
            async with self.session.writes:
                for port in ports:  # as they are now: somebody may have set one by hand while the counters were read
                    keys, lanes = self._tuned_keys(port), self._lane_keys(port)
                    if is_many:
                        await self._end_tuning(client, port)
                    elif keys:
                        await self._tune(client, port, keys, counts, step_s)
                    if lanes and not is_many:
                        self._check_lanes(port, lanes, counts)

    async def _space_lists(self, client: SwitchClient) -> None:
        """With many flows T_res samples come in fewer lists."""
        wait = len(self._flows) > self._options.measure.few_flows
        if wait == self._lists_wait:
            return
        self._lists_wait = wait
        max_delay_s = MANY_FLOWS_LIST_S if wait else DIGEST_LIST_S
        await enable_digest(self.session, client, DIGEST_T_RES, max_delay_s=max_delay_s)

    def _tuned_keys(self, port: int) -> list[tuple[int, int]]:
        """The policies of a port whose flows the law decides about."""
        return [key for key in self._tuning_keys(port) if self._policies[key].is_shared]

    def _lane_keys(self, port: int) -> list[tuple[int, int]]:
        """The policies of a port whose lanes may have to be longer than (9)."""
        return [key for key in self._tuning_keys(port) if self._policies[key].lanes.own]

    def _tuning_keys(self, port: int) -> list[tuple[int, int]]:
        keys = [key for key in sorted(self._deciders) if key[0] == port and key in self._planned]
        return [key for key in keys if self._is_tuning(key) and self._deciders[key].in_force_packets is not None]

    def _check_lanes(self, port: int, keys: Sequence[tuple[int, int]], counts: Mapping[FlowKey, FlowCount]) -> None:
        flows = {
            flow: replace(counts[flow], weight=self._weight_of(key, flow))
            for key in keys
            for flow in self._flows_of(key)
            if flow in counts
        }
        lanes = self._lanes.setdefault(port, LaneLength(self._options.law))
        longest = max(self._longest.get(key, 1.0) for key in keys)
        before, after = lanes.factor, lanes.step(_now_s(), flows, longest)
        if after > before:
            why_longer = why.explain_longer(after)
            self._policy_event("lanes", keys[0], why=why_longer, factor=round(after, 3), longest=round(longest, 3))

    async def _tune(
        self,
        client: SwitchClient,
        port: int,
        keys: Sequence[tuple[int, int]],
        counts: Mapping[FlowKey, FlowCount],
        step_s: float,
    ) -> None:
        """The flows' own thresholds of one port with the policies `keys`: in the switch weights beside their class's threshold, and taps."""
        limit, line = self._limits.get(port), self._line(port, keys, counts)
        if limit is None or line is None:
            return
        if any(key in self._waiting or not self._deciders[key].may_write(_now_s()) for key in keys):
            return  # one write a second and port: the threshold's comes first, and the law counts on from its last look
        mine: dict[FlowKey, FlowCount] = {}
        model: dict[FlowKey, float] = {}
        in_force: dict[FlowKey, int] = {}
        bounds: dict[FlowKey, tuple[float, float]] = {}
        tuned: dict[FlowKey, int] = {}
        for key in keys:
            settings = self._store.policy(self._name, *key)
            packets = self._deciders[key].in_force_packets or 0
            of_key = [flow for flow in self._flows_of(key) if flow in counts]
            tuned |= self._flows.tuned(of_key, packets)
            for flow in of_key:
                weight = self._weight_of(key, flow)
                mine[flow] = replace(counts[flow], weight=weight)
                model[flow] = self._planned[key] * weight
                in_force[flow] = packets
                low, high = settings.min_packets or 1, settings.max_packets or limit.max_packets
                bounds[flow] = low * weight, high * weight
        law = self._laws.setdefault(port, Law(self._options.law))
        decided = law.step(_now_s(), mine, line, model, tuned, step_s)
        if decided is None:
            return
        wanted = {
            flow: round(min(max(one.qthresh_packets, bounds[flow][0]), bounds[flow][1]))
            for flow, one in decided.items()
            if one.qthresh_packets is not None
        }
        flows = self._flows
        weights = {flow: program.weight_for(packets, in_force[flow]) for flow, packets in wanted.items()}
        changed = {flow: replace(flows.values[flow], tuned=weight, tap=0) for flow, weight in weights.items()}
        if tapped := [flow for flow, one in decided.items() if one.tap]:
            tap = flows.next_tap()
            changed |= {flow: replace(flows.values[flow], tuned=None, tap=tap) for flow in tapped}
        await flows.untune(client, mine.keys() - changed.keys())
        written = await flows.change(client, changed)
        if written:
            for key in keys:
                self._tuned_s[key] = _now_s()
            self._report_tuning(keys[0], law, written)

    def _weight_of(self, key: tuple[int, int], flow: FlowKey) -> float:
        """A flow's own weight, or its class's."""
        return self._flows.values[flow].weight or self._policies[key].weight

    def _line(self, port: int, keys: Sequence[tuple[int, int]], counts: Mapping[FlowKey, FlowCount]) -> Port | None:
        """What the law has to know of a port; None while something is not measured."""
        measured = self.measurement(port)
        bw, t_res, l_d = measured.bw_bps, measured.t_res_s, measured.l_d_bytes
        if bw is None or t_res is None or l_d is None:
            return None
        return Port(
            line_bps=bw.value,
            packet_s=transmission_time_s(bw.value, l_d.value),
            t_res_s=t_res.value,
            capacity_packets=self._limits[port].max_packets,
            waiting_packets=float(measured.waiting_packets or 0),
            other_bps=self._other_bps(port, keys, counts),
        )

    def _other_bps(self, port: int, keys: Sequence[tuple[int, int]], counts: Mapping[FlowKey, FlowCount]) -> float:
        """What flows of the port take that belong to other policies than `keys`."""
        now_s, known = _now_s(), self._flows.values
        octets = {
            flow: count.carried_bytes
            for flow, count in counts.items()
            if flow in known and (place := known[flow].place) is not None and place[0] == port and place not in keys
        }
        before, self._others[port] = self._others.get(port), (now_s, octets)
        if before is None or now_s <= before[0]:
            return 0.0
        grown = sum(max(0, now - before[1].get(flow, 0)) for flow, now in octets.items())
        return 8 * grown / (now_s - before[0])

    def _report_tuning(self, key: tuple[int, int], law: Law[FlowKey], written: int) -> None:
        self._policy_event(
            "tuned",
            key,
            why=why.explain_tuning(law, written, self._planned[key]),
            written=written,
            planned_packets=round(self._planned[key], 2),
            utilisation=None if law.utilisation is None else round(law.utilisation, 4),
            common_factor=round(math.exp(law.log_common), 3),
            is_long=law.is_long,
            flows={str(flow): one.to_json() for flow, one in law.last.items()},
        )

    def _flows_of(self, key: tuple[int, int]) -> list[FlowKey]:
        """The flows of a policy; one whose place is not known belongs to it when it is the only one."""
        only = key if len(self._deciders) == 1 else None
        return [flow for flow, value in self._flows.values.items() if (value.place or only) == key]

    async def _end_tuning(self, client: SwitchClient, port: int) -> None:
        """The law ends here: flows of policies that it does not tune have their own or their class's weight again."""
        self._laws.pop(port, None)
        self._lanes.pop(port, None)
        keys = [key for key in self._policies if key[0] == port]
        await self._flows.untune(client, [flow for key in keys for flow in self._flows_of(key)])

    def _is_tuning(self, key: tuple[int, int]) -> bool:
        settings = self._store.policy(self._name, *key)
        return settings.mode is Mode.AUTO and settings.self_tuning

    async def _evaluate(self, client: SwitchClient, key: tuple[int, int]) -> None:
        port, traffic_class = key
        policy, decider = self._policies[key], self._deciders[key]
        settings = self._store.policy(self._name, port, traffic_class)
        limit = self._limits.get(port)
        if settings.mode is not Mode.AUTO or limit is None:
            return
        now = _now_s()
        measured = measured_for(policy.lanes.own, self.measurement(port, now))
        has_length = policy.lanes.own and settings.self_tuning and key in self._planned
        lanes = self._lanes.get(port) if has_length else None
        longer, mean_weight = (lanes.factor, lanes.mean_weight) if lanes is not None else (1.0, 1.0)
        decision = decider.evaluate(
            now,
            measured,
            weight=policy.weight,
            k=settings.k * longer,
            capacity_packets=limit.max_packets,
            min_packets=settings.min_packets,
            max_packets=settings.max_packets,
            lanes=policy.lanes.own,
            mean_weight=mean_weight,
        )
        if decision.exact_packets is not None:
            self._planned[key] = decision.exact_packets
        if decision.plan is not None:
            room = lane_room(limit.max_packets, decision.plan.connections, mean_weight)
            self._longest[key] = room / (settings.k * decision.plan.w_best_packets)
        if decision.outcome is Outcome.WRITE and self._has_just_tuned(key, now):
            self._waiting.add(key)
            return
        self._waiting.discard(key)
        if decision.outcome is Outcome.WRITE and decision.qthresh_packets is not None:
            new = replace(policy, qthresh_packets=decision.qthresh_packets)
            if new.lanes.own and measured.t_res_s is not None:
                new = replace(new, spacing_us=round(SPACING_TRIPS * 1e6 * measured.t_res_s.value))
            if not await self._put_threshold(client, new):
                return
            self._policies[key] = new
            decider.record_write(now, decision.qthresh_packets)
            told = "threshold"
        elif decision.outcome is not self._outcomes.get(key):
            told = "decision"
        else:
            told = None
        if told is not None:
            text = why.explain_decision(decision, measured, settings.k, longer)
            self._policy_event(told, key, why=text, **decision.to_json(), measured=measured.to_json())
        self._outcomes[key] = decision.outcome

    async def _put_threshold(self, client: SwitchClient, new: Policy) -> bool:
        """Write it; False when the switch refuses, which is reported and tried again."""
        what = f"the threshold of port {new.port} class {new.traffic_class}"
        return await self.session.attempt(client, what, partial(SwitchClient.write, updates=[~new.entry]), keep=False)

    def _has_just_tuned(self, key: tuple[int, int], now_s: float) -> bool:
        """Whether the flows' weights were written less than a second ago: where the link has not just changed, a threshold waits."""
        interval_s = self._options.loop.min_write_interval
        if now_s - self._link_changed_s.get(key[0], -math.inf) <= 2 * interval_s:
            return False
        return now_s - self._tuned_s.get(key, -math.inf) < interval_s - 1e-6

    def _policy_event(self, event: str, key: tuple[int, int], **fields: Any) -> None:
        self.session.event(event, **{"port": key[0], "class": key[1], **fields})

    def measurement(self, port: int, now_s: float | None = None) -> PortMeasurement:
        """What is known of a port at `now_s` of the running loop's clock, or now."""
        meter = self._meters.get(port)
        if meter is None:
            return PortMeasurement(None, None, None, None)
        return meter.measurement(_now_s() if now_s is None else now_s)

    # ---- what people ask for ----------------------------------------------------------------------------------------

    async def changed(self, client: SwitchClient) -> None:
        """Somebody may have changed limits, policies or settings: decide on from what there is now."""
        self._limits, policies, *_ = await read_managed(client)
        self._use_policies(policies)
        self._store.remember(self._name, self._policies.values())
        for port in {*self._laws, *self._lanes}:
            if not self._tuned_keys(port) and not self._lane_keys(port):
                await self._end_tuning(client, port)

    def use_options(self) -> None:
        """Flows that have an entry keep its idle time and weight."""
        self._flows.weight_of_new = self._options.flow_weight
        for decider in self._deciders.values():
            decider.options = self._options.loop
        for law in [*self._laws.values(), *self._lanes.values()]:
            law.options = self._options.law
        self._flows.idle_timeout_s = self._options.loop.flow_idle

    def explain(self, port: int) -> list[dict[str, Any]]:
        """Why each flow of a port has what it has; nothing where no flow is tuned and none has a lane."""
        if keys := self._lane_keys(port):
            return self._explain_lanes(port, keys)
        law = self._laws.get(port)
        if law is None:
            return []
        planned = {
            flow: self._planned[key] * self._weight_of(key, flow)
            for key in self._tuned_keys(port)
            for flow in self._flows_of(key)
        }
        return [
            {
                "flow": str(flow),
                **one.to_json(),
                "sentence": why.explain_flow(one, one.qthresh_packets or planned[flow]),
            }
            for flow, one in law.last.items()
            if flow in planned
        ]

    def _explain_lanes(self, port: int, keys: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
        lanes = self._lanes.get(port)
        if lanes is None or not lanes.rates_bps:
            return []
        mean_bps = sum(lanes.rates_bps.values()) / len(lanes.rates_bps)
        return [
            {
                "flow": str(flow),
                "why": "lane",
                "rate_bps": round(rate_bps),
                "qthresh_packets": packets,
                "sentence": why.explain_lane(rate_bps, mean_bps, packets, lanes.factor),
            }
            for key in keys
            for flow in self._flows_of(key)
            if (rate_bps := lanes.rates_bps.get(flow)) is not None
            for packets in [int((self._policies[key].qthresh_packets or 0) * self._weight_of(key, flow))]
        ]

    def status(self) -> dict[str, Any]:
        """Flows and policies."""
        return {
            "flows": len(self._flows),
            "flows_missed": self._flows.counts["missed"],
            "new_flows": self._flows.status(),
            "policies": [
                {**policy_json(p), "mode": self._store.policy(self._name, *p.key).mode.value}
                for _, p in sorted(self._policies.items())
            ],
        }

    def measurements(self) -> list[dict[str, Any]]:
        """One object a managed port."""
        return [{"port": port, **self.measurement(port).to_json()} for port in sorted(self._limits)]


def _now_s() -> float:
    return asyncio.get_running_loop().time()
