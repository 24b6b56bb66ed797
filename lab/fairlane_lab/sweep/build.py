# SPDX-License-Identifier: Apache-2.0
"""What results come from beside an experiment's file: hashes of the code, the compiled P4 and the native module. Machines of one campaign have the same."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from fairlane_lab.paths import REPOSITORY, digest_files

PYTHON = ("fairlane_lab", "fairlane_controller", "fairlane_hosts")
"""Packages whose code decides what a run gives."""


@cache
def build_hashes() -> Mapping[str, str]:
    """`code`, `p4` and `native`: 12 hexadecimal digits each; an empty text where there is none. Read once a process."""
    sources = [path for name in PYTHON for path in sorted(_folder_of(name).rglob("*.py"))]
    compiled = sorted((REPOSITORY / "p4src" / "compiled").glob("*.json"))
    return {"code": _hash(sources), "p4": _hash(compiled), "native": _hash(_native())}


def differences(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """`code is 12ab…, here 34cd…`, for each that differs."""
    return [f"{name} is {theirs.get(name)}, here {value}" for name, value in mine.items() if theirs.get(name) != value]


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else Path("/nonexistent")


def _native() -> list[Path]:
    return sorted(_folder_of("fairlane_switch").glob("native*.so"))


def _hash(paths: Sequence[Path]) -> str:
    return digest_files(paths, 12) if paths else ""
