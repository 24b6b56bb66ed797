# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Plots and the result table, from invented run folders: what is drawn where, and what a reader can tell apart."""

from __future__ import annotations

import io
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from fairlane_lab.definition.judging import Bars, Cdf, Heat, Lines, Plot, Series
from fairlane_lab.definition.loading import load
from fairlane_lab.paths import REPOSITORY, RESULTS_DATA
from fairlane_lab.problems import RunFolderError
from fairlane_lab.report.archive import open_archived
from fairlane_lab.report.figures import (
    FRAME,
    MAX_POINTS,
    PALETTE,
    PNG_DPI,
    colours,
    draw,
    make_plots,
    name_beside,
    picture,
    thin,
)
from fairlane_lab.report.labels import axis_label, format_metric, name_of, number, setting_label
from fairlane_lab.report.run_folder import Point, RunFolder, open_run, run_of
from fairlane_lab.report.tables import numbers, result_table
from fairlane_lab.results.statistics import Spread
from fairlane_lab.run_result import RunResult, Transfer
from fairlane_lab.scenario import Scenario
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text
from report_folders import Runtime, invented, make_folder, measured_of, text_of, with_transfers
from rich.console import Console

RUNTIMES: tuple[Runtime, ...] = ("sim", "mininet")


@pytest.fixture(scope="module")
def table2(tmp_path_factory: pytest.TempPathFactory) -> list[RunFolder]:
    base = tmp_path_factory.mktemp("table2")
    folders = [make_folder(base / runtime, text_of("qthresh-table2"), runtime) for runtime in RUNTIMES]
    return [open_run(folder) for folder in folders]


@pytest.fixture(scope="module")
def table1(tmp_path_factory: pytest.TempPathFactory) -> list[RunFolder]:
    base = tmp_path_factory.mktemp("table1")
    return [
        open_run(make_folder(base / runtime, text_of("qthresh-table1"), runtime, invent=with_transfers))
        for runtime in RUNTIMES
    ]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    plt.close("all")


def texts_of(figure: Figure) -> list[str]:
    """All that a picture says."""
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def points_of(figure: Figure) -> list[tuple[float, float]]:
    """Where single marks are: a paper's numbers, middles."""
    marks = [each for axis in figure.axes for each in axis.collections if isinstance(each, PathCollection)]
    return [(float(x), float(y)) for each in marks for x, y in np.asarray(each.get_offsets())]


def copied(run: RunFolder, **tables: pd.DataFrame) -> RunFolder:
    """The same run, with these tables in the place of its own."""
    copy = run_of(run.path, run.summary)
    for name, table in tables.items():
        object.__setattr__(copy, name, table)
    return copy


def rows_of(plot: Plot, runs: list[RunFolder]) -> pd.DataFrame:
    """What a picture shows of the runs: a row a mark."""
    data = picture(plot, runs).data
    assert isinstance(data, pd.DataFrame)
    return data


def panels_of(plot: Plot, runs: list[RunFolder]) -> list[str]:
    return list(rows_of(plot, runs)["panel"].cat.categories)


def test_every_plot_of_the_file_becomes_a_png_and_an_svg_beside_the_tables(table2: list[RunFolder]) -> None:
    paths = make_plots(table2[0].path)
    names = [path.relative_to(table2[0].path).as_posix() for path in paths]
    assert names == [f"plots/{plot}.{kind}" for plot in ("fairness", "goodput", "fairness-map") for kind in ("png", "svg")]  # fmt: skip
    assert all(path.stat().st_size > 3000 for path in paths)


def test_pictures_made_again_are_the_same_bytes(table1: list[RunFolder]) -> None:
    first = [path.read_bytes() for path in make_plots(table1[0].path)]
    assert first == [path.read_bytes() for path in make_plots(table1[0].path)]


def test_a_folder_without_summary_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"no summary\.json"):
        make_plots(tmp_path)
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(
        RunFolderError, match="experiment: is missing; runtime: is missing; definition: is missing; points: is missing"
    ):
        make_plots(tmp_path)


def test_bars_show_shares_of_links_of_different_speed_and_the_papers_marks(table1: list[RunFolder]) -> None:
    plot = Bars(kind="bars", name="g", title="T", metric="goodput_bps")
    bars = rows_of(plot, table1)
    assert len(bars) == 4 * 2 * 2
    first = table1[0].points[0]
    assert bars["y"].iloc[0] == pytest.approx(first.metrics["goodput_bps[reno]"].value / 512_000 * 100)
    assert bars["at"].nunique() == len(bars), "no bar covers another"
    said = texts_of(draw(plot, table1, "T"))
    assert {"T", "goodput (% of the link's rate)", "reno", "vegas", "sim", "Mininet", "512k-5ms"} <= set(said)
    assert {"ranges: lowest to highest run", "paper"} <= set(said)
    paper = points_of(draw(plot, table1))
    assert len(paper) == 16
    assert min(abs(y - 457_160 / 512_000 * 100) for _, y in paper) < 0.01
    alone = texts_of(draw(plot, table1[1:]))
    assert "sim" not in alone
    assert "Mininet" not in alone


def never_in_some(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
    """After a spike the first run of a point never recovers, and at 512 kbit/s none does."""
    result = invented(scenario, chance, runtime)
    for flow in result.flows:
        flow.after_spike_bytes = 1.0
        flow.recovery_s = None if scenario.repeat == 0 or scenario.params["rate_bps"] == 512_000 else 0.5
    return result


def test_where_it_never_came_tables_and_pictures_say_so(tmp_path: Path) -> None:
    (run,) = measured_of([make_folder(tmp_path / "r", text_of("qthresh-table1"), invent=never_in_some)]).runs
    shown = numbers({point.name: {"sim": point} for point in run.points}, run, ["recovery_s"], intervals=True)
    assert [row.cells[0] for row in shown.rows[:2]] == ["never in 3 of 3", "0.5 (0.5 to never), never in 1 of 3"]
    short = numbers({point.name: {"sim": point} for point in run.points}, run, ["recovery_s"], intervals=False)
    assert [row.cells[0] for row in short.rows[:2]] == ["never 3/3", "0.5, never 1/3"]
    bars = Bars(kind="bars", name="r", title="T", metric="recovery_s", by="scheme")
    assert rows_of(bars, [run])["y"].isna().tolist() == [True, False, False, False]
    assert {"never in 3 of 3", "never in 1 of 3"} <= set(texts_of(draw(bars, [run])))
    lines = Lines(kind="lines", name="r", title="T", x="rate_bps", y="recovery_s")
    assert "gaps: in some runs it never came" in " ".join(texts_of(draw(lines, [run])))
    cdf = rows_of(Cdf(kind="cdf", name="r", title="T", metric="recovery_s", by="case", log_x=False), [run])
    assert cdf.groupby("label", observed=True)["y"].max().tolist() == [pytest.approx(200 / 3)] * 3


def test_a_metric_that_some_runs_have_not_measured_has_its_own_n(tmp_path: Path) -> None:
    def estimates(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
        result = never_in_some(scenario, chance, runtime)
        for flow in result.flows[: scenario.repeat]:
            flow.bw_est_ratio = 0.5
        return result

    run = open_run(make_folder(tmp_path / "r", text_of("qthresh-table1"), invent=estimates))
    shown = numbers({point.name: {"sim": point} for point in run.points}, run, ["bw_est_ratio"], intervals=True)
    assert {row.cells[0] for row in shown.rows} == {"1, n = 1"}, "both flows estimate in the last of three runs"


def test_lines_have_a_band_a_line_for_each_value_of_by_and_the_paper(table2: list[RunFolder]) -> None:
    plot = Lines(kind="lines", name="f", title="F", x="threshold", y=["fairness", "utilisation"], by="case")
    lines = rows_of(plot, table2[:1])
    assert panels_of(plot, table2[:1]) == ["fairness (min/max, %)", "utilisation (%)"]
    assert list(lines["label"].cat.categories) == ["512k-5ms", "1.5M-2ms", "2M-2ms", "5M-2ms"]
    assert (lines.groupby(["panel", "label"], observed=True).size() == 20).all()
    said = texts_of(draw(plot, table2[:1]))
    assert {"512k-5ms", "1.5M-2ms", "2M-2ms", "5M-2ms", "Qthresh (packets)"} <= set(said)
    assert "paper" in said


def test_groups_of_one_metric_share_a_panel_and_each_case_has_its_own(table2: list[RunFolder]) -> None:
    plot = Lines(kind="lines", name="g", title="G", x="threshold", y=["goodput_bps[reno]", "goodput_bps[vegas]"], panel="case")  # fmt: skip
    assert panels_of(plot, table2) == ["512k-5ms", "1.5M-2ms", "2M-2ms", "5M-2ms"]
    figure = draw(plot, table2)
    assert "goodput (kbit/s), own scales" in texts_of(figure), "the fastest link is ten times the slowest"
    assert figure.axes[3].get_ylim()[1] > 8 * figure.axes[0].get_ylim()[1]
    assert {"reno", "vegas", "sim", "Mininet"} <= set(texts_of(figure))


def test_shares_near_all_do_not_begin_at_0_and_nothing_above_is_cut_off(table2: list[RunFolder]) -> None:
    plot = Lines(kind="lines", name="u", title="U", x="threshold", y="utilisation", where={"case": "2M-2ms"})
    run = copied(table2[0])
    for place, point in enumerate(run.points):
        object.__setattr__(point, "metrics", {"utilisation": Spread(2.5 if place == 3 else 0.97, 0.95, 2.6)})
    least, most = draw(plot, [run]).axes[0].get_ylim()
    assert 60 < least < 97
    assert most > 250


def test_a_word_among_the_numbers_is_a_level_line(tmp_path: Path) -> None:
    text = (
        text_of("qthresh-table2")
        .split("[[paper_numbers]]")[0]
        .replace(
            "threshold = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]",
            'threshold = [4, 6, "auto"]',
        )
    )
    run = open_run(make_folder(tmp_path / "r", text))
    plot = Lines(kind="lines", name="f", title="F", x="threshold", y="fairness", where={"case": "2M-2ms"})
    assert list(rows_of(plot, [run])["x"]) == [4, 6]
    assert any("level lines: Qthresh self-tuning" in text for text in texts_of(draw(plot, [run])))


def test_series_put_runtimes_side_by_side_and_metrics_below_each_other(table1: list[RunFolder]) -> None:
    plot = Series(
        kind="series", name="c", title="C", metric=["cwnd_packets", "queue_packets"], where={"case": "2M-2ms"}
    )
    samples = rows_of(plot, table1)
    assert panels_of(plot, table1) == ["cwnd (packets)", "waiting packets (packets)"]
    assert list(samples["runtime"].cat.categories) == ["sim", "Mininet"]
    assert set(samples["label"]) == {"reno", "vegas"}
    axes = draw(plot, table1).axes
    assert axes[0].get_ylim() == axes[1].get_ylim()


def test_panels_share_an_axis_unless_one_would_be_flat_on_it(table1: list[RunFolder]) -> None:
    plot = Series(kind="series", name="c", title="C", metric="cwnd_packets")
    figure = draw(plot, table1[:1])
    assert len({axis.get_ylim() for axis in figure.axes}) == 1
    assert "cwnd (packets)" in texts_of(figure)
    series = table1[0].series
    low = series.assign(value=series["value"] * np.where(series["point"] == "512k-5ms", 0.1, 1.0))
    figure = draw(plot, [copied(table1[0], series=low)])
    assert len({axis.get_ylim() for axis in figure.axes}) == len(figure.axes)
    assert "cwnd (packets), own scales" in texts_of(figure)


def test_what_one_runtime_did_not_measure_is_empty_and_says_so(table1: list[RunFolder]) -> None:
    run = copied(table1[1], series=table1[1].series[table1[1].series["metric"] == "cwnd_packets"])
    plot = Series(kind="series", name="c", title="C", metric=["cwnd_packets", "queue_packets"])
    assert any("empty: not measured there" in text for text in texts_of(draw(plot, [table1[0], run])))


def test_the_port_has_a_colour_and_a_name_of_its_own(table1: list[RunFolder]) -> None:
    plot = Series(
        kind="series", name="q", title="Q", metric=["cwnd_packets", "queue_packets"], where={"case": "2M-2ms"}
    )
    for name, label in (("", "the port"), ("s1-p3", "port s1-p3")):
        series = table1[0].series
        table = series[(series["metric"] != "queue_packets") | (series["flow"] == "reno")]
        named = table["flow"].where(table["metric"] != "queue_packets", name)
        samples = rows_of(plot, [copied(table1[0], series=table.assign(flow=named))])
        assert list(samples["label"].cat.categories) == ["reno", "vegas", label]
        assert set(samples["label"][samples["metric"] == "queue_packets"]) == {label}


def test_many_flows_are_their_groups_mean_between_the_lowest_and_the_highest(table1: list[RunFolder]) -> None:
    run = copied(table1[0], flows=table1[0].flows.assign(group="both"))
    plot = Series(kind="series", name="c", title="C", metric="cwnd_packets", by="group", where={"case": "2M-2ms"})
    samples = rows_of(plot, [run])
    assert set(samples["label"]) == {"both"}
    assert ((samples["lo"] <= samples["y"]) & (samples["y"] <= samples["hi"])).all()
    assert any("lowest to highest flow of a group" in text for text in texts_of(draw(plot, [run])))


SWEPT = """
name = "swept"
title = "T"
paper = "P"
reproduces = "nothing"
what = "Two schemes and two buffers."
runtimes = ["sim"]
program = "qthresh"

[sweep]
scheme = ["drop_tail", "qthresh"]
buffer_packets = [20, 100]

[sets]
buffer_packets = "topology.ports.s1-p3.queue_packets"

[topology]
base = "dumbbell"
ports."s1-p3" = { rate_bps = 2_000_000 }

[[flows]]
name = "reno"
sender = "h1"
receiver = "h3"
variant = "reno"

[[flows]]
name = "vegas"
sender = "h2"
receiver = "h3"
variant = "vegas"

[run]
duration_s = 20
warmup_s = 5
repeats = 3
"""


def test_a_parameter_that_a_plot_does_not_name_gets_panels(tmp_path: Path) -> None:
    """And is not pooled into one bar, whose spread would be said to be of the runs."""
    run = open_run(make_folder(tmp_path / "r", SWEPT))
    plot = Bars(kind="bars", name="b", title="B", metric="goodput_bps", x="scheme")
    bars = rows_of(plot, [run])
    assert panels_of(plot, [run]) == ["buffer 20", "buffer 100"]
    for buffer in (20, 100):
        points = [point for point in run.points if point.params["buffer_packets"] == buffer]
        values = [point.metrics[f"goodput_bps[{flow}]"].value / 1e3 for point in points for flow in ("reno", "vegas")]
        assert sorted(bars["y"][bars["panel"] == f"buffer {buffer}"]) == pytest.approx(sorted(values))
    lines = Lines(kind="lines", name="l", title="L", x="buffer_packets", y="fairness")
    assert panels_of(lines, [run]) == ["drop-tail", "Qthresh"]


def test_an_axis_and_a_legend_have_the_units_that_they_name(tmp_path: Path) -> None:
    text = SWEPT.replace("buffer_packets = [20, 100]", "rate_bps = [2_000_000, 4_000_000]").replace(
        'buffer_packets = "topology.ports.s1-p3.queue_packets"', 'rate_bps = "topology.links.s1-s2.rate_bps"'
    )
    run = open_run(make_folder(tmp_path / "r", text))
    lines = Lines(kind="lines", name="l", title="L", x="rate_bps", y="fairness")
    assert sorted(set(rows_of(lines, [run])["x"])) == [2.0, 4.0]
    assert "rate (Mbit/s)" in texts_of(draw(lines, [run]))


def test_more_panels_than_can_be_read_are_refused(table2: list[RunFolder]) -> None:
    plot = Bars(kind="bars", name="b", title="B", metric="goodput_bps", x="scheme")
    text = " ".join(texts_of(draw(plot, table2[:1])))
    assert "80 panels of" in text
    assert "are too many: choose points with `where`" in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [("2M/threshold=6", "2M/threshold=6"), ("preset=geo/program=fq_codel", "preset=geo\nprogram=fq_codel")],
)
def test_a_long_name_beside_a_panel_has_a_line_for_each_parameter(name: str, shown: str) -> None:
    assert name_beside(Point.model_validate({"point": name, "params": {}, "metrics": {}})) == shown


def test_series_that_were_not_sampled_say_so(table2: list[RunFolder]) -> None:
    plot = Series(kind="series", name="c", title="C", metric="cwnd_packets")
    assert "the run has no series for this plot" in texts_of(draw(plot, table2[:1]))


def test_cdf_ends_at_all_transfers_and_marks_the_middle(table1: list[RunFolder]) -> None:
    plot = Cdf(kind="cdf", name="c", title="C", by="group", where={"case": "2M-2ms"})
    shares = rows_of(plot, table1[:1])
    assert shares[shares["label"] == "reno"]["y"].max() == 100
    times = table1[0].transfers
    mine = times.query("group == 'reno' and point == '2M-2ms'")["completion_s"]
    assert min(abs(x - math.log10(mine.median())) for x, y in points_of(draw(plot, table1[:1])) if y == 50) < 1e-3
    assert {"completion time (s)", "transfers (%)", "points: medians"} <= set(texts_of(draw(plot, table1[:1])))


def some_cut(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
    """One file of 10 s, and one that the run cuts."""
    result = invented(scenario, chance, runtime)
    flow = scenario.flows[0]
    result.transfers = [
        Transfer(flow.name, flow.group, scenario.warmup_s, 40_000, 10.0, complete=complete, ran_s=9.0, packets=28)
        for complete in (True, False)
    ]
    return result


@pytest.mark.parametrize(("metric", "x"), [("completion_s", 10), ("packets", 28), ("bytes", 40_000), ("ran_s", 9)])
def test_a_cdf_of_transfers_ends_at_the_share_that_finished(tmp_path: Path, metric: str, x: float) -> None:
    run = open_run(make_folder(tmp_path / "r", text_of("qthresh-table1"), repeats=1, invent=some_cut))
    plot = Cdf(kind="cdf", name="c", title="C", by="group", metric=metric, where={"case": "2M-2ms"})
    assert rows_of(plot, [run])[["x", "y"]].to_numpy().tolist() == [[x, 50]]
    assert "transfers (%)" in texts_of(draw(plot, [run]))
    cut = copied(run, transfers=run.transfers.assign(complete=False))
    assert "no finished transfer, or no run, matches this plot" in texts_of(draw(plot, [cut]))


def test_a_metric_that_runs_have_too_is_theirs_where_there_are_no_transfers(table2: list[RunFolder]) -> None:
    plot = Cdf(kind="cdf", name="c", title="C", by="case", metric="retransmits")
    assert "runs (%)" in texts_of(draw(plot, table2[:1]))


def test_heat_writes_each_value_and_frames_the_papers_cells(table2: list[RunFolder]) -> None:
    plot = Heat(kind="heat", name="m", title="M", metric="fairness", x="threshold", y="case")
    cells = rows_of(plot, table2[:1])
    first = table2[0].points[0].metrics["fairness"].value
    assert len(cells) == 80
    assert cells["text"].iloc[0] == f"{first * 100:.0f}"
    figure = draw(plot, table2[:1])
    edges = [tuple(edge) for each in figure.axes[0].collections for edge in np.asarray(each.get_edgecolor())]
    assert edges.count(to_rgba(FRAME)) in (1, 4), "one for all, or one each"
    said = texts_of(figure)
    assert "fairness (min/max, %); framed: the paper gives a value" in said


def test_a_heat_map_has_a_field_for_each_value_of_its_panel(table2: list[RunFolder]) -> None:
    plot = Heat(kind="heat", name="m", title="M", metric="fairness", x="threshold", y="scheme", panel="case")
    cells = rows_of(plot, table2[:1])
    assert panels_of(plot, table2[:1]) == ["512k-5ms", "1.5M-2ms", "2M-2ms", "5M-2ms"]
    assert (cells["panel"].value_counts() == 20).all()


def test_thinning_keeps_ends_and_extremes() -> None:
    line = pd.DataFrame({"x": np.linspace(0, 100, 20_000), "y": 0.0})
    line.loc[7_777, "y"] = 9.0
    kept = thin(line)
    assert len(kept) <= MAX_POINTS + 2
    assert kept["y"].max() == 9.0
    assert list(kept["x"].iloc[[0, -1]]) == [0, 100]


def test_colours_are_fixed_for_known_names_and_never_twice() -> None:
    assert colours(["vegas", "reno"]) == {"vegas": PALETTE[0], "reno": PALETTE[1]}
    assert len(set(colours(["reno", "newreno", "vegas", "x", "y", "z"]).values())) == 6
    assert len(set(colours(map(str, range(11))).values())) == 11, "more than the palette has"


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (setting_label("rate_bps", 512_000), "512 kbit/s"),
        (setting_label("rate_bps", 1e9), "1 Gbit/s"),
        (setting_label("threshold", "auto"), "Qthresh self-tuning"),
        (setting_label("scheme", "drop_tail"), "drop-tail"),
        (setting_label("delay_ms", 5), "one-way delay 5 ms"),
        (setting_label("tick_s", 0.1), "tick of the clock 100 ms"),
        (setting_label("udp_bps", 15e6), "UDP rate 15 Mbit/s"),
        (setting_label("load", 0.9), "offered load 90 %"),
        (axis_label(name_of("fairness")), "fairness (min/max, %)"),
        (axis_label(name_of("goodput_bps[reno]")), "goodput, reno (Mbit/s)"),
        (format_metric("fairness", 0.9164), "91.6"),
        (format_metric("jain", 0.98512), "0.985"),
        (format_metric("goodput_bps", None), "-"),
        (number(12345.6), "12346"),
        (number(0.00044), "0.00044"),
    ],
)
def test_labels(got: str, expected: str) -> None:
    assert got == expected


def printed(*runs: RunFolder) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(result_table(runs))
    return out.getvalue()


def test_the_result_table_has_the_papers_values_below_and_fits_80_columns(table1: list[RunFolder]) -> None:
    text = printed(table1[1])
    lines = text.splitlines()
    point = next(place for place, line in enumerate(lines) if "2M-2ms" in line)
    assert lines[point + 1].split()[:3] == ["paper", "1798", "202.3"], lines
    assert "medians of 3 runs" in text
    assert max(map(len, lines)) <= 80


def test_the_result_table_has_a_section_for_each_case_and_says_when_runs_are_missing(table2: list[RunFolder]) -> None:
    cut = run_of(table2[0].path, {**table2[0].summary, "complete": False})
    lines = [line.rstrip() for line in printed(cut).splitlines()]
    assert " 512k-5ms" in lines
    assert any("threshold=20" in line for line in lines)
    assert any("not complete" in line for line in lines)


def test_runs_stand_below_each_other_and_what_lies_apart_is_marked(table1: list[RunFolder], tmp_path: Path) -> None:
    """What was there as `fairlane lab compare`: sim and Mininet, one seed and another, a run and itself."""
    text = printed(*table1)
    lines = text.splitlines()
    assert "(sim, Mininet; medians of 3 runs)" in " ".join(text.split())
    point = next(place for place, line in enumerate(lines) if line.strip() == "2M-2ms")
    assert [line.split()[0] for line in lines[point + 1 : point + 4]] == ["sim", "Mininet", "paper"]
    sim, mininet = [run.points[2].metrics["utilisation"] for run in table1]
    assert sim.lo > mininet.hi
    assert "98.5*" in lines[point + 2]
    assert "*" not in lines[point + 1]
    assert max(map(len, lines)) <= 80
    assert "* outside of the interval of sim" in text
    one, other = (open_run(make_folder(tmp_path / str(seed), text_of("qthresh-table1"), seed=seed)) for seed in (1, 2))
    assert "(seed 1, seed 2;" in printed(one, other)
    assert "every number is the same" in printed(one, open_run(one.path))


def test_groups_are_in_the_metrics_where_no_table_of_flows_was_kept(table1: list[RunFolder], tmp_path: Path) -> None:
    run = run_of(tmp_path, table1[0].summary)
    assert run.flows.empty
    bars = rows_of(Bars(kind="bars", name="g", title="T", metric="goodput_bps"), [run])
    assert list(bars["label"].cat.categories) == ["reno", "vegas"]


def test_no_published_picture_is_empty() -> None:
    pictures = sorted((REPOSITORY / "docs" / "results" / "plots").glob("*.svg"))
    assert pictures
    for path in pictures:
        said = re.search(r"(no point|no series|no finished transfer)[^<]*<", path.read_text())
        assert said is None, f"{path.name}: {said.group() if said else ''}"


def test_the_picture_of_the_readme_is_the_demo_s_first_plot(tmp_path: Path) -> None:
    """As `make demo` draws it, of the archived runs. To make it anew, write this figure there."""
    demo = load("demo")
    run, plot = open_archived(RESULTS_DATA, demo, "mininet"), demo.experiment.plots[0]
    assert run is not None
    figure = draw(plot, [run], f"{plot.title} · Mininet")
    figure.savefig(tmp_path / "shares.png", dpi=PNG_DPI, facecolor="white")
    drawn, kept = (plt.imread(path) for path in (tmp_path / "shares.png", REPOSITORY / "docs" / "demo-shares.png"))
    assert drawn.shape == kept.shape
    assert np.abs(drawn - kept).mean() < 0.01


def test_no_line_of_a_published_picture_over_time_goes_back() -> None:
    results = REPOSITORY / "docs" / "results"
    names = sorted({path.name.split(".")[0] for path in (results / "data").glob("*.series.parquet")})
    plots = [(name, plot.name) for name in names for plot in load(name).experiment.plots if isinstance(plot, Series)]
    assert plots
    for name, plot_name in plots:
        text = (results / "plots" / f"{name}-{plot_name}.svg").read_text()
        for line in re.findall(r'<path d="([^"z]+)" clip-path[^>]*fill: none', text):
            x = [float(value) for value in re.findall(r"[ML] (\S+)", line)]
            assert x == sorted(x), f"{name}-{plot_name}.svg"
