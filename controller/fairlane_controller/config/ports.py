# SPDX-License-Identifier: Apache-2.0
"""Settings of ports that P4Runtime cannot set (rate, queue, scheduler, state): what a file says beside what the switch has."""

from __future__ import annotations

from enum import Enum
from typing import Any

from fairlane_controller.config.model import PortConfig
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortChange, PortInfo
from fairlane_controller.history.sites import Sites

Plain = dict[str, Any]

NAMES = {option.key or name: name for name, option in PortChange.options.items()}
"""Keys of a port in the file that are such settings, and their names in `PortChange`."""


async def read_infos(sites: Sites, switch: str) -> dict[int, PortInfo]:
    """What a switch says of its ports; raises REFUSED where the target serves nothing of it."""
    async with sites.ports(switch) as ports:
        return {info.port: info for info in await ports.ports()}


async def read_ports(sites: Sites, switch: str) -> dict[int, Plain]:
    """The settings of each port with the file's keys; nothing where the target serves none. Raises when it does not answer."""
    try:
        infos = await read_infos(sites, switch)
    except FairlaneError as ex:
        if ex.code in (ErrorCode.REFUSED, ErrorCode.BAD_FILE):
            return {}
        raise
    return {number: current_settings(info) for number, info in infos.items()}


def current_value(info: PortInfo, key: str) -> Any:
    """The current setting of the switch, in the form of the file; None when it is not known."""
    if key == "enabled":
        return info.admin_up
    value = getattr(info, NAMES[key])
    return 0 if value is None and key.endswith(("_bytes", "_cells", "port_packets")) else value


def current_settings(info: PortInfo) -> Plain:
    """The settings that are known, without limits that there are not."""
    data = {key: current_value(info, key) for key in NAMES}
    return {key: value for key, value in data.items() if value is not None and (value or not key.endswith(("_packets", "_bytes", "_cells")))}  # fmt: skip


def file_settings(port: PortConfig) -> Plain:
    """The settings that the file says of a port."""
    found = {key: getattr(port, key) for key in NAMES}
    said = {key: value.value if isinstance(value, Enum) else value for key, value in found.items() if value is not None}
    if "rate" in said:
        said["rate"] = round(said["rate"])
    return said


def differing(port: PortConfig, info: PortInfo) -> tuple[Plain, Plain]:
    """(expected value of the file, current value of the switch) of the settings that differ."""
    said = file_settings(port)
    keys = [key for key, value in said.items() if current_value(info, key) != value]
    return {key: said[key] for key in keys}, {key: current_value(info, key) for key in keys}


def change_of(settings: Plain) -> Plain:
    """The file's keys as `gnmi.PortChange` names them."""
    return {NAMES[key]: value for key, value in settings.items()}
