# SPDX-License-Identifier: Apache-2.0
"""From a scenario to the simulator's configuration: addresses, variants, changes; what cannot be run is named."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from fairlane_controller.errors import FairlaneError
from fairlane_hosts.simulator import find_simulated
from fairlane_hosts.variants import VARIANTS
from fairlane_lab.definition.names import part_of
from fairlane_lab.inputs import configuration
from fairlane_lab.scenario import App, Flow, Scenario, TcpOptions
from fairlane_lab.sim.config import START_SPREAD_S, rate_steps, resolve, tcp_object
from fairlane_topology.links import LinkChange
from sim_scenarios import DUMBBELL, RENO, VEGAS, scenario

PERIOD_NS = 20_000_000


def document(run: Scenario) -> dict[str, Any]:
    return resolve(run, PERIOD_NS).document()


def test_the_dumbbell_is_what_its_file_says() -> None:
    made = document(scenario(RENO, VEGAS))
    assert made["switches"][0]["ports"][2] == {"port": 3, "rate_bps": 2_000_000, "queue_packets": 50}
    assert made["hosts"][0] == {
        "name": "h1",
        "ip": "10.0.1.1",
        "mac": "08:00:00:00:00:01",
        "gateway_mac": "08:00:00:00:ff:01",
    }
    link = {link["name"]: link for link in made["links"]}
    assert link["s1-s2"]["a"] == {"node": "s1", "port": 3}
    assert (link["s1-s2"]["a_to_b"]["delay_ns"], link["s1-s2"]["a_to_b"]["rate_bps"]) == (2_000_000, 0)
    assert (link["h1-s1"]["a_to_b"]["rate_bps"], link["h1-s1"]["b_to_a"]["rate_bps"]) == (10_000_000, 0)
    assert made["sample"]["ports"] == [{"switch": "s1", "port": 3}]


def test_connections_are_flows_of_their_own_with_their_own_ports() -> None:
    many = Flow("v", "vegas", "h2", "h3", variant="vegas", connections=3)
    config = resolve(scenario(RENO, many), PERIOD_NS)
    assert [each.name for each in config.flows] == ["reno", "v-1", "v-2", "v-3"]
    assert str(config.flows[3].key) == "tcp 10.0.2.2:10003 > 10.0.3.3:5001"
    assert [flow["from_port"] for flow in config.document()["flows"]] == [10_000, 10_001, 10_002, 10_003]


def test_a_seed_moves_the_starts_a_little_and_always_the_same_way() -> None:
    def starts(seed: int) -> list[int]:
        return [flow["start_ns"] for flow in document(scenario(RENO, VEGAS, seed=seed))["flows"]]

    assert starts(1) == starts(1)
    assert starts(1) != starts(2)
    assert all(0 <= start < START_SPREAD_S * 1e9 for start in starts(1) + starts(2))
    assert starts(1)[0] != starts(1)[1]


def test_every_variant_of_the_hosts_is_known() -> None:
    simulated = {name: find_simulated(name) for name, variant in VARIANTS.items() if variant.folder is None}
    vegas = VARIANTS["vegas"].defines
    alpha_beta_gamma = {name: simulated["vegas"][name] for name in ("alpha", "beta", "gamma")}
    assert alpha_beta_gamma == {"alpha": vegas["FL_ALPHA"], "beta": vegas["FL_BETA"], "gamma": vegas["FL_GAMMA"]}
    linux = VARIANTS["vegas-linux"].defines
    assert simulated["vegas-linux"]["beta"] == linux["FL_BETA"]


def test_a_variant_s_options() -> None:
    reno = tcp_object(RENO, TcpOptions())
    assert (reno["cc"], reno["recovery"], reno["prr"]) == ("reno_recovery", "newreno", True)
    assert (reno["mss_bytes"], reno["initial_window_packets"], reno["timestamps"]) == (960, 2, False)
    linux = Flow("l", "g", "h1", "h3", variant="reno-linux")
    assert tcp_object(linux, TcpOptions())["initial_window_packets"] == 10
    own = Flow("l", "g", "h1", "h3", variant="reno-linux", tcp={"initial_window_packets": 4, "sack": True})
    assert tcp_object(own, TcpOptions())["initial_window_packets"] == 4
    assert tcp_object(own, TcpOptions())["recovery"] == "sack"

    def naming(variant: str, **tcp: Any) -> object:
        return tcp_object(Flow("e", "g", "h1", "h3", variant=variant, tcp=tcp), TcpOptions()).get("ena_naming")

    assert (naming("ena-sack"), naming("ena-sack+"), naming("sack", error_naming="own")) == ("own", "lowest", None)
    assert (naming("ena-sack", error_naming="lowest"), naming("ena-sack+", error_naming="own")) == ("lowest", "own")
    ena = Flow("e", "g", "h1", "h3", variant="ena-sack", tcp={"receiver_program": False})
    assert (tcp_object(ena, TcpOptions())["cc"], tcp_object(ena, TcpOptions())["ena"]) == ("ena_rfc6675", False)
    mrto = Flow("m", "g", "h1", "h3", variant="nss-mrto")
    assert tcp_object(mrto, TcpOptions(rto_min_s=0.2))["rto_min_ns"] == 4_000_000
    assert tcp_object(replace(mrto, tcp={"rto_min_s": 0.1}), TcpOptions())["rto_min_ns"] == 100_000_000
    linux_2_4 = TcpOptions(tick_s=0.01, delayed_ack_s=0.2, backoff="reset")
    clock = {
        name: tcp_object(mrto, linux_2_4)[name]
        for name in ("tick_ns", "rto_min_ns", "delayed_ack_timeout_ns", "backoff")
    }
    assert clock == {
        "tick_ns": 10_000_000,
        "rto_min_ns": 10_000_000,
        "delayed_ack_timeout_ns": 200_000_000,
        "backoff": "reset",
    }
    assert tcp_object(RENO, linux_2_4)["rto_min_ns"] == 200_000_000
    assert "tick_ns" not in reno
    assert (reno["delayed_ack"], tcp_object(RENO, TcpOptions(delayed_ack_s=0))["delayed_ack"]) == (True, False)
    clamped = Flow("c", "g", "h1", "h3", window_packets=7)
    assert tcp_object(clamped, TcpOptions(delayed_ack=False))["cwnd_clamp_packets"] == 7
    assert ("ecn" in reno, tcp_object(RENO, TcpOptions(ecn=True))["ecn"]) == (False, True)


def test_what_is_not_asked_for_is_not_in_the_hash() -> None:
    """Runs that were archived before there was ECN keep their configuration."""
    part = part_of("qthresh")
    controls = [part.control(part.control_model(scheme="qthresh", threshold=6, ecn=ecn)) for ecn in (False, True)]
    runs = [
        Scenario("e", "p", {}, {}, (RENO,), 2, 1, control=control, tcp=TcpOptions(ecn=ecn))
        for control in controls
        for ecn in (False, True)
    ]
    assert configuration(runs[0]) == "82783a4d1dac", "as before there was ECN"
    assert len({configuration(run) for run in runs}) == 4


def test_a_change_of_rate_is_one_of_the_ports_at_the_link_s_ends() -> None:
    change = LinkChange(at_s=8, link="s1-s2", direction="a_to_b", rate_bps=1_000_000, delay_ms=100.0)
    run = scenario(RENO, changes=(change,))
    assert document(run)["changes"] == [
        {"at_ns": 8_000_000_000, "link": "s1-s2", "direction": "a_to_b", "set": {"delay_ns": 100_000_000}},
        {"at_ns": 8_000_000_000, "switch": "s1", "port": 3, "rate_bps": 1_000_000},
    ]
    assert rate_steps(resolve(run, PERIOD_NS), "s1", 3) == [(0.0, 2e6), (8.0, 1e6)]


def test_a_change_of_rate_at_a_host_is_one_of_the_wire() -> None:
    change = LinkChange(at_s=1, link="h1-s1", direction="a_to_b", rate_bps=5_000_000, outage_s=0.5)
    assert document(scenario(RENO, changes=(change,)))["changes"] == [
        {"at_ns": 1_000_000_000, "link": "h1-s1", "direction": "a_to_b", "set": {"rate_bps": 5_000_000}},
        {"at_ns": 1_000_000_000, "link": "h1-s1", "direction": "a_to_b", "outage_ns": 500_000_000},
    ]


@pytest.mark.parametrize(
    ("app", "expected"),
    [
        (App("bytes", bytes=7), {"kind": "bytes", "bytes": 7}),
        (App("interactive", bytes=9, interval_s=0.25), {"kind": "interactive", "bytes": 9, "interval_ns": 250_000_000}),
        (
            App("web", arrivals_per_s=2.0, mean_bytes=8000, distribution="pareto"),
            {
                "kind": "web",
                "arrivals_per_s": 2.0,
                "mean_bytes": 8000,
                "max_bytes": 0,
                "distribution": "pareto",
                "shape": 1.2,
            },
        ),
        (App("cbr_udp", rate_bps=5, payload_bytes=60), {"kind": "cbr_udp", "rate_bps": 5, "payload_bytes": 60}),
    ],
)
def test_applications(app: App, expected: dict[str, Any]) -> None:
    made = document(scenario(Flow("f", "g", "h1", "h3", app=app)))["flows"][0]
    assert made["app"] == expected
    assert ("tcp" in made) == (app.kind != "cbr_udp")


def broken(change: dict[str, Any]) -> dict[str, Any]:
    return {**copy.deepcopy(DUMBBELL), **change}


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (scenario(Flow("f", "g", "h1", "h3", variant="cubix")), r"flow f: no TCP variant is called 'cubix'; there are tahoe, reno, newreno, sack, vegas, "),
        (scenario(RENO, program="gfrx"), r"unknown program 'gfrx'; did you mean 'gfr'"),
        (scenario(RENO, topology=broken({"links": [["h1", "s1"]]})), r"topology: /links/0/b: 's1' is not an endpoint; write a host \(h1\) or a switch port \(s1-p3\)"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_named(run: Scenario, message: str) -> None:
    with pytest.raises(FairlaneError, match=message):
        document(run)
