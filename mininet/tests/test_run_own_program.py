# SPDX-License-Identifier: Apache-2.0
"""A program in a folder outside the tree on a real topology: everything shows it and changes it, and no file of ours knows it. Needs root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_session import Session
from fairlane_topology import state as fl_state

pytestmark = [pytest.mark.kernel, pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")]

HERE = Path(__file__).parents[1]
EXAMPLE = HERE.parent / "docs" / "examples" / "droptail"
INSTANCE = "94"
"""No other test's."""
TIMEOUT_S = 240.0
CONFIGURATION = """
[[ports]]
switch = "s1"
port = 3
limit = 2
"""


@pytest.fixture(params=["embedded", "bmv2"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The run-state folder of a dumbbell that runs the program, whose limit is 5 packets."""
    if request.param == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("the bmv2 switch is not on this machine: no simple_switch_grpc on the PATH")
    shutil.copytree(EXAMPLE, tmp_path / "mine")
    topology = json.loads((HERE / "topologies" / "dumbbell.json").read_text())
    topology["switches"]["s1"]["ports"]["3"]["settings"] = {"limit": 5}
    (tmp_path / "topology.json").write_text(json.dumps(topology))
    options = ("--target", request.param, "--program", "mine/", "--topology", "topology.json", "--plain")
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    session = Session("--instance", INSTANCE, *options, folder=tmp_path)
    try:
        yield tmp_path / INSTANCE
        assert session.leave() == 0
    finally:
        session.end()


def test_a_program_of_a_stranger_s_is_shown_changed_and_taken_back(folder: Path, tmp_path: Path) -> None:
    def fairlane(*words: str, code: int = 0) -> str:
        command = [str(Path(sys.executable).with_name("fairlane")), *words, "--state", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def document(*words: str) -> Any:
        return json.loads(fairlane(*words, "--json"))

    def limit() -> int:
        """The limit of port 3 of s1, as the switch has it."""
        (entry,) = document("p4", "table_dump", "droptail_limit", "--switch", "s1")["entries"]
        assert entry["match"] == {"egress_port": "3"}
        return int(entry["arguments"]["packets"])

    assert limit() == 5, "what the topology file says"
    status = document("status")
    assert {switch["program"] for switch in status["switches"]} == {"droptail"}
    (port,) = (port for port in status["ports"] if port["managed"])
    assert (port["switch"], port["port"], port["refused"]) == ("s1", 3, 0)
    assert "refused" in fairlane("status")
    assert "fairlane_port_refused_total" in fairlane("watch", "metrics", "--once")
    fairlane("watch", "export", str(tmp_path / "run.csv"), "--for", "0.1s", "--interval", "0.1s", "--rows", "ports")
    assert "refused" in (tmp_path / "run.csv").read_text()

    (tmp_path / "mine.toml").write_text(CONFIGURATION)
    assert "set_limit" in fairlane("config", "diff", str(tmp_path / "mine.toml"), code=10)
    fairlane("config", "apply", str(tmp_path / "mine.toml"))
    assert limit() == 2

    # The line takes a packet of 1014 bytes in 4 ms: a burst finds at most two places.
    state = fl_state.read(INSTANCE)
    assert state is not None
    sender = state["hosts"][0]["pid"]
    burst = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor _ in range(50): s.sendto(bytes(972), ('10.0.3.3', 9))"
    subprocess.run(["mnexec", "-a", str(sender), sys.executable, "-c", burst], check=True, timeout=TIMEOUT_S)
    deadline = time.monotonic() + 10
    while not (drops := document("drops")) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert any(row["reason"] == "over_limit" for row in drops), drops

    fairlane("undo")
    assert limit() == 5
