# SPDX-License-Identifier: Apache-2.0
"""The systemd units and the configuration of docs/examples/systemd, which the operator's guide shows: systemd takes them, options and keys exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.config.read import problems_of, read_text
from test_documents import parse

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "examples" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
PAGE = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")


def command_of(unit: Path) -> list[str]:
    (line,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(line)


def test_the_loop_s_command_exists() -> None:
    program, *words = command_of(FOLDER / "fairlane-run.service")
    assert Path(program).name == "fairlane"
    parse(words)


def test_the_switch_s_options_exist() -> None:
    binary = ROOT / "switch" / "target" / "release" / "fairlane-switch"
    if not binary.is_file():
        pytest.skip("the switch is not built")
    program, *words = command_of(FOLDER / "fairlane-switch.service")
    assert Path(program).name == binary.name
    text = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=20, check=True).stdout
    for option in (word for word in words if word.startswith("--")):
        assert re.search(rf"(?:^|[\s,]){option}\b", text), option


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    """With a user and programs that this machine has, for which systemd looks."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in UNITS:
        text = re.sub(r"(?<==)/opt/fairlane/bin/\S+", "/bin/true", unit.read_text(encoding="utf-8"))
        (tmp_path / unit.name).write_text(text.replace("User=fairlane\n", "User=daemon\n"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", *(tmp_path / unit.name for unit in UNITS)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_shows_the_switch_s_unit() -> None:
    (shown,) = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    assert shown.rstrip() in (FOLDER / "fairlane-switch.service").read_text(encoding="utf-8")


def test_the_configuration_is_valid() -> None:
    config: Any = read_text((FOLDER / "fairlane.toml").read_text(encoding="utf-8"), "fairlane.toml")
    assert problems_of(config, None) == []
