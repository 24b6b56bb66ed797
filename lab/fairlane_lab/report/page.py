# SPDX-License-Identifier: Apache-2.0
"""The HTML report: one page that needs no network and no JavaScript, from run folders."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from fairlane_lab.definition.names import RUNTIMES
from fairlane_lab.report import labels
from fairlane_lab.report.differences import Difference, Line, find_differences
from fairlane_lab.report.draw_samples import draw_traces
from fairlane_lab.report.page_about import about_rows, event_rows, machine_rows, speed_text
from fairlane_lab.report.pairing import NotesOf, Pair, pair_up
from fairlane_lab.report.pictures import draw, to_inline_svg
from fairlane_lab.report.run_folder import RunFolder
from fairlane_lab.report.side_by_side import Table, shown_metrics, side_by_side
from fairlane_lab.report.style import mark
from fairlane_lab.report.traces import Trace, read_traces
from fairlane_lab.report.verdict_table import ExpectedBound, Tally, group_by_text, tally, verdict_table, worst


@dataclass(frozen=True)
class Picture:
    """A figure of the page."""

    title: str
    meaning: str
    shown: Markup
    """The figure, or a link to it."""


@dataclass(frozen=True)
class DifferenceLine:
    """A line on differences, as text."""

    what: str
    """`fairness: sim against the paper`."""
    points: tuple[str, ...]
    """`512k-5ms: 9.0 instead of 12.0 (-25 %)`, …"""
    because: tuple[str, ...]
    partly: tuple[str, ...]
    unexplained: bool
    count: str
    """`3 of 4 points`."""


@dataclass(frozen=True)
class TraceRow:
    """Statistics of one trace, as text."""

    point: str
    flow: str
    runtime: str
    cells: tuple[str, ...]


TRACE_HEADS = (
    "mean",
    "10 %",
    "median",
    "90 %",
    "peak",
    "low",
    "fall",
    "period (s)",
    "falls a minute",
    "below ssthresh (s)",
)


@dataclass(frozen=True)
class Section:
    """An experiment's section of the page."""

    pair: Pair
    table: Table
    verdicts: list[ExpectedBound]
    tallies: dict[str, Tally]
    pictures: list[Picture]
    differences: list[DifferenceLine]
    remarks: list[str]
    """Notes on the experiment that explain no difference."""
    traces: list[TraceRow]
    overlay: Picture | None
    events: list[dict[str, str]]
    events_of: str
    about: list[tuple[str, list[str]]]

    @property
    def heading(self) -> str:
        """`Results: paper, sim, Mininet`: who is in the table."""
        paper = ["paper"] if any(row.has_paper for row in self.table.rows) else []
        return f"Results: {', '.join([*paper, *(mark(run.runtime).label for run in self.pair.runs)])}"

    @property
    def unexplained(self) -> int:
        """Lines for which nothing says where the difference comes from."""
        return sum(line.unexplained for line in self.differences)


def make_report(folders: Sequence[Path], out: Path, notes_of: NotesOf = lambda _name: None) -> Path:
    """Write the report of some run folders as one HTML file; the same experiment in sim and in Mininet is set side by side.

    Of several runs of an experiment in one runtime the newest is shown. `notes_of` gives an experiment's notes where they are newer
    than the runs. Raises RunFolderError for a folder that is no run
    folder of the lab, or when there are none.
    """
    pairs = pair_up(folders, notes_of)
    sections = [make_section(pair, partial(_inline, f"x{index}")) for index, pair in enumerate(pairs)]
    environment = Environment(
        loader=PackageLoader("fairlane_lab.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    filters: dict[str, Any] = {"runtime": runtime_label, "group_by_text": group_by_text}
    environment.filters.update(filters)
    runs = [run for section in sections for run in section.pair.runs]
    page = environment.get_template("report.html.j2").render(
        sections=sections,
        machine=machine_rows(runs),
        runtimes=[name for name in RUNTIMES if any(run.runtime == name for run in runs)],
        run_count=sum(run.count for run in runs),
        counts={name: _total([s.tallies[name] for s in sections if name in s.tallies]) for name in RUNTIMES},
        lines=sum(len(section.differences) for section in sections),
        unexplained=sum(section.unexplained for section in sections),
        worst=worst,
        speed=speed_text,
        trace_heads=TRACE_HEADS,
        newest=max(run.started for run in runs)[:10],
        css=Markup((Path(__file__).parent / "templates" / "report.css").read_text()),
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f".{out.name}.new")
    draft.write_text(page, encoding="utf-8")
    draft.replace(out)
    return out


def runtime_label(name: str) -> str:
    """A runtime as a reader sees it."""
    return mark(name).label


def _total(tallies: Sequence[Tally]) -> Tally:
    return Tally(*(sum(getattr(each, name) for each in tallies) for name in ("met", "judged", "open", "missed")))


ShowFigure = Callable[[str, str, Callable[[], Figure]], Markup]
"""Name, title and how to draw a figure → what stands for it in the page."""


def _inline(prefix: str, name: str, title: str, make: Callable[[], Figure]) -> Markup:
    return Markup(to_inline_svg(make(), f"{prefix}-{name}", title))


def make_section(pair: Pair, show: ShowFigure) -> Section:
    """Everything that a page says of one experiment."""
    verdicts = verdict_table(pair)
    traces = [trace for run in pair.runs for trace in read_traces(run)]
    lines = find_differences(pair, shown_metrics(pair))
    events_of, events = event_rows(pair)
    pictures = [
        Picture(plot.title, plot.meaning, show(plot.name, plot.title, partial(draw, plot, pair.runs)))
        for plot in pair.newest.plots
        if any(run.select(plot.where) for run in pair.runs)
    ]
    return Section(
        pair=pair,
        table=side_by_side(pair),
        verdicts=verdicts,
        tallies={run.runtime: tally(verdicts, run.runtime) for run in pair.runs},
        pictures=pictures,
        differences=[_line(line) for line in lines],
        remarks=[note.text for note in pair.notes if note.is_remark],
        traces=_trace_rows(pair, traces),
        overlay=_overlay(pair, traces, show),
        events=events,
        events_of=events_of,
        about=about_rows(pair),
    )


def _line(line: Line) -> DifferenceLine:
    largest = max(max(abs(each.value), abs(each.reference)) for each in line.differences)
    name = labels.rate_name(labels.name_of(line.metric), largest)

    def describe(each: Difference) -> str:
        value, reference = (labels.format_metric(line.metric, number, name) for number in (each.value, each.reference))
        return f"{each.point}: {value} instead of {reference} ({each.share * 100:+.0f} %)"

    measured = mark(line.measured).label
    against = "the paper" if line.against == "paper" else mark(line.against).label
    because = line.notes
    if line.explained_by_spread:
        because = ("Within the spread of the repeats: the 95 % interval of the difference holds 0.",)
    return DifferenceLine(
        f"{labels.axis_label(name)}: {measured} against {against}",
        tuple(describe(each) for each in line.differences),
        because,
        line.partly if line.unexplained else (),
        line.unexplained,
        f"{len(line.differences)} of {line.compared}",
    )


def _trace_rows(pair: Pair, traces: Sequence[Trace]) -> list[TraceRow]:
    """Statistics of every sampled trace, runtimes of a flow below each other; none for experiments with many flows."""
    if len({trace.flow for trace in traces}) > 8:
        return []
    order = {run.runtime: place for place, run in enumerate(pair.runs)}
    keys = list(dict.fromkeys((trace.point, trace.flow) for trace in traces))
    chosen = sorted(traces, key=lambda trace: (keys.index((trace.point, trace.flow)), order[trace.runtime]))
    return [TraceRow(trace.point, trace.flow, mark(trace.runtime).label, _trace_cells(trace)) for trace in chosen]


def _trace_cells(trace: Trace) -> tuple[str, ...]:
    s = trace.statistics
    values = (s.mean, s.p10, s.p50, s.p90, s.peak, s.trough, s.amplitude, s.period_s, s.falls_per_min, s.slow_start_s)
    return tuple("-" if math.isnan(value) else labels.number(value, 3) for value in values)


def _overlay(pair: Pair, traces: Sequence[Trace], show: ShowFigure) -> Picture | None:
    """The traces of both runtimes over each other, where each point's flow is alone and both were sampled."""
    alone = {run.runtime: _flows_of_points(run) for run in pair.runs}
    both = [
        trace
        for trace in traces
        if len(alone[trace.runtime].get(trace.point, ())) == 1
        and len({other.runtime for other in traces if (other.point, other.flow) == (trace.point, trace.flow)}) > 1
    ]
    if not both:
        return None
    title = "Congestion window: simulated sender and the kernel's"
    meaning = "The same sender alone on the same link. Losses fall on other instants, so the saw-teeth drift apart; their height, period and slope are what has to agree: the numbers are in the table."
    return Picture(title, meaning, show("overlay", title, partial(draw_traces, both)))


def _flows_of_points(run: RunFolder) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    if not run.flows.empty:
        for point, flow in zip(run.flows["point"], run.flows["flow"], strict=True):
            found.setdefault(str(point), set()).add(str(flow))
    return found
