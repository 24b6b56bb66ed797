# SPDX-License-Identifier: Apache-2.0
"""Which host programs a scenario's hosts get, and which of their counters are a flow's."""

from __future__ import annotations

import dataclasses

from fairlane_lab.recording import counters_of
from fairlane_lab.scenario import Control, Flow, Scenario, TcpOptions
from fairlane_lab.wishes import wishes


def scenario(*flows: Flow, tcp: TcpOptions | None = None) -> Scenario:
    return Scenario(
        experiment="programs",
        point="p",
        params={},
        topology={},
        flows=flows,
        duration_s=1,
        warmup_s=0,
        tcp=tcp or TcpOptions(),
        control=Control(scheme="drop_tail"),
    )


def flow(name: str, sender: str, receiver: str, variant: str) -> Flow:
    return Flow(name, name, sender, receiver, variant=variant)


def programs(of: Scenario) -> dict[str, tuple[str, ...]]:
    return {name: wish.programs for name, wish in wishes(of).hosts.items()}


def test_an_ena_sender_s_receiver_gets_the_program_too() -> None:
    assert programs(scenario(flow("a", "h1", "h2", "ena-sack"), flow("b", "h3", "h4", "sack"))) == {
        "h1": ("ena",),
        "h2": ("ena",),
        "h3": (),
        "h4": (),
    }


def test_which_segment_an_ack_names_follows_the_sender_unless_the_experiment_says() -> None:
    paper, ours = flow("a", "h1", "h2", "ena-sack"), flow("a", "h1", "h2", "ena-sack+")
    assert programs(scenario(ours)) == {"h1": ("ena",), "h2": ("ena", "ena-lowest")}
    assert programs(scenario(ours, tcp=TcpOptions(error_naming="own")))["h2"] == ("ena",)
    assert programs(scenario(paper, tcp=TcpOptions(error_naming="lowest")))["h2"] == ("ena", "ena-lowest")
    assert programs(scenario(flow("a", "h1", "h2", "sack"), tcp=TcpOptions(error_naming="lowest")))["h2"] == ()


def test_a_receiver_may_know_nothing_of_ena() -> None:
    tcp = dataclasses.replace(TcpOptions(), receiver_program=False)
    assert programs(scenario(flow("a", "h1", "h2", "ena-reno"), tcp=tcp)) == {"h1": ("ena",), "h2": ()}


def test_a_host_that_sends_and_receives_has_both_kinds() -> None:
    both = scenario(flow("a", "h1", "h2", "ena-reno"), flow("b", "h2", "h3", "erto"))
    assert programs(both) == {"h1": ("ena",), "h2": ("ena", "erto"), "h3": ()}


def test_counters_belong_to_a_flow_that_has_its_hosts_for_itself() -> None:
    alone = [flow("a", "h1", "h2", "ena-sack")]
    of_hosts = {
        "h1": {"ena_corrupted": 0, "ena_notified": 7, "ena_kept": 2, "ena_reduced": 1},
        "h2": {"ena_corrupted": 5, "ena_notified": 0, "ena_kept": 0, "ena_reduced": 0},
    }
    assert counters_of(alone[0], alone, of_hosts) == {
        "ena_notified": 7,
        "ena_kept": 2,
        "ena_reduced": 1,
        "ena_corrupted": 5,
    }
    shared = [*alone, flow("b", "h3", "h2", "ena-sack")]
    assert "ena_corrupted" not in counters_of(alone[0], shared, of_hosts)
    assert counters_of(alone[0], alone, {}) == {}
