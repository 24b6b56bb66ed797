# SPDX-License-Identifier: Apache-2.0
"""The same for many switches at once: each on its own, so that one that fails or hangs takes nothing from the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from fairlane_controller.errors import FairlaneError

_T = TypeVar("_T")


async def gather_results(works: Sequence[Awaitable[_T]]) -> tuple[list[_T], list[FairlaneError]]:
    """Run all at once, to the end. Returns the results and the errors, each in the given order; an unexpected exception is raised."""
    done = await asyncio.gather(*works, return_exceptions=True)
    results: list[_T] = []
    errors: list[FairlaneError] = []
    for one in done:
        if isinstance(one, FairlaneError):
            errors.append(one)
        elif isinstance(one, BaseException):
            raise one
        else:
            results.append(one)
    return results, errors


def join_errors(errors: Sequence[FairlaneError], of: int) -> FairlaneError:
    """All errors as one with the first one's code; `of` is the number of switches that were asked."""
    if len(errors) == 1 and of == 1:
        return errors[0]
    return FairlaneError(errors[0].code, f"{len(errors)} of {of} switches: " + "; ".join(e.message for e in errors))
