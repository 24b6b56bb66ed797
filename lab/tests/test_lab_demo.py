# SPDX-License-Identifier: Apache-2.0
"""`make demo`, `fairlane lab run demo --runtime mininet`: its selection, its table, its folder. With a made-up runner, without a network."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from fairlane_lab.cli.running import RUNNERS
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load
from fairlane_lab.recording import read_lines
from fairlane_lab.report.run_folder import open_run, run_of
from fairlane_lab.report.tables import result_table
from fairlane_lab.results.folder import new_folder, publish
from lab_command import lab
from rich.console import Console
from typer.testing import Result

DEMO = ("run", "demo", "--runtime", "mininet")


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setitem(RUNNERS, "mininet", "lab_fake_runners:run_many")


def demo(tmp_path: Path, *options: str) -> tuple[Result, Path]:
    done = lab(*DEMO, "--results", str(tmp_path), *options)
    return done, tmp_path / "demo" / "latest"


def test_the_paper_s_numbers_stand_beside_their_scheme() -> None:
    numbers = {(str(each.where), each.source): each.values for each in load("demo").experiment.paper_numbers}
    tables = [values["fairness"] for (_, source), values in numbers.items() if not source]
    fixed = [0.9162, 0.9408, 0.8814, 0.9643]
    assert tables == [0.12, 0.1126, 0.1125, 0.1041, *fixed, *fixed], (
        "Table 2 stands beside the self-tuning threshold too"
    )
    assert sum(source == "true" for _, source in numbers) == 4


@pytest.mark.parametrize(("link", "rate_bps", "delay_ms"), [("512k-5ms", 512e3, 5), ("2M-2ms", 2e6, 2)])
def test_the_true_t_res_is_that_of_the_dumbbell(link: str, rate_bps: float, delay_ms: float) -> None:
    # 2τ; access: 1014 B at 10 Mbit/s, 1 ms there and back, an ACK of 54 B; that ACK on the bottleneck.
    t_res_ms = 2 * delay_ms + 8e3 * 1014 / 10e6 + 2 + 8e3 * 54 / 10e6 + 8e3 * 54 / rate_bps
    (values,) = (
        each.values
        for each in load("demo").experiment.paper_numbers
        if each.source == "true" and each.where["case"] == link
    )
    assert values["t_res_ms"] == pytest.approx(t_res_ms, abs=6e-4)


def test_drop_tail_comes_first_on_each_link_and_every_offset_is_run() -> None:
    runs = expand(load("demo"), Selection(runtime="mininet", values={"case": ("2M-2ms",)}))
    offsets = [(run.params["control"], run.params["offset_s"]) for run in runs]
    assert offsets == [(scheme, offset) for scheme in ("drop-tail", "auto") for offset in (-0.5, 0.0, 0.5)]
    assert all(run.series and run.control.measure for run in runs)


def test_the_demo_takes_less_than_four_minutes() -> None:
    runs = expand(load("demo"), Selection(runtime="mininet"))
    assert sum(each.duration_s + 4.0 for each in runs) / load("demo").experiment.mininet.parallel < 240


def test_options_change_the_experiment(tmp_path: Path) -> None:
    chosen = ("case=2M-2ms", "control=auto", "threshold=4,auto", "variant_1=newreno", "duration_s=21", "warmup_s=12")
    options = [word for each in chosen for word in ("--set", each)]
    done, folder = demo(tmp_path, *options, "--repeats", "2", "--seed", "3")
    assert done.exit_code == 0, done.output
    summary = open_run(folder).summary
    assert [point["params"]["threshold"] for point in summary["points"]] == [4, "auto"]
    assert (summary["runs"], summary["seed"], summary["runtime"]) == (4, 3, "mininet")
    params = summary["points"][0]["params"]
    assert (params["variant_1"], params["duration_s"], params["warmup_s"]) == ("newreno", 21, 12)


def test_the_table_fits_80_columns_and_shows_paper_and_true_values(tmp_path: Path) -> None:
    _, folder = demo(tmp_path, "--set", "case=2M-2ms", "--repeats", "2")
    console = Console(width=80, record=True, file=io.StringIO())
    summary = open_run(folder).summary
    for point in summary["points"]:
        point["metrics"] |= {"qthresh_packets": 6.0, "bw_bps": 2e6, "t_res_ms": 7.18}
    console.print(result_table([run_of(folder, summary)]))
    text = console.export_text()
    assert "…" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    lines = [line.split() for line in text.splitlines()]
    drop_tail = next(index for index, line in enumerate(lines) if line[:1] == ["drop-tail"])
    assert [line[0] for line in lines[drop_tail : drop_tail + 3]] == ["drop-tail", "paper", "true"]
    assert lines[drop_tail + 1][1:3] == ["1798", "202.3"]
    assert "7.07" in lines[drop_tail + 2]


def test_plots_are_made_and_made_again_from_the_folder(tmp_path: Path) -> None:
    done, folder = demo(tmp_path, "--set", "case=2M-2ms", "--repeats", "1")
    names = ("shares", "goodput", "cwnd", "queue")
    for name in names:
        assert f"plot   {folder.resolve()}/plots/{name}.png" in done.output
        (folder / "plots" / f"{name}.png").unlink()
    assert lab("plot", str(folder)).exit_code == 0
    assert all((folder / "plots" / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in names)


def test_publish_moves_latest_to_the_newest_run(tmp_path: Path) -> None:
    first = new_folder("demo", tmp_path)
    second = new_folder("demo", tmp_path)
    assert first != second
    publish(first, {"rows": [1]})
    publish(second, {"rows": [2]})
    latest = tmp_path / "demo" / "latest"
    assert json.loads((latest / "summary.json").read_text()) == {"rows": [2]}
    assert latest.is_symlink()


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\n{"a"')
    assert list(read_lines(path)) == [{"a": 1}, {"a": 2}]
    assert list(read_lines(tmp_path / "absent")) == []


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        (2, [*DEMO, "--target", "tofino"], "'tofino' is not one of"),
        (2, [*DEMO, "--set", "case=9G"], "There are: 512k-5ms, 1.5M-2ms, 2M-2ms, 5M-2ms"),
        (2, [*DEMO, "--set", "threshold=70000"], "packets from 1 to 65535, 'model' or 'auto'"),
        (2, [*DEMO, "--set", "variant_1=renno"], "there is no variant 'renno'. Did you mean 'reno'?"),
        (3, ["show", "/nonexistent"], "there is no summary.json in it"),
        (3, ["plot", "/nonexistent"], "there is no summary.json in it"),
    ],
)
def test_bad_arguments_say_what_is_allowed(code: int, arguments: list[str], message: str) -> None:
    result = lab(*arguments)
    assert result.exit_code == code
    assert message in " ".join(result.output.split())


def test_the_demo_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    result = lab(*DEMO)
    assert result.exit_code == 2
    assert "Mininet needs root" in result.output
