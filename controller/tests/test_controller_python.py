# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""docs/python.md and the notebooks: every block runs, in an order in which a reader would run it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import fairlane
import nbformat
import pytest
from fairlane_controller.config.apply import last_applied
from fairlane_controller.state.run_state import TOPOLOGY, read_topology
from fairlane_controller.state.store import Store
from live_switch import LiveSwitch

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"<!-- run: (\w+) -->\n```python\n(.*?)```", re.DOTALL)
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def blocks(kind: str) -> list[str]:
    found = [code for one, code in BLOCK.findall((DOCS / "python.md").read_text(encoding="utf-8")) if one == kind]
    assert found
    return found


def test_every_block_of_the_page_has_a_test() -> None:
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) == text.count("```python")


def test_a_running_topology_is_read_and_set(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also below a running event loop, as in a notebook."""
    states = switch.folder / "states"
    states.mkdir()
    (states / "0").symlink_to(switch.folder)
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(states))
    names: dict[str, Any] = {}

    async def run_all() -> None:
        for code in blocks("topology"):
            exec(code, names)

    asyncio.run(run_all())
    net, done = names["net"], names["done"]
    assert list(names["ports"]["port"]) == [1, 3]
    assert done.written == {"s1": 1}
    assert "ports[0].limit_packets" in capsys.readouterr().out
    port = net.snapshot().port("s1", 3)
    assert port is not None
    assert port.capacity_packets == 40, "the limit of the port; the threshold is taken back"
    assert net.snapshot().topology == switch.folder.name


def test_a_port_that_is_set_is_remembered_beside_what_was_applied_before(switch: LiveSwitch) -> None:
    net = fairlane.connect(switch.folder)
    net.apply(
        {
            "classes": [{"class": 1, "dscp": "EF"}],
            "ports": [{"switch": "s1", "port": 3, "managed": True, "ecn": True}],
        }
    )
    net.set("s1:3", managed=True, limit_packets=40)
    config = last_applied(switch.folder).config.plain()
    assert config["classes"] == [{"class": 1, "dscp": "EF"}]
    (port,) = config["ports"]
    assert (port["limit_packets"], port["ecn"]) == (40, True)


def test_a_command_means_the_switches_of_connect(switch: LiveSwitch) -> None:
    state = json.loads(json.dumps(read_topology(switch.folder)))
    state["switches"].append({**state["switches"][0], "name": "s2", "grpc": "127.0.0.1:1"})
    with Store(switch.folder) as store:
        store.put({TOPOLOGY: state})
    one, other = (fairlane.connect(switch.folder, switches=name) for name in ("s1", "s2"))
    assert [row["switch"] for row in one.command("status")["switches"]] == ["s1"]
    assert one.command("threshold", "set", "s1:3", "5")
    assert one.command("undo"), "it has no --switch"
    with pytest.raises(fairlane.FairlaneError, match="s2"):
        other.command("threshold", "set", "3", "5")
    with pytest.raises(fairlane.FairlaneError, match="s1:3 names its switch"):
        other.command("threshold", "set", "s1:3", "5")


@pytest.mark.parametrize(
    ("name", "words", "settings", "message"),
    [
        ("set", ("s1",), {"limit_packets": 1}, "port 's1': must be SWITCH:NUMBER, such as s1:3"),
        ("set", ("s1:9",), {"rate": "2Mbit"}, "s1 has no port 9"),
        ("set", ("s1:3",), {"limit": 1}, "unknown key"),
        ("frame", ("lanes",), {}, "unknown kind of rows 'lanes'"),
        ("command", ("threshold", "set", "9", "5"), {}, "port 9"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    switch: LiveSwitch, name: str, words: tuple[str, ...], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(fairlane.FairlaneError, match=re.escape(message)):
        getattr(fairlane.connect(switch.folder), name)(*words, **settings)


def test_an_experiment_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in blocks("experiment"):
        exec(code, names)
    run = names["run"]
    assert run.path.is_relative_to(tmp_path)
    assert run.table["goodput_bps[vegas]"][0] < 0.2 * run.table["goodput_bps[reno]"][0]
    again = fairlane.run_experiment("qthresh-table1", quick=True, values={"case": "2M-2ms"}, results=tmp_path / "again")
    assert again.table.equals(run.table), "the same seed gives the same numbers"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    notebook: Any = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    code += f"\nplt.savefig({str(tmp_path / 'last.png')!r})"
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "last.png").stat().st_size > 10_000
