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

    def run(*lanes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [tmp_path / "setup" / "test_groups.sh", *lanes], env=env, capture_output=True, text=True, timeout=300
        )

    failed = run("good,bad", "last")
    assert failed.returncode == 1
    assert (
        failed.stdout.index("good ran")
        < failed.stdout.index("FAILED tests/test_x.py")
        < failed.stdout.index("last ran")
    )
    _, summary = failed.stdout.split("last ran\n")
    verdicts = [line.split()[::3] for line in summary.strip().splitlines()[:3]]
    assert verdicts == [["good", "ok"], ["bad", "FAILED"], ["last", "ok"]]
    assert "failures of bad" in summary
    assert "FAILED tests/test_x.py::test_y - AssertionError: 1 == 2" in summary
    passed = run("good", "interrupted")
    assert passed.stdout.count("SIGINT: default_int_handler") == 1
    assert passed.returncode == 0
    assert passed.stdout.endswith("all tests passed\n")


def test_what_fails_beside_others_is_run_once_more_when_they_have_ended(tmp_path: Path) -> None:
    (tmp_path / "setup").mkdir()
    for script in ("test_groups.sh", "run_pytest.sh"):
        shutil.copy(ROOT / "setup" / script, tmp_path / "setup")
    (tmp_path / "test_x.py").write_text(
        "from pathlib import Path\ndef test_alone(): assert Path('ended').exists(), 'beside others'\n"
    )
    pytest_there = f"{sys.executable} -m pytest -q -p xdist -c {os.devnull} --rootdir=."
    (tmp_path / "Makefile").write_text(
        f"test-x:\n\tsetup/run_pytest.sh .setup/pytest-x {pytest_there} test_x.py\nbeside:\n\ttouch ended\n"
    )
    command = [tmp_path / "setup" / "test_groups.sh", "test-x,beside"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "ok, but not at once" in done.stdout
    assert "FAILED test_x.py::test_alone" in done.stdout.split("failures of test-x")[1]
    assert done.returncode == 0


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    """The tests in `folder`, as `make test-kernel` runs its own."""
    pytest_there = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir=.", "."]
    command = [ROOT / "setup" / "run_pytest.sh", "cache", *pytest_there]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(("failing", "code", "runs"), [(1, 0, 2), (10, 0, 2), (11, 1, 1)])
def test_what_fails_once_is_run_once_more_unless_much_does(tmp_path: Path, failing: int, code: int, runs: int) -> None:
    (tmp_path / "test_machine.py").write_text(
        "import pytest\nfrom pathlib import Path\n"
        "def test_good(): open('good', 'a').write('x')\n"
        f"@pytest.mark.parametrize('number', range({failing}))\n"
        "def test_stalled(number):\n"
        "    seen = Path(f'seen{number}')\n"
        "    seen.write_text('x' * (again := 1 + seen.exists()))\n"
        "    assert again == 2\n"
    )
    done = run_pytest(tmp_path)
    assert done.returncode == code, done.stdout
    assert {len((tmp_path / f"seen{number}").read_text()) for number in range(failing)} == {runs}
    assert (tmp_path / "good").read_text() == "x"
    assert (f"{failing} of these tests failed: once more, one at a time" in done.stdout) == (code == 0)


def test_tests_that_cannot_be_collected_are_not_forgiven_by_what_failed_before(tmp_path: Path) -> None:
    (tmp_path / "test_now_good.py").write_text("def test_good(): pass\n")
    (tmp_path / "test_broken.py").write_text("import there_is_no_such_module\n")
    failed = tmp_path / "cache" / "v" / "cache" / "lastfailed"
    failed.parent.mkdir(parents=True)
    failed.write_text('{\n  "test_now_good.py::test_good": true\n}')
    assert run_pytest(tmp_path).returncode == 2
    assert not failed.exists()


def test_what_fails_twice_has_failed(tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text("def test_bad(): assert 0\n")
    done = run_pytest(tmp_path)
    assert (done.returncode, done.stdout.count("1 failed")) == (1, 2)


@pytest.mark.parametrize(
    ("marked", "share", "outcome"),
    [("timed", 0.5, "1 skipped"), ("timed", 0.0, "1 failed"), ("skipif(False, reason='')", 0.5, "1 failed")],
)
def test_a_test_of_real_time_that_fails_beside_others_has_no_verdict(
    tmp_path: Path, marked: str, share: float, outcome: str
) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    with (tmp_path / "conftest.py").open("a") as conftest:
        conftest.write(f"WAIT_S = _left_s = 0\n_others_share = lambda: {share}\n")
    (tmp_path / "test_bad.py").write_text(f"import pytest\n@pytest.mark.{marked}\ndef test_bad(): assert 0\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir=.", "."]
    env = {**os.environ, "FAIRLANE_AGAIN": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert outcome in done.stdout
    assert ("this machine was busy: others used more than 10% of it" in done.stdout) == ("skipped" in outcome)


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="needs dpkg: Debian or Ubuntu")
def test_an_undeclared_program_is_not_on_ci_s_path(tmp_path: Path) -> None:
    subprocess.run([ROOT / ".ci" / "declared-programs", tmp_path], check=True, timeout=120)
    found = {path.name for path in tmp_path.iterdir()}
    assert {"sh", "awk", "cc", "clang", "make", "python3", "ip", "ping", "cargo", "rustfmt", "cargo-clippy"} <= found
    assert not {"bpftool", "gdb", "pytest", "uv", "node", "p4c-bm2-ss", "simple_switch_grpc"} & found
