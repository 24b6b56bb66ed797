# SPDX-License-Identifier: Apache-2.0
"""The requests of the control socket as a table: what each has and of which type; anything else is refused before it is looked at.

What a program or a switch says (the range of a weight, whether there is such a port or field) is said later, as without a loop.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.problems import describe_one, keys_in

MAX_UPDATES = 10_000
"""Of table entries in one request."""
MAX_RULES = 1_000

_U63 = (1 << 63) - 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


Name = Annotated[str, Field(min_length=1, max_length=255)]
Number = Annotated[int, Field(ge=0, lt=1 << 2048)]
Value = Annotated[str, Field(max_length=1024)] | Number
Plain = dict[str, Any]


class _Request(_Part):
    op: str


class _Of(_Request):
    """Of one switch."""

    switch: Name


class _Place(_Of):
    """Of one (egress port, class)."""

    port: int
    traffic_class: int = Field(default=0, alias="class")


class _ThresholdSet(_Place):
    packets: int | None = None
    weight: float | None = None


class _ThresholdAuto(_Place):
    k: float | None = None
    weight: float | None = None
    self_tuning: bool | None = None


Scheme = Literal["drop_tail", "qthresh"]


class _SchemeSet(_Place):
    scheme: Scheme


class _Policies(_Request):
    """One of those above for several places, `change` without its place; `switches` None: all."""

    change: Plain
    switches: list[Name] | None = None
    port: int | None = None
    every: bool = False
    command: Annotated[str, Field(max_length=4096)] | None = None


class _Meter(_Part):
    cir: Annotated[int, Field(ge=0, le=_U63)]
    cburst: Annotated[int, Field(ge=0, le=_U63)]
    pir: Annotated[int, Field(ge=0, le=_U63)]
    pburst: Annotated[int, Field(ge=0, le=_U63)]


class _Update(_Part):
    """A table entry, as `switch/updates.py` has it."""

    update: Literal["insert", "modify", "delete"]
    table: Name
    match: dict[str, Value | Annotated[list[Value], Field(min_length=2, max_length=2)]]
    priority: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    action: Name | None = None
    args: dict[str, Value] = Field(default_factory=dict)
    meter: _Meter | None = None
    idle_timeout_ns: Annotated[int, Field(ge=0, le=_U63)] = 0
    metadata: Annotated[str, Field(pattern="^([0-9a-f]{2})*$", max_length=2048)] = ""
    default: bool = False


class _TableWrite(_Of):
    updates: Annotated[list[_Update], Field(max_length=MAX_UPDATES)]
    settings: dict[str, Plain] = Field(default_factory=dict)


class _P4Write(_Of):
    updates: Annotated[list[str], Field(max_length=1_000)]


class _FlowWeights(_Request):
    rules: Annotated[list[Plain], Field(max_length=MAX_RULES)]


class _Result(_Request):
    of: Name


class _LoopPut(_Request):
    loop: Plain | None


class _Edit(_Request):
    """An edit of the VCs; what is in it is checked with the configuration that it makes."""

    source: Annotated[str, Field(max_length=4096)] | None = None


class _VcAdd(_Edit):
    vc: Plain


class _VcSet(_Edit):
    name: Name
    changes: Plain


class _VcDel(_Edit):
    names: Annotated[list[Name], Field(max_length=MAX_UPDATES)]


class _GfrSet(_Edit):
    switch: Name | None = None
    port: int | None = None
    changes: Plain


class _GfrApply(_Edit):
    config: Plain


REQUESTS: dict[str, type[_Request]] = {
    "status": _Request,
    "measure": _Request,
    "threshold_set": _ThresholdSet,
    "threshold_auto": _ThresholdAuto,
    "scheme_set": _SchemeSet,
    "policies": _Policies,
    "table_write": _TableWrite,
    "p4_write": _P4Write,
    "flow_weights": _FlowWeights,
    "result": _Result,
    "loop_options": _Request,
    "loop_put": _LoopPut,
    "config_reload": _Request,
    "vc_add": _VcAdd,
    "vc_set": _VcSet,
    "vc_del": _VcDel,
    "gfr_set": _GfrSet,
    "gfr_apply": _GfrApply,
}
"""By op; which of them a loop answers is its own."""


def checked(request: Any) -> Plain:
    """The request itself; BAD_INPUT that names the op, the key, what was given and what is allowed. An op that nobody has is left to the loop."""
    if not isinstance(request, dict):
        raise FairlaneError(ErrorCode.BAD_INPUT, 'a request must be a JSON object with an "op"')
    data = cast("Plain", request)
    op = data.get("op")
    if not isinstance(op, str):
        raise FairlaneError(ErrorCode.BAD_INPUT, f'a request must have an "op", a string; got {str(data)[:80]}')
    model = REQUESTS.get(op)
    if model is None:
        return data
    try:
        model.model_validate(data)
    except ValidationError as ex:
        first = cast("dict[str, Any]", ex.errors()[0])
        steps = keys_in(first)
        problem = describe_one({**first, "loc": steps}, model)
        more = ex.error_count() - 1
        raise FairlaneError(
            ErrorCode.BAD_INPUT, f"{op}: {problem[:400]}" + (f" (and {more} more)" if more else "")
        ) from None
    return data
