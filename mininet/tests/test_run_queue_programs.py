# SPDX-License-Identifier: Apache-2.0
"""The programs that manage queues on a real topology: the bottleneck is managed from the start, shown, and changed while it runs. Needs root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_session import Session

pytestmark = [pytest.mark.kernel, pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")]

TOPOLOGIES = Path(__file__).parents[1] / "topologies"
INSTANCE = "89"  # above 89 each other file that runs beside it has one
"""No other test's."""
TIMEOUT_S = 240.0
CASES = [
    ("embedded", "codel", "dumbbell", 3, "target=10ms"),
    ("embedded", "fq_codel", "dumbbell", 3, "salt=7"),
    ("embedded", "pie", "dumbbell", 3, "target=20ms"),
    ("embedded", "dualpi2", "dumbbell", 3, "target=20ms"),
    ("embedded", "red", "dumbbell", 3, "max_th=20"),
    ("embedded", "cebinae", "calendar", 3, "round=200ms"),
    ("embedded", "afq", "calendar", 3, "calendar_queues=4"),
    ("bmv2", "codel", "dumbbell", 3, "target=10ms"),
    ("bmv2", "pie", "dumbbell", 3, "target=20ms"),
    ("bmv2", "red", "dumbbell", 3, "max_th=20"),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """(session, run-state folder, program, port, a setting) of a running topology."""
    target, program, topology, port, setting = request.param
    if target == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("the bmv2 switch is not on this machine: no simple_switch_grpc on the PATH")
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    options = ("--target", target, "--program", program, "--topology", str(TOPOLOGIES / f"{topology}.json"), "--plain")
    session = Session("--instance", INSTANCE, *options, folder=tmp_path)
    try:
        yield session, tmp_path / INSTANCE, program, port, setting
        assert session.leave() == 0
    finally:
        session.end()


def test_a_queue_program_manages_the_bottleneck(case: Any) -> None:
    session, folder, program, port, setting = case

    def document(*words: str) -> Any:
        command = [str(Path(sys.executable).with_name("fairlane")), *words, "--state", str(folder), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def managed() -> dict[str, Any]:
        (one,) = (one for one in document("status")["ports"] if one["managed"])
        return one

    before = managed()
    assert (before["switch"], before["port"], before["aqm_dropped"]) == ("s1", port, 0)
    assert {one["program"] for one in document("status")["switches"]} == {program}
    assert "0% dropped" in session.do("pingall", TIMEOUT_S)
    assert managed()["sent"] > before["sent"]
    name, _, value = setting.partition("=")
    document("config", "set", f"s1:{port}", setting)
    (row,) = (
        row for row in document("config", "show")["config"]["ports"] if (row["switch"], row["port"]) == ("s1", port)
    )
    assert str(row[name]) == value
