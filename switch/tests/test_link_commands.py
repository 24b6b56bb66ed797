# SPDX-License-Identifier: Apache-2.0
"""`fairlane link` against sockets that answer as a wire and as switches do: what it asks, what it prints, what it puts back. No root."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.cli.main import main
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.run_state import PORTS, read_topology, write_topology
from fairlane_controller.state.store import Store
from fairlane_controller.units import format_rate
from fairlane_switch.link_commands import app
from fairlane_switch.link_presets import PRESETS
from fairlane_switch.units import format_us
from fairlane_switch.wire import DirectionStats, EndStats, LinkOptions
from typer.main import get_command

Request = dict[str, Any]


class Server(threading.Thread):
    """A unix socket that answers one JSON object a line."""

    def __init__(self, path: Path, answer: Callable[[Request], Request]) -> None:
        super().__init__(daemon=True)
        self.requests: list[Request] = []
        self._answer = answer
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen()
        self.start()

    def run(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client, client.makefile("rwb") as lines:
                for line in lines:
                    request = json.loads(line)
                    self.requests.append(request)
                    lines.write(json.dumps(self._answer(request)).encode() + b"\n")
                    lines.flush()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Topology:
    """h1 - s1 - s2 - h2: h1-s1 a bare pair, s1-s2 and s2-h2 emulated; switches whose ports may refuse a rate."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "0"
        self.folder.mkdir()
        self.settings: dict[tuple[str, str], dict[str, Any]] = {
            (link, way): LinkOptions(delay_us=5_000).model_dump()
            for link in ("s1-s2", "s2-h2")
            for way in ("a_to_b", "b_to_a")
        }
        self.rates = {("s1", 1): 0, ("s1", 2): 2_000_000, ("s2", 1): 2_000_000, ("s2", 2): 0}
        self.refuses = ""
        self.asked: list[Request] = []
        self.looks = 0
        self.capture_error: str | None = None
        self.packets = 1234
        self.wire = Server(self.folder / "wire.sock", self._wire)
        self.switches = {
            name: Server(self.folder / f"{name}.sock", lambda request, name=name: self._switch(name, request))
            for name in ("s1", "s2")
        }
        self.write()

    def write(self, target: str = "embedded") -> None:
        def end(node: str, port: int) -> dict[str, Any]:
            return {"node": node, "port": port}

        links = [
            {"name": "h1-s1", "a": end("h1", 0), "b": end("s1", 1), "emulated": False, "preset": None},
            {"name": "s1-s2", "a": end("s1", 2), "b": end("s2", 1), "emulated": True, "preset": "3g"},
            {"name": "s2-h2", "a": end("s2", 2), "b": end("h2", 0), "emulated": True, "preset": None},
        ]
        switches = [
            {
                "name": name,
                "grpc": "127.0.0.1:1",
                "control": str(self.folder / f"{name}.sock"),
                "ports": [{"port": port, "rate_bps": rate} for (switch, port), rate in self.rates.items() if switch == name],
            }
            for name in ("s1", "s2")
        ]  # fmt: skip
        wire = {"control": str(self.folder / "wire.sock"), "links": ["s1-s2", "s2-h2"]}
        state = {
            "name": "0",
            "topology": "t.json",
            "target": target,
            "wire": wire,
            "links": links,
            "switches": switches,
        }
        write_topology(self.folder, state)

    def close(self) -> None:
        for server in (self.wire, *self.switches.values()):
            server.close()

    def _wire(self, request: Request) -> Request:
        link, direction = request.get("link"), request.get("direction")
        ways = ("a_to_b", "b_to_a") if direction in (None, "both") else (direction,)
        match request["op"]:
            case "get":
                state = {"spike_left_us": 0, "outage_left_us": 0}
                names = dict.fromkeys(name for name, _ in self.settings)
                both = ("a_to_b", "b_to_a")
                shown = [
                    {"name": name, **{way: self.settings[name, way] for way in both}, **{f"{way}_state": state for way in both}}
                    for name in names
                ]  # fmt: skip
                return {"ok": True, "links": shown}
            case "set":
                given = {key: value for key, value in request.items() if key not in ("op", "link", "direction")}
                if given.get("loss") == 0.666:
                    return {"ok": False, "error": "loss: 0.666 is the wrong number"}
                for way in ways:
                    self.settings[str(link), str(way)].update(given)
                return {"ok": True}
            case "stats":
                way = dict.fromkeys((field.name for field in fields(DirectionStats)), 7)
                end = {**dict.fromkeys((field.name for field in fields(EndStats)), 0), "interface": "w0a"}
                names = dict.fromkeys(name for name, _ in self.settings)
                return {
                    "ok": True,
                    "links": [{"name": name, "a": end, "b": end, "a_to_b": way, "b_to_a": way} for name in names],
                }
            case "capture_state":
                self.looks += 1
                over = self.looks > 2 or bool(request["stop"])
                return {"ok": True, "packets": self.packets, "lost": 5, "done": over, "error": self.capture_error}
            case _:
                self.asked.append(request)
                return {"ok": True}

    def _switch(self, name: str, request: Request) -> Request:
        port = request.get("port")
        if request["op"] == "set_port":
            if self.refuses == f"{name}-p{port}":
                return {"ok": False, "error": "no such rate"}
            self.rates[name, int(str(port))] = request["rate_bps"]
        ports = [
            {"port": number, "rate_bps": rate, "queue_packets": 50, "rx_packets": 0, "rx_bytes": 0, "tx_packets": 0, "tx_bytes": 0, "refused_packets": 0}
            for (switch, number), rate in self.rates.items() if switch == name
        ]  # fmt: skip
        return {"ok": True, "ports": ports, "port": next((each for each in ports if each["port"] == port), ports[0])}


@pytest.fixture
def topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Topology]:
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    made = Topology(tmp_path)
    yield made
    made.close()


def call(*arguments: str, code: int = 0) -> str:
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as ended:
        main(["link", *arguments])
    assert ended.value.code == code, said.getvalue()
    return said.getvalue()


def test_list_shows_every_link_both_ways_and_who_limits_the_rate(topology: Topology) -> None:
    topology.settings["s1-s2", "b_to_a"] |= {"ge_enter": 0.01, "ge_leave": 0.2, "ge_loss": 0.5}
    table = call("list")
    topology.settings["s1-s2", "a_to_b"] |= {"ge_good_us": 900_000, "ge_bad_us": 50_000}
    assert "50 ms after 900 ms: 1 lost" in call("list")
    for word in ("h1-s1", "s1-s2", "s2-h2", "2 Mbit/s", "5 ms", "0.01 in, 0.2 out: 0.5 lost", "veth"):
        assert word in table, table
    links = json.loads(call("list", "--json"))
    assert [link["emulated"] for link in links] == [False, True, True]
    assert links[0]["a_to_b"]["settings"] is None
    assert links[0]["a_to_b"]["port_rate_bps"] is None, "a host sends"
    assert links[0]["b_to_a"]["port_rate_bps"] == 0
    assert links[1]["b_to_a"]["settings"]["ge_enter"] == 0.01
    assert links[1]["a_to_b"]["port_rate_bps"] == 2_000_000
    assert links[1]["preset"] == "3g"


def test_show_has_the_settings_and_the_counts(
    topology: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cell.trace").write_text("1\n")
    monkeypatch.chdir(tmp_path)
    topology.settings["s1-s2", "a_to_b"]["rate_bps"] = {"trace": "cell.trace"}
    table = call("show", "s1-s2")
    for word in (
        "preset 3g",
        "s1-p2 to s2-p1",
        '{"trace": "cell.trace"} (mean 12 Mbit/s)',
        "5 ms",
        "1000 packets",
        "bad state packets",
        "flipped bits",
    ):
        assert word in table, table
    assert json.loads(call("show", "s1-s2", "--json"))["stats"]["b_to_a"]["bad_state_packets"] == 7
    assert "a bare veth pair" in call("show", "h1-s1")
    assert json.loads(call("show", "h1-s1", "--json"))["stats"] is None


def test_set_asks_the_wire_for_what_is_given_only(topology: Topology) -> None:
    said = call("set", "s1-s2", "-d", "a_to_b", "--delay", "100ms", "--loss", "1%", "--ge-enter", "0.004")
    assert topology.settings["s1-s2", "a_to_b"]["delay_us"] == 100_000
    assert topology.settings["s1-s2", "a_to_b"]["loss"] == 0.01
    assert topology.settings["s1-s2", "b_to_a"]["delay_us"] == 5_000
    assert "100 ms" in said
    request = next(request for request in topology.wire.requests if request["op"] == "set")
    assert set(request) == {"op", "link", "direction", "delay_us", "loss", "ge_enter"}


def test_a_rate_is_the_ports_between_switches_and_the_wires_at_a_host(topology: Topology) -> None:
    call("set", "s1-s2", "--rate", "500kbit")
    assert (topology.rates["s1", 2], topology.rates["s2", 1]) == (500_000, 500_000)
    assert topology.settings["s1-s2", "a_to_b"]["rate_bps"] == 0
    call("set", "s2-h2", "--rate", "1Mbit", "--delay", "1ms")
    assert topology.rates["s2", 2] == 1_000_000
    assert topology.settings["s2-h2", "a_to_b"]["rate_bps"] == 0
    assert topology.settings["s2-h2", "b_to_a"] == {
        **LinkOptions().model_dump(),
        "delay_us": 1_000,
        "rate_bps": 1_000_000,
    }


def _state_rates(topology: Topology) -> dict[tuple[str, int], int]:
    state = read_topology(topology.folder)
    with Store(topology.folder) as store:
        newer = store.all(PORTS)
    return {
        (switch["name"], port["port"]): newer.get(f"{switch['name']}/{port['port']}", port)["rate_bps"]
        for switch in state["switches"]
        for port in switch["ports"]
    }


def test_the_run_state_has_the_new_rate_or_nothing_changes(topology: Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    call("set", "s1-s2", "--rate", "500kbit", "--direction", "a_to_b")
    assert _state_rates(topology) == topology.rates
    assert topology.rates["s1", 2] == 500_000

    def full(store: Store, documents: object) -> None:
        raise FairlaneError(ErrorCode.BAD_FILE, f"cannot write {store.path}: no room for {documents}")

    before, settings = dict(topology.rates), json.dumps(list(topology.settings.values()))
    monkeypatch.setattr(Store, "put", full)
    assert "cannot write" in call("set", "s1-s2", "--rate", "1Mbit", "--delay", "1ms", code=3)
    assert _state_rates(topology) == topology.rates == before
    assert json.dumps(list(topology.settings.values())) == settings


def test_a_preset_is_all_its_settings_and_what_stands_beside_it_wins(topology: Topology) -> None:
    topology.settings["s1-s2", "a_to_b"]["loss"] = 0.5
    call("set", "s1-s2", "--preset", "geo", "--ber", "1e-5")
    geo = PRESETS["geo"].options("a_to_b").__dict__ | {"ber": 1e-5}
    assert topology.settings["s1-s2", "a_to_b"] == topology.settings["s1-s2", "b_to_a"] == geo
    assert topology.rates["s1", 2] == 1_544_000


def test_nothing_is_half_applied(topology: Topology) -> None:
    settings, rates = json.dumps(list(topology.settings.values())), dict(topology.rates)
    topology.refuses = "s2-p1"
    said = call("set", "s1-s2", "--rate", "500kbit", "--delay", "1ms", code=5)
    assert "no such rate" in said
    assert json.dumps(list(topology.settings.values())) == settings
    assert topology.rates == rates
    said = call("set", "s2-h2", "--loss", "0.666", "--rate", "1Mbit", code=5)
    assert "the wrong number" in said
    assert json.dumps(list(topology.settings.values())) == settings
    assert topology.rates == rates


def test_spike_and_outage_go_to_the_wire(topology: Topology) -> None:
    call("spike", "s1-s2", "5s", "--direction", "b_to_a")
    call("outage", "s2-h2", "500ms")
    asked = [request for request in topology.wire.requests if request["op"] in ("spike", "outage")]
    assert asked == [
        {"op": "spike", "link": "s1-s2", "direction": "b_to_a", "duration_us": 5e6},
        {"op": "outage", "link": "s2-h2", "direction": "both", "duration_us": 5e5},
    ]


def test_a_spike_that_blocks_the_line_goes_to_the_port_and_to_a_hosts_wire(topology: Topology) -> None:
    call("spike", "s1-s2", "5s", "--direction", "a_to_b", "--blocks", "line")
    call("spike", "s2-h2", "1s", "--direction", "b_to_a", "--blocks", "line")
    spikes = [request for request in topology.switches["s1"].requests if request["op"] == "spike"]
    assert spikes == [{"op": "spike", "port": 2, "duration_us": 5e6}]
    assert [request for request in topology.wire.requests if request["op"] == "spike"] == [
        {"op": "spike", "link": "s2-h2", "direction": "b_to_a", "duration_us": 1e6, "blocks": "line"}
    ]
    topology.settings["s1-s2", "a_to_b"]["rate_bps"] = 1_000_000
    said = call("spike", "s1-s2", "5s", "--blocks", "line", code=5)
    assert "the queue before the wire's own rate (a_to_b) would go on; allowed: --blocks delivery" in said
    topology.write("bmv2")
    assert "a port of bmv2 cannot be stopped" in call("spike", "s2-h2", "5s", "--blocks", "line", code=5)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("show", "s1-s9"), 3, "there is no link 's1-s9'; there are h1-s1, s1-s2, s2-h2"),
        (("set", "s1-s2"), 2, "nothing to set; give an option such as --delay"),
        (("set", "s1-s2", "--delay", "100"), 2, "delay '100' is not a number with a unit; examples: 200us, 5ms, 1.5s"),
        (("set", "s1-s2", "--rate", "fast"), 2, "rate 'fast' is not a number with a unit; examples: 512kbit"),
        (("set", "s1-s2", "--rate", "10"), 2, "rate 10 bit/s is out of range; allowed: 1000 to 400000000000"),
        (("set", "s1-s2", "--rate", "9" * 400), 2, "is not a number with a unit; examples: 512kbit"),
        (("set", "s1-s2", "--loss", "few"), 2, "loss 'few' is not a probability; examples: 0.01, 1%, 1e-5"),
        (("set", "s1-s2", "--ber", "nan"), 2, "ber 'nan' is out of range; allowed: 0 to 1 (100%)"),
        (("set", "s1-s2", "--loss", "2"), 2, "loss '2' is out of range; allowed: 0 to 1 (100%)"),
        (("set", "s1-s2", "-d", "up", "--loss", "0"), 2, "direction 'up' is not known; allowed: a_to_b, b_to_a, both"),
        (
            ("set", "s1-s2", "--preset", "sat"),
            3,
            "there is no preset 'sat'; there are geo, leo, geo-hts, starlink, wifi, 5g, 3g",
        ),
        (("set", "h1-s1", "--delay", "1ms"), 5, 'h1-s1 is a bare veth pair: give it a delay or "emulated": true'),
        (("spike", "h1-s1", "1s"), 5, "h1-s1 is a bare veth pair"),
        (("spike", "s1-s2", "1s", "--blocks", "queue"), 2, "blocks 'queue' is not known; allowed: delivery, line"),
        (("outage", "s1-s2", "long"), 2, "duration 'long' is not a number with a unit"),
        (("list", "--state", "7"), 3, "no running topology '7'"),
    ],
)
def test_errors_say_what_and_what_is_allowed(
    topology: Topology, words: tuple[str, ...], code: int, message: str
) -> None:
    settings = json.dumps(list(topology.settings.values()))
    assert message in call(*words, code=code)
    told = json.loads(call(*words, "--json", code=code))["error"]
    assert message in told["message"]
    assert json.dumps(list(topology.settings.values())) == settings
    assert topology.rates["s1", 2] == 2_000_000


def test_bmv2_has_no_rate_by_this_command(topology: Topology) -> None:
    topology.write("bmv2")
    assert "the rate of a port of bmv2 is not set" in call("set", "s1-s2", "--rate", "1Mbit", "--delay", "9ms", code=5)
    assert topology.settings["s1-s2", "a_to_b"]["delay_us"] == 5_000
    call("set", "s1-s2", "--delay", "9ms")
    assert json.loads(call("list", "--json"))[1]["a_to_b"]["port_rate_bps"] == 2_000_000


def test_every_command_of_the_docs_works(topology: Topology) -> None:
    del topology
    text = (Path(__file__).resolve().parents[2] / "docs" / "links.md").read_text(encoding="utf-8")
    commands = [shlex.split(line, comments=True)[2:] for line in text.splitlines() if line.startswith("fairlane link ")]
    assert {words[0] for words in commands} == {"list", "show", "set", "spike", "outage"}
    for words in commands:
        call(*words)


def test_every_declared_setting_has_the_option_that_people_know() -> None:
    words = "delay jitter jitter-distribution reorder keep-order rate loss ber errors-in spare-retransmissions hit-retransmissions queue-packets ge-enter ge-leave ge-loss ge-ber ge-good ge-bad duplicate dama-frame dama-delay dama-cra"
    command: Any = get_command(app)
    options = command.commands["set"].params
    names = {name for one in options for name in (*one.opts, *one.secondary_opts) if name.startswith("--")}
    assert names == {f"--{word}" for word in (*words.split(), "direction", "preset", "state", "json")}
    assert set(LinkOptions.model_fields) < {one.name for one in options}
    helped = {one.name: one.help for one in options}
    assert "At most 60 s" in helped["delay_us"]
    assert "1 to 1,000,000" in helped["queue_packets"]


def test_the_table_of_the_docs_is_that_of_the_code() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "links.md").read_text(encoding="utf-8")
    section = text.partition("## Presets")[2].partition("## Changes")[0]
    assert re.findall(r"^\| `([a-z0-9-]+)`", section, re.MULTILINE) == list(PRESETS)
    for name in ("geo", "leo", "wifi", "3g"):
        row = next(line for line in section.splitlines() if line.startswith(f"| `{name}`"))
        preset = PRESETS[name]
        assert format_rate(preset.rate_bps or 0) in row
        assert format_us(preset.options("a_to_b").delay_us).split()[0] in row


def test_nobody_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    assert "no topology is running" in call("list", code=3)
    (tmp_path / "described").mkdir()
    write_topology(tmp_path / "described", {"name": "described", "switches": [{"name": "s1", "grpc": "127.0.0.1:1"}]})
    assert "no switch of this topology has a control socket" in call("list", code=3)
    shutil.rmtree(tmp_path / "described")
    made = Topology(tmp_path)
    made.close()
    assert "no switch answers at" in call("list", code=4)
    assert json.loads(call("list", "--json", code=4))["error"]["code"] == "switch_unreachable"


def test_a_capture_is_asked_for_and_followed_to_its_end(topology: Topology, tmp_path: Path) -> None:
    file = tmp_path / "out.pcapng"
    said = call("capture", "s1-s2", str(file), "-d", "a_to_b", "--at", "b", "--seconds", "2.5", "--packets", "9")
    assert said.split() == ["1,234", "packets", "in", str(file) + ",", "5", "came", "too", "fast"]
    assert topology.asked == [
        {"op": "capture", "link": "s1-s2", "file": str(file), "direction": "a_to_b", "at": "b", "duration_us": 2.5e6, "packets": 9, "snap_bytes": 128}
    ]  # fmt: skip
    topology.looks, topology.capture_error = 0, "/full: No space left on device"
    assert "the capture ended early: /full: No space left on device" in call("capture", "s1-s2", "x", code=5)
    topology.looks, topology.packets = 0, 0
    assert call("capture", "s1-s2", "x", code=3).split()[0] == "fairlane:", (
        "no line of 0 packets in a file that is not there"
    )
    assert "there is no link 's9'" in call("capture", "s9", "x", code=3)
    assert "h1-s1 is a bare veth pair" in call("capture", "h1-s1", "x", code=5)
    assert "at 'c' is not known; allowed: a, b" in call("capture", "s1-s2", "x", "--at", "c", code=2)
