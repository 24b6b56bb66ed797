# SPDX-License-Identifier: Apache-2.0
"""From the data plane to the meters: digests, and probes, which are sent when they are due. The only file that knows both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from finsy import P4PacketOut

from fairlane_controller.measure.port import PortMeter
from fairlane_controller.measure.tau import ETHERTYPE, PACKET_IN_REASON, Probe
from fairlane_controller.switch.client import SwitchClient

IDLE_S = 1.0
"""Where no port is to be probed, the next check comes after this time."""
DIGEST_T_RES = "t_res_t"
DIGEST_PORT_REPORT = "port_report_t"

_Meter = TypeVar("_Meter")
_Values = TypeVar("_Values")


async def listen_digest(
    client: SwitchClient,
    digest: str,
    meter_of: Callable[[int], _Meter | None],
    model: type[_Values],
    take: Callable[[_Meter, float, _Values], None],
) -> None:
    """Give every message of a digest to the meter of its port, until cancelled; times are the running loop's.

    Args:
        client: the switch.
        digest: its fields are `egress_port` and those of `model`, a dataclass.
        meter_of: the meter of a port; None: nothing is measured there.
        model: what the meter takes.
        take: the meter's method.
    """
    names = [one.name for one in fields(cast("Any", model))]
    async for values in client.digests(digest):
        now = asyncio.get_running_loop().time()
        for value in values:
            meter = meter_of(int(value["egress_port"]))
            if meter is not None:
                take(meter, now, model(*(int(value[name]) for name in names)))


async def send_probes(client: SwitchClient, ports: Callable[[], Mapping[int, PortMeter]]) -> None:
    """Send the probes of all `ports()` when they are due, until cancelled; times are the running loop's."""
    loop = asyncio.get_running_loop()
    while True:
        now, links = loop.time(), {port: meter.link for port, meter in ports().items()}
        frames = {port: link.send(now).emit() for port, link in links.items() if link.due_s(now) <= now}
        if frames:
            await client.send([P4PacketOut(frame, egress_port=port, _pad=0) for port, frame in frames.items()])
        next_s = min((link.check_s(now) for link in links.values()), default=now + IDLE_S)
        await asyncio.sleep(max(0.001, next_s - now))


async def listen_probes(client: SwitchClient, meter_of: Callable[[int], PortMeter | None]) -> None:
    """Give every probe that comes back to the meter of the port by which it left, until cancelled."""
    async for packet in client.switch.read_packets(eth_types=(ETHERTYPE,)):
        probe, meter = Probe.parse(packet.payload), meter_of(int(packet["ingress_port"]))
        if probe is not None and meter is not None and int(packet["reason"]) == PACKET_IN_REASON:
            meter.on_probe(asyncio.get_running_loop().time(), probe)
