# SPDX-License-Identifier: Apache-2.0
"""The run's seed reaches the switches: what a program draws by `random()` is fixed by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlane_topology import nodes as fl_nodes


@pytest.mark.parametrize("seed", [7, 0])
def test_the_switch_is_started_with_the_runs_seed(seed: int) -> None:
    switch = object.__new__(fl_nodes.EmbeddedSwitch)
    switch.options = fl_nodes.NetworkOptions(seed=seed)
    switch.intfs, switch.specs, switch.grpc, switch.device_id = {}, {}, "127.0.0.1:1", 1
    switch.control = Path("s1.sock")
    arguments = switch.arguments()
    assert arguments[arguments.index("--seed") + 1] == str(seed)
