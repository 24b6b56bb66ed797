# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""How every picture looks: colour-blind safe palette, one mark for each runtime, sizes that read at 800 pixels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.colors import to_hex

from fairlane_lab.programs import known_parts

mpl.use("Agg")

INK = "#1c1e22"
MUTED = "#6a7079"
GRID = "#dfe2e7"
PALE = "#aeb4bd"

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

WIDTH_IN = 8.0
"""Pictures are 8 inches wide; at 100 dots an inch that is 800 pixels with 13-pixel letters."""

RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlecolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.7,
    "lines.markersize": 5,
    "hatch.linewidth": 1.1,
    "hatch.color": "white",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "savefig.facecolor": "none",
    "path.simplify": True,
    "path.simplify_threshold": 0.6,
}


@dataclass(frozen=True)
class Mark:
    """How a runtime shows: in lines, points and bars."""

    linestyle: str | tuple[int, tuple[float, float]]
    hatch: str
    """Of its bars; empty: plain bars and filled markers, else hollow markers."""
    label: str

    @property
    def filled(self) -> bool:
        return not self.hatch


MARKS = {
    "sim": Mark("-", "", "sim"),
    "kernel": Mark((0, (1, 1)), "\\\\\\\\", "kernel"),
    "mininet": Mark((0, (4, 1.8)), "////", "Mininet"),
}
MARKERS = ("o", "s", "^", "v", "P", "X", "h", "<", ">")
PAPER_MARKERS = ("*", "p", "d", "8")


def mark(runtime: str, among: int = 2) -> Mark:
    """The mark of a runtime in a picture of `among` runtimes; a lone one, or an unknown one, looks like `sim` under its own name."""
    found = MARKS.get(runtime, Mark("-", "", runtime))
    return found if among > 1 else Mark("-", "", found.label)


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
    free = [colour for colour in PALETTE if colour not in chosen.values()]
    chosen |= dict(zip((name for name in names if name not in chosen), free, strict=False))
    return {name: chosen[name] for name in names}
