# SPDX-License-Identifier: Apache-2.0
"""What is measured of a port that GFR manages, and what follows where the configuration lets it: capacity, LBO, HBO, w_i."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gfr_configs as configs
import pytest
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.program.contract import Config
from fairlane_controller.program.registry import load_program
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.config import GfrState
from fairlane_controller.programs.gfr.control import GfrControl, GfrTopology
from fairlane_controller.programs.gfr.entries import fit_to_line
from fairlane_controller.programs.gfr.plan import GfrPlan, make_plan
from fairlane_controller.state.run_state import RunState, read_topology, write_topology
from fairlane_controller.switch.client import Endpoint
from finsy import P4TableAction
from gfr_memory import MemorySwitch, clients_of, deploy
from live_switch import COMPILED, RATE_BPS, LiveSwitch, wait_until
from steady import void_when_stalled
from test_controller_frames import send, udp_frame

LINE_BPS = 51_840_000
FRAME_BYTES, FRAME_CELLS = 1014, 21


class Log:
    """Events, remembered."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        """One event."""
        self.events.append({"event": event, **fields})

    def named(self, event: str) -> list[dict[str, Any]]:
        """Those of this name."""
        return [one for one in self.events if one["event"] == event]


def report(rate_bps: float, frames: int = 100) -> dict[str, Any]:
    """What an atm line of this rate reports of so many frames."""
    busy_us = round(1e6 * frames * FRAME_CELLS * 53 * 8 / rate_bps)
    counts = {"busy_us": busy_us, "busy_bytes": frames * FRAME_BYTES, "busy_cells": frames * FRAME_CELLS}
    return {"egress_port": 6, "interval_us": 200_000, "waiting_cells": 0, **counts}


def control_of(plan: GfrPlan, log: Log) -> GfrControl:
    """The control of s1."""
    control = SwitchAgent(Endpoint("s1", "memory"), GfrTopology(plan=plan), log).control
    assert isinstance(control, GfrControl)
    return control


def plan_of(run: RunState | None = None, first_mcr: str = "2Mbit", **port: Any) -> GfrPlan:
    """The peer-to-peer configuration with other keys of its port."""
    data = configs.changed("vcs.0.mcr", first_mcr)
    data["ports"][0] |= port
    return make_plan(configs.state_of(data), GfrState(), run, "x")


def measured_bps(control: GfrControl) -> float | None:
    """BW of port 6 after a second of reports."""
    rate = control.meters()[6].measurement(1.0).bw_bps
    return None if rate is None else rate.value


@pytest.mark.parametrize(
    ("layer", "bits"),
    [("atm", FRAME_CELLS * 53 * 8), ("", FRAME_CELLS * 53 * 8), ("none", FRAME_BYTES * 8), ("ethernet", None)],
)
def test_the_drain_rate_is_what_the_line_counts(layer: str, bits: int | None) -> None:
    control = control_of(plan_of(configs.run_state(link_layer=layer)), Log())
    for number in range(5):
        control.take_report(number / 5, {**report(1.0, 1), "busy_us": 1000})
    assert measured_bps(control) == (None if bits is None else pytest.approx(bits / 1e-3))


def test_a_port_that_is_not_managed_is_not_measured() -> None:
    control = control_of(plan_of(), Log())
    control.take_report(0.0, {**report(5e6), "egress_port": 3})
    assert [*control.meters()] == [6]
    assert measured_bps(control) is None


def test_a_change_of_the_line_is_reported_after_three_reports() -> None:
    log = Log()
    control = control_of(plan_of(), log)
    for number in range(20):
        control.take_report(number / 5, report(5e6 if number < 10 else 1e6))
        assert len(log.events) == (number >= 12)
    assert log.events[0]["event"] == "link_changed"
    assert log.events[0]["why"] == "BW was 5 Mbit/s and is 1 Mbit/s: 3 observations in a row say so"


def test_on_a_slower_line_lbo_and_hbo_shrink_to_no_less_than_two_frames() -> None:
    state = configs.config()
    (port,), vcs = state.ports, state.vcs[:1]
    half = fit_to_line(port, vcs, LINE_BPS / 2)
    assert (half.capacity, half.lbo_cells, half.hbo_cells, half.qmax_cells) == (LINE_BPS / 2, 500, 1500, 4000)
    least = fit_to_line(port, vcs, 1.0)
    assert (least.capacity, least.lbo_cells, least.hbo_cells) == (2e6, 64, 116)
    more = fit_to_line(port, vcs, 2 * LINE_BPS)
    assert (more.capacity, more.lbo_cells, more.hbo_cells) == (2 * LINE_BPS, 1000, 3000), "the buffer is as it was"


async def run_on(*rates_bps: float, **port: Any) -> tuple[MemorySwitch, GfrControl, Log]:
    """The peer-to-peer switch whose line really drains these rates, each for 20 s in which all five VCs send."""
    switch, log, plan = MemorySwitch(), Log(), plan_of(**port)
    await deploy(plan, clients_of(switch))
    control = control_of(plan, log)
    async with clients_of(switch)("s1") as client:
        for second in range(20 * len(rates_bps)):
            for number in range(5):
                control.take_report(second + number / 5, report(rates_bps[second // 20]))
            for vc in range(1, 6):
                switch.arrive("vc_share", 10, egress_port=6, vc=vc)
            await control.poll(client, second + 1.0)
    return switch, control, log


def arguments(switch: MemorySwitch, table: str) -> list[dict[str, Any]]:
    """Of the actions of a table's entries."""
    return [entry.action.args for entry in switch.entries(table) if isinstance(entry.action, P4TableAction)]


async def test_capacity_lbo_hbo_and_shares_follow_the_line_with_one_write() -> None:
    switch, control, log = await run_on(40e6, follow_capacity=True)
    (scheme,) = arguments(switch, program.TABLE_PORT_SCHEME)
    assert (scheme["n"], scheme["lbo"], scheme["hbo"]) == (5, 772, 2315)
    assert sum(int(share["w"]) for share in arguments(switch, program.TABLE_VC_SHARE)) == pytest.approx(40e6, rel=1e-4)
    assert len(switch.batches) == 2, "the configuration, and once what was measured"
    (event,) = log.named("gfr_capacity")
    assert event["why"].startswith("the line drains 40 Mbit/s while frames wait (")
    assert event["why"].endswith("configured are 51.84 Mbit/s: C_GFR, LBO and HBO follow it")
    (port,) = control.status()["ports"]
    assert port["line_bps"] == pytest.approx(40e6, rel=1e-4)
    assert sum(port["w_bps"].values()) == pytest.approx(40e6, rel=1e-4)


async def test_a_line_back_at_its_configured_rate_has_the_configured_thresholds() -> None:
    switch, control, log = await run_on(40e6, LINE_BPS, follow_capacity=True)
    (scheme,) = arguments(switch, program.TABLE_PORT_SCHEME)
    assert (scheme["lbo"], scheme["hbo"], len(switch.batches)) == (1000, 3000, 3)
    assert len(log.named("gfr_capacity")) == 2
    assert "line_bps" not in control.status()["ports"][0]


async def test_by_default_it_is_reported_and_nothing_follows() -> None:
    switch, _, log = await run_on(40e6)
    (scheme,) = arguments(switch, program.TABLE_PORT_SCHEME)
    assert (scheme["lbo"], scheme["hbo"], len(switch.batches)) == (1000, 3000, 1)
    (event,) = log.named("gfr_capacity")
    assert event["why"].endswith("the configuration does not follow it")


async def test_a_line_as_configured_is_no_event() -> None:
    switch, _, log = await run_on(LINE_BPS * 1.04, follow_capacity=True)
    assert (len(switch.batches), [event["event"] for event in log.events]) == (1, ["gfr_active"])


async def test_a_line_below_the_sum_of_mcr_gives_every_vc_its_mcr() -> None:
    switch, _, _ = await run_on(10e6, follow_capacity=True)
    shares = sorted(int(one["w"]) for one in arguments(switch, program.TABLE_VC_SHARE))
    assert shares == [2_000_000, 4_000_000, 6_000_000, 8_000_000, 10_000_000]


async def test_a_vc_without_mcr_gets_a_bit_a_second_on_a_line_below_the_sum_of_mcr() -> None:
    switch, _, _ = await run_on(10e6, first_mcr="0bit", follow_capacity=True)
    assert sorted(int(one["w"]) for one in arguments(switch, program.TABLE_VC_SHARE))[:2] == [1, 4_000_000]


async def test_a_change_beside_a_loop_has_what_its_lines_carry() -> None:
    _, control, _ = await run_on(40e6, follow_capacity=True)
    run = configs.run_state()
    beside = load_program("gfr").plan_beside_loop(Config(), run, {"s1": control.status()})
    assert isinstance(beside, GfrPlan)
    plan = replace(plan_of(follow_capacity=True), active=beside.active, lines=beside.lines)
    assert [port.lbo_cells for port, _ in plan.ports("s1")] == [772]
    plan = replace(plan_of(), lines=beside.lines)
    assert [port.lbo_cells for port, _ in plan.ports("s1")] == [1000], "it does not follow its line"


# ---- with frames ---------------------------------------------------------------------------------------------------------

FILE = """
[[ports]]
switch = "s1"
port = 3
capacity = "2Mbit"
follow_capacity = true
queues = "fifo"
lbo_cells = 20
hbo_cells = 40
qmax_cells = 50
[[vcs]]
name = "vc1"
mcr = "100kbit"
mfs_bytes = 300
match = [{ switch = "s1", ingress_port = 1 }]
"""


@void_when_stalled
def test_the_views_show_bw_and_lbo_follows_a_line_that_has_become_slower(wired_switch: LiveSwitch) -> None:
    switch, file = wired_switch, wired_switch.folder / "gfr.toml"
    if switch.target != "embedded":
        pytest.skip("BMv2's line sends at once")
    state = read_topology(switch.folder)
    (one,) = state["switches"]
    one |= {"json": str(COMPILED / "gfr.json"), "p4info": str(COMPILED / "gfr.p4info.txtpb")}
    one["ports"][1]["link_layer"] = "none"
    write_topology(switch.folder, {**state, "program": "gfr"})
    file.write_text(FILE, encoding="utf-8")
    switch.fairlane("config", "init")
    switch.fairlane("config", "apply", str(file))

    def measured() -> float:
        send(switch, *[udp_frame(1001)] * 60)
        (row,) = switch.json("ports", "measure")
        assert {"switch", "port", "bw_bps", "tau_s"} == {*row}
        return row["bw_bps"]["value"] if row["bw_bps"] else 0.0

    with switch.loop():
        wait_until("BW of the line", lambda: measured() == pytest.approx(RATE_BPS, rel=0.05))
        assert "BW" in switch.fairlane("status")
        assert "reports" in switch.fairlane("describe", "s1:3")
        assert not switch.events("gfr_capacity")
        switch.fairlane("ports", "set", "s1:3", "--rate", "1Mbit")
        wait_until("BW of the slower line", lambda: measured() == pytest.approx(RATE_BPS / 2, rel=0.05))
        (event,) = wait_until("the event", lambda: switch.events("gfr_capacity"))
        assert event["followed"]

        def lbo_cells() -> int:
            return next(port["lbo_cells"] for port in switch.json("status")["ports"] if port["managed"])

        wait_until("LBO to follow", lambda: lbo_cells() < 20)
        assert switch.json("config", "diff")["differences"] == []
