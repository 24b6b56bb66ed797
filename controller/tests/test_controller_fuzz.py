# SPDX-License-Identifier: Apache-2.0
"""A few hostile inputs for everything that Python reads, the same ones every time; `make fuzz` tries more (`fuzz.py`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.config.read import read_text
from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.requests import REQUESTS, checked
from fairlane_controller.programs.qthresh.control import QthreshTopology
from fairlane_controller.programs.qthresh.policies import LoopStore
from fuzz import HARNESSES, harness
from fuzz_tools import FEW
from live_switch import binary
from state_tools import put_text

SEED = 12


@pytest.mark.parametrize("name", HARNESSES)
def test_hostile_inputs_are_refused_with_their_place_or_understood(name: str) -> None:
    if name == "loop-socket" and binary("embedded") is None:
        pytest.skip("the embedded switch is not built")
    harness(name)(FEW, SEED)


# ---- what was found once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["[", "str", "function-", "a[0]"])
def test_an_unknown_key_is_named_whatever_it_is_called(key: str) -> None:
    with pytest.raises(FairlaneError, match="unknown key") as told:
        checked({"op": "status", key: 1})
    assert f"status: {key}: " in told.value.message
    with pytest.raises(FairlaneError, match="unknown key") as told:
        read_text(f'"{key}" = 1\n', "f.toml")
    assert f"{key}: " in told.value.message


MALFORMED: list[tuple[Any, str]] = [
    (None, 'a request must be a JSON object with an "op"'),
    ({"op": None}, 'a request must be a JSON object with an "op", a string'),
    ({"op": "table_write", "switch": "s1", "updates": [{"update": "remove"}]}, "'remove': must be 'insert', 'modify' or 'delete'"),
    ({"op": "table_write", "switch": "s1", "updates": [{"update": "insert", "table": "t", "match": {"a": {}}}]}, r"updates\[0\].match.a: "),
    ({"op": "table_write", "switch": "s1", "updates": [{"update": "insert", "table": "t", "match": {}, "indirect": {"member_id": "1"}}]}, r"updates\[0\].indirect.member_id: '1': must be a valid integer"),
    ({"op": "table_write", "switch": "s1", "updates": [{"update": "insert", "table": "t", "match": {}, "indirect": {"action_set": [[1, 2]]}}]}, r"updates\[0\].indirect.action_set.*must be 'member_id' or 'group_id'"),
    ({"op": "table_write", "switch": "s1", "updates": {}}, "updates: {}: must be a valid list"),
    ({"op": "loop_put", "loop": "fast"}, "loop: 'fast': must be a valid dictionary"),
    ({"op": "status", "x" * 5000: 1}, "unknown key; valid: op"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "message"), MALFORMED)
def test_a_malformed_request_says_what_where_and_what_is_allowed(request_: Any, message: str) -> None:
    with pytest.raises(FairlaneError, match=message) as told:
        checked(request_, {**REQUESTS, **QthreshTopology.requests})
    assert len(told.value.message) < 1000


@pytest.mark.parametrize(
    "rows",
    [
        [{}],
        [1],
        [["3", 0]],
        {"a": 1},
        [{"port": 3, "traffic_class": 0, "scheme": "red"}],
        [{"port": 3, "traffic_class": 9, "scheme": "qthresh"}],
    ],
)
def test_what_a_switch_held_is_not_believed_when_it_is_none(rows: Any, tmp_path: Path) -> None:
    put_text(tmp_path, "current/s1", json.dumps(rows))
    assert LoopStore(tmp_path).read_policies("s1") == []
