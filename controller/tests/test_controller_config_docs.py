# SPDX-License-Identifier: Apache-2.0
"""docs/configuration.md is true: its commands run on a real switch, its file is valid, its errors are said so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.config.read import problems_of, read_text
from fairlane_controller.typed import typed
from live_switch import LiveSwitch, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The document's blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


def commands() -> Iterator[list[str]]:
    """The arguments of each `fairlane …` line."""
    lines = "".join(blocks("sh")).splitlines()
    for line in (line for line in lines if not line.startswith("#")):
        program, *arguments = shlex.split(line, comments=True)
        assert program == "fairlane", line
        yield arguments


def test_every_command_of_the_document_runs(switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    ran = 0
    for arguments in commands():
        if arguments[0] == "run":
            with switch.loop(*arguments[1:]):
                wait_until("the file to be in force", lambda: switch.events("config_applied"))
        else:
            differs = arguments[:2] == ["config", "diff"] and ran == 1
            switch.fairlane(*arguments, code=10 if differs else 0)
        ran += 1
    assert ran > 12
    assert typed().startswith("undo")


def test_the_file_of_the_document_is_valid() -> None:
    (text,) = blocks("toml")
    config: Any = read_text(text, "configuration.md")
    assert problems_of(config, None) == []
    assert config.loop is not None
    assert [(policy.mode, policy.threshold) for policy in config.policies or ()] == [("auto", None), ("manual", 10)]
