# SPDX-License-Identifier: Apache-2.0
"""From the switch's packet I/O to the meters: sends the ports' probes when they are due, hands over those that come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from finsy import P4PacketOut

from fairlane_controller.measure.probe import ETHERTYPE, PACKET_IN_REASON, Probe
from fairlane_controller.measure.tau import LinkProbe
from fairlane_controller.switch.client import SwitchClient

IDLE_S = 1.0
"""Where no port is to be probed, it is looked again after this time."""


class ProbedPort(Protocol):
    """What a prober needs of a port's meter."""

    link: LinkProbe

    def on_probe(self, now_s: float, probe: Probe) -> None:
        """A probe that came back."""
        ...


async def send_probes(client: SwitchClient, ports: Callable[[], Mapping[int, ProbedPort]]) -> None:
    """Send the probes of all `ports()` when they are due, until cancelled; times are the running loop's."""
    loop = asyncio.get_running_loop()
    while True:
        now, meters = loop.time(), ports()
        due = {port: meter.link for port, meter in meters.items() if meter.link.due_s(now) <= now}
        if due:
            frames = {port: link.send(now).emit() for port, link in due.items()}
            await client.send([P4PacketOut(frame, egress_port=port, _pad=0) for port, frame in frames.items()])
        next_s = min((meter.link.check_s(now) for meter in meters.values()), default=now + IDLE_S)
        await asyncio.sleep(max(0.001, next_s - now))


async def listen_probes(client: SwitchClient, meter_of: Callable[[int], ProbedPort | None]) -> None:
    """Give every probe that comes back to the meter of the port by which it left, until cancelled."""
    loop = asyncio.get_running_loop()
    async for packet in client.switch.read_packets(eth_types=(ETHERTYPE,)):
        probe = Probe.parse(packet.payload)
        meter = meter_of(int(packet["ingress_port"]))
        if probe is not None and meter is not None and int(packet["reason"]) == PACKET_IN_REASON:
            meter.on_probe(loop.time(), probe)
