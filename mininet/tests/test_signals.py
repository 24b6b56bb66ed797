# SPDX-License-Identifier: Apache-2.0
"""SIGTERM and SIGHUP end a block as an exception does, once, and never in the middle of a step that must not be broken."""

from __future__ import annotations

import signal

import pytest
from fairlane_topology.signals import Ended, defer_signals, ended_by_signals

# ruff: noqa: PT012
BOTH = pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])


@BOTH
def test_a_signal_ends_the_block_with_a_shells_exit_code(number: int, code: int) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Ended) as ended, ended_by_signals():
        signal.raise_signal(number)
    assert ended.value.exit_code == code
    assert signal.getsignal(number) is before


def test_what_comes_later_does_not_break_the_cleaning() -> None:
    cleaned = False
    with pytest.raises(Ended), ended_by_signals():
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.raise_signal(number)
            cleaned = True
    assert cleaned


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGTERM, Ended), (signal.SIGINT, KeyboardInterrupt)])
def test_a_step_that_is_held_is_whole(number: int, raised: type[BaseException]) -> None:
    steps: list[str] = []
    with ended_by_signals(), pytest.raises(raised):
        with defer_signals():
            with defer_signals():
                signal.raise_signal(number)
                steps.append("inner")
            steps.append("outer")
        steps.append("never")
    assert steps == ["inner", "outer"]


def test_ctrl_c_does_not_hide_the_end() -> None:
    with pytest.raises(Ended), ended_by_signals(), defer_signals():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)


def test_an_error_of_a_held_step_is_not_forgotten() -> None:
    with pytest.raises(Ended) as ended, ended_by_signals(), defer_signals():
        signal.raise_signal(signal.SIGTERM)
        raise ValueError("of the step")
    assert str(ended.value.__context__) == "of the step"


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
    try:
        with ended_by_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_step_is_whole_whoever_takes_the_signal() -> None:
    """Without `ended_by_signals` too: the lab has a handler of its own."""
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt), defer_signals():
        signal.raise_signal(signal.SIGINT)
        steps.append("done")
    before = signal.signal(signal.SIGTERM, lambda number, _: steps.append(signal.Signals(number).name))
    try:
        with defer_signals():
            signal.raise_signal(signal.SIGTERM)
            steps.append("done")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert steps == ["done", "done", "SIGTERM"]
