# SPDX-License-Identifier: Apache-2.0
"""The wheel of `make dist`, in an empty environment of its own, with no compiler on the PATH: an experiment, the switch, the doctor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
UV = ROOT / ".setup" / "uv" / "bin" / "uv"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(["setup/setup.sh", "dist"], cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert built.returncode == 0, built.stderr
    (wheel,) = (ROOT / "dist").glob("*.whl")
    assert "-cp310-abi3-manylinux" in wheel.name
    constraints = ROOT / "setup" / "constraints.txt"
    for command in (
        [UV, "venv", "--quiet", "--python", sys.executable, folder / "venv"],
        [UV, "pip", "install", "--quiet", "--python", folder / "venv", "--constraint", constraints, wheel],
    ):
        subprocess.run(command, check=True, timeout=300)
    return folder


def run(environment: Path, *command: str) -> str:
    """What a command of the environment prints, in an empty folder."""
    program = environment / "venv" / "bin" / command[0]
    done = subprocess.run(
        [program, *command[1:]],
        cwd=environment,
        env={"PATH": "/nonexistent", "HOME": str(environment)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(900)
def test_a_wheel_runs_an_experiment(environment: Path) -> None:
    shown = run(environment, "fairlane", "lab", "run", "qthresh-table1", "--quick")
    assert "Reno and Vegas behind drop-tail" in shown
    assert list(environment.glob("results/qthresh-table1/*/plots/*.png"))


@pytest.mark.timeout(900)
def test_a_wheel_has_the_switch_the_links_and_the_doctor(environment: Path) -> None:
    assert "--grpc" in run(environment, "fairlane-switch", "--help")
    assert "fairlane-wire" in run(environment, "fairlane-wire", "--help")
    assert "everything is there" in run(environment, "fairlane", "doctor")
    made = run(environment, "fairlane", "new", "mine")
    assert (environment / "mine" / "program.py").is_file(), made
