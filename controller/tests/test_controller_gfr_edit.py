# SPDX-License-Identifier: Apache-2.0
"""What people ask for, as changes of a configuration: results, and refusals in their own words."""

from __future__ import annotations

from typing import Any

import gfr_configs as configs
import pytest
from fairlane_controller.cli.main import main
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.gfr.changes import apply_edit, locate_problem, source_of
from fairlane_controller.programs.gfr.check import check_config
from fairlane_controller.programs.gfr.config import GfrConfig

GOLD: dict[str, Any] = {"name": "gold", "mcr": "6Mbit", "match": [{"switch": "s1", "ingress_port": 7}]}


def edited(**request: Any) -> GfrConfig:
    """The five VCs after a request, checked as the CLI and the loop do."""
    before = configs.config()
    after = apply_edit(before, request)
    try:
        check_config(after, source_of(request))
    except FairlaneError as problem:
        raise locate_problem(problem, request, after.model_dump(mode="json")) from None
    assert before == configs.config()
    return after


def test_a_vc_is_added_changed_and_removed() -> None:
    assert [vc.name for vc in edited(op="vc_add", vc=GOLD).vcs][-2:] == ["vc5", "gold"]
    vc = edited(op="vc_set", name="vc1", changes={"mcr": "3Mbit", "mbs_cells": 100}).vcs[0]
    assert (vc.mcr, vc.mbs_cells, vc.mfs_bytes, len(vc.match)) == (3e6, 100, 1500, 1)
    assert [vc.name for vc in edited(op="vc_del", names=["vc2", "vc4"]).vcs] == ["vc1", "vc3", "vc5"]


def test_ports_are_changed_all_or_one() -> None:
    assert edited(op="gfr_set", switch=None, port=None, changes={"lbo_cells": 500}).ports[0].lbo_cells == 500
    assert edited(op="gfr_set", switch="s1", port=6, changes={"scheme": "dfba"}).ports[0].scheme.value == "dfba"
    with pytest.raises(FairlaneError, match="unknown port 's1:5'; did you mean 's1:6'"):
        edited(op="gfr_set", switch="s1", port=5, changes={"lbo_cells": 500})
    with pytest.raises(FairlaneError, match="no port is managed yet: give the ports with `fairlane gfr apply FILE`"):
        apply_edit(GfrConfig(), {"op": "gfr_set", "changes": {"lbo_cells": 1}})


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        ({"op": "vc_add", "vc": {**GOLD, "name": "vc1"}}, ErrorCode.BAD_INPUT, "vc add: there is a VC 'vc1' already: change it with `fairlane gfr vc set`"),
        ({"op": "vc_add", "vc": {**GOLD, "mcr": "fast"}}, ErrorCode.BAD_INPUT, "vc add: VC gold: mcr: rate 'fast' is not a number with a unit"),
        ({"op": "vc_add", "vc": {**GOLD, "mcr": "22Mbit"}}, ErrorCode.BAD_INPUT, "vc add: s1:6: capacity: the MCRs of 6 VCs sum up to 52 Mbit/s on s1:6, 160 kbit/s more"),
        ({"op": "vc_add", "vc": {**GOLD, "path": [{"switch": "s2", "port": 1}]}}, ErrorCode.BAD_INPUT, "vc add: VC gold: path[0]: s2:1 is no port of this configuration"),
        ({"op": "vc_set", "name": "vc9", "changes": {}}, ErrorCode.UNKNOWN_NAME, "unknown VC 'vc9'; did you mean"),
        ({"op": "vc_set", "name": "vc3", "changes": {"weight": 0}}, ErrorCode.BAD_INPUT, "vc set: VC vc3: weight: 0 is out of range: must be greater than 0"),
        ({"op": "vc_del", "names": ["vc1", "nobody"]}, ErrorCode.UNKNOWN_NAME, "unknown VC 'nobody'"),
        ({"op": "gfr_set", "changes": {"hbo_cells": 4000}}, ErrorCode.BAD_INPUT, "gfr set: s1:6: hbo_cells: 4000 must be below qmax_cells (4000)"),
        ({"op": "gfr_apply", "config": {"vcs": [{"name": "a"}]}, "source": "my.toml"}, ErrorCode.BAD_FILE, "my.toml: vcs[0].mcr: must be given"),
        ({"op": "vc_move"}, ErrorCode.UNKNOWN_NAME, "unknown op 'vc_move'"),
    ],
)  # fmt: skip
def test_refusals(request_: dict[str, Any], code: ErrorCode, message: str) -> None:
    with pytest.raises(FairlaneError) as caught:
        edited(**request_)
    assert message in caught.value.message
    assert caught.value.code is code


@pytest.mark.parametrize("command", [("gfr", "vc",), ("gfr", "vc", "add"), ("gfr", "vc", "set"), ("gfr", "vc", "delete"), ("gfr", "vc", "list"), ("gfr",), ("gfr", "show"), ("gfr", "set"), ("gfr", "apply")])  # fmt: skip
def test_every_command_has_help(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    assert "Usage" in capsys.readouterr().out
