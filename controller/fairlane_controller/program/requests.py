# SPDX-License-Identifier: Apache-2.0
"""The requests of the control socket as models: what each has and of which type; anything else is refused before it is used.

What depends on a program or a switch (the range of a weight, whether there is such a port or field) is checked later, as without a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from fairlane_controller.documents import is_table
from fairlane_controller.errors import bad_input
from fairlane_controller.problems import describe_one, problem_path
from fairlane_controller.switch.updates import Strict, Update

MAX_UPDATES = 10_000
"""Table entries of one request."""
Plain = dict[str, Any]


class Request(Strict):
    """A request of the control socket: exact types, and no other keys."""

    op: str


class _TableWrite(Request):
    """`table_write`: each entity that the switch takes."""

    switch: str
    updates: Annotated[list[Update], Field(max_length=MAX_UPDATES)]
    put: bool = False
    "An entity that is there is modified, one that is not there is inserted, whatever the update says."
    command: str = ""
    "The command that asks, for the event log."


class _LoopPut(Request):
    loop: Plain | None


REQUESTS: dict[str, type[Request]] = {
    **dict.fromkeys(("status", "measure", "poke", "loop_options"), Request),
    "table_write": _TableWrite,
    "loop_put": _LoopPut,
}
"""By op: those of every loop; programs have their own (`TopologyControl.requests`)."""


def checked(request: Any, models: Mapping[str, type[Request]] = REQUESTS) -> Plain:
    """Check a request.

    Args:
        request: What a client sent, as JSON has it.
        models: The models by op; a request whose op has none is not checked any further.

    Returns:
        The request itself.

    Raises:
        FairlaneError: BAD_INPUT that names the op, the key, the value and what is allowed.
    """
    op = request.get("op") if is_table(request) else None
    if not isinstance(op, str):
        raise bad_input('a request must be a JSON object with an "op", a string')
    try:
        if op in models:
            models[op].model_validate(request)
    except ValidationError as ex:
        first = ex.errors()[0]
        problem = describe_one({**first, "loc": problem_path(first)}, models[op])
        raise bad_input(f"{op}: {problem[:400]}") from None
    return request
