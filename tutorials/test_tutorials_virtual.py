# SPDX-License-Identifier: Apache-2.0
"""Exercises in virtual time: programs, topologies and entries in the tutorials' format; with a tree ($P4LANG_TUTORIALS) and p4c, the two exercises."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from place import COMPILER, ROOT, Tree
from virtual_time import EXERCISES, PROBE_WAY, Network, S, main, measurements, probe

OURS = ROOT / "mininet" / "topologies" / "runtime_json" / "topology.json"


def test_a_switch_runs_the_program_and_the_entries_of_its_file() -> None:
    """10 datagrams a second: the one of the last instant is under way no longer, since nothing takes time."""
    app = {"kind": "cbr_udp", "rate_bps": 8_000, "payload_bytes": 100}
    network = Network(OURS, [{"name": "one", "from": "h1", "to": "h2", "app": app}])
    network.simulation.run_until(2 * S)
    assert network.flow("one")["received_bytes"] == 21 * 100
    assert network.port("s1", 2)["tx_packets"] == 21


def test_a_probe_brings_what_each_switch_has_put_on_top() -> None:
    assert probe([4, 255]).hex() == "00" * 12 + "0812" + "00" + "04ff"
    s1 = bytes([0x81, 4]) + (1042).to_bytes(4, "big") + (1_000_000).to_bytes(6, "big") + (3_000_000).to_bytes(6, "big")
    s4 = bytes([0x04, 1]) + (24).to_bytes(4, "big") + bytes(6) + (5).to_bytes(6, "big")
    frame = bytes(12) + b"\x08\x12" + bytes([2]) + s4 + s1 + bytes(PROBE_WAY)
    assert list(measurements(frame)) == [(4, 1, 24, 5), (1, 4, 1042, 2_000_000)]


def test_what_is_wrong_with_a_folder_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == main([]) == 2
    assert capsys.readouterr().err.count("name one folder of p4lang/tutorials: exercises/ecn or exercises/link_m") == 2
    folder = tmp_path / "ecn"
    assert main([str(folder)]) == 2
    assert "topology.json: cannot read the topology" in capsys.readouterr().err
    folder.mkdir()
    document = json.loads(OURS.read_text())
    (folder / "topology.json").write_text(json.dumps(document))
    runtime = {"target": "bmv2", "p4info": "build/ecn.p4.p4info.txtpb", "bmv2_json": "build/ecn.json"}
    (folder / "s1-runtime.json").write_text(json.dumps(runtime))
    assert main([str(folder)]) == 2
    assert re.search(r"no file 'build/ecn\.json'.*; `make build` in the exercise compiles it", capsys.readouterr().err)
    document["switches"]["s1"] = {}
    (folder / "topology.json").write_text(json.dumps(document))
    assert main([str(folder)]) == 2
    assert "/switches/s1: runtime_json is missing" in capsys.readouterr().err


@pytest.mark.skipif(
    "P4LANG_TUTORIALS" not in os.environ or shutil.which(COMPILER) is None,
    reason="no p4lang/tutorials tree in $P4LANG_TUTORIALS, or no p4c-bm2-ss on the PATH",
)
def test_both_exercises_have_exact_rates(tmp_path: Path) -> None:
    tree = Tree.copy(Path(os.environ["P4LANG_TUTORIALS"]), None, tmp_path, "")
    lines = {name: list(exercise(tree.place(name).folder)) for name, exercise in EXERCISES.items()}
    assert lines["link_monitor"][1:] == [f"{second:4} s   Mbit/s: s4:1 8.336, s1:4 8.336" for second in range(2, 31)]
    rows = [[float(word) for word in line.replace(" s ", " ").split()] for line in lines["ecn"][1:]]
    assert sum(row[1] for row in rows) / len(rows) == pytest.approx(500, rel=0.005)
    halved, retransmitted = rows[-1][4:]
    assert (halved > 5, retransmitted) == (True, 0)
