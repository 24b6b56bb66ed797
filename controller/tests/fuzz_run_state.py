# SPDX-License-Identifier: Apache-2.0
"""A hostile state file, and hostile documents in it: whoever reads one gets what it holds, or one error with the file and the place."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

from fairlane_controller.config.apply import last_applied
from fairlane_controller.config.compare import read_applied
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.undo import next_undo, read_history
from fairlane_controller.live.events import EventFilter, EventTail, place_of, read_events, sentence_of
from fairlane_controller.programs.gfr.config import gfr_store
from fairlane_controller.programs.gfr.plan import make_plan
from fairlane_controller.programs.qthresh.policies import LoopStore
from fairlane_controller.state.run_state import read_run_state, write_topology
from fairlane_controller.state.store import STATE_FILE
from fairlane_controller.switch.client import endpoint_of
from fairlane_hosts.commands import running_hosts
from fuzz_tools import explore, readable, texts
from hypothesis import strategies as st
from state_tools import put_text

STATE: dict[str, Any] = {
    "name": "0",
    "topology": "mininet/topologies/dumbbell.json",
    "target": "embedded",
    "program": "qthresh",
    "pids": [{"pid": 1, "starttime": 1, "what": "launcher"}],
    "switches": [
        {
            "name": "s1",
            "device_id": 1,
            "grpc": "127.0.0.1:50051",
            "cpu_port": 510,
            "control": "s1.sock",
            "json": "qthresh.json",
            "p4info": "qthresh.p4info.txtpb",
            "ports": [
                {"port": 1, "interface": "s1-eth1", "rate_bps": 0, "queue_packets": 1000},
                {"port": 3, "interface": "s1-eth3", "rate_bps": 2_000_000, "queue_packets": 50, "bottleneck": True},
            ],
            "routes": [{"prefix": "10.0.1.1/32", "port": 1, "mac": "08:00:00:00:00:01"}],
        }
    ],
    "wire": {"control": "wire.sock", "links": ["h1-s1"]},
    "links": [{"name": "h1-s1", "a": {"node": "h1", "port": 0}, "b": {"node": "s1", "port": 1}, "emulated": True, "preset": None}],
    "hosts": [{"name": "h1", "pid": 1, "ip": "10.0.1.1"}],
    "interfaces": ["h1-eth0", "s1-eth1"],
}  # fmt: skip
POLICY = {"weight": 2.0, "k": 1.95, "threshold": 7}
CURRENT = [[3, 0, "qthresh", 6, 1.0]]
GFR = {
    "ports": [{"switch": "s1", "port": 3, "capacity": 2_000_000, "scheme": "proposed", "lbo_cells": 10, "hbo_cells": 30, "qmax_cells": 40}],
    "vcs": [{"name": "vc1", "mcr": 1_000_000, "match": [{"switch": "s1", "ingress_port": 1}]}],
    "numbers": {"": {"vc1": 1}, "s1": {"s1:3 vc1": 0}, "s1:3": {"vc1": 1}},
}  # fmt: skip
NOTE = {"source": "a.toml", "config": {"topology": "0", "ports": [{"switch": "s1", "port": 3, "queue_packets": 50}]}}
HISTORY = {"id": 1, "time": "2026-11-22T10:00:00+00:00", "command": "threshold set 5", "undo": [{"op": "table_write"}]}
EVENT = {"time": "2026-11-22T10:00:00+00:00", "monotonic_ns": 1, "event": "threshold", "switch": "s1", "port": 3, "why": "BW fell", "qthresh_packets": 5}  # fmt: skip
EVENTS = "controller-events.jsonl"
HOSTILE = {
    "topology": texts(STATE),
    "policy/s1/3/0": texts(POLICY),
    "current/s1": texts(CURRENT),
    "gfr": texts(GFR),
    "config": texts(NOTE),
    "journal": texts(HISTORY),
    STATE_FILE: texts(STATE),
    EVENTS: texts(EVENT),
}
"""Documents of the state file, and whole files."""
INPUTS = st.one_of(*(st.tuples(st.just(name), content) for name, content in HOSTILE.items()))


def read_all(folder: Path) -> None:
    """Everything that reads a file of the folder."""
    with _refusals():
        run = read_run_state(folder)
        for switch in run.switches:
            endpoint = endpoint_of(switch)
            str(endpoint)
            run.managed_ports(switch)
        with _refusals():
            state = gfr_store(folder).get()
            make_plan(state, state, run, "gfr")
    with _refusals():
        running_hosts(str(folder))
    with _refusals():
        store = LoopStore(folder)
        store.policy("s1", 3, 0)
        store.read_policies("s1")
    with _refusals():
        read_applied(folder)
        last_applied(folder)
    with _refusals():
        records = read_history(folder)
        next_undo(records)
    with _refusals():
        read_events(folder / EVENTS, EventFilter(), 10)
    for event in EventTail(folder / EVENTS).new():
        json.dumps([place_of(event), sentence_of(event)]).encode()


def refused(ex: FairlaneError, names: str = "") -> None:
    """A refusal is no fault of ours; people can read it, and it names the file."""
    assert ex.code is not ErrorCode.INTERNAL, ex.message
    readable(ex.message, names)


@contextlib.contextmanager
def _refusals() -> Generator[None]:
    """A refusal names what is wrong; a fault of ours is none."""
    try:
        yield
    except FairlaneError as ex:
        refused(ex)


def explore_run_state(examples: int, seed: int) -> None:
    """One file of a good folder is hostile."""

    def one(given: tuple[str, bytes]) -> None:
        with tempfile.TemporaryDirectory(prefix="fairlane-fuzz-") as place:
            folder = Path(place)
            write_topology(folder, STATE)
            name, content = given
            if name in (STATE_FILE, EVENTS):
                (folder / name).write_bytes(content)
            else:
                put_text(folder, name, content if len(content) % 7 == 0 else content.decode("utf-8", "replace"))
            read_all(folder)

    explore(one, INPUTS, examples, seed)
