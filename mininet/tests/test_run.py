# SPDX-License-Identifier: Apache-2.0
"""Real runs of the launcher: the Mininet CLI works, everything that was made is removed, also after a crash. Needs root."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_session import launcher
from fairlane_topology import network as fl_net
from fairlane_topology import state as fl_state
from fairlane_topology import topology as fl_topology

pytestmark = pytest.mark.kernel

HERE = Path(__file__).parents[1]
INSTANCE = "90"
"""Far from what a user's run or the demo uses."""
START_TIMEOUT_S = 240.0

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")


def ours() -> list[str]:
    """Interfaces of this instance in the root namespace."""
    return [name for name in os.listdir("/sys/class/net") if re.match(rf"n{INSTANCE}(h|s|w)", name)]  # noqa: PTH208


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """State goes to the test's own folder, and nothing is left behind."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    yield
    fl_state.clean(INSTANCE)


@needs_root
def test_the_cli_pings_through_both_switches_and_leaves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "commands"
    script.write_text("nodes\nh1 ping -c 3 -i 0.2 -W 2 10.0.3.3\n")
    done = subprocess.run(
        launcher(INSTANCE, "--script", str(script)), capture_output=True, text=True, timeout=START_TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr  # Mininet prints what nodes say through its log, on standard error
    assert "3 packets transmitted, 3 received, 0% packet loss" in said
    round_trip = re.search(r"rtt min/avg/max/mdev = ([0-9.]+)/", said)
    assert round_trip is not None
    assert float(round_trip.group(1)) >= 8.0  # 2 · (1 + 2 + 1) ms of propagation
    assert ours() == []
    assert fl_state.instances() == []


@needs_root
def test_long_packets_cross_hosts_switches_and_wire(tmp_path: Path) -> None:
    script = tmp_path / "commands"
    ping = "h1 ping -c 2 -i 0.2 -W 2 -M do"
    # IP packets of 7732 bytes (MSS 7680 with time stamps), of 9000, and one byte more.
    script.write_text(f"{ping} -s 7704 10.0.6.6\n{ping} -s 8972 10.0.6.6\n{ping} -s 8973 10.0.6.6\n")
    topology = str(HERE / "topologies" / "gfr-p2p.json")
    command = launcher(INSTANCE, "--topology", topology, "--script", str(script))
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert said.count("2 packets transmitted, 2 received, 0% packet loss") == 2, said
    assert re.search(r"message too long, mtu[=:] ?9000|Message too long", said), said


@needs_root
def test_gfr_runs_with_the_configuration_beside_its_topology(tmp_path: Path) -> None:
    """The five VCs of gfr-p2p.toml are put in force from the CLI, and a VC's packets are counted as its own."""
    script, topologies = tmp_path / "commands", HERE / "topologies"
    fairlane = f"sh FAIRLANE_STATE_DIR={tmp_path} {Path(sys.executable).with_name('fairlane')}"
    state = f"--state {tmp_path / INSTANCE}"
    script.write_text(
        f"{fairlane} config apply {topologies / 'gfr-p2p.toml'} {state}\n"
        "h3 ping -c 5 -i 0.2 -W 2 10.0.8.8\n"
        f"{fairlane} status --json {state}\n"
    )
    command = launcher(
        INSTANCE, "--topology", str(topologies / "gfr-p2p.json"), "--program", "gfr", "--script", str(script)
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "5 packets transmitted, 5 received, 0% packet loss" in said, said
    shown = json.loads(said[said.index("{\n") : said.rindex("}") + 1])
    vcs = {vc["vc"]: vc for vc in shown["vcs"]}
    assert {name: vc["accepted_packets"] for name, vc in vcs.items()} == {
        "vc1": 0,
        "vc2": 0,
        "vc3": 5,
        "vc4": 0,
        "vc5": 0,
    }
    assert vcs["vc3"]["refused_packets"] == 0
    (port,) = (port for port in shown["ports"] if port["managed"])
    assert (port["port"], port["scheme"], port["waiting_cells"]) == (6, "proposed", 0)


@needs_root
def test_ena_runs_without_a_loop_and_knows_its_far_sides(tmp_path: Path) -> None:
    """Both ends of the satellite link are far sides, and packets cross them."""
    script = tmp_path / "commands"
    fairlane = f"sh FAIRLANE_STATE_DIR={tmp_path} {Path(sys.executable).with_name('fairlane')}"
    state = f"--state {tmp_path / INSTANCE}"
    script.write_text(f"h1 ping -c 2 -i 0.2 -W 5 10.0.2.2\n{fairlane} status --json {state}\n")
    topology = str(HERE / "topologies" / "satellite.json")
    command = launcher(INSTANCE, "--topology", topology, "--program", "ena", "--script", str(script))
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "2 packets transmitted, 2 received, 0% packet loss" in said, said
    document = json.loads(said[said.index("{\n") : said.rindex("}") + 1])
    rows = [(row["switch"], row["port"], row["ena_corrupted"]) for row in document["ports"] if row["managed"]]
    assert rows == [("s1", 2, 0), ("s2", 1, 0)]


@needs_root
def test_stop_removes_everything_where_the_watcher_was_killed_too(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output:
        process = subprocess.Popen(
            launcher(INSTANCE), stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while "mininet>" not in (tmp_path / "out").read_text(errors="replace"):
        assert process.poll() is None, (tmp_path / "out").read_text()
        assert time.monotonic() < deadline, (tmp_path / "out").read_text()
        time.sleep(0.1)
    state = fl_state.read(INSTANCE)
    assert state is not None
    started = [fl_state.OwnedProcess.from_json(item) for item in state["pids"]]
    assert {"fairlane-switch network", "fairlane run"} <= {item.what for item in started}
    watcher = next(item.pid for item in started if item.what == fl_state.WATCHER)
    os.kill(process.pid, signal.SIGSTOP)  # it would start the watcher again
    for pid in (watcher, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait(timeout=10)
    assert ours()
    done = subprocess.run(
        [sys.executable, "-m", "fairlane_topology.stop", INSTANCE], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "removed" in done.stdout
    assert [item.what for item in started if item.is_alive()] == []
    assert ours() == []
    assert fl_state.instances() == []


@needs_root
def test_the_same_instance_does_not_start_twice(sleeping_instance: None) -> None:
    del sleeping_instance
    done = subprocess.run(
        launcher(INSTANCE, "--no-controller"), capture_output=True, text=True, timeout=START_TIMEOUT_S
    )
    assert done.returncode == 2
    assert f"topology {INSTANCE} is running already: 'make stop' ends it" in done.stderr


@needs_root
def test_a_network_that_was_refused_takes_nothing_of_the_one_that_runs(sleeping_instance: None) -> None:
    del sleeping_instance
    topology = fl_topology.load(HERE / "topologies" / "single.json")
    network = fl_net.Network(topology, fl_net.NetworkOptions(int(INSTANCE)))
    with pytest.raises(RuntimeError, match="is running already"):
        network.start()
    network.stop()
    assert fl_state.alive(INSTANCE)


@needs_root
def test_an_address_that_is_taken_is_refused_before_anything_is_programmed() -> None:
    with socket.create_server(("127.0.0.1", 50050 + 20 * int(INSTANCE) + 1)):
        done = subprocess.run(launcher(INSTANCE), capture_output=True, text=True, timeout=START_TIMEOUT_S)
    assert done.returncode == 2
    assert "s1: another process serves 127.0.0.1:51851 already" in done.stderr
    assert ours() == []


@needs_root
def test_an_interface_of_somebody_else_is_named_and_stays() -> None:
    name = f"n{INSTANCE}s2-eth1"
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", "somebodys"], check=True, timeout=10)
    try:
        done = subprocess.run(launcher(INSTANCE), capture_output=True, text=True, timeout=START_TIMEOUT_S)
        assert ours() == [name]
    finally:
        subprocess.run(["ip", "link", "delete", name], check=True, timeout=10)
    assert done.returncode == 2
    assert f"there is an interface {name} already, which is not ours" in done.stderr


@needs_root
def test_a_port_that_an_outgoing_connection_holds_does_not_stop_the_start(tmp_path: Path) -> None:
    instance = 94  # no other test's: what those left on their port waits for a minute
    script = tmp_path / "commands"
    script.write_text("nodes\n")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.bind(("127.0.0.1", 50050 + 20 * instance + 1))
        client.connect(server.getsockname())
        done = subprocess.run(
            launcher(str(instance), "--script", str(script)),
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
        )
    assert done.returncode == 0, done.stderr
    assert "P4Runtime on 127.0.0.1:31931, an outgoing connection holds 127.0.0.1:51931" in done.stdout + done.stderr
    assert fl_state.instances() == []


@pytest.fixture
def sleeping_instance() -> Iterator[None]:
    """An instance that looks alive."""
    process = subprocess.Popen(["sleep", "60"])
    fl_state.write(
        INSTANCE, {"pids": [fl_state.OwnedProcess.from_pid(process.pid, "sleeper").as_json()], "interfaces": []}
    )
    yield
    process.kill()
    process.wait(timeout=10)


@needs_root
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ('{"hosts": {}, "switches": {}}', "/links: Field required"),
        (
            '{"hosts": {"h1": {"ip": "10.0.1.1/24", "variant": "nope"}}, "switches": {"s1": {}}, "links": [["h1", "s1-p1"]]}',
            "t.json: /hosts/h1/variant: no TCP variant is called 'nope'; there are ",
        ),
    ],
)
def test_a_bad_topology_starts_nothing(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    done = subprocess.run(
        launcher(INSTANCE, "--topology", str(path)), capture_output=True, text=True, timeout=START_TIMEOUT_S
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert ours() == []


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--instance", "-1"), "error: instance -1 is out of range: it must be between 0 and 134"),
        (("--instance", "135"), "error: instance 135 is out of range: it must be between 0 and 134"),
        (("--folder", "/nowhere"), "--folder /nowhere: there is no such folder"),
        (("--script", "/nowhere"), "--script /nowhere: there is no such file"),
    ],
)
def test_a_bad_option_starts_nothing(option: tuple[str, str], message: str) -> None:
    done = subprocess.run([*launcher(INSTANCE), *option], capture_output=True, text=True, timeout=START_TIMEOUT_S)
    assert done.returncode == 2
    assert message in done.stderr
    assert ours() == []


@needs_root
def test_a_missing_binary_is_named_and_nothing_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    broken = folder / "fairlane-switch"
    broken.write_text("#!/bin/sh\necho 'no such pipeline' >&2\nexit 2\n")
    broken.chmod(0o755)
    monkeypatch.setenv("FAIRLANE_BIN_DIR", str(folder))
    done = subprocess.run(
        launcher(INSTANCE, "--no-controller"), capture_output=True, text=True, timeout=START_TIMEOUT_S
    )
    assert done.returncode == 2
    assert "fairlane-switch network does not start: no such pipeline" in done.stderr
    assert ours() == []


@needs_root
def test_a_network_that_did_not_start_may_be_stopped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = fl_topology.load(HERE / "topologies" / "dumbbell.json")
    network = fl_net.Network(topology, fl_net.NetworkOptions(instance=int(INSTANCE)))

    def fail() -> None:
        raise RuntimeError("no processes today")

    monkeypatch.setattr(network, "_start_processes", fail)
    with pytest.raises(RuntimeError, match="no processes today"):
        network.start()
    network.stop()
    assert ours() == []
    assert fl_state.instances() == []
