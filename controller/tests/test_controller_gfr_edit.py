# SPDX-License-Identifier: Apache-2.0
"""What people ask for, as changes of a configuration: results, and refusals in their own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gfr_configs as configs
import pytest
from fairlane_controller.cli.main import main
from fairlane_controller.cli.objects import Objects
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.gfr.cli import VCS
from fairlane_controller.programs.gfr.config import GfrState

GOLD: dict[str, Any] = {"mcr": "6Mbit", "match": [{"switch": "s1", "ingress_port": 7}]}


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[GfrState]:
    """The five VCs after each command, checked as they are beside a topology."""
    found: list[GfrState] = []

    def make(_: Objects, state: str | None, edit: Any, source: str, *__: Any, **___: Any) -> None:
        assert state is None
        data = configs.data()
        edit(data)
        configs.check_config(data, source=source)
        found.append(configs.state_of(data))

    monkeypatch.setattr(Objects, "make", make)
    return found


def test_a_vc_is_added_changed_and_removed(made: list[GfrState]) -> None:
    VCS.add("gold", GOLD)
    VCS.set("vc1", {"mcr": "3Mbit", "mbs_cells": 100})
    VCS.delete(["vc2", "vc4"])
    added, changed, removed = made
    assert [vc.name for vc in added.vcs][-2:] == ["vc5", "gold"]
    vc = changed.vcs[0]
    assert (vc.mcr, vc.mbs_cells, vc.mfs_bytes, len(vc.match)) == (3e6, 100, 1500, 1)
    assert [vc.name for vc in removed.vcs] == ["vc1", "vc3", "vc5"]


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (lambda: VCS.add("vc1", GOLD), ErrorCode.BAD_INPUT, "there is a VC 'vc1' already: change it with `set`"),
        (lambda: VCS.add("gold", {}), ErrorCode.BAD_FILE, "VC gold: vcs[5].mcr: must be given"),
        (lambda: VCS.add("gold", {**GOLD, "mcr": "fast"}), ErrorCode.BAD_FILE, "VC gold: vcs[5].mcr: rate 'fast' is not a number with a unit"),
        (lambda: VCS.add("gold", {**GOLD, "mcr": "22Mbit"}), ErrorCode.BAD_FILE, "VC gold: ports[0].capacity: the MCRs of 6 VCs sum up to 52 Mbit/s on s1:6, 160 kbit/s more"),
        (lambda: VCS.add("gold", {**GOLD, "path": ["s2:1"]}), ErrorCode.BAD_FILE, "VC gold: vcs[5].path: gold must cross managed ports (s1:6)"),
        (lambda: VCS.set("vc3", {}), ErrorCode.BAD_INPUT, "set needs at least one option"),
        (lambda: VCS.set("vc9", {"weight": 1}), ErrorCode.UNKNOWN_NAME, "unknown VC 'vc9'; did you mean"),
        (lambda: VCS.set("vc3", {"weight": 0}), ErrorCode.BAD_FILE, "VC vc3: vcs[2].weight: 0 is out of range: must be greater than 0"),
        (lambda: VCS.delete(["vc1", "nobody"]), ErrorCode.UNKNOWN_NAME, "unknown VC 'nobody'"),
    ],
)  # fmt: skip
def test_refusals(command: Callable[[], None], code: ErrorCode, message: str) -> None:
    with pytest.raises(FairlaneError) as caught:
        command()
    assert message in caught.value.message
    assert caught.value.code is code


@pytest.mark.parametrize("command", [("gfr", "vc",), ("gfr", "vc", "add"), ("gfr", "vc", "set"), ("gfr", "vc", "delete"), ("gfr", "vc", "list"), ("gfr",)])  # fmt: skip
def test_every_command_has_help(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    assert "Usage" in capsys.readouterr().out
