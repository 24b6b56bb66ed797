# SPDX-License-Identifier: Apache-2.0
"""Measuring the ports of a switch for a while, where no loop runs: digests go to the primary only, so this is the primary meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.measure.port import MeasureOptions, PortMeter
from fairlane_controller.measure.source import (
    DIGEST_PORT_REPORT,
    DIGEST_T_RES,
    listen_probes,
    listen_reports,
    listen_t_res,
    send_probes,
)
from fairlane_controller.switch.client import SwitchClient


async def listen(
    client: SwitchClient, ports: Iterable[int], rates_bps: Mapping[int, float], listen_s: float, *, includes_t_d: bool
) -> dict[int, dict[str, Any]]:
    """What was measured of each of `ports` in `listen_s`, by port.

    Args:
        client: a connection that writes.
        ports: the managed ports.
        rates_bps: rates of ports as they are set, where they are known.
        listen_s: how long to listen, seconds.
        includes_t_d: `MeasureOptions.sample_includes_t_d`.

    Raises:
        FairlaneError: NOT_PRIMARY where another controller is the primary.
    """
    if not client.is_primary:
        raise FairlaneError(
            ErrorCode.NOT_PRIMARY,
            f"{client.endpoint}: another controller is the primary, and what is measured goes to it alone: nothing was asked of it",
        )
    options = MeasureOptions(sample_includes_t_d=includes_t_d)
    meters = {port: PortMeter(options, line_bps=rates_bps.get(port)) for port in ports}
    for name in (DIGEST_T_RES, DIGEST_PORT_REPORT):
        await client.enable_digest(name)
    listeners = [
        asyncio.create_task(listen_reports(client, meters.get)),
        asyncio.create_task(listen_t_res(client, meters.get)),
        asyncio.create_task(listen_probes(client, meters.get)),
        asyncio.create_task(send_probes(client, lambda: meters)),
    ]
    try:
        done, _ = await asyncio.wait(listeners, timeout=listen_s, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in listeners:
            task.cancel()
        await asyncio.gather(*listeners, return_exceptions=True)
    now_s = asyncio.get_running_loop().time()
    return {port: meter.measurement(now_s).to_json() for port, meter in sorted(meters.items())}
