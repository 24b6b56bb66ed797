# SPDX-License-Identifier: Apache-2.0
"""Shell completion as bash asks for it: names of a topology that runs, and silence whatever is wrong."""

from __future__ import annotations

import importlib
import shlex
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fairlane_controller.cli import complete
from fairlane_controller.cli.main import main
from live_switch import COMPILED
from state_tools import put_text
from test_controller_state import good_state, write_state

NODES = {"hosts": [{"name": "h1", "pid": 1}, {"name": "h2", "pid": 2}], "links": [{"name": "h1-s1"}, {"name": "s1-s2"}]}


@pytest.fixture
def topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two switches that do not run, with the P4Info of qthresh."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    folder = tmp_path / "lab"
    state: dict[str, Any] = {**good_state(), **NODES}
    for switch in state["switches"]:
        switch["p4info"] = str(COMPILED / "qthresh.p4info.txtpb")
    write_state(folder, state)
    return folder


def offered(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What bash would offer at the end of `line`; asserts that nothing else is printed."""
    words = shlex.split(line)
    monkeypatch.setenv("_FAIRLANE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) if line.endswith(" ") else len(words) - 1))
    with pytest.raises(SystemExit):
        main([])
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out.split()


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("fairlane th", {"threshold"}),
        ("fairlane threshold s", {"show", "set"}),
        ("fairlane p4 table_", {"table_add", "table_dump", "table_info"}),
        ("fairlane status --st", {"--state"}),
        ("fairlane status --state ", {"lab"}),
        ("fairlane flows -s ", {"s1", "s2"}),
        ("fairlane lab run ", {"demo", "buffer-grid"}),
        ("fairlane lab run buffer-g", {"buffer-grid"}),
        ("fairlane lab show de", {"demo"}),
        ("fairlane hosts use ", {"h1", "h2"}),
        ("fairlane hosts use h1 ", {"reno", "vegas", "cubic-linux"}),
        ("fairlane hosts check ve", {"vegas"}),
        ("fairlane hosts show --state ", {"lab"}),
        ("fairlane link show ", {"h1-s1", "s1-s2"}),
        ("fairlane link set s1-s2 --preset ", {"geo", "leo", "wifi", "3g"}),
        ("fairlane link set s1-s2 -d ", {"a_to_b", "b_to_a", "both"}),
        ("fairlane ports set s", {"s1:3"}),
        ("fairlane ports set ", {"3", "s1:3"}),
        ("fairlane drops s", {"s1:3"}),
        ("fairlane config set s", {"s1:3"}),
        ("fairlane threshold set s", {"s1:3"}),
    ],
)
def test_names_are_offered(
    line: str, some: set[str], topology: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert topology.is_dir()
    assert some <= set(offered(line, monkeypatch, capsys))


def test_names_that_no_topology_has_are_offered_beside_a_broken_one(
    topology: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_text(topology, "topology", "{")
    assert "demo" in offered("fairlane lab run ", monkeypatch, capsys)
    assert offered("fairlane hosts use ", monkeypatch, capsys) == []


def test_no_experiment_is_read_for_their_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(*_: object) -> None:
        raise AssertionError("it is slow")

    module = importlib.import_module("fairlane_lab.definition.loading")  # `load` is its function, too
    monkeypatch.setattr(module, "_load_known", load)
    monkeypatch.setattr(module, "read_source", load)
    assert len(offered("fairlane lab run ", monkeypatch, capsys)) > 10


@pytest.mark.parametrize("text", ["", "{", "[]", '{"switches": 5}', '{"switches": [{}]}'])
def test_a_broken_run_state_is_silence(
    text: str, topology: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_text(topology, "topology", text)
    for line in ("fairlane status -s ", "fairlane threshold set "):
        assert offered(line, monkeypatch, capsys) == []


class _Ctx:
    """What typer hands to a completion."""

    params: ClassVar[dict[str, Any]] = {}
    info_name = "flows"


def test_ports_that_are_managed_come_first(topology: Path) -> None:
    assert topology.is_dir()
    ports = complete.complete_port(_Ctx(), "")
    assert ports
    managed = ["managed" in text for _, text in ports]
    assert managed == sorted(managed, reverse=True)
