# SPDX-License-Identifier: Apache-2.0
"""GFR in Mininet, without a network: what reaches the control loop, and VCs' results out of made-up files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fairlane_controller.programs.gfr.config import GfrState
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.programs import find_part
from fairlane_lab.run_result import RunResult
from fairlane_lab.scenario import App, Scenario
from fairlane_lab.testbed.bed import Bed, Running
from fairlane_lab.testbed.captures import Captures
from fairlane_lab.testbed.collect import collect
from fairlane_lab.testbed.grouping import groups_of
from fairlane_lab.testbed.plan import make_plan
from fairlane_lab.testbed.port_watch import Watched
from fairlane_topology import topology as fl_topology
from sim_scenarios import exact

ZERO_S = 1000.0
KEY = ("s1", 6)


def scenario() -> Scenario:
    """VC 1 and 2 of Table 2 with one TCP, VC 5 as UDP; 12 s, of which 2 s do not count."""
    (one,) = expand(exact("gfr-table2"), Selection(values={"control": ["proposed+ WRR"]}, repeats=1))
    vcs = (one.vcs[0], one.vcs[1], one.vcs[4])
    flows = {flow.vc: replace(flow, name=flow.vc, start_s=0.0) for flow in one.flows}
    udp = replace(flows["vc5"], app=App("cbr_udp", rate_bps=4_000_000, payload_bytes=972))
    fields: dict[str, Any] = {
        "duration_s": 12.0,
        "warmup_s": 2.0,
        "vcs": vcs,
        "flows": (flows["vc1"], flows["vc2"], udp),
    }
    return replace(one, **fields)


def test_scenarios_share_a_network_and_its_program() -> None:
    one, errors = scenario(), list[Exception]()
    other = replace(one, control=replace(one.control, scheme="double_epd"))
    (group,) = groups_of([one, other], lambda _, error: errors.append(error))
    assert not errors
    assert (group.program, len(group.jobs), group.rate_bps) == ("gfr", 2, 51_840_000)


def test_the_control_loop_gets_vcs_and_scheme() -> None:
    one = scenario()
    (configuration,) = find_part("gfr").configurations(one, fl_topology.check(dict(one.topology)))
    config = GfrState.model_validate(json.loads(json.dumps(configuration)))
    assert [(port.place, port.scheme) for port in config.ports] == [(KEY, "proposed")]
    assert [vc.name for vc in config.vcs] == ["vc1", "vc2", "vc5"]


def write(folder: Path, name: str, records: list[dict[str, Any]]) -> None:
    (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))


def ns(t_s: float) -> int:
    return round((ZERO_S + t_s) * 1e9)


def sending_s(t: float) -> float:
    """How long of the time until `t` is outside 6 to 8 s."""
    return min(t, 6.0) + max(0.0, t - 8.0)


def collected(folder: Path, rates: dict[str, float]) -> RunResult:
    """A run in which each VC's flow carried so many bit/s, VC 1 nothing from 6 to 8 s."""
    one = scenario()
    topology = fl_topology.check(dict(one.topology))
    plan = make_plan(one, {name: host.ip.split("/")[0] for name, host in topology.hosts.items()}, folder)
    times = [step / 10 for step in range(123)]
    for sender in plan.senders:
        local = f"10.0.0.{sender.name[2:]}:4000"
        row = {"flow": 0, "local": local, "cc": "fl_newreno", "error": ""}
        sample = {"flow": 0, "cwnd": 4, "ssthresh": 8, "srtt_us": 1000, "retrans": 0}
        summary = {"late_ns": 0, "flows": [] if sender.is_udp else [row], "peers": [{"flow": 0, "local": local}]}
        samples = [] if sender.is_udp else [{"t_ns": ns(t), **sample} for t in times]
        write(folder, sender.out.name, [*samples, {"summary": summary}])
        paused = sender.name == "vc1"
        got = [
            {"t_ns": ns(t), "peer": local, "bytes": rates[sender.name] * (sending_s(t) if paused else t) / 8}
            for t in times
        ]
        write(folder, sender.sink.out.name, got)
    watched = Watched()
    watched.tx_bytes[KEY] = [(ZERO_S + t, 5822.1 * 1014 * t) for t in (0.0, 12.2)]
    watched.tx_packets[KEY] = [(ZERO_S + t, 5822.1 * t) for t in (0.0, 12.2)]
    watched.drops[KEY] = [(ZERO_S + t, 10.0 * t) for t in (0.0, 12.2)]
    ports = {KEY: fl_topology.PortSpec(rate_bps=51_840_000, queue_packets=4000, link_layer="atm")}
    bed = SimpleNamespace(state=folder, ports=ports, network=SimpleNamespace(topology=topology), part=find_part("gfr"))
    running = Running(plan, round(ZERO_S * 1e9), {}, folder, {}, {}, Captures(folder, {}))
    return collect(cast("Bed", bed), running, watched, [])


def test_vcs_get_what_their_flows_carried(tmp_path: Path) -> None:
    result = collected(tmp_path, {"vc1": 5e6, "vc2": 7e6, "vc5": 3e6})
    first, second, third = result.vcs
    assert first.goodput_bps == pytest.approx(5e6 * 8 / 10)
    assert second.goodput_bps == pytest.approx(7e6)
    assert third.goodput_bps == pytest.approx(3e6)
    guaranteed = 2e6 * 960 / (53 * 21)
    assert first.mcr_met == pytest.approx(4e6 / guaranteed)
    assert first.mcr_met_5s == pytest.approx(3e6 / guaranteed)
    assert first.w_bps == pytest.approx(2e6 + (51.84e6 - 16e6) / 3)
    (port,) = result.ports
    assert port.utilisation == pytest.approx(1.0, abs=0.001)
    assert port.throughput_bps == pytest.approx(5822.1 * 1014 * 8)
