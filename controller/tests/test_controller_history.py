# SPDX-License-Identifier: Apache-2.0
"""The history of changes: recorded, bounded, one at a time, taken back all or nothing, and again; with a real switch too."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortChange, PortInfo
from fairlane_controller.history import sites
from fairlane_controller.history import undo as history
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import PortStep, make, port_step
from fairlane_controller.history.undo import read_history
from fairlane_controller.state import store
from fairlane_controller.state.locks import try_change_lock
from fairlane_controller.state.run_state import read_run_state, read_topology, write_topology
from fairlane_controller.state.store import MAX_CHANGES
from fairlane_controller.switch.client import Endpoint, SwitchClient
from live_switch import LiveSwitch, wait_until
from state_tools import contents, documents, put_text


class FakePorts:
    """A switch's ports, `a` and `b`; a rate of REFUSED is refused, and while it is `away` it does not answer."""

    def __init__(self) -> None:
        self.values = {"a": 0, "b": 0}
        self.away: set[str] = set()

    async def __aenter__(self) -> FakePorts:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ports(self, **_: Any) -> list[PortInfo]:
        return [PortInfo(PORTS[name], rate_bps=value) for name, value in self.values.items()]

    async def set_port(self, port: int, change: PortChange) -> None:
        name = NAMES[port]
        if name in self.away:
            raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, "switch s1 does not answer")
        if change.rate_bps == REFUSED:
            raise FairlaneError(ErrorCode.REFUSED, "no such number")
        self.values[name] = change.rate_bps or 0


PORTS, NAMES, REFUSED = {"a": 1, "b": 2}, {1: "a", 2: "b"}, 666


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePorts:
    """Its values are numbers by name."""
    made = FakePorts()

    def open_fake(*_: object, **__: object) -> FakePorts:
        return made

    monkeypatch.setattr(sites, "open_ports", open_fake)
    return made


@pytest.fixture
def values(fake: FakePorts) -> dict[str, int]:
    return fake.values


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    write_topology(tmp_path, {"name": "test", "switches": [{"name": "s1", "grpc": "127.0.0.1:1"}]})
    return tmp_path


def number(name: str, value: int) -> dict[str, Any]:
    """A step."""
    return {"op": "port_put", "switch": "s1", "port": PORTS[name], "change": {"rate_bps": value}}


def record(folder: Path, command: str, undo: list[dict[str, Any]], note: str = "") -> None:
    """A change that is made elsewhere, recorded."""

    async def work() -> None:
        async with history.changing(folder, command) as made:
            made.undo, made.note = undo, note

    asyncio.run(work())


def change(folder: Path, values: dict[str, int], name: str, value: int) -> None:
    """Set a number by hand, recorded."""
    before, values[name] = values[name], value
    record(folder, f"set {name} {value}", [number(name, before)])


def step(folder: Path) -> int:
    """Undo; the change that it was about."""
    return asyncio.run(history.undo_last(folder))[0].id


def test_undo_goes_back_one_change_after_the_other(run_folder: Path, values: dict[str, int]) -> None:
    for name, value in (("a", 1), ("b", 2), ("a", 3)):
        change(run_folder, values, name, value)
    assert step(run_folder) == 3
    assert values == {"a": 1, "b": 2}
    assert step(run_folder) == 2
    assert values == {"a": 1, "b": 0}
    change(run_folder, values, "b", 9)
    assert step(run_folder) == 6
    assert step(run_folder) == 1
    assert values == {"a": 0, "b": 0}
    with pytest.raises(FairlaneError, match="nothing to undo"):
        step(run_folder)


def test_an_undo_is_all_or_nothing(run_folder: Path, values: dict[str, int]) -> None:
    values |= {"a": 5, "b": 6}
    record(run_folder, "both", [number("a", 1), number("b", 2), number("b", REFUSED)])
    lines = contents(run_folder)
    with pytest.raises(FairlaneError, match="no such number"):
        step(run_folder)
    assert values == {"a": 5, "b": 6}
    assert contents(run_folder) == lines


def test_what_cannot_be_undone_says_why(run_folder: Path) -> None:
    record(run_folder, "init", [], "the program was loaded")
    with pytest.raises(FairlaneError, match=r"change 1 \(`init`\) cannot be undone: the program was loaded"):
        step(run_folder)
    for op in ("p4_write", "port_set", "gfr_apply"):  # of an earlier version
        record(run_folder, "odd", [{"op": op, "switch": "s1"}])
        with pytest.raises(FairlaneError, match=f"unknown request of a history '{op}'"):
            step(run_folder)


def test_the_file_is_bounded_and_ids_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_JOURNAL_BYTES", 5000)
    for value in range(MAX_CHANGES + 5):
        record(tmp_path, f"set {value}", [number("a", value)])
    kept = read_history(tmp_path)
    assert kept[-1].id == MAX_CHANGES + 5
    assert 20 < len(kept) < MAX_CHANGES
    record(tmp_path, "large", [{"op": "number_put", "text": "x" * 9000}])
    assert [one.command for one in read_history(tmp_path)] == ["large"]


@pytest.mark.parametrize("text", ["{}", "[]", "7", '{"time": "", "command": "", "of": [1]}', '{"of": {}}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    record(tmp_path, "set", [number("a", 1)])
    put_text(tmp_path, "journal", text)
    with pytest.raises(FairlaneError, match=r"state\.db: journal: change 1: no change of a journal"):
        read_history(tmp_path)


def test_changes_are_made_one_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []

    async def one(name: str) -> None:
        async with history.changing(tmp_path, name) as made:
            order.append(f"{name} begins")
            await asyncio.sleep(0.05)
            order.append(f"{name} ends")
            made.undo = [number("a", 0)]

    async def both() -> None:
        await asyncio.gather(one("x"), one("y"))

    asyncio.run(both())
    assert [part.split()[1] for part in order] == ["begins", "ends", "begins", "ends"]
    assert [one.command for one in read_history(tmp_path)] == [order[0].split()[0], order[2].split()[0]]


def test_nothing_is_recorded_of_what_failed(tmp_path: Path) -> None:
    async def fail() -> None:
        async with history.changing(tmp_path, "set") as made:
            made.undo = [number("a", 0)]
            raise FairlaneError(ErrorCode.REFUSED, "no")

    with pytest.raises(FairlaneError, match="no"):
        asyncio.run(fail())
    assert read_history(tmp_path) == []


# ---- a change that its maker has not ended -----------------------------------------------------------------------------


def unfinished(folder: Path) -> int | None:
    """The number of the change that was begun and not ended."""
    lock = try_change_lock(folder)
    assert lock is not None
    with lock as current:
        return current.unfinished


def events(folder: Path) -> list[str]:
    return [json.loads(line)["why"] for line in (folder / "controller-events.jsonl").read_text().splitlines()]


async def begin(folder: Path, values: dict[str, int], problem: BaseException, value: int = 5) -> None:
    """Set `a`, announced; what happens then."""
    async with history.changing(folder, f"set a {value}") as made:
        before = number("a", values["a"])
        await made.announce([before])
        values["a"] = value
        raise problem


async def test_what_a_killed_command_has_begun_is_taken_back_by_the_next(
    run_folder: Path, values: dict[str, int]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        await begin(run_folder, values, KeyboardInterrupt())
    assert values["a"] == 5
    async with history.changing(run_folder, "set b 1") as made:
        assert values["a"] == 0
        made.undo = [number("b", 0)]
    assert [one.command for one in read_history(run_folder)] == ["set b 1"]
    assert events(run_folder) == ["`set a 5` was begun and not ended: taken back"]
    assert set(documents(run_folder)) == {"topology"}
    assert unfinished(run_folder) is None


@pytest.mark.parametrize("problem", [asyncio.CancelledError(), FairlaneError(ErrorCode.NO_LOOP, "it ended")])
async def test_what_a_cancelled_command_has_begun_is_taken_back_by_itself(
    run_folder: Path, values: dict[str, int], problem: BaseException
) -> None:
    """By ^C, or when the loop ends that it has asked."""
    with pytest.raises(type(problem)):
        await begin(run_folder, values, problem)
    assert values["a"] == 0
    assert read_history(run_folder) == []
    assert events(run_folder) == ["`set a 5` was begun and not ended: taken back"]
    assert set(documents(run_folder)) == {"topology"}
    assert unfinished(run_folder) is None


async def test_what_a_switch_that_is_away_may_have_taken_is_taken_back_when_it_answers(
    run_folder: Path, fake: FakePorts
) -> None:
    """Each part for itself, and nothing else is changed before."""

    async def both() -> None:
        async with history.changing(run_folder, "both") as made:
            await made.announce([number("b", 0), number("a", 0)])
            fake.values.update(a=1, b=1)
            fake.away = {"b"}
            raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, "switch s1 does not answer")

    with pytest.raises(FairlaneError, match="does not answer"):
        await both()
    assert fake.values == {"a": 0, "b": 1}
    with pytest.raises(FairlaneError, match=r"^`both` was begun and not ended: .* yet: switch s1 does not answer"):
        async with history.changing(run_folder, "next"):
            raise AssertionError("nothing else is changed before")
    fake.away = set()
    async with history.changing(run_folder, "next"):
        assert fake.values == {"a": 0, "b": 0}
    assert events(run_folder) == ["`both` was begun and not ended: taken back"]


async def test_what_cannot_be_taken_back_hinders_nobody(run_folder: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        async with history.changing(run_folder, "odd") as made:
            await made.announce([{"op": "nuber_put"}])
            raise KeyboardInterrupt
    async with history.changing(run_folder, "set b 1"):
        pass
    (why,) = events(run_folder)
    assert why.startswith("`odd` was begun and not ended: it could not be taken back: unknown request of a history")


async def test_what_failed_is_no_change_that_was_begun(run_folder: Path, values: dict[str, int]) -> None:
    with pytest.raises(FairlaneError, match="no"):
        await begin(run_folder, values, FairlaneError(ErrorCode.REFUSED, "no"))
    assert set(documents(run_folder)) == {"topology"}
    assert unfinished(run_folder) is None


async def test_what_could_not_be_taken_back_is_taken_back_by_undo(run_folder: Path, fake: FakePorts) -> None:
    """A step is refused, and the switch does not answer when the one before it is to be taken back."""
    async with Sites(read_run_state(run_folder)) as places:
        first = await port_step(places, "s1", PORTS["a"], PortChange(rate_bps=5))
        second = await port_step(places, "s1", PORTS["b"], PortChange(rate_bps=REFUSED))

        class Failing(PortStep):
            async def make(self, sites: Sites) -> None:
                fake.away = {"a"}
                await second.make(sites)

        failing = Failing("s1", second.port, second.before, second.after)
        with pytest.raises(FairlaneError, match="no such number; s1:1 keeps what it was given, until `fairlane undo`"):
            async with history.changing(run_folder, "both"):
                await make([first, failing], places)
    assert fake.values["a"] == 5
    fake.away = set()
    await history.undo_last(run_folder)
    assert fake.values["a"] == 0


# ---- a real switch ---------------------------------------------------------------------------------------------------


def held(switch: LiveSwitch) -> dict[str, list[str]]:
    """Everything in the tables."""

    async def read() -> dict[str, list[str]]:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as client:
            names = client.table_names()
            return {name: sorted(map(str, await client.read_table(name))) for name in names}

    return asyncio.run(read())


def settings(switch: LiveSwitch) -> Any:
    """What is remembered of the policy."""
    (row,) = switch.json("threshold", "show")
    return row


def test_undo_of_thresholds_and_schemes(switch: LiveSwitch) -> None:
    first, row = held(switch), settings(switch)
    switch.fairlane("threshold", "set", "9", "--weight", "2")
    second = held(switch)
    switch.fairlane("threshold", "set", "--scheme", "drop_tail")
    assert "change 3 taken back: threshold set --scheme drop_tail" in switch.fairlane("undo")
    assert held(switch) == second
    assert settings(switch)["mode"] == "manual"
    switch.fairlane("undo")
    assert held(switch) == first
    assert settings(switch) == row
    assert [(one["of"], one["undone"]) for one in switch.json("undo", "--list")] == [
        (None, False), (None, True), (None, True), (3, False), (2, False),
    ]  # fmt: skip


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
def test_a_dry_undo_speaks_to_people(switch: LiveSwitch) -> None:
    def said(*command: str) -> str:
        switch.fairlane(*command)
        return " ".join(switch.fairlane("undo", "--dry-run").split())

    text = said("p4", "table_add", "ipv4_lpm", "forward", "10.9.0.0/16", "=>", "08:00:00:00:01:11", "1")
    assert "dry run: 1 update, nothing is written" in text
    assert "delete │ ipv4_lpm │ dst=10.9.0.0/16" in text
    file = switch.folder / "f.toml"
    file.write_text('[[policies]]\nswitch = "s1"\nport = 3\nthreshold = 9\n', encoding="utf-8")
    text = said("config", "apply", str(file))
    assert text.endswith(f"what was applied last: {file} becomes nothing")
    assert "modify │ policy │ egress_port=3 traffic_class=0 │ set_qthresh(qthresh=6 packets, weight=1)" in text
    plan = switch.json("undo", "--dry-run")
    assert (plan["dry_run"], plan["change"]) == (True, 3)
    assert plan["command"].startswith(f"config apply {file}")
    assert [(one["switch"], one["update"], one["table"]) for one in plan["updates"]] == [("s1", "modify", "policy")]
    assert plan["notes"][-1]["note"] == f"what was applied last: {file} becomes nothing"
    switch.fairlane("undo")
    switch.fairlane("threshold", "set", "5", "--weight", "2")
    text = said("threshold", "set", "7", "--k", "2")
    assert "policy/s1/3/0: threshold=7, k=2.0 becomes threshold=5, k=1.95" in text


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
def test_a_dry_run_does_not_say_that_the_switches_hold_what_differs(switch: LiveSwitch) -> None:
    """Settings alone differ: mode manual with the threshold that is in force."""
    file = switch.folder / "f.toml"
    file.write_text('[[policies]]\nswitch = "s1"\nport = 3\nthreshold = 6\n', encoding="utf-8")
    said = " ".join(switch.fairlane("config", "apply", str(file), "--dry-run").split())
    assert "no table entry differs" in said
    assert "s1: settings port=3 class=0: threshold=- becomes threshold=6" in said
    assert "have it already" not in said
    switch.fairlane("config", "apply", str(file))
    assert "the switches have it already" in switch.fairlane("config", "apply", str(file), "--dry-run")


def test_undo_of_init(switch: LiveSwitch) -> None:
    message = switch.fairlane("undo", code=2)
    assert "cannot be undone: the program was loaded on s1" in " ".join(message.split())
    before = held(switch)
    state = read_topology(switch.folder)
    state["switches"][0]["routes"].append({"prefix": "10.0.9.0/24", "port": 1, "mac": "08:00:00:00:01:11"})
    write_topology(switch.folder, state)
    switch.fairlane("config", "init", "--scheme", "drop_tail")
    assert held(switch) != before
    switch.fairlane("undo")
    assert held(switch) == before


def test_dry_runs_write_nothing_and_say_what(bare_switch: LiveSwitch) -> None:
    switch = bare_switch
    plan = switch.json("config", "init", "--scheme", "qthresh", "--dry-run")
    assert plan["loads_program"] == ["s1"]
    assert plan["updates"] == []
    assert "would be loaded, and its entries written" in switch.fairlane("config", "init", "--dry-run")
    assert "no program yet" in switch.fairlane("status")
    switch.fairlane("config", "init", "--scheme", "qthresh")
    before, changes = held(switch), contents(switch.folder)
    text = switch.fairlane("threshold", "set", "5", "--weight", "1.5", "--dry-run")
    for words in ("1 update, nothing is written", "egress_port=3 traffic_class=0", "set_qthresh(qthresh=5 packets, weight=1.5)", "threshold - becomes 5"):  # fmt: skip
        assert words in text
    (update,) = switch.json("threshold", "set", "--scheme", "drop_tail", "--dry-run")["updates"]
    assert update == {"switch": "s1", "update": "modify", "table": "policy", "match": {"egress_port": 3, "traffic_class": 0}, "action": "drop_tail", "args": {}}  # fmt: skip
    assert "threshold: 99 is more than the port lets wait" in switch.fairlane(
        "threshold", "set", "99", "--dry-run", code=2
    )
    assert switch.json("threshold", "auto", "--dry-run")["updates"] == []
    assert switch.json("config", "init", "--dry-run") == {
        "dry_run": True,
        "updates": [],
        "loads_program": [],
        "notes": [],
    }
    assert held(switch) == before
    assert contents(switch.folder) == changes
    assert "would be" not in switch.fairlane("undo", "--list")


def test_undo_through_a_running_loop(switch: LiveSwitch) -> None:
    before = held(switch)["policy"]
    with switch.loop():
        (done,) = switch.json("threshold", "set", "9")
        assert done["via"] == "loop"
        switch.fairlane("threshold", "set", "--scheme", "drop_tail")
        said = switch.fairlane("undo", "--dry-run")
        assert "modify │ policy │ egress_port=3 traffic_class=0 │ set_qthresh(qthresh=9 packets, weight=1)" in said
        switch.fairlane("undo")
        assert [p["qthresh_packets"] for p in switch.loop_status()["policies"]] == [9]
        said = " ".join(switch.fairlane("undo", "--dry-run").split())
        assert "policy/s1/3/0: threshold=9" in said
        switch.fairlane("undo")
        (policy,) = switch.loop_status()["policies"]
        assert policy["mode"] == "auto"
        assert held(switch)["policy"] == before
        wait_until("the events", lambda: len(switch.events("changed")) == 4)
        assert switch.json("threshold", "set", "7", "--dry-run")["updates"]
        assert held(switch)["policy"] == before
