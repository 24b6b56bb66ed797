# SPDX-License-Identifier: Apache-2.0
"""Two runs at a time get numbers of their own, and a run that has ended gives its numbers back."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from fairlane_lab.run_result import RunError
from fairlane_lab.testbed.grouping import claimed_instances
from fairlane_topology import state as fl_state


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """A machine with no run and with these interfaces, whatever the one that the test runs on has."""
    interfaces = [(1, "lo")]
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(socket, "if_nameindex", lambda: interfaces)
    return interfaces


def test_a_second_run_gets_other_numbers() -> None:
    with claimed_instances(2, 20, 25) as mine:
        with claimed_instances(3, 20, 25) as theirs:
            assert (mine, theirs) == ([20, 21], [22, 23, 24])
            with (
                pytest.raises(RunError, match=r"only 1 of 2 networks can be numbered: .* 20 to 25"),
                claimed_instances(2, 20, 25),
            ):
                pass
        with claimed_instances(1, 20, 25) as again:
            assert again == [22]
    with claimed_instances(1, 20, 25) as again:
        assert again == [20]


def test_a_topology_that_runs_is_passed_over() -> None:
    me = fl_state.OwnedProcess.from_pid(os.getpid(), "this test")
    fl_state.write("20", {"pids": [me.as_json()]})
    with claimed_instances(2, 20, 25) as found:
        assert found == [21, 22]


def test_a_number_whose_interfaces_are_there_is_passed_over(machine: list[tuple[int, str]]) -> None:
    """A run with another state folder, or what was left of it: its network cannot be known from our run states."""
    machine.append((2, "n20s1-eth1"))
    with claimed_instances(2, 20, 25) as found:
        assert found == [21, 22]
