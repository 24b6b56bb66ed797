# SPDX-License-Identifier: Apache-2.0
"""The requests of the control socket as models: what each has and of which type; anything else is refused before it is used.

What depends on a program or a switch (the range of a weight, whether there is such a port or field) is checked later, as without a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.problems import describe_one, problem_path

MAX_UPDATES = 10_000
"""Table entries of one request."""
Name = Annotated[str, Field(min_length=1, max_length=255)]
Value = Annotated[str, Field(max_length=1024)] | Annotated[int, Field(ge=0, lt=1 << 2048)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Plain = dict[str, Any]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Request(_Strict):
    """A request of the control socket: exact types, and no other keys."""

    op: str


class SwitchRequest(Request):
    """Of one switch."""

    switch: Name


class _Meter(_Strict):
    cir: Count
    cburst: Count
    pir: Count
    pburst: Count


class _Indirect(_Strict):
    """A member or a group of an action profile."""

    member_id: Annotated[int, Field(ge=0, lt=1 << 32)] | None = None
    group_id: Annotated[int, Field(ge=0, lt=1 << 32)] | None = None


class _Update(_Strict):
    """Of a table entry, or by `entity` and `text` of anything else, as `switch/updates.py` has them."""

    update: Literal["insert", "modify", "delete"]
    entity: Name | None = None
    text: Annotated[str, Field(max_length=1 << 20)] = ""
    table: Name | None = None
    match: dict[str, Value | Annotated[list[Value], Field(min_length=2, max_length=2)]] | None = None
    priority: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    action: Name | None = None
    args: dict[str, Value] = Field(default_factory=dict)
    indirect: _Indirect | None = None
    meter: _Meter | None = None
    idle_timeout_ns: Count = 0
    metadata: Annotated[str, Field(pattern="^([0-9a-f]{2})*$", max_length=2048)] = ""
    default: bool = False

    @model_validator(mode="after")
    def _names_one(self) -> _Update:
        if self.entity is None and (self.table is None or self.match is None):
            raise ValueError("must have a table and a match, or an entity")
        return self


class _TableWrite(SwitchRequest):
    """`table_write`: each entity that the switch takes."""

    updates: Annotated[list[_Update], Field(max_length=MAX_UPDATES)]
    put: bool = False
    "An entity that is there is modified, one that is not there is inserted, whatever the update says."
    command: Annotated[str, Field(max_length=4096)] = ""
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
    op = cast("Plain", request).get("op") if isinstance(request, dict) else None
    if not isinstance(op, str):
        raise FairlaneError(ErrorCode.BAD_INPUT, 'a request must be a JSON object with an "op", a string')
    try:
        if op in models:
            models[op].model_validate(request)
    except ValidationError as ex:
        first = cast("dict[str, Any]", ex.errors()[0])
        problem = describe_one({**first, "loc": problem_path(first)}, models[op])
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{op}: {problem[:400]}") from None
    return cast("Plain", request)
