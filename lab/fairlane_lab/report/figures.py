# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false
"""From the `[[plots]]` of an experiment to pictures, in the grammar of plotnine: rows of data, layers of marks, panels."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import plotnine as p9
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from plotnine.exceptions import PlotnineWarning

from fairlane_lab.definition.judging import Bars, Cdf, Heat, Lines, Plot, Series
from fairlane_lab.definition.names import LIMIT_SERIES, TRANSFER_METRICS, Name, split_metric
from fairlane_lab.programs import of_programs
from fairlane_lab.report import labels
from fairlane_lab.report.run_folder import Point, RunFolder, open_run, ordered

mpl.use("Agg")

INK, MUTED, PALE, FRAME = "#1c1e22", "#6a7079", "#aeb4bd", "#d55e00"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#b8528f", "#e69f00", "#56b4e9", "#5b5f68", "#8a5a2b")
"""Okabe and Ito's colours (2008), purple darkened, yellow left out (it does not show on white), grey and brown added."""
FIXED = {
    "vegas": 0,
    "reno": 1,
    "newreno": 1,
    "drop-tail": 6,
    "vegas-linux": 5,
    "reno-linux": 4,
    "web": 3,
} | of_programs("colours")
"""Values that look the same in all pictures of all experiments: index into PALETTE."""
DASHES = {"sim": "solid", "kernel": "dotted", "Mininet": "dashed"}
SHADES = {"sim": 1.0, "kernel": 0.65, "Mininet": 0.35}
"""Lines and bars of the runtimes."""
SHAPES = "D*pd8"
"""Of the numbers of each paper."""

PNG_DPI = 150
Y_LETTERS = 34
WIDTH_IN = 8.0
"""At 100 dots an inch 800 pixels."""
PANELS_MAX = 24
OWN_SCALE = 3.0
"""Panels whose values differ by more than this factor do not share an axis."""
MAX_POINTS = 1200
"""Of a line over time, and of a distribution."""
MAX_LINES = 8
"""More flows than this are drawn as groups: their mean, and a band from the lowest to the highest."""
IN_FORCE = " in force"
"""Ends the label of a limit over the queues that it limits."""
ENDS = ["y", "lo", "hi"]
_STEPPED = {"cwnd_packets", "ssthresh_packets", "queue_packets", *LIMIT_SERIES}


class NothingToDrawError(ValueError):
    """Why a picture is empty; the text stands in it."""


def make_plots(folder: Path) -> list[Path]:
    """Write `plots/<name>.png` and `.svg` into a run folder for each of its plots; returns the paths.

    Raises RunFolderError when the folder is no run folder of the lab, RunError where a table is damaged.
    """
    run = open_run(folder)
    written: list[Path] = []
    for plot in run.definition.plots:
        (folder / "plots").mkdir(exist_ok=True)
        figure = draw(plot, [run], f"{plot.title} · {labels.value_label('runtime', run.runtime)}")
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
            path = folder / "plots" / f"{plot.name}{suffix}"
            save(figure, path, metadata)
            written.append(path)
        plt.close(figure)
    return written


def save(figure: Figure, path: Any, metadata: Mapping[str, str | None], kind: str | None = None) -> None:
    """Write a picture; the same one gives the same bytes."""
    with plt.rc_context({"svg.hashsalt": "fairlane", "svg.fonttype": "none", "path.simplify_threshold": 0.6}):
        figure.savefig(path, format=kind, dpi=PNG_DPI, facecolor="white", metadata=metadata)


def draw(plot: Plot, runs: Sequence[RunFolder], title: str = "") -> Figure:
    """One plot of one run, or of the same experiment in several runtimes. The caller closes the figure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlotnineWarning)  # a scale that a picture does not use, or sets anew
        try:
            return (picture(plot, runs) + p9.labs(title=title or None)).draw()
        except NothingToDrawError as error:
            empty = p9.annotate("text", x=0, y=0, label=str(error), color=MUTED)
            return (p9.ggplot() + empty + p9.theme_void() + p9.theme(figure_size=(WIDTH_IN, 3.3))).draw()


def picture(plot: Plot, runs: Sequence[RunFolder]) -> p9.ggplot:
    """A plot as data and layers. Raises NothingToDrawError where no data matches it, or more than a reader can tell apart."""
    kinds: dict[str, Any] = {"bars": _bars, "lines": _lines, "series": _series, "cdf": _cdf, "heat": _heat}
    return kinds[plot.kind](plot, runs)


def draw_ratios(rows: Iterable[tuple[str, str, str, str, float, float]]) -> Figure:
    """Measured numbers over those of the papers, a row of dots for each experiment. The caller closes the figure.

    `rows`: experiment, point, metric, runtime, the paper's value, the measured one.
    """
    columns = ["experiment", "point", "metric", "runtime", "paper", "measured"]
    data = pd.DataFrame(rows, columns=columns).query("paper > 0 and measured > 0")
    shown = [labels.value_label("runtime", each) for each in data["runtime"]]
    data = data.assign(panel="", runtime="", label=shown, y=1.0, ratio=data["measured"] / data["paper"])
    data = _in_order(data.sort_values("label", key=lambda each: each.map([*DASHES].index), kind="stable"))
    names = sorted(set(data["experiment"]), reverse=True)
    return _chart(
        data,
        p9.aes("ratio", "experiment", color="label"),
        ("measured / paper", "", ()),
        p9.geom_vline(xintercept=1, color=PALE),
        p9.geom_jitter(width=0, height=0.25, random_state=1, size=1.4, alpha=0.7),
        p9.scale_y_discrete(limits=names),
        row_in=0.26 * len(names) + 0.6,
    ).draw()


def colours(values: Iterable[str]) -> dict[str, str]:
    """A colour for each value, none twice: the fixed ones first, the rest in the palette's order; a scale of colours where there are more."""
    names = list(dict.fromkeys(values))
    if len(names) > len(PALETTE):
        shades = mpl.colormaps["viridis"]
        return {name: to_hex(shades(0.95 * place / (len(names) - 1))) for place, name in enumerate(names)}
    fixed = {PALETTE[FIXED[name]]: name for name in reversed(names) if name in FIXED}
    free = (colour for colour in PALETTE if colour not in fixed)
    chosen = {name: colour for colour, name in fixed.items()}
    return {name: chosen.get(name) or next(free) for name in names}


def _need_own_scales(data: pd.DataFrame) -> bool:
    """Whether on one y axis some panel would be flat."""
    tops = data.groupby("panel", observed=True)["y"].max()
    return bool(tops.max() > OWN_SCALE * tops.min())


def _chart(
    data: pd.DataFrame,
    marks: p9.aes,
    about: tuple[str, str, Iterable[str]],
    *layers: Any,
    row_in: float = 2.7,
    columns: int = 2,
    own: bool = False,
) -> p9.ggplot:
    """A picture: its data in order, what all pictures share (panels, the marks of labels and runtimes, a line of notes), and its layers.

    `about`: names of both axes, and notes. `own`: whether each panel has a y axis of its own.
    """
    panels, names, runtimes = (list(data[column].cat.categories) for column in ("panel", "label", "runtime"))
    columns = min(columns, len(panels))
    x, y, notes = about
    limits = [name for name in names if name.endswith(IN_FORCE)]
    chosen = colours(name for name in names if name not in limits) | dict.fromkeys(limits, INK)
    of_labels: Any
    of_runtimes: Any
    of_labels, of_runtimes = ("legend" if len(found) > 1 else None for found in (names, runtimes))
    dashes, shades = (each if len(runtimes) > 1 else dict.fromkeys(each, each["sim"]) for each in (DASHES, SHADES))
    return (
        p9.ggplot(data, marks)
        + p9.facet_wrap("panel", ncol=columns, scales="free_y" if own else "fixed")
        + p9.scale_color_manual(chosen, guide=of_labels)
        + p9.scale_fill_manual(chosen, guide=of_labels)
        + p9.scale_linetype_manual(dashes, guide=of_runtimes)
        + p9.scale_alpha_manual(shades, guide=of_runtimes)
        + p9.labs(x=x, y=fill(f"{y}, own scales" if own and y else y, Y_LETTERS), caption="; ".join(notes) or None)
        + p9.theme_minimal(base_size=10)
        + p9.theme(
            figure_size=(WIDTH_IN, -(-len(panels) // columns) * row_in + 0.6),
            text=p9.element_text(color=INK),
            legend_position="top",
            legend_title=p9.element_blank(),
            panel_grid_minor=p9.element_blank(),
            strip_text=p9.element_text(weight="bold", ha="left") if any(panels) else p9.element_blank(),
            plot_title=p9.element_text(weight="bold", ha="left"),
            plot_caption=p9.element_text(color=MUTED),
        )
        + list(layers)
    )


# ---- which points share a panel


class _Panels:
    """Points that differ in a parameter that a plot shows in no other way have panels of their own: they never share a bar, a line or a cell."""

    def __init__(self, runs: Sequence[RunFolder], plot: Plot, shown: Sequence[str | None], panel: str | None) -> None:
        """`shown`: parameters that the plot shows otherwise; `panel` has panels in any case."""
        points = [(run.runtime, point) for run in runs for point in run.select(plot.where)]
        if not points:
            raise NothingToDrawError("no point of the run matches this plot")
        params = pd.DataFrame([{**point.params, "": runtime} for runtime, point in points]).astype(str)
        self.names = [panel] if panel else []

        def mixed(*names: str) -> list[str]:
            """The parameters in which points of one runtime differ although all that are shown are the same."""
            told = [name for name in {"", *shown, *self.names, *names} if name in params]
            values = params.groupby(told).nunique().max()
            return [str(name) for name in values.index[values > 1]]

        while left := mixed():
            # One that tells all apart (a case) says more than all that change with it.
            self.names.append(next((name for name in left if not mixed(name)), left[0]))
        if (count := len({self.title(point) for _, point in points})) > PANELS_MAX:
            names = ", ".join(labels.name_of(name).label for name in self.names)
            raise NothingToDrawError(f"{count} panels of {names} are too many: choose points with `where`")

    def title(self, point: Point) -> str:
        """`buffer 20`."""
        return ", ".join(labels.setting_label(name, point.params.get(name)) for name in self.names)


def _in_order(data: pd.DataFrame) -> pd.DataFrame:
    """The rows with categories in the order in which they first came, as panels and legend show them."""
    return data.assign(
        **{name: pd.Categorical(data[name], ordered(data[name])) for name in ("panel", "label", "runtime")}
    )


# ---- bars, lines and fields: metrics of points


def _measured(
    plot: Bars | Lines | Heat, runs: Sequence[RunFolder], by: str | None, metrics: Sequence[str]
) -> pd.DataFrame:
    """A row for each metric of a point, with its spread (NaN is infinite), and one for each value that a paper has for it, with its `source`; in the units of `quantity`."""
    panels = _Panels(runs, plot, (plot.x, by, *([plot.y] if isinstance(plot, Heat) else ())), plot.panel)
    named = labels.value_label if isinstance(plot, Heat) else labels.setting_label  # an axis has its name beside it
    rows: list[dict[str, Any]] = []
    for run in runs:
        for point, metric in itertools.product(run.select(plot.where), metrics):
            group = split_metric(metric)[1]
            label = named(by, point.params.get(by)) if by else group or labels.name_of(metric).label
            where = {"panel": panels.title(point), "metric": metric, "label": label, "x": _at(point, plot.x)}
            where |= {"runtime": labels.value_label("runtime", run.runtime), "rate": point.params.get("rate_bps")}
            if spread := point.get(metric):
                ends = {"y": spread.value, "lo": spread.lo, "hi": spread.hi}
                ends = {end: value if math.isfinite(value) else math.nan for end, value in ends.items()}
                never = labels.never_text(spread.never, spread.runs) if spread.never else ""
                rows.append({**where, **ends, "is_range": spread.is_range, "source": None, "never": never})
            paper = run.paper_values(point, metric).items() if getattr(plot, "paper", True) else ()
            rows += [{**where, "y": value, "source": source or "paper"} for source, value in paper]
    data = pd.DataFrame(rows)
    if data.empty or data["source"].notna().all():
        raise NothingToDrawError("no point of the run matches this plot")
    largest = data[data["source"].isna()].groupby("metric")["y"].max()
    return _scaled(data, labels.rate_names({metric: float(largest.get(metric, 0.0)) for metric in metrics}))


def _scaled(data: pd.DataFrame, names: Mapping[str, Name]) -> pd.DataFrame:
    """Values and their ends in the units of their metrics' names, which are `quantity` without the group."""
    told = {each: labels.axis_label(name).replace(f", {split_metric(each)[1]} (", " (") for each, name in names.items()}
    scale = data["metric"].map({metric: name.scale for metric, name in names.items()})
    return data.assign(quantity=data["metric"].map(told), scale=scale, **data[ENDS].mul(scale, axis=0))


def _at(point: Point, x: str) -> Any:
    """Where a point lies on the x axis: its parameter, or its metric as it is shown."""
    measured = None if x in point.params else point.get(x)
    return measured.value * labels.name_of(x).scale if measured else point.params.get(x)


def _paper(data: pd.DataFrame, **filled: Any) -> list[Any]:
    """Marks for the numbers of each paper."""
    rows = data[data["source"].notna()]
    shapes = dict(zip(ordered(rows["source"]), SHAPES * len(rows), strict=False))
    style = {"color": INK, "size": 2} | ({} if filled else {"fill": "white"})
    return [p9.geom_point(p9.aes(shape="source", **filled), rows, **style), p9.scale_shape_manual(shapes)] * bool(
        shapes
    )


def _axis_of(parameter: str) -> str:
    return "" if parameter in ("case", "control") else labels.axis_label(labels.name_of(parameter))


def _whiskers(data: pd.DataFrame) -> list[str]:
    """What the ends of spreads are."""
    wide = data[data["hi"] > data["lo"]]
    texts = {True: "lowest to highest run", False: "95 % confidence"}
    return [f"ranges: {' or '.join(texts[bool(each)] for each in wide['is_range'].unique())}"] if len(wide) else []


def _gaps(data: pd.DataFrame) -> list[str]:
    """What is not drawn."""
    return ["gaps: in some runs it never came"] * bool(data["y"].isna().any())


def _bars(plot: Bars, runs: Sequence[RunFolder]) -> p9.ggplot:
    metrics = [plot.metric]
    if plot.by == "group":
        there = {metric for run in runs for point in run.points for metric in point.metrics}
        named = ordered(f"{plot.metric}[{group}]" for run in runs for group in run.groups)
        others = sorted(metric for metric in there.difference(named) if metric.startswith(f"{plot.metric}["))
        metrics = [metric for metric in [*named, *others] if metric in there]
    data = _measured(plot, runs, None if plot.by == "group" else plot.by, metrics)
    quantity = data["quantity"].iloc[0]
    if plot.metric.endswith("_bps") and data["rate"].nunique(dropna=False) > 1:
        data[ENDS] = data[ENDS].mul(100 / (data["scale"] * data["rate"]), axis=0)
        quantity = f"{labels.name_of(plot.metric).label} (% of the link's rate)"
    xs, names, runtimes = (ordered(data[column]) for column in ("x", "label", "runtime"))
    width = 0.8 / (len(names) * len(runtimes))
    slot = data["label"].map(names.index) * len(runtimes) + data["runtime"].map(runtimes.index)
    data["at"] = data["x"].map(xs.index) - 0.4 + width * (slot + 0.5)
    data = _in_order(data)
    bars = data[data["source"].isna()]
    never = bars[bars["never"] != ""].fillna({"y": 0})
    if len(names) > 1:
        never = never.assign(never=never["label"].astype(str) + ": " + never["never"])
    texts = [labels.value_label(plot.x, x) for x in xs]
    room = 90 / min(2, data["panel"].nunique())
    tilted = p9.element_text(rotation=40, ha="right") if sum(map(len, texts)) > room else p9.element_text()
    return _chart(
        bars,
        p9.aes("at", "y"),
        (_axis_of(plot.x), quantity, _whiskers(bars)),
        p9.geom_col(p9.aes(fill="label", alpha="runtime"), bars[bars["y"].notna()], width=width * 0.9),
        p9.geom_errorbar(p9.aes(ymin="lo", ymax="hi"), bars[bars["hi"] > bars["lo"]], width=width * 0.5, color=INK),
        *[p9.geom_text(p9.aes(label="never"), never, angle=90, va="bottom", size=7, color=INK)] * bool(len(never)),
        *_paper(data),
        p9.scale_x_continuous(breaks=range(len(xs)), labels=texts),
        p9.theme(panel_grid_major_x=p9.element_blank(), axis_text_x=tilted),
        own=_need_own_scales(bars),
    )


def _lines(plot: Lines, runs: Sequence[RunFolder]) -> p9.ggplot:
    metrics = [plot.y] if isinstance(plot.y, str) else list(plot.y)
    data = _measured(plot, runs, plot.by, metrics)
    shown = ordered(data["quantity"])
    if len(shown) > 1:
        data["panel"] = (data["panel"] + "\n" + data["quantity"]).str.strip()
    data, is_number = _in_order(data), data["x"].map(labels.is_number)
    words, data = data[~is_number & data["source"].isna()], data[is_number].astype({"x": float})
    if any(plot.x in point.params for run in runs for point in run.points):
        data["x"] *= labels.name_of(plot.x).scale
    measured = data[data["source"].isna()]
    xs = ordered(measured["x"])
    notes = [
        *(_whiskers(measured) if plot.band else ()),
        *_gaps(measured),
        *(f"level lines: {labels.setting_label(plot.x, each)}" for each in ordered(words["x"])),
    ]
    near_all = data["quantity"].str.endswith(("%)", " %")) & (
        data.groupby("panel", observed=True)["y"].transform("min") > 90
    )
    return _chart(
        measured,
        p9.aes("x", "y", group="label.astype(str) + runtime.astype(str)"),
        (_axis_of(plot.x), shown[0] if len(shown) == 1 else "", notes),
        p9.geom_ribbon(p9.aes(ymin="lo", ymax="hi", fill="label"), measured if plot.band else measured[:0], alpha=0.16),
        p9.geom_line(p9.aes(color="label", linetype="runtime"), size=0.8),
        p9.geom_point(p9.aes(color="label"), size=1.6),
        p9.geom_hline(p9.aes(yintercept="y", color="label"), words, linetype="dotted"),
        *_paper(data, fill="label"),
        *([p9.scale_y_log10()] if plot.log_y else [p9.geom_blank(data=data[~near_all].assign(y=0))]),
        *([p9.scale_x_log10()] if plot.log_x else [p9.scale_x_continuous(breaks=xs)] if len(xs) == 1 else []),
        row_in=2.35,
        columns=max(1, len(shown) % 4) if len(shown) > 1 and data["panel"].nunique() > len(shown) else 2,
        own=len(shown) > 1 or _need_own_scales(measured),
    )


def _heat(plot: Heat, runs: Sequence[RunFolder]) -> p9.ggplot:
    data = _measured(plot, runs, plot.y, [plot.metric])
    xs = ordered(data["x"])
    columns = [labels.value_label(plot.x, x) for x in (sorted(xs) if all(map(labels.is_number, xs)) else xs)]
    data["x"] = [labels.value_label(plot.x, x) for x in data["x"]]
    if len(runs) > 1:
        data["panel"] = [", ".join(filter(None, each)) for each in zip(data["panel"], data["runtime"], strict=True)]
    data = _in_order(data)
    cells = data[data["source"].isna()]
    framed = data[data["source"].notna()]
    middle, rows = (cells["y"].min() + cells["y"].max()) / 2, ordered(data["label"])
    nothing = cells["y"].abs() < cells["y"].abs().max() / 1e6
    cells = cells.assign(
        text=[f"{y:.0f}" if abs(y) >= 9.95 else labels.number(y, 2) for y in cells["y"].mask(nothing, 0.0)],
        # Never black or white itself, which a dark page would turn round.
        ink=np.where(cells["y"] < middle, "#fdfdfd", "#111111"),
    )
    notes = [cells["quantity"].iloc[0], *["framed: the paper gives a value"] * bool(len(framed)), *_gaps(cells)]
    return _chart(
        cells,
        p9.aes("x", "label"),
        (_axis_of(plot.x), _axis_of(plot.y), notes),
        p9.geom_tile(p9.aes(fill="y")),
        p9.geom_text(p9.aes(label="text", color="ink"), size=8),
        p9.geom_tile(data=framed, fill="none", color=FRAME, size=0.9, width=0.9, height=0.9),
        p9.scale_x_discrete(limits=columns),
        p9.scale_y_discrete(limits=rows[::-1]),
        p9.scale_color_identity(),
        # Even in lightness for the colour-blind (Nuñez, Anderton, Renslow 2018).
        p9.scale_fill_cmap("cividis", guide=None),
        p9.theme(panel_grid=p9.element_blank()),
        row_in=0.36 * len(rows) + 0.75,
        columns=2 if len(columns) <= 10 else 1,
    )


# ---- over time


def _series(plot: Series, runs: Sequence[RunFolder]) -> p9.ggplot:
    metrics = plot.metrics
    title = _Panels(runs, plot, (), plot.panel).title if plot.panel else name_beside
    parts = [line for run in runs if not run.series.empty for line in _over_time(run, plot, metrics, title)]
    if not parts:
        raise NothingToDrawError("the run has no series for this plot")
    data = pd.concat(parts)
    names = {
        each: labels.rate_name(labels.series_name(each), data["y"][data["metric"] == each].max()) for each in metrics
    }
    data = _scaled(data, names)
    if len(metrics) > 1:
        data["panel"] = (data["panel"] + "\n" if data["panel"].nunique() > 1 else "") + data["quantity"]
    data = _in_order(data)
    rows, columns = (data[name].nunique() for name in ("panel", "runtime"))
    stepped, several_flows = data["metric"].isin(_STEPPED), data["hi"] > data["lo"]
    own = len(metrics) > 1 or _need_own_scales(data)
    from_s, to_s = plot.from_s or 0.0, plot.to_s or np.inf
    warmup_s = min(max(from_s, runs[0].warmup_s or 0.0), to_s)
    changes = [at_s for each in runs[0].definition.changes if labels.is_number(at_s := each.get("at_s"))]
    changes = [at_s for at_s in changes if from_s <= at_s <= to_s]
    notes = ["grey: warm-up, not counted"] * (warmup_s > from_s) + ["dotted: the network changes"] * bool(changes)
    notes += ["bands: lowest to highest flow of a group"] * bool(several_flows.any())
    notes += ["empty: not measured there"] * (len(data[["panel", "runtime"]].drop_duplicates()) < rows * columns)
    return _chart(
        data,
        p9.aes("x", "y", color="label"),
        ("time (s)", data["quantity"].iloc[0] if len(metrics) == 1 else "", notes),
        p9.annotate("rect", xmin=from_s, xmax=warmup_s, ymin=0, ymax=np.inf, fill=PALE, alpha=0.25),
        *[p9.geom_vline(xintercept=at_s, color=MUTED, linetype="dotted") for at_s in changes],
        p9.geom_ribbon(p9.aes(ymin="lo", ymax="hi", fill="label"), data[several_flows], alpha=0.15, color="none"),
        p9.geom_step(data=data[stepped], size=0.5),
        p9.geom_line(data=data[~stepped], size=0.5),
        p9.expand_limits(y=0),
        p9.facet_grid(
            "panel" if rows > 1 else None, "runtime" if columns > 1 else None, scales="free_y" if own else "fixed"
        ),
        row_in=3.2 if rows == 1 else 1.9,
        columns=1,
        own=own,
    )


def name_beside(point: Point) -> str:
    """The name of a point as it stands beside a panel: in lines that are no longer than a panel is high."""
    return point.name if len(point.name) <= 22 else point.name.replace("/", "\n")


def _over_time(
    run: RunFolder, plot: Series, metrics: list[str], title: Callable[[Point], str]
) -> Iterator[pd.DataFrame]:
    """Lines of few samples: x, y, and the lowest and highest flow of a group as lo and hi; label is a flow, a group, a port or a limit."""
    points = {point.name: point for point in run.select(plot.where)}
    table = run.series[run.series["point"].isin(list(points)) & (run.series["repeat"] == plot.repeat)]
    table = table[table["t_s"].between(plot.from_s or 0.0, plot.to_s or np.inf)]
    groups = {} if run.flows.empty else dict(zip(run.flows["flow"], run.flows["group"], strict=True))
    there: list[str] = ordered(table["flow"])
    flows = [flow for flow in there if flow in groups]
    grouped = plot.by == "group" or len(flows) > MAX_LINES or len({groups[flow] for flow in flows}) == len(flows)
    texts = {flow: f"port {flow}" if flow else "the port" for flow in there}
    texts |= {flow: groups[flow] if grouped else flow for flow in flows}
    for (name, metric), mine in table.groupby(["point", "metric"], sort=False):
        if metric not in metrics:
            continue
        samples, mine = table[table["point"] == name], mine.assign(label=mine["flow"].map(texts))
        if mine["flow"].isin(flows).any():  # what waits at the port is drawn where flows have no count of their own
            mine = mine[mine["flow"].isin(flows)]
        if metric == "queue_packets":
            mine = pd.concat([mine, _limit(samples, points[name])])
        for label, line in mine.groupby("label", sort=False):
            xy = _thinned(line, samples["t_s"].max() if metric in _STEPPED else None)
            runtime = labels.value_label("runtime", run.runtime)
            yield xy.assign(label=label, metric=metric, panel=title(points[name]), runtime=runtime)


def _limit(samples: pd.DataFrame, point: Point) -> pd.DataFrame:
    """Samples of the limit over the queues that it limits; a fixed one holds from the first instant."""
    limits = samples[samples["metric"].isin(LIMIT_SERIES)]
    fixed = point.params.get("threshold") if point.params.get("scheme") != "drop_tail" else None
    if limits.empty and labels.is_number(fixed):
        limits = samples.head(1).assign(metric="threshold", value=float(fixed))
    limits = limits.merge(limits.head(1)[["metric", "flow"]])
    return limits.assign(label=[f"{labels.series_name(metric).label}{IN_FORCE}" for metric in limits["metric"]])


def _thinned(samples: pd.DataFrame, until_s: float | None) -> pd.DataFrame:
    """One line of few samples; with `until_s` the last value holds to then."""
    if samples["flow"].nunique() > 1:
        at = samples.groupby(samples["t_s"].round(3))["value"].agg(["mean", "min", "max"])
        at = at.iloc[:: max(1, len(at) // MAX_POINTS)]
        return pd.DataFrame({"x": at.index, "y": at["mean"], "lo": at["min"], "hi": at["max"]})
    line = thin(samples[["t_s", "value"]].set_axis(["x", "y"], axis=1))
    if until_s is not None and line["x"].iloc[-1] < until_s:
        line = pd.concat([line, line.tail(1).assign(x=until_s)])
    return line.assign(lo=line["y"], hi=line["y"])


def thin(line: pd.DataFrame) -> pd.DataFrame:
    """At most MAX_POINTS rows (x, y) that keep the lowest and the highest value of each stretch, and both ends."""
    if len(line) <= MAX_POINTS:
        return line
    line = line.reset_index(drop=True)
    stretches = line["y"].groupby(line.index * (MAX_POINTS // 2) // len(line))
    return line.loc[sorted({0, len(line) - 1, *stretches.idxmin(), *stretches.idxmax()})]


# ---- distributions of transfers or runs


def _cdf(plot: Cdf, runs: Sequence[RunFolder]) -> p9.ggplot:
    panels = _Panels(runs, plot, (plot.by,), None if plot.panel == "group" else plot.panel)
    is_of_transfers = plot.metric in TRANSFER_METRICS and (
        "group" in (plot.by, plot.panel) or any(len(run.transfers.get(plot.metric, ())) for run in runs)
    )
    name = TRANSFER_METRICS[plot.metric] if is_of_transfers else labels.name_of(plot.metric)
    parts: list[pd.DataFrame] = []
    for run in runs:
        table = run.transfers if is_of_transfers else run.runs
        for point in run.select(plot.where) if plot.metric in table else ():
            mine = table[table["point"] == point.name]
            if name.never_beside in mine:
                never = mine[plot.metric].isna() & mine[name.never_beside].notna()
                mine = mine.assign(**{plot.metric: mine[plot.metric].mask(never, np.inf)})
            mine = mine.dropna(subset=[plot.metric])
            x = mine[plot.metric] * name.scale
            if is_of_transfers and "complete" in mine:
                x = x.mask(mine["complete"].eq(False), np.inf)  # the run ended before the transfer
            titles = [f"{group}, {panels.title(point)}".rstrip(", ") for group in mine.get("group", ())]
            parts.append(
                mine.assign(
                    x=x,
                    panel=titles if plot.panel == "group" else panels.title(point),
                    label=mine["group"]
                    if plot.by == "group"
                    else labels.setting_label(plot.by, point.params.get(plot.by)),
                    runtime=labels.value_label("runtime", run.runtime),
                )
            )
    if not any(np.isfinite(part["x"]).any() for part in parts):
        raise NothingToDrawError("no finished transfer, or no run, matches this plot")
    data = _in_order(pd.concat(parts))
    lines = data.groupby(["panel", "label", "runtime"], observed=True)["x"]
    middles = lines.median().reset_index().assign(y=50)
    data["y"] = lines.rank("first", pct=True) * 100
    data, middles = (each[np.isfinite(each["x"])] for each in (data, middles))
    return _chart(
        data.sort_values("x", kind="stable"),
        p9.aes("x", "y", color="label", linetype="runtime"),
        (labels.axis_label(name), "transfers (%)" if is_of_transfers else "runs (%)", ["points: medians"]),
        p9.geom_step(size=0.8),
        p9.geom_point(data=middles, size=2),
        *([p9.scale_x_log10()] if plot.log_x else []),
        row_in=3.0,
    )
