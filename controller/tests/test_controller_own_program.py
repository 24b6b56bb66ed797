# SPDX-License-Identifier: Apache-2.0
"""A program in a user's folder, with one setting, one counter and one column of its own: everything shows it, and nothing of ours knows it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fairlane_controller.state.run_state import read_topology, write_topology
from live_page import call, needs_browser, until
from live_switch import COMPILED, LiveSwitch, binary, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page


PROGRAM = '''
from collections.abc import Iterator
from fairlane import Column, Kind, P4TableAction, P4TableEntry, P4TableMatch, Program, Row, Settings


class Mine(Program):
    """Names what was corrupted."""

    name = "mine"
    title = "A scheme of our own."
    p4 = "{p4}"
    tables = ("far_side_in",)
    ports_title = "watched ports"
    columns = (
        Column("named", "named", "packets", "Segments that were named.", counter="ena_corrupted"),
        Column("level", "level", "", "What the port is set to.", value_type=int),
    )
    kinds = (Kind("lane", "lanes", (Column("depth_packets", "depth", "packets", plot="queue"),)),)

    class Settings(Settings):
        """One port."""

        level: int = 1

    def entries(self, port, settings):
        match = P4TableMatch(ingress_port=port.port)
        yield P4TableEntry("far_side_in", match=match, action=P4TableAction("check_segments"))

    def ports_of(self, switch, current):
        return {{int(entry["ingress_port"]): self.Settings() for entry in current.values()}}

    async def rows(self, reading, switch):
        ports = await super().rows(reading, switch)
        found = [Row(row.port, {{"level": 7}}) for row in ports]
        return [*found, *(Row(row.port, {{"depth_packets": 4}}, "lane", "fast") for row in ports)]
'''

LOOP = """
from fairlane import SwitchControl, TopologyControl


class Watch(SwitchControl):
    pass


class Watched(TopologyControl):
    control_type = Watch
"""


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[LiveSwitch]:
    if binary("embedded") is None:
        pytest.skip("the embedded switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM.format(p4=COMPILED / "ena"), encoding="utf-8")
    made = LiveSwitch("embedded", tmp_path)
    made.write_state()
    state = read_topology(tmp_path)
    (one,) = state["switches"]
    one |= {"json": str(COMPILED / "ena.json"), "p4info": str(COMPILED / "ena.p4info.txtpb")}
    one["ports"] = [{"port": 1}, {"port": 3, "level": 2}]
    write_topology(tmp_path, {**state, "program": str(folder)})
    made.start()
    try:
        yield made
    finally:
        made.kill()


def test_everything_shows_the_columns_and_kinds_of_a_stranger(switch: LiveSwitch) -> None:
    assert "watched ports: 3" in switch.fairlane("config", "init")
    document = switch.json("status")
    assert document["switches"][0]["program"] == "mine"
    (port,) = (port for port in document["ports"] if port["managed"])
    assert (port["port"], port["named"], port["level"]) == (3, 0, 7)
    lane = {"switch": "s1", "port": 3, "lane": "fast", "depth_packets": 4}
    assert document["lanes"] == [lane]
    assert [column["name"] for column in document["programs"]["mine"]["columns"]] == ["named", "level"]
    text = switch.fairlane("status")
    assert "watched ports" in text
    assert "level" in text
    assert "fast" in switch.fairlane("flows", "--interval", "0")
    assert "depth" in switch.fairlane("describe", "s1:3", "--json", "--interval", "0.1s")
    metrics = switch.fairlane("watch", "metrics", "--once")
    assert 'fairlane_port_named_total{port="3",switch="s1"' in metrics
    assert 'fairlane_lane_depth_packets{lane="fast",port="3",switch="s1"' in metrics
    file = switch.folder / "run.csv"
    switch.fairlane(
        "watch", "export", str(file), "--for", "0.1s", "--interval", "0.1s", "--rows", "ports", "--rows", "lanes"
    )
    (row,) = csv.DictReader((switch.folder / "run-lanes.csv").open(encoding="utf-8"))
    assert (row["lane"], row["depth_packets"]) == ("fast", "4")
    (row,) = (r for r in csv.DictReader((switch.folder / "run-ports.csv").open(encoding="utf-8")) if r["port"] == "3")
    assert (row["level"], row["named"]) == ("7", "0")
    (lane,) = switch.json("flows", "--interval", "0")
    assert (lane["lane"], lane["depth_packets"]) == ("fast", 4)


@needs_browser
def test_the_page_shows_the_columns_and_kinds_of_a_stranger(page: Page, switch: LiveSwitch) -> None:
    call(switch, "config", "init")
    until(page, "document.querySelector('#port').value === 's1:3'")
    until(page, "document.querySelector('#tiles').innerText.includes('level')")
    shown = page.evaluate(
        "[...document.querySelectorAll('.charts .card')].filter((c) => !c.hidden).map((c) => c.innerText)"
    )
    assert [text.splitlines()[0] for text in shown] == ["Queue, packets", "Goodput, bit/s"], (
        "a chart that it has nothing for is not shown"
    )


def test_a_switch_that_restarts_gets_back_what_a_stranger_with_a_loop_wants_of_its_ports(switch: LiveSwitch) -> None:
    folder = Path(read_topology(switch.folder)["program"])
    (folder / "control.py").write_text(LOOP, encoding="utf-8")
    text = (folder / "program.py").read_text(encoding="utf-8")
    (folder / "program.py").write_text(text.replace("    tables =", '    control = "control:Watched"\n    tables ='))
    file = switch.folder / "mine.toml"
    file.write_text(f'program = "{folder}"\nports = [{{ switch = "s1", port = 1, level = 3 }}]', encoding="utf-8")

    def managed() -> list[int]:
        return [port["port"] for port in switch.json("status")["ports"] if port["managed"]]

    switch.fairlane("config", "init")
    with switch.loop():
        switch.fairlane("config", "apply", str(file))
        assert managed() == [1, 3]
        assert f'program = "{folder}"' in switch.fairlane("config", "show")
        switch.kill()
        switch.start()
        wait_until("the event", lambda: switch.events("restored"))
        wait_until("the file's port too", lambda: switch.loop_status()["connected"] and managed() == [1, 3])
        (restored,) = switch.events("restored")
        assert restored["entries"] == 1, "port 3, as the topology says it"
        switch.fairlane("undo")
        assert managed() == [3]
