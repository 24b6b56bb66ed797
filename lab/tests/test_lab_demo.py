# SPDX-License-Identifier: Apache-2.0
"""Run folders, the demo's plan and summary, its table and plots: from made-up cells, without a network."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from fairlane_lab import results
from fairlane_lab.cli import app, comparison_table
from fairlane_lab.demo import DemoOptions, summarise
from fairlane_lab.paper import LINKS, paper_rows
from fairlane_lab.plots import make_plots
from rich.console import Console
from typer.testing import CliRunner

ROW_KEYS = {"link", "rate_bps", "delay_ms", "scheme", "qthresh", "reno_kbps", "vegas_kbps", "utilisation", "fairness", "measured_rate_bps", "measured_t_res_ms"}  # fmt: skip


def cell(
    order: int, scheme: str, reno_bps: float, vegas_bps: float, qthresh: int | None = None, fixed: int | None = None
) -> dict[str, Any]:
    """A cell of the 2 Mbit/s link as a run would write it."""
    series = [(0.5 * i, 1000.0) for i in range(10)]
    flow = {
        "retransmits": 1,
        "cc": "x",
        "goodput": series,
        "cwnd": [(t, 4) for t, _ in series],
        "queue": [(t, 2) for t, _ in series],
    }
    return {
        "order": order,
        "link": "2M-2ms",
        "scheme": scheme,
        "offset_s": 0.0,
        "fixed_qthresh": fixed,
        "qthresh": qthresh,
        "utilisation": (reno_bps + vegas_bps) * 1014 / 960 / 2e6,
        "fairness": min(reno_bps, vegas_bps) / max(reno_bps, vegas_bps),
        "measured": {"bw_bps": 2e6, "t_res_s": 7e-3, "l_d_bytes": 1014.0, "n_c": 2.0},
        "flows": {"reno": {**flow, "goodput_bps": reno_bps}, "vegas": {**flow, "goodput_bps": vegas_bps}},
    }


CELLS = [
    cell(0, "drop_tail", 1.7e6, 0.17e6),
    cell(1, "drop_tail", 1.6e6, 0.32e6),
    cell(2, "drop_tail", 1.8e6, 0.09e6),
    cell(3, "qthresh", 0.9e6, 0.99e6, 5),
    cell(4, "qthresh", 0.8e6, 1.0e6, 5, 5),
]


def summary() -> dict[str, Any]:
    return {"runtime": "mininet", "target": "embedded", "rows": summarise(CELLS, {"2M-2ms": 7.07e-3}), "paper": [row for row in paper_rows() if row["link"] == "2M-2ms"]}  # fmt: skip


def test_the_paper_s_fairness_follows_from_its_goodputs() -> None:
    by_key = {(row["link"], row["scheme"]): row["fairness"] for row in paper_rows()}
    assert by_key["512k-5ms", "qthresh"] == pytest.approx(0.9162, abs=1e-4)
    assert by_key["2M-2ms", "drop_tail"] == pytest.approx(0.1125, abs=1e-4)
    assert len(by_key) == 2 * len(LINKS)


def test_rows_are_medians_with_the_range_of_fairness() -> None:
    drop_tail, controller, fixed = summarise(CELLS, {"2M-2ms": 7.07e-3})
    assert set(drop_tail) >= ROW_KEYS
    assert (drop_tail["fairness"], drop_tail["fairness_min"], drop_tail["fairness_max"], drop_tail["runs"]) == (
        0.1,
        0.05,
        0.2,
        3,
    )
    assert (drop_tail["reno_kbps"], drop_tail["vegas_kbps"], drop_tail["qthresh"]) == (1700.0, 170.0, None)
    assert (controller["controller"], controller["qthresh"]) == (True, 5)
    assert (fixed["controller"], fixed["qthresh"]) == (False, 5)
    assert drop_tail["measured_t_res_ms"] == 7.0
    assert drop_tail["true_t_res_ms"] == 7.07


def test_the_plan_runs_drop_tail_first_and_every_offset() -> None:
    runs = DemoOptions(offsets_s=(0.0, 0.5), qthresh=(None, 4)).plan()
    assert [(r.scheme, r.offset_s, r.qthresh) for r in runs] == [
        ("drop_tail", 0.0, None), ("drop_tail", 0.5, None), ("qthresh", 0.0, None), ("qthresh", 0.5, None), ("qthresh", 0.0, 4), ("qthresh", 0.5, 4),
    ]  # fmt: skip


def test_the_default_demo_takes_less_than_four_minutes() -> None:
    assert DemoOptions().seconds() < 210  # plus start-up


def test_publish_moves_latest_to_the_newest_run(tmp_path: Path) -> None:
    first = results.new_folder("demo", tmp_path)
    second = results.new_folder("demo", tmp_path)
    assert first != second
    results.publish(first, {"rows": [1]})
    results.publish(second, {"rows": [2]})
    latest = tmp_path / "demo" / "latest"
    assert json.loads((latest / "summary.json").read_text()) == {"rows": [2]}
    assert latest.is_symlink()


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\n{"a"')
    assert results.read_lines(path) == [{"a": 1}, {"a": 2}]
    assert results.read_lines(tmp_path / "absent") == []


def test_the_table_fits_80_columns_and_shows_the_paper() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(comparison_table(summary()))
    text = console.export_text()
    assert "…" not in text
    assert "drop-tail" in text
    assert "Qthresh 5 auto" in text
    assert "1797.7" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_plots_are_made_from_the_folder_again(tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    for each in CELLS:
        (tmp_path / "cells" / f"{each['order']}.json").write_text(json.dumps(each))
    (tmp_path / "summary.json").write_text(json.dumps(summary()))
    pictures = make_plots(tmp_path)
    assert [p.name for p in pictures] == ["goodput.png", "cwnd.png", "queue.png", "shares.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in pictures)


def test_plots_of_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing to plot"):
        make_plots(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--target", "tofino"], "must be embedded or bmv2"),
        (["demo", "--link", "9G"], "there are 512k-5ms, 1.5M-2ms, 2M-2ms, 5M-2ms"),
        (["demo", "--offsets", "soon"], "must be seconds with commas"),
        (["demo", "--offsets", "99"], "between -10 and 10 seconds"),
        (["demo", "--qthresh", "51"], "must be auto, or 1 to 50 packets"),
        (["show", "/nonexistent"], "there is no summary.json in it"),
        (["plot", "/nonexistent"], "there is no summary.json in it"),
    ],
)
def test_bad_arguments_say_what_is_allowed(arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_the_demo_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 2
    assert "Mininet needs root" in result.output
