# SPDX-License-Identifier: Apache-2.0
"""What stands around the tests: a group that fails keeps no other from running, and CI's PATH has declared programs only."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = """
good last:
\t@echo "$@ ran"
interrupted:
	@python3 -c 'import signal; print("SIGINT:", signal.getsignal(signal.SIGINT).__name__)'
bad:
\t@echo "FAILED tests/test_x.py::test_y - AssertionError: 1 == 2"; exit 1
"""


def test_a_group_that_fails_keeps_no_other_from_running_and_is_listed_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "setup").mkdir()
    shutil.copy(ROOT / "setup" / "test_groups.sh", tmp_path / "setup")
    (tmp_path / "Makefile").write_text(MAKEFILE)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}

    def run(*groups: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [tmp_path / "setup" / "test_groups.sh", *groups], env=env, capture_output=True, text=True, timeout=60
        )

    failed = run("good", "bad", "last")
    assert failed.returncode == 1
    _, summary = failed.stdout.split("last ran\n")
    assert [line.split()[:2] for line in summary.strip().splitlines()[:3]] == [
        ["good", "ok"],
        ["bad", "FAILED"],
        ["last", "ok"],
    ]
    assert "failures of bad" in summary
    assert "FAILED tests/test_x.py::test_y - AssertionError: 1 == 2" in summary
    beside = run("good+bad", "last")
    assert beside.returncode == 1
    assert (
        beside.stdout.index("good ran")
        < beside.stdout.index("FAILED tests/test_x.py")
        < beside.stdout.index("last ran")
    )
    assert run("good+interrupted").stdout.count("SIGINT: default_int_handler") == 1
    passed = run("good+last")
    assert passed.returncode == 0
    assert passed.stdout.endswith("all tests passed\n")


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="needs dpkg: Debian or Ubuntu")
def test_an_undeclared_program_is_not_on_ci_s_path(tmp_path: Path) -> None:
    subprocess.run([ROOT / ".ci" / "declared-programs", tmp_path], check=True, timeout=120)
    found = {path.name for path in tmp_path.iterdir()}
    assert {"sh", "awk", "cc", "clang", "make", "python3", "ip", "ping", "cargo", "rustfmt", "cargo-clippy"} <= found
    assert not {"git", "bpftool", "gdb", "pytest", "uv", "node", "p4c-bm2-ss", "simple_switch_grpc"} & found
