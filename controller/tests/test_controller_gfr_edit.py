# SPDX-License-Identifier: Apache-2.0
"""What people ask for, as changes of a configuration: results, and refusals in their own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gfr_configs as configs
import pytest
from fairlane_controller.cli.main import main
from fairlane_controller.cli.targets import Targets
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.gfr.check import check_config
from fairlane_controller.programs.gfr.cli import VCS, Vcs
from fairlane_controller.programs.gfr.config import GfrConfig, parse_config
from fairlane_controller.switch.client import Endpoint

GOLD: dict[str, Any] = {"mcr": "6Mbit", "match": [{"switch": "s1", "ingress_port": 7}]}


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[GfrConfig]:
    """The five VCs after each command, checked as they are beside a topology."""
    found: list[GfrConfig] = []

    def make(_: Vcs, state: str | None, edit: Any, source: str, *__: Any, **___: Any) -> None:
        assert state is None
        data = configs.config().model_dump(mode="json")
        edit(data)
        config = parse_config(data, source)
        check_config(config, source)
        found.append(config)

    monkeypatch.setattr(Vcs, "make", make)
    return found


def test_a_vc_is_added_changed_and_removed(made: list[GfrConfig]) -> None:
    VCS.add("gold", GOLD)
    VCS.set("vc1", {"mcr": "3Mbit", "mbs_cells": 100})
    VCS.delete(["vc2", "vc4"])
    added, changed, removed = made
    assert [vc.name for vc in added.vcs][-2:] == ["vc5", "gold"]
    vc = changed.vcs[0]
    assert (vc.mcr, vc.mbs_cells, vc.mfs_bytes, len(vc.match)) == (3e6, 100, 1500, 1)
    assert [vc.name for vc in removed.vcs] == ["vc1", "vc3", "vc5"]


def gfr_set(*words: str) -> int:
    """Exit code of `fairlane gfr set`."""
    try:
        main(["gfr", "set", *words, "--lbo", "900"])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_ports_are_chosen_all_or_one(
    made: list[GfrConfig], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoints = (Endpoint("s1", "127.0.0.1:1"),)

    def targets(*_: object) -> Targets:
        return Targets(endpoints)

    monkeypatch.setattr(Vcs, "targets", targets)
    assert [gfr_set(*words) for words in ((), ("6",), ("s1:6",))] == [0, 0, 0]
    assert [config.ports[0].lbo_cells for config in made] == [900] * 3
    assert gfr_set("s1:5") == 3
    assert gfr_set("5") == 3
    told = " ".join(capsys.readouterr().err.split())
    assert "unknown port 's1:5'; did you mean 's1:6'?" in told
    assert "unknown port '5'; " in told


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (lambda: VCS.add("vc1", GOLD), ErrorCode.BAD_INPUT, "there is a VC 'vc1' already: change it with `set`"),
        (lambda: VCS.add("gold", {}), ErrorCode.BAD_FILE, "VC gold: vcs[5].mcr: must be given"),
        (lambda: VCS.add("gold", {**GOLD, "mcr": "fast"}), ErrorCode.BAD_FILE, "VC gold: vcs[5].mcr: rate 'fast' is not a number with a unit"),
        (lambda: VCS.add("gold", {**GOLD, "mcr": "22Mbit"}), ErrorCode.BAD_FILE, "VC gold: ports[0].capacity: the MCRs of 6 VCs sum up to 52 Mbit/s on s1:6, 160 kbit/s more"),
        (lambda: VCS.add("gold", {**GOLD, "path": [{"switch": "s2", "port": 1}]}), ErrorCode.BAD_FILE, "VC gold: vcs[5].path: gold must cross managed ports (s1:6)"),
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


@pytest.mark.parametrize("command", [("gfr", "vc",), ("gfr", "vc", "add"), ("gfr", "vc", "set"), ("gfr", "vc", "delete"), ("gfr", "vc", "list"), ("gfr",), ("gfr", "show"), ("gfr", "set"), ("gfr", "apply")])  # fmt: skip
def test_every_command_has_help(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    assert "Usage" in capsys.readouterr().out
