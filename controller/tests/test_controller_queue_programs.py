# SPDX-License-Identifier: Apache-2.0
"""CoDel, FQ-CoDel, PIE, DualPI2, RED, Cebinae, AFQ, AFD and FRED as programs: settings to entries and back, columns that the core computes, changes of a running port."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from fairlane_controller.config.apply import apply_to_port
from fairlane_controller.config.read import read_text
from fairlane_controller.config.show import port_in_force
from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.port_program import PortProgram
from fairlane_controller.program.registry import load_program
from fairlane_controller.program.setup import complete_rows
from fairlane_controller.state.run_state import (
    PortState,
    RunState,
    SwitchState,
    read_run_state,
    read_topology,
    write_topology,
)
from fairlane_controller.switch.entities import entity_key
from fairlane_controller.switch.reading import RateBook
from finsy import P4CounterData, P4TableEntry
from live_switch import COMPILED, LiveSwitch, binary, idle

SETTINGS = {
    "codel": {"target": "12.5ms", "interval": "250ms", "ecn": False},
    "fq_codel": {"target": "2ms", "interval": "40ms", "ecn": False, "salt": 77, "quantum": 300},
    "pie": {"target": "20ms", "update": "30ms", "max_burst": "100ms", "ecn": False},
    "dualpi2": {
        "target": "20ms",
        "rtt_max": "123.45ms",
        "l4s_min_th": "1ms",
        "l4s_range": "1us",
        "coupling": 3,
        "l4s_weight": 9,
    },
    "red": {"min_th": 10, "max_th": 30, "max_p": 0.02, "weight": 8, "gentle": False, "ecn": False},
    "cebinae": {"round": "67.109ms", "period_rounds": 20, "tax": 0.05, "saturation_margin": 0.0, "flow_margin": 0.1},
    "afq": {"bytes_per_round": 4096, "calendar_queues": 32},
    "afd": {"queue_target": 30_000, "sample": 1, "update": "12ms", "alpha": 0.5, "beta": 0.75},
    "fred": {"min_th": 10, "max_th": 30, "max_p": 0.1, "min_q": 2, "weight": 8},
}
PORT = PortState(port=3, rate_bps=2e6, mtu=1000, queues=16)


def program_of(name: str) -> PortProgram:
    program = load_program(name)
    assert isinstance(program, PortProgram)
    return program


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_become_an_entry_and_come_back(name: str) -> None:
    program = program_of(name)
    for chosen in (program.Settings(), program.Settings.model_validate(SETTINGS[name])):
        (entry,) = program.entries(PORT, chosen)
        back = program.ports_of("s1", {entity_key(entry): entry})[3]
        assert back.model_dump(mode="json") == chosen.model_dump(mode="json")


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bottleneck_without_settings_has_the_defaults(name: str) -> None:
    program = program_of(name)
    extra = dict([next(iter(SETTINGS[name].items()))])
    ports = (PortState(port=1), PortState(port=3, bottleneck=True), PortState.model_validate({"port": 4, **extra}))
    run = RunState(name="t", program=name, switches=(SwitchState(name="s1", grpc="x:1", ports=ports),))
    config = program.initial_config(run)
    assert config.ports == {("s1", 3): program.Settings(), ("s1", 4): program.Settings.model_validate(extra)}


def test_the_arguments_are_the_rfc_s_and_the_paper_s() -> None:
    codel = program_of("codel").arguments(PORT, program_of("codel").Settings())
    assert codel == {"target_us": 5_000, "interval_us": 100_000, "max_packet_bytes": 1_022, "ecn": 1}
    assert program_of("fq_codel").arguments(PORT, program_of("fq_codel").Settings())["queues_count"] == 16
    # RFC 9332 A.1: Tupdate 15 ms, alpha 0.15 and beta 3 Hz, a ramp from 0.8 to 1.2 ms; in 2^-40 for each us
    dualpi2 = program_of("dualpi2").arguments(PORT, program_of("dualpi2").Settings())
    assert (dualpi2["update_us"], dualpi2["min_th_us"], dualpi2["max_th_us"], dualpi2["k"]) == (15_000, 800, 1_200, 2)
    assert (dualpi2["alpha"], dualpi2["beta"]) == (round(0.15e-6 * 2**40), round(3e-6 * 2**40))
    assert dualpi2["ramp"] * 400 == pytest.approx(2**40)
    one_queue = program_of("dualpi2").arguments(PortState(port=3, queues=1), program_of("dualpi2").Settings())
    assert (dualpi2["l4s_queue"], one_queue["l4s_queue"]) == (1, 0)
    red = program_of("red").arguments(PORT, program_of("red").Settings())
    # C1 = max_p / (max_th - min_th), 2^24; a packet of 1000 bytes takes 4 ms at 2 Mbit/s: 2^32 log2(e) / (512 * 4000)
    assert (red["slope"], red["decay"]) == (167_772, 3_026)
    cebinae = program_of("cebinae").Settings.model_validate({"round": "80ms", "period_rounds": 2, "tax": 0.25})
    told = program_of("cebinae").arguments(PORT, cebinae)
    # 20,000 bytes a round of 80 ms at 2 Mbit/s; 0.75 of what the flows had in two rounds is for one round half of that
    assert (told["round_us"], told["capacity_bytes"], told["taxed_max_bytes"]) == (80_000, 20_000, 15_000)
    assert (told["saturated_bytes"], told["tax_share"], told["queues"]) == (39_600, round(0.375 * 2**24), 2)
    assert (told["inverse_us"] * 80_000) == pytest.approx(2**32, rel=1e-5)


@pytest.mark.parametrize(
    ("rate_bps", "settings", "problem"),
    [
        (0, {}, "port 3: cebinae needs a rate, and the port has none"),
        (
            10e9,
            {"round": "10s"},
            r"port 3: bytes of a period \(rate, round, period_rounds\) 12500000000 is out of range: it must be between 1 and",
        ),
    ],
)
def test_cebinae_says_which_ports_it_cannot_manage(rate_bps: float, settings: dict[str, Any], problem: str) -> None:
    program = program_of("cebinae")
    with pytest.raises(FairlaneError, match=problem):
        program.arguments(PortState(port=3, rate_bps=rate_bps), program.Settings.model_validate(settings))


@pytest.mark.parametrize(
    ("port", "problem"),
    [
        ({"rate_bps": 50_000, "mtu": 1500}, "ports[0].round: 1250 bytes in two rounds take no frame of 1514 bytes; must be at least 121.1ms"),
        ({"rate_bps": 1e6, "link_layer": "atm"}, "ports[0].link_layer: atm: the line never carries the port's rate in bytes of frames; must be none"),
    ],
)  # fmt: skip
def test_cebinae_says_where_it_would_drop_everything_or_do_nothing(port: dict[str, Any], problem: str) -> None:
    ports = (PortState(port=3, queues=2, scheduler="calendar", **port),)
    run = RunState(name="t", program="cebinae", switches=(SwitchState(name="s1", grpc="x:1", ports=ports),))
    config = read_text('program = "cebinae"\n[[ports]]\nswitch = "s1"\nport = 3\nround = "100ms"', "f.toml")
    program = program_of("cebinae")
    assert list(program.check(config.part_of(program, run), run)) == [problem]


def test_a_margin_of_0_still_taxes_the_largest_flow() -> None:
    program = program_of("cebinae")
    told = program.arguments(PORT, program.Settings.model_validate({"flow_margin": 0}))
    assert told["flow_share"] == 2**24 - 1
    assert program.settings_from(told).flow_margin == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('program = "pie"\n[[ports]]\nswitch = "s1"\nport = 3\nupdate = "300ms"', "update"),
        ('program = "codel"\n[[ports]]\nswitch = "s1"\nport = 3\ntarget = 5', "must be a text with a unit"),
        ('program = "pie"\n[[ports]]\nswitch = "s1"\nport = 3\ntargte = "5ms"', "did you mean 'target'"),
        ('program = "red"\n[[ports]]\nswitch = "s1"\nport = 3\nmax_p = 1.5', "less than or equal to 1"),
    ],
)
def test_bad_settings_say_what_is_allowed(text: str, problem: str) -> None:
    with pytest.raises(FairlaneError, match=problem):
        read_text(text, "f.toml")


def test_the_thresholds_of_red_are_in_their_order() -> None:
    config = read_text('program = "red"\n[[ports]]\nswitch = "s1"\nport = 3\nmin_th = 9\nmax_th = 8', "f.toml")
    program = program_of("red")
    assert list(program.check(config.part_of(program), None)) == ["ports[0].max_th: 8: must be above min_th, 9"]


def test_the_gains_of_afd_are_in_their_order() -> None:
    config = read_text('program = "afd"\n[[ports]]\nswitch = "s1"\nport = 3\nbeta = 1.7', "f.toml")
    program = program_of("afd")
    assert list(program.check(config.part_of(program), None)) == ["ports[0].beta: 1.7: must be above alpha, 1.7"]


def test_afq_wants_a_calendar_with_room_for_a_frame() -> None:
    text = 'program = "afq"\n[[ports]]\nswitch = "s1"\nport = 3\nbytes_per_round = "64B"\ncalendar_queues = 16'
    program = program_of("afq")
    ports = (PortState(port=3, queues=8, scheduler="strict", mtu=1500),)
    run = RunState(name="t", program="afq", switches=(SwitchState(name="s1", grpc="x:1", ports=ports),))
    config = read_text(text, "f.toml").part_of(program, run)
    place = "ports[0]"
    assert list(program.check(config, run)) == [
        f"{place}: the port's scheduler is strict; afq needs calendar",
        f"{place}.calendar_queues: 16: the port has 8 queues",
        f"{place}.bytes_per_round: 16 rounds of 64 bytes take no frame of 1514 bytes",
    ]
    (first, *_) = program.check(config, run.model_copy(update={"target": "bmv2"}))
    assert first == "afq: BMv2 has no calendar of queues; run it on the embedded switch or in the simulator"
    with pytest.raises(FairlaneError, match="must be a power of two, such as 2048 or 4096"):
        read_text(text.replace("64B", "3000B"), "f.toml")


@pytest.mark.parametrize(
    ("scheduler", "target", "problems"),
    [
        ("fq", "embedded", []),
        ("", "embedded", []),
        ("drr", "embedded", ["ports[0]: the port's scheduler is drr; fq_codel needs fq"]),
        ("strict", "bmv2", []),
    ],
)
def test_fq_codel_wants_the_rfc_s_scheduler_where_there_is_one(
    scheduler: str, target: str, problems: list[str]
) -> None:
    ports = (PortState(port=3, queues=8, scheduler=scheduler),)
    switches = (SwitchState(name="s1", grpc="x:1", ports=ports),)
    run = RunState.model_validate({"name": "t", "program": "fq_codel", "switches": switches, "target": target})
    program = program_of("fq_codel")
    text = 'program = "fq_codel"\n[[ports]]\nswitch = "s1"\nport = 3\nsalt = 1'
    config = read_text(text, "f.toml").part_of(program, run)
    assert list(program.check(config, run)) == problems


class Reading:
    """One managed port; what is read grows from reading to reading."""

    switch, folder, loop = "s1", None, None

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}
        self.rates = RateBook()
        self.number = 0

    def begin(self) -> None:
        self.number += 1
        self.rates.begin(float(self.number))

    async def table(self, name: str, **_: Any) -> list[P4TableEntry]:
        assert name == "codel_port"
        return list(program_of("codel").entries(PORT, program_of("codel").Settings()))

    async def counters(self, name: str, indices: Iterable[int]) -> Mapping[int, P4CounterData]:
        return {index: P4CounterData(packet_count=100 * self.number if name == "sent" else 2) for index in indices}

    async def registers(self, name: str, indices: Iterable[int]) -> Mapping[int, int] | None:
        assert name == "waited_us"
        return dict.fromkeys(indices, 450000 * self.number)

    def per_s(self, key: Any, total: float | None, /) -> float | None:
        return self.rates.per_s(key, total)


async def test_a_register_is_scaled_and_a_ratio_is_of_what_both_grew_by() -> None:
    reading = Reading()
    for delay_s in (None, 0.0045):
        reading.begin()
        (row,) = await complete_rows(program_of("codel"), cast("Any", reading), None)
        assert row.values["waited_s"] == pytest.approx(0.45 * reading.number)
        assert row.values["queue_delay_s"] == pytest.approx(delay_s)
        assert row.values["aqm_dropped"] == 2


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[LiveSwitch]:
    if binary("embedded") is None:
        pytest.skip("the embedded switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    made = LiveSwitch("embedded", tmp_path)
    made.write_state()
    state = read_topology(tmp_path)
    (one,) = state["switches"]
    one |= {"json": str(COMPILED / "codel.json"), "p4info": str(COMPILED / "codel.p4info.txtpb")}
    one["ports"] = [{"port": 1}, {"port": 3, "bottleneck": True, "rate_bps": 2e6}]
    write_topology(tmp_path, {**state, "program": "codel"})
    made.start()
    try:
        yield made
    finally:
        made.kill()


def test_a_setting_is_changed_while_the_switch_runs_and_taken_back(switch: LiveSwitch) -> None:
    assert "managed ports: 3" in switch.fairlane("config", "init")

    def in_force() -> dict[str, Any]:
        rows: list[dict[str, Any]] = switch.json("config", "show")["config"]["ports"]
        (row,) = (
            {name: row[name] for name in SETTINGS["codel"]} for row in rows if row["port"] == 3 and "target" in row
        )
        return row

    before = {"target": "5ms", "interval": "100ms", "ecn": True}
    assert in_force() == before
    assert "dry run: 1 update" in switch.fairlane("config", "set", "s1:3", "target=10ms", "--dry-run")
    assert in_force() == before
    told = switch.fairlane("config", "set", "s1:3", "target=10ms", "ecn=false")
    assert told.strip() == "s1:3 is set: target=10ms, ecn=false"
    assert in_force() == {**before, "target": "10ms", "ecn": False}
    assert "was set already" in switch.fairlane("config", "set", "s1:3", "target=10ms")
    switch.fairlane("undo")
    assert in_force() == before
    (port,) = (port for port in switch.json("status")["ports"] if port["managed"])
    assert (port["port"], port["aqm_dropped"], port["aqm_marked"]) == (3, 0, 0)
    assert "fairlane_port_aqm_dropped_total" in switch.fairlane("watch", "metrics", "--once")


def test_two_changes_of_one_port_at_once_lose_nothing(switch: LiveSwitch) -> None:
    """Each one reads the port after the other has written it."""
    switch.fairlane("config", "init")
    run = read_run_state(switch.folder)

    async def both() -> None:
        changes = ({"target": "10ms"}, {"interval": "200ms"})
        await asyncio.gather(*(apply_to_port(run, ("s1", 3), change, "config set") for change in changes))

    asyncio.run(both())
    row = asyncio.run(port_in_force(run, "s1", 3))
    assert (row["target"], row["interval"]) == ("10ms", "200ms")


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("3", "target"), 2, "'target': must be KEY=VALUE"),
        (("3", "targte=5ms"), 3, "did you mean 'target'"),
        (("3", "target=5"), 3, "must be a text with a unit"),
        (("9", "target=5ms"), 3, "has no port 9"),
        (("3", "port=1", "target=5ms"), 2, "port: cannot be set; the port is the first argument"),
    ],
)
def test_what_cannot_be_set_is_refused(switch: LiveSwitch, words: tuple[str, ...], code: int, problem: str) -> None:
    switch.fairlane("config", "init")
    assert problem in switch.fairlane("config", "set", f"s1:{words[0]}", *words[1:], code=code)


def test_an_option_of_another_program_s_loop_is_refused(switch: LiveSwitch) -> None:
    told = switch.fairlane("run", *idle(switch.folder, "5s"), code=3)
    assert "loop.flow_idle: unknown key" in " ".join(told.split())
