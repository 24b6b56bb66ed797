# SPDX-License-Identifier: Apache-2.0
"""Numbers: one key each, all in range, given back, adopted after a restart, and never more than there are."""

from __future__ import annotations

from typing import Any

from fairlane_controller.program.learned import Numbering
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule


def test_a_known_key_keeps_its_number() -> None:
    numbers = Numbering[str](range(10))
    assert [numbers.give(key) for key in ("a", "b", "a")] == [0, 1, 0]


def test_no_number_is_given_beyond_the_last() -> None:
    numbers = Numbering[int](range(1, 3))
    assert [numbers.give(key) for key in range(4)] == [1, 2, None, None]
    numbers.release(0)
    numbers.release(7)  # never given
    assert [numbers.give(key) for key in (8, 9)] == [1, None]


def test_the_number_released_longest_ago_is_given_first() -> None:
    numbers = Numbering[int](range(3))
    for key in range(3):
        numbers.give(key)
    for key in (2, 0, 1):
        numbers.release(key)
    assert [numbers.give(10 + key) for key in range(3)] == [2, 0, 1]


def test_numbers_that_rest_are_given_after_new_ones() -> None:
    numbers = Numbering[int](range(5), resting=2)
    for key in range(4):
        numbers.give(key)
    numbers.release(1)
    numbers.release(0)
    assert numbers.give(10) == 4, "two rest"
    assert numbers.give(11) == 1, "there is no new one"
    numbers.release(2)
    numbers.release(3)
    assert numbers.give(12) == 0, "more than two rest"


def test_adoption_finds_doubled_numbers_and_those_of_others() -> None:
    numbers = Numbering[Any](range(8), [("old", 0)])
    assert numbers.adopt([("a", 5), ("b", 5), ("c", 2), ("d", 8), ("e", -1)]) == ["b", "d", "e"]
    assert numbers.given == {"a": 5, "c": 2}
    assert sorted(filter(None, map(numbers.give, range(6)))) == [1, 3, 4, 6, 7]


class Slots(RuleBasedStateMachine):
    """Any order of arrivals, departures and restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = Numbering[int](range(6), resting=2)
        self.alive: set[int] = set()

    @rule(number=st.integers(0, 11))
    def arrive(self, number: int) -> None:
        slot = self.numbers.give(number)
        if slot is None:
            assert len(self.alive) == 6
        else:
            self.alive.add(number)

    @rule(number=st.integers(0, 11))
    def leave(self, number: int) -> None:
        self.numbers.release(number)
        self.alive.discard(number)

    @rule()
    def restart(self) -> None:
        before = self.numbers.given
        self.numbers = Numbering(range(6), before.items(), resting=2)
        assert self.numbers.given == before

    @invariant()
    def one_slot_each(self) -> None:
        slots = self.numbers.given.values()
        assert len(set(slots)) == len(slots) == len(self.alive)
        assert all(0 <= slot < 6 for slot in slots)


TestSlots = Slots.TestCase


@given(st.lists(st.integers(0, 65_535), max_size=50, unique=True))
def test_what_is_new_after_an_adoption_never_collides(slots: list[int]) -> None:
    assert Numbering(range(65_536), enumerate(slots)).give(60_000) not in slots
