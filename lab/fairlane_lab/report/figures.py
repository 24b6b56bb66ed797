# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false
"""From the `[[plots]]` of an experiment to pictures, in the grammar of plotnine: rows of data, layers of marks, panels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
import plotnine as p9
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from plotnine.exceptions import PlotnineWarning

from fairlane_lab.definition.judging import Bars, Cdf, Heat, Lines, Plot, Series
from fairlane_lab.definition.names import LIMIT_SERIES, RUNTIMES, TRANSFER_METRICS, Name
from fairlane_lab.programs import known_parts
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
    "drop_tail": 6,
    "drop-tail": 6,
    "vegas-linux": 5,
    "reno-linux": 4,
    "web": 3,
    "interactive": 4,
    **{value: colour for part in known_parts() for value, colour in part.colours.items()},
}
"""Values that look the same in all pictures of all experiments: index into PALETTE."""
DASHES = {"sim": "solid", "kernel": "dotted", "mininet": "dashed"}
SHADES = {"sim": 1.0, "kernel": 0.65, "mininet": 0.35}
"""Lines and bars of the runtimes."""
SHAPES = "os^vPXh<>"
PAPER_SHAPES = {"D": "diamonds", "*": "stars", "p": "pentagons", "d": "thin diamonds", "8": "octagons"}

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
Floats = npt.NDArray[np.float64]
IN_FORCE = " in force"
"""Ends the label of a limit over the queues that it limits."""
ENDS = ["y", "lo", "hi"]
_STEPPED = {"cwnd_packets", "ssthresh_packets", "queue_packets", *LIMIT_SERIES}


class NothingToDrawError(ValueError):
    """Why a picture is empty; the text stands in it."""


def make_plots(folder: Path) -> list[Path]:
    """Write `plots/<name>.png` and `.svg` into a run folder for each of its plots; returns the paths.

    Raises RunFolderError when the folder is no run folder of the lab.
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
    columns = ["experiment", "point", "metric", "label", "paper", "measured"]
    data = pd.DataFrame(rows, columns=columns).query("paper > 0 and measured > 0")
    data = data.assign(panel="", runtime="", ratio=data["measured"] / data["paper"])
    data = _in_order(data.sort_values("label", key=lambda each: each.map(RUNTIMES.index), kind="stable"), "label")
    data["label"] = data["label"].cat.rename_categories(lambda each: labels.value_label("runtime", each))
    data = _in_order(data.sort_index(), "experiment", "panel", "runtime")
    names = list(data["experiment"].cat.categories)
    return _chart(
        data,
        p9.aes("ratio", "experiment", color="label", fill="label", shape="label"),
        p9.geom_vline(xintercept=1, color=PALE),
        p9.geom_jitter(width=0, height=0.25, random_state=1, size=1.4, alpha=0.7),
        p9.scale_y_discrete(limits=names[::-1]),
        *_layout(data.assign(y=1.0), "measured / paper", "", [], 0.26 * len(names) + 0.6, own=False),
    ).draw()


def colours(values: Iterable[str]) -> dict[str, str]:
    """A colour for each value, none twice: the fixed ones first, the rest in the palette's order; a scale of colours where there are more."""
    names = list(dict.fromkeys(values))
    if len(names) > len(PALETTE):
        shades = mpl.colormaps["viridis"]
        return {name: to_hex(shades(0.95 * place / (len(names) - 1))) for place, name in enumerate(names)}
    chosen: dict[str, str] = {}
    for name in names:
        if name in FIXED and PALETTE[FIXED[name]] not in chosen.values():
            chosen[name] = PALETTE[FIXED[name]]
    free = (colour for colour in PALETTE if colour not in chosen.values())
    return {name: chosen.get(name) or next(free) for name in names}


def _need_own_scales(data: pd.DataFrame) -> bool:
    """Whether on one y axis some panel would be flat."""
    tops = data.groupby("panel", observed=True)["y"].max()
    return bool(tops.max() > OWN_SCALE * tops.min())


def _layout(
    data: pd.DataFrame, x: str, y: str, notes: Iterable[str], row_in: float, columns: int = 2, own: bool | None = None
) -> list[Any]:
    """What all pictures share: panels, the marks of labels and runtimes, names of axes, a line of notes.

    `own`: whether each panel has a y axis of its own; None: where on one axis some would be flat.
    """
    panels, names, runtimes = (list(data[column].cat.categories) for column in ("panel", "label", "runtime"))
    columns = min(columns, len(panels))
    own = _need_own_scales(data) if own is None else own
    limits = [name for name in names if name.endswith(IN_FORCE)]
    chosen = colours(name for name in names if name not in limits) | dict.fromkeys(limits, INK)
    of_labels: Any
    of_runtimes: Any
    of_labels, of_runtimes = ("legend" if len(found) > 1 else None for found in (names, runtimes))
    # A runtime alone looks like sim.
    looks = {labels.value_label("runtime", each): each if len(runtimes) > 1 else "sim" for each in RUNTIMES}
    return [
        p9.facet_wrap("panel", ncol=columns, scales="free_y" if own else "fixed"),
        p9.scale_color_manual(chosen, guide=of_labels),
        p9.scale_fill_manual(chosen, guide=of_labels),
        p9.scale_shape_manual(dict(zip(names, SHAPES * len(names), strict=False)), guide=of_labels),
        p9.scale_linetype_manual({text: DASHES[look] for text, look in looks.items()}, guide=of_runtimes),
        p9.scale_alpha_manual({text: SHADES[look] for text, look in looks.items()}, guide=of_runtimes),
        p9.labs(x=x, y=fill(f"{y}, own scales" if own and y else y, Y_LETTERS), caption="; ".join(notes) or None),
        p9.theme_minimal(base_size=10),
        p9.theme(
            figure_size=(WIDTH_IN, -(-len(panels) // columns) * row_in + 0.6),
            text=p9.element_text(color=INK),
            legend_position="top",
            legend_title=p9.element_blank(),
            panel_grid_minor=p9.element_blank(),
            strip_text=p9.element_text(weight="bold", ha="left") if any(panels) else p9.element_blank(),
            plot_title=p9.element_text(weight="bold", ha="left"),
            plot_caption=p9.element_text(color=MUTED),
        ),
    ]


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


def _in_order(data: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The rows with categories in the order in which they first come, as panels and legend show them."""
    return data.assign(**{name: pd.Categorical(data[name], ordered(data[name])) for name in columns})


# ---- bars, lines and fields: metrics of points


def _measured(
    plot: Bars | Lines | Heat,
    runs: Sequence[RunFolder],
    panels: _Panels,
    metrics_of: Callable[[RunFolder, Point], Iterable[tuple[str, str]]],
) -> pd.DataFrame:
    """A row for each metric of a point, with its spread, and one for each value that a paper has for it, with its `source`."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        for point in run.select(plot.where):
            for label, metric in metrics_of(run, point):
                where = {"panel": panels.title(point), "metric": metric, "label": label, "x": _at(point, plot.x)}
                where |= {"runtime": labels.value_label("runtime", run.runtime), "rate": point.params.get("rate_bps")}
                if spread := point.get(metric):
                    ends = {"y": spread.value, "lo": spread.lo, "hi": spread.hi, "is_range": spread.is_range}
                    rows.append({**where, **ends, "source": None})
                paper = run.paper_values(point, metric).items() if getattr(plot, "paper", True) else ()
                rows += [{**where, "y": value, "source": source or "paper"} for source, value in paper]
    data = pd.DataFrame(rows)
    if data.empty or data["source"].notna().all():
        raise NothingToDrawError("no point of the run matches this plot")
    return _in_order(data, "panel", "label", "runtime")


def _scaled(data: pd.DataFrame, names: Mapping[str, Name]) -> pd.DataFrame:
    """Values and their ends in the units of their metrics' names."""
    scales = data["metric"].map({metric: name.scale for metric, name in names.items()})
    return data.assign(**data[ENDS].mul(scales, axis=0))


def _at(point: Point, x: str) -> Any:
    """Where a point lies on the x axis: its parameter, or its metric as it is shown."""
    measured = None if x in point.params else point.get(x)
    return measured.value * labels.name_of(x).scale if measured else point.params.get(x)


def _paper(data: pd.DataFrame, filled: p9.aes | None = None) -> tuple[list[Any], list[str]]:
    """Marks for the numbers of each paper, and what they are."""
    style: dict[str, Any] = {"color": INK, "size": 2, "show_legend": False} | ({} if filled else {"fill": "white"})
    shapes = dict(zip(ordered(data["source"].dropna()), [*PAPER_SHAPES] * len(data), strict=False))
    marks = [
        p9.geom_point(filled or p9.aes(), data[data["source"] == source], shape=shape, **style)
        for source, shape in shapes.items()
    ]
    return marks, [f"{PAPER_SHAPES[shape]}: {source}" for source, shape in shapes.items()]


def _chart(data: pd.DataFrame, marks: p9.aes, *layers: Any) -> p9.ggplot:
    return p9.ggplot(data, marks) + list(layers)


def _axis_of(parameter: str) -> str:
    return "" if parameter == "case" else labels.axis_label(labels.name_of(parameter))


def _plain(values: Sequence[Any]) -> list[str]:
    """Numbers of a logarithmic axis as people write them: 0.1, 1, 10, 100 k."""
    large = EngFormatter()
    return [large(value) if value >= 1e5 else f"{value:g}" for value in values]


def _whiskers(data: pd.DataFrame) -> list[str]:
    """What the ends of spreads are."""
    wide = data[data["hi"] > data["lo"]]
    texts = {True: "lowest to highest run", False: "95 % confidence"}
    return [f"ranges: {' or '.join(texts[bool(each)] for each in wide['is_range'].unique())}"] if len(wide) else []


def _bars(plot: Bars, runs: Sequence[RunFolder]) -> p9.ggplot:
    panels = _Panels(runs, plot, (plot.x, plot.by), plot.panel)

    def metrics_of(run: RunFolder, point: Point) -> list[tuple[str, str]]:
        if plot.by != "group":
            return [(labels.value_label(plot.by, point.params.get(plot.by)), plot.metric)]
        there = [labels.split_metric(metric) for metric in point.metrics]
        groups = [group for metric, group in there if group and metric == plot.metric]
        groups.sort(key=lambda group: run.groups.index(group) if group in run.groups else len(groups))
        return [(group, f"{plot.metric}[{group}]") for group in groups]

    data = _measured(plot, runs, panels, metrics_of)
    name = labels.name_of(plot.metric)
    is_share = plot.metric.endswith("_bps") and data["rate"].nunique(dropna=False) > 1
    data[ENDS] = data[ENDS].mul(100 / data["rate"] if is_share else name.scale, axis=0)
    xs, runtimes = ordered(data["x"]), list(data["runtime"].cat.categories)
    width = 0.8 / (len(data["label"].cat.categories) * len(runtimes))
    slot = data["label"].cat.codes * len(runtimes) + data["runtime"].cat.codes
    data["at"] = data["x"].map(xs.index) - 0.4 + width * (slot + 0.5)
    bars = data[data["source"].isna()]
    marks, notes = _paper(data)
    texts = [labels.value_label(plot.x, x) for x in xs]
    columns = min(2, len(data["panel"].cat.categories))
    tilted = p9.theme(axis_text_x=p9.element_text(rotation=40, ha="right"))
    return _chart(
        bars,
        p9.aes("at", "y"),
        p9.geom_col(p9.aes(fill="label", alpha="runtime"), width=width * 0.9),
        p9.geom_errorbar(p9.aes(ymin="lo", ymax="hi"), bars[bars["hi"] > bars["lo"]], width=width * 0.5, color=INK),
        *marks,
        p9.scale_x_continuous(breaks=range(len(xs)), labels=texts),
        *_layout(
            data,
            _axis_of(plot.x),
            f"{name.label} (% of the link's rate)" if is_share else labels.axis_label(name),
            [*_whiskers(bars), *notes],
            3.3 if columns == 1 else 2.7,
        ),
        p9.theme(panel_grid_major_x=p9.element_blank()),
        *([tilted] if sum(map(len, texts)) > 90 / columns else []),
    )


def _lines(plot: Lines, runs: Sequence[RunFolder]) -> p9.ggplot:
    panels = _Panels(runs, plot, (plot.x, plot.by), plot.panel)
    metrics = [plot.y] if isinstance(plot.y, str) else list(plot.y)
    bases = {labels.split_metric(metric)[0] for metric in metrics}

    def metrics_of(_run: RunFolder, point: Point) -> list[tuple[str, str]]:
        if plot.by is not None:
            return [(labels.value_label(plot.by, point.params.get(plot.by)), metric) for metric in metrics]
        return [(labels.split_metric(each)[1] or labels.name_of(each).label, each) for each in metrics]

    data = _measured(plot, runs, panels, metrics_of)
    largest = data[data["source"].isna()].groupby("metric")["y"].max()
    names = labels.rate_names({metric: float(largest.get(metric, 0.0)) for metric in metrics})
    # Metrics of one unit share a panel where nothing else tells lines apart.
    quantities = {
        metric: labels.axis_label(replace(name, label=labels.name_of(labels.split_metric(metric)[0]).label))
        if plot.by or len(bases) == 1 or not name.unit
        else name.unit
        for metric, name in names.items()
    }
    data = _scaled(data, names)
    shown = ordered(quantities[metric] for metric in metrics)
    if len(shown) > 1:
        data["panel"] = (data["panel"].astype(str) + "\n" + data["metric"].map(quantities)).str.strip()
        data = _in_order(data, "panel")
    is_number = data["x"].map(labels.is_number)
    words, data = data[~is_number & data["source"].isna()], data[is_number].astype({"x": float})
    measured = data[data["source"].isna()]
    marks, notes = _paper(data, p9.aes(fill="label"))
    notes += [f"level lines: {labels.setting_label(plot.x, word)}" for word in ordered(words["x"])]
    percent = data["metric"].isin([metric for metric, name in names.items() if name.unit == "%"])
    near_all = percent & (data.groupby("panel", observed=True)["y"].transform("min") > 90)
    return _chart(
        measured,
        p9.aes("x", "y", group="label.astype(str) + runtime.astype(str)"),
        p9.geom_ribbon(p9.aes(ymin="lo", ymax="hi", fill="label"), measured if plot.band else measured[:0], alpha=0.16),
        p9.geom_line(p9.aes(color="label", linetype="runtime"), size=0.8),
        p9.geom_point(p9.aes(color="label", fill="label", shape="label"), size=1.6),
        p9.geom_hline(p9.aes(yintercept="y", color="label"), words, linetype="dotted"),
        *marks,
        *([p9.scale_y_log10(labels=_plain)] if plot.log_y else [p9.geom_blank(data=data[~near_all].assign(y=0))]),
        *([p9.scale_x_log10(labels=_plain)] if plot.log_x else []),
        *_layout(
            data,
            _axis_of(plot.x),
            shown[0] if len(shown) == 1 else "",
            [*(_whiskers(measured) if plot.band else []), *notes],
            3.4 if len(data["panel"].cat.categories) == 1 else 2.35,
            1 if len(data["panel"].cat.categories) == len(shown) else len(shown) if 2 <= len(shown) <= 3 else 2,
            own=True if len(shown) > 1 else None,
        ),
    )


def _heat(plot: Heat, runs: Sequence[RunFolder]) -> p9.ggplot:
    panels = _Panels(runs, plot, (plot.x, plot.y), plot.panel)
    data = _measured(
        plot, runs, panels, lambda _run, p: [(labels.value_label(plot.y, p.params.get(plot.y)), plot.metric)]
    )
    name = labels.name_of(plot.metric)
    data["y"] *= name.scale
    if data["x"].map(labels.is_number).all():
        data = data.sort_values("x", kind="stable")
    data["x"] = [labels.value_label(plot.x, x) for x in data["x"]]
    data = _in_order(data, "x")
    columns = len(data["x"].cat.categories)
    if len(runs) > 1:
        data["panel"] = [", ".join(filter(None, each)) for each in zip(data["panel"], data["runtime"], strict=True)]
        data = _in_order(data, "panel")
    cells, framed = data[data["source"].isna()], data[data["source"].notna()]
    middle = (cells["y"].min() + cells["y"].max()) / 2
    cells = cells.assign(
        text=[f"{y:.0f}" if abs(y) >= 9.95 else labels.number(y, 2) for y in cells["y"]],
        # Never black or white itself, which a dark page would turn round.
        ink=np.where(cells["y"] < middle, "#fdfdfd", "#111111"),
    )
    rows = cells["label"].cat.categories
    return _chart(
        cells,
        p9.aes("x", "label"),
        p9.geom_tile(p9.aes(fill="y")),
        p9.geom_text(p9.aes(label="text", color="ink"), size=8),
        p9.geom_tile(data=framed, fill="none", color=FRAME, size=0.9, width=0.9, height=0.9),
        p9.scale_y_discrete(limits=list(rows)[::-1]),
        *_layout(
            cells,
            _axis_of(plot.x),
            _axis_of(plot.y),
            [labels.axis_label(name), *(["framed: the paper gives a value"] if len(framed) else [])],
            0.36 * len(rows) + 0.75,
            2 if columns <= 10 else 1,
            own=False,
        ),
        p9.scale_color_identity(),
        # Even in lightness for the colour-blind (Nuñez, Anderton, Renslow 2018).
        p9.scale_fill_cmap("cividis", guide=None),
        p9.theme(panel_grid=p9.element_blank()),
    )


# ---- over time


def _series(plot: Series, runs: Sequence[RunFolder]) -> p9.ggplot:
    metrics = [plot.metric] if isinstance(plot.metric, str) else list(plot.metric)
    title = _Panels(runs, plot, (), plot.panel).title if plot.panel else lambda point: point.name
    parts = [line for run in runs if not run.series.empty for line in _over_time(run, plot, metrics, title)]
    if not parts:
        raise NothingToDrawError("the run has no series for this plot")
    data = pd.concat(parts)
    names = {each: labels.series_name(each) for each in metrics}
    names = {each: labels.rate_name(name, data["y"][data["metric"] == each].max()) for each, name in names.items()}
    data = _scaled(data, names)
    quantities = data["metric"].map({metric: labels.axis_label(name) for metric, name in names.items()})
    if len(metrics) > 1:
        data["row"] = (data["row"] + "\n" + quantities) if data["row"].nunique() > 1 else quantities
    data = _in_order(data.assign(panel=data["row"]), "panel", "label", "runtime")
    rows, columns = (len(data[name].cat.categories) for name in ("panel", "runtime"))
    stepped, several_flows = data["metric"].isin(_STEPPED), data["hi"] > data["lo"]
    own, row_in = len(metrics) > 1 or _need_own_scales(data), 3.2 if rows == 1 else 1.75 if rows > 3 else 2.1
    from_s, to_s, warmup_s = plot.from_s or 0.0, plot.to_s or np.inf, runs[0].warmup_s or 0.0
    changes = [at_s for each in runs[0].definition.changes if labels.is_number(at_s := each.get("at_s"))]
    changes = [at_s for at_s in changes if from_s <= at_s <= to_s]
    warmup = [p9.annotate("rect", xmin=from_s, xmax=warmup_s, ymin=0, ymax=np.inf, fill=PALE, alpha=0.25)]
    warmup = warmup if warmup_s > from_s and plot.to_s is None else []
    notes = ["grey: warm-up, not counted"] * bool(warmup) + ["dotted: the network changes"] * bool(changes)
    notes += ["bands: lowest to highest flow of a group"] * bool(several_flows.any())
    notes += ["empty: not measured there"] * (len(data[["panel", "runtime"]].drop_duplicates()) < rows * columns)
    return _chart(
        data,
        p9.aes("x", "y", color="label"),
        *warmup,
        *[p9.geom_vline(xintercept=at_s, color=MUTED, linetype="dotted") for at_s in changes],
        p9.geom_ribbon(p9.aes(ymin="lo", ymax="hi", fill="label"), data[several_flows], alpha=0.15, color="none"),
        p9.geom_step(data=data[stepped], size=0.5),
        p9.geom_line(data=data[~stepped], size=0.5),
        p9.expand_limits(y=0),
        *_layout(data, "time (s)", quantities.iloc[0] if len(metrics) == 1 else "", notes, row_in, 1, own),
        p9.facet_grid(
            "panel" if rows > 1 else None, "runtime" if columns > 1 else None, scales="free_y" if own else "fixed"
        ),
    )


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
    ends_s = table.groupby("point")["t_s"].max()
    for name, point in points.items():
        samples = table[table["point"] == name]
        for metric in metrics:
            mine = samples[samples["metric"] == metric].assign(label=lambda rows: rows["flow"].map(texts))
            if mine["flow"].isin(flows).any():  # what waits at the port is drawn where flows have no count of their own
                mine = mine[mine["flow"].isin(flows)]
            if metric == "queue_packets" and len(mine):
                mine = pd.concat([mine, _limit(samples, point)])
            for label, line in mine.groupby("label", sort=False):
                xy = _thinned(line, ends_s[name] if metric in _STEPPED else None)
                runtime = labels.value_label("runtime", run.runtime)
                yield xy.assign(label=label, metric=metric, row=title(point), runtime=runtime)


def _limit(samples: pd.DataFrame, point: Point) -> pd.DataFrame:
    """Samples of the limit over the queues that it limits; a fixed one holds from the first instant."""
    limits = samples[samples["metric"].isin(LIMIT_SERIES)]
    fixed = point.params.get("threshold") if point.params.get("scheme") != "drop_tail" else None
    if limits.empty and labels.is_number(fixed):
        limits = samples.head(1).assign(metric="threshold", value=float(fixed))
    first = limits.head(1)
    limits = limits.merge(first[["metric", "flow"]])
    return limits.assign(label=[f"{labels.series_name(metric).label}{IN_FORCE}" for metric in limits["metric"]])


def _thinned(samples: pd.DataFrame, until_s: float | None) -> pd.DataFrame:
    """One line of few samples; with `until_s` the last value holds to then."""
    if samples["flow"].nunique() > 1:
        at = samples.groupby(samples["t_s"].round(3))["value"].agg(["mean", "min", "max"])
        at = at.iloc[:: max(1, len(at) // MAX_POINTS)]
        return pd.DataFrame({"x": at.index, "y": at["mean"], "lo": at["min"], "hi": at["max"]})
    times, values = thin(samples["t_s"].to_numpy(float), samples["value"].to_numpy(float))
    if until_s is not None and times[-1] < until_s:
        times, values = np.append(times, until_s), np.append(values, values[-1])
    return pd.DataFrame({"x": times, "y": values, "lo": values, "hi": values})


def thin(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    """At most MAX_POINTS points that keep the lowest and the highest value of each stretch of time."""
    if len(times) <= MAX_POINTS:
        return times, values
    stretches = np.array_split(np.arange(len(times)), MAX_POINTS // 2)
    ends = {stretch[extreme(values[stretch])] for stretch in stretches for extreme in (np.argmin, np.argmax)}
    chosen = sorted(ends | {0, len(times) - 1})
    return times[chosen], values[chosen]


# ---- distributions of transfers or runs


def _cdf(plot: Cdf, runs: Sequence[RunFolder]) -> p9.ggplot:
    panels = _Panels(runs, plot, (plot.by,), None if plot.panel == "group" else plot.panel)
    is_of_transfers = plot.metric in ("completion_s", "bytes")
    name = TRANSFER_METRICS[plot.metric] if is_of_transfers else labels.name_of(plot.metric)
    parts: list[pd.DataFrame] = []
    for run in runs:
        table = run.transfers if is_of_transfers else run.runs
        for point in run.select(plot.where) if plot.metric in table else ():
            mine = table[table["point"] == point.name].dropna(subset=[plot.metric])
            groups = mine["group"] if "group" in (plot.panel, plot.by) else ""
            mine = mine.assign(
                x=mine[plot.metric] * name.scale,
                panel=(groups + ", " if plot.panel == "group" else "") + panels.title(point),
                label=groups if plot.by == "group" else labels.value_label(plot.by, point.params.get(plot.by)),
                runtime=labels.value_label("runtime", run.runtime),
            )
            parts.append(mine[["x", "panel", "label", "runtime"]].replace({"panel": {", $": ""}}, regex=True))
    data = pd.concat(parts) if parts else pd.DataFrame()
    if data.empty:
        raise NothingToDrawError("no finished transfer, or no run, matches this plot")
    key = ["panel", "label", "runtime"]
    data = _in_order(data, *key).sort_values([*key, "x"])
    lines = data.groupby(key, observed=True)["x"]
    rank, count, middles = lines.cumcount() + 1, lines.transform("size"), lines.median().reset_index().assign(y=50)
    data["y"] = rank / count * 100
    data = data[(rank % np.maximum(1, count // MAX_POINTS) == 0) | (rank == count)]
    return _chart(
        data,
        p9.aes("x", "y", color="label", linetype="runtime"),
        p9.geom_step(size=0.8),
        p9.geom_point(data=middles, size=2),
        *([p9.scale_x_log10(labels=_plain)] if plot.log_x else []),
        *_layout(
            data, labels.axis_label(name), "transfers (%)" if is_of_transfers else "runs (%)", ["points: medians"], 3.0
        ),
    )
