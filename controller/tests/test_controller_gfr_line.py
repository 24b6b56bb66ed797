# SPDX-License-Identifier: Apache-2.0
"""What is measured of a port that GFR manages, and what follows where the configuration lets it: capacity, LBO, HBO, w_i."""

from __future__ import annotations

from typing import Any

import gfr_configs as configs
import pytest
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.measure.changes import LinkChange
from fairlane_controller.measure.port import MeasureOptions
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.config import parse_config
from fairlane_controller.programs.gfr.control import GfrControl
from fairlane_controller.programs.gfr.line import LineMeter, LineReport, scale_to_capacity
from fairlane_controller.programs.gfr.plan import GfrState, make_plan
from fairlane_controller.programs.gfr.topology import GfrTopology
from fairlane_controller.switch.client import Endpoint
from finsy import P4TableAction
from gfr_memory import MemorySwitch, clients_of, deploy

LINE_BPS = 51_840_000
FRAME_BYTES, FRAME_CELLS = 1014, 21


def report(rate_bps: float, frames: int = 100) -> LineReport:
    """What an atm line of this rate says of so many frames."""
    return LineReport(round(1e6 * frames * FRAME_CELLS * 53 * 8 / rate_bps), frames * FRAME_BYTES, frames * FRAME_CELLS)


@pytest.mark.parametrize(
    ("layer", "bits"), [("atm", FRAME_CELLS * 53 * 8), ("", FRAME_CELLS * 53 * 8), ("none", FRAME_BYTES * 8)]
)
def test_the_drain_rate_is_what_the_line_counts(layer: str, bits: int) -> None:
    meter = LineMeter(MeasureOptions(), link_layer=layer)
    for number in range(5):
        meter.on_line_report(number / 5, LineReport(1000, FRAME_BYTES, FRAME_CELLS))
    rate = meter.measurement(1.0).bw_bps
    assert rate is not None
    assert rate.value == pytest.approx(bits / 1e-3)


def test_an_ethernet_lines_own_bytes_are_in_no_count() -> None:
    meter = LineMeter(MeasureOptions(), link_layer="ethernet")
    meter.on_line_report(0.0, LineReport(1000, FRAME_BYTES, FRAME_CELLS))
    assert meter.measurement(0.0).bw_bps is None


def test_a_change_of_the_line_is_told_after_three_reports() -> None:
    changes: list[LinkChange] = []
    meter = LineMeter(MeasureOptions(), tell=changes.append, link_layer="atm")
    for number in range(20):
        meter.on_line_report(number / 5, report(5e6 if number < 10 else 1e6))
        assert len(changes) == (number >= 12)
    assert changes[0].why == "BW was 5 Mbit/s and is 1 Mbit/s: 3 reports of the busy port in a row say so"


def test_on_a_slower_line_lbo_and_hbo_hold_as_much_time_and_never_less_than_two_frames() -> None:
    (port,) = configs.config().ports
    half = scale_to_capacity(port, LINE_BPS / 2, 1e6)
    assert (half.capacity, half.lbo_cells, half.hbo_cells, half.qmax_cells) == (LINE_BPS / 2, 500, 1500, 4000)
    least = scale_to_capacity(port, 1.0, 2e6)
    assert (least.capacity, least.lbo_cells, least.hbo_cells) == (2e6, 64, 116)
    more = scale_to_capacity(port, 2 * LINE_BPS, 1e6)
    assert (more.capacity, more.lbo_cells, more.hbo_cells) == (2 * LINE_BPS, 1000, 3000), "the buffer is as it was"


class Log:
    """Events, remembered."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        """One event."""
        self.events.append({"event": event, **fields})


async def run_on(rate_bps: float, first_mcr: str = "2Mbit", **port: Any) -> tuple[MemorySwitch, GfrControl, Log]:
    """The peer-to-peer switch whose line really drains `rate_bps`, after 20 s in which all five VCs sent."""
    data = configs.changed("vcs.0.mcr", first_mcr)
    data["ports"][0] |= port
    switch, log = MemorySwitch(), Log()
    plan = make_plan(parse_config(data, "gfr.toml"), GfrState(), 0.0, None, "x")
    await deploy(plan, clients_of(switch))
    agent = SwitchAgent(Endpoint("s1", "memory"), GfrTopology(plan=plan), log).control
    assert isinstance(agent, GfrControl)
    line = agent.line(6)
    assert line is not None
    async with clients_of(switch)("s1") as client:
        for second in range(20):
            for number in range(5):
                line.on_line_report(second + number / 5, report(rate_bps))
            for vc in range(1, 6):
                switch.arrive("vc_share", 10, egress_port=6, vc=vc)
            await agent.keep(client, second + 1.0)
    return switch, agent, log


def arguments(switch: MemorySwitch, table: str) -> list[dict[str, Any]]:
    return [entry.action.args for entry in switch.entries(table) if isinstance(entry.action, P4TableAction)]


async def test_capacity_lbo_hbo_and_shares_follow_the_line_with_one_write() -> None:
    switch, agent, log = await run_on(40e6, follow_capacity=True)
    (scheme,) = arguments(switch, program.TABLE_PORT_SCHEME)
    assert (scheme["n"], scheme["lbo"], scheme["hbo"]) == (5, 772, 2315)
    assert sum(int(share["w"]) for share in arguments(switch, program.TABLE_VC_SHARE)) == pytest.approx(40e6, rel=1e-4)
    assert len(switch.batches) == 2, "the configuration, and once what was measured"
    told = [event for event in log.events if event["event"] == "gfr_capacity"]
    assert [event["why"].partition(" (")[0] for event in told] == ["the line drains 40 Mbit/s while frames wait"]
    assert told[0]["why"].endswith("configured are 51.84 Mbit/s: C_GFR, LBO and HBO follow it")
    assert agent.status()["ports"][0]["capacity_bps"] == pytest.approx(40e6, rel=1e-4)


async def test_without_leave_it_is_told_and_nothing_follows() -> None:
    switch, _, log = await run_on(40e6)
    (scheme,) = arguments(switch, program.TABLE_PORT_SCHEME)
    assert (scheme["lbo"], scheme["hbo"], len(switch.batches)) == (1000, 3000, 1)
    (told,) = [event for event in log.events if event["event"] == "gfr_capacity"]
    assert told["why"].endswith("the configuration does not follow it")


async def test_a_line_as_configured_is_no_event() -> None:
    switch, _, log = await run_on(LINE_BPS * 1.01, follow_capacity=True)
    assert (len(switch.batches), [event["event"] for event in log.events]) == (1, ["gfr_active"])
    assert "N is 5" in log.events[0]["why"]


async def test_a_line_below_the_sum_of_mcr_gives_every_vc_its_mcr() -> None:
    switch, _, _ = await run_on(10e6, follow_capacity=True)
    w = {int(entry["vc"]): entry.action for entry in switch.entries(program.TABLE_VC_SHARE)}
    shares = [action.args["w"] for _, action in sorted(w.items()) if isinstance(action, P4TableAction)]
    assert [int(share) for share in shares] == [2_000_000, 4_000_000, 6_000_000, 8_000_000, 10_000_000]


async def test_a_vc_without_mcr_gets_a_bit_a_second_on_a_line_below_the_sum_of_mcr() -> None:
    switch, _, _ = await run_on(10e6, first_mcr="0bit", follow_capacity=True)
    assert sorted(int(one["w"]) for one in arguments(switch, program.TABLE_VC_SHARE))[:2] == [1, 4_000_000]
