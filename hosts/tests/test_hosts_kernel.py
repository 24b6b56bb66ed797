# SPDX-License-Identifier: Apache-2.0
"""The variants on real sockets through a real bottleneck: who runs what, and that each behaves as its paper says."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from fairlane_hosts import apply, bpf, build, loader
from fairlane_hosts.errors import HostsError
from fairlane_hosts.variants import MODERN_SYSCTLS, VARIANTS, find_variant
from hosts_bed import Bed, bed, finish, run, wait_until
from steady import void_when_stalled
from traffic_records import Record, goodput, read_records, read_summary

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and BPF programs: needs root"),
]

RATE_BPS = 2_000_000
MSS = "960"
S = 1_000_000_000
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()


@pytest.fixture(scope="module")
def lease() -> Generator[loader.Lease]:
    build.build_all()
    with loader.acquire() as held:
        yield held


def transfer(network: Bed, folder: Path, seconds: float, variants: list[str], *sink: str) -> dict[str, list[Record]]:
    """Greedy flows of one variant a sender, all at once; returns each sender's records and the sink's as `sink`."""
    out = {str(index): folder / f"{index}.jsonl" for index in range(len(variants))}
    receiver = network.start_sink(folder, "--out", str(folder / "sink.jsonl"), *sink)
    start_ns = time.monotonic_ns() + S
    senders = [
        network.start(
            network.senders[index],
            *("send", "--to", f"{network.sink_address}:5001", "--seconds", str(seconds), "--mss", MSS, "--cc", variant),
            *("--start-at", str(start_ns), "--out", str(out[str(index)]), "--sample-ms", "20"),
        )
        for index, variant in enumerate(variants)
    ]
    for sender in senders:
        finish(sender, seconds + 30)
    receiver.send_signal(signal.SIGTERM)
    finish(receiver, 10)
    return {name: list(read_records(path)) for name, path in {**out, "sink": folder / "sink.jsonl"}.items()}


def windows(records: list[Record], skip_s: float = 0) -> list[int]:
    """cwnd of the samples in Open, after `skip_s`."""
    samples = [record for record in records if "cwnd" in record]
    return [r["cwnd"] for r in samples if r["ca_state"] == "open" and r["t_ns"] >= samples[0]["t_ns"] + skip_s * S]


def queue_drops(network: Bed) -> int:
    return int(json.loads(run("tc", "-n", network.router, "-s", "-j", "qdisc", "show", "dev", "out"))[0]["drops"])


# --- who runs what --------------------------------------------------------------------------------------------------


UNRESTRICTED = [
    name for name, variant in VARIANTS.items() if not variant.builtin or variant.congestion_control in ALLOWED
]


def test_a_restricted_algorithm_is_refused_with_the_remedy() -> None:
    """Built-in algorithms need the machine's consent to be a namespace's default (Linux 5.13)."""
    restricted = [v for v in VARIANTS.values() if v.builtin and v.congestion_control not in ALLOWED]
    if not restricted:
        pytest.skip("this machine allows every built-in algorithm")
    with bed() as network:
        namespace = network.netns(network.senders[0])
        before = apply.read_host(namespace)
        with pytest.raises(HostsError, match=r"(?s)Operation not permitted.*net\.ipv4\.tcp_allowed_congestion_control"):
            apply.use_on_host(restricted[0], namespace)
        assert apply.read_host(namespace) == before


@pytest.mark.parametrize("name", UNRESTRICTED)
def test_a_host_runs_its_variant(name: str, lease: loader.Lease, tmp_path: Path) -> None:
    del lease
    with bed() as network:
        variant, namespace = find_variant(name), network.netns(network.senders[0])
        ours = apply.read_host()
        tcp = apply.use_on_host(variant, namespace)
        assert (tcp.variant, apply.read_host(namespace)) == (name, tcp)
        assert apply.read_host() == ours
        receiver = network.start_sink(tmp_path, "--out", str(tmp_path / "sink"))
        to = f"{network.sink_address}:5001"
        finish(
            network.start(network.senders[0], "send", "--to", to, "--bytes", "30000", "--out", str(tmp_path / "o")), 30
        )
        (flow,) = read_summary(tmp_path / "o")["flows"]
        assert (flow["cc"], flow["complete"]) == (variant.congestion_control, True)
        receiver.send_signal(signal.SIGTERM)
        finish(receiver, 10)


def test_each_socket_of_a_host_runs_its_own_variant(lease: loader.Lease, tmp_path: Path) -> None:
    del lease
    with bed() as network:
        apply.use_on_host(find_variant("newreno"), network.netns(network.senders[0]))
        receiver = network.start_sink(tmp_path, "--out", str(tmp_path / "sink"))
        names = ["reno", "vegas", "vegas-linux", "newreno"]
        arguments = ["--to", f"{network.sink_address}:5001", "--seconds", "1", "--flows", "5", "--cc", ",".join(names)]
        finish(network.start(network.senders[0], "send", *arguments, "--out", str(tmp_path / "o")), 30)
        found = [flow["cc"] for flow in read_summary(tmp_path / "o")["flows"]]
        assert found == ["fl_reno", "fl_vegas", "fl_vegas_linux", "fl_newreno", "fl_reno"]
        receiver.send_signal(signal.SIGTERM)
        finish(receiver, 10)


def test_a_variant_on_a_host_set_for_another_is_refused(lease: loader.Lease) -> None:
    del lease
    with bed() as network:
        run("ip", "netns", "exec", network.senders[0], "sysctl", "-qw", "net.ipv4.tcp_sack=1")
        to = f"{network.sink_address}:5001"
        process = network.start(network.senders[0], "send", "--to", to, "--seconds", "1", "--cc", "vegas")
        _, error = process.communicate(timeout=20)
        assert process.returncode == 2
        assert "this host is not set for variant vegas: tcp_sack is 1, not 0" in error
        assert "fairlane hosts use HOST vegas" in error


def test_a_name_that_is_not_registered_changes_nothing(lease: loader.Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    del lease
    monkeypatch.setattr(bpf, "available", lambda: ["reno", "cubic"])
    with bed() as network:
        namespace = network.netns(network.senders[0])
        before = apply.read_host(namespace)
        with pytest.raises(HostsError, match=r"no congestion control '\w+_vegas' .*\n  it has reno, cubic"):
            apply.use_on_host(find_variant("vegas"), namespace)
        assert apply.read_host(namespace) == before


def test_a_refused_setting_is_rolled_back(lease: loader.Lease) -> None:
    del lease
    broken = dataclasses.replace(
        find_variant("vegas"), sysctls={**MODERN_SYSCTLS, "tcp_sack": 0, "tcp_reordering": 100_000}
    )
    with bed() as network:
        namespace = network.netns(network.senders[0])
        before = apply.read_host(namespace)
        with pytest.raises(
            HostsError, match=r"cannot set net\.ipv4\.tcp_reordering to 100000: Invalid argument"
        ) as caught:
            apply.use_on_host(broken, namespace)
        assert caught.value.kind == "sysctl"
        assert apply.read_host(namespace) == before


def test_a_namespace_that_is_not_there_is_said() -> None:
    with pytest.raises(HostsError, match="there is no process 4194000"):
        apply.namespace_of(4194000)


def test_a_socket_that_uses_something_else_is_noticed() -> None:
    with socket.socket() as connection:
        apply.use_on_socket(connection, "reno")
        with pytest.raises(HostsError, match="a socket uses 'reno', not 'fl_vegas'") as caught:
            apply.check_socket(connection, "fl_vegas")
    assert caught.value.kind == "wrong-congestion-control"


# --- how they behave ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["reno", "newreno"])
@void_when_stalled
def test_reno_saw_tooths_between_half_and_the_whole_queue(name: str, lease: loader.Lease, tmp_path: Path) -> None:
    del lease
    with bed(rate_bps=RATE_BPS, queue_packets=20) as network:
        apply.use_on_host(find_variant(name), network.netns(network.senders[0]))
        records = transfer(network, tmp_path, 12, [name])
        cwnd = windows(records["0"], skip_s=4)
        drops = queue_drops(network)
    assert 18 <= max(cwnd) <= 24  # 20 wait and one is on the line
    valleys = [after for before, after in pairwise(cwnd) if after <= 0.65 * before]
    assert 8 <= median(valleys) <= 12  # half of it; two losses in one window halve 1990's Reno twice
    assert 3 <= len(valleys) <= 15
    assert all(after - before <= 1 for before, after in pairwise(cwnd))  # additive: one packet at a time
    assert drops >= len(valleys)
    (flow,) = records["0"][-1]["summary"]["flows"]
    assert flow["reordering"] == 3
    assert flow["retrans"] >= drops - max(cwnd)  # the last losses may not be repaired yet


@void_when_stalled
def test_vegas_keeps_the_queue_low_and_loses_nothing(lease: loader.Lease, tmp_path: Path) -> None:
    del lease
    with bed(rate_bps=RATE_BPS, queue_packets=50) as network:
        apply.use_on_host(find_variant("vegas"), network.netns(network.senders[0]))
        records = transfer(network, tmp_path, 6, ["vegas"])
        drops = queue_drops(network)
    assert drops == 0
    assert max(windows(records["0"], skip_s=2)) <= 5  # no path but the queue: at most beta = 3 wait, one is on the line
    start_ns = records["0"][0]["t_ns"]
    (rate_bps,) = goodput(records["sink"], start_ns + 1 * S, start_ns + 5 * S).values()
    assert rate_bps >= 0.9 * RATE_BPS * 960 / 1014


@void_when_stalled
def test_reno_starves_vegas_behind_a_long_drop_tail_queue(lease: loader.Lease, tmp_path: Path) -> None:
    del lease
    with bed(senders=2, rate_bps=RATE_BPS, queue_packets=50) as network:
        for sender, name in zip(network.senders, ("reno", "vegas"), strict=True):
            apply.use_on_host(find_variant(name), network.netns(sender))
        records = transfer(network, tmp_path, 15, ["reno", "vegas"])
    start_ns = records["0"][0]["t_ns"]
    rates = goodput(records["sink"], start_ns + 3 * S, start_ns + 14 * S)
    by_peer = {peer.split(":")[0]: rate_bps for peer, rate_bps in rates.items()}
    reno, vegas = by_peer["10.99.0.1"], by_peer["10.99.1.1"]
    assert 0.02 < vegas / reno < 0.3
    assert reno + vegas >= 0.9 * RATE_BPS * 960 / 1014


@pytest.mark.parametrize(
    ("policy", "least", "most"), [("every", 0.95, 1.05), ("kernel", 0.45, 0.9), ("delayed", 0.45, 0.6)]
)
@void_when_stalled
def test_the_sink_acknowledges_as_told(
    lease: loader.Lease, tmp_path: Path, policy: str, least: float, most: float
) -> None:
    del lease
    with bed(rate_bps=RATE_BPS, queue_packets=50) as network:
        apply.use_on_host(find_variant("vegas-linux"), network.netns(network.senders[0]))
        records = transfer(network, tmp_path, 4, ["vegas-linux"], "--ack", policy)
    (connection,) = records["sink"][-1]["summary"]["connections"]
    assert connection["data_segments"] > 500
    assert least <= connection["segments_sent"] / connection["data_segments"] <= most


def test_a_loaded_algorithm_that_is_taken_away_breaks_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.build_all()
    monkeypatch.setenv("FAIRLANE_CC_STATE", str(tmp_path / "cc.json"))
    name = f"hs_t{os.getpid() % 1000000}"
    build.compile_bpf(build.SENDER_SOURCE, name, find_variant("reno").definitions, tmp_path / "object")
    program = loader.Program(name, tmp_path / "object", "x")
    with bed(rate_bps=10_000_000, queue_packets=50) as network:
        receiver = network.start_sink(tmp_path, "--out", str(tmp_path / "sink"), "--connections", "4")
        to = f"{network.sink_address}:5001"
        sender: subprocess.Popen[str] | None = None
        with loader.acquire([program]):
            arguments = ["--to", to, "--bytes", "800000", "--flows", "4", "--cc", name, "--sample-ms", "20"]
            sender = network.start(network.senders[0], "send", *arguments, "--out", str(tmp_path / "o"))
            wait_until(lambda: name in in_use(network), 15, "sockets to use the algorithm")
        wait_until(lambda: name not in loader.available(), 5, "the algorithm to be unregistered")
        assert sender.poll() is None, "the flows were to be running still"
        with loader.acquire([program]):  # loaded again beside the running one
            finish(sender, 60)
        finish(receiver, 10)
    flows = read_summary(tmp_path / "o")["flows"]
    assert [(flow["cc"], flow["complete"], flow["error"]) for flow in flows] == [(name, True, "")] * 4


def in_use(network: Bed) -> str:
    """`ss` names the congestion control of each socket."""
    return run("ip", "netns", "exec", network.senders[0], "ss", "-tinH", "state", "established")
