# SPDX-License-Identifier: Apache-2.0
"""Numbers that are given once: slots, queues, ids. Each key has its own for as long as it is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Numbering(Generic[Key]):
    """Numbers of a range, each given to one key at a time; memory grows with the keys that exist, and no further.

    A number is given again after `release`, and not at once: `resting` of them rest, so that a packet of the old key that waits somewhere
    does not count for the new one. To let a number rest for a time, release its key when that time is over.
    """

    def __init__(self, numbers: range, given: Iterable[tuple[Key, int]] = (), *, resting: int = 0) -> None:
        """`given`: as `adopt`. `resting`: so many released numbers are not given again while there are new ones; of the others the one that was released first is."""
        self._numbers = numbers
        self._resting = resting
        self.adopt(given)

    def give(self, key: Key) -> int | None:
        """The key's number, a free one where it has none; None when no number is free."""
        if key in self.given:
            return self.given[key]
        is_last = self._used == len(self._numbers)
        if len(self._released) > self._resting or (self._released and is_last):
            number = self._released.popleft()
        elif is_last:
            return None
        else:
            number = self._numbers[self._used]
            self._used += 1
        self.given[key] = number
        return number

    def release(self, key: Key) -> None:
        """The key is gone: another one may have its number."""
        if key in self.given:
            self._released.append(self.given.pop(key))

    def adopt(self, given: Iterable[tuple[Key, int]]) -> list[Key]:
        """Go on from the numbers that keys have already, and from no others.

        Returns:
            Keys without a number from now on: it is another's too, or none of ours.
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
        "So many of `numbers`, from the first on, were given at some time."
        self._released = deque(number for number in self._numbers[: self._used] if number not in taken)
        return without
