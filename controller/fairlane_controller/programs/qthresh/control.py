# SPDX-License-Identifier: Apache-2.0
"""The live loop of one switch: measures by digests and probes, keeps flow entries, decides and tunes thresholds."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from finsy import P4TableEntry

from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.measure.changes import LinkChange
from fairlane_controller.measure.occupancy import OccupancyKeeper
from fairlane_controller.measure.port import PortMeasurement, PortMeter
from fairlane_controller.measure.prober import listen_probes, send_probes
from fairlane_controller.measure.source import DIGEST_PORT_REPORT, DIGEST_T_RES, listen_reports, listen_t_res
from fairlane_controller.program.control import Session, SwitchControl, enable_digest
from fairlane_controller.program.registry import runs_program
from fairlane_controller.programs.qthresh import changes, why
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.decide import Outcome, ThresholdDecider, capacity_of_flow, measured_for
from fairlane_controller.programs.qthresh.flow_keeper import FlowKeeper
from fairlane_controller.programs.qthresh.flows import FlowKey
from fairlane_controller.programs.qthresh.hash_key import give_hash_key
from fairlane_controller.programs.qthresh.loop_state import Mode
from fairlane_controller.programs.qthresh.options import QthreshOptions
from fairlane_controller.programs.qthresh.policies import (
    Policy,
    PortLimit,
    Scheme,
    read_limits,
    read_policies,
    why_no_lanes,
)
from fairlane_controller.programs.qthresh.setup import set_up_entries
from fairlane_controller.programs.qthresh.shares import FlowCount, ShareTuner
from fairlane_controller.programs.qthresh.store import LoopStore
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.client import SwitchClient

if TYPE_CHECKING:
    from fairlane_controller.programs.qthresh.topology import QthreshTopology


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
        self._tuners: dict[tuple[int, int], ShareTuner[FlowKey]] = {}
        self._tuned_s: dict[tuple[int, int], float] = {}
        "When the flows' weights of a policy were last written."
        self._waiting: set[tuple[int, int]] = set()
        "Policies whose new threshold waits for its turn."
        self._link_changed_s: dict[int, float] = {}
        self._meters: dict[int, PortMeter] = {}
        self._flows = FlowKeeper(session.log, self._options.flow_idle_timeout_s, self._options.flow_weight)

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
            self._policies = await read_policies(client)

    async def take_over(self, client: SwitchClient) -> None:
        """Read what the switch holds and go on from there: limits, policies, flows; then listen to the digests."""
        self._limits = await read_limits(client)
        self._resume_from(await read_policies(client))
        ports = sorted(self._limits)
        digests, flows = [DIGEST_T_RES, DIGEST_PORT_REPORT], 0
        if not self.session.dry_run:
            digests.insert(0, program.DIGEST_NEW_FLOW)
            flows = await self._flows.take_over(client)
            if self._options.keeps_counts:
                await self.session.attempt(client, "hash key", give_hash_key)
        for name in digests:
            await self.session.attempt(client, f"digest {name}", partial(enable_digest, name=name))
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

    def _resume_from(self, policies: dict[tuple[int, int], Policy]) -> None:
        """Continue the decisions from the thresholds that are in force."""
        self._policies = policies
        self._deciders = {
            key: ThresholdDecider(self._options.decide, in_force_packets=policy.qthresh_packets)
            for key, policy in policies.items()
            if policy.is_limited
        }
        self._outcomes.clear()

    def jobs(self, client: SwitchClient) -> list[Coroutine[Any, Any, Any]]:
        """Measure and decide; where it is no dry run, keep flows and counts too."""
        writes = not self.session.dry_run
        jobs: list[Coroutine[Any, Any, Any]] = [listen_reports(client, self._meter), listen_t_res(client, self._meter)]
        if writes:
            jobs += [
                self._flows.listen_new(client),
                self._flows.listen_idle(client),
                self._flows.sweep_forever(client, self._options.sweep_period_s),
            ]
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
            await asyncio.sleep(self._options.evaluate_period_s)
            if not self.session.dry_run:
                self._store.remember(self._name, self._policies.values())
            async with self.session.writes:
                for key in sorted(self._deciders):
                    await self._evaluate(client, key)

    async def _tune_forever(self, client: SwitchClient) -> None:
        while True:
            await asyncio.sleep(self._options.shares.period_s)
            keys = [key for key in sorted(self._deciders) if self._tunes(key) and key in self._planned]
            if not keys or not 2 <= len(self._flows.table) <= self._options.shares.max_flows:
                continue
            counts = await self._flows.counts(client)
            async with self.session.writes:
                for key in keys:
                    if self._tunes(key):  # still: somebody may have set it by hand while the counters were read
                        await self._tune(client, key, counts)

    async def _tune(self, client: SwitchClient, key: tuple[int, int], counts: dict[FlowKey, FlowCount]) -> None:
        """Per-flow thresholds of one policy: in the switch they are weights beside the class's threshold."""
        decider, limit = self._deciders.get(key), self._limits.get(key[0])
        if decider is None or decider.in_force_packets is None or limit is None:
            return
        if key in self._waiting or not decider.may_write(_now_s()):
            return  # one write a second and port: the threshold's comes first, and the tuner counts on from its last reading
        tuner = self._tuners.setdefault(key, ShareTuner(self._options.shares))
        of_class = self._policies[key].weight
        mine = {
            flow: replace(counts[flow], weight=self._flows.own_weight(flow) or of_class)
            for flow in self._flows_of(key)
            if flow in counts
        }
        in_force, model = decider.in_force_packets, self._planned[key]
        tuned = self._flows.tuned(mine, in_force)
        line = self.measurement(key[0]).bw_bps
        wanted = tuner.observe(
            _now_s(), mine, model, limit.max_packets, tuned, line_bps=None if line is None else line.value
        )
        if wanted is None:
            return
        settings = self._store.policy(self._name, *key)
        low, high = settings.min_packets or 1, settings.max_packets or limit.max_packets
        wanted = {
            flow: round(min(max(packets, low * mine[flow].weight), high * mine[flow].weight))
            for flow, packets in wanted.items()
        }
        await self._flows.untune(client, mine.keys() - wanted.keys())
        weights = {flow: program.weight_for(packets, in_force) for flow, packets in wanted.items()}
        written = await self._flows.tune(client, weights)
        if written:
            self._tuned_s[key] = _now_s()
            self._policy_event(
                "tuned",
                key,
                why=why.explain_tuning(tuner.last, written, model, tuner.utilisation),
                written=written,
                planned_packets=round(self._planned[key], 2),
                utilisation=None if tuner.utilisation is None else round(tuner.utilisation, 4),
                common_factor=round(math.exp(tuner.log_common), 3),
                flows={
                    str(flow): {
                        "qthresh_packets": share.qthresh_packets,
                        "exact_packets": round(share.exact_packets, 2),
                        "error": round(share.error, 3),
                        "rate_bps": round(share.rate_bps),
                    }
                    for flow, share in tuner.last.items()
                },
            )

    def _flows_of(self, key: tuple[int, int]) -> list[FlowKey]:
        """The flows of a policy; adopted ones, whose place is not known, belong to it when it is the only one."""
        only = key if len(self._deciders) == 1 else None
        return [flow for flow, _ in self._flows.table.items() if self._flows.places.get(flow, only) == key]

    async def _end_tuning(self, client: SwitchClient, key: tuple[int, int]) -> None:
        """Somebody else decides from now on: every flow has its own or its class's weight again."""
        self._tuners.pop(key, None)
        await self._flows.untune(client, self._flows_of(key))

    def _tunes(self, key: tuple[int, int]) -> bool:
        settings = self._store.policy(self._name, *key)
        return settings.mode is Mode.AUTO and settings.self_tuning and self._policies[key].is_shared

    async def _evaluate(self, client: SwitchClient, key: tuple[int, int]) -> None:
        port, traffic_class = key
        policy, decider = self._policies[key], self._deciders[key]
        settings = self._store.policy(self._name, port, traffic_class)
        limit = self._limits.get(port)
        if settings.mode is not Mode.AUTO or limit is None:
            return
        now = _now_s()
        measured = measured_for(policy.lanes.own, self.measurement(port, now))
        decision = decider.evaluate(
            now,
            measured,
            weight=policy.weight,
            k=settings.k,
            capacity_packets=capacity_of_flow(policy.lanes.own, limit.max_packets, measured),
            min_packets=settings.min_packets,
            max_packets=settings.max_packets,
        )
        if decision.exact_packets is not None:
            self._planned[key] = decision.exact_packets
        if decision.outcome is Outcome.WRITE and self._has_just_tuned(key, now):
            self._waiting.add(key)
            return
        self._waiting.discard(key)
        if decision.outcome is Outcome.WRITE and decision.qthresh_packets is not None:
            new = replace(policy, qthresh_packets=decision.qthresh_packets)
            if policy.lanes.own and measured.t_res_s is not None:
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
            text = why.explain_decision(decision, measured, settings.k)
            self._policy_event(told, key, why=text, **decision.to_json(), measured=measured.to_json())
        self._outcomes[key] = decision.outcome

    async def _put_threshold(self, client: SwitchClient, new: Policy) -> bool:
        """Write it; False when the switch refuses, which is reported and tried again."""
        what = f"the threshold of port {new.port} class {new.traffic_class}"
        return await self.session.attempt(client, what, partial(SwitchClient.write, updates=[~new.entry]), keep=False)

    def _has_just_tuned(self, key: tuple[int, int], now_s: float) -> bool:
        """Whether the flows' weights were written less than a second ago: where the link has not just changed, a threshold waits."""
        interval_s = self._options.decide.min_write_interval_s
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

    # ---- what people ask for (through the control socket) --------------------------------------------------------

    async def change(self, request: dict[str, Any]) -> dict[str, Any]:
        """`threshold_set`, `threshold_auto` or `scheme_set`; returns the policy then in force."""
        client = self.session.connected()
        name = self._name
        async with self.session.writes:
            current = {name: await changes.read_ports(client, self.topology.run)}
            plan = changes.plan_policies(current, self._store, request, lambda _: self.session.endpoint)
            await changes.make(plan, {name: client}, self._store)
            ((_, new),) = plan.policies
            return await self.adopt(new, current[name], request)

    async def adopt(self, new: Policy, current: changes.Ports, request: dict[str, Any]) -> dict[str, Any]:
        """Go on from a policy that was written as `request` asks, and tell it; the caller holds `writes`. Returns it as plain data."""
        self._limits = dict(current.limits)
        self._policies[new.key] = new
        self._store.remember(self._name, self._policies.values())
        if not self._tunes(new.key):
            await self._end_tuning(self.session.connected(), new.key)
        if new.is_limited:
            decider = self._deciders.setdefault(new.key, ThresholdDecider(self._options.decide))
            decider.in_force_packets = new.qthresh_packets
        else:
            self._deciders.pop(new.key, None)
        policy = answer_json(new, current.state)
        self._policy_event("changed", new.key, why=why.explain_request(request, policy), request=request, policy=policy)
        return policy

    async def changed(self, client: SwitchClient) -> None:
        """Somebody may have changed limits, policies or settings: decide on from what there is now."""
        self._limits = await read_limits(client)
        self._policies = await read_policies(client)
        for key in [*self._deciders]:
            if key not in self._policies or not self._policies[key].is_limited:
                del self._deciders[key]
        for key, policy in self._policies.items():
            if policy.is_limited:
                decider = self._deciders.setdefault(key, ThresholdDecider(self._options.decide))
                decider.in_force_packets = policy.qthresh_packets
        for key in [key for key in self._tuners if key not in self._deciders or not self._tunes(key)]:
            await self._end_tuning(client, key)

    def use_options(self) -> None:
        """Flows that have an entry keep its idle time and weight."""
        self._flows.weight_of_new = self._options.flow_weight
        for decider in self._deciders.values():
            decider.options = self._options.decide
        for tuner in self._tuners.values():
            tuner.options = self._options.shares
        self._flows.use_idle_timeout(self._options.flow_idle_timeout_s)

    def status(self) -> dict[str, Any]:
        """Flows and policies."""
        return {
            "flows": len(self._flows.table),
            "flows_missed": self._flows.table.missed,
            "new_flows": self._flows.digests(),
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


def policy_json(policy: Policy) -> dict[str, Any]:
    """A policy as plain data."""
    data = {
        "port": policy.port,
        "class": policy.traffic_class,
        "scheme": policy.scheme.value,
        "qthresh_packets": policy.qthresh_packets,
        "weight": policy.weight,
    }
    return {**data, "lanes": policy.lanes.own} if policy.scheme is Scheme.LANES else data


def answer_json(policy: Policy, state: SwitchState | None) -> dict[str, Any]:
    """A policy as the answer to who asked for it: `why_no_lanes` is there where the switch of that state cannot give its flows lanes."""
    data = policy_json(policy)
    if policy.scheme is Scheme.LANES and not policy.lanes.own:
        data["why_no_lanes"] = why_no_lanes(state.port(policy.port) if state is not None else None)
    return data
