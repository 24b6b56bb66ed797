# SPDX-License-Identifier: Apache-2.0
"""Measurements for `fairlane measure`: the loop's where one runs, else a listening time of our own."""

from __future__ import annotations

import asyncio
from typing import Any

from fairlane_controller.cli.targets import Targets
from fairlane_controller.errors import out_of_range
from fairlane_controller.loop.control import ask
from fairlane_controller.measure.port import MeasureOptions, PortMeter
from fairlane_controller.measure.source import listen_reports, listen_t_res
from fairlane_controller.switch import program
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.policies import read_limits

MIN_LISTEN_S, MAX_LISTEN_S = 0.1, 600.0


async def measure(targets: Targets, listen_s: float) -> list[dict[str, Any]]:
    """One row a managed port. Digests go to the primary only, so without a loop this becomes the primary meanwhile."""
    folder = targets.loop_folder
    if folder is not None:
        names = {e.name for e in targets.endpoints}
        return [row for row in await ask(folder, {"op": "measure"}) if row["switch"] in names]
    if not MIN_LISTEN_S <= listen_s <= MAX_LISTEN_S:
        raise out_of_range("--for", listen_s, MIN_LISTEN_S, MAX_LISTEN_S, "seconds")
    bmv2 = targets.run is not None and targets.run.target == "bmv2"
    options = MeasureOptions(sample_includes_t_d=not bmv2)
    lists = await asyncio.gather(*(_listen(e, options, listen_s) for e in targets.endpoints))
    return [row for rows in lists for row in rows]


async def _listen(endpoint: Endpoint, options: MeasureOptions, listen_s: float) -> list[dict[str, Any]]:
    async with SwitchClient(endpoint, write=True) as client:
        meters = {port: PortMeter(options) for port in await read_limits(client)}
        for name in (program.DIGEST_T_RES, program.DIGEST_PORT_REPORT):
            await client.enable_digest(name, max_list=64, max_timeout_s=0.02, ack_timeout_s=1.0)
        listeners = [
            asyncio.create_task(listen_reports(client, meters.get)),
            asyncio.create_task(listen_t_res(client, meters.get)),
        ]
        try:
            done, _ = await asyncio.wait(listeners, timeout=listen_s, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in listeners:
                task.cancel()
            await asyncio.gather(*listeners, return_exceptions=True)
        now = asyncio.get_running_loop().time()
        return [
            {"switch": endpoint.name, "port": port, **meter.measurement(now).to_json()}
            for port, meter in sorted(meters.items())
        ]
