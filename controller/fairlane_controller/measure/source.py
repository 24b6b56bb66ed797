# SPDX-License-Identifier: Apache-2.0
"""From the data plane's digests to the meters: the one place that knows both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, cast

from fairlane_controller.measure.port import PortMeter, PortReport, TResSample
from fairlane_controller.switch.client import SwitchClient

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
    loop, names = asyncio.get_running_loop(), [one.name for one in fields(cast("Any", model))]
    async for values in client.digests(digest):
        now = loop.time()
        for value in values:
            meter = meter_of(int(value["egress_port"]))
            if meter is not None:
                take(meter, now, model(*(int(value[name]) for name in names)))


async def listen_reports(client: SwitchClient, meter_of: Callable[[int], PortMeter | None]) -> None:
    """Give every `port_report_t` to its port's meter, until cancelled."""
    await listen_digest(client, DIGEST_PORT_REPORT, meter_of, PortReport, PortMeter.on_report)


async def listen_t_res(client: SwitchClient, meter_of: Callable[[int], PortMeter | None]) -> None:
    """Give every `t_res_t` to its port's meter, until cancelled."""
    await listen_digest(client, DIGEST_T_RES, meter_of, TResSample, PortMeter.on_t_res)
