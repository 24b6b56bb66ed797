# SPDX-License-Identifier: Apache-2.0
"""--runtime kernel: Linux's own TCP in virtual time. Skipped where no kernel is built (`make kernel`)."""

from __future__ import annotations

import copy
import gc
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from fairlane_lab.cli.running import stoppable
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load
from fairlane_lab.paths import REPOSITORY
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners import sim
from fairlane_lab.scenario import App, Flow, Scenario, TcpOptions
from fairlane_lab.sim.kernel import BUILT, Machine, make_machine
from fairlane_topology.links import LinkChange
from sim_scenarios import DUMBBELL, RATE_BPS, RENO, VEGAS, cbr, scenario

built = pytest.mark.skipif(not (BUILT / "linux").exists(), reason="no kernel is built: make kernel")
RUN = scenario(RENO, VEGAS, duration_s=20.0, warmup_s=5.0, series=True)

PROGRAM = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) { // PORT: receives; ADDRESS PORT: sends
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[argc - 1]))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	static char buffer[65536];

	while (!strcmp(argv[1], "spin"))
		;
	while (!strcmp(argv[1], "eat"))
		memset(malloc(1 << 20), 1, 1 << 20);
	if (argc == 3) {
		if (!inet_aton(argv[1], &peer.sin_addr) || connect(fd, (void *)&peer, sizeof(peer))) {
			puts("no address");
			return 3;
		}
		while (write(fd, buffer, sizeof(buffer)) > 0)
			;
		return 0;
	}
	if (bind(fd, (void *)&peer, sizeof(peer)) || listen(fd, 1))
		return 4;
	fd = accept(fd, 0, 0);
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	return 0;
}
"""


def with_jumbo_frames() -> dict[str, Any]:
    topology: dict[str, Any] = copy.deepcopy(DUMBBELL)
    for host in topology["hosts"].values():
        host["mtu"] = 9000
    return topology


def goodput_bps(result: RunResult) -> dict[str, float]:
    return {flow.flow: flow.goodput_bps for flow in result.flows}


@built
def test_a_run_on_linux_is_the_same_twice_and_like_the_simulator_s() -> None:
    first, second = sim.run_kernel(RUN), sim.run_kernel(RUN)
    assert first == second
    on_linux, simulated = goodput_bps(first), goodput_bps(sim.run(RUN))
    assert sum(on_linux.values()) == pytest.approx(sum(simulated.values()), rel=0.03)
    assert first.about["runtime"] == "kernel"
    assert {point.metric for point in first.series} >= {"cwnd_packets", "goodput_bps", "srtt_ms", "queue_packets"}
    chance = scenario(Flow("bulk", "bulk", "h1", "h3", app=App("on_off", on_mean_s=1.0, off_mean_s=1.0)))
    assert goodput_bps(sim.run_kernel(chance)) != goodput_bps(sim.run_kernel(replace(chance, seed=chance.seed + 1)))


@built
def test_counts_are_those_at_the_ends_of_the_window_whatever_the_samples_are() -> None:
    """The guest sampled every 3 s alone: what came in the last 2 s was in no result."""
    flows = [replace(flow, connections=17) for flow in (RENO, VEGAS)]
    result = sim.run_kernel(scenario(*flows, sample_s=3.0, warmup_s=4.0))
    assert sum(goodput_bps(result).values()) > 0.9 * result.ports[0].throughput_bps


def digest(result: RunResult) -> str:
    """Of all but the machine and its time; nine digits, since the last ones of a mean are the processor's."""
    fields = asdict(replace(result, about={}))
    del fields["cpu_s"]
    text = json.dumps(fields, sort_keys=True)
    text = re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.9g}", text)
    return hashlib.sha256(text.encode()).hexdigest()


@built
def test_frames_end_no_wait_while_interrupts_are_off() -> None:
    """At 5.169 s of this run a second frame comes before the kernel has taken the interrupt of the first: it hung."""
    found = expand(load("gfr-table2"), Selection(runtime="kernel", repeats=8))
    run = next(each for each in found if each.repeat == 7 and each.point == "proposed WRR")
    result = sim.run_kernel(replace(run, warmup_s=1.0, duration_s=6.0))
    assert all(flow.goodput_bps > 0 for flow in result.flows)


@built
def test_seed_and_scenario_decide_every_byte() -> None:
    """Alone, in two processes, beside a busy process, and on the machine of whoever committed the reference."""
    alone = digest(sim.run_kernel(RUN))
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
                assert {digest(result) for result in pool.map(sim.run_kernel, [RUN] * 4)} == {alone}
        finally:
            busy.kill()
    reference = json.loads((REPOSITORY / "hosts" / "kernel" / "reference.json").read_text())
    here = json.loads((BUILT / "linux.json").read_text())["sha256"]
    if here != reference["kernel_sha256"]:
        pytest.skip(f"another kernel than the reference's ({reference['package']}): this one is {here[:16]}")
    assert alone == reference["result_sha256"]


@built
def test_a_largest_window_holds_on_linux_as_in_the_simulator() -> None:
    run = replace(scenario(Flow("clamped", "clamped", "h1", "h3", window_packets=5)), series=True)
    on_linux, simulated = sim.run_kernel(run), sim.run(run)
    windows = [point.value for point in on_linux.series if point.metric == "cwnd_packets" and point.t_s > 1]
    assert max(windows) == 5
    assert goodput_bps(on_linux)["clamped"] == pytest.approx(goodput_bps(simulated)["clamped"], rel=0.03)


@built
@pytest.mark.parametrize("port", [{}, {"qdisc": "pfifo limit 50"}])
def test_segments_are_as_long_as_the_topology_s_mtu_allows(port: dict[str, str]) -> None:
    """All interfaces had 1,500 bytes: hosts sent shorter segments than asked for, and a queue of Linux's took no longer frame."""
    topology = with_jumbo_frames()
    topology["switches"]["s1"]["ports"]["3"] |= port
    run = replace(scenario(RENO, tcp=TcpOptions(mss_bytes=8_000)), topology=topology)
    (on_linux,) = sim.run_kernel(run).flows
    assert on_linux.goodput_bps > 0.9 * RATE_BPS
    measured_s = run.duration_s - run.warmup_s
    assert on_linux.segments_sent == pytest.approx(on_linux.goodput_bps * measured_s / 8 / 8_000, rel=0.05)


@built
@pytest.mark.parametrize(("mss_bytes", "segments"), [(1460, 7), (1448, 7), (1000, 8), (1448, 3), (8000, 5)])
def test_a_buffer_takes_the_segments_that_it_was_made_for(mss_bytes: int, segments: int) -> None:
    """An eighth segment was taken: the kernel makes its largest window anew of the buffer when the first segment has come."""
    window = segments * mss_bytes
    tcp = TcpOptions(mss_bytes=mss_bytes, receive_window_bytes=window, read_interval_s=1.0, timestamps=False)
    waits = {window - 1: 0, window + 1: 1, 2 * window - 1: 1, 2 * window + 1: 2, 5 * window + 1: 5}
    flows = [
        Flow(f"file{i}", "file", "h1", "h3", "nss", App("bytes", bytes=size, nodelay=True), start_s=6.0 * i)
        for i, size in enumerate(waits)
    ]
    run = replace(scenario(*flows, tcp=tcp, duration_s=36.0, warmup_s=0.0), topology=with_jumbo_frames())
    took_s = {transfer.bytes: transfer.completion_s for transfer in sim.run_kernel(run).transfers}
    assert {size: int(took_s[size]) for size in waits} == waits


@built
def test_applications_ask_for_the_same_on_linux_as_in_the_simulator() -> None:
    web = App("web", arrivals_per_s=2.0, mean_bytes=8_000, distribution="pareto", max_bytes=100_000)
    files = App("bytes", bytes=20_000, times=3, interval_s=4.0)
    run = scenario(
        Flow("bulk", "bulk", "h1", "h3", app=App("on_off", on_mean_s=1.0, off_mean_s=1.0)),
        Flow("web", "web", "h2", "h3", app=web),
        Flow("files", "files", "h2", "h3", app=files, start_s=2.0),
        Flow("keys", "keys", "h2", "h3", app=App("interactive", bytes=200, interval_s=0.5)),
        cbr("udp", "h1", 200_000),
    )
    on_linux, simulated = sim.run_kernel(run), sim.run(run)

    def asked(result: RunResult, flow: str) -> list[tuple[float, int]]:
        in_time = [transfer for transfer in result.transfers if transfer.start_s < 15]  # the others may not have ended
        return sorted((round(transfer.start_s, 6), transfer.bytes) for transfer in in_time if transfer.flow == flow)

    for flow in ("web", "files", "keys"):
        assert asked(on_linux, flow) == asked(simulated, flow), flow
    rates, expected = goodput_bps(on_linux), goodput_bps(simulated)
    assert rates["udp"] == pytest.approx(expected["udp"], rel=0.02)
    assert rates["bulk"] == pytest.approx(expected["bulk"], rel=0.2)  # Linux sends what waits in the socket as well
    assert all(transfer.completion_s > 0 for transfer in on_linux.transfers)
    assert [t.packets for t in on_linux.transfers if t.flow == "files"] == [21, 21, 21]  # 20 of 1000 bytes, and the FIN


@built
def test_an_on_off_source_fills_the_line_with_jumbo_frames_too() -> None:
    """What it lets wait in the socket is more than a segment: Nagle's algorithm would hold less back for a delayed ACK (40 ms)."""
    app = App("on_off", on_mean_s=1.0, off_mean_s=1.0)
    tcp = TcpOptions(mss_bytes=8948)
    run = replace(scenario(Flow("bulk", "bulk", "h1", "h3", app=app), tcp=tcp), topology=with_jumbo_frames())
    assert goodput_bps(sim.run_kernel(run))["bulk"] == pytest.approx(goodput_bps(sim.run(run))["bulk"], rel=0.1)


@built
@pytest.mark.parametrize("runner", [sim.run, sim.run_kernel])
def test_what_was_acknowledged_is_of_transfers_over_or_cut(runner: Callable[[Scenario], RunResult]) -> None:
    apps = {
        "web": App("web", arrivals_per_s=1.0, mean_bytes=100_000, distribution="fixed"),
        "keys": App("interactive", bytes=20_000, interval_s=0.3),
        "film": App("video", bitrates_bps=(1_000_000, 1_500_000), buffer_s=20.0, reservoir_s=4.0, cushion_s=8.0),
    }
    run = scenario(*(Flow(name, name, "h1", "h3", app=app) for name, app in apps.items()), warmup_s=0.0)
    result = runner(run)
    for name, rate_bps in goodput_bps(result).items():
        mine = [transfer for transfer in result.transfers if transfer.flow == name]
        assert {transfer.complete for transfer in mine} == {True, False}, name
        acked_at_the_last_sample = rate_bps / 8 * run.duration_s
        assert sum(transfer.bytes for transfer in mine) == pytest.approx(acked_at_the_last_sample, abs=4_000), name


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "send.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O0", "-static", "-o", "send", "send.c"], cwd=folder, check=True, timeout=60)
    return folder / "send"


@built
def test_a_program_of_the_user_s_is_an_application(program: Path) -> None:
    app = App("command", command=(str(program), "{receiver}", "{port}"), receiver_command=(str(program), "{port}"))
    flow = Flow("own", "own", "h1", "h3", variant="reno", app=app)
    result = sim.run_kernel(scenario(flow))
    assert goodput_bps(result)["own"] > 1_500_000
    assert sim.run_kernel(scenario(flow)) == result
    broken = replace(flow, app=replace(app, command=(str(program), "nowhere", "x")))
    with pytest.raises(RunError, match="flow own: its command ended with exit code 3: no address"):
        sim.run_kernel(scenario(broken))
    with pytest.raises(RunError, match="flow own: a command needs Linux hosts: --runtime kernel"):
        sim.run(scenario(flow))


@built
@pytest.mark.skipif(shutil.which("socat") is None, reason="no socat is installed, the proxy")
def test_a_dynamic_proxy_is_a_middle_host() -> None:
    """100 kB by way of socat on h2, whose libraries go along; the sender's program ends when the receiver has read all."""
    near = ("socat", "-t", "60", "OPEN:/dev/zero,readbytes={bytes}", "TCP:{receiver}:{port}")
    far = ("socat", "-t", "60", "TCP-LISTEN:{near.port},fork", "TCP:{receiver}:{port}")
    sink = ("socat", "-u", "TCP-LISTEN:{port},fork", "OPEN:/dev/null")
    run = scenario(
        Flow("near", "near", "h1", "h2", app=App("command", command=near, bytes=100_000), start_s=1.0),
        Flow("far", "far", "h2", "h3", app=App("command", command=far, receiver_command=sink)),
        duration_s=6.0,
        warmup_s=0.5,
    )
    result = sim.run_kernel(run)
    (transfer,) = result.transfers
    assert (transfer.flow, transfer.bytes) == ("near", 100_000)
    on_line_s = 100_000 * 8 / RATE_BPS
    assert on_line_s < transfer.completion_s < 1.3 * on_line_s
    assert goodput_bps(result)["far"] * 5.5 / 8 == pytest.approx(100_000, rel=0.05)
    broken = replace(run, flows=(replace(run.flows[1], name="other"),))
    with pytest.raises(
        RunError, match=r"flow other: {near.port}: allowed is FLOW.sender, FLOW.receiver or FLOW.port of other"
    ):
        sim.run_kernel(broken)


def test_connections_for_which_linux_has_no_port_are_counted(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("10 web start 0\n20 web no-port 0\n30 web no-port 0\n40 web exit 0\n")
    assert Machine(tmp_path).not_opened() == {"web": 2}


def test_a_program_whose_library_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = subprocess.CompletedProcess([], 0, "\tlibgone.so.1 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n")
    monkeypatch.setattr(subprocess, "run", Mock(return_value=said))
    with pytest.raises(RunError, match=r"/bin/proxy needs libgone\.so\.1, which is not there"):
        Machine(tmp_path).add_libraries(["/bin/proxy"])


@built
def test_a_program_that_hangs_or_eats_ends_the_run(program: Path, tmp_path: Path) -> None:
    flow = Flow("own", "own", "h1", "h3", variant="reno", app=App("command", command=(str(program), "eat")))
    with pytest.raises(RunError, match="flow own: its command ended with signal"):
        sim.run_kernel(scenario(flow))
    with pytest.raises(RunError, match=r"the machine of the hosts: .*2 s"):
        spin(program, tmp_path, patience_s=2)
    wait_until(lambda: not processes_in(tmp_path))


@built
def test_a_killed_run_leaves_no_machine(program: Path, tmp_path: Path) -> None:
    run = get_context("spawn").Process(target=spin, args=(program, tmp_path))
    run.start()
    wait_until(lambda: len(processes_in(tmp_path)) > 1)
    run.kill()
    run.join(10)
    wait_until(lambda: not processes_in(tmp_path))


SILENT = """#!/usr/bin/python3
import signal, socket
calendar = socket.socket(socket.AF_UNIX)
{begins}
signal.pause()
"""


@pytest.fixture(params=["pass", "calendar.connect('time')"])
def silent(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """A kernel that says nothing, before or after it has connected."""
    kernel, folder = tmp_path / "silent", tmp_path / "machine"
    kernel.write_text(SILENT.format(begins=request.param))
    kernel.chmod(0o755)
    folder.mkdir()
    return Machine(folder, kernel=kernel, guest=Path("/bin/true"))


def test_a_kernel_that_never_speaks_does_not_boot(silent: Machine) -> None:
    with pytest.raises(RunError, match=r"the kernel did not boot within 1 s \(boot_limit_s\)"):
        sim.run(RUN, machine=replace(silent, boot_limit_s=1))
    wait_until(lambda: not processes_in(silent.folder))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_on_a_silent_kernel(silent: Machine, number: signal.Signals) -> None:
    ends_with(number, silent.folder, sim.run, RUN, replace(silent, boot_limit_s=60))


@built
@pytest.mark.timeout(100)
def test_a_signal_ends_a_run_whose_program_hangs(program: Path, tmp_path: Path) -> None:
    ends_with(signal.SIGTERM, tmp_path, spin, program, tmp_path)


def ends_with(number: int, folder: Path, run: Callable[..., object], *arguments: object) -> None:
    """A signal ends a run in another process long before it would end by itself, and leaves nothing of the machine."""
    process = get_context("spawn").Process(target=run_until_signal, args=(run, *arguments))
    process.start()
    wait_until(lambda: len(processes_in(folder)) > 0)
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(20)
    assert process.exitcode == 128 + number
    wait_until(lambda: not processes_in(folder))


def run_until_signal(run: Callable[..., object], *arguments: object) -> None:
    """As `fairlane lab run --jobs 1` in a terminal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with stoppable() as stop:
        try:
            run(*arguments)
        except KeyboardInterrupt:
            sys.exit(stop.exit_code)


@built
def test_a_run_that_is_over_leaves_no_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gc.disable()
    try:
        sim.run_kernel(RUN)
        # All of its processes were killed; a busy system needs a moment to end the last one.
        wait_until(lambda: not processes_in(tmp_path))
    finally:
        gc.enable()


def spin(program: Path, folder: Path, patience_s: int = 60) -> None:
    app = App("command", command=(str(program), "spin"))
    run = scenario(Flow("own", "own", "h1", "h3", variant="reno", app=app))
    sim.run(run, machine=replace(make_machine(folder), patience_s=patience_s))


def processes_in(folder: Path) -> list[str]:
    """What works in a machine's folder, or below it."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if path.readlink().is_relative_to(folder):
                found.append(path.parent.name)
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@built
@pytest.mark.timeout(100)
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts: needs root")
def test_a_container_s_shared_memory_is_enough(tmp_path: Path) -> None:
    """Docker's runs no code and has 64 MB."""
    (tmp_path / "run.py").write_text(
        "import test_kernel_run as test\nprint(test.digest(test.sim.run_kernel(test.RUN)))\n"
    )
    mount = "mount -t tmpfs -o noexec,size=1M tmpfs /dev/shm"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$0" "$1"', sys.executable, tmp_path / "run.py"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.stdout.strip() == digest(sim.run_kernel(RUN)), done.stderr


@built
def test_host_programs_are_the_kernel_s() -> None:
    """E-RTO answers a delay spike with new data; ENA names segments that a link corrupts."""
    spike = scenario(replace(RENO, variant="erto"), changes=(LinkChange(at_s=10.0, link="s1-s2", spike_s=2.0),))
    assert sim.run_kernel(spike).flows[0].counters["erto_probes"] > 0
    noise = scenario(replace(RENO, variant="ena-reno"), changes=(LinkChange(at_s=1.0, link="s1-s2", ber=1e-6),))
    counters = sim.run_kernel(noise).flows[0].counters
    assert counters["ena_corrupted"] > 5
    assert counters["ena_notified"] > 0


@built
def test_bcr_s_estimate_at_the_undo_is_the_new_rate() -> None:
    """2 Mbit/s before the spike, 1 Mbit/s behind it; a sender that does not estimate has no such number."""

    def after_spike(variant: str) -> float | None:
        spike = LinkChange(at_s=8, link="s1-s2", direction="a_to_b", spike_s=3.0, spike_blocks="line")
        changes = (spike, LinkChange(at_s=8, link="s1-s2", rate_bps=1_000_000))
        tcp = TcpOptions(rto_min_s=1.0)
        (flow,) = sim.run_kernel(scenario(replace(RENO, variant=variant), tcp=tcp, changes=changes)).flows
        return flow.bw_est_ratio

    estimate = after_spike("bcr")
    assert estimate is not None
    assert 0.75 < estimate < 1.25
    assert after_spike("erto") is None


@built
def test_memory_is_as_the_flows_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    many = scenario(replace(RENO, connections=100), duration_s=2.0, warmup_s=0.5)
    assert sum(goodput_bps(sim.run_kernel(many)).values()) > 1_000_000
    monkeypatch.setattr("fairlane_lab.sim.kernel.MEMORY_MB", 4)
    with pytest.raises(RunError, match="Too few physical memory"):
        sim.run_kernel(RUN)


def test_a_sender_that_the_kernel_does_not_have_is_told(tmp_path: Path) -> None:
    (tmp_path / "linux.json").write_text('{"senders": ["fl_vegas"]}')
    with pytest.raises(RunError, match="the kernel has no fl_reno: name its folder in FAIRLANE_SENDERS"):
        Machine(tmp_path, kernel=tmp_path / "linux").check_senders(RUN)


def test_a_machine_without_a_folder_is_refused(tmp_path: Path) -> None:
    broken = Machine(tmp_path / "nowhere", cpu=None)
    with pytest.raises(RunError, match="the simulator refuses the configuration: machine"):
        sim.run(RUN, machine=broken)


def test_without_a_kernel_it_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine.__init__, "__defaults__", (BUILT / "none", BUILT / "none", None, 20, 60))
    with pytest.raises(
        RunError, match=r"there is no \.setup/kernel/none: `make kernel` builds the kernel of this runtime"
    ):
        make_machine(tmp_path)
