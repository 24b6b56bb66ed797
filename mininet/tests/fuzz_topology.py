# SPDX-License-Identifier: Apache-2.0
"""Hostile topology and runtime files: understood, or refused with the file and the place; nothing is started."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fairlane_topology import runtime_json as fl_runtime
from fairlane_topology import topology as fl_topology
from fairlane_topology.network import Network, NetworkOptions
from fairlane_topology.topology import TopologyError

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE.parent / "controller" / "tests"))

from fuzz_tools import explore_file, readable, texts  # noqa: E402

TOPOLOGIES = [json.loads(path.read_text()) for path in sorted((HERE / "topologies").glob("*.json"))]
SMALL = [document for document in TOPOLOGIES if len(document["links"]) < 12]
TUTORIAL: dict[str, Any] = {
    "hosts": {
        "h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": ["route add default gw 10.0.1.10"]},
        "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"},
    },
    "switches": {"s1": {"runtime_json": "s1-runtime.json"}, "s2": {}},
    "links": [["h1", "s1-p1"], ["s1-p2", "s2-p2", "5", 0.5], ["h2", "s2-p1", "1ms"]],
}
RUNTIME_FOLDER = HERE / "topologies" / "runtime_json"
COMPILED = HERE.parent / "p4src" / "compiled"


def explore_topology(examples: int, seed: int) -> None:
    """What is understood can be asked for everything that the launcher asks before it starts anything."""

    def check_topology_file(path: Path) -> None:
        try:
            topology = fl_topology.load(path)
        except TopologyError as error:
            readable(str(error), str(path))
            return
        for switch in topology.switches:
            topology.routes(switch)
        try:
            Network(topology, NetworkOptions(93, "embedded", "qthresh", 1))
            fl_runtime.load_all(topology)
        except TopologyError as error:
            readable(str(error), str(path))

    explore_file(check_topology_file, "t.json", texts(TUTORIAL, *SMALL), examples, seed)


def explore_runtime(examples: int, seed: int) -> None:
    """p4lang's runtime files, with every update made that would be written."""
    base: Any = json.loads((RUNTIME_FOLDER / "s1-runtime.json").read_text())
    base["p4info"] = str(COMPILED / "qthresh.p4info.txtpb")
    base["bmv2_json"] = str(COMPILED / "qthresh.json")

    def one(path: Path) -> None:
        try:
            runtime = fl_runtime.load(path)
        except TopologyError as error:
            readable(str(error), str(path))
            return
        for _, make in runtime.updates:
            make()

    explore_file(one, "r.json", texts(base), examples, seed)
