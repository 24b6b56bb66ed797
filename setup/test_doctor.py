# SPDX-License-Identifier: Apache-2.0
"""The doctor: every finding that must be mended says how, and the exit code follows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import doctor
import pytest


def test_every_check_gives_a_finding_and_a_way_to_mend_it() -> None:
    for check in doctor.CHECKS:
        found = check()
        assert found.what
        assert found.mend, f"{check.__name__} does not say how to mend it"


@pytest.mark.parametrize(
    ("text", "version"), [("cargo 1.95.0 (f2d3ce0bd)", (1, 95)), ("6.18.44-fc", (6, 18)), ("", ()), ("no digits", ())]
)
def test_versions(text: str, version: tuple[int, ...]) -> None:
    assert doctor.version_of(text) == version


def test_a_missing_thing_makes_the_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        doctor,
        "CHECKS",
        (lambda: doctor.Finding(False, "a thing", "get it"), lambda: doctor.Finding(None, "another", "or not")),
    )
    assert doctor.main() == 1
    output = capsys.readouterr().out
    assert "MISSING a thing\n          -> get it" in output
    assert "absent  another" in output
    assert "1 to mend" in output


def test_it_runs_without_the_environment() -> None:
    script = Path(doctor.__file__)
    done = subprocess.run([sys.executable, "-I", str(script)], capture_output=True, text=True, timeout=60)
    assert "kernel" in done.stdout
    assert done.returncode in (0, 1)
