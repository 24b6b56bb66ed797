# SPDX-License-Identifier: Apache-2.0
"""Topologies and hosts are shown by their names: in `status`, `flows` and `watch`, and what the page is told."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.cli.main import main
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.source import LiveSource
from fairlane_controller.live.terminal import WatchView, render
from fairlane_controller.state.run_state import RunState, read_run_state
from live_rows import picture
from rich.console import Console
from test_controller_state import good_state, write_state

HOSTS = {"10.0.1.1": "h1", "10.0.1.2": "h2", "10.0.3.3": "h3"}
SEEN = picture(4, title="dumbbell", hosts=HOSTS)
"""Flows of h1, h2 and two addresses that no host has, all to h3."""


@dataclass(frozen=True)
class OfRun:
    """A topology whose switches are not asked."""

    run: RunState
    endpoints: tuple[Any, ...] = ()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run state of a topology that the launcher started."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    hosts = [{"name": name, "pid": 1, "ip": ip} for ip, name in HOSTS.items()]
    return write_state(tmp_path / "0", {**good_state(), "topology": "/x/dumbbell.json", "hosts": hosts})


def said(command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    async def taken(_: LiveSource) -> Snapshot:
        return SEEN

    monkeypatch.setattr(LiveSource, "snapshot", taken)
    with pytest.raises(SystemExit):
        main(command)
    return capsys.readouterr().out


async def test_they_are_those_of_the_run_state(folder: Path) -> None:
    run = read_run_state(folder)
    async with LiveSource(OfRun(run)) as source:
        snapshot = await source.snapshot()
    assert (snapshot.topology, snapshot.title, snapshot.hosts) == ("0", "dumbbell", HOSTS)
    assert {"title": "dumbbell", "hosts": HOSTS}.items() <= snapshot.to_json().items()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tcp 10.0.1.1:40000 > 10.0.3.3:5001", "tcp h1:40000 → h3:5001"),
        ("udp 10.0.1.11:1 > 10.0.1.2:2", "udp 10.0.1.11:1 → h2:2"),
        ("tcp 10.0.9.9:1 > 10.0.9.8:2", "tcp 10.0.9.9:1 > 10.0.9.8:2"),
        ("vc1", "vc1"),
    ],
)
def test_an_address_is_a_host_where_one_has_it(text: str, shown: str) -> None:
    assert SEEN.named(text) == shown


def test_status_has_the_title_of_the_topology(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(["status", "--state", str(folder)], monkeypatch, capsys)
    assert "topology 60 (dumbbell), embedded, qthresh" in text


def test_flows_have_the_names_of_their_hosts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(["flows", "--state", str(folder)], monkeypatch, capsys)
    assert "tcp h1:40000 → h3:5001" in text
    assert "10.0.1.1:" not in text


def test_so_does_what_is_watched() -> None:
    console = Console(width=160, height=40, file=io.StringIO(), record=True, highlight=False)
    console.print(render(WatchView(SEEN), 160, 40))
    text = console.export_text()
    assert "60  dumbbell" in text
    assert "tcp h2:40001 → h3:5001" in text
