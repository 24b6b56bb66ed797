# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Pictures of samples: metrics over time, distributions of transfers and flows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fairlane_lab.definition.names import LIMIT_SERIES, TRANSFER_METRICS, Name
from fairlane_lab.definition.plots import Cdf, Series
from fairlane_lab.report import labels
from fairlane_lab.report.canvas import Legend, empty, finish, grid, level, panels, set_log_x, without_data
from fairlane_lab.report.run_folder import Point, RunFolder, ordered
from fairlane_lab.report.splitting import PANELS_MAX, Panels, split
from fairlane_lab.report.style import INK, MUTED, PALE, PALETTE, colours, mark

# ---- series: Metrics over time

Floats = npt.NDArray[np.float64]
MAX_LINES = 8
"""More flows than this are drawn as groups: their mean, and a band from the lowest to the highest."""
MAX_POINTS = 1200
_PORT_NAME = re.compile(r".+-p\d+")
"""A managed port in the series: `s1-p3`."""
_STEPPED = {"cwnd_packets", "ssthresh_packets", "queue_packets", *LIMIT_SERIES}


@dataclass(frozen=True)
class _Row:
    title: str
    metric: str
    points: dict[str, Point]
    """Runtime → the point that is shown."""


def draw_series(plot: Series, runs: Sequence[RunFolder], title: str) -> Figure:
    """Draw a `series` plot: repeat `plot.repeat` of each chosen point."""
    metrics = [plot.metric] if isinstance(plot.metric, str) else list(plot.metric)
    rows = _rows(plot, metrics, runs)
    if not rows:
        return without_data("the run has no series for this plot", title)
    columns = [run for run in runs if not run.series.empty] or list(runs[:1])
    single = len(columns) == 1 and len(rows) == 1
    figure, axes = grid(
        len(rows),
        len(columns),
        3.2 if single else 1.75 if len(rows) > 3 else 2.1,
        sharex=True,
        sharey="row",
    )
    legend = Legend()
    flow_groups = _flow_groups(runs)
    names = {metric: _scaled(metric, rows, columns, plot) for metric in metrics}
    ports = [] if all(run.series.empty for run in runs) else _ports_in(runs, flow_groups)
    chosen = colours(ordered([*flow_groups.values(), *ports]))
    for row, entry in enumerate(rows):
        for column, run in enumerate(columns):
            axis = axes[row][column]
            if entry.metric == metrics[0] or not entry.title:
                heading = " · ".join(
                    part for part in (entry.title, mark(run.runtime).label if len(columns) > 1 else "") if part
                )
                if row == 0 or entry.title:
                    axis.set_title(heading)
            point = entry.points.get(run.runtime)
            if point is None:
                empty(axis, "not run here")
            elif not _draw_run(axis, plot, entry, run, point, names[entry.metric].scale, flow_groups, chosen, legend):
                empty(axis, "not sampled")
            if column == 0:
                axis.set_ylabel(labels.axis_label(names[entry.metric]))
            if row == len(rows) - 1:
                axis.set_xlabel("time (s)")
            axis.set_ylim(bottom=0)
            axis.margins(x=0.01)
    for metric in metrics:  # runtimes side by side share an axis
        level([axes[row][0] for row, entry in enumerate(rows) if entry.metric == metric])
    return finish(figure, legend, title)


def _rows(plot: Series, metrics: list[str], runs: Sequence[RunFolder]) -> list[_Row]:
    """Each value of `panel` (or each point that was sampled) with each metric."""
    sampled = {run.runtime: set() if run.series.empty else set(run.series["point"]) for run in runs}
    points = {run.runtime: [p for p in run.select(plot.where) if p.name in sampled[run.runtime]] for run in runs}
    parts = split(list(points.values()), (), plot.panel)
    found: dict[str, dict[str, Point]] = {}
    for runtime, mine in points.items():
        for point in mine:
            key = parts.title(parts.of(point)) if plot.panel else point.name
            found.setdefault(key, {})[runtime] = point
    titles = {key: key if len(found) > 1 else "" for key in found}
    return [_Row(titles[key], metric, points) for key, points in found.items() for metric in metrics]


def _flow_groups(runs: Sequence[RunFolder]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for run in runs:
        if not run.flows.empty:
            pairs.update(zip(map(str, run.flows["flow"]), map(str, run.flows["group"]), strict=True))
    return pairs


def _ports_in(runs: Sequence[RunFolder], flow_groups: Mapping[str, str]) -> list[str]:
    """The lines of whole ports by the name that the legend has for them."""
    named = ordered(str(flow) for run in runs if not run.series.empty for flow in run.series["flow"].unique())
    return [_port_label(name) for name in named if _is_port(name, flow_groups)]


def _is_port(name: str, flow_groups: Mapping[str, str]) -> bool:
    """Whether a series is of a port: it has no name, or the port's where several are managed."""
    return not name or (name not in flow_groups and _PORT_NAME.fullmatch(name) is not None)


def _port_label(name: str) -> str:
    return f"port {name}" if name else "the port"


def _scaled(metric: str, rows: list[_Row], runs: Sequence[RunFolder], plot: Series) -> Name:
    """The metric's name, in kbit/s where all of its values are small."""
    largest = 0.0
    for entry in rows:
        if entry.metric == metric:
            for run in runs:
                point = entry.points.get(run.runtime)
                if point:
                    samples = _samples(run, point, metric, plot)
                    largest = max(largest, float(samples["value"].max()) if len(samples) else 0.0)
    return labels.rate_name(labels.series_name(metric), largest)


def _samples(run: RunFolder, point: Point, metric: str, plot: Series) -> pd.DataFrame:
    table = run.series
    chosen = (table["point"] == point.name) & (table["repeat"] == plot.repeat) & (table["metric"] == metric)
    if plot.from_s is not None:
        chosen &= table["t_s"] >= plot.from_s
    if plot.to_s is not None:
        chosen &= table["t_s"] <= plot.to_s
    return table[chosen]


def _draw_run(
    axis: Axes,
    plot: Series,
    entry: _Row,
    run: RunFolder,
    point: Point,
    scale: float,
    flow_groups: dict[str, str],
    chosen: dict[str, str],
    legend: Legend,
) -> bool:
    samples = _samples(run, point, entry.metric, plot)
    if samples.empty:
        return False
    named = ordered(map(str, samples["flow"]))
    flows: list[str] = [name for name in named if not _is_port(name, flow_groups)]
    if flows and (plot.by == "group" or len(flows) > MAX_LINES):
        groups: list[str] = ordered(flow_groups.get(flow, flow) for flow in flows)
        for group in groups:
            members = samples[[flow_groups.get(str(flow), str(flow)) == group for flow in samples["flow"]]]
            _group(axis, members, scale, chosen.get(group, MUTED), group, legend)
    else:
        alike = len({flow_groups.get(flow, flow) for flow in flows}) < len(flows)
        shades = colours(flows) if alike else chosen
        for name in flows or named:  # the port's count where flows have none
            mine = samples[samples["flow"] == name]
            key = _port_label(name) if not flows else name if alike else flow_groups.get(name, name)
            colour = shades.get(key, PALETTE[0])
            _trace(axis, mine, scale, colour, entry.metric in _STEPPED, _end_s(run, point, plot))
            if not flows or len(set(flow_groups.values())) > 1:
                legend.line(key, colour)
    for change in run.definition.get("changes", []):
        at_s = change.get("at_s")
        if isinstance(at_s, int | float):
            axis.axvline(at_s, color=MUTED, lw=0.9, ls=(0, (1, 2)), zorder=1)
            legend.last("the network changes", Line2D([], [], color=MUTED, lw=0.9, ls=(0, (1, 2))))
    if entry.metric == "queue_packets":
        _threshold(axis, plot, run, point, legend)
    _measured_from(axis, run, plot, legend)
    return True


def _trace(axis: Axes, samples: pd.DataFrame, scale: float, colour: str, stepped: bool, end_s: float) -> None:
    times, values = thin(samples["t_s"].to_numpy(float), samples["value"].to_numpy(float) * scale)
    if stepped and times[-1] < end_s:  # sampled only when it changed: it holds to the end
        times, values = np.append(times, end_s), np.append(values, values[-1])
    restless = np.count_nonzero(np.diff(values)) > 300
    axis.plot(
        times, values, color=colour, lw=0.7 if restless else 1.2, drawstyle="steps-post" if stepped else "default"
    )


def _end_s(run: RunFolder, point: Point, plot: Series) -> float:
    """The last instant that is drawn of a point."""
    table = run.series
    mine = table[(table["point"] == point.name) & (table["repeat"] == plot.repeat)]
    last = float(mine["t_s"].max())
    return last if plot.to_s is None else min(last, plot.to_s)


def _group(axis: Axes, samples: pd.DataFrame, scale: float, colour: str, group: str, legend: Legend) -> None:
    at = samples.assign(t=samples["t_s"].round(3)).groupby("t")["value"]
    count = at.count().max()
    middle, low, high = at.mean(), at.min(), at.max()
    times = middle.index.to_numpy(float)
    step = max(1, len(times) // MAX_POINTS)
    if count > 1:
        axis.fill_between(
            times[::step],
            low.to_numpy()[::step] * scale,
            high.to_numpy()[::step] * scale,
            color=colour,
            alpha=0.15,
            lw=0,
        )
    axis.plot(times[::step], middle.to_numpy()[::step] * scale, color=colour, lw=1.2)
    legend.line(f"{group}: mean, lowest to highest of {count}" if count > 1 else group, colour)


def _threshold(axis: Axes, plot: Series, run: RunFolder, point: Point, legend: Legend) -> None:
    """The limit in force, over the queues that it holds."""
    found = ((name, _samples(run, point, name, plot)) for name in LIMIT_SERIES)
    limit, samples = next(((name, samples) for name, samples in found if not samples.empty), ("", None))
    fixed = point.params.get("threshold")
    if samples is not None:
        samples = samples[samples["flow"] == samples["flow"].iloc[0]]
        times, values = samples["t_s"].to_numpy(float), samples["value"].to_numpy(float)
        times, values = np.append(times, _end_s(run, point, plot)), np.append(values, values[-1])
        axis.plot(times, values, color=INK, lw=1.1, ls=(0, (4, 2)), drawstyle="steps-post", zorder=4)
    elif labels.is_number(fixed) and point.params.get("scheme") != "drop_tail":
        axis.axhline(float(fixed), color=INK, lw=1.1, ls=(0, (4, 2)), zorder=4)
    else:
        return
    legend.line(f"{labels.series_name(limit or 'threshold').label} in force", INK, "", (0, (4, 2)))


def _measured_from(axis: Axes, run: RunFolder, plot: Series, legend: Legend) -> None:
    """Shade the warm-up, which no number counts."""
    warmup_s = run.warmup_s
    if warmup_s and warmup_s > (plot.from_s or 0.0) and plot.to_s is None:
        axis.axvspan(plot.from_s or 0.0, warmup_s, color=PALE, alpha=0.22, lw=0)
        legend.last("warm-up, not counted", Patch(facecolor=PALE, alpha=0.22))


def thin(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    """At most MAX_POINTS points that keep the lowest and the highest value of each stretch of time."""
    if len(times) <= MAX_POINTS:
        return times, values
    stretches = np.array_split(np.arange(len(times)), MAX_POINTS // 2)
    kept = sorted(
        {int(i) for s in stretches for i in (s[np.argmin(values[s])], s[np.argmax(values[s])])} | {0, len(times) - 1}
    )
    return times[kept], values[kept]


# ---- cdf: Distributions of transfers or flows


def draw_cdf(plot: Cdf, runs: Sequence[RunFolder], title: str) -> Figure:
    """Draw a `cdf` plot; the middle of each line is marked."""
    points = {run.runtime: run.select(plot.where) for run in runs}
    parts = split(list(points.values()), (plot.by,), None if plot.panel == "group" else plot.panel)
    tables = {run.runtime: _values(plot, run, points[run.runtime], parts) for run in runs}
    everything = pd.concat([table for table in tables.values() if not table.empty] or [pd.DataFrame()])
    values_of_panel: list[str] = [] if everything.empty else ordered(everything["panel"])
    columns = min(2, len(values_of_panel))
    row_in = 2.5 if len(values_of_panel) > columns else 3.3
    legend = Legend()
    if not 0 < len(values_of_panel) <= PANELS_MAX:
        few = "no finished transfer, or no run, matches this plot"
        return without_data(f"{len(values_of_panel)} panels are too many" if values_of_panel else few, title)
    figure, axes = panels(len(values_of_panel), columns, row_in, sharex=True, sharey=True)
    bys = ordered(everything["by"])
    chosen = colours(map(str, bys))
    name = TRANSFER_METRICS.get(plot.metric) if _is_per_transfer(plot) else None
    name = name or labels.name_of(plot.metric)
    for index, (axis, panel) in enumerate(zip(axes, values_of_panel, strict=True)):
        for by in bys:
            for runtime, table in tables.items():
                if table.empty:
                    continue
                mine = table[(table["by"] == by) & (table["panel"] == panel)]
                values = np.sort(mine["value"].to_numpy(float)) * name.scale
                if not len(values):
                    continue
                style = mark(runtime, len(runs))
                shares = np.arange(1, len(values) + 1) / len(values) * 100
                step = max(1, len(values) // MAX_POINTS)
                kept = np.unique(np.append(np.arange(0, len(values), step), len(values) - 1))
                axis.plot(values[kept], shares[kept], color=chosen[str(by)], ls=style.linestyle, drawstyle="steps-post")
                middle = float(np.median(values))
                face = chosen[str(by)] if style.filled else "white"
                axis.plot([middle], [50], ls="", marker="o", color=chosen[str(by)], mfc=face, zorder=4)
                legend.line(labels.value_label(plot.by, by), chosen[str(by)])
        axis.set_title(panel)
        if plot.log_x:
            set_log_x(axis)
        axis.set_ylim(0, 101)
        if index % columns == 0:
            axis.set_ylabel(f"{'transfers' if _is_per_transfer(plot) else 'runs'} (%)")
        if index + columns >= len(axes):
            axis.set_xlabel(labels.axis_label(name))
            axis.tick_params(labelbottom=True)
    legend.runtimes([run.runtime for run in runs if not tables[run.runtime].empty])
    return finish(figure, legend, title)


def _is_per_transfer(plot: Cdf) -> bool:
    return plot.metric in ("completion_s", "bytes")


def _values(plot: Cdf, run: RunFolder, chosen: Sequence[Point], parts: Panels) -> pd.DataFrame:
    """Columns `value`, `by`, `panel` (its title) of every transfer (or run) of these points."""
    table = run.transfers if _is_per_transfer(plot) else run.runs
    points = {point.name: point for point in chosen}
    if table.empty or plot.metric not in table:
        return pd.DataFrame()
    table = table[table["point"].isin(list(points))]
    mine = [points[str(point)] for point in table["point"]]
    by = list(table["group"]) if plot.by == "group" else [point.params.get(plot.by) for point in mine]
    titles = [parts.title(parts.of(point)) for point in mine]
    if plot.panel == "group":
        titles = [", ".join(filter(None, each)) for each in zip(table["group"], titles, strict=True)]
    return pd.DataFrame({"value": list(table[plot.metric]), "by": by, "panel": titles}).dropna(subset=["value"])
