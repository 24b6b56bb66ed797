# SPDX-License-Identifier: Apache-2.0
"""The requests of the control socket as a table: what each has and of which type; anything else is refused before it is looked at.

What a program or a switch says (the range of a weight, whether there is such a port or field) is said later, as without a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.problems import describe_one, problem_path

MAX_UPDATES = 10_000
"""Of table entries in one request."""

_U63 = (1 << 63) - 1


class Part(BaseModel):
    """What requests are made of: exact types, no other keys."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


Name = Annotated[str, Field(min_length=1, max_length=255)]
Number = Annotated[int, Field(ge=0, lt=1 << 2048)]
Value = Annotated[str, Field(max_length=1024)] | Number
Plain = dict[str, Any]


class Request(Part):
    """A request of the control socket."""

    op: str


class SwitchRequest(Request):
    """Of one switch."""

    switch: Name


class _Meter(Part):
    cir: Annotated[int, Field(ge=0, le=_U63)]
    cburst: Annotated[int, Field(ge=0, le=_U63)]
    pir: Annotated[int, Field(ge=0, le=_U63)]
    pburst: Annotated[int, Field(ge=0, le=_U63)]


class _Update(Part):
    """Of a table entry, or by `entity` and `text` of anything else, as `switch/updates.py` has them."""

    update: Literal["insert", "modify", "delete"]
    entity: Name | None = None
    text: Annotated[str, Field(max_length=1 << 20)] = ""
    table: Name | None = None
    match: dict[str, Value | Annotated[list[Value], Field(min_length=2, max_length=2)]] | None = None
    priority: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    action: Name | None = None
    args: dict[str, Value] = Field(default_factory=dict)
    indirect: Plain = Field(default_factory=dict)
    meter: _Meter | None = None
    idle_timeout_ns: Annotated[int, Field(ge=0, le=_U63)] = 0
    metadata: Annotated[str, Field(pattern="^([0-9a-f]{2})*$", max_length=2048)] = ""
    default: bool = False

    @model_validator(mode="after")
    def _names_one(self) -> _Update:
        if self.entity is None and (self.table is None or self.match is None):
            raise ValueError("must have a table and a match, or an entity")
        return self


class TableWrite(SwitchRequest):
    """`table_write`: entities, all or none, or `each` that the switch takes."""

    updates: Annotated[list[_Update], Field(max_length=MAX_UPDATES)]
    each: bool = False
    put: bool = False
    "With `each`: an entity that is there is modified, one that is not there is inserted, whatever the update says."
    command: Annotated[str, Field(max_length=4096)] = ""
    "Who asks, for the event log."


class _LoopPut(Request):
    loop: Plain | None


REQUESTS: dict[str, type[Request]] = {
    "status": Request,
    "measure": Request,
    "table_write": TableWrite,
    "poke": Request,
    "loop_options": Request,
    "loop_put": _LoopPut,
    "config_reload": Request,
}
"""By op: those of every loop; programs have their own (`TopologyControl.requests`)."""


def checked(request: Any, models: Mapping[str, type[Request]] = REQUESTS) -> Plain:
    """The request itself; BAD_INPUT that names the op, the key, what was given and what is allowed. An op without a model is left alone."""
    if not isinstance(request, dict):
        raise FairlaneError(ErrorCode.BAD_INPUT, 'a request must be a JSON object with an "op"')
    data = cast("Plain", request)
    op = data.get("op")
    if not isinstance(op, str):
        raise FairlaneError(ErrorCode.BAD_INPUT, f'a request must have an "op", a string; got {str(data)[:80]}')
    model = models.get(op)
    if model is None:
        return data
    try:
        model.model_validate(data)
    except ValidationError as ex:
        first = cast("dict[str, Any]", ex.errors()[0])
        steps = problem_path(first)
        problem = describe_one({**first, "loc": steps}, model)
        more = ex.error_count() - 1
        raise FairlaneError(
            ErrorCode.BAD_INPUT, f"{op}: {problem[:400]}" + (f" (and {more} more)" if more else "")
        ) from None
    return data
