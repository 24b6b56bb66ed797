# SPDX-License-Identifier: Apache-2.0
"""How long runs are said to take before they are run: whole durations, or as long as the files that end them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from fairlane_lab.definition import Selection, expand, load
from fairlane_lab.estimates import cost, expected_s
from fairlane_lab.runners.sim import run
from fairlane_lab.scenario import Scenario


def one(experiment: str, **params: Any) -> Scenario:
    """The first run of the points with these parameters."""
    values: Mapping[str, Any] = {name: (value,) for name, value in params.items()}
    return expand(load(experiment), Selection(repeats=1, values=values))[0]


def test_a_run_without_files_that_end_it_lasts_its_duration() -> None:
    greedy = one("qthresh-table1")
    assert expected_s(greedy) == greedy.duration_s
    file = one("ena-fig6", sender="ena-reno", file_bytes=10_000_000)
    assert expected_s(replace(file, until_done=False)) == file.duration_s
    assert cost(replace(file, until_done=False)) > 10 * cost(file)


@pytest.mark.parametrize(
    ("experiment", "params"),
    [
        ("ena-fig6", {"sender": "ena-reno", "file_bytes": 1_000_000}),
        ("ena-fig6", {"sender": "tahoe", "file_bytes": 100_000}),
        ("ena-fig10", {"sender": "ena-sack+", "ber": 1e-5}),
        ("ena-fig10", {"sender": "sack", "ber": 1e-5}),
        ("fasttcp-fig1", {"sender": "org", "file_bytes": 5120}),
        ("fasttcp-fig3", {"sender": "org", "file_bytes": 102_400}),
    ],
)
def test_files_take_about_as_long_in_sim_as_is_said(experiment: str, params: dict[str, Any]) -> None:
    scenario = one(experiment, **params)
    said_s = expected_s(scenario)
    took_s = max(each.start_s + each.completion_s for each in run(scenario).transfers)
    assert took_s / 2.5 < said_s < took_s * 2.5
    assert said_s < scenario.duration_s


def test_no_file_is_said_to_take_longer_than_its_run() -> None:
    cut = replace(one("ena-fig6", sender="reno", file_bytes=10_000_000), duration_s=20.0)
    assert expected_s(cut) == 20.0


def test_files_asked_for_faster_than_the_line_carries_them_take_the_line_s_time() -> None:
    scenario = one("fasttcp-fig1", sender="org", file_bytes=1_048_576)
    (flow,) = scenario.flows
    hurried = replace(scenario, flows=(replace(flow, app=replace(flow.app, interval_s=0.001)),))
    line_s = flow.app.times * 8 * flow.app.bytes / 100e6
    assert line_s < expected_s(hurried) < expected_s(scenario)
