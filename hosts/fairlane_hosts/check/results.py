# SPDX-License-Identifier: Apache-2.0
"""What the self-test found, kept beside the compiled programs for one kernel and one build of each, and what `use` makes of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .. import build
from ..errors import HostsError
from ..programs import find_program
from ..variants import VARIANTS, Variant

INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "erto": "frto",
        "bcr": "frto",
        "bcr+": "frto",
        "frto": "newreno",
        "westwood": "newreno",
        "ena-tahoe": "tahoe",
        "ena-tahoe+": "tahoe",
        "ena-reno": "reno",
        "ena-reno+": "reno",
        "ena-sack": "sack",
        "ena-sack+": "sack",
        "nss-mrto": "nss",
        "nca-mrto": "nca",
        "mrto": "org",
        "vegas": "vegas-linux",
        "cubic": "cubic-linux",
        "bbr": "bbr-linux",
        "bbr-linux": "cubic-linux",
    }
)
"""What comes nearest to a variant that this kernel cannot run; others: `reno-linux`, which is built in."""


@dataclass(frozen=True)
class Result:
    """What came out for one variant."""

    variant: str
    status: str
    """`ok`, `cannot`, or `absent` (a built-in one that this kernel was built without)."""
    found: str
    """What was seen, or why not."""
    instead: str = ""
    """The nearest variant that passed; empty when it is not needed or there is none."""
    loads: bool = True
    """False: the kernel refuses its program, so it is left out when the others are loaded."""

    @property
    def ok(self) -> bool:
        return self.status == "ok"


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
    return hashlib.sha256(json.dumps([tags.get(name, "") for name in names]).encode()).hexdigest()[:16]


def _read() -> dict[str, Any]:
    try:
        loaded: Any = json.loads(path().read_text())
    except (OSError, ValueError):
        return {}
    try:
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
    rows = _read()
    for result in results:
        rows[result.variant] = {**asdict(result), "tag": tag(VARIANTS[result.variant])}
    partial = path().with_suffix(".partial")
    partial.write_text(json.dumps({"kernel": kernel(), "results": rows}, indent=1) + "\n")
    partial.replace(path())


def nearest(name: str, ok: Mapping[str, bool]) -> str:
    """The nearest variant that is ok (in `ok`), by `INSTEAD`; empty when there is none."""
    candidate = INSTEAD.get(name, "reno-linux" if name != "reno-linux" else "")
    while candidate and not ok.get(candidate, False):
        candidate = INSTEAD.get(candidate, "reno-linux" if candidate != "reno-linux" else "")
    return candidate


def require(variant: Variant) -> None:
    """Raise HostsError `check` when the self-test says that this kernel cannot run the variant; unchecked ones pass."""
    result = read(variant)
    if result is not None and result.status == "cannot":
        instead = f"--instead {result.instead} uses that one, and says so; " if result.instead else ""
        raise HostsError(
            "check",
            f"variant {variant.name} failed its check on this kernel: {result.found}",
            f"{instead}`fairlane hosts check {variant.name}` tries again",
        )
