# SPDX-License-Identifier: Apache-2.0
"""The one exception of the control plane, its stable machine codes, and the exit code that each means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TypeVar

_T = TypeVar("_T")


class ErrorCode(str, Enum):
    """Stable machine codes, each with the exit code of a process; the texts beside them may change. docs/cli.md has the table."""

    exit_code: int

    def __new__(cls, value: str, exit_code: int) -> ErrorCode:
        """A code and its exit code."""
        made = str.__new__(cls, value)
        made._value_ = value
        made.exit_code = exit_code
        return made

    def __call__(self, message: str, *, half_made: bool = False) -> FairlaneError:
        """An error of this code."""
        return FairlaneError(self, message, half_made=half_made)

    INTERNAL = "internal", 1
    BAD_INPUT = "bad_input", 2
    OUT_OF_RANGE = "out_of_range", 2
    UNKNOWN_NAME = "unknown_name", 3
    BAD_FILE = "bad_file", 3
    NO_TOPOLOGY = "no_topology", 3
    SWITCH_UNREACHABLE = "switch_unreachable", 4
    TLS_FAILED = "tls_failed", 4
    NO_PIPELINE = "no_pipeline", 5
    WRONG_PROGRAM = "wrong_program", 5
    NOT_PRIMARY = "not_primary", 5
    REFUSED = "refused", 5
    TIMED_OUT = "timed_out", 6
    LOOP_RUNNING = "loop_running", 7
    NO_LOOP = "no_loop", 7


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
    def from_json(cls, data: Mapping[str, str]) -> FairlaneError:
        """The inverse of `to_json`; an unknown code becomes `internal`."""
        known = {code.value: code for code in ErrorCode}
        return cls(known.get(data.get("code", ""), ErrorCode.INTERNAL), data.get("message", "no message"))


bad_input = ErrorCode.BAD_INPUT
"""A BAD_INPUT error: what was typed is wrong."""
bad_file = ErrorCode.BAD_FILE
"""A BAD_FILE error: a file cannot be read or written, or has a mistake."""


def short(text: str, max_chars: int = 200) -> str:
    """The text; when it is longer than `max_chars`, without its middle. For input that an error message quotes."""
    return text if len(text) <= max_chars else f"{text[: max_chars * 2 // 3]}…{text[-(max_chars // 3) :]}"


def find_by_name(kind: str, name: str, found: Mapping[str, _T]) -> _T:
    """The value of that name. Raises UNKNOWN_NAME (see `unknown_name`) when there is none."""
    if name not in found:
        raise unknown_name(kind, name, found)
    return found[name]


def nearest_name(name: str, valid: Iterable[str]) -> str:
    """`; did you mean 'status'?`, or nothing when no valid name is near."""
    lowered = {one.lower(): one for one in valid}
    near = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.4)
    return f"; did you mean {lowered[near[0]]!r}?" if near else ""


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> FairlaneError:
    """An UNKNOWN_NAME error that names the nearest valid name and, when there are few, all of them."""
    names = sorted(valid)
    listing = f"valid: {', '.join(names) or 'none'}" if len(names) <= 16 else f"there are {len(names)} valid names"
    problem = f"unknown {kind} {short(repr(name))}{nearest_name(name, names)}; {listing}"
    return ErrorCode.UNKNOWN_NAME(problem)


def out_of_range(what: str, value: object, low: object, high: object, unit: str = "") -> FairlaneError:
    """An OUT_OF_RANGE error that names the valid range, both ends included."""
    allowed = f"it must be between {low} and {high} {unit}".rstrip()
    return ErrorCode.OUT_OF_RANGE(f"{what} {value} is out of range: {allowed}")
