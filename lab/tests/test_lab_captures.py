# SPDX-License-Identifier: GPL-2.0-or-later
# Licence note: this file imports scapy (GPL-2.0), so GPL-2.0-or-later holds for this file, unlike the rest of the
# repository (Apache-2.0).
"""Captures of a run: what is in the file, in the simulator and with Linux's hosts, and that nothing else depends on it."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fairlane_lab.definition.expansion import Selection
from fairlane_lab.definition.loading import load
from fairlane_lab.paths import REPOSITORY
from fairlane_lab.results.tables import DETERMINISTIC
from fairlane_lab.run_result import SIM, RunError, RunResult
from fairlane_lab.runners import sim
from fairlane_lab.runners.mininet import MininetOptions, run_many
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.kernel import BUILT
from fairlane_lab.sweep.campaign import Campaign, run_campaign
from fairlane_lab.sweep.runners import local_executor
from lab_command import lab
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapNgReader
from sim_scenarios import RATE_BPS, RENO, VEGAS, scenario

pytest.importorskip("fairlane_switch.native", reason="the simulator is not built: make setup")
kernel = pytest.param(
    sim.run_kernel, id="kernel", marks=pytest.mark.skipif(not (BUILT / "linux").exists(), reason="make kernel")
)
RUN = scenario(RENO, VEGAS, duration_s=4.0, warmup_s=1.0)
_SPEC = importlib.util.spec_from_file_location("sequence", REPOSITORY / "docs" / "examples" / "sequence.py")
assert _SPEC is not None
assert _SPEC.loader is not None
sequence: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(sequence)
A_TO_B, B_TO_A = "s1-s2 a_to_b", "s1-s2 b_to_a"


def frames_of(file: Path) -> list[tuple[str, float, int, Any]]:
    """Interface, time in s, length and headers of each frame."""
    with RawPcapNgReader(str(file)) as reader:
        return [
            (meta.ifname.decode(), ((meta.tshigh << 32) + meta.tslow) / meta.tsresol, meta.wirelen, Ether(data))
            for data, meta in reader
        ]


@pytest.mark.parametrize("run", [pytest.param(sim.run, id="sim"), kernel])
def test_a_capture_has_every_packet_and_changes_nothing(run: Callable[[Scenario], RunResult], tmp_path: Path) -> None:
    file = tmp_path / "s1-s2.pcapng"
    plain, seen = run(RUN), run(replace(RUN, captures={"s1-s2": file}))
    assert plain == seen
    frames = frames_of(file)
    assert 0.0 < frames[0][1] < 0.1
    assert frames[-1][1] <= RUN.duration_s
    check(frames, RATE_BPS)


@pytest.mark.kernel
@pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")
def test_a_capture_of_real_hosts_has_every_packet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Mininet, by the wall clock; docs/examples/sequence.py sees the same segments."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    file = tmp_path / "s1-s2.pcapng"
    found: list[RunResult | RunError] = []
    run = replace(RUN, captures={"s1-s2": file})
    run_many([run], MininetOptions(first_instance=99, parallel=1), lambda _, result: found.append(result))
    if "times in a row" in str(found[0]):  # every attempt was void
        pytest.skip(f"no verdict: {found[0]}")
    assert isinstance(found[0], RunResult), found[0]
    assert found[0].capture_problems == []
    frames = frames_of(file)
    assert abs(frames[0][1] - time.time()) < 120
    check(frames, RATE_BPS, share=0.9)
    segments = list(sequence.segments(file))
    data = [frame for _, _, length, frame in frames if length > 100]
    assert [(sent, length) for _, _, sent, length in segments] == [
        (frame[TCP].seq, frame[IP].len - 4 * frame[IP].ihl - 4 * frame[TCP].dataofs) for frame in data
    ]


def check(frames: list[tuple[str, float, int, Any]], rate_bps: int, share: float = 1.0) -> None:
    """Frames leave a line, which is full for this share of them, one after the other; and each byte is there."""
    times = [time_s for _, time_s, _, _ in frames]
    assert times == sorted(times)
    data = [(time_s, length, frame) for name, time_s, length, frame in frames if name == A_TO_B]
    # A full line: a frame leaves its port every 8·length/rate.
    busy = [(b[0] - a[0], 8 * b[1] / rate_bps) for a, b in pairwise(data[300:])]
    assert len(busy) > 100
    near_s = 2e-9 if share == 1 else 1e-6  # what a float has of the wall clock
    assert all(gap_s > line_s - near_s for gap_s, line_s in busy)
    assert sum(gap_s < line_s + near_s for gap_s, line_s in busy) >= share * len(busy)
    senders = {frame[IP].src for _, length, frame in data if length > 100}
    assert len(senders) == 2
    for sender in senders:
        sent: dict[int, int] = {}
        for _, length, frame in data:
            if frame[IP].src == sender and length > 100:
                sent[frame[TCP].seq] = frame[IP].len - 4 * frame[IP].ihl - 4 * frame[TCP].dataofs
        firsts = sorted(sent)
        assert len(firsts) > 100
        # Each byte of the flow, without a gap: what was lost before the link has been sent again.
        assert all(first + sent[first] >= second for first, second in pairwise(firsts[:-60]))
        acks = [frame[TCP].ack for name, _, _, frame in frames if name == B_TO_A and frame[IP].dst == sender]
        assert len(acks) > 50
        assert acks == sorted(acks)


def test_what_cannot_be_captured_is_told(tmp_path: Path) -> None:
    for link, file, said in (
        ("s9", "x.pcapng", 'there is no "s9"'),
        ("s1-s2", "no/x.pcapng", "No such file or directory"),
    ):
        with pytest.raises(RunError, match=said):
            sim.run(replace(RUN, captures={link: tmp_path / file}))


def test_a_run_folder_has_its_captures(tmp_path: Path) -> None:
    done: dict[str, list[bytes]] = {}
    for name, captures in (("plain", ()), ("seen", ("s1-s2", "h1-s1"))):
        selection = Selection(repeats=1, quick=True, values={"control": ["drop-tail"]})
        campaign = Campaign(load("demo"), selection, tmp_path / name, captures=captures)
        assert run_campaign(campaign, local_executor(SIM)).complete
        done[name] = [(campaign.folder / f"{table}.parquet").read_bytes() for table in DETERMINISTIC]
    assert done["plain"] == done["seen"]
    files = sorted((tmp_path / "seen" / "captures").rglob("*.pcapng"))
    assert [path.name for path in files][:2] == ["h1-s1.pcapng", "s1-s2.pcapng"]
    assert len({path.parent for path in files}) * 2 == len(files)
    assert all(len(frames_of(path)) > 100 for path in files)


def test_a_link_that_is_not_there_is_told_before_anything_runs(tmp_path: Path) -> None:
    result = lab("run", "demo", "--capture", "s1-s9", "--results", str(tmp_path), "--quick")
    assert result.exit_code == 3
    assert "fairlane: --capture s1-s9: " in " ".join(result.output.split())
    assert "has no such link; it has: h1-s1, " in " ".join(result.output.split())
    refused = lab("run", "demo", "--capture", "s1-s2", "--archived")
    assert refused.exit_code == 2
