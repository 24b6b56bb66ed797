# SPDX-License-Identifier: Apache-2.0
"""Runs that differ: starts, delays, rates and buffers are drawn for each repeat, alike for all points of it, and the rows say what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.extend import experiment_names
from fairlane_lab.definition.loading import Definition, load, load_text
from fairlane_lab.definition.points import Draws, draws_of
from fairlane_lab.measures import ceiling_of
from fairlane_lab.problems import ExperimentError
from fairlane_lab.results.rows import make_rows
from fairlane_lab.results.summary import group_points
from fairlane_lab.run_result import RunResult
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.config import resolve
from fairlane_lab.sim.world import SimWorld
from fairlane_topology import topology as fl_topology
from test_lab_definition import FILE

REPEATS = 40
POINTS = 8
"Of an experiment, at most some more are set up."


def definition(draws: str = "") -> Definition:
    return load_text(FILE.replace("[run]", f"[run]\n{draws}", 1), "small.toml")


def read(scenario: Scenario) -> fl_topology.Topology:
    return fl_topology.check(dict(scenario.topology))


def bottleneck_s_buffer(scenario: Scenario) -> float:
    """What was drawn for the buffers of the managed ports."""
    ports = read(scenario).ports
    managed = {f"{switch}-p{port}" for switch in ports for port, spec in ports[switch].items() if spec.bottleneck}
    return sum(more for port, more in scenario.drawn.get("buffer", {}).items() if port in managed)


def runs(draws: str = "") -> dict[str, list[Scenario]]:
    found: dict[str, list[Scenario]] = {}
    for scenario in expand(definition(draws), Selection(repeats=REPEATS)):
        found.setdefault(scenario.point, []).append(scenario)
    return found


def test_repeats_differ_by_what_is_chance_in_the_field() -> None:
    fixed = read(next(iter(runs('draws.fixed = "it is compared with"').values()))[0])
    drawn = [read(scenario) for scenario in next(iter(runs().values()))]
    for place, link in enumerate(fixed.links):
        delays = [each.links[place].a_to_b.delay_us / link.a_to_b.delay_us for each in drawn]
        rates = [each.links[place].bandwidth_bps / link.bandwidth_bps for each in drawn]
        assert min(len(set(delays)), len(set(rates))) > REPEATS / 2, "in whole microseconds"
        assert 0.95 <= min(delays) < 0.97 < 1.03 < max(delays) <= 1.05
        assert 0.99 <= min(rates) < 0.994 < 1.006 < max(rates) <= 1.01
        assert all(each.links[place].a_to_b.delay_us == each.links[place].b_to_a.delay_us for each in drawn)
    (buffer,) = (spec.queue_packets for own in fixed.ports.values() for spec in own.values() if spec.bottleneck)
    buffers = {spec.queue_packets for each in drawn for own in each.ports.values() for spec in own.values() if spec.bottleneck}  # fmt: skip
    assert buffer is not None
    assert buffers == {buffer - 1, buffer, buffer + 1}


def test_all_points_of_a_repeat_meet_the_same_draws() -> None:
    for repeat in zip(*runs().values(), strict=True):
        assert len({json.dumps(scenario.drawn, sort_keys=True) for scenario in repeat}) == 1
        assert len({tuple(flow.start_s - repeat[0].flows[0].start_s for flow in each.flows) for each in repeat}) == 1


def test_the_base_seed_decides() -> None:
    first, again, other = (expand(definition(), Selection(seed=seed, repeats=1))[0].drawn for seed in (1, 1, 2))
    assert first == again != other


def test_what_is_fixed_says_why() -> None:
    draws = draws_of(definition('draws.fixed = "one run is the proof"').document)
    assert draws.text() == "Not drawn: starts, delays, rates, buffers, because one run is the proof."
    some = Draws.model_validate({"rate": 0, "fixed": "the line is a clock"})
    assert some.text() == "Drawn at random for each run: starts within 0.1 s, delays ± 5 %, buffers ± 1 packet. Not drawn: rates, because the line is a clock."  # fmt: skip
    alike = runs('draws.fixed = "one run is the proof"')
    assert len({json.dumps(each.topology, sort_keys=True) for each in next(iter(alike.values()))}) == 1


@pytest.mark.parametrize(
    ("draws", "says"),
    [
        ("draws.rtt = 0", "rtt is 0: `fixed` must say why it is not drawn"),
        ('draws = { rtt = 0.1, fixed = "x" }', "everything is drawn"),
        ("draws.rtt = 0.6", "less than or equal to 0.5"),
        ("draws.delay = 0.1", "delay"),
    ],
)
def test_draws_that_make_no_sense_are_refused(draws: str, says: str) -> None:
    with pytest.raises(ExperimentError, match=says):
        definition(draws)


def test_rows_carry_what_was_drawn() -> None:
    scenario = expand(definition(), Selection(repeats=2))[1]
    nothing: dict[str, Any] = {"flows": [], "ports": [], "transfers": [], "series": [], "events": []}
    (row,) = make_rows(scenario, RunResult(**nothing, wall_s=0.0, virtual_s=1.0, packets=0), "sim", "embedded")["runs"]
    assert json.loads(row["drawn"]) == scenario.drawn
    assert set(scenario.drawn) == {"start_s", "delay", "rate", "buffer"}


def test_greedy_flows_start_before_what_is_counted() -> None:
    text = FILE.replace("warmup_s = ", "warmup_s = 0.02 # ").replace("[run.starts]\noffsets_s = [-0.5, 0.5]\n", "")
    for scenario in expand(load_text(text, "small.toml"), Selection(repeats=5)):
        assert all(0 < flow.start_s <= scenario.warmup_s for flow in scenario.flows)


def test_changes_of_a_link_have_its_own_factors() -> None:
    for scenario in expand(load("bcr-fig4"), Selection(repeats=3)):
        for change in scenario.changes:
            if change.rate_bps:
                assert change.rate_bps == round(scenario.params["rate_after_bps"] * scenario.drawn["rate"][change.link])


def test_the_ceiling_is_of_the_rate_that_was_drawn() -> None:
    ceilings = {ceiling_of(scenario) for scenario in expand(load("ena-fig4"), Selection(repeats=4))[:4]}
    assert len(ceilings) == 4


@pytest.mark.parametrize("name", sorted(experiment_names()))
def test_every_experiment_can_be_set_up_with_the_smallest_buffers_that_are_drawn(name: str) -> None:
    loaded = load(name)
    in_sim = loaded.experiment.runs_in("sim")
    if in_sim:
        pytest.importorskip("fairlane_switch.native", reason="the simulator is not built: make setup")
    of_points: dict[str, list[Scenario]] = {}
    for scenario in expand(loaded, Selection(runtime="sim" if in_sim else loaded.experiment.runtimes[0], repeats=12)):
        assert scenario.drawn or draws_of(loaded.document).fixed
        of_points.setdefault(scenario.point, []).append(scenario)
    every = max(1, len(of_points) // POINTS)
    for repeats in list(of_points.values())[::-every]:
        smallest = min(repeats, key=bottleneck_s_buffer)
        if not in_sim:
            read(smallest)
            continue
        world = SimWorld(resolve(smallest, sample_period_ns=100_000_000))
        try:
            world.loop.run_until_complete(world.set_up())
        finally:
            world.close()


LINKS = """
[drawn]
delay_ms = { from = 1, to = 100, log = true }
flows_1 = { from = 1, to = 64, log = true, whole = true }
flows = { from = 2, to = 9, whole = true, split = ["flows_2", "flows_3"] }
[[cases]]
"""


SETS = """[sets]
flows = []
flows_1 = "flows.reno.connections"
flows_2 = "flows.vegas.connections"
flows_3 = "flows.third.connections"
"""
THIRD = """[[flows]]
name = "third"
sender = "h2"
receiver = "h3"
variant = "vegas"
"""


def text_with_links(text: str = LINKS) -> str:
    found = FILE.replace("[[cases]]\n", text, 1).replace("delay_ms = 8\n", "").replace("delay_ms = 2\n", "")
    return found.replace("[sets]", SETS, 1).replace("[control]", f"{THIRD}[control]", 1)


def with_links(text: str = LINKS) -> Definition:
    return load_text(text_with_links(text), "small.toml")


def test_each_run_has_its_own_parameters_alike_at_all_points_of_a_repeat() -> None:
    drawn = [each.params for each in expand(with_links(), Selection(repeats=REPEATS))]
    names = ("delay_ms", "flows_1", "flows_2", "flows_3")
    by_repeat = {tuple(params[name] for name in names) for params in drawn}
    assert len(by_repeat) == REPEATS
    assert all(1 <= params["delay_ms"] <= 100 and 1 <= params["flows_1"] <= 64 for params in drawn)
    below = [params["delay_ms"] < 10 for params in drawn[:REPEATS]]
    assert 0.25 * REPEATS < sum(below) < 0.75 * REPEATS, "any factor is as likely"
    assert all(params["flows"] == params["flows_1"] + params["flows_2"] + params["flows_3"] for params in drawn)
    assert any(params["flows_2"] and params["flows_3"] for params in drawn)
    again, other = (expand(with_links(), Selection(repeats=1, seed=seed))[0].params for seed in (1, 2))
    assert drawn[0] == again != other


def test_what_is_drawn_may_be_set() -> None:
    values = {"delay_ms": (7.5,), "flows": (4,)}
    runs = [each.params for each in expand(with_links(), Selection(repeats=REPEATS, values=values))]
    assert {each["delay_ms"] for each in runs} == {7.5}
    assert {each["flows_2"] + each["flows_3"] for each in runs} == {4}
    assert len({each["flows_1"] for each in runs}) > 1


def test_a_point_s_parameters_are_those_that_all_its_runs_have() -> None:
    scenarios = expand(with_links(), Selection(repeats=3))[:3]
    (point,) = group_points([{"point": each.point, "repeat": each.repeat, **each.params} for each in scenarios])
    assert "delay_ms" not in point.params
    assert point.params["rate_bps"] == 1_000_000


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("to = 100", "to = 1", "from 1 to 1: must go up"),
        ("from = 1, to = 100", "from = 0, to = 100", "with log from above 0"),
        ("to = 9, whole = true", "to = 9", "split: needs whole = true"),
        ("delay_ms = {", "delay = {", "drawn.delay: there is no parameter 'delay'"),
        ('"flows_3"]', '"flows_3", "flows_4"]', "sets.flows_4: is missing"),
    ],
)
def test_drawn_parameters_that_make_no_sense_are_refused(old: str, new: str, says: str) -> None:
    with pytest.raises(ExperimentError, match=says):
        with_links(LINKS.replace(old, new, 1))
