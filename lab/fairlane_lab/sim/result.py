# SPDX-License-Identifier: Apache-2.0
"""From what a run in virtual time left behind to its `RunResult`: rates over the measured window, means, series."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from fairlane_hosts.programs import COUNTERS
from fairlane_hosts.simulator import congestion_control
from fairlane_hosts.variants import find_variant

from fairlane_lab.atm import atm_line_bytes
from fairlane_lab.host_counters import counters_of
from fairlane_lab.measures import carried_bps, mean_between, on_line_bps, recovery_s
from fairlane_lab.programs.part import Records
from fairlane_lab.run_result import FlowResult, PortResult, RunError, RunResult, SeriesPoint, Transfer
from fairlane_lab.sim.columns import Columns, Values, mean, rates_bps
from fairlane_lab.sim.config import TCP, SimFlow, rate_steps
from fairlane_lab.sim.measure import PortKey, Snapshot
from fairlane_lab.sim.senders import tcp_object
from fairlane_lab.sim.sharing import sharing
from fairlane_lab.sim.steady import steady_s
from fairlane_lab.sim.world import SimWorld

INFINITE_SSTHRESH = 2**31 - 1
"""Linux's TCP_INFINITE_SSTHRESH: no threshold yet, and nothing to draw."""


@dataclass(frozen=True)
class Observed:
    """What a run left behind."""

    world: SimWorld
    begins: Sequence[Snapshot]
    "At the instants at which the measured window may begin (steady.py)."
    after: Snapshot
    events: list[dict[str, Any]]
    spike: list[Snapshot] = field(default_factory=list[Snapshot])
    "At the start and the end of a delay spike and `AFTER_SPIKE_S` later; empty without one."

    @property
    def before(self) -> Snapshot:
        """At the beginning of the measured window."""
        return self.begins[0]


def run_result(seen: Observed, sample_step: int) -> RunResult:
    """The result; every `sample_step`-th sample is in the series. `wall_s` is left to the caller. Raises RunError."""
    world = seen.world
    columns = Columns.of(world.simulation.series())
    seen, steady = _cut_warm_up(seen, columns)
    scenario = world.config.scenario
    switches = json.loads(world.simulation.switches())
    part, records = world.part.part, _records(seen)
    ports = [_port(seen, columns, key, part.port_values(records, key)) for key in world.config.managed]
    return RunResult(
        flows=[_flow(seen, columns, each) for each in world.config.flows],
        ports=ports,
        transfers=_transfers(world),
        series=list(_series(seen, records, columns, sample_step)) if scenario.series else [],
        events=seen.events,
        virtual_s=world.simulation.now_ns / 1e9,
        packets=sum(row["received"] for row in switches),
        about=_about(world),
        values=part.values(records),
        sharing=sharing(world.config, columns, seen.before.t_s, seen.after.t_s),
        vcs=part.vcs(records),
        cut_s=scenario.warmup_s,
        steady=steady,
    )


def _records(seen: Observed) -> Records:
    config, part = seen.world.config, seen.world.part
    return Records(
        config.scenario,
        config.topology,
        config.managed,
        seen.before.t_s,
        seen.after.t_s,
        seen.events,
        part.measured,
        seen.before.of_program,
        seen.after.of_program,
        part.carried,
        part.thresholds,
    )


def _cut_warm_up(seen: Observed, columns: Columns) -> tuple[Observed, bool | None]:
    """The run from its steady state on, which the world's scenario then says too; and whether it came to one (None: not asked).

    One that does not in the first half of what may be measured is measured from the end of its warm-up on.
    """
    config = seen.world.config
    if len(seen.begins) == 1:
        return seen, None
    at_s = steady_s(config, columns)
    later = [] if at_s is None else [begin for begin in seen.begins if begin.t_s >= at_s - 1e-9]
    if later:
        warmup_s = round(later[0].t_s, 9)
        seen.world.config = replace(config, scenario=replace(config.scenario, warmup_s=warmup_s))
    return replace(seen, begins=later or seen.begins), bool(later)


def _flow(seen: Observed, columns: Columns, each: SimFlow) -> FlowResult:
    flow = each.flow
    before, after = seen.before.flows[each.name], seen.after.flows[each.name]
    is_tcp = each.key.protocol == TCP
    is_real = seen.world.config.machine is not None
    wanted = find_variant(flow.variant).congestion_control if is_real else congestion_control(flow.variant)
    if is_tcp and after["cc"] != wanted:
        raise RunError(f"flow {each.name}: wanted {wanted}, the simulator used {after['cc']}")
    # a command's receiver may say what has come; where it does not, its sender's ACKs are all that is known
    counted = "received_bytes" if after["received_bytes"] or flow.app.kind != "command" else "acked_bytes"
    window = columns.window(seen.before.t_s, seen.after.t_s)
    srtt_ns = mean(columns.flow(each.name, "srtt_ns"), window, positive=True)
    return FlowResult(
        flow=each.name,
        group=flow.group,
        variant=flow.variant if is_tcp else "udp",
        weight=flow.weight,
        goodput_bps=8 * (after[counted] - before[counted]) / _seconds(seen),
        retransmits=after["retransmits"] - before["retransmits"],
        timeouts=after["timeouts"] - before["timeouts"],
        cwnd_packets=mean(columns.flow(each.name, "cwnd"), window, positive=True),
        srtt_ms=None if srtt_ns is None else srtt_ns / 1e6,
        greedy=flow.app.kind == "greedy",
        segments_sent=after["sent_segments"] - before["sent_segments"],
        window_reductions=after["window_reductions"] - before["window_reductions"] if is_tcp and not is_real else None,
        counters=_counters(seen, each),
        **_after_spike(seen, columns, each),
    )


def _counters(seen: Observed, each: SimFlow) -> dict[str, int]:
    """Of the measured window; of real hosts, which count from their beginning, all."""
    if (machine := seen.world.config.machine) is not None:
        return counters_of(each.flow, seen.world.config.scenario.flows, machine.counters())
    before, after = seen.before.flows[each.name], seen.after.flows[each.name]
    return {name: after[name] - before[name] for name in COUNTERS if name in after}


def _after_spike(seen: Observed, columns: Columns, each: SimFlow) -> dict[str, Any]:
    """What became of a greedy TCP flow after the run's delay spike; empty without one."""
    if not seen.spike or not each.is_greedy_tcp:
        return {}
    start, end, later = (snapshot.flows[each.name] for snapshot in seen.spike)
    received = columns.flow(each.name, "received_bytes")
    samples = [] if received is None else list(zip(columns.t_s.tolist(), received.tolist(), strict=True))
    scenario = seen.world.config.scenario
    rate_bps = min((rate_steps(seen.world.config, *key)[-1][1] for key in seen.world.config.managed), default=0.0)
    mss_bytes = tcp_object(each.flow, scenario.tcp)["mss_bytes"]
    new_rate_bps = carried_bps(rate_bps, mss_bytes)
    undone, bw_est_pps = (later[name] - start[name] for name in ("spurious_timeouts", "bw_est_pps"))
    bw_est_bps = on_line_bps(bw_est_pps, mss_bytes) if undone == 1 and bw_est_pps else None
    return {
        "after_spike_bytes": float(later["received_bytes"] - end["received_bytes"]),
        "after_spike_retransmits": later["retransmits"] - start["retransmits"],
        "recovery_s": recovery_s(samples, seen.spike[1].t_s, new_rate_bps),
        "bw_est_bps": bw_est_bps,
        "bw_est_ratio": None if bw_est_bps is None or not rate_bps else bw_est_bps / rate_bps,
    }


def _port(seen: Observed, columns: Columns, key: PortKey, of_program: dict[str, Any]) -> PortResult:
    start_s, end_s = seen.before.t_s, seen.after.t_s
    sent = seen.after.ports[key]["tx_bytes"] - seen.before.ports[key]["tx_bytes"]
    throughput_bps = 8 * sent / _seconds(seen)
    rate_bps = mean_between(rate_steps(seen.world.config, *key), start_s, end_s)
    return PortResult(
        switch=key[0],
        port=key[1],
        rate_bps=round(rate_bps),
        throughput_bps=throughput_bps,
        utilisation=_line_bps(seen, key) / rate_bps if rate_bps else 0.0,
        drops=seen.after.drops[key] - seen.before.drops[key],
        queue_packets=mean(columns.port(*key, "waiting_packets"), columns.window(start_s, end_s)),
        after_spike_drops=seen.spike[2].drops[key] - seen.spike[0].drops[key] if seen.spike else None,
        values=of_program,
    )


def _line_bps(seen: Observed, key: PortKey) -> float:
    """What the frames that left took on the line."""
    before, after = seen.before.ports[key], seen.after.ports[key]
    packets, sent = after["tx_packets"] - before["tx_packets"], after["tx_bytes"] - before["tx_bytes"]
    if seen.world.config.topology.ports[key[0]][key[1]].link_layer == "atm":
        return 8 * atm_line_bytes(packets, sent) / _seconds(seen)
    return 8 * sent / _seconds(seen)


def _transfers(world: SimWorld) -> list[Transfer]:
    finished = json.loads(world.simulation.transfers())
    cut: list[dict[str, Any]] = json.loads(world.simulation.unfinished_transfers())
    return [
        *(_transfer(world, row, complete=True) for row in finished),
        *(_transfer(world, row, complete=False) for row in cut),
    ]


def _transfer(world: SimWorld, row: dict[str, Any], *, complete: bool) -> Transfer:
    flow = next(each.flow for each in world.config.flows if each.name == row["flow"])
    is_file = flow.app.kind == "bytes" and "first_sent_ns" in row
    return Transfer(
        flow=row["flow"],
        group=flow.group,
        start_s=row["start_ns"] / 1e9,
        bytes=row["bytes"],
        completion_s=(row["end_ns"] - row["start_ns"]) / 1e9,
        retransmits=row["retransmits"],
        ran_s=(row["end_ns"] - row["first_sent_ns"]) / 1e9 if is_file else None,
        packets=row["segments"] if is_file else None,
        complete=complete,
    )


def _series(seen: Observed, records: Records, columns: Columns, step: int) -> Iterator[SeriesPoint]:
    world = seen.world
    t_s = columns.t_s[::step]
    part, slots = world.part.part, world.part.flow_slots(seen.events)
    for each in world.config.flows:
        for metric, what, factor in (("cwnd_packets", "cwnd", 1.0), ("srtt_ms", "srtt_ns", 1e-6)):
            values = columns.flow(each.name, what)
            if values is not None:
                yield from _points(t_s, each.name, metric, values[::step] * factor, values[::step] > 0)
        ssthresh = columns.flow(each.name, "ssthresh")
        if ssthresh is not None:
            known = (ssthresh > 0) & (ssthresh < INFINITE_SSTHRESH)
            yield from _points(t_s, each.name, "ssthresh_packets", ssthresh[::step], known[::step])
        received = columns.flow(each.name, "received_bytes")
        if received is not None:
            yield from _points(t_s[1:], each.name, "goodput_bps", rates_bps(t_s, received[::step]))
        for switch, slot in slots.get(each.name, ()):
            waiting = columns.register(switch, part.flow_register, slot)
            if waiting is not None:
                yield from _points(t_s, each.name, "queue_packets", waiting[::step])
                break  # of the first managed switch that it crosses
    for key in world.config.managed:
        yield from _port_series(seen, records, columns, key, step)
    yield from part.series(records)


def _port_series(seen: Observed, records: Records, columns: Columns, key: PortKey, step: int) -> Iterator[SeriesPoint]:
    """A port is the flow `""`, or its own name where several are managed."""
    name = "" if len(seen.world.config.managed) == 1 else f"{key[0]}-p{key[1]}"
    t_s = columns.t_s[::step]
    waiting, sent = columns.port(*key, "waiting_packets"), columns.port(*key, "tx_bytes")
    if waiting is not None:
        yield from _points(t_s, name, "queue_packets", waiting[::step])
    if sent is not None:
        yield from _points(t_s[1:], name, "throughput_bps", rates_bps(t_s, sent[::step]))
    yield from seen.world.part.part.port_series(records, key, name)


def _points(t_s: Values, flow: str, metric: str, values: Values, chosen: Any = None) -> Iterator[SeriesPoint]:
    picked = np.ones(len(t_s), dtype=bool) if chosen is None else chosen
    for t, value in zip(t_s[picked].tolist(), values[picked].tolist(), strict=True):
        yield SeriesPoint(t, flow, metric, value)


def _about(world: SimWorld) -> dict[str, Any]:
    config = world.config
    about: dict[str, Any] = {
        "program": config.program.name,
        "seed": config.scenario.seed,
        "variants": {each.name: each.flow.variant if each.key.protocol == TCP else "udp" for each in config.flows},
        "addresses": {each.name: str(each.key) for each in config.flows},
    }
    if config.machine is None:
        flows = [each.flow for each in config.flows if each.key.protocol == TCP]
        return about | {"runtime": "sim", "tcp": {flow.name: tcp_object(flow, config.scenario.tcp) for flow in flows}}
    document = config.document()
    settings = {part: {each["name"]: each["linux"] for each in document[part]} for part in ("hosts", "flows")}
    return about | {"runtime": "kernel", "linux": config.machine.build() | settings}


def _seconds(seen: Observed) -> float:
    return seen.after.t_s - seen.before.t_s
