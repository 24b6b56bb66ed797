# SPDX-License-Identifier: Apache-2.0
"""The applications beside greedy flows: web, transfer, on/off, interactive, video, datagrams; over loopback, no root."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hosts_bed import finish
from steady import void_when_stalled
from test_hosts_traffic import start_sink, tool
from traffic_records import read_records, read_summary

pytestmark = pytest.mark.timed

LINUX = ("--cc", "reno-linux", "--no-sysctl-check")
WEB_SEED_7 = (
    [(55_142_853, 3284), (232_041_185, 12_499), (243_740_067, 8754), (292_071_937, 2077)],
    [(43_517_812, 816), (83_390_031, 20_000), (115_236_107, 1749), (117_396_354, 5756)],
)
"""ns after the start, and bytes, of the first transfers of w-1 and w-2: in every runtime."""


def end(sink: subprocess.Popen[str]) -> None:
    sink.send_signal(signal.SIGTERM)
    finish(sink, 5)


def transfers(path: Path) -> list[dict[str, Any]]:
    return [record["transfer"] for record in read_records(path) if "transfer" in record]


@void_when_stalled
def test_web_transfers_come_as_drawn_and_are_all_received(tmp_path: Path) -> None:
    sink, to = start_sink(tmp_path, "--out", str(tmp_path / "sink"))
    start_ns = time.monotonic_ns() + 500_000_000
    words = [
        "--to",
        to,
        "--seconds",
        "2",
        "--arrivals-per-s",
        "20",
        "--mean-bytes",
        "5000",
        "--start-at",
        str(start_ns),
    ]
    words += ["--flows", "2", "--names", "w-1,w-2", "--seed", "7", "--max-bytes", "20000", *LINUX]
    finish(tool("web", *words, "--out", str(tmp_path / "web")), 20)
    end(sink)
    found = transfers(tmp_path / "web")
    for flow, drawn in enumerate(WEB_SEED_7):
        mine = sorted((t["start_ns"] - start_ns, t["bytes"]) for t in found if t["flow"] == flow)
        assert mine[: len(drawn)] == drawn
    assert all(t["start_ns"] < t["first_ns"] <= t["end_ns"] for t in found)
    assert 40 <= len(found) <= 120  # 80 expected
    received = {c["peer"]: c["bytes"] for c in read_summary(tmp_path / "sink")["connections"]}
    assert sum(received.values()) >= sum(t["bytes"] for t in found)
    peers = read_summary(tmp_path / "web")["peers"]
    assert {peer["local"] for peer in peers} == set(received)


def test_a_transfer_has_its_handshake_in_its_time(tmp_path: Path) -> None:
    sink, to = start_sink(tmp_path, "--out", str(tmp_path / "sink"))
    words = ["--to", to, "--bytes", "300000", "--flows", "3", "--seconds", "10", *LINUX]
    finish(tool("transfer", *words, "--out", str(tmp_path / "out")), 20)
    end(sink)
    found = transfers(tmp_path / "out")
    assert sorted(t["flow"] for t in found) == [0, 1, 2]
    assert all(t["bytes"] == 300_000 and t["end_ns"] > t["start_ns"] for t in found)
    summary = read_summary(tmp_path / "out")
    assert (summary["finished"], summary["unfinished"], summary["error"]) == (3, 0, "")
    received = {c["peer"]: c["bytes"] for c in read_summary(tmp_path / "sink")["connections"]}
    assert [received[row["local"]] for row in summary["flows"]] == [300_000] * 3


def test_a_repeated_syn_is_no_packet_of_a_transfer(tmp_path: Path) -> None:
    with socket.socket() as listener, socket.socket() as other:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        other.connect(listener.getsockname())  # the backlog is full: a SYN is dropped, and sent again after a second
        words = ["--to", f"127.0.0.1:{listener.getsockname()[1]}", "--bytes", "1000", *LINUX]
        sender = tool("transfer", *words, "--out", str(tmp_path / "out"))
        time.sleep(0.7)
        listener.accept()[0].close()
        with listener.accept()[0] as connection:
            while connection.recv(4096):
                pass
        finish(sender, 10)
    (transfer,) = transfers(tmp_path / "out")
    assert (transfer["retransmits"], transfer["packets"]) == (1, 2)  # one with the data, and the FIN


@void_when_stalled
def test_an_on_off_source_is_silent_while_off(tmp_path: Path) -> None:
    sink, to = start_sink(tmp_path, "--out", str(tmp_path / "sink"), "--sample-ms", "20")
    start_ns = time.monotonic_ns() + 500_000_000
    words = ["--to", to, "--mss", "1448", "--seconds", "1.2"]
    phases = ["--on-s", "0.3", "--off-s", "0.3", "--distribution", "fixed"]
    finish(tool("onoff", *words, *phases, "--start-at", str(start_ns), *LINUX, "--out", str(tmp_path / "out")), 20)
    end(sink)
    samples = [(r["t_ns"] - start_ns, r["bytes"]) for r in read_records(tmp_path / "sink") if "bytes" in r]

    def grown(from_s: float, to_s: float) -> int:
        inside = [count for t, count in samples if from_s * 1e9 <= t <= to_s * 1e9]
        return inside[-1] - inside[0]

    assert grown(0.0, 0.3) > 1_000_000
    assert grown(0.35, 0.58) == 0
    assert grown(0.6, 0.9) > 1_000_000


@void_when_stalled
def test_each_message_of_an_interactive_source_is_timed(tmp_path: Path) -> None:
    sink, to = start_sink(tmp_path, "--out", str(tmp_path / "sink"))
    start_ns = time.monotonic_ns() + 500_000_000
    words = ["--to", to, "--seconds", "1.05", "--bytes", "3000", "--interval-s", "0.1", "--start-at", str(start_ns)]
    finish(tool("interactive", *words, *LINUX, "--out", str(tmp_path / "out")), 20)
    end(sink)
    found = transfers(tmp_path / "out")
    assert [t["start_ns"] - start_ns for t in found] == [100_000_000 * i for i in range(11)]
    assert all(t["end_ns"] - t["start_ns"] > 0 and t["bytes"] == 3000 for t in found)
    assert [c["bytes"] for c in read_summary(tmp_path / "sink")["connections"]] == [33_000]


@void_when_stalled
def test_a_video_asks_for_more_as_its_buffer_fills_and_waits_when_it_is_full(tmp_path: Path) -> None:
    sink, to = start_sink(tmp_path, "--out", str(tmp_path / "sink"))
    ladder = "8000,80000,8000000"
    words = ["--to", to, "--seconds", "2.15", "--bitrates-bps", ladder, "--segment-s", "0.1", "--buffer-s", "1"]
    words += ["--reservoir-s", "0.2", "--cushion-s", "0.6"]
    finish(tool("video", *words, *LINUX, "--out", str(tmp_path / "out")), 20)
    end(sink)
    found = transfers(tmp_path / "out")
    sizes = [t["bytes"] for t in found]
    assert sizes[:3] == [100, 100, 100]
    assert sizes[-10:] == [100_000] * 10
    assert sizes == sorted(sizes)
    gaps = [(after["start_ns"] - before["start_ns"]) / 1e9 for before, after in pairwise(found)]
    assert sum(gaps[-10:]) == pytest.approx(1.0, abs=0.01)  # one for each that was played
    assert [c["bytes"] for c in read_summary(tmp_path / "sink")["connections"]] == [sum(sizes)]


def test_datagrams_leave_at_their_rate(tmp_path: Path) -> None:
    sink, to = start_sink(tmp_path, "--out", str(tmp_path / "sink"), "--udp")
    words = ["--to", to, "--seconds", "1", "--rate-bps", "400000", "--payload", "500", "--out", str(tmp_path / "out")]
    finish(tool("udp", *words), 20)
    end(sink)
    assert read_summary(tmp_path / "out")["sent"] == 100
    (row,) = read_summary(tmp_path / "sink")["connections"]
    assert (row["bytes"], row["packets"]) == (50_000, 100)
