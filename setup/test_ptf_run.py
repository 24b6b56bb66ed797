# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""ptf_tests/run.py: what it takes from ptf's words, without a switch."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PTF_TESTS = Path(__file__).resolve().parents[1] / "ptf_tests"


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PTF_TESTS))
    found = importlib.util.spec_from_file_location("ptf_run", PTF_TESTS / "run.py")
    assert found
    assert found.loader
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "ptf_run", module)
    found.loader.exec_module(module)
    return module


def test_only_what_failed_runs_again(runner: ModuleType, tmp_path: Path) -> None:
    says = "echo 'a.Right ... ok'; echo 'FAIL: a.Wrong'; echo 'ERROR: b.Ended' >&2; exit 1"
    assert runner.run_ptf(["bash", "-c", says], str(tmp_path)) == (1, ["a.Wrong", "b.Ended"])
    assert runner.run_ptf(["bash", "-c", "echo 'a.Right ... ok'"], str(tmp_path)) == (0, [])


def test_a_ptf_that_hangs_is_ended(runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "SUITE_TIMEOUT_S", 0.2)
    with pytest.raises(subprocess.TimeoutExpired):
        runner.run_ptf(["sleep", "60"], str(tmp_path))
