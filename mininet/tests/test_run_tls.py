# SPDX-License-Identifier: Apache-2.0
"""A real run: its own certificates open the switches to the controller, and nobody gets in without. Needs root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_session import Session

pytestmark = pytest.mark.kernel

HERE = Path(__file__).parents[1]
INSTANCE = "95"
"""No other test's."""
COMMAND_TIMEOUT_S = 120.0

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The run-state folder of the dumbbell, which runs with TLS unless told otherwise."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    session = Session("--instance", INSTANCE)
    try:
        yield tmp_path / INSTANCE
        assert session.leave() == 0
    finally:
        session.end()


def fairlane(*words: str, code: int = 0, tls: Mapping[str, str] | None = None) -> str:
    """What the command prints, on standard error where it fails; `tls`: the files of FAIRLANE_TLS_*."""
    command = [str(Path(sys.executable).with_name("fairlane")), *words]
    files = {f"FAIRLANE_TLS_{name}": path for name, path in (tls or {}).items()}
    environment = {**os.environ, **files}
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


@needs_root
def test_the_runs_certificates_open_the_switches_and_nothing_else_does(folder: Path) -> None:
    """h1, h2 - s1 - s2 - h3: the loop has programmed both switches, and serves them."""
    status: dict[str, Any] = json.loads(fairlane("status", "--state", str(folder), "--json"))
    assert [(one["switch"], one["reachable"]) for one in status["switches"]] == [("s1", True), ("s2", True)]
    assert status["loop_running"]
    assert [one["connected"] for one in status["loop"]] == [True, True]
    files = folder / "tls"
    assert files.stat().st_mode & 0o077 == 0
    switch = f"s1={status['switches'][0]['grpc']}"
    names = (("CA", "ca.pem"), ("CERT", "controller.pem"), ("KEY", "controller.key"))
    known = {key: str(files / name) for key, name in names}
    assert "ipv4_lpm" in fairlane("p4", "show_tables", "--switch", switch, tls=known)
    only_ca = {"CA": known["CA"]}
    for given, why in (({}, "speaks TLS only"), (only_ca, "certificate required")):
        told = json.loads(fairlane("p4", "show_tables", "--switch", switch, "--json", code=4, tls=given))["error"]
        assert told["code"] == "tls_failed"
        assert why in told["message"]
