# SPDX-License-Identifier: Apache-2.0
"""What a standstill of the machine does to a verdict: nothing is believed that was measured in one."""

from __future__ import annotations

from pathlib import Path

import pytest
import steady
from steady import ATTEMPTS, Watch, void_when_stalled


def standing_still(monkeypatch: pytest.MonkeyPatch, *attempts: bool) -> None:
    """The machine stands still in these attempts."""
    left = list(attempts)
    monkeypatch.setattr(Watch, "stood_still", property(lambda _watch: left.pop(0)))


def tried(outcomes: list[bool]) -> tuple[list[int], object]:
    """A test with these outcomes, and the attempts that were made."""
    made: list[int] = []

    @void_when_stalled
    def test() -> None:
        made.append(len(made))
        assert outcomes[len(made) - 1]

    return made, test


def test_a_check_that_holds_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    standing_still(monkeypatch)
    made, test = tried([True])
    test()  # type: ignore[operator]
    assert made == [0]


def test_a_failure_on_a_machine_that_ran_on_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    standing_still(monkeypatch, False)
    made, test = tried([False, True])
    with pytest.raises(AssertionError):
        test()  # type: ignore[operator]
    assert made == [0]


def test_one_in_a_standstill_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    standing_still(monkeypatch, True, True)
    made, test = tried([False, False, True])
    test()  # type: ignore[operator]
    assert made == [0, 1, 2]


def test_without_a_steady_moment_there_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    standing_still(monkeypatch, *[True] * ATTEMPTS)
    made, test = tried([False] * ATTEMPTS)
    with pytest.raises(pytest.skip.Exception, match="this machine stood still in each of 4 attempts"):
        test()  # type: ignore[operator]
    assert len(made) == ATTEMPTS


def test_a_late_thread_and_waiting_tasks_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0, 10**9])
    monkeypatch.setattr(steady, "_waited_us", lambda: next(readings))
    with Watch() as watch:
        pass
    assert watch.waited_share > 1
    assert watch.stood_still
    monkeypatch.setattr(steady, "_waited_us", lambda: 0)
    with Watch() as watch:
        pass
    watch.longest_s = steady.STALL_S + 0.001
    assert watch.stood_still
    watch.longest_s = 0.0
    assert not watch.stood_still


_attempts: list[Path] = []


@void_when_stalled
def test_each_attempt_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _attempts.append(tmp_path)
    monkeypatch.setattr(Watch, "stood_still", property(lambda _watch: True))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "left").touch()
    assert len(_attempts) == 2
    assert [path.name for path in _attempts] == ["0", "1"]
