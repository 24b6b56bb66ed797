# SPDX-License-Identifier: Apache-2.0
"""The run-state file and the loop's own: read, refused with the place of what is wrong, replaced in one step."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.gfr.config import gfr_store
from fairlane_controller.programs.qthresh.names import Scheme
from fairlane_controller.programs.qthresh.policies import LoopStore, Policy
from fairlane_controller.programs.qthresh.settings import PolicySettings
from fairlane_controller.state.events import EventLog
from fairlane_controller.state.run_state import find_folder, read_run_state
from state_tools import documents, put_text


def good_state() -> dict[str, Any]:
    return {
        "name": "0",
        "target": "embedded",
        "program": "qthresh",
        "pids": [{"pid": 1, "what": "ignored here"}],
        "switches": [
            {
                "name": "s1",
                "device_id": 1,
                "grpc": "127.0.0.1:50051",
                "json": "a.json",
                "p4info": "a.p4info.txtpb",
                "ports": [
                    {"port": 1, "interface": "s1-eth1", "rate_bps": 0, "queue_packets": 1000},
                    {
                        "port": 3,
                        "interface": "s1-eth3",
                        "rate_bps": 2_000_000,
                        "queue_packets": 50,
                        "bottleneck": True,
                    },
                ],
                "routes": [{"prefix": "10.0.1.1/32", "port": 1, "mac": "08:00:00:00:01:11"}],
            },
            {"name": "s2", "device_id": 2, "grpc": "127.0.0.1:50052", "ports": [{"port": 1, "rate_bps": 10_000_000}]},
        ],
    }


def write_state(folder: Path, data: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    put_text(folder, "topology", data if isinstance(data, str) else json.dumps(data))
    return folder


def test_a_topology_is_read(tmp_path: Path) -> None:
    state = read_run_state(write_state(tmp_path, good_state()))
    s1, s2 = state.switches
    assert (s1.grpc, s1.device_id, s1.routes[0].mac) == ("127.0.0.1:50051", 1, "08:00:00:00:01:11")
    assert [p.port for p in state.managed_ports(s1)] == [3]
    assert state.managed_ports(s2) == ()


def test_without_a_bottleneck_every_shaped_port_is_managed(tmp_path: Path) -> None:
    data = good_state()
    del data["switches"][0]["ports"][1]["bottleneck"]
    state = read_run_state(write_state(tmp_path, data))
    assert [[p.port for p in state.managed_ports(s)] for s in state.switches] == [[3], [1]]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("switches/0/grpc", None, r"switches\[0\].grpc: must be given"),
        ("switches/0/ports/0/port", 600, r"switches\[0\].ports\[0\].port: .*511"),
        ("switches/0/ports/0/rate_bps", "fast", r"switches\[0\].ports\[0\].rate_bps"),
        ("switches/0/routes/0/prefix", "10.0.0.300/24", r"switches\[0\].routes\[0\].prefix"),
        ("switches/0/routes/0/mac", "zz", r"switches\[0\].routes\[0\].mac.*08:00:00:00:01:11"),
        ("switches/1/name", "s1", r"the name 's1' occurs twice"),
        ("name", None, r"name: must be given"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, place: str, value: object, message: str) -> None:
    data = good_state()
    *steps, last = place.split("/")
    inner: Any = data
    for step in steps:
        inner = inner[int(step)] if step.isdigit() else inner[step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    with pytest.raises(FairlaneError, match=message) as caught:
        read_run_state(write_state(tmp_path, data))
    assert caught.value.code is ErrorCode.BAD_FILE


def test_malformed_json_is_named_by_line(tmp_path: Path) -> None:
    with pytest.raises(FairlaneError, match=r"state\.db: topology: line 2, column 1"):
        read_run_state(write_state(tmp_path, '{"name":\n}'))
    with pytest.raises(FairlaneError, match="must be a JSON object"):
        read_run_state(write_state(tmp_path, "[]"))


def test_the_running_topology_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    with pytest.raises(FairlaneError, match="no topology is running"):
        find_folder(None)
    write_state(tmp_path / "0", good_state())
    assert find_folder(None) == tmp_path / "0"
    assert find_folder("0") == tmp_path / "0"
    assert find_folder(str(tmp_path / "0")) == tmp_path / "0"
    write_state(tmp_path / "b", good_state())
    with pytest.raises(FairlaneError, match=r"several topologies are running \(0, b\)"):
        find_folder(None)
    with pytest.raises(FairlaneError, match="no running topology 'c'"):
        find_folder("c")


def test_settings_outlive_the_process_and_are_seen_by_others(tmp_path: Path) -> None:
    store, other = LoopStore(tmp_path), LoopStore(tmp_path)
    assert store.policy("s1", 3, 0).mode == "auto"
    store.write({"s1/3/0": PolicySettings(weight=2.0, threshold=7)})
    for each in (store, other, LoopStore(tmp_path)):
        again = each.policy("s1", 3, 0)
        assert (again.mode, again.weight, again.threshold) == ("manual", 2.0, 7)
        assert each.policy("s1", 3, 0) is again, "what nobody has changed is not parsed again"


async def test_of_two_policies_the_newest_is_remembered_while_the_file_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, newest = LoopStore(tmp_path), threading.Event()
    put = store.store.put

    def put_slowly(documents: dict[str, Any]) -> None:
        """The first policy waits until the newest was put, if that does not wait for it."""
        if documents["current/s1"][0]["qthresh_packets"] == 6:
            newest.wait(0.5)
        put(documents)
        newest.set()

    monkeypatch.setattr(store.store, "put", put_slowly)
    for packets in (6, 8):
        store.remember("s1", [Policy(3, 0, Scheme.QTHRESH, packets)])
    await asyncio.get_running_loop().shutdown_default_executor()
    assert store.read_policies("s1") == [Policy(3, 0, Scheme.QTHRESH, 8)]


def test_settings_that_are_none_are_refused_and_stay(tmp_path: Path) -> None:
    put_text(tmp_path, "policy/s1/3/0", '{"weight": -1}')
    with pytest.raises(FairlaneError, match="settings of policies"):
        LoopStore(tmp_path)
    assert documents(tmp_path) == {"policy/s1/3/0": {"weight": -1}}


def test_the_event_log_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path, max_bytes=2000)
    for i in range(100):
        log.write("threshold", switch="s1", number=i)
    log.close()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[-1])["number"] == 99
    assert path.stat().st_size < 2500
    assert (tmp_path / "events.jsonl.1").stat().st_size < 2500
    assert log.lost == 0


def test_of_two_who_write_one_log_only_one_turns_it_over(tmp_path: Path) -> None:
    """The primary and its backup: who comes second must not put the new file in the old one's place."""
    path = tmp_path / "events.jsonl"
    primary, backup = EventLog(path, max_bytes=2000), EventLog(path, max_bytes=2000)
    backup.write("standing_by")
    for number in range(12):
        primary.write("old", number=number, text="x" * 100)
    assert path.with_name("events.jsonl.1").exists()
    backup.write("late")  # into the old file, which it still has open: now it sees that it is full
    backup.write("next")
    primary.write("last")
    old = path.with_name("events.jsonl.1").read_text(encoding="utf-8")
    assert '"number": 0' in old
    assert '"late"' in old
    now = [json.loads(line)["event"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert now[-2:] == ["next", "last"]
    primary.close()
    backup.close()


def test_a_log_whose_folder_went_away_is_counted_as_lost(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    log = EventLog(folder / "events.jsonl", max_bytes=10)
    log.write("first")
    shutil.rmtree(folder)
    for _ in range(3):
        log.write("more")
    assert log.lost == 3
    folder.mkdir()
    log.write("again")
    assert '"again"' in (folder / "events.jsonl").read_text(encoding="utf-8")
    log.close()


def test_a_hostile_document_is_refused_in_few_words(tmp_path: Path) -> None:
    put_text(tmp_path, "gfr", json.dumps({"vcs": [], "[" * 9000: 1}))
    with pytest.raises(FairlaneError) as told:
        gfr_store(tmp_path)
    assert told.value.code is ErrorCode.BAD_FILE
    assert "unknown key" in told.value.message
    assert len(told.value.message) < 2000
