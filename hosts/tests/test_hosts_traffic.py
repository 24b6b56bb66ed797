# SPDX-License-Identifier: Apache-2.0
"""`fairlane-traffic` without a network of its own: options, goodput, and both ends over loopback."""

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
from hosts_bed import HOSTS_ROOT, bed, finish, run, wait_until
from traffic_records import Record, goodput, read_records, read_summary

pytestmark = pytest.mark.timed

MS = 1_000_000
VIDEO = ("--segment-s", "1", "--buffer-s", "3", "--reservoir-s", "1", "--cushion-s", "2")
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


TO = ("--to", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("send", *TO), "say how much: --bytes N, --seconds S or both"),
        (("send", *TO, "--bytes", "0"), "0 is not in 1.."),
        (("send", *TO, "--seconds", "0"), "'--seconds <SECONDS>': 0 is not a number from 0.001 to 259200"),
        (("send", *TO, "--seconds", "1", "--flows", "0"), "0 is not in 1..=1000"),
        (("send", *TO, "--seconds", "1", "--mss", "20"), "20 is not in 88..=65483"),
        (("send", *TO, "--seconds", "1", "--sample-ms", "0"), "0 is not in 1.."),
        (("send", "--to", "10.0.0.1", "--seconds", "1"), "'--to <ADDRESS:PORT>': invalid socket address"),
        (("send", "--to", "h1:5001", "--seconds", "1"), "'--to <ADDRESS:PORT>': invalid socket address"),
        (("send", *TO, "--seconds", "1", "--out", "/nowhere/x"), "cannot write --out /nowhere/x: No such file"),
        (("send", *TO, "--seconds", "1"), "cannot connect to 127.0.0.1 port 1: Connection refused"),
        (("send", *TO, "--seconds", "1", "--cc", "atlanta"), "a socket cannot use congestion control 'atlanta'"),
        (("web", *TO, "--seconds", "1", "--arrivals-per-s", "5", "--mean-bytes", "0"), "0 is not in 1.."),
        (("web", *TO, "--seconds", "1", "--arrivals-per-s", "5", "--mean-bytes", "9", "--flows", "2"), "--names has 1 names for 2 flows"),
        (("onoff", *TO, "--seconds", "1", "--on-s", "0", "--off-s", "1"), "0 is not a number from 0.001 to"),
        (("onoff", *TO, "--seconds", "1", "--on-s", "1", "--off-s", "1", "--distribution", "uniform"), "expected one of `fixed`, `exponential`"),
        (("onoff", *TO, "--seconds", "1", "--on-s", "1", "--off-s", "1", "--shape", "1"), "'--shape <SHAPE>': 1 is not a number from 1.0"),
        (("video", *TO, "--seconds", "1", *VIDEO, "--bitrates-bps", "2000,1000"), "--bitrates-bps wants two or more rates that rise"),
        (("video", *TO, "--seconds", "1", *VIDEO, "--bitrates-bps", "1000,2000"), "--buffer-s is below reservoir, cushion and a segment"),
        (("udp", *TO, "--seconds", "1", "--rate-bps", "1000", "--payload", "2000"), "2000 is not in 1..=1472"),
        (("sink", "--port", "5001", "--ack", "never"), "[possible values: kernel, delayed, every]"),
        (("sink", "--port", "5001", "--udp", "--connections", "1"), "'--udp' cannot be used with '--connections"),
        (("sink", "--port", "65536"), "65536 is not in 0..=65535"),
        (("sink", "--port", "5001", "--window", "100"), "100 is not in 1152..="),
    ],
)  # fmt: skip
def test_what_cannot_start_says_why(words: tuple[str, ...], message: str) -> None:
    process = tool(*words)
    out, error = process.communicate(timeout=20)
    assert (process.returncode, out) == (2, "")
    assert message in error
    assert "Traceback" not in error


def test_a_variant_is_refused_on_a_host_that_is_set_for_another() -> None:
    process = tool("send", *TO, "--seconds", "1", "--cc", "reno,cubic")
    _, error = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "this host is not set for variant" in error
    assert "(or --no-sysctl-check)" in error


def test_goodput_is_bytes_in_a_common_window() -> None:
    records: list[Record] = [
        *({"t_ns": t * 100 * MS, "peer": "a:1", "bytes": t * 1000} for t in range(11)),
        *({"t_ns": t * 100 * MS, "peer": "b:2", "bytes": max(0, t - 5) * 3000} for t in range(11)),
        {"summary": {}},
    ]
    assert goodput(records, 250 * MS, 1000 * MS) == {"a:1": pytest.approx(80_000), "b:2": pytest.approx(160_000)}


def test_goodput_outside_of_the_samples_is_flat() -> None:
    records = [{"t_ns": 100 * MS, "peer": "a:1", "bytes": 0}, {"t_ns": 200 * MS, "peer": "a:1", "bytes": 500}]
    assert goodput(records, 0, 1000 * MS) == {"a:1": 4000}
    assert goodput(records, 300 * MS, 900 * MS) == {"a:1": 0}


def test_a_receiver_that_is_not_there_yet_is_waited_for() -> None:
    """Lines that are pasted at once, as in docs/tutorial-operate.md: the sender comes before its receiver listens."""
    with socket.socket() as receiver:
        receiver.bind(("127.0.0.1", 0))
        process = tool("send", "--to", f"127.0.0.1:{receiver.getsockname()[1]}", "--seconds", "0.1", "--flows", "2")
        time.sleep(1.0)
        assert process.poll() is None
        receiver.listen()
        summary = json.loads(finish(process, 10).splitlines()[-1])["summary"]
    assert [flow["written_bytes"] > 0 for flow in summary["flows"]] == [True, True]


def test_a_signal_ends_the_wait_for_a_receiver() -> None:
    process = tool("send", *TO, "--seconds", "1")
    time.sleep(1.0)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=2)
    assert (process.returncode, "a signal came before it was connected" in error) == (2, True)


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
    wanted = "t_ns flow cwnd ssthresh srtt_us rttvar_us retrans acked_bytes ca_state cc"
    assert all(set(wanted.split()) <= set(sample) for sample in samples)
    for flow in (0, 1):
        times = [sample["t_ns"] for sample in samples if sample["flow"] == flow]
        assert 1 <= len(times) <= 12  # a slot that a busy machine misses is left out, never made up for
        assert times == sorted(times)
    summary = last["summary"]
    assert summary["start_ns"] - start_ns == summary["late_ns"] >= 0, "it says how late this machine made it"
    assert summary["end_ns"] - summary["start_ns"] >= 500 * MS
    assert all(c["bytes"] > 0 for c in read_summary(tmp_path / "sink")["connections"])


@pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")
def test_transfers_for_which_no_port_is_free_are_unfinished(tmp_path: Path) -> None:
    """A port rests for a minute after its connection: of 400 transfers 133 have one. The sender ended without a summary."""
    with bed() as made:
        (host,) = made.senders
        ports = ("net.ipv4.ip_local_port_range=32768 32900", "net.ipv4.tcp_tw_reuse=0")
        run("ip", "netns", "exec", host, "sysctl", "-qw", *ports)
        sink = made.start_sink(tmp_path, "--connections", "133")
        words = f"--to {made.sink_address}:5001 --bytes 100 --times 400 --interval-s 0.002".split()
        summary = json.loads(finish(made.start(host, "transfer", *words, *LINUX), 20).splitlines()[-1])["summary"]
        finish(sink, 10)
    assert (summary["finished"], summary["unfinished"], summary["error"]) == (133, 267, "")


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
        assert flow["error"].startswith(("the sink closed the connection", "Connection reset by peer", "Broken pipe"))
        assert not flow["complete"]


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    sink, to = start_sink(tmp_path)
    process = tool("sink", "--bind", "127.0.0.1", "--port", to.split(":")[1])
    _, error = process.communicate(timeout=20)
    sink.send_signal(signal.SIGTERM)
    finish(sink, 5)
    assert process.returncode == 2
    assert "Address already in use" in error
