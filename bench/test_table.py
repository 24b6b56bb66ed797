# SPDX-License-Identifier: Apache-2.0
"""The table of all that `make bench` measures, from made-up measurements that are as long as they get."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import chain
import differences
import forwarding
import kernel_time
import netsim
import p4runtime
import pipeline
import pytest
import topology
import wire
from parts import PARTS
from rich.console import Console
from summary import COLUMNS, Run, number, row, show
from testbed import ROOT

ROUNDS = 6
COUNTER = itertools.count(1_000_001)
EMPTY: Any = contextlib.nullcontext()


class FakePool:
    """Runs nothing beside anything."""

    def __init__(self, *_args: object, **_options: object) -> None: ...

    def __enter__(self) -> FakePool:
        return self

    def __exit__(self, *_error: object) -> None: ...

    def map(self, function: Any, values: list[Any]) -> list[Any]:
        return list(map(function, values))


def measured(*_arguments: object, **_options: object) -> float:
    """Seven digits, each time others: the intervals are as wide as they get."""
    return float(next(COUNTER)) * (1 + next(COUNTER) % 3)


def tcp_flow(*_arguments: object) -> tuple[float, float]:
    return 1e9 * measured(), measured()


def received(*_arguments: object, **_options: object) -> dict[str, Any]:
    names = ("delay_us_p50", "delay_us_p99", "delay_us_p999", "rate_bps", "pps", "frames")
    return {"sent": dict.fromkeys(names, measured()), "received": {name: measured() for name in names}}


def wire_result(*_arguments: object, **_options: object) -> dict[str, Any]:
    names = ("delay_error_us_p50", "delay_error_us_p99", "received_pps")
    counts = {"sent": 3, "received": 3, "wire": {"cpu_ns_per_frame": measured()}}
    return counts | {name: measured() for name in names}


def kernel_run(*_arguments: object) -> dict[str, float]:
    return {"wall_s": measured(), "virtual_s": 5e12, "frames": 1e3}


def usage(_who: int) -> Any:
    return SimpleNamespace(ru_utime=measured(), ru_stime=0.0)


def table2() -> list[dict[str, float]]:
    return [{"virtual_s": measured(), "wall_s": 1.0}]


def pair(*_arguments: object) -> tuple[float, float]:
    return measured(), measured()


def triple(*_arguments: object) -> tuple[float, float, float]:
    return measured(), measured(), measured()


def nothing(*_arguments: object, **_options: object) -> Any:
    return EMPTY


def example(*arguments: str) -> list[dict[str, Any]]:
    rows = [int(text) for text in arguments[1].split(",")]
    names = ("packets_per_s", "ns_per_packet", "virtual_per_wall")
    return [{"flows": flows, "wall_s": 1.0} | {name: measured() for name in names} for flows in rows]


def pipeline_rows(program: str, flows: int | None = None) -> list[dict[str, Any]]:
    paths = {"qthresh": ("plain", "counted"), "gfr": ("edge", "core"), "ena": tuple(pipeline.ENA_PATHS)}[program]
    return [{"flows": flows or 65_536, "path": path, "total_ns": measured() / 1000} for path in paths]


@contextlib.contextmanager
def a_bed(*_arguments: object, **_options: object) -> Generator[Any]:
    yield SimpleNamespace(
        left="l", right="r", probe=received, throughput_pps=measured, process=SimpleNamespace(pid=0), grpc=""
    )


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Rows of every benchmark, BMv2's and ns-2's among them."""

    def put(module: Any, **values: Any) -> None:
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)

    put(pipeline, measure=pipeline_rows)
    put(netsim, _example=example, paper_000=measured, run=measured)
    put(netsim, table2=table2, links=lambda: {netsim.NS2_CASE: EMPTY}, replace=nothing)
    put(netsim, shutil=SimpleNamespace(which=measured), subprocess=SimpleNamespace(run=measured))
    put(netsim, time=SimpleNamespace(process_time=measured))
    put(netsim, resource=SimpleNamespace(getrusage=usage, RUSAGE_CHILDREN=0))
    put(kernel_time, BUILT=ROOT / "bench", ProcessPoolExecutor=FakePool, measure_memory_mb=measured)
    put(kernel_time, measure=kernel_run)
    put(forwarding, bmv2_is_installed=measured, make_bed=a_bed, fairlane=a_bed, bmv2=a_bed)
    put(forwarding, bridge=a_bed, copy_loop=a_bed, pin=measured, stopped=nothing, left=measured)
    put(forwarding, rate_of_sending=measured, resident_mb=measured)
    monkeypatch.setattr(forwarding, "GENERATOR_LIMITS", 0.0)  # all are held back
    put(chain, make_bed=a_bed, receiver=a_bed, PATHS=dict.fromkeys(chain.PATHS, a_bed))
    put(chain, shutil=SimpleNamespace(which=measured), tcp_flow=tcp_flow)
    put(p4runtime, bmv2_is_installed=measured, start_ours=a_bed, start_bmv2=a_bed)
    for name in ("measure_requests_made_before", "measure_finsy"):
        monkeypatch.setattr(p4runtime, name, pair)
    put(wire, measure=wire_result)
    put(topology, seconds_of=triple)
    put(differences, bmv2_is_installed=measured, make_bed=a_bed)
    put(differences, ours=a_bed, bmv2=a_bed, rate=measured, burst=measured)
    run = Run(rounds=ROUNDS)
    monkeypatch.delitem(PARTS, "loop")  # its rows are two short ones
    for part in PARTS.values():
        part(run)
    return run.rows


def lines_of(rows: list[dict[str, Any]], width: int = 100) -> list[str]:
    console = Console(width=width)
    with console.capture() as captured:
        show(rows, console)
    return captured.get().splitlines()


def test_each_row_is_one_line_of_at_most_100_columns_and_nothing_is_cut(rows: list[dict[str, Any]]) -> None:
    lines = lines_of(rows)
    headings = list(dict.fromkeys(one["group"] for one in rows))
    assert max(map(len, lines)) <= 100, max(lines, key=len)
    assert [line for line in lines if line in headings] == headings
    within = [line for line in lines[2:] if line and line not in headings]
    of_groups = [one for heading in headings for one in rows if one["group"] == heading]
    for line, one in zip(within, of_groups, strict=True):
        interval = [] if one["low"] is None else [f"{number(one['low'])} to {number(one['high'])}"]
        verdict = [one["aim"], "reached" if one["ok"] else "missed"] if one["aim"] else []
        words = [one["name"], number(one["value"]), *interval, str(one["n"]), one["unit"], *verdict]
        assert " ".join(line.split()) == " ".join(words)


def test_the_made_up_rows_are_the_longest_ones(rows: list[dict[str, Any]]) -> None:
    assert len({one["group"] for one in rows}) > 20
    assert max(len(number(one["value"])) for one in rows) == len("1,234,567")
    assert max(len(number(one["high"])) for one in rows if one["high"] is not None) == len("1,234,567")
    assert any(one["name"].endswith(", held back") for one in rows)


def test_a_narrow_console_and_a_file_get_the_whole_table_too(rows: list[dict[str, Any]]) -> None:
    assert lines_of(rows, width=40) == lines_of(rows)


def test_columns_stand_below_their_names() -> None:
    lines = lines_of([row("group", "name", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "s", at_least=2)])
    _title, columns, _, heading, line = lines
    assert columns.split() == " ".join(COLUMNS).split()
    assert heading == "group"
    for name, text in zip(("value", "95 % interval", "n"), ("3.5", "1 to 6", "6"), strict=True):
        assert line[: columns.index(f"  {name}  ") + 2 + len(name)].endswith(f"  {text}")
    assert line.endswith(">= 2  reached")


@pytest.mark.parametrize(
    ("aim", "value", "text", "ok"),
    [
        ({"at_least": 400_000.0}, 400_000.0, ">= 400,000", True),
        ({"at_most": 0.06}, 0.0601, "<= 0.06", False),
        ({"below": 1.5}, 1.5, "< 1.5", False),
        ({}, 1.5, "", True),
    ],
)
def test_a_row_is_judged_by_its_aim(aim: dict[str, Any], value: float, text: str, ok: bool) -> None:
    one = row("group", "name", value, "s", **aim)
    assert (one["aim"], one["ok"], one["n"], one["low"]) == (text, ok, 1, None)


def test_an_interval_is_there_where_the_rounds_allow_one() -> None:
    few = row("group", "name", [1.0, 2.0, 3.0, 4.0, 5.0], "s")
    assert (few["value"], few["n"], few["low"], few["high"]) == (3.0, 5, None, None)
    mean = row("group", "name", [1.0, 2.0, 3.0], "s", statistic="mean")
    assert (mean["value"], mean["low"]) == (2.0, None)
    mean = row("group", "name", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "s", statistic="mean")
    assert 1.0 < mean["low"] < mean["value"] == 3.5 < mean["high"] < 6.0
