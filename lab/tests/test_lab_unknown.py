# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportMissingTypeStubs=false
"""What a runtime does not know (what waits on BMv2, most of all) is None from the run's own files to the report's page."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fairlane_lab.cli.tables import show_run, verdict_lines
from fairlane_lab.definition.expansion import Selection
from fairlane_lab.definition.loading import load_text
from fairlane_lab.measures import known_mean, known_sum
from fairlane_lab.report.figures import make_plots
from fairlane_lab.report.publish import make_report
from fairlane_lab.report.run_folder import open_run
from fairlane_lab.report.tables import result_table
from fairlane_lab.results.rows import run_metrics
from fairlane_lab.run_result import PortResult
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.campaign import Campaign, run_campaign
from fairlane_lab.sweep.runners import OnOutcome, Outcome
from report_folders import invented, make_folder, text_of
from rich.console import Console
from test_lab_mininet_collect import RENO, WEB, Made

TEXT = (
    text_of("qthresh-table1")
    + """
[[plots]]
kind = "bars"
name = "waiting"
title = "What waits"
metric = "queue_packets"
x = "case"
by = "scheme"
[[expect]]
text = "little waits"
metric = "queue_packets"
max = 20
"""
)


def strict(path: Path) -> Any:
    """A JSON file, read as the standard has it: NaN and Infinity are no numbers."""

    def refuse(word: str) -> None:
        raise ValueError(f"{path.name} holds {word}")

    return json.loads(path.read_text(), parse_constant=refuse)


def test_what_nobody_read_is_none(tmp_path: Path) -> None:
    """BMv2 reads no register over P4Runtime: nothing is sampled of the queue."""
    (port,) = Made(tmp_path, waiting=False).collect().ports
    assert port.queue_packets is None
    assert port.throughput_bps == pytest.approx(990_000)


def test_a_web_flow_has_no_window_that_anyone_sampled(tmp_path: Path) -> None:
    reno, web = Made(tmp_path, flows=(RENO, WEB)).collect().flows
    assert (reno.cwnd_packets, reno.timeouts) == (4.0, 2)
    assert (web.cwnd_packets, web.timeouts, web.retransmits) == (None, None, 1)
    metrics = run_metrics([reno, web], [], [])
    assert (metrics["timeouts"], metrics["timeouts[reno]"], metrics["cwnd_packets[short]"]) == (None, 2, None)


def test_a_sum_needs_all_its_parts_and_a_mean_those_that_there_are() -> None:
    assert (known_sum([1.0, None]), known_sum([1, 2]), known_sum([])) == (None, 3, 0)
    assert (known_mean([1.0, None, 3.0]), known_mean([None])) == (2.0, None)
    port = PortResult("s1", 3, 2_000_000, 1.98e6, 0.99, 7, None)
    assert run_metrics([], [port, replace(port, port=4, queue_packets=5.0)], [])["queue_packets"] is None


@pytest.mark.parametrize("waiting", [None, float("nan")], ids=["none", "nan"])
def test_a_run_on_bmv2_gets_its_summary_tables_plots_and_page(tmp_path: Path, waiting: float | None) -> None:
    """A runner that says NaN is believed as little: the tables hold null."""

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        for scenario in scenarios:
            result = invented(scenario, random.Random(1), "mininet")
            result.ports[0].queue_packets = waiting
            result.series = [point for point in result.series if point.metric != "queue_packets"]
            on_outcome(Outcome(scenario, result))

    definition = load_text(TEXT, "t.toml")
    base = tmp_path / definition.experiment.name
    campaign = Campaign(definition, Selection(runtime="mininet", repeats=2), base / "bmv2", "bmv2")
    done = run_campaign(campaign, execute)
    assert done.complete
    summary = strict(done.path)
    assert all("queue_packets" not in point["metrics"] for point in summary["points"])
    assert all(point["metrics"]["utilisation"] > 0.5 for point in summary["points"])
    verdicts = [each for each in summary["verdicts"] if each["metric"] == "queue_packets"]
    assert {(each["value"], each["met"]) for each in verdicts} == {(None, None)}
    for table in ("runs", "ports"):
        column = pq.read_table(base / "bmv2" / f"{table}.parquet")["queue_packets"]
        assert set(column.to_pylist()) == {None}, table
    run = open_run(base / "bmv2")
    lines = verdict_lines([each for each in run.verdicts if each.metric == "queue_packets"])
    assert lines[0] == "[yellow]no data[/yellow]   little waits · 512k-5ms: not measured"
    assert len(lines) == len(verdicts) == 4
    show_run(run)
    Console(width=80).print(result_table([run]))
    sim = make_folder(base / "sim", TEXT, "sim")
    assert make_plots(base / "bmv2")
    Console(width=80).print(result_table([open_run(base / "bmv2"), open_run(sim)]))
    (page,) = make_report([base / "bmv2", sim], tmp_path / "report")
    assert not re.search(r"\bnan\b", page.read_text().lower())


def test_a_folder_of_before_that_holds_nan_gets_its_summary(tmp_path: Path) -> None:
    """What a lab of before left behind when it could not write the summary: its runs are there, and none is made again."""
    definition = load_text(TEXT, "t.toml")
    campaign = Campaign(definition, Selection(runtime="mininet", repeats=1), tmp_path / "r", "bmv2")

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        for scenario in scenarios:
            on_outcome(Outcome(scenario, invented(scenario, random.Random(1), "mininet")))

    run_campaign(campaign, execute)
    path = tmp_path / "r" / "runs.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("queue_packets")
    nan = pa.array([float("nan")] * table.num_rows, type=pa.float64())
    pq.write_table(table.set_column(place, "queue_packets", nan), path)
    (tmp_path / "r" / "summary.json").unlink()
    done = run_campaign(campaign, execute)
    assert (done.complete, done.skipped) == (True, table.num_rows)
    assert all("queue_packets" not in point["metrics"] for point in strict(done.path)["points"])
