# SPDX-License-Identifier: Apache-2.0
"""The command as it was typed: what the history of changes calls it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextvars import ContextVar

_typed: ContextVar[str] = ContextVar("typed", default="fairlane")


def remember(arguments: Sequence[str]) -> None:
    """The arguments behind `fairlane`."""
    _typed.set(shlex.join(arguments))


def typed() -> str:
    """`threshold set s1:3 5`."""
    return _typed.get()
