# SPDX-License-Identifier: Apache-2.0
"""What stands around the tests: a group that fails keeps no other from running, and CI's PATH has declared programs only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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


def in_real_time(folder: Path) -> subprocess.CompletedProcess[str]:
    """The tests in `folder`, as `make test-kernel` runs its own."""
    pytest_there = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir=.", "."]
    command = [ROOT / "setup" / "in_real_time.sh", "cache", *pytest_there]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(("failing", "code", "runs"), [(1, 0, 2), (3, 0, 2), (4, 1, 1)])
def test_what_fails_once_in_real_time_is_run_once_more_unless_much_does(
    tmp_path: Path, failing: int, code: int, runs: int
) -> None:
    (tmp_path / "test_machine.py").write_text(
        "import pytest\nfrom pathlib import Path\n"
        "def test_good(): open('good', 'a').write('x')\n"
        f"@pytest.mark.parametrize('number', range({failing}))\n"
        "def test_stalled(number):\n"
        "    seen = Path(f'seen{number}')\n"
        "    seen.write_text('x' * (again := 1 + seen.exists()))\n"
        "    assert again == 2\n"
    )
    done = in_real_time(tmp_path)
    assert done.returncode == code, done.stdout
    assert {len((tmp_path / f"seen{number}").read_text()) for number in range(failing)} == {runs}
    assert (tmp_path / "good").read_text() == "x"
    assert (f"{failing} of the tests in real time failed: once more, alone" in done.stdout) == (code == 0)


def test_what_fails_twice_in_real_time_has_failed(tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text("def test_bad(): assert 0\n")
    done = in_real_time(tmp_path)
    assert (done.returncode, done.stdout.count("1 failed")) == (1, 2)


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="needs dpkg: Debian or Ubuntu")
def test_an_undeclared_program_is_not_on_ci_s_path(tmp_path: Path) -> None:
    subprocess.run([ROOT / ".ci" / "declared-programs", tmp_path], check=True, timeout=120)
    found = {path.name for path in tmp_path.iterdir()}
    assert {"sh", "awk", "cc", "clang", "make", "python3", "ip", "ping", "cargo", "rustfmt", "cargo-clippy"} <= found
    assert not {"bpftool", "gdb", "pytest", "uv", "node", "p4c-bm2-ss", "simple_switch_grpc"} & found
