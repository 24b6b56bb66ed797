# SPDX-License-Identifier: Apache-2.0
"""The traffic tool without a network of its own: options, goodput, and both ends over loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fairlane_hosts.errors import HostsError
from fairlane_hosts.traffic import send
from fairlane_hosts.traffic.goodput import goodput
from fairlane_hosts.traffic.options import SendOptions, SinkOptions, parse_endpoint
from fairlane_hosts.traffic.records import Record, read_records, read_summary
from fairlane_hosts.traffic.signals import StopSignal
from hosts_bed import HOSTS_ROOT, do_nothing, finish, wait_until

pytestmark = pytest.mark.timed

MS = 1_000_000
LINUX = ("--cc", "reno-linux,cubic-linux", "--no-sysctl-check")  # built in: no root needed


def tool(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fairlane_hosts.traffic", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HOSTS_ROOT)},
    )


def start_sink(folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    ready = folder / "ready"
    process = tool("sink", "--bind", "127.0.0.1", "--port", "0", "--ready-file", str(ready), *arguments)
    wait_until(lambda: ready.exists() or process.poll() is not None, 10, "the sink to listen")
    return process, f"127.0.0.1:{ready.read_text().strip()}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"say how much: --bytes N, --seconds S or both"),
        ({"bytes": 0}, r"--bytes 0 is out of range: 1 to"),
        ({"seconds": 0.0}, r"--seconds 0 is out of range: 0\.01 to 86400"),
        ({"seconds": 1.0, "flows": 0}, r"--flows 0 is out of range: 1 to 1000"),
        ({"seconds": 1.0, "mss": 20}, r"--mss 20 is out of range: 88 to 65483"),
        ({"seconds": 1.0, "sample_ms": 0}, r"--sample-ms 0 is out of range: 1 to 60000"),
        ({"seconds": 1.0, "stagger_ms": -1.0}, r"--stagger-ms -1 is out of range: 0 to"),
    ],
)
def test_bad_send_options_name_the_range(options: dict[str, float], message: str) -> None:
    with pytest.raises(HostsError, match=message) as caught:
        SendOptions("127.0.0.1", 5001, **options).check()  # pyright: ignore[reportArgumentType]
    assert caught.value.code == "option"


def test_bad_sink_options_name_what_is_allowed() -> None:
    with pytest.raises(HostsError, match="--ack 'never' is not one of kernel, delayed, every"):
        SinkOptions(5001, ack="never").check()
    with pytest.raises(HostsError, match="--port 65536 is out of range: 0 to 65535"):
        SinkOptions(65536).check()


@pytest.mark.parametrize("text", ["10.0.0.1", "h1:5001", "10.0.0.1:http", "fd00::1:"])
def test_a_bad_destination_is_refused(text: str) -> None:
    with pytest.raises(HostsError, match=r"is not ADDRESS:PORT, like 10\.0\.2\.1:5001"):
        parse_endpoint(text)


def test_destinations_of_both_families() -> None:
    assert parse_endpoint("10.0.2.1:5001") == ("10.0.2.1", 5001)
    assert parse_endpoint("[fd00::2]:80") == ("fd00::2", 80)


def test_goodput_is_bytes_in_a_common_window() -> None:
    records: list[Record] = [
        *({"t_ns": t * 100 * MS, "peer": "a:1", "bytes": t * 1000} for t in range(11)),
        *({"t_ns": t * 100 * MS, "peer": "b:2", "bytes": max(0, t - 5) * 3000} for t in range(11)),
        {"summary": {}},
    ]
    a, b = goodput(records, 250 * MS, 1000 * MS)
    assert (a.peer, a.bytes, round(a.rate_bps)) == ("a:1", 7500, 80000)
    assert (b.peer, b.bytes) == ("b:2", 15000)


def test_goodput_outside_of_the_samples_is_flat() -> None:
    records = [{"t_ns": 100 * MS, "peer": "a:1", "bytes": 0}, {"t_ns": 200 * MS, "peer": "a:1", "bytes": 500}]
    assert goodput(records, 0, 900 * MS)[0].bytes == 500
    assert goodput(records, 300 * MS, 900 * MS)[0].bytes == 0
    with pytest.raises(HostsError, match="the window from 5 to 5 ns is empty"):
        goodput(records, 5, 5)


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> StopSignal:
    """One that no signal sets: the handlers stay pytest's."""
    monkeypatch.setattr(signal, "signal", do_nothing)
    return StopSignal()


def test_a_receiver_that_is_not_there_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch, stop: StopSignal) -> None:
    """Lines that are pasted at once, as in docs/tutorial-operate.md: the sender comes before its receiver listens."""
    attempts = list[int]()
    with socket.socket() as receiver:
        receiver.bind(("127.0.0.1", 0))

        def open_flow(index: int, options: SendOptions, names: list[str]) -> send.Flow:
            attempts.append(index)
            if len(attempts) == 3:
                receiver.listen()
            return opened(index, options, names)

        opened = send.open_flow
        monkeypatch.setattr(send, "open_flow", open_flow)
        flows = send.connect_all(SendOptions("127.0.0.1", receiver.getsockname()[1], seconds=1.0, flows=2), stop)
        assert [flow.connected for flow in flows] == [True, True]
        assert attempts == [0, 1, 0, 1]
        for flow in flows:
            flow.connection.close()


def test_a_receiver_that_never_comes_is_named(monkeypatch: pytest.MonkeyPatch, stop: StopSignal) -> None:
    monkeypatch.setattr(send, "RECEIVER_TIMEOUT_S", 0.0)
    with socket.socket() as receiver:
        receiver.bind(("127.0.0.1", 0))
        port = receiver.getsockname()[1]
        with pytest.raises(HostsError, match=f"cannot connect to 127.0.0.1 port {port}: Connection refused"):
            send.connect_all(SendOptions("127.0.0.1", port, seconds=1.0), stop)


def test_n_bytes_arrive_and_both_ends_agree(tmp_path: Path) -> None:
    sink, to = start_sink(tmp_path, "--connections", "3", "--out", str(tmp_path / "sink"))
    size, out = 1_234_567, str(tmp_path / "send")
    finish(tool("send", "--to", to, "--bytes", str(size), "--flows", "3", *LINUX, "--out", out), 30)
    finish(sink, 10)
    flows = read_summary(tmp_path / "send")["flows"]
    assert [flow["cc"] for flow in flows] == ["reno", "cubic", "reno"]
    connections = {c["peer"]: c for c in read_summary(tmp_path / "sink")["connections"]}
    for flow in flows:
        assert flow["complete"]
        assert not flow["error"]
        assert flow["acked_bytes"] - size in (0, 1)  # the kernel counts the FIN
        assert connections[flow["local"]]["bytes"] == size
        assert connections[flow["local"]]["ended"] == "eof"


def test_samples_hold_what_the_design_promises(tmp_path: Path) -> None:
    sink, to = start_sink(tmp_path, "--out", str(tmp_path / "sink"))
    out = tmp_path / "send"
    start_ns = time.monotonic_ns() + 500 * MS
    arguments = ["--seconds", "0.5", "--flows", "2", "--sample-ms", "50", "--start-at", str(start_ns), *LINUX]
    finish(tool("send", "--to", to, *arguments, "--out", str(out)), 20)
    sink.send_signal(signal.SIGTERM)
    finish(sink, 5)
    *samples, last = list(read_records(out))
    wanted = "t_ns flow cwnd ssthresh srtt_us rttvar_us retrans delivered_bytes acked_bytes ca_state cc"
    assert all(set(wanted.split()) <= set(sample) for sample in samples)
    for flow in (0, 1):
        times = [sample["t_ns"] for sample in samples if sample["flow"] == flow]
        assert 1 <= len(times) <= 12  # a slot that a busy machine misses is left out, never made up for
        assert times == sorted(times)
    summary = last["summary"]
    assert summary["start_ns"] - start_ns == summary["late_ns"] >= 0, "it says how late this machine made it"
    assert summary["end_ns"] - summary["start_ns"] >= 500 * MS
    assert all(c["bytes"] > 0 for c in read_summary(tmp_path / "sink")["connections"])


@pytest.mark.parametrize("end", ["send", "sink"])
def test_sigterm_writes_what_there_is(tmp_path: Path, end: str) -> None:
    sink, to = start_sink(tmp_path, "--out", str(tmp_path / "sink"))
    sender = tool("send", "--to", to, "--seconds", "60", *LINUX, "--out", str(tmp_path / "send"), "--sample-ms", "1")
    out = tmp_path / "send"
    # the first buffer of samples is on disk: the flow runs
    wait_until(lambda: out.exists() and out.stat().st_size > 0, 20, "the sender's samples")
    if end == "send":
        sender.send_signal(signal.SIGTERM)
        finish(sender, 5)
        assert read_summary(out)["stopped_by_signal"]
        sink.send_signal(signal.SIGTERM)
        finish(sink, 5)
        assert read_summary(tmp_path / "sink")["stopped_by_signal"]
    else:
        sink.send_signal(signal.SIGTERM)
        finish(sink, 5)
        finish(sender, 5, code=1)
        (flow,) = read_summary(out)["flows"]
        assert flow["error"] in ("the sink closed the connection", "Connection reset by peer", "Broken pipe")
        assert not flow["complete"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "127.0.0.1:1", "--seconds", "1"], "cannot connect to 127.0.0.1 port 1: Connection refused"),
        (
            ["--to", "127.0.0.1:1", "--seconds", "1", "--cc", "atlanta"],
            "a socket cannot use congestion control 'atlanta'",
        ),
        (["--to", "nowhere", "--seconds", "1"], "--to 'nowhere' is not ADDRESS:PORT"),
        (
            ["--to", "127.0.0.1:1", "--seconds", "1", "--out", "/nowhere/x"],
            "cannot write --out /nowhere/x: No such file",
        ),
        (["--to", "127.0.0.1:1"], "say how much"),
    ],
)
def test_a_sender_that_cannot_start_says_why(arguments: list[str], message: str) -> None:
    process = tool("send", *arguments)
    out, error = process.communicate(timeout=20)
    assert (process.returncode, out) == (2, "")
    assert message in error
    assert "Traceback" not in error


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    sink, to = start_sink(tmp_path)
    process = tool("sink", "--bind", "127.0.0.1", "--port", to.split(":")[1])
    _, error = process.communicate(timeout=20)
    sink.send_signal(signal.SIGTERM)
    finish(sink, 5)
    assert process.returncode == 2
    assert "Address already in use" in error


def test_a_broken_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text(json.dumps({"t_ns": 1}) + "\n{oops\n")
    with pytest.raises(HostsError, match="broken, line 2: not a JSON record"):
        list(read_records(path))
    path.write_text(json.dumps({"t_ns": 1}) + "\n")
    with pytest.raises(HostsError, match="has no summary"):
        read_summary(path)
