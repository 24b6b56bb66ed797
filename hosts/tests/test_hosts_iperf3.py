# SPDX-License-Identifier: Apache-2.0
"""Goodput of `fairlane-traffic` against that of iperf3, over one link."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
from pathlib import Path

import pytest
from hosts_bed import Bed, bed, finish, run, wait_until
from steady import void_when_stalled
from traffic_records import goodput, read_records, read_summary

pytestmark = [pytest.mark.kernel, pytest.mark.timed]

RATE_BPS = 20_000_000
PAIRS, SECONDS, SKIPPED_S = 5, 4, 1
PORT = 5201


def ours_bps(network: Bed, folder: Path) -> float:
    sink = network.start_sink(folder, "--connections", "1", "--out", str(folder / "sink"))
    words = ["--to", f"{network.sink_address}:5001", "--seconds", str(SKIPPED_S + SECONDS), "--cc", "cubic-linux"]
    finish(network.start(network.senders[0], "send", *words, "--no-sysctl-check", "--out", str(folder / "send")), 20)
    finish(sink, 10)
    start_ns = read_summary(folder / "send")["start_ns"] + SKIPPED_S * 10**9
    (bps,) = goodput(read_records(folder / "sink"), start_ns, start_ns + SECONDS * 10**9).values()
    return bps


def iperf3_bps(network: Bed) -> float:
    command = ["ip", "netns", "exec", network.sink, "iperf3", "--server", "--one-off", "--json", "--port", str(PORT)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    listening = ("ip", "netns", "exec", network.sink, "ss", "-Hltn", f"sport = {PORT}")
    wait_until(lambda: run(*listening), 10, "iperf3 to listen")
    client = ["iperf3", "--client", network.sink_address, "--port", str(PORT), "--congestion", "cubic", "--json"]
    seconds = ["--time", str(SKIPPED_S + SECONDS + 1), "--get-server-output"]
    said = json.loads(run("ip", "netns", "exec", network.senders[0], *client, *seconds))
    assert server.wait(timeout=10) == 0
    seen = [each["sum"] for each in said["server_output_json"]["intervals"][SKIPPED_S : SKIPPED_S + SECONDS]]
    return sum(each["bytes"] for each in seen) * 8 / sum(each["seconds"] for each in seen)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="NOT COMPARED: iperf3 is missing (apt-get install iperf3)")
@void_when_stalled
def test_goodput_is_that_of_iperf3(tmp_path: Path) -> None:
    ratios = list[float]()
    with bed(rate_bps=RATE_BPS, queue_packets=50) as network:
        for pair in range(PAIRS):
            folder = tmp_path / str(pair)
            folder.mkdir()
            ratios.append(ours_bps(network, folder) / iperf3_bps(network))
    mean, half = statistics.mean(ratios), 2.776 * statistics.stdev(ratios) / PAIRS**0.5  # Student, 4 degrees
    print(f"ours / iperf3: {mean:.5f} ± {half:.5f} (95 %, n = {PAIRS}): {[round(ratio, 5) for ratio in ratios]}")
    assert mean == pytest.approx(1.0, abs=0.005)
