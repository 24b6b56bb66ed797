# SPDX-License-Identifier: Apache-2.0
"""`fairlane gfr vc` and `fairlane gfr` on real switches that run gfr.p4, without frames: files in, refusals, schemes live, the loop."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gfr_configs as configs
import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.gfr import names as gfr_program
from fairlane_controller.state.run_state import read_topology, write_topology
from fairlane_controller.state.store import Store
from fairlane_controller.switch.changeset import read_entries
from fairlane_controller.switch.client import Endpoint, SwitchClient
from finsy import P4TableEntry, P4TableMatch
from live_switch import COMPILED, TARGETS, LiveSwitch, binary, wait_until
from state_tools import documents

FIFO = """
[[ports]]
switch = "s1"
port = 6
capacity = "51.84Mbit"
queues = "fifo"
[[vcs]]
name = "vc1"
mcr = "2Mbit"
match = [{ switch = "s1", ingress_port = 1 }]
edge = ["s1:1"]
[[vcs]]
name = "vc2"
mcr = "4Mbit"
match = [{ switch = "s1", ingress_port = 2, src = "10.0.2.0/24", vlan = 7, dscp = "AF21" }]
"""


def write_state(switch: LiveSwitch) -> None:
    """The run state of one switch with six ports that runs gfr.p4."""
    state = configs.run_state(switch.target, scheduler="" if switch.target == "bmv2" else "wrr").model_dump(mode="json")
    (one, _) = state["switches"]
    files = {"json": str(COMPILED / "gfr.json"), "p4info": str(COMPILED / "gfr.p4info.txtpb")}
    state["switches"] = [{**one, **files, "grpc": f"127.0.0.1:{switch.grpc_port}"}]
    del state["folder"]
    write_topology(switch.folder, state)


@pytest.fixture(params=TARGETS)
def switch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveSwitch]:
    """A running switch with the program and its routes, and `gfr.toml` beside its run state."""
    target = str(request.param)
    if binary(target) is None:
        pytest.skip(f"the {target} switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    if not (COMPILED / "gfr.json").is_file():
        pytest.skip("p4src/compiled/gfr.json is not there")
    made = LiveSwitch(target, tmp_path)
    write_state(made)
    (tmp_path / "gfr.toml").write_text(FIFO, encoding="utf-8")
    made.start()
    try:
        made.fairlane("config", "init")
        yield made
    finally:
        made.kill()


def file_of(switch: LiveSwitch) -> str:
    """The configuration file."""
    return str(switch.folder / "gfr.toml")


def tables(switch: LiveSwitch) -> dict[str, str]:
    """All that the switch holds of GFR's tables."""

    async def read() -> dict[str, str]:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as client:
            return {key: str(entry) for key, entry in (await read_entries(client, gfr_program.TABLES)).items()}

    return asyncio.run(read())


def shown(switch: LiveSwitch) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Port 6 and its VCs in `fairlane status`."""
    document = switch.json("status")
    (port,) = (port for port in document["ports"] if port["managed"])
    return port, document["vcs"]


def test_a_file_is_applied_and_shown(switch: LiveSwitch) -> None:
    result = switch.json("config", "apply", file_of(switch))
    assert result["written"]["s1"] == 1 + 2 + 3 + 3 + 9
    port, (one, two) = shown(switch)
    assert (port["port"], port["scheme"], port["queues"], port["active_vcs"]) == (6, "proposed", "fifo", 2)
    assert port["lbo_cells"] == 1000
    assert (one["vc"], one["mcr_bps"], one["w_bps"], one["slot"]) == ("vc1", 2e6, 24_920_000, 0)
    assert (two["vc"], two["mcr_bps"], two["slot"], two["accepted_packets"], two["verdicts"]) == ("vc2", 4e6, 1, 0, {})
    registers = (port["waiting_cells"], one["waiting_cells"], one["rate_bps"])
    assert registers == ((None, None, None) if switch.target == "bmv2" else (0, 0, 0.0))
    assert switch.json("config", "apply", file_of(switch))["written"] == {}
    assert "QMAX (cells)" in switch.fairlane("status")
    said = " ".join(switch.fairlane("threshold", "show", code=5).split())
    assert "the program on the switch is gfr, not qthresh" in said
    said = " ".join(switch.fairlane("ports", "measure", code=7).split())
    assert "ports are measured by the running loop" in said
    assert [vc["name"] for vc in switch.json("gfr", "vc", "list")] == ["vc1", "vc2"]
    listed = " ".join(switch.fairlane("gfr", "vc", "list").split())
    assert all(word in listed for word in ("2Mbit", "s1:1", "switch=s1,ingress_port=2,src=10.0.2.0/24"))


def test_two_vcs_with_one_slot_are_shown(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", file_of(switch))

    async def share_slot() -> None:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}"), write=True) as client:
            (first, *_) = await client.read_table(gfr_program.TABLE_VC_SHARE)
            match = P4TableMatch(egress_port=6, vc=99)
            await client.write([+P4TableEntry(first.table_id, match=match, action=first.action)])

    asyncio.run(share_slot())
    assert {vc["vc"] for vc in shown(switch)[1]} == {"vc1", "vc2", "id 99"}


def test_vcs_are_added_changed_and_removed(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", file_of(switch))
    switch.fairlane(
        "gfr", "vc", "add", "gold", "--mcr", "6Mbit", "-m", "s1,ingress_port=3", "--edge", "s1:3", "--pcr", "20Mbit"
    )
    port, vcs = shown(switch)
    assert [vc["vc"] for vc in vcs] == ["vc1", "vc2", "gold"]
    assert port["active_vcs"] == 3
    assert (
        switch.json("gfr", "vc", "set", "gold", "--mcr", "7Mbit")["written"]["s1"] == 4
    )  # three shares and gold's meter
    switch.fairlane("gfr", "vc", "delete", "vc1", "gold")
    assert [(vc["vc"], vc["slot"], vc["w_bps"]) for vc in shown(switch)[1]] == [("vc2", 1, 51_840_000)]


def test_refusals_leave_the_switch_as_it_was(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", file_of(switch))
    held, file = tables(switch), documents(switch.folder)
    for code, arguments, words in (
        (2, ("gfr", "vc", "add", "big", "--mcr", "46Mbit", "-m", "s1,ingress_port=3"), "capacity: the MCRs of 3 VCs sum up to 52 Mbit/s on s1:6, 160 kbit/s more than its capacity of 51.84 Mbit/s"),
        (2, ("gfr", "vc", "add", "x", "--mcr", "1Mbit", "-m", "s1,ingress_port=1"), "match[0]: x matches the same packets as vc1 at switch s1"),
        (2, ("gfr", "vc", "add", "x", "--mcr", "1Mbit", "-m", "s1,src"), "--match 's1,src': must be SWITCH,KEY=VALUE"),
        (2, ("gfr", "vc", "add", "x", "--mcr", "1Mbit", "-m", "s1,vlan=3", "--edge", "s1"), "vcs[2].edge[0]: 's1': must be SWITCH:PORT"),
        (2, ("gfr", "vc", "set", "vc1", "--weight", "0"), "VC vc1: vcs[0].weight: 0.0 is out of range: must be greater than 0"),
        (2, ("gfr", "vc", "set", "vc1", "--mfs", "9000"), "vcs[0].mfs_bytes: 9000 must be at most 1500, the MTU of s1:6"),
        (2, ("gfr", "vc", "set", "vc1"), "set needs at least one option"),
        (3, ("gfr", "vc", "delete", "gold"), "unknown VC 'gold'; valid: vc1, vc2"),
        (3, ("config", "set", "s1:6", "qmax_cells=4001"), "qmax_cells: 4001 must be at most 4000, the buffer of s1:6 (port_cells)"),
        (3, ("config", "set", "s1:6", "scheme=wrr"), "scheme: 'wrr': must be 'drop_tail', 'double_epd'"),
        (3, ("config", "apply", "no.toml"), "cannot read no.toml"),
    ):  # fmt: skip
        said = " ".join(switch.fairlane(*arguments, code=code).split())
        assert words in said, said
    if switch.target == "bmv2":
        assert "'wrr' needs the scheduler wrr or drr" in " ".join(
            switch.fairlane("config", "set", "s1:6", "queues=wrr", code=3).split()
        )
    assert tables(switch) == held
    assert documents(switch.folder) == file


def test_a_change_that_cannot_be_kept_is_not_made(switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    switch.fairlane("config", "apply", file_of(switch))
    before = (tables(switch), switch.json("gfr", "vc", "list"))

    def full(self: Store, *_: Any) -> None:
        raise FairlaneError(ErrorCode.BAD_FILE, f"cannot write {self.path}: {os.strerror(errno.ENOSPC)}")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "record", full)
        assert "No space left on device" in switch.fairlane("gfr", "vc", "set", "vc1", "--mcr", "3Mbit", code=3)
    assert (tables(switch), switch.json("gfr", "vc", "list")) == before
    switch.fairlane("gfr", "vc", "set", "vc1", "--mcr", "3Mbit")
    assert (tables(switch), switch.json("gfr", "vc", "list")) != before
    switch.fairlane("undo")
    assert (tables(switch), switch.json("gfr", "vc", "list")) == before


def test_every_scheme_live(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", file_of(switch))
    for scheme in ("proposed", "drop_tail", "double_epd", "dfba", "wfba", "pervc_threshold"):
        written = switch.json("config", "set", "s1:6", f"scheme={scheme}")["written"]
        assert written == ({} if scheme == "proposed" else {"s1": 1})
    (entry,) = switch.json("p4", "table_dump", "port_scheme")["entries"]
    assert entry["action"] == "pervc_threshold"
    switch.fairlane("config", "set", "s1:6", "scheme=proposed", "lbo_cells=500", "rate_form=alpha", "rate_alpha=0.5")
    assert switch.json("config", "show")["config"]["ports"][0]["rate_alpha"] == 0.5
    switch.fairlane("config", "set", "s1:6", "rate_period=100ms")
    assert switch.json("config", "show")["config"]["ports"][0]["rate_period"] == "100ms"
    (entry,) = switch.json("p4", "table_dump", "port_scheme")["entries"]
    assert (entry["arguments"]["lbo"], entry["arguments"]["period_us"]) == ("500", "100000")


def test_init_puts_back_what_is_remembered(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", file_of(switch))
    held = tables(switch)
    switch.kill()
    switch.start()
    (done,) = switch.json("config", "init")
    assert (done["managed_ports"], done["written"] > 18) == ([6], True)
    assert tables(switch) == held
    assert "--scheme: the program gfr has no schemes" in switch.fairlane(
        "config", "init", "--scheme", "qthresh", code=2
    )


def test_the_loop_keeps_n_and_takes_changes(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", file_of(switch))
    with switch.loop():
        (port,) = switch.loop_status()["ports"]
        assert port["active"] == ["vc1", "vc2"]
        wait_until("both VCs to be found silent", lambda: switch.loop_status()["ports"][0]["active"] == [])
        port, vcs = shown(switch)
        assert (port["active_vcs"], [vc["active"] for vc in vcs]) == (1, [False, False])
        result = switch.json("gfr", "vc", "add", "gold", "--mcr", "6Mbit", "-m", "s1,ingress_port=3")
        assert result["via"] == "loop"
        assert result["written"]["s1"] >= 3
        said = switch.fairlane("gfr", "vc", "set", "gold", "--mcr", "60Mbit", code=2)
        assert (
            "VC gold: ports[0].capacity: the MCRs of 3 VCs sum up to 66 Mbit/s on s1:6, 14.16 Mbit/s more than its capacity"
            in " ".join(said.split())
        )
        refused = switch.fairlane("config", "init", code=7)
        assert "a control loop runs" in refused
        wait_until("gold to be found silent", lambda: any("gold" in e["stopped"] for e in switch.events("gfr_active")))
        assert [vc["vc"] for vc in shown(switch)[1]] == ["vc1", "vc2", "gold"]
    assert switch.events("changed")[0]["command"].startswith("gfr vc add gold")
    assert [vc["name"] for vc in switch.json("gfr", "vc", "list")] == ["vc1", "vc2", "gold"]


def test_a_dry_run_says_what_the_loop_would_do_and_writes_nothing(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", file_of(switch))
    before = tables(switch)
    with switch.loop("--dry-run"):
        wait_until("both VCs to be found silent", lambda: any(e["n"] == 0 for e in switch.events("gfr_active")))
    assert all(event["dry_run"] for event in switch.events("gfr_active"))
    assert tables(switch) == before


def test_the_loop_gives_a_restarted_switch_all_of_it_again(switch: LiveSwitch) -> None:
    switch.fairlane("config", "apply", file_of(switch))
    with switch.loop():
        switch.kill()
        switch.start()
        wait_until("the switch to be restored", lambda: switch.events("restored"))
        wait_until("the loop to go on", lambda: len(switch.events("gfr_took_over")) == 2)
        assert len(shown(switch)[1]) == 2


def test_a_topology_of_another_program(switch: LiveSwitch) -> None:
    state = read_topology(switch.folder)
    write_topology(switch.folder, {**state, "program": "qthresh"})
    said = " ".join(switch.fairlane("gfr", "vc", "list", code=5).split())
    assert "runs the program 'qthresh': VCs need gfr" in said
