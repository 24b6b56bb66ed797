# SPDX-License-Identifier: Apache-2.0
"""Measures the ports of a switch for a while, where no loop runs. Digests go to the primary only, so this client is the primary meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.measure import source
from fairlane_controller.measure.port import MeasureOptions, PortMeter
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
        message = f"{client.endpoint}: another controller is the primary, and only the primary gets measurements"
        raise FairlaneError(ErrorCode.NOT_PRIMARY, message)
    options = MeasureOptions(sample_includes_t_d=includes_t_d)
    meters = {port: PortMeter(options, line_bps=rates_bps.get(port)) for port in ports}
    for name in (source.DIGEST_T_RES, source.DIGEST_PORT_REPORT):
        await client.enable_digest(name)
    listeners = asyncio.gather(
        source.listen_reports(client, meters.get),
        source.listen_t_res(client, meters.get),
        source.listen_probes(client, meters.get),
        source.send_probes(client, lambda: meters),
    )
    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
        await asyncio.wait_for(listeners, listen_s)
    now_s = asyncio.get_running_loop().time()
    return {port: meter.measurement(now_s).to_json() for port, meter in sorted(meters.items())}
