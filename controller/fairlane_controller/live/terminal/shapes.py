# SPDX-License-Identifier: Apache-2.0
"""Bars with marks, sparklines and short numbers for a terminal: pure, from numbers to rich's texts."""

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


def count(value: float | None) -> str:
    """`12`, `1,234`, `1.2 M`; `-` for None."""
    if value is None:
        return "-"
    if value >= 1e6:
        return f"{value / 1e6:.1f} M"
    return f"{value:,.0f}"


def per_second(value: float | None) -> str:
    """`0`, `2.0`, `153`; `-` for None."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def rate(value_bps: float | None, *, unit: bool = True) -> str:
    """Three digits and a unit: `1.98 Mbit/s`, `864 kbit/s`, `0 bit/s`; `-` for None."""
    if value_bps is None:
        return "-"
    for factor, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value_bps >= factor * 0.9995:
            number = value_bps / factor
            digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
            return f"{number:.{digits}f} {name}{'bit/s' if unit else ''}"
    return f"{value_bps:.0f}{' bit/s' if unit else ''}"


def percent(value: float | None) -> str:
    """`99 %`; `-` for None."""
    return "-" if value is None else f"{100 * value:.0f} %"


def age(seconds: float | None) -> str:
    """`0.2 s`, `12 s`, `3 min`; empty for None."""
    if seconds is None:
        return ""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
