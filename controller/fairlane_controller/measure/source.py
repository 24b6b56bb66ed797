# SPDX-License-Identifier: Apache-2.0
"""From the data plane's digests to the meters: the one place that knows both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlane_controller.measure.port import PortMeter, PortReport, TResSample
from fairlane_controller.switch.client import SwitchClient

DIGEST_T_RES = "t_res_t"
DIGEST_PORT_REPORT = "port_report_t"

MeterOf = Callable[[int], PortMeter | None]


async def listen_reports(client: SwitchClient, meter_of: MeterOf) -> None:
    """Give every `port_report_t` to its port's meter, until cancelled; times are the running loop's."""
    loop = asyncio.get_running_loop()
    async for values in client.digests(DIGEST_PORT_REPORT):
        now = loop.time()
        for value in values:
            meter = meter_of(int(value["egress_port"]))
            if meter is not None:
                meter.on_report(
                    now,
                    PortReport(
                        interval_us=int(value["interval_us"]),
                        busy_us=int(value["busy_us"]),
                        busy_bytes=int(value["busy_bytes"]),
                        busy_packets=int(value["busy_packets"]),
                        flows=int(value["flows"]),
                        waiting_packets=int(value["waiting_packets"]),
                        waiting_bytes=int(value["waiting_bytes"]),
                    ),
                )


async def listen_t_res(client: SwitchClient, meter_of: MeterOf) -> None:
    """Give every `t_res_t` to its port's meter, until cancelled; times are the running loop's."""
    loop = asyncio.get_running_loop()
    async for values in client.digests(DIGEST_T_RES):
        now = loop.time()
        for value in values:
            meter = meter_of(int(value["egress_port"]))
            if meter is not None:
                sample = TResSample(int(value["flow_hash"]), int(value["frame_bytes"]), int(value["t_res_us"]))
                meter.on_t_res(now, sample)
