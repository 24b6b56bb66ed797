# SPDX-License-Identifier: Apache-2.0
"""Bars with marks and sparklines for a terminal: pure, from numbers to rich's texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def bar(
    value: float | None, full: float, width: int, *, style: str = "cyan", marks: Mapping[float, str] | None = None
) -> Text:
    """`width` cells, of which `value`/`full` are filled to an eighth; a mark (value → style) is a line at its place."""
    if width < 1:
        return Text("")
    if value is None or full <= 0:
        cells = [("·", "dim")] * width
    else:
        eighths = round(8 * width * min(1.0, max(0.0, value / full)))
        whole, part = divmod(eighths, 8)
        cells = [("█", style)] * whole
        if part:
            cells.append((_EIGHTHS[part], style))
        cells += [("·", "dim")] * (width - len(cells))
        if value > 1.05 * full:
            cells[-1] = ("▶", style)
    for at, mark_style in (marks or {}).items():
        if full > 0 and 0 <= at <= full:
            place = min(width - 1, max(0, round(width * at / full) - (1 if at == full else 0)))
            under = cells[place][0] not in (" ", "·")
            cells[place] = ("┃" if not under else "╂", mark_style)
    text = Text(no_wrap=True)
    for char, cell_style in cells:
        text.append(char, cell_style)
    return text


def sparkline(values: Sequence[float | None], width: int, full: float | None = None, style: str = "cyan") -> Text:
    """The last `width` values, the newest at the right; `full` is the top (the largest value unless given)."""
    shown = list(values)[-width:]
    known = [v for v in shown if v is not None]
    top = full if full else max(known, default=0.0)
    text = Text(" " * (width - len(shown)), no_wrap=True)
    for value in shown:
        if value is None:
            text.append("·", "dim")
        elif top <= 0 or value <= 0:
            text.append(_LEVELS[0], "dim")
        else:
            text.append(_LEVELS[min(7, int(8 * min(1.0, value / top) - 1e-9))], style)
    return text
