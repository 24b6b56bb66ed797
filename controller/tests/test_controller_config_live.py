# SPDX-License-Identifier: Apache-2.0
"""The configuration file on real switches: compared, applied where it differs and nowhere else, all or nothing, shown, reloaded."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from counting_proxy import counting
from fairlane_controller.cli.main import main
from fairlane_controller.config.model import LoopConfig
from fairlane_controller.config.read import Loaded
from fairlane_controller.config.reload import ConfigService
from fairlane_controller.loop.control import MAX_CLIENTS
from fairlane_controller.state.ask import SOCKET_FILE
from fairlane_controller.state.events import EventLog
from fairlane_controller.state.run_state import RunState, read_topology, write_topology
from fairlane_controller.switch.client import Endpoint, SwitchClient
from finsy import P4CounterData, P4DirectCounterEntry, P4TableAction, P4TableEntry, P4TableMatch
from finsy.proto import p4r
from live_switch import COMPILED, LiveSwitch, binary, wait_until
from state_tools import documents

TWO_CLASSES = """
program = "qthresh"
[[ports]]
switch = "s1"
port = 3
managed = true
limit_packets = 40
ecn = true
[[policies]]
switch = "s1"
port = 3
threshold = "9packets"
[[policies]]
switch = "s1"
port = 3
class = 2
k = 2.0
[[classes]]
class = 2
dscp = "EF"
"""
FLOW = {"src": 0x0A00_0101, "dst": 0x0A00_0302, "protocol": 6, "src_port": 40_000, "dst_port": 5_001, "vid": 0}


def write(switch: LiveSwitch, text: str, name: str = "fairlane.toml") -> str:
    """A file in the run-state folder."""
    path = switch.folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def held(switch: LiveSwitch) -> dict[str, list[str]]:
    """Everything in the tables."""

    async def read() -> dict[str, list[str]]:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as client:
            return {name: sorted(map(str, await client.read_table(name))) for name in client.table_names()}

    return asyncio.run(read())


def differences(switch: LiveSwitch, *arguments: str, code: int = 10) -> list[tuple[str, str]]:
    """(table, status) of each difference."""
    return [(row["what"], row["status"]) for row in switch.json("config", "diff", *arguments, code=code)["differences"]]


def count_flow(switch: LiveSwitch) -> None:
    """A flow entry whose direct counter stands at 77 packets."""

    async def work() -> None:
        entry = P4TableEntry("flow_v4", match=P4TableMatch(FLOW), action=P4TableAction("set_flow", flow_id=7))
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}"), write=True) as client:
            await client.write([+entry])
            bare = P4TableEntry("flow_v4", match=P4TableMatch(FLOW))
            counter = P4DirectCounterEntry("flow_v4_counter", table_entry=bare)
            schema = client.switch.p4info
            name = next(c.alias for c in schema.direct_counters if c.direct_table_id == schema.tables["flow_v4"].id)
            counter = P4DirectCounterEntry(name, table_entry=bare, data=P4CounterData(byte_count=7700, packet_count=77))
            await client.write([~counter])

    asyncio.run(work())


def counted_packets(switch: LiveSwitch) -> int:
    """What the flow's counter says."""

    async def work() -> int:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as client:
            (entry,) = await client.read_table("flow_v4", counters=True)
            assert entry.counter_data is not None
            return entry.counter_data.packet_count

    return asyncio.run(work())


def test_a_file_is_edited_checked_compared_and_applied(switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    assert "no configuration was applied" in switch.fairlane("config", "edit", code=2)
    file = Path(write(switch, TWO_CLASSES))
    file.chmod(0o640)
    switch.fairlane("config", "apply", str(file))

    def edit(editor: str, *words: str, code: int = 0) -> str:
        monkeypatch.setenv("EDITOR", editor)
        return " ".join(switch.fairlane("config", "edit", *words, code=code).split())

    before = held(switch)
    assert f"{file}: not changed" in edit("true")
    assert "'false' ended with exit code 1; nothing was applied" in edit("false", code=2)
    assert "'no-such-editor' cannot be started" in edit("no-such-editor", code=2)
    said = edit("sed -i s/40/fourty/", code=3)
    assert "line 7, column 1" in said
    kept = Path(said.rsplit(" ", 1)[-1])
    assert edit("sed -i s/40/fourty/", code=3) != said, "a kept text has a name of its own"
    assert "limit_packets = fourty" in kept.read_text(encoding="utf-8")
    assert "dry run: 1 update, nothing is written" in edit("sed -i s/9packets/8packets/", "--dry-run")
    assert (held(switch), file.read_text(encoding="utf-8")) == (before, TWO_CLASSES)

    said = edit("sed -i s/9packets/7packets/", str(file))
    assert "2 differences" in said, "the threshold, and the settings of its class"
    assert said.endswith(f"{file} applied")
    assert held(switch)["policy"] != before["policy"]
    assert file.read_text(encoding="utf-8") == TWO_CLASSES.replace("9packets", "7packets")
    assert file.stat().st_mode & 0o777 == 0o640
    assert "the switches have what it says" in switch.fairlane("config", "diff", str(file))
    switch.fairlane("undo")
    assert held(switch) == before
    nowhere = edit("true", "/proc/version", code=3)
    assert "/proc/version cannot be copied: No such file or directory" in nowhere
    assert "your text is in" not in nowhere


def test_what_is_in_force_is_a_file_that_changes_nothing(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", write(switch, TWO_CLASSES))
    file = write(switch, switch.fairlane("config", "show"), "shown.toml")
    assert "valid for the topology" in " ".join(switch.fairlane("config", "check", file).split())
    assert "the switches have what it says" in switch.fairlane("config", "diff", file)
    before, settings = held(switch), documents(switch.folder)["policy/s1/3/0"]
    assert switch.json("config", "apply", file) == {"written": {}, "settings": 0, "ports": 0}
    nothing = write(switch, "", "nothing.toml")
    for command in ("check", "diff", "apply"):
        said = " ".join(switch.fairlane("config", command, nothing).split())
        assert "the file is empty: it leaves the switches alone" in said, command
    assert (held(switch), documents(switch.folder)["policy/s1/3/0"]) == (before, settings)
    again = switch.fairlane("config", "show").splitlines()[1:]
    assert again == Path(file).read_text(encoding="utf-8").splitlines()[1:]


def test_a_saved_file_brings_everything_back(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", write(switch, TWO_CLASSES))
    saved = write(switch, switch.fairlane("config", "show"), "saved.toml")
    before, rows = held(switch), switch.json("threshold", "show")
    switch.fairlane("threshold", "set", "--scheme", "drop_tail")
    switch.fairlane("threshold", "set", "--scheme", "drop_tail", "--class", "2")
    switch.fairlane("config", "apply", write(switch, "classes = []\n", "none.toml"))
    assert held(switch) != before
    switch.fairlane("config", "apply", saved)
    assert held(switch) == before
    assert switch.json("threshold", "show") == rows


def test_diff_says_missing_different_extra(switch: LiveSwitch) -> None:
    file = write(switch, TWO_CLASSES)
    assert "was applied to" in switch.fairlane("config", "diff", code=2)
    assert differences(switch, file) == [
        ("settings", "different"), ("settings", "different"), ("port_limit", "different"),
        ("policy", "missing"), ("policy", "different"), ("flow_class", "missing"),
    ]  # fmt: skip
    text = switch.fairlane("config", "diff", file, code=10)
    for words in ("+ s1 flow_class dscp=46", "~ s1 policy egress_port=3 traffic_class=0: different", "file set_qthresh(qthresh=9 packets, weight=1)", "now  set_qthresh(qthresh=6 packets, weight=1)"):  # fmt: skip
        assert words in text
    before = held(switch)
    updates = switch.json("config", "apply", file, "--dry-run")["updates"]
    assert [(one["update"], one["table"]) for one in updates] == [
        ("modify", "port_limit"), ("insert", "policy"), ("modify", "policy"), ("insert", "flow_class"),
    ]  # fmt: skip
    assert held(switch) == before
    switch.fairlane("config", "apply", file)
    assert differences(switch, code=0) == []
    switch.fairlane("threshold", "set", "7")
    assert differences(switch) == [("settings", "different"), ("policy", "different")]
    assert differences(switch, write(switch, "classes = []\npolicies = []", "less.toml")) == [
        ("flow_class", "extra"), ("policy", "extra"), ("policy", "extra"),
    ]  # fmt: skip


def test_only_what_differs_is_written(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", write(switch, TWO_CLASSES))
    count_flow(switch)
    state = read_topology(switch.folder)
    with counting(f"127.0.0.1:{switch.grpc_port}") as proxy:
        state["switches"][0]["grpc"] = f"127.0.0.1:{proxy.port}"
        write_topology(switch.folder, state)
        switch.fairlane("config", "apply", write(switch, TWO_CLASSES))
        assert proxy.updates == []
        switch.fairlane("config", "diff")
        changed = TWO_CLASSES.replace("9packets", "8packets") + "[[classes]]\nclass = 3\npcp = 5\n"
        switch.fairlane("config", "apply", write(switch, changed))
        kinds = [(p4r.Update.Type.Name(u.type), u.entity.WhichOneof("entity")) for u in proxy.updates]
        assert kinds == [("MODIFY", "table_entry"), ("INSERT", "table_entry")]
        del proxy.updates[:]
        switch.fairlane("undo")
        assert len(proxy.updates) == 2
    assert counted_packets(switch) == 77


def test_a_refused_file_changes_nothing(switch: LiveSwitch) -> None:
    before = held(switch)
    twice = TWO_CLASSES + '[[classes]]\nclass = 3\ndscp = "EF"\n'
    message = " ".join(switch.fairlane("config", "apply", write(switch, twice), code=3).split())
    assert "line 21, column 1: classes[1]: matches the same packets as classes[0]" in message
    assert held(switch) == before
    assert set(documents(switch.folder)) == {"topology"}
    message = " ".join(switch.fairlane("config", "apply", write(switch, TWO_CLASSES + "x = 1"), code=3).split())
    assert "unknown key" in message
    assert "line 21, column 1" in message
    assert set(documents(switch.folder)) == {"topology"}


def test_undo_of_a_configuration(switch: LiveSwitch) -> None:
    before, rows = held(switch), switch.json("threshold", "show")
    switch.fairlane("config", "apply", write(switch, TWO_CLASSES))
    assert "change 2 taken back: config apply" in switch.fairlane("undo")
    assert held(switch) == before
    assert switch.json("threshold", "show") == rows
    assert "was applied to" in switch.fairlane("config", "diff", code=2)


# ---- two switches ----------------------------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[LiveSwitch, LiveSwitch]]:
    """Two embedded switches, s1 and s2, in one run state, without entries of policies."""
    if binary("embedded") is None:
        pytest.skip("the embedded switch is not on this machine")
    switches = [LiveSwitch("embedded", tmp_path), LiveSwitch("embedded", tmp_path)]
    states: list[dict[str, Any]] = []
    for number, one in enumerate(switches, 1):
        one.write_state()
        (state,) = read_topology(tmp_path)["switches"]
        states.append({**state, "name": f"s{number}"})
        one.start()
    whole = read_topology(tmp_path)
    write_topology(tmp_path, {**whole, "switches": states})
    try:
        switches[0].fairlane("config", "init", "--scheme", "qthresh")
        yield switches[0], switches[1]
    finally:
        for one in switches:
            one.kill()


def test_all_switches_or_none(pair: tuple[LiveSwitch, LiveSwitch]) -> None:
    one, two = pair
    before = held(one), held(two)
    policy = '[[policies]]\nswitch = "{}"\nport = 3\nthreshold = 5\n'
    file = write(one, policy.format("s1") + policy.format("s2"))
    two.kill()
    assert "switch s2" in one.fairlane("config", "apply", file, code=4)
    assert held(one) == before[0]
    two.start()
    one.fairlane("config", "init")
    fill(two)
    many = "".join(f'[[classes]]\nclass = 1\nswitch = "s2"\ndscp = {n}\n' for n in range(64))
    message = one.fairlane("config", "apply", write(one, policy.format("s1") + policy.format("s2") + many), code=5)
    assert "switch s2" in message
    assert held(one) == before[0]
    assert "flow_class" in held(two)
    assert documents(one.folder).get("policy/s1/3/0", {}).get("threshold") is None


def fill(switch: LiveSwitch) -> None:
    """Fill the table of classes to its last entry with rules that no file can say, so that nothing more fits in."""

    async def work() -> None:
        async with SwitchClient(Endpoint("s2", f"127.0.0.1:{switch.grpc_port}"), write=True) as client:
            size = client.switch.p4info.tables["flow_class"].size
            entries = [
                P4TableEntry(
                    "flow_class",
                    match=P4TableMatch(ingress_port=(1, 0x1FF)),
                    action=P4TableAction("set_class", traffic_class=1),
                    priority=100 + n,
                )
                for n in range(size)
            ]
            await client.write([+entry for entry in entries])

    asyncio.run(work())


def test_a_file_alone_describes_a_topology(bare_switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    switch, root = bare_switch, bare_switch.folder / "states"
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(root))
    address = f'[[topology.switches]]\nname = "s1"\ngrpc = "127.0.0.1:{switch.grpc_port}"\n'
    files = f'json = "{COMPILED / "qthresh.json"}"\np4info = "{COMPILED / "qthresh.p4info.txtpb"}"\n'

    def fairlane(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        said = capsys.readouterr()
        return int(ended.value.code or 0), " ".join((said.out + said.err).split())

    nameless = write(switch, address + files + TWO_CLASSES.replace('program = "qthresh"', ""))
    code, said = fairlane("config", "apply", nameless)
    assert (code, "give topology.name" in said) == (3, True)
    file = write(switch, f'[topology]\nname = "lab"\n{address}{files}{TWO_CLASSES}'.replace('program = "qthresh"', ""))
    code, said = fairlane("config", "apply", file)
    assert (code, "has no program yet: load it with `fairlane config init`" in said) == (5, True)
    assert fairlane("config", "init")[0] == 0
    assert fairlane("config", "apply", file)[0] == 0
    assert fairlane("config", "diff", file)[0] == 0
    assert fairlane("status")[0] == 0
    assert [path.name for path in root.iterdir()] == ["lab"]


# ---- the loop --------------------------------------------------------------------------------------------------------


def test_a_running_loop_reloads_its_file(switch: LiveSwitch) -> None:
    file = write(switch, TWO_CLASSES)
    with switch.loop("--config", file) as process:
        wait_until("the file to be in force", lambda: switch.events("config_applied"))
        assert differences(switch, file, code=0) == []
        slower = TWO_CLASSES.replace("9packets", "8packets") + '[loop]\nflow_idle = "40s"\n'
        write(switch, slower)
        wait_until("the changed file to be seen", lambda: len(switch.events("config_applied")) > 1)
        assert "the file has changed: 1 table entry," in switch.events("config_applied")[-1]["why"]
        assert switch.json("config", "show")["config"]["loop"]["flow_idle"] == "40s"
        policies = {p["traffic_class"]: p["qthresh_packets"] for p in switch.loop_status()["policies"]}
        assert policies[0] == 8

        write(switch, slower.replace("dscp", "dcsp"))
        wait_until("the refusal", lambda: switch.events("config_refused"))
        refusal = switch.events("config_refused")[0]
        assert "unknown key; did you mean 'dscp'?" in refusal["message"]
        assert "what was in force stays" in refusal["why"]
        assert switch.loop_status()["policies"][0]["qthresh_packets"] == 8

        seen = len(switch.events("config_applied"))
        process.send_signal(signal.SIGHUP)
        wait_until("SIGHUP", lambda: len(switch.events("config_refused")) >= 2)
        write(switch, slower.replace("8packets", "7packets"))
        wait_until("the good file", lambda: len(switch.events("config_applied")) > seen)
        assert switch.json("undo")["command"] == f"fairlane run --config {file}"
        wait_until("the undo", lambda: switch.loop_status()["policies"][0]["qthresh_packets"] == 8)
        assert process.poll() is None


def test_clients_that_are_idle_keep_no_configuration_out(switch: LiveSwitch) -> None:
    with switch.loop("--config", write(switch, TWO_CLASSES)), contextlib.ExitStack() as idle:
        wait_until("the file to be in force", lambda: switch.events("config_applied"))
        for _ in range(MAX_CLIENTS):
            idle.enter_context(socket.socket(socket.AF_UNIX)).connect(str(switch.folder / SOCKET_FILE))
        write(switch, TWO_CLASSES.replace("9packets", "8packets"))
        wait_until("the changed file", lambda: len(switch.events("config_applied")) > 1)
        assert not switch.events("config_refused")


def test_a_fault_of_the_reader_ends_no_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw is reported, and the service goes on: the next version of the file is read."""

    async def work() -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        log = EventLog(None)
        log.listeners.append(lambda event, fields: told.append({"event": event, **fields}))
        run = RunState(name="t", target="embedded", program="qthresh", switches=(), folder=tmp_path)
        service = ConfigService(run, log, lambda _: None, LoopConfig(), tmp_path / "f.toml", lambda: nobody)
        watching = asyncio.create_task(service.watch())
        while not told:
            assert not watching.done(), "it has ended"
            await asyncio.sleep(0.01)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        return told

    async def nobody(request: bytes) -> bytes:
        raise AssertionError(f"{request!r} is asked")

    def broken(path: Path, _state: str) -> Loaded:
        raise ZeroDivisionError(f"at {path.name}")

    monkeypatch.setattr("fairlane_controller.config.reload.read_file", broken)
    (event, *_) = asyncio.run(asyncio.wait_for(work(), 20))
    assert (event["event"], event["code"]) == ("config_refused", "internal")
    assert "an unforeseen fault: ZeroDivisionError: at f.toml; what was in force stays" in event["why"]


def test_a_restarted_switch_gets_its_configuration_again(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", write(switch, TWO_CLASSES))
    before = held(switch)
    with switch.loop():
        switch.kill()
        switch.start()
        wait_until("classes and limits to be back", lambda: switch.events("config_applied"))
        now = held(switch)
        assert {name: now[name] for name in ("flow_class", "port_limit", "policy")} == {
            name: before[name] for name in ("flow_class", "port_limit", "policy")
        }


def test_a_loop_does_not_start_with_a_bad_file(switch: LiveSwitch) -> None:
    message = switch.fairlane("run", "--config", write(switch, "[loop]\nflow_idel = '3s'"), code=3)
    assert "line 2, column 1: loop.flow_idel: unknown key; did you mean 'flow_idle'?" in " ".join(message.split())


def test_a_file_can_ask_for_a_dry_run(switch: LiveSwitch) -> None:
    before = held(switch)
    with switch.loop("--config", write(switch, TWO_CLASSES + "[loop]\ndry_run = true\n")):
        assert held(switch)["policy"] == before["policy"]
        assert held(switch)["flow_class"] == []
    assert "config" not in documents(switch.folder)
