# SPDX-License-Identifier: Apache-2.0
"""Runtime files of p4lang/tutorials' format: what they mean, the errors of a bad one, and one real switch (needs root)."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_session import launcher
from fairlane_topology import runtime_json as fl_runtime
from fairlane_topology import state as fl_state
from fairlane_topology import topology as fl_topology
from fairlane_topology.topology import TopologyError

HERE = Path(__file__).parents[1]
FOLDER = HERE / "topologies" / "runtime_json"
COMPILED = HERE.parent / "p4src" / "compiled"
INSTANCE = "88"
START_TIMEOUT_S = 240.0


def written(tmp_path: Path, pointer: str = "", value: Any = None) -> Path:
    """The shipped runtime file with absolute paths, and with the value at a JSON pointer replaced (None: removed)."""
    document: Any = json.loads((FOLDER / "s1-runtime.json").read_text())
    document["p4info"] = str(COMPILED / "qthresh.p4info.txtpb")
    document["bmv2_json"] = str(COMPILED / "qthresh.json")
    if pointer:
        place: Any = document
        *path, last = pointer.strip("/").split("/")
        for part in path:
            place = place[int(part) if part.isdigit() else part]
        key: Any = int(last) if last.isdigit() else last
        if value is None:
            del place[key]
        else:
            place[key] = copy.deepcopy(value)
    file = tmp_path / "s1-runtime.json"
    file.write_text(json.dumps(document))
    return file


def test_every_entry_becomes_one_update_in_the_files_order(tmp_path: Path) -> None:
    runtime = fl_runtime.load(written(tmp_path))
    assert [pointer for pointer, _ in runtime.updates] == [
        *(f"/table_entries/{index}" for index in range(4)),
        "/multicast_group_entries/0",
        "/clone_session_entries/0",
    ]
    default, route = runtime.updates[0][1](), runtime.updates[1][1]()
    assert default.is_default_action
    assert (route.table_id, dict(route.match), route.action.args["port"]) == (
        "ipv4_lpm",
        {"hdr.ipv4.dst": ("10.0.1.1", 32)},
        1,
    )
    assert runtime.updates[4][1]().replicas == [(1, 1), (2, 1)]


def test_a_list_of_one_value_is_that_value(tmp_path: Path) -> None:
    """As the tutorials' own code takes it: `"hdr.myTunnel.dst_id": [1]` for an exact key."""
    entry = {
        "table": "policy",
        "match": {"egress_port": [3], "traffic_class": 0},
        "action_name": "set_qthresh",
        "action_params": {"qthresh": [7], "weight": 1},
    }
    update = fl_runtime.load(written(tmp_path, "/table_entries/1", entry)).updates[1][1]()
    assert dict(update.match) == {"egress_port": 3, "traffic_class": 0}
    assert update.action.args == {"qthresh": 7, "weight": 1}
    lpm = {"dst": [["10.0.1.1"], [32]]}
    update = fl_runtime.load(written(tmp_path, "/table_entries/1/match", lpm)).updates[1][1]()
    assert dict(update.match) == {"dst": ("10.0.1.1", 32)}


def test_the_paths_are_looked_for_beside_the_topology_file() -> None:
    topology = fl_topology.load(FOLDER / "topology.json")
    assert fl_runtime.load_all(topology)["s1"].pipeline.json == COMPILED / "qthresh.json"


@pytest.mark.parametrize(
    ("pointer", "value", "message"),
    [
        ("/target", "tofino", "/target: Input should be 'bmv2'"),
        ("/p4info", "absent.txtpb", "/p4info: there is no file 'absent.txtpb'; looked for /"),
        ("/p4info", "a" * 5000, "/p4info: there is no file 'aaa"),  # longer than a name may be
        ("/bmv2_json", "a\0b", "/bmv2_json: there is no file 'a"),
        ("/p4info", None, "/p4info: Field required"),
        ("/entries", [], "/entries: .*allowed keys: bmv2_json, clone_session_entries"),
        ("/table_entries/1/table", "ipv4_lmp", "/table_entries/1: no P4Table named 'ipv4_lmp'. Did you mean"),
        ("/table_entries/1/action_name", "set_flow", "/table_entries/1: .* no table action named 'set_flow'"),
        ("/table_entries/1/match", {"dst": ["10.0.0.1", 33]}, "/table_entries/1: .*invalid LPM value for bitwidth 32"),
        (
            "/table_entries/1/match",
            {"dst": [["10.0.0.1", 8], 32]},
            r"/1/match/dst: .* is no value; allowed: a whole number, a text, \[value, prefix",
        ),
        ("/table_entries/1/action_params/port", [1, 2], r"/table_entries/1: .*invalid value for bitwidth 9: \(1, 2\)"),
        ("/table_entries/1/match", {"port": 1}, "/table_entries/1: .* no match field named 'port'"),
        ("/table_entries/1/action_params/port", 512, "/table_entries/1: .*invalid value for bitwidth 9: 512"),
        ("/table_entries/1/action_params/port", 1.5, "/1/action_params/port: .*1.5 is no value; allowed"),
        ("/table_entries/1/action_params/port", None, "/table_entries/1: .*missing parameters {'port'}"),
        (
            "/table_entries/1/action_params/prot",
            1,
            "/table_entries/1: .*no action parameter named 'prot'. Did you mean 'port'",
        ),
        ("/table_entries/1/priority", 3, "/table_entries/1: priority: for table .* it must be left out"),
        ("/table_entries/3/priority", None, "/table_entries/3: priority: for table .* it must be 1 or more, because"),
        ("/table_entries/0/match", {"dst": ["10.0.0.1", 32]}, "/table_entries/0: match: a default action has no match"),
        (
            "/table_entries/1",
            {"table": "policy", "match": {"egress_port": 3}, "action_name": "drop_tail"},
            "/table_entries/1: match: the exact field traffic_class is missing",
        ),
        ("/multicast_group_entries/0/multicast_group_id", 0, "/multicast_group_entries/0/multicast_group_id: "),
        ("/clone_session_entries/0/replicas/0/egress_port", 512, "/clone_session_entries/0/replicas/0/egress_port: "),
        ("/target", "[" * 6000, "/target: Input should be"),
        ("/table_entries/1/match", {"dst": ["[" * 6000, 32]}, "/table_entries/1: .*…"),
        ("/table_entries/1/action_params/port", ["[" * 6000, 1], "/table_entries/1: .*….*"),
    ],
)
def test_a_bad_runtime_file_says_what_where_and_what_is_allowed(
    pointer: str, value: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(TopologyError, match=message) as caught:
        fl_runtime.load(written(tmp_path, pointer, value))
    assert "s1-runtime.json: /" in str(caught.value)
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize(
    ("switch", "message"),
    [
        ({"runtime_json": "absent.json"}, "/switches/s1/runtime_json: there is no file 'absent.json'; looked for /"),
        ({"cli_input": "s1.txt"}, "/switches/s1/cli_input: .* are not applied; write the entries as runtime_json"),
        ({"program": "build/basic.json"}, "/switches/s1/program: needs a runtime_json beside it"),
    ],
)
def test_a_key_that_cannot_be_honoured_is_refused(switch: dict[str, Any], message: str) -> None:
    document = json.loads((FOLDER / "topology.json").read_text())
    document["switches"]["s1"] = switch
    with pytest.raises(TopologyError, match=message):
        fl_runtime.load_all(fl_topology.check(document))


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """State goes to the test's own folder, and nothing is left behind."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    yield
    fl_state.clean(INSTANCE)


def launch(topology: Path, script: Path) -> subprocess.CompletedProcess[str]:
    """Run the launcher with a script for Mininet's CLI."""
    command = launcher(INSTANCE, "--topology", str(topology), "--script", str(script))
    return subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S)


@needs_root
def test_a_switch_runs_its_file_and_no_controller(state: None, tmp_path: Path) -> None:
    del state
    script = tmp_path / "commands"
    script.write_text("h1 ping -c 2 -i 0.2 -W 2 10.0.2.2\n")
    done = launch(FOLDER / "topology.json", script)
    assert done.returncode == 0, done.stderr
    assert f"s1: 6 entries of {FOLDER / 's1-runtime.json'}" in done.stdout
    assert "2 packets transmitted, 2 received, 0% packet loss" in done.stdout + done.stderr
    assert fl_state.instances() == []


@needs_root
def test_hosts_of_one_subnet_ask_by_arp_and_their_failing_commands_are_told(state: None, tmp_path: Path) -> None:
    """As in the tutorials' multicast exercise, whose hosts add a route that they have."""
    del state
    forward = {"table": "l2", "priority": 1, "action_name": "l2_forward"}
    document = json.loads(written(tmp_path).read_text())
    for host in (1, 2):
        document["table_entries"][host]["match"] = {"dst": [f"10.0.0.{host}", 32]}
        entry = {**forward, "match": {"ingress_port": [host, 511]}, "action_params": {"port": 3 - host}}
        document["table_entries"].append(entry)
    (tmp_path / "s1-runtime.json").write_text(json.dumps(document))
    topology = json.loads((FOLDER / "topology.json").read_text())
    for number, host in enumerate(topology["hosts"].values(), 1):
        host |= {"ip": f"10.0.0.{number}/24", "commands": ["ip route add 10.0.0.0/24 dev eth0"]}
    (tmp_path / "topology.json").write_text(json.dumps(topology))
    commands = "h1 ip neigh\nh1 ping -c 2 -i 0.2 -W 2 10.0.0.2\nh1 ip neigh show 10.0.0.2\n"
    (tmp_path / "commands").write_text(commands)
    done = launch(tmp_path / "topology.json", tmp_path / "commands")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "2 packets transmitted, 2 received" in said
    assert re.search(r"^10.0.0.2 dev eth0 lladdr 08:00:00:00:02:22 (REACHABLE|DELAY|STALE)", said, re.MULTILINE), said
    assert said.count("warning: ") == 2
    assert "'ip route add 10.0.0.0/24 dev eth0' failed: RTNETLINK answers: File exists" in said


@needs_root
def test_what_the_switch_refuses_is_named_and_nothing_stays(state: None, tmp_path: Path) -> None:
    del state
    entry = json.loads((FOLDER / "s1-runtime.json").read_text())["table_entries"][1]
    written(tmp_path, "/table_entries/2", entry)  # the same key twice: only the switch knows that it is taken
    topology = json.loads((FOLDER / "topology.json").read_text())
    (tmp_path / "topology.json").write_text(json.dumps(topology))
    (tmp_path / "commands").write_text("nodes\n")
    done = launch(tmp_path / "topology.json", tmp_path / "commands")
    assert done.returncode == 2, done.stdout
    assert f"{tmp_path / 's1-runtime.json'}: /table_entries/2: switch s1 at 127.0.0.1:" in done.stderr
    assert "ALREADY_EXISTS" in done.stderr
    assert fl_state.instances() == []
