# SPDX-License-Identifier: Apache-2.0
"""What the Mininet runner makes of a scenario before anything runs: groups, batches, processes, the hosts' settings."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fairlane_lab.paths import REPOSITORY
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import App, Control, Flow, Scenario, TcpOptions
from fairlane_lab.testbed.grouping import groups_of, next_batch
from fairlane_lab.testbed.plan import Plan, make_plan
from fairlane_lab.wishes import wishes

ADDRESSES = {"h1": "10.0.1.1", "h2": "10.0.2.2", "h3": "10.0.3.3"}
RENO = Flow("reno", "reno", "h1", "h3")
VEGAS = Flow("vegas", "vegas", "h2", "h3", variant="vegas")


def document(rate_bps: int = 2_000_000, loss: float = 0.0) -> dict[str, Any]:
    found = json.loads((REPOSITORY / "mininet" / "topologies" / "dumbbell.json").read_text())
    found["links"][2].update(bandwidth=rate_bps, loss=loss)
    return found


def scenario(*flows: Flow, point: str = "x", topology: dict[str, Any] | None = None, **more: Any) -> Scenario:
    return Scenario("test", point, {}, topology or document(), flows or (RENO, VEGAS), 10.0, 3.0, **more)


def plan(*flows: Flow, **more: Any) -> Plan:
    return make_plan(scenario(*flows, **more), ADDRESSES, Path("/x"))


def refuse(one: Scenario, error: RunError) -> None:
    raise AssertionError(f"{one.point}: {error}")


# ---- groups and batches ------------------------------------------------------------------------------------------


def test_scenarios_that_differ_in_scheme_and_start_share_a_network() -> None:
    schemes = [Control("drop_tail"), Control("qthresh", 5), Control("qthresh", "auto")]
    later = replace(VEGAS, start_s=0.5)
    runs = [scenario(RENO, flow, control=control) for control in schemes for flow in (VEGAS, later)]
    (group,) = groups_of(runs, refuse)
    assert [job.order for job in group.jobs] == list(range(6))
    assert group.rate_bps == 2_000_000
    assert group.frame_bytes == 1014


def test_other_links_and_other_chance_get_networks_of_their_own() -> None:
    runs = [scenario(topology=document(rate)) for rate in (512_000, 2_000_000, 512_000)]
    assert [len(group.jobs) for group in groups_of(runs, refuse)] == [2, 1]
    seeds = [scenario(seed=seed) for seed in (1, 2)]
    assert len(groups_of(seeds, refuse)) == 1
    lossy = [scenario(seed=seed, topology=document(loss=0.01)) for seed in (1, 2)]
    assert [group.seed for group in groups_of(lossy, refuse)] == [1, 2]
    throws_dice = [scenario(seed=seed, program="gfr") for seed in (1, 2)]
    assert [group.seed for group in groups_of(throws_dice, refuse)] == [1, 2]


def test_slow_links_run_side_by_side_and_a_fast_one_alone() -> None:
    rates = [5_000_000, 40_000_000, 10_000_000, 4_000_000, 512_000, 1_000_000]
    groups = groups_of([scenario(topology=document(rate)) for rate in rates], refuse)
    batches: list[list[int]] = []
    while groups:
        batches.append([group.rate_bps for group in next_batch(groups, 3, 20_000_000)])
    assert batches == [[5_000_000, 10_000_000, 4_000_000], [40_000_000], [512_000, 1_000_000]]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (scenario(replace(RENO, variant="renoo")), "x: no TCP variant is called 'renoo'; there are "),
        (scenario(RENO, replace(VEGAS, sender="h1", variant="cubic-linux")), "reno and vegas want different settings .sysctls. of h1"),
        (scenario(topology={"hosts": {}, "switches": {}, "links": 1}), "x: topology: /links: "),
    ],
)  # fmt: skip
def test_what_cannot_run_is_said_and_the_others_go_on(bad: Scenario, message: str) -> None:
    told: list[RunError] = []
    groups = groups_of([bad, scenario()], lambda _, error: told.append(error))
    assert [job.order for group in groups for job in group.jobs] == [1]
    with pytest.raises(RunError, match=message):
        raise told[0]


# ---- processes ---------------------------------------------------------------------------------------------------


def test_flows_share_a_sink_unless_they_want_another() -> None:
    heavy = replace(VEGAS, weight=2.0)
    small = replace(RENO, name="small", tcp={"receive_window_bytes": 8192})
    datagrams = Flow("udp", "udp", "h1", "h3", app=App("cbr_udp", rate_bps=64_000, payload_bytes=160))
    made = plan(RENO, replace(RENO, name="second"), heavy, small, datagrams)
    assert [sender.sink.port for sender in made.senders] == [5001, 5001, 5002, 5003, 5004]
    assert made.weights() == [{"dst": "10.0.3.3", "dst_port": 5002, "weight": 2.0}]
    assert "--window 8192" in " ".join(made.sinks[2].command(100))
    assert "--udp" in made.sinks[3].command(100)
    assert made.processes == 9


def test_programs_of_the_user_s_name_each_other_s_ports() -> None:
    far = Flow(
        "far",
        "far",
        "h2",
        "h3",
        app=App("command", command=("true", "{near.port}", "{receiver}:{port}", "{x}", "{bytes}")),
    )
    near = Flow(
        "near", "near", "h1", "h2", app=App("command", command=("true", "{reno.sender}:{reno.port}", "{seconds}"))
    )
    made = plan(RENO, far, near)
    assert made.words("far") == {"sender": [shutil.which("true"), "6002", "10.0.3.3:6001", "{x}", "0"], "receiver": []}
    assert made.words("near")["sender"][1:] == ["10.0.1.1:5001", "10"]
    assert made.processes == 6


@pytest.mark.parametrize(
    ("app", "more", "said"),
    [
        (App("command", command=("true", "{gone.port}")), {}, "flow own: {gone.port}: allowed is FLOW.sender, FLOW.receiver or FLOW.port of own"),
        (App("command", command=("no-such-program",)), {}, "flow own: there is no program 'no-such-program'"),
        (App("command", command=("true",)), {"window_packets": 4}, "flow own: window_packets and tcp.ipv6 of a command need --runtime kernel"),
    ],
)  # fmt: skip
def test_a_program_that_cannot_run_is_told_before_anything_runs(app: App, more: dict[str, Any], said: str) -> None:
    told: list[RunError] = []
    assert (
        groups_of([scenario(Flow("own", "own", "h1", "h3", app=app, **more))], lambda _, error: told.append(error))
        == []
    )
    assert str(told[0]) == f"x: {said}"


def test_a_flow_s_command_says_when_and_how() -> None:
    flow = replace(VEGAS, start_s=0.5, stop_s=8.0, connections=3)
    (sender,) = plan(flow).senders
    words = " ".join(sender.command(scenario(flow), 1_000_000_000))
    assert words.startswith("send --to 10.0.3.3:5001 --flows 3 --seconds 7.500000 --start-at 1500000000 ")
    assert "--cc fl_vegas --mss 960" in words
    assert sender.results() == ["vegas-1", "vegas-2", "vegas-3"]


def test_an_application_s_chance_is_the_simulator_s() -> None:
    flow = replace(RENO, app=App("web", arrivals_per_s=5, mean_bytes=4000, distribution="pareto"), connections=2)
    one = scenario(flow, seed=77)
    (sender,) = make_plan(one, ADDRESSES, Path("/x")).senders
    words = " ".join(sender.command(one, 0))
    assert words.startswith("web ")
    assert "--arrivals-per-s 5.0 --mean-bytes 4000" in words
    assert "--distribution pareto --shape 1.2 --seed 77 --names reno-1,reno-2" in words


# ---- hosts -------------------------------------------------------------------------------------------------------


def test_routes_carry_what_linux_takes_from_them() -> None:
    linux = replace(VEGAS, variant="reno-linux", window_packets=7)
    wanted = wishes(scenario(RENO, linux, tcp=TcpOptions(delayed_ack=False, rto_min_s=0.4)))
    words = {pair: " ".join(wish.words()) for pair, wish in wanted.routes.items()}
    assert words == {
        ("h1", "h3"): "rto_min 400ms",  # the BPF senders set their first window themselves
        ("h3", "h1"): "quickack 1",
        ("h2", "h3"): "rto_min 400ms initcwnd 2 cwnd lock 7",
        ("h3", "h2"): "quickack 1",
    }
    assert [wish.words() for wish in wishes(scenario()).routes.values()] == [[]] * 4


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"tick_s": 0.01}, r"flow reno: tcp.tick_s 0.01: the tick is compiled into the kernel .*allowed: 0.0"),
        ({"delayed_ack_s": 0.2}, r"flow reno: tcp.delayed_ack_s 0.2: .*allowed: 0 or 0.04"),
        ({"backoff": "reset"}, r"flow reno: tcp.backoff reset: .*allowed: kept"),
    ],
)
def test_linux_hosts_keep_their_kernel_s_clock(option: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        wishes(scenario(replace(RENO, tcp=option)))


def test_no_delay_of_acks_is_a_route_s_quickack() -> None:
    wanted = wishes(scenario(tcp=TcpOptions(delayed_ack_s=0)))
    assert " ".join(wanted.routes["h3", "h1"].words()) == "quickack 1"


def test_a_receiver_offers_what_its_senders_ask_for() -> None:
    modern = replace(VEGAS, variant="cubic-linux")
    wanted = wishes(scenario(RENO, modern)).hosts
    assert wanted["h3"].variant.name == "reno"
    assert wanted["h3"].sysctls == {"tcp_timestamps": 1, "tcp_sack": 1}
    assert wanted["h1"].sysctls == {}
    sack = wishes(scenario(replace(RENO, tcp={"sack": True}))).hosts
    assert (sack["h1"].sysctls, sack["h3"].sysctls) == ({"tcp_sack": 1}, {"tcp_sack": 1})
    ecn = wishes(scenario(replace(RENO, tcp={"ecn": True}))).hosts
    assert (ecn["h1"].sysctls, ecn["h3"].sysctls) == ({"tcp_ecn": 1}, {"tcp_ecn": 1})
    mrto = wishes(scenario(replace(RENO, variant="mrto"))).hosts
    least_us = [mrto[host].variant.optional_sysctls["tcp_rto_min_us"] for host in ("h1", "h3")]
    assert least_us == [1, 200_000]  # Linux's delayed ACKs end a tick before the receiver's own least RTO


def test_two_flows_of_one_pair_cannot_have_two_windows() -> None:
    wide = replace(RENO, name="wide", window_packets=9)
    with pytest.raises(RunError, match=r"flows reno and wide want different settings .*window_packets.* of h1 to h3"):
        wishes(scenario(RENO, wide))
