# SPDX-License-Identifier: Apache-2.0
"""The configuration file on switches that run gfr.p4 and ena.p4: compared, applied, shown, undone; a VC that stays keeps its state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from counting_proxy import counting
from fairlane_controller.programs.gfr import names as gfr_program
from fairlane_controller.state.run_state import read_topology, write_topology
from fairlane_controller.switch.changeset import read_entries
from fairlane_controller.switch.client import Endpoint, SwitchClient
from finsy import P4CounterData, P4DirectCounterEntry, P4TableEntry, P4TableMatch
from live_switch import COMPILED, TARGETS, LiveSwitch, binary, wait_until
from state_tools import documents
from test_controller_gfr_live import FIFO, write_state


def started(request: pytest.FixtureRequest, folder: Path, program: str) -> LiveSwitch:
    """A running switch of the target whose run state says the program."""
    target = str(request.param)
    if binary(target) is None:
        pytest.skip(f"the {target} switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    if not (COMPILED / f"{program}.json").is_file():
        pytest.skip(f"p4src/compiled/{program}.json is not there")
    made = LiveSwitch(target, folder)
    write_state(made)
    if program != "gfr":
        text = json.dumps(read_topology(folder)).replace("/gfr.", f"/{program}.")
        write_topology(folder, {**json.loads(text), "program": program})
    made.start()
    return made


@pytest.fixture(params=TARGETS)
def gfr_switch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveSwitch]:
    """A switch with gfr.p4 and its routes, and the configuration `gfr.toml`."""
    made = started(request, tmp_path, "gfr")
    (tmp_path / "gfr.toml").write_text(FIFO, encoding="utf-8")
    try:
        made.fairlane("config", "init")
        yield made
    finally:
        made.kill()


@pytest.fixture(params=TARGETS)
def ena_switch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveSwitch]:
    """A switch with ena.p4 and its routes."""
    made = started(request, tmp_path, "ena")
    try:
        made.fairlane("config", "init")
        yield made
    finally:
        made.kill()


def tables(switch: LiveSwitch) -> dict[str, str]:
    """All that the switch holds of GFR's tables."""

    async def read() -> dict[str, str]:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as client:
            return {key: str(entry) for key, entry in (await read_entries(client, gfr_program.TABLES)).items()}

    return asyncio.run(read())


def arrived(switch: LiveSwitch, vc: int, packets: int | None = None) -> int:
    """Frames that a VC's counter says have arrived at port 6; `packets` writes it first."""

    async def work() -> int:
        match = P4TableMatch(egress_port=6, vc=vc)
        where = Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")
        async with SwitchClient(where, write=packets is not None) as client:
            schema = client.switch.p4info
            name = next(c.alias for c in schema.direct_counters if c.direct_table_id == schema.tables["vc_share"].id)
            if packets is not None:
                entry = P4TableEntry("vc_share", match=match)
                data = P4CounterData(byte_count=packets, packet_count=packets)
                await client.write([~P4DirectCounterEntry(name, table_entry=entry, data=data)])
            entries = await client.read_table("vc_share", counters=True)
            (found,) = [entry for entry in entries if entry["vc"] == vc]
            assert found.counter_data is not None
            return found.counter_data.packet_count

    return asyncio.run(work())


def test_a_gfr_file_is_a_configuration(gfr_switch: LiveSwitch) -> None:
    switch, file = gfr_switch, str(gfr_switch.folder / "gfr.toml")
    rows = switch.json("config", "diff", file, code=10)["differences"]
    assert {row["status"] for row in rows} == {"missing"}
    assert switch.json("config", "apply", file)["written"] == {"s1": len(rows)}
    assert switch.json("config", "diff", code=0)["same"] is True
    shown = switch.folder / "shown.toml"
    shown.write_text(switch.fairlane("config", "show"), encoding="utf-8")
    assert 'mcr = "2Mbit"' in shown.read_text(encoding="utf-8")
    before, remembered = tables(switch), documents(switch.folder)["gfr"]
    assert switch.json("config", "apply", str(shown))["written"] == {}
    assert (tables(switch), documents(switch.folder)["gfr"]) == (before, remembered)
    switch.fairlane("undo")
    assert switch.json("gfr", "vc", "list") == []
    switch.fairlane("config", "apply", str(shown))
    assert tables(switch) == before


def test_a_time_of_a_gfr_port_in_a_configuration(gfr_switch: LiveSwitch) -> None:
    switch, file = gfr_switch, gfr_switch.folder / "gfr.toml"
    file.write_text(
        FIFO.replace("[[ports]]", '[[ports]]\nrate_form = "alpha"\nrate_period = "100ms"', 1), encoding="utf-8"
    )
    switch.fairlane("config", "apply", str(file))
    assert switch.json("config", "show")["config"]["ports"][0]["rate_period"] == "100ms"
    assert 'rate_period = "100ms"' in switch.fairlane("config", "show")


def test_a_vc_that_stays_is_not_touched(gfr_switch: LiveSwitch) -> None:
    switch, path = gfr_switch, gfr_switch.folder / "gfr.toml"
    switch.fairlane("config", "apply", str(path))
    assert arrived(switch, 1, packets=77) == 77
    state = read_topology(switch.folder)
    with counting(f"127.0.0.1:{switch.grpc_port}") as proxy:
        state["switches"][0]["grpc"] = f"127.0.0.1:{proxy.port}"
        write_topology(switch.folder, state)
        switch.fairlane("config", "apply", str(path))
        assert proxy.updates == []
        path.write_text(FIFO.replace('dscp = "AF21"', 'dscp = "AF31"'), encoding="utf-8")
        updates = switch.json("config", "apply", str(path), "--dry-run")["updates"]
        assert [(one["update"], one["table"]) for one in updates] == [
            ("insert", "vc_classify"),
            ("delete", "vc_classify"),
        ]
        switch.fairlane("config", "apply", str(path))
        assert len(proxy.updates) == 2
    assert arrived(switch, 1) == 77


def test_drift_is_seen_and_mended(gfr_switch: LiveSwitch) -> None:
    switch, file = gfr_switch, str(gfr_switch.folder / "gfr.toml")
    switch.fairlane("config", "apply", file)

    async def spoil() -> None:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}"), write=True) as client:
            (entry,) = [one for one in await client.read_table("vc_share") if one["vc"] == 2]
            await client.write([-P4TableEntry("vc_share", match=entry.match)])

    asyncio.run(spoil())
    (row,) = switch.json("config", "diff", code=10)["differences"]
    assert (row["what"], row["place"], row["status"]) == ("vc_share", "egress_port=6 vc=2", "missing")
    assert switch.json("config", "apply", file)["written"] == {"s1": 1}
    assert switch.json("config", "diff")["same"] is True


def test_dry_runs_and_undo_of_vcs(gfr_switch: LiveSwitch) -> None:
    switch = gfr_switch
    switch.fairlane("config", "apply", str(switch.folder / "gfr.toml"))
    before = tables(switch)
    plan = switch.json("gfr", "vc", "add", "gold", "--mcr", "6Mbit", "-m", "s1,ingress_port=3", "--dry-run")
    assert [one["table"] for one in plan["updates"] if one["update"] == "insert"] == [
        "vc_share",
        "vc_classify",
        "vc_classify_v6",
    ]
    text = switch.fairlane("config", "set", "s1:6", "scheme=dfba", "--dry-run")
    assert "dfba(" in text
    assert "lbo=1000 cells" in text
    refusal = switch.fairlane("gfr", "vc", "add", "x", "--mcr", "60Mbit", "-m", "s1,ingress_port=3", "-n", code=2)
    assert "more than its capacity" in " ".join(refusal.split())
    assert tables(switch) == before
    switch.fairlane("gfr", "vc", "add", "gold", "--mcr", "6Mbit", "-m", "s1,ingress_port=3")
    switch.fairlane("undo")
    assert tables(switch) == before
    assert [vc["name"] for vc in switch.json("gfr", "vc", "list")] == ["vc1", "vc2"]


def test_a_setting_of_one_port_leaves_the_others(gfr_switch: LiveSwitch) -> None:
    switch, path = gfr_switch, gfr_switch.folder / "gfr.toml"
    path.write_text(f'{FIFO}[[ports]]\nswitch = "s1"\nport = 3\ncapacity = "10Mbit"\n', encoding="utf-8")
    switch.fairlane("config", "apply", str(path))
    before = documents(switch.folder)["gfr"]["ports"]
    switch.fairlane("config", "set", "s1:3", "scheme=dfba")
    after = documents(switch.folder)["gfr"]["ports"]
    assert [row["port"] for row in after] == [3, 6]
    assert [row for row in before if row["port"] == 6] == [row for row in after if row["port"] == 6]
    assert next(row for row in after if row["port"] == 3)["scheme"] == "dfba"


def test_a_running_gfr_loop_reloads_its_file(gfr_switch: LiveSwitch) -> None:
    switch, path = gfr_switch, gfr_switch.folder / "gfr.toml"
    path.write_text("[loop]\ndry_run = false\n" + FIFO, encoding="utf-8")
    with switch.loop("--config", str(path)):
        wait_until("the file to be in force", lambda: switch.events("config_applied"))
        assert [vc["name"] for vc in switch.json("gfr", "vc", "list")] == ["vc1", "vc2"]
        path.write_text(FIFO.replace('mcr = "4Mbit"', 'mcr = "5Mbit"'), encoding="utf-8")
        wait_until("the changed file to be in force", lambda: len(switch.events("config_applied")) > 1)
        assert switch.json("gfr", "vc", "list")[1]["mcr"] == 5e6
        path.write_text(FIFO.replace('mcr = "4Mbit"', 'mcr = "60Mbit"'), encoding="utf-8")
        wait_until("the refusal", lambda: switch.events("config_refused"))
        message = switch.events("config_refused")[0]["message"]
        assert (
            "ports[0].capacity: the MCRs of 2 VCs sum up to 62 Mbit/s on s1:6, 10.16 Mbit/s more than its capacity"
            in message
        )
        assert "line 5, column 1" in message
        assert switch.json("gfr", "vc", "list")[1]["mcr"] == 5e6


def test_far_sides(ena_switch: LiveSwitch) -> None:
    switch = ena_switch
    file = switch.folder / "ena.toml"
    ports = [{"switch": "s1", "port": port, "far_side": True} for port in (2, 4)]
    rows = ", ".join(f'{{ switch = "s1", port = {row["port"]}, far_side = true }}' for row in ports)
    file.write_text(f"ports = [{rows}]\n", encoding="utf-8")
    assert len(switch.json("config", "diff", str(file), code=10)["differences"]) == 4
    switch.fairlane("config", "apply", str(file))
    shown = switch.json("config", "show")["config"]["ports"]
    assert [row for row in shown if "far_side" in row] == ports
    switch.fairlane("config", "set", "s1:4", "far_side=false")
    differences = switch.json("config", "diff", str(file), code=10)["differences"]
    assert [(one["what"], one["status"]) for one in differences] == [
        ("far_side_in", "missing"),
        ("far_side_out", "missing"),
    ]
    switch.fairlane("undo")
    assert switch.json("config", "diff", str(file))["same"] is True
