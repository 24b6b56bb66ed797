# SPDX-License-Identifier: Apache-2.0
"""The one exception of the control plane, its stable machine codes, and the exit code that each means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TypeVar

_T = TypeVar("_T")


class ErrorCode(str, Enum):
    """Stable machine codes; the texts beside them may change."""

    INTERNAL = "internal"
    BAD_INPUT = "bad_input"
    OUT_OF_RANGE = "out_of_range"
    UNKNOWN_NAME = "unknown_name"
    BAD_FILE = "bad_file"
    NO_TOPOLOGY = "no_topology"
    SWITCH_UNREACHABLE = "switch_unreachable"
    TLS_FAILED = "tls_failed"
    NO_PIPELINE = "no_pipeline"
    WRONG_PROGRAM = "wrong_program"
    NOT_PRIMARY = "not_primary"
    REFUSED = "refused"
    TIMED_OUT = "timed_out"
    LOOP_RUNNING = "loop_running"
    NO_LOOP = "no_loop"

    @property
    def exit_code(self) -> int:
        """The process exit code for this kind of error; documented in docs/controller.md."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    ErrorCode.INTERNAL: 1,
    ErrorCode.BAD_INPUT: 2,
    ErrorCode.OUT_OF_RANGE: 2,
    ErrorCode.UNKNOWN_NAME: 3,
    ErrorCode.BAD_FILE: 3,
    ErrorCode.NO_TOPOLOGY: 3,
    ErrorCode.SWITCH_UNREACHABLE: 4,
    ErrorCode.TLS_FAILED: 4,
    ErrorCode.NO_PIPELINE: 5,
    ErrorCode.WRONG_PROGRAM: 5,
    ErrorCode.NOT_PRIMARY: 5,
    ErrorCode.REFUSED: 5,
    ErrorCode.TIMED_OUT: 6,
    ErrorCode.LOOP_RUNNING: 7,
    ErrorCode.NO_LOOP: 7,
}


class FairlaneError(Exception):
    """What went wrong, where, and what is allowed, in one sentence for people and one code for programs."""

    def __init__(self, code: ErrorCode, message: str, *, half_made: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.half_made = half_made
        "A part of a change is made and could not be taken back: the next change begins with that."

    @property
    def exit_code(self) -> int:
        """The exit code of a process that ends with this error."""
        return self.code.exit_code

    def to_json(self) -> dict[str, str]:
        """`{"code", "message"}`, as `--json` prints it and the control socket sends it."""
        return {"code": self.code.value, "message": self.message}

    @classmethod
    def from_json(cls, data: dict[str, str]) -> FairlaneError:
        """The inverse of `to_json`; an unknown code becomes `internal`."""
        try:
            code = ErrorCode(data.get("code", ""))
        except ValueError:
            code = ErrorCode.INTERNAL
        return cls(code, data.get("message", "no message"))


def short(text: str, most: int = 200) -> str:
    """The text; when it is longer than the limit, without its middle. For input that an error message quotes."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]}…{text[-(most // 3) :]}"


def find_by_name(kind: str, name: str, found: Mapping[str, _T]) -> _T:
    """The value of that name. Raises UNKNOWN_NAME (see `unknown_name`) when there is none."""
    if name not in found:
        raise unknown_name(kind, name, found)
    return found[name]


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> FairlaneError:
    """An UNKNOWN_NAME error that names the nearest valid name and, when there are few, all of them."""
    names = sorted(valid)
    lowered = {n.lower(): n for n in names}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.4)
    hint = f"; did you mean {lowered[near[0]]!r}?" if near else ""
    if not names:
        listing = f"; there is no {kind}"
    elif len(names) <= 16:
        listing = f"; valid: {', '.join(names)}"
    else:
        listing = f"; there are {len(names)} valid names"
    return FairlaneError(ErrorCode.UNKNOWN_NAME, f"unknown {kind} {short(repr(name))}{hint}{listing}")


def out_of_range(what: str, value: object, low: object, high: object, unit: str = "") -> FairlaneError:
    """An OUT_OF_RANGE error that names the valid range, both ends included."""
    suffix = f" {unit}" if unit else ""
    return FairlaneError(
        ErrorCode.OUT_OF_RANGE, f"{what} {value} is out of range: it must be between {low} and {high}{suffix}"
    )
