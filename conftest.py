# SPDX-License-Identifier: Apache-2.0
"""Of all tests: what was skipped is said once for each reason, and what fails in real time on a busy machine is no verdict.

`setup/run_pytest.sh` runs failures once more, alone, with FAIRLANE_AGAIN=1. A test of real time then waits until nobody else
uses this machine, for a bounded time. One that fails again while somebody does is skipped, and says so.

Each run notes how long the tests of a file took, at most: a run of some of them says less. FAIRLANE_FAST=1 (`make check`) leaves
out the files that took long.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

WINDOW_S = 1.0
"""Nothing of ours runs meanwhile: who uses a processor is somebody else."""
BUSY_SHARE = 0.1
"""Of all processors' time."""
WAIT_S = 120.0
"""For a quiet machine, in all."""
NOTES = Path(__file__).parent / ".setup" / "seconds-of-tests.json"
LONG_S = 3.0
_seconds: Counter[str] = Counter()
_others = pytest.StashKey[float]()
_left_s = WAIT_S


def _processor_ticks() -> tuple[int, int]:
    """Used and all, since the machine started."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)  # without idle and waiting for a disk


def _others_share() -> float:
    """What others use of all processors' time now."""
    used, whole = _processor_ticks()
    time.sleep(WINDOW_S)
    used_now, whole_now = _processor_ticks()
    return (used_now - used) / max(1, whole_now - whole)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    global _left_s
    if os.environ.get("FAIRLANE_AGAIN") and any(map(item.get_closest_marker, ("kernel", "timed"))):
        while (share := _others_share()) > BUSY_SHARE and _left_s > 0:
            _left_s -= WINDOW_S
        item.stash[_others] = share
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and item.stash.get(_others, 0.0) > BUSY_SHARE:
        report.outcome = "skipped"
        report.longrepr = (
            str(item.path),
            0,
            f"Skipped: this machine was busy: others used more than {BUSY_SHARE:.0%} of it",
        )
    return report


@cache
def _noted() -> dict[str, float]:
    try:
        return dict(json.loads(NOTES.read_text()))
    except (OSError, ValueError):
        return {}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if not os.environ.get("FAIRLANE_FAST"):
        return None
    return _noted().get(os.path.relpath(collection_path, NOTES.parents[1]), 0.0) > LONG_S or None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.location[0]] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and NOTES.parent.is_dir():  # no worker of xdist
        partial = NOTES.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(dict(Counter(_noted()) | _seconds), indent=1))
        partial.replace(NOTES)


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    for reason, tests in reasons.most_common():
        terminalreporter.write_line(f"SKIPPED [{tests}] {reason.removeprefix('Skipped: ')}")
