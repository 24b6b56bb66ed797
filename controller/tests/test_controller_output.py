# SPDX-License-Identifier: Apache-2.0
"""Tables for people in terminals of any width: nothing is ever cut; markup in a cell is text."""

from __future__ import annotations

import io

import pytest
from fairlane_controller.cli import output
from rich.console import Console

COLUMNS = ("switch", "flow", "waiting", "goodput")
ROWS = [("s1", "udp 10.0.1.1:1001 > 10.0.3.1:5001", 3, "204 kbit/s"), ("s1", "[bold]x[/bold]", None, "-")]


@pytest.mark.parametrize(("width", "boxed", "header"), [(160, True, True), (64, False, False), (40, False, False)])
def test_a_table_at_any_width(width: int, boxed: bool, header: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.StringIO()
    monkeypatch.setattr(output, "console", Console(file=printed, width=width, highlight=False))
    output.print_table("flows", COLUMNS, ROWS)
    text = printed.getvalue()
    assert ("│" in text) is boxed
    assert ("switch  flow" in text or boxed) is header
    for cell in ("udp 10.0.1.1:1001 > 10.0.3.1:5001", "204 kbit/s", "[bold]x[/bold]"):
        assert cell in " ".join(text.split())
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= max(width, 44)


def test_an_empty_table_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.StringIO()
    monkeypatch.setattr(output, "console", Console(file=printed, width=80, highlight=False))
    output.print_table("drops", COLUMNS, [], empty="nothing was dropped")
    assert printed.getvalue() == "drops: nothing was dropped\n"
