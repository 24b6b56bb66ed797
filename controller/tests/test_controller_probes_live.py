# SPDX-License-Identifier: Apache-2.0
"""Probes between two real switches: the neighbour turns them round without any controller, whichever target it is."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_switch import TARGETS, LiveSwitch, binary, wait_until
from steady import void_when_stalled

NEIGHBOURS = [("embedded", "embedded"), ("embedded", "bmv2"), ("bmv2", "embedded")]


@pytest.fixture(params=NEIGHBOURS, ids=["-".join(pair) for pair in NEIGHBOURS])
def neighbours(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[LiveSwitch, LiveSwitch]]:
    """Two switches with the program loaded, port 3 of the first on port 1 of the second."""
    missing = [target for target in set(request.param) if binary(target) is None]
    if missing:
        pytest.skip(f"not on this machine: {', '.join(missing)} (build it, or set FAIRLANE_BIN_DIR / PATH)")
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and ip(8)")
    tag = secrets.token_hex(3)
    ends = f"pr{tag}a", f"pr{tag}b"
    switches: list[LiveSwitch] = []
    subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True, timeout=10)
    try:
        for end in ends:
            Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
            subprocess.run(["ip", "link", "set", end, "up"], check=True, timeout=10)
        for target, end, port in zip(request.param, ends, (3, 1), strict=True):
            folder = tmp_path / f"switch-{len(switches)}"
            folder.mkdir()
            one = LiveSwitch(str(target), folder, {port: end})
            one.write_state()
            one.start()
            switches.append(one)
            one.fairlane("config", "init", "--scheme", "qthresh")
        yield switches[0], switches[1]
    finally:
        for one in switches:
            one.kill()
        subprocess.run(["ip", "link", "del", ends[0]], check=False, timeout=10)


@void_when_stalled
def test_the_running_loop_measures_tau_of_a_link_without_any_traffic(neighbours: tuple[LiveSwitch, LiveSwitch]) -> None:
    first, second = neighbours

    def measured(switch: LiveSwitch) -> dict[str, Any]:
        (row,) = switch.json("ports", "measure")
        return row

    def count() -> int:
        row = measured(first)
        return row["tau_s"]["count"] if row["tau_s"] else 0

    with first.loop(), second.loop():
        wait_until("ten probes", lambda: count() >= 10)
        row = measured(first)
        assert 0 <= row["tau_s"]["value"] < 0.1
        assert (row["bw_bps"], row["t_res_s"], row["t_ack_s"]) == (None, None, None), "no traffic, so no more than τ"
        assert measured(second)["tau_s"] is None, "there is nobody behind its port 3"


def test_both_targets_are_known() -> None:
    assert {target for pair in NEIGHBOURS for target in pair} == set(TARGETS)
