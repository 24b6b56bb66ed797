# SPDX-License-Identifier: Apache-2.0
"""Hostile configuration files: read, checked against a topology and written again, or refused with the file and the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairlane_controller.config.read import check, read_file, read_text
from fairlane_controller.config.show import to_toml
from fairlane_controller.documents import parse_toml
from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import RunState
from fuzz_run_state import STATE, refused
from fuzz_tools import BYTES, changed, explore_file, texts, toml
from hypothesis import strategies as st

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = [path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "mininet" / "topologies").glob("*.toml"))]
RUN = RunState.model_validate(STATE)


def _inputs(bases: list[str]) -> st.SearchStrategy[bytes]:
    as_written = st.builds(changed, st.sampled_from([base.encode() for base in bases]), BYTES)
    return texts(*(_plain(base) for base in bases), dump=toml) | as_written


def _plain(text: str) -> Any:
    return json.loads(json.dumps(parse_toml(text), default=str))


def explore_configuration(examples: int, seed: int) -> None:
    """`fairlane config`'s files; what is taken is the same after it was written and read again."""

    def one(path: Path) -> None:
        try:
            loaded = read_file(path)
        except FairlaneError as ex:
            refused(ex, str(path))
            return
        assert read_text(to_toml(loaded.config), "again").plain() == loaded.config.plain()
        for run in (None, RUN):
            try:
                check(loaded, run)
            except FairlaneError as ex:
                refused(ex)

    explore_file(one, "f.toml", _inputs(FILES), examples, seed)


def explore_gfr(examples: int, seed: int) -> None:
    """Configurations with VCs, as plans."""
    program = load_program("gfr")

    def one(path: Path) -> None:
        try:
            loaded = read_file(path)
        except FairlaneError as ex:
            refused(ex, str(path))
            return
        for run in (None, RUN):
            try:
                check(loaded, run)
                program.plan(loaded.config.part_of(program, run), run)
            except FairlaneError as ex:
                refused(ex)

    explore_file(one, "f.toml", _inputs([text for text in FILES if "[[vcs]]" in text]), examples, seed)
