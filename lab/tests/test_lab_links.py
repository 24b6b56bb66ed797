# SPDX-License-Identifier: Apache-2.0
"""Links in experiments: presets, bursts and traces in a point's topology, changes over time; the same for sim and Mininet."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from fairlane_lab.definition.expansion import expand
from fairlane_lab.definition.loading import load_text
from fairlane_lab.problems import ExperimentError
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners.sim import run
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.config import rate_steps, resolve
from fairlane_lab.sim.sharing import marks_s
from fairlane_lab.testbed.grouping import groups_of
from fairlane_topology.links import LinkChange
from sim_scenarios import DUMBBELL, RENO, VEGAS, scenario

FILE = """
name = "small"
title = "Small"
paper = "Chae and Choi 2004"
reproduces = "Fig. 0"
what = "Something small."
runtimes = ["sim"]
[topology]
base = "single"
[[flows]]
name = "reno"
sender = "h1"
receiver = "h2"
[run]
draws.fixed = "numbers of the file are looked at"
duration_s = 40
warmup_s = 5
"""
PERIOD_NS = 50_000_000


def first(more: str = "", links: str = "") -> Scenario:
    text = FILE.replace('base = "single"\n', f'base = "single"\n{links}\n') + more
    return expand(load_text(text, "small.toml", "small"))[0]


def link_of(run: Scenario, name: str = "s1-s2") -> dict[str, Any]:
    """The link of the simulator's configuration."""
    return next(link for link in resolve(run, PERIOD_NS).document()["links"] if link["name"] == name)


def changes_of(run: Scenario) -> list[dict[str, Any]]:
    return resolve(run, PERIOD_NS).document()["changes"]


def test_a_preset_replaces_what_the_file_says_and_what_stands_beside_it_wins() -> None:
    run = first(links='links."s1-s2" = { preset = "wifi", ge_loss = 0.9, delay_ms = 4 }')
    way = link_of(run)["a_to_b"]
    assert way == {
        "delay_ns": 4_000_000,
        "jitter_ns": 2_000_000,
        "rate_bps": 0,
        "loss": 0.0,
        "ber": 0.0,
        "queue_packets": 1000,
        "ge_enter": 0.004,
        "ge_leave": 0.2,
        "ge_loss": 0.9,
    }
    ports = resolve(run, PERIOD_NS).topology.ports
    assert ports["s1"][2].rate_bps == ports["s2"][1].rate_bps == 20_000_000
    # Without one, only what is named differs; plain links name nothing that they have not.
    assert set(link_of(first())["a_to_b"]) == {"delay_ns", "jitter_ns", "rate_bps", "loss", "ber", "queue_packets"}


def test_one_direction_has_settings_of_its_own_and_times_are_in_ms() -> None:
    made = first(
        links='links."h1-s1" = { rate_bps = 2e6, delay_ms = 3, a_to_b = { dama_frame_ms = 26.5, dama_delay_ms = 500, delay_ms = 4 } }'
    )
    there, back = (link_of(made, "h1-s1")[way] for way in ("a_to_b", "b_to_a"))
    assert (there["dama_frame_ns"], there["dama_delay_ns"], there["delay_ns"]) == (26_500_000, 500_000_000, 4_000_000)
    assert ("dama_frame_ns" in back, back["delay_ns"]) == (False, 3_000_000)
    way = link_of(first(links='links."s1-s2" = { ge_good_ms = 90.5, ge_bad_ms = 10, duplicate = 0.1 }'))["b_to_a"]
    assert (way["ge_good_ns"], way["ge_bad_ns"], way["duplicate"]) == (90_500_000, 10_000_000, 0.1)
    for wrong, said in (
        ("a_to_b = { dama_delay_ms = -1 }", "a_to_b.dama_delay_ms"),
        ("a_to_b = { dama = 1 }", "there is no key 'dama'"),
        ("dama_frame_ms = 26.5", "rate_bps"),
    ):
        with pytest.raises((ExperimentError, RunError), match=said):
            run(first(links=f'links."s1-s2" = {{ {wrong} }}'))


def test_where_errors_fall_is_a_setting_of_the_link_and_of_a_change() -> None:
    run = first(
        '[[changes]]\nat_s = 8\nlink = "s1-s2"\nerrors_in = "frame"\nspare_retransmissions = false\n',
        'links."s1-s2" = { ber = 1e-6, errors_in = "payload", spare_retransmissions = true }',
    )
    for way in ("a_to_b", "b_to_a"):
        assert (link_of(run)[way]["errors_in"], link_of(run)[way]["spare_retransmissions"]) == ("payload", True)
    assert changes_of(run)[0]["set"] == {"errors_in": "frame", "spare_retransmissions": False}
    with pytest.raises(ExperimentError, match="errors_in"):
        first(links='links."s1-s2" = { errors_in = "header" }')


def test_functions_of_time_reach_port_and_wire_and_are_scaled_by_what_is_drawn() -> None:
    rate, delay = {"uniform": [1e6, 2e6], "every_s": 5}, {"choice": [5, 9], "every_s": 5}
    links = 'links."s1-s2" = { rate_bps = { uniform = [1e6, 2e6], every_s = 5 }, delay_ms = { choice = [5, 9], every_s = 5 } }'
    run = first(links=links)
    document = resolve(run, PERIOD_NS).document()
    assert [port["rate_bps"] for switch in document["switches"] for port in switch["ports"]].count(rate) == 2
    assert link_of(run)["a_to_b"]["delay_ns"] == link_of(run)["b_to_a"]["delay_ns"] == delay
    text = FILE.replace('base = "single"\n', f'base = "single"\n{links}\n').replace("draws.fixed", "draws.rtt = 0.05 #")
    drawn = link_of(expand(load_text(text, "small.toml", "small"))[0])["a_to_b"]["delay_ns"]
    assert 0.95 <= drawn.pop("scale") <= 1.05
    assert drawn == delay


@pytest.mark.parametrize(
    "links",
    [
        'links."s1-s2" = { preset = "leo" }',
        'links."s1-s2" = { rate_bps = { uniform = [1e6, 2e6], every_s = 5 } }',
        'links."s1-s2" = { delay_ms = { choice = [5, 9], every_s = 5 } }',
        'links."h1-s1" = { a_to_b = { delay_ms = { choice = [5, 9], every_s = 5 } } }',
    ],
)
def test_runs_over_a_link_that_changes_by_itself_are_measured_over_the_same_seconds(links: str) -> None:
    assert marks_s(first(links=links)) == [5.0]
    assert len(marks_s(first(links='links."s1-s2" = { preset = "geo" }'))) == 6


def test_a_presets_own_changes_are_played_until_the_end() -> None:
    run = first(links='links."s1-s2" = { preset = "leo" }')
    changes = changes_of(run)
    assert [change["at_ns"] / 1e9 for change in changes] == [15, 15, 30, 30]
    assert [change.get("outage_ns") for change in changes] == [None, 60_000_000, None, 60_000_000]
    assert changes[0]["set"]["delay_ns"] != changes[2]["set"]["delay_ns"]


def test_a_hand_over_is_a_spike_with_another_rate_of_the_port() -> None:
    run = first(links='links."s1-s2" = { preset = "handover-fast-slow" }')
    assert changes_of(run)[0] == {"at_ns": 10**10, "link": "s1-s2", "direction": "both", "spike_ns": 5 * 10**9}
    assert rate_steps(resolve(run, PERIOD_NS), "s1", 2) == [(0.0, 2e6), (10.0, 5e5)]


def test_every_setting_may_change_and_be_repeated() -> None:
    run = first('[[changes]]\nat_s = 8\nevery_s = 15\nlink = "s1-s2"\ndirection = "b_to_a"\njitter_ms = 1\nge_enter = 0.1\n'
                'ge_leave = 0.5\nge_loss = 0.2\nge_ber = 1e-4\nreorder = true\nqueue_packets = 7\nspike_s = 0.5\n')  # fmt: skip
    assert run.changes[0].ge_leave == 0.5
    changes = changes_of(run)
    assert [change["at_ns"] for change in changes] == [8 * 10**9] * 2 + [23 * 10**9] * 2 + [38 * 10**9] * 2
    settings = {"jitter_ns": 10**6, "ge_enter": 0.1, "ge_leave": 0.5, "ge_loss": 0.2, "ge_ber": 1e-4, "reorder": True, "queue_packets": 7}  # fmt: skip
    assert changes[0] == {"at_ns": 8 * 10**9, "link": "s1-s2", "direction": "b_to_a", "set": settings}
    assert changes[1] == {"at_ns": 8 * 10**9, "link": "s1-s2", "direction": "b_to_a", "spike_ns": 5 * 10**8}


def test_a_spike_that_blocks_the_line_stops_the_port_and_the_hosts_wire() -> None:
    spike = '[[changes]]\nat_s = 8\nlink = "{}"\nspike_s = 5\nspike_blocks = "line"\n'
    stop = {"at_ns": 8 * 10**9, "spike_ns": 5 * 10**9}
    assert changes_of(first(spike.format("s1-s2"))) == [
        {**stop, "switch": "s1", "port": 2},
        {**stop, "switch": "s2", "port": 1},
    ]
    assert changes_of(first(spike.format("h1-s1"))) == [
        {**stop, "link": "h1-s1", "direction": "a_to_b", "spike_blocks": "line"},
        {**stop, "switch": "s1", "port": 1},
    ]


def test_a_steady_rate_is_read_beside_a_spike_of_its_port() -> None:
    run = first('[[changes]]\nat_s = 8\nlink = "s1-s2"\nspike_s = 5\nspike_blocks = "line"\n')
    assert [at_s for at_s, _ in rate_steps(resolve(run, PERIOD_NS), "s1", 2)] == [0.0]


def test_the_wire_is_there_for_a_link_that_only_changes() -> None:
    plain = 'links."*" = { delay_ms = 0 }'
    spike = '[[changes]]\nat_s = 8\nlink = "s1-s2"\nspike_s = 1\n'
    made = first(spike, plain)
    assert [link.get("emulated") for link in made.topology["links"]] == [None, True, None]
    assert [link.get("emulated") for link in first("", plain).topology["links"]] == [None, None, None]
    # The port has the rate: no wire is needed for it.
    assert first('[[changes]]\nat_s = 8\nlink = "s1-s2"\nrate_bps = 1_000_000\n', plain).topology["links"][1].get("emulated") is None  # fmt: skip


def test_a_topologys_own_changes_run_in_both_runners() -> None:
    document = json.loads(json.dumps(DUMBBELL))
    document["changes"] = [{"at_s": 8, "every_s": 6, "link": "s1-s2", "ge_enter": 0.1}]
    both = scenario(RENO, topology=document, changes=(LinkChange(at_s=9, link="s1-s2", ge_enter=0.0),))
    assert [change["at_ns"] / 1e9 for change in changes_of(both)] == [8, 9, 14]
    failed: list[RunError] = []
    (group,) = groups_of([both], lambda _, error: failed.append(error))
    assert (failed, group.seed) == ([], both.seed), "chance: the wire's seed is the run's"


@pytest.mark.parametrize(
    ("more", "links", "message"),
    [
        ("", 'links."s1-s2" = { preset = "sat" }', "topology.links.s1-s2.preset: there is no preset 'sat'; there are geo, leo"),
        ("", 'links."s1-s2" = { ge_exit = 1 }', "topology.links.s1-s2.ge_exit: there is no key 'ge_exit'"),
        ("", 'links."s1-s2" = { jitter_ms = 9 }', "/links/1/jitter: 9000 exceeds delay_us (5000); allowed: 0 to 5000 µs"),
        ("", 'links."s1-s2" = { rate_bps = { trace = "no.trace" } }', "links.s1-s2.rate_bps: trace: no.trace: cannot be read: No such file"),
        ('[[changes]]\nat_s = 8\nlink = "s1-s2"\njitter_ms = 9\n', "", "changes[0].jitter_ms: 9000 exceeds delay_us (5000); allowed: 0 to 5000 µs"),
        ('[[changes]]\nat_s = 8\nlink = "s1-s2"\nge_leave = 0\n', "", "changes[0].ge_leave: got 0; input should be greater than or equal to 0.000001"),
        ('[[changes]]\nat_s = 8\nlink = "s1-s2"\nloss = 0\nspike_blocks = "line"\n', "", "spike_blocks says what a spike blocks; spike_s is missing"),
        ('[[changes]]\nat_s = 8\nlink = "s1-s2"\nspike_s = 1\nspike_blocks = "queue"\n', "", "changes[0].spike_blocks: got 'queue'; "),
        ('[[changes]]\nat_s = 8\nlink = "s1-s2"\nevery_s = 0\nloss = 0\n', "", "changes[0].every_s: got 0; input should be greater than or equal to 0.01"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what_is_allowed(more: str, links: str, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        first(more, links)
    assert message in str(caught.value), str(caught.value)


def goodput_bps(done: RunResult) -> float:
    return sum(flow.goodput_bps for flow in done.flows)


def test_bursts_outages_and_spikes_reach_the_senders() -> None:
    clean = run(scenario(RENO, VEGAS))
    bursts = run(
        scenario(
            RENO, VEGAS, changes=(LinkChange(at_s=5, link="s1-s2", direction="a_to_b", ge_enter=0.005, ge_leave=0.25),)
        )
    )
    assert sum(flow.retransmits for flow in bursts.flows) > sum(flow.retransmits for flow in clean.flows) + 20
    cut = run(scenario(RENO, VEGAS, changes=(LinkChange(at_s=8, link="s1-s2", outage_s=3.0),)))
    held = run(scenario(RENO, VEGAS, changes=(LinkChange(at_s=8, link="s1-s2", spike_s=3.0),)))
    for stopped in (cut, held):
        assert sum(flow.timeouts or 0 for flow in stopped.flows) >= 2
        assert goodput_bps(stopped) < 0.85 * goodput_bps(clean)


def test_bcr_measures_the_new_rate_behind_a_blocked_line() -> None:
    """2 Mbit/s before the spike, 1 Mbit/s behind it; a sender that does not estimate has no such number."""

    def held(variant: str, blocks: Literal["delivery", "line"]) -> RunResult:
        spike = LinkChange(at_s=8, link="s1-s2", direction="a_to_b", spike_s=3.0, spike_blocks=blocks)
        return run(
            scenario(
                replace(RENO, variant=variant), changes=(spike, LinkChange(at_s=8, link="s1-s2", rate_bps=1_000_000))
            )
        )

    (flow,) = held("bcr", "line").flows
    assert flow.bw_est_bps is not None
    assert flow.bw_est_ratio is not None
    assert flow.bw_est_ratio == flow.bw_est_bps / 1e6
    assert 0.75 < flow.bw_est_ratio < 1.25
    (flow,) = held("bcr", "delivery").flows
    assert flow.bw_est_ratio is not None
    assert flow.bw_est_ratio > 1.25
    assert held("erto", "line").flows[0].bw_est_ratio is None


def test_a_trace_is_the_bottleneck_that_it_says(tmp_path: Path) -> None:
    trace = tmp_path / "1mbit.trace"
    trace.write_text("12\n")
    document = json.loads(json.dumps(DUMBBELL))
    document["links"][2]["a_to_b"] = {"rate": {"trace": str(trace)}, "queue_packets": 20}
    done = run(scenario(RENO, topology=document))
    # 1 Mbit/s of packets of 1,000 bytes, 960 of which are the application's.
    assert goodput_bps(done) == pytest.approx(960_000, rel=0.03)


def test_what_a_trace_carries_at_a_full_port_is_all_of_its_rate_and_no_more(tmp_path: Path) -> None:
    """Its opportunities are of IP packets; the port counts Ethernet headers too, 1.4 % here."""
    trace = tmp_path / "1mbit.trace"
    trace.write_text("12\n")
    done = run(first(links=f'links."s1-s2" = {{ rate_bps = {{ trace = "{trace}" }} }}'))
    assert done.ports[0].throughput_bps > 1_010_000
    for used in (done.ports[0].utilisation, done.values["worst_5s_use"]):
        assert used == pytest.approx(1.0, abs=0.002)
