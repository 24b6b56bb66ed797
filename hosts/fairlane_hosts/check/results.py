# SPDX-License-Identifier: Apache-2.0
"""What the self-test found, in a file beside the compiled programs, for one kernel and one build of each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairlane_controller.documents import read_json, write_json

from .. import build
from ..errors import HostsError
from ..programs import find_program
from ..variants import VARIANTS, Variant


@dataclass(frozen=True)
class Result:
    """What came out for one variant."""

    variant: str
    status: str
    """`ok`, `cannot`, or `absent` (a built-in one that this kernel was built without)."""
    found: str
    """What was seen, or why not."""
    loads: bool = True
    """False: the kernel refuses its program, so it is left out when the others are loaded."""


def path() -> Path:
    return build.build_dir() / "check.json"


def kernel() -> str:
    """Release and build of the running kernel."""
    name = os.uname()
    return f"{name.release} {name.version}"


def tag(variant: Variant) -> str:
    """Which build of the variant and of its host programs."""
    tags = build.read_tags()
    names = [variant.object_name or "", *(find_program(program).object_name for program in variant.programs)]
    return " ".join(tags.get(name, "-") for name in names)


def _read() -> dict[str, Any]:
    """Rows by variant, of this kernel."""
    try:
        loaded = read_json(path())
        return loaded["results"] if loaded["kernel"] == kernel() else {}
    except (KeyError, TypeError):
        return {}


def read(variant: Variant) -> Result | None:
    """The newest result of this build of a variant on this kernel, if there is one."""
    try:
        row = dict(_read()[variant.name])
        return Result(**row) if row.pop("tag") == tag(variant) else None
    except (KeyError, TypeError):
        return None


def write(results: Iterable[Result]) -> None:
    """Keep results; those of other variants on this kernel stay."""
    rows = _read() | {result.variant: {**asdict(result), "tag": tag(VARIANTS[result.variant])} for result in results}
    write_json(path(), {"kernel": kernel(), "results": rows})


def require(variant: Variant) -> None:
    """Raise HostsError `check` when the self-test says that this kernel cannot run the variant; unchecked ones pass."""
    result = read(variant)
    if result is not None and result.status == "cannot":
        text = f"variant {variant.name} failed its check on this kernel: {result.found}"
        raise HostsError("check", text, f"use another one; `fairlane hosts check {variant.name}` tries again")
