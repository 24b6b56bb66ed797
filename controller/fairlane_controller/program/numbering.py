# SPDX-License-Identifier: Apache-2.0
"""Numbers that are assigned once: slots, queues, ids. Each key has its own as long as the key exists."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Numbering(Generic[Key]):
    """Numbers of a range, each assigned to one key at a time; memory grows with the keys that exist, and no further.

    A number is assigned again after `release`, and not at once: `resting` of them rest, so that a packet of the old key that waits somewhere
    does not count for the new one. To let a number rest for a time, release its key when that time is over.
    """

    def __init__(self, numbers: range, given: Iterable[tuple[Key, int]] = (), *, resting: int = 0) -> None:
        """Begin with the numbers that keys have already.

        Args:
            numbers: All numbers.
            given: Keys and their numbers, as `adopt` takes them.
            resting: So many released numbers are not assigned again while there are new ones; of the others the one that was released
                first is the next.
        """
        self._numbers = numbers
        self._resting = resting
        self.adopt(given)

    def give(self, key: Key) -> int | None:
        """The number of a key: its own, else a free one.

        Returns:
            The number; None when no number is free.
        """
        if key not in self.given:
            is_last = self._used == len(self._numbers)
            if len(self._released) > self._resting or (self._released and is_last):
                self.given[key] = self._released.popleft()
            elif is_last:
                return None
            else:
                self.given[key] = self._numbers[self._used]
                self._used += 1
        return self.given[key]

    def release(self, key: Key) -> None:
        """The key is gone: another one may have its number."""
        if key in self.given:
            self._released.append(self.given.pop(key))

    def adopt(self, given: Iterable[tuple[Key, int]]) -> list[Key]:
        """Continue from the numbers that keys have, and from no others.

        Args:
            given: Keys and their numbers.

        Returns:
            Keys without a number from now on: it is another key's too, or not one of `numbers`.
        """
        self.given: dict[Key, int] = {}
        taken: set[int] = set()
        without: list[Key] = []
        for key, number in given:
            if number in taken or number not in self._numbers:
                without.append(key)
            else:
                taken.add(number)
                self.given[key] = number
        self._used = self._numbers.index(max(taken)) + 1 if taken else 0
        "The first so many of `numbers` were assigned at some time."
        self._released = deque(number for number in self._numbers[: self._used] if number not in taken)
        return without
