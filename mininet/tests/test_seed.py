# SPDX-License-Identifier: Apache-2.0
"""The run's seed reaches the switches: what a program draws by `random()` is fixed by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlane_switch.switch import SwitchOptions
from fairlane_topology import nodes as fl_nodes


@pytest.mark.parametrize(("seed", "words"), [(7, ["--seed", "7"]), (0, ["--seed", "0"]), (None, [])])
def test_the_switch_is_started_with_the_runs_seed(
    seed: int | None, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def binary(name: str) -> Path:
        return Path("/bin") / name

    monkeypatch.setattr(fl_nodes, "find_binary", binary)
    switch = object.__new__(fl_nodes.EmbeddedSwitch)
    switch.options = fl_nodes.SwitchOptions("s1", 1, "127.0.0.1:1", {}, Path("state"), seed=seed)
    switch.intfs = {}
    command = switch.command()
    at = command.index("--seed") if "--seed" in command else len(command)
    assert command[at : at + 2] == words
    arguments = SwitchOptions(seed=seed).arguments()
    at = arguments.index("--seed") if "--seed" in arguments else len(arguments)
    assert arguments[at : at + 2] == words
