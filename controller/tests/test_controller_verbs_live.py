# SPDX-License-Identifier: Apache-2.0
"""The verbs of simple_switch_CLI on real switches of both targets: our program, one that is not ours, scripts, a running loop."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program import registry
from fairlane_controller.switch.changeset import ChangeSet, apply, plan_plain, put_entries, read_current
from fairlane_controller.switch.client import Endpoint, PipelineFiles, SwitchClient
from fairlane_controller.switch.entities import entity_of, identity
from fairlane_controller.switch.faults import Refusal
from fairlane_controller.switch.updates import plain_update
from fairlane_controller.verbs import work
from finsy import (
    GRPCStatusCode,
    P4ActionProfileGroup,
    P4ActionProfileMember,
    P4CloneSessionEntry,
    P4CounterData,
    P4CounterEntry,
    P4DirectCounterEntry,
    P4DirectMeterEntry,
    P4IndirectAction,
    P4Member,
    P4MeterConfig,
    P4MeterEntry,
    P4MulticastGroupEntry,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from live_switch import REPOSITORY, LiveSwitch

ENTITIES = REPOSITORY / "switch" / "crates" / "p4rt" / "tests" / "p4"
MAC = "08:00:00:00:09:99"


@pytest.fixture
def foreign_switch(bare_switch: LiveSwitch) -> LiveSwitch:
    """A switch with a program that is none of ours."""
    if bare_switch.target == "bmv2":
        pytest.skip("BMv2's server cannot import the P4Info of this test program")

    async def load() -> None:
        files = PipelineFiles(ENTITIES / "entities.json", ENTITIES / "entities.p4info.txtpb")
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{bare_switch.grpc_port}"), write=True, pipeline=files):
            pass

    asyncio.run(load())
    return bare_switch


def routes(switch: LiveSwitch) -> dict[str, str]:
    """Prefix → port, as table_dump says."""
    dump = switch.json("p4", "table_dump", "ipv4_lpm")
    return {entry["match"]["dst"]: entry["arguments"]["port"] for entry in dump["entries"]}


def test_an_entry_comes_changes_goes_and_comes_back(switch: LiveSwitch) -> None:
    before = {"10.0.1.0/24": "1", "10.0.3.0/24": "3"}
    assert routes(switch) == before
    said = switch.fairlane("p4", "table_add", "ipv4_lpm", "forward", "10.0.9.5/24", "=>", MAC, "1")
    assert said == f"table ipv4_lpm: added 10.0.9.0/24 => forward {MAC} 1\n"
    again = switch.fairlane("p4", "table_add", "route.ipv4_lpm", "forward", "10.0.9.0/24", "to", MAC, "1", code=5)
    assert f"has this entry already: 10.0.9.0/24 => forward {MAC} 1; table_modify changes it" in again
    switch.fairlane("p4", "table_modify", "ipv4_lpm", "forward", "10.0.9.0/24", "=>", MAC, "3")
    assert routes(switch) == {**before, "10.0.9.0/24": "3"}
    switch.fairlane("undo")
    assert routes(switch) == {**before, "10.0.9.0/24": "1"}
    dry = switch.fairlane("p4", "table_delete", "ipv4_lpm", "10.0.9.0/24", "--dry-run")
    assert "dry run: 1 update, nothing is written" in dry
    assert "dst=10.0.9.0/24" in dry
    assert len(routes(switch)) == 3
    switch.fairlane("p4", "table_delete", "ipv4_lpm", "10.0.9.0/24")
    assert routes(switch) == before
    assert "has no entry 10.0.9.0/24" in switch.fairlane("p4", "table_delete", "ipv4_lpm", "10.0.9.0/24", code=5)
    switch.fairlane("p4", "table_clear", "ipv4_lpm")
    assert switch.json("p4", "table_num_entries", "ipv4_lpm") == {"table": "ipv4_lpm", "entries": 0, "size": 4096}
    switch.fairlane("undo")
    assert routes(switch) == before


def test_a_default_action(switch: LiveSwitch) -> None:
    assert switch.json("p4", "table_dump", "ipv4_lpm")["default"]["action"] == "no_route"
    switch.fairlane("p4", "table_set_default", "ipv4_lpm", "drop")
    assert switch.json("p4", "table_dump", "ipv4_lpm")["default"]["action"] == "drop"
    switch.fairlane("p4", "table_reset_default", "ipv4_lpm")
    assert switch.json("p4", "table_dump", "ipv4_lpm")["default"]["action"] == "no_route"


def test_mistakes_change_nothing_and_name_what_is_allowed(switch: LiveSwitch) -> None:
    for words, code, message in (
        (("p4", "table_add", "ipv4_lmp", "forward", "10.0.9.0/24", "=>", MAC, "1"), 3, "did you mean 'ipv4_lpm'?"),
        (("p4", "table_add", "ipv4_lpm", "forwrd", "10.0.9.0/24", "=>", MAC, "1"), 3, "did you mean 'forward'?"),
        (("p4", "table_add", "ipv4_lpm", "forward", "10.0.9.0/24", "=>", MAC, "512"), 2, "port 512 is out of range: it must be between 0 and 511"),
        (("p4", "table_add", "ipv4_lpm", "forward", "10.0.9.0/24", "=>", MAC), 2, "takes 2 arguments, not 1: dst_mac (48 bits), port (9 bits)"),
        (("p4", "table_add", "ipv4_lpm", "forward", "10.0.9.0/24", "="), 2, "there is no => between the match and the arguments"),
        (("p4", "table_add", "ipv4_lpm"), 2, "usage: table_add TABLE ACTION"),
        (("p4", "counter_read", "drops", "8192"), 2, "index of drops 8192 is out of range: it must be between 0 and 8191"),
        (("p4", "counter_read", "admited"), 3, "did you mean 'admitted'?"),
    ):  # fmt: skip
        assert message in switch.fairlane(*words, code=code)
    assert len(routes(switch)) == 2


def test_counters_registers_and_clone_sessions(switch: LiveSwitch, tmp_path: Path) -> None:
    switch.fairlane("p4", "counter_write", "collisions", "3", "5", "0")
    assert switch.json("p4", "counter_read", "collisions")["cells"] == [{"index": 3, "packets": 5, "bytes": 0}]
    switch.fairlane("p4", "counter_reset", "collisions")
    assert switch.json("p4", "counter_read", "collisions", "3")["cells"][0]["packets"] == 0
    switch.fairlane("undo")
    switch.fairlane("undo")
    assert switch.json("p4", "counter_read", "collisions")["cells"] == []
    script = tmp_path / "counters.txt"
    script.write_text(
        "counter_write collisions 3 5 0\ncounter_write collisions 4 6 0\ncounter_reset collisions\n", encoding="utf-8"
    )
    assert switch.json("p4", "script", str(script))[2]["written"] == 2, "what the lines before it write"
    assert switch.json("p4", "counter_read", "collisions")["cells"] == []
    switch.fairlane("p4", "mirroring_add", "5", "3")
    assert switch.json("p4", "mirroring_get", "5") == {"session": 5, "ports": "3"}
    switch.fairlane("undo")
    assert switch.json("p4", "mirroring_get", "5")["ports"] is None
    if switch.target == "bmv2":
        for words in (
            ("p4", "register_read", "port_occupancy", "3"),
            ("p4", "register_write", "port_occupancy", "3", "7"),
        ):
            assert "UNIMPLEMENTED" in switch.fairlane(*words, code=5)
        return
    switch.fairlane("p4", "register_write", "port_occupancy", "3", "7")
    assert switch.json("p4", "register_read", "port_occupancy", "3")["cells"] == [{"index": 3, "value": 7}]
    switch.fairlane("p4", "register_reset", "port_occupancy")
    assert switch.json("p4", "register_read", "port_occupancy")["cells"] == []


def test_a_script_is_checked_before_it_writes_and_one_change(switch: LiveSwitch, tmp_path: Path) -> None:
    good = tmp_path / "good.txt"
    good.write_text(
        "# routes\n"
        f"table_add ipv4_lpm forward 10.9.1.0/24 => {MAC} 1\n"
        f"table_add ipv4_lpm forward 10.9.2.0/24 => {MAC} 1\n"
        "table_num_entries ipv4_lpm  # when all is written\n"
        f"table_modify ipv4_lpm forward 10.9.1.0/24 => {MAC} 3\n"
        "table_delete ipv4_lpm 10.9.2.0/24\n",
        encoding="utf-8",
    )
    done = switch.json("p4", "script", str(good))
    assert done[2] == {"line": 4, "verb": "table_num_entries", "table": "ipv4_lpm", "entries": 3, "size": 4096}
    assert routes(switch)["10.9.1.0/24"] == "3"
    switch.fairlane("undo")
    assert sorted(routes(switch)) == ["10.0.1.0/24", "10.0.3.0/24"]
    bad = tmp_path / "bad.txt"
    bad.write_text(
        f"table_add ipv4_lpm forward 10.9.1.0/24 => {MAC} 1\n\ntable_ad x\ntable_delete ipv4_lpm 10.7.0.0/16\n",
        encoding="utf-8",
    )
    text = switch.fairlane("p4", "script", str(bad), code=3)
    assert "line 3: unknown verb 'table_ad'; did you mean 'table_add'?" in text
    assert "line 4: table ipv4_lpm has no entry 10.7.0.0/16" in text
    assert len(routes(switch)) == 2


def test_what_the_switch_refuses_takes_the_script_back(switch: LiveSwitch, tmp_path: Path) -> None:
    lines = [f"table_add flow_class set_class {port} * * => 1 10" for port in range(1, 301)]
    file = tmp_path / "full.txt"
    file.write_text("\n".join(lines), encoding="utf-8")
    text = switch.fairlane("p4", "script", str(file), code=5)
    assert "refused 44 updates: line 257: " in text, "the table has 256 entries"
    assert switch.json("p4", "table_num_entries", "flow_class")["entries"] == 0


def test_what_a_connection_that_ends_left_of_a_script_is_taken_back_by_the_next_change(
    switch: LiveSwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch is written, then nobody answers: neither the second nor what would take the first back."""
    file = tmp_path / "long.txt"
    file.write_text(
        "\n".join(f"table_add ipv4_lpm forward 10.8.{n}.0/24 => {MAC} 1" for n in range(30)), encoding="utf-8"
    )
    real, calls = SwitchClient.write_each_with_reasons, list[int]()

    async def gone(self: SwitchClient, updates: Sequence[Any]) -> dict[int, Refusal]:
        if not updates:
            return {}
        calls.append(len(updates))
        if len(calls) > 1:
            raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, "nobody answers")
        return await real(self, updates)

    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, "write_each_with_reasons", gone)
        patch.setattr("fairlane_controller.switch.changeset.BATCH_UPDATES", 20)
        text = switch.fairlane("p4", "script", str(file), code=4)
    assert "had before could not be written back (nobody answers)" in text
    assert calls[:3] == [20, 10, 20]
    assert len(routes(switch)) == 22
    switch.fairlane("p4", "table_add", "ipv4_lpm", "forward", "10.9.0.0/24", "=>", MAC, "1")
    assert len(routes(switch)) == 3


def test_a_line_that_cannot_read_says_that_the_others_have_written(
    switch: LiveSwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise FairlaneError(ErrorCode.TIMED_OUT, "no answer")

    file = tmp_path / "mixed.txt"
    file.write_text(f"table_dump ipv4_lpm\ntable_add ipv4_lpm forward 10.8.0.0/24 => {MAC} 1\n", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(work, "table_dump", fails)
        text = switch.fairlane("p4", "script", str(file), code=6)
    assert "line 1: no answer; the lines that write are done" in text
    assert len(routes(switch)) == 3
    switch.fairlane("undo")
    assert len(routes(switch)) == 2


Refuse = dict[int, dict[int, Refusal]]
"""By number of the call, from 1: index of an update and what the switch says of it."""
TOO_FULL = Refusal(GRPCStatusCode.UNKNOWN, "too full")
NOT_NOW = Refusal(GRPCStatusCode.UNAVAILABLE, "not now")


def refusing(refuse: Refuse) -> Callable[[SwitchClient, Sequence[Any]], Coroutine[Any, Any, dict[int, Refusal]]]:
    """`SwitchClient.write_each_with_reasons` of a switch that refuses these."""
    real, calls = SwitchClient.write_each_with_reasons, list[int]()

    async def write(self: SwitchClient, updates: Sequence[Any]) -> dict[int, Refusal]:
        calls.append(len(updates))
        failed = refuse.get(len(calls), {})
        taken = [index for index in range(len(updates)) if index not in failed]
        also = await real(self, [updates[index] for index in taken])
        return {**failed, **{taken[index]: text for index, text in also.items()}}

    return write


def three_routes(folder: Path) -> str:
    """A script that adds them."""
    file = folder / "three.txt"
    file.write_text(
        "".join(f"table_add ipv4_lpm forward 10.8.{n}.0/24 => {MAC} 1\n" for n in range(3)), encoding="utf-8"
    )
    return str(file)


def test_what_could_not_be_taken_back_of_a_script_goes_with_the_next_change(
    switch: LiveSwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, "write_each_with_reasons", refusing({1: {2: TOO_FULL}, 2: {1: NOT_NOW}}))
        text = switch.fairlane("p4", "script", three_routes(tmp_path), code=5)
    assert "refused 1 update: line 3: UNKNOWN: too full; what switch s1" in text
    assert "had before could not be written back (UNAVAILABLE: not now)" in text
    assert len(routes(switch)) == 3
    assert "cannot be undone: the program was loaded" in " ".join(switch.fairlane("undo", code=2).split())
    assert len(routes(switch)) == 2


def test_an_undo_that_is_refused_in_part_says_what_it_left_and_goes_on_from_there(
    switch: LiveSwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three deletions one is refused, and of the two that are put back one is refused too."""
    switch.fairlane("p4", "script", three_routes(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, "write_each_with_reasons", refusing({1: {1: NOT_NOW}, 2: {0: TOO_FULL}}))
        text = switch.fairlane("undo", code=5)
    assert "refused 1 update: update 1: UNAVAILABLE: not now; what switch s1" in text
    assert "had before could not be written back (UNKNOWN: too full)" in text
    assert len(routes(switch)) == 4
    assert [one["undone"] for one in switch.json("undo", "--list")][-1:] == [False]
    switch.fairlane("undo")
    assert len(routes(switch)) == 2


def test_an_undo_does_not_pass_over_an_entry_that_somebody_else_has_made_another_one(
    switch: LiveSwitch, tmp_path: Path
) -> None:
    switch.fairlane("p4", "script", three_routes(tmp_path))
    switch.fairlane("p4", "table_delete", "ipv4_lpm", "10.8.1.0/24")
    endpoint = Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")

    async def put(port: int) -> None:
        async with SwitchClient(endpoint, write=True) as client:
            action = P4TableAction("forward", dst_mac=0x080000000999, port=port)
            await client.write([+P4TableEntry("ipv4_lpm", match=P4TableMatch(dst="10.8.1.0/24"), action=action)])

    asyncio.run(put(3))
    assert "refused 1 update: update 0: ALREADY_EXISTS" in switch.fairlane("undo", code=5)
    assert routes(switch)["10.8.1.0/24"] == "3"


def test_an_undo_of_a_default_gives_the_one_that_was_there(switch: LiveSwitch, tmp_path: Path) -> None:
    """Also where the script has read the table's entries, among which the default is not."""
    switch.fairlane("p4", "table_set_default", "ipv4_lpm", "drop")
    script = tmp_path / "default.txt"
    script.write_text("table_clear ipv4_lpm\ntable_reset_default ipv4_lpm\n", encoding="utf-8")
    switch.fairlane("p4", "script", str(script))
    assert switch.json("p4", "table_dump", "ipv4_lpm")["default"]["action"] == "no_route"
    switch.fairlane("undo")
    assert switch.json("p4", "table_dump", "ipv4_lpm")["default"]["action"] == "drop"


def test_a_script_beside_a_loop_finds_the_program_once(
    switch: LiveSwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[str] = []
    real = registry.find_program

    def count(tables: Iterable[str], name: str = "") -> Any:
        named.append(name)
        return real(tables, name)

    monkeypatch.setattr("fairlane_controller.verbs.script.find_program", count)
    with switch.loop():
        assert "3 lines done" in switch.fairlane("p4", "script", three_routes(tmp_path))
    assert named == ["qthresh"], "by the name that the topology has for it, which may be a folder"


def test_a_running_loop_writes_and_keeps_its_own_tables(switch: LiveSwitch) -> None:
    with switch.loop():
        switch.fairlane("p4", "table_add", "ipv4_lpm", "forward", "10.0.9.0/24", "=>", MAC, "1")
        assert routes(switch)["10.0.9.0/24"] == "1"
        refused = switch.fairlane("p4", "table_add", "policy", "drop_tail", "3", "1", "=>", code=7)
        assert "the running control loop keeps the table policy of s1: use `fairlane threshold`" in refused
        assert switch.loop_status()["connected"] is True
        switch.fairlane("undo")
        assert "10.0.9.0/24" not in routes(switch)
        switch.fairlane("p4", "counter_write", "collisions", "3", "5", "0")
        switch.fairlane("undo")
        assert switch.json("p4", "counter_read", "collisions")["cells"] == []
    one, *others = switch.events("changed")
    assert len(others) == 3
    assert "insert ipv4_lpm dst=10.0.9.0/24 forward(" in one["why"]


async def write_plain(client: SwitchClient, updates: list[dict[str, Any]]) -> ChangeSet:
    """Write plain updates, all or none; what they changed."""
    change = ChangeSet({client.endpoint.name: await plan_plain(client, updates)})
    await apply(change, {client.endpoint.name: client})
    return change


def test_a_change_of_every_kind_of_entity_and_back(foreign_switch: LiveSwitch) -> None:
    """Together, by one ChangeSet; taken back and made again by the requests of the journal, as JSON."""
    there = P4TableEntry(
        "exact_table", match=P4TableMatch({"hdr.ethernet.dst_addr": 5}), action=P4TableAction("measure", port=1)
    )
    meter = P4MeterConfig(cir=10, cburst=20, pir=30, pburst=40)
    forward = P4TableAction("forward", port=1)
    wanted: list[Any] = [
        P4TableEntry("exact_table", match=P4TableMatch({"hdr.ethernet.dst_addr": 6}), action=there.action),
        P4TableEntry("keyless_table", action=P4TableAction("use_arrays", index=3), is_default_action=True),
        P4ActionProfileMember("plain_profile", member_id=3, action=forward),
        P4ActionProfileMember("spread", member_id=4, action=forward),
        P4ActionProfileGroup("spread", group_id=7, max_size=2, members=[P4Member(4, weight=1)]),
        P4TableEntry("profile_table", match=P4TableMatch({"hdr.label.kind": 1}), action=P4IndirectAction(member_id=3)),
        P4CounterEntry("port_counter", index=2, data=P4CounterData(packet_count=5, byte_count=500)),
        P4DirectCounterEntry(table_entry=identity(there), data=P4CounterData(packet_count=6, byte_count=600)),
        P4MeterEntry("port_meter", index=1, config=meter),
        P4DirectMeterEntry(table_entry=identity(there), config=meter),
        P4CloneSessionEntry(session_id=9, replicas=(1, 2)),
        P4MulticastGroupEntry(multicast_group_id=8, replicas=(1, 2)),
    ]  # fmt: skip

    async def work() -> None:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{foreign_switch.grpc_port}"), write=True) as client:
            entities = [client.canonical(entity_of(one, client.switch.p4info)) for one in wanted]

            async def held() -> dict[str, str]:
                return {key: str(one) for key, one in (await read_current(client, entities)).items()}

            await put_entries(client, [there])
            before = await held()
            plain = [plain_update("modify", one) for one in entities]
            (undo,) = json.loads(json.dumps((await write_plain(client, plain)).undo()))
            made = await held()
            assert len(made) == len(entities) + 1
            (redo,) = (await write_plain(client, undo["updates"])).undo()
            assert await held() == before
            await write_plain(client, redo["updates"])
            assert await held() == made

    asyncio.run(work())


def test_any_program_with_every_kind_of_match(foreign_switch: LiveSwitch) -> None:
    tables = {t["table"]: t for t in foreign_switch.json("p4", "show_tables")["tables"]}
    ternary = tables["ternary_table"]
    assert [key["match"] for key in ternary["keys"]] == ["ternary", "range", "optional", "exact"]
    action = ternary["actions"][0]
    arguments = ["1" for _ in action["arguments"]]
    add = ("p4", "table_add", "ternary_table", action["action"], "0x10&&&0xf0", "1->5", "*", "3", "=>", *arguments)
    assert "needs a priority as the last word" in foreign_switch.fairlane(*add[:9], code=2)
    foreign_switch.fairlane(*add, "20")
    foreign_switch.fairlane(*add, "10")
    entries = foreign_switch.json("p4", "table_dump", "ternary_table")["entries"]
    assert [entry["priority"] for entry in entries] == [10, 20]
    assert list(entries[0]["match"].values()) == ["0x10&&&0xf0", "1->5", "*", "3"]
    foreign_switch.fairlane("p4", "table_delete", "ternary_table", "0x10&&&0xf0", "1->5", "*", "3", "20")
    assert [e["priority"] for e in foreign_switch.json("p4", "table_dump", "ternary_table")["entries"]] == [10]
    assert foreign_switch.json("p4", "table_clear", "const_table")["deleted"] == 0, "its entries are the program's own"
    const = foreign_switch.json("p4", "table_dump", "const_table")["entries"]
    assert const
    key = [*const[0]["match"].values(), str(const[0]["priority"])]
    assert "its entries are const" in foreign_switch.fairlane("p4", "table_delete", "const_table", *key, code=5)


def test_meters_are_set_shown_and_undone(foreign_switch: LiveSwitch) -> None:
    def rates() -> Any:
        return foreign_switch.json("p4", "meter_get_rates", "port_meter")

    none: dict[str, Any] = {"meter": "port_meter", "unit": "packets", "cells": []}
    assert rates() == none
    dry = foreign_switch.fairlane("p4", "meter_set_rates", "port_meter", "3", "0.001:10", "0.002:20", "--dry-run")
    assert "dry run: 1 update, nothing is written" in dry
    assert rates() == none
    foreign_switch.fairlane("p4", "meter_set_rates", "port_meter", "3", "0.001:10", "0.002:20")
    assert rates() == none | {"cells": [{"index": 3, "cir": 1000, "cburst": 10, "pir": 2000, "pburst": 20}]}
    foreign_switch.fairlane("p4", "meter_set_rates", "port_meter", "3", "1:10", "1:10")
    foreign_switch.fairlane("undo")
    assert rates()["cells"][0]["pir"] == 2000
    foreign_switch.fairlane("undo")
    assert rates() == none
    refused = foreign_switch.fairlane("p4", "meter_set_rates", "port_meter", "3", "2:1", "1:1", code=2)
    assert "port_meter: the peak rate is below the committed rate" in refused


def test_direct_counters_are_read_and_reset(foreign_switch: LiveSwitch) -> None:
    foreign_switch.fairlane("p4", "table_add", "exact_table", "measure", "00:00:00:00:00:05", "=>", "1")
    foreign_switch.fairlane("p4", "table_add", "exact_table", "measure", "00:00:00:00:00:06", "=>", "1")
    key = P4TableEntry("exact_table", match=P4TableMatch({"hdr.ethernet.dst_addr": 5}))

    async def count() -> None:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{foreign_switch.grpc_port}"), write=True) as client:
            data = P4CounterData(packet_count=6, byte_count=600)
            await client.write([~P4DirectCounterEntry(table_entry=key, data=data)])

    asyncio.run(count())
    cells = [{"entry": "00:00:00:00:00:05", "packets": 6, "bytes": 600}]
    assert foreign_switch.json("p4", "counter_read", "exact_counter") == {"counter": "exact_counter", "cells": cells}
    assert "written 1" in foreign_switch.fairlane("p4", "counter_reset", "exact_counter")
    assert foreign_switch.json("p4", "counter_read", "exact_counter")["cells"] == []
    foreign_switch.fairlane("undo")
    assert foreign_switch.json("p4", "counter_read", "exact_counter")["cells"] == cells


def test_the_lowest_priority_wins_as_in_simple_switch_cli(switch: LiveSwitch) -> None:
    add = ("p4", "table_add", "l2", "l2_forward", "1", "08:00:00:00:00:00&&&ff:00:00:00:00:00", "*", "=>", "3")
    assert "needs a priority as the last word" in switch.fairlane(*add[:8], code=2)
    switch.fairlane(*add, "20")
    switch.fairlane(*add[:-1], "1", "10")
    entries = switch.json("p4", "table_dump", "l2")["entries"]
    assert [(entry["priority"], entry["arguments"]["port"]) for entry in entries] == [(10, "1"), (20, "3")]
    if switch.target == "bmv2" and shutil.which("simple_switch_CLI"):
        told = subprocess.run(
            ["simple_switch_CLI", "--thrift-port", str(switch.thrift_port)],
            input="table_dump l2\n", capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert {"Priority: 10", "Priority: 20"} <= set(told.stdout.splitlines()), told.stdout + told.stderr


def test_one_entry_is_changed_without_the_whole_table(switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    async def read_table(*_: object, **__: object) -> list[object]:
        raise AssertionError("it may have a million entries")

    monkeypatch.setattr("fairlane_controller.switch.client.SwitchClient.read_table", read_table)
    entry = ("ipv4_lpm", "forward", "10.0.99.0/24", "=>", "08:00:00:00:09:99")
    switch.fairlane("p4", "table_add", *entry, "1")
    assert "has this entry already" in switch.fairlane("p4", "table_add", *entry, "1", code=5)
    assert "was 10.0.99.0/24 => forward 08:00:00:00:09:99 1" in switch.fairlane("p4", "table_modify", *entry, "3")
    assert "deleted 1" in switch.fairlane("p4", "table_delete", "ipv4_lpm", "10.0.99.0/24")
