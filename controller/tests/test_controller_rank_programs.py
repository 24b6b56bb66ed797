# SPDX-License-Identifier: Apache-2.0
"""SP-PIFO, AIFO and PACKS as programs: settings to entries and back, distributions of ranks, what a port cannot have, a switch set up by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.config.read import read_text
from fairlane_controller.program.ranks import SOURCES, WEIGHTS, RankProgram, pieces
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import PortState, RunState, SwitchState, read_topology, write_topology
from fairlane_controller.switch.entities import entity_key
from finsy import P4TableAction, P4TableEntry
from live_switch import COMPILED, LiveSwitch, binary

PORT = PortState(port=3, queues=8, queue_packets=40)
SETTINGS = {
    "sp_pifo": {"ranks": "poisson", "priority_queues": 3, "queue_limit": 7},
    "aifo": {"ranks": "dscp", "queue_capacity": 33, "burst": 0.25, "window": 9, "sample": 4},
    "packs": {"ranks": "dscp", "priority_queues": 3, "queue_limit": 7, "burst": 0.25, "window": 9, "sample": 4},
}


def program_of(name: str) -> RankProgram:
    program = load_program(name)
    assert isinstance(program, RankProgram)
    return program


def entries_of(name: str, **settings: Any) -> list[P4TableEntry]:
    program = program_of(name)
    return list(program.entries(PORT, program.Settings.model_validate(settings)))


def arguments_of(entry: P4TableEntry) -> dict[str, int]:
    assert isinstance(entry.action, P4TableAction)
    return dict(entry.action.args)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("ranks", SOURCES)
def test_settings_become_entries_and_come_back(name: str, ranks: str) -> None:
    chosen = {**SETTINGS[name], "ranks": ranks}
    entries = entries_of(name, **chosen)
    back = program_of(name).ports_of("s1", {entity_key(entry): entry for entry in entries})
    assert back[3].model_dump() == chosen


def test_a_source_that_somebody_else_wrote_is_read() -> None:
    (entry,) = entries_of("sp_pifo")
    action = P4TableAction("set_sp_pifo", **{**arguments_of(entry), "rank_from": 99})
    entry.action = action
    assert program_of("sp_pifo").ports_of("s1", {entity_key(entry): entry})[3].model_dump()["ranks"] == SOURCES[-1]


def test_the_arguments_are_the_papers() -> None:
    assert arguments_of(entries_of("sp_pifo")[0]) == {"rank_from": 0, "queues": 8, "queue_packets": 10}
    (aifo,) = entries_of("aifo")
    assert arguments_of(aifo) == {"rank_from": 0, "capacity_packets": 40, "k": 6554, "window": 20, "sample": 1}


def test_the_capacity_of_a_port_is_its_queue_s() -> None:
    program = program_of("aifo")
    settings = program.settings_for_queue(program.Settings(), 25, None)
    assert program.arguments(PORT, settings)["capacity_packets"] == 25
    assert program.arguments(PortState(port=3), program.Settings())["capacity_packets"] == 80


@pytest.mark.parametrize("source", WEIGHTS)
def test_every_draw_means_one_rank_as_often_as_the_distribution_says(source: str) -> None:
    found = pieces(source)
    assert [first for first, _, _ in found] == [0, *(last + 1 for _, last, _ in found[:-1])]
    assert found[-1][1] == 65535
    total = sum(WEIGHTS[source](rank) for rank in range(127))
    for first, last, rank in found:
        assert (last - first + 1) / 65536 == pytest.approx(WEIGHTS[source](rank) / total, abs=1.01 / 65536)


def test_what_a_sender_says_is_not_drawn() -> None:
    assert [source for source in SOURCES if not pieces(source)] == ["identification", "dscp", "ingress_port"]


@pytest.mark.parametrize(
    ("name", "given", "port", "problem"),
    [
        ("sp_pifo", "priority_queues = 9", {}, "ports[0].priority_queues: the port has 8 queues; must be 1 to 8"),
        ("sp_pifo", "queue_limit = 41", {}, "ports[0].queue_limit: a queue of the port holds 40 packets; must be 1 to 40"),
        ("sp_pifo", "queue_limit = 5", {"scheduler": "drr"}, "ports[0]: the port's scheduler is drr; sp_pifo needs strict"),
        ("aifo", "queue_capacity = 41", {}, "ports[0].queue_capacity: the port's queue holds 40 packets; must be 1 to 40"),
    ],
)  # fmt: skip
def test_what_the_port_s_queues_cannot_do(name: str, given: str, port: dict[str, Any], problem: str) -> None:
    config = read_text(f'program = "{name}"\n[[ports]]\nswitch = "s1"\nport = 3\n{given}', "f.toml")
    switch = SwitchState(name="s1", grpc="x:1", ports=(PORT.model_copy(update=port),))
    run = RunState(name="t", program=name, switches=(switch,))
    program = program_of(name)
    assert list(program.check(config.part_of(program, run), run)) == [problem]
    assert list(program.check(config.part_of(program), None)) == []


def test_packs_has_no_more_queues_than_its_p4_program() -> None:
    config = read_text('program = "packs"\n[[ports]]\nswitch = "s1"\nport = 3\npriority_queues = 9', "f.toml")
    problems = list(program_of("packs").check(config.part_of(program_of("packs")), None))
    assert problems == ["ports[0].priority_queues: 9: packs has 1 to 8 queues"]


@pytest.fixture(params=SETTINGS)
def switch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveSwitch]:
    if binary("embedded") is None:
        pytest.skip("the embedded switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    made = LiveSwitch("embedded", tmp_path)
    made.write_state()
    state = read_topology(tmp_path)
    (one,) = state["switches"]
    one |= {"json": str(COMPILED / f"{request.param}.json"), "p4info": str(COMPILED / f"{request.param}.p4info.txtpb")}
    one["ports"] = [{"port": 1}, {"port": 3, "bottleneck": True, "rate_bps": 2e6}]
    write_topology(tmp_path, {**state, "program": request.param})
    made.start()
    try:
        yield made
    finally:
        made.kill()


def test_a_switch_is_set_up_and_its_distribution_changed_and_taken_back(switch: LiveSwitch) -> None:
    def source() -> str:
        rows: list[dict[str, Any]] = switch.json("config", "show")["config"]["ports"]
        return next(row["ranks"] for row in rows if row["port"] == 3)

    assert "managed ports: 3" in switch.fairlane("config", "init")
    assert source() == "identification"
    switch.fairlane("config", "set", "s1:3", "ranks=exponential")
    assert source() == "exponential"
    switch.fairlane("config", "set", "s1:3", "ranks=uniform")
    assert source() == "uniform"
    switch.fairlane("undo")
    assert source() == "exponential"
    (port,) = (port for port in switch.json("status")["ports"] if port["managed"])
    assert (port["port"], port["inversions"], port["refused"]) == (3, 0, 0)
    assert "fairlane_port_inversions_total" in switch.fairlane("watch", "metrics", "--once")
