# SPDX-License-Identifier: Apache-2.0
"""From what a run in virtual time left behind to its `RunResult`: counters at the ends of the measured window, and samples in between."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from fairlane_controller.program.port_program import AqmProgram
from fairlane_hosts.programs import COUNTERS
from fairlane_hosts.simulator import congestion_control
from fairlane_hosts.variants import find_variant
from fairlane_topology.ports import HOST_PORTS
from fairlane_topology.topology import PortKey

from fairlane_lab.measures import NOTHING, Samples
from fairlane_lab.recording import (
    FlowRecord,
    PortRecord,
    Recording,
    counters_of,
    is_trace,
    make_result,
    make_transfer,
    program_transfer,
)
from fairlane_lab.run_result import RunError, RunResult, Transfer
from fairlane_lab.sim.config import SimFlow, rate_steps, tcp_object
from fairlane_lab.sim.sharing import sharing, steady_s
from fairlane_lab.sim.world import SimWorld, Snapshot

INFINITE_SSTHRESH = 2**31 - 1
"""Linux's TCP_INFINITE_SSTHRESH: no threshold yet, and nothing to draw."""
TIME_WAIT_S = 60
"""So long a source port stays in use in the simulator; on Linux a connection's reset frees it."""
_TOTALS = {"sent_segments": "segments_sent"}
"""Counters of the simulator that `FlowResult` names otherwise."""


class Columns:
    """The simulator's samples (`native.Simulation.series()`: little-endian u64), by the names that netsim gives them."""

    def __init__(self, series: Mapping[str, bytes]) -> None:
        self._series = series
        self.t_s = _values(series.get("t_ns", b"")) / 1e9

    def find(self, *name: object) -> Samples:
        """`flow NAME WHAT`, `port SWITCH PORT WHAT` or `register SWITCH REGISTER INDEX`; nothing where it was not sampled."""
        column = self._series.get("/".join(map(str, name)))
        return NOTHING if column is None else Samples(self.t_s, _values(column))

    def positive(self, *name: object) -> Samples:
        """As `find`; 0 is nothing known."""
        found = self.find(*name)
        return found.where(found.values > 0)


def run_result(
    world: SimWorld, begins: Sequence[Snapshot], spike: Sequence[Snapshot], after: Snapshot, sample_step: int
) -> RunResult:
    """The result of a run that is over. Raises RunError.

    Args:
        world: What ran.
        begins: At the instants at which the measured window may begin (`sharing.marks_s`).
        spike: At the start and the end of a delay spike and `AFTER_SPIKE_S` later; empty without one.
        after: At the end.
        sample_step: Every so many-th sample is in the series.

    """
    _check_ports(world, after)
    part, events = world.part, world.log.events
    columns = Columns(world.simulation.series())
    slots = part.flow_slots(world.config.flows, world.managed_switches(), events)
    snapshots = [*begins, *spike, after]
    flows = [_flow(world, columns, each, snapshots, slots.get(each.name, ())) for each in world.config.flows]
    begin, steady = _begin(begins, flows, world.config.scenario.duration_s)
    scenario = world.config.scenario
    if steady:
        scenario = replace(scenario, warmup_s=round(begin.t_s, 9))
        world.config = replace(world.config, scenario=scenario)
    recording = Recording(
        scenario,
        world.config.topology,
        begin.t_s,
        after.t_s,
        [replace(each, given={**each.given, **_counters(world, each, begin, after)}) for each in flows],
        [_port(world, columns, key, snapshots) for key in world.config.managed],
        (spike[0].t_s, spike[1].t_s, spike[2].t_s) if spike else None,
        sample_step,
        events=events,
        measured=world.measured,
        before=begin.of_program,
        after=after.of_program,
        thresholds=world.thresholds,
    )
    result = make_result(
        recording,
        part,
        transfers=[*_transfers(world), *_of_programs(world, after)],
        events=events,
        virtual_s=world.simulation.now_ns / 1e9,
        packets=sum(row["received"] for row in json.loads(world.simulation.switches())),
        about=_about(world),
        cut_s=scenario.warmup_s,
        steady=steady,
    )
    result.values |= sharing(recording) | _qdisc_values(world.config.managed, begin, after)
    return result


def _check_ports(world: SimWorld, after: Snapshot) -> None:
    """Raises RunError where a source found no free port: it has asked for less than its application says."""
    machine = world.config.machine
    counts = {name: row["not_opened"] for name, row in after.flows.items()} if machine is None else machine.not_opened()
    for each in world.config.flows:
        if count := counts[each.name]:
            whose, until = f"{each.flow.sender} to {each.flow.receiver}", f", each until {TIME_WAIT_S} s after its end"
            if machine is not None:
                whose, until = each.flow.sender, " at once"
            raise RunError(
                f"flow {each.name}: {count} connections were not opened, as no source port was free; allowed: "
                f"{len(HOST_PORTS)} connections from {whose}, of all flows together{until}"
            )


def _qdisc_values(managed: Sequence[PortKey], begin: Snapshot, after: Snapshot) -> dict[str, float]:
    """What queues of the kernel have counted at the managed ports, by the names that queue management in P4 has."""
    rows = [(begin.ports[key], after.ports[key]) for key in managed if "qdisc" in after.ports[key]]

    def grown(name: str) -> int:
        return sum(last["qdisc"][name] - first["qdisc"][name] for first, last in rows)

    if not (sent := grown("sent_packets")):
        return {}
    return {AqmProgram.marks.name: grown("marked_packets"), AqmProgram.delay.name: grown("waited_ns") / 1e9 / sent}


def _values(column: bytes) -> Any:
    return np.frombuffer(column, dtype="<u8").astype(np.float64)


def _begin(begins: Sequence[Snapshot], flows: Sequence[FlowRecord], end_s: float) -> tuple[Snapshot, bool | None]:
    """Where the measured window begins, and whether the run is in a steady state by then (None: not asked).

    One that does not come to one in the first half of what may be measured is measured from the end of its warm-up on.
    """
    if len(begins) == 1:
        return begins[0], None
    at_s = steady_s(flows, end_s)
    later = [] if at_s is None else [begin for begin in begins if begin.t_s >= at_s - 1e-9]
    return (later or begins)[0], bool(later)


def _totals(rows: Sequence[tuple[float, Mapping[str, Any]]], name: str) -> Samples:
    return Samples.of([(t_s, row[name]) for t_s, row in rows])


def _flow(
    world: SimWorld,
    columns: Columns,
    each: SimFlow,
    snapshots: Sequence[Snapshot],
    slots: Sequence[tuple[str, int]],
) -> FlowRecord:
    """A flow's record; `slots` are those of its queue's register, (switch, slot), the last one first."""
    flow, scenario, is_real = each.flow, world.config.scenario, world.config.machine is not None
    rows = [(seen.t_s, seen.flows[each.name]) for seen in snapshots]
    last, is_tcp = rows[-1][1], each.is_tcp
    wanted = find_variant(flow.variant).congestion_control if is_real else congestion_control(flow.variant)
    if is_tcp and last["cc"] != wanted:
        raise RunError(f"flow {each.name}: wanted {wanted}, the simulator used {last['cc']}")
    names = ["retransmits", "timeouts", "sent_segments", "spurious_timeouts", "bw_est_pps"]
    names += ["window_reductions"] if is_tcp and not is_real else []
    ssthresh = columns.positive("flow", each.name, "ssthresh")
    register = world.part.flow_register
    queues = (columns.find("register", switch, register, slot) for switch, slot in slots)
    return FlowRecord(
        each.name,
        flow,
        flow.variant if is_tcp else "udp",
        # a command's receiver may report what has come; where it does not, its sender's ACKs are all that is known
        _totals(rows, "received_bytes" if last["received_bytes"] or flow.app.kind != "command" else "acked_bytes"),
        columns.find("flow", each.name, "received_bytes") if is_tcp else _datagrams(world, each.name, rows),
        tcp_object(flow, scenario.tcp)["mss_bytes"] if is_tcp and scenario.spike_s else 0,
        {_TOTALS.get(name, name): _totals(rows, name) for name in names},
        columns.positive("flow", each.name, "cwnd"),
        ssthresh.where(ssthresh.values < INFINITE_SSTHRESH),
        next((queue for queue in queues if queue.t_s.size), NOTHING),
        columns.positive("flow", each.name, "srtt_ns"),
    )


def _datagrams(world: SimWorld, name: str, rows: Sequence[tuple[float, Mapping[str, Any]]]) -> Samples:
    end_s, last = rows[-1]
    return Samples.of([*world.datagrams.get(name, ()), (end_s, last["received_bytes"])])


def _counters(world: SimWorld, each: FlowRecord, begin: Snapshot, end: Snapshot) -> dict[str, Any]:
    """`FlowResult.counters` of the measured window; of real hosts, which count from their beginning, all."""
    if (machine := world.config.machine) is not None:
        return {"counters": counters_of(each.flow, world.config.scenario.flows, machine.counters())}
    before, after = begin.flows[each.name], end.flows[each.name]
    return {"counters": {name: after[name] - before[name] for name in COUNTERS if name in after}}


def _port(world: SimWorld, columns: Columns, key: PortKey, snapshots: Sequence[Snapshot]) -> PortRecord:
    rows = [(seen.t_s, seen.ports[key]) for seen in snapshots]
    switch, number = key
    spec = world.config.topology.ports[switch][number]
    rates = rate_steps(world.config, *key)
    if varying := world.simulation.port_rates(switch, number, world.simulation.now_ns):
        begin_s = varying[0][0] / 1e9
        rates = [step for step in rates if step[0] < begin_s] + [(t_ns / 1e9, rate_bps) for t_ns, rate_bps in varying]
    return PortRecord(
        key,
        rates,
        _totals(rows, "tx_bytes"),
        _totals(rows, "tx_packets"),
        _totals(rows, "drops"),
        columns.find("port", *key, "waiting_packets"),
        columns.find("port", *key, "tx_bytes"),
        spec.link_layer == "atm",
        is_trace(spec),
    )


def _transfers(world: SimWorld) -> list[Transfer]:
    flows, simulation = {each.name: each.flow for each in world.config.flows}, world.simulation
    kinds = (simulation.transfers(), True), (simulation.unfinished_transfers(), False)
    return [
        make_transfer(row["flow"], flows[row["flow"]], row, complete=complete)
        for rows, complete in kinds
        for row in json.loads(rows)
    ]


def _of_programs(world: SimWorld, after: Snapshot) -> list[Transfer]:
    """A transfer for each `command` application whose programs have ended well: from its start to the last end."""
    if world.config.machine is None:
        return []
    flows = {each.name: each.flow for each in world.config.flows}
    ended = {name: rest for name, *rest in world.config.machine.programs_ended()}
    return [
        program_transfer(name, flows[name], start_s, end_s, after.flows[name]["acked_bytes"])
        for name, (start_s, end_s, code) in ended.items()
        if not code
    ]


def _about(world: SimWorld) -> dict[str, Any]:
    config = world.config
    about: dict[str, Any] = {
        "program": config.program.name,
        "seed": config.scenario.seed,
        "variants": {each.name: each.flow.variant if each.is_tcp else "udp" for each in config.flows},
        "addresses": {each.name: str(each.key) for each in config.flows},
    }
    if config.machine is None:
        flows = [each.flow for each in config.flows if each.is_tcp]
        return about | {"runtime": "sim", "tcp": {flow.name: tcp_object(flow, config.scenario.tcp) for flow in flows}}
    document = config.document()
    settings = {part: {each["name"]: each["linux"] for each in document[part]} for part in ("hosts", "flows")}
    return about | {"runtime": "kernel", "linux": config.machine.build() | settings}
