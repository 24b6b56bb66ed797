# SPDX-License-Identifier: Apache-2.0
"""What is in force, as a configuration: read from the switches, the loop's settings and what is remembered of VCs."""

from __future__ import annotations

import asyncio
from typing import Any

from fairlane_controller.config.apply import read_applied
from fairlane_controller.config.model import FairlaneConfig, Place, config_model
from fairlane_controller.config.ports import read_ports
from fairlane_controller.history.sites import Sites
from fairlane_controller.program.contract import Program
from fairlane_controller.program.registry import check_program, folder_program, load_program
from fairlane_controller.state.ask import ask, loop_runs
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.difference import read_entries
from fairlane_controller.switch.entities import Entries

Plain = dict[str, Any]


async def read_current_config(run: RunState) -> tuple[FairlaneConfig, list[str]]:
    """The configuration in force, and what a file cannot say of it, in words."""
    program = load_program(run.program)
    async with Sites(run) as sites:
        shown = await asyncio.gather(*(_switch(sites, switch.name, program) for switch in run.switches))
    data: Plain = {"program": run.program, "topology": {"name": run.folder.name}}
    loop = await loop_options(run)
    if loop:
        data["loop"] = loop
    part = program.read_config({switch.name: one for switch, (one, _) in zip(run.switches, shown, strict=True)}, run)
    ports: dict[Place, Plain] = {
        place: {"switch": place[0], "port": place[1], **chosen.plain()} for place, chosen in (part.ports or {}).items()
    }
    for _, infos in shown:
        for place, settings in infos.items():
            ports[place] = {**ports.get(place, {}), **settings}
    if part.sections is not None:
        data |= part.sections.plain()
    data["ports"] = [ports[place] for place in sorted(ports)]
    return config_model(*folder_program(run.program)).model_validate(data), list(part.notes)


async def port_in_force(run: RunState, switch: str, port: int) -> Plain:
    """What the program is set to at one port, as `[[ports]]` has it: what a change that names single keys leaves as it is."""
    config, _ = await read_current_config(run)
    names = {"switch", "port", *load_program(run.program).Settings.model_fields}
    rows: list[Plain] = config.plain().get("ports", [])
    found = [row for row in rows if (row["switch"], row["port"]) == (switch, port)]
    return {key: value for row in found for key, value in row.items() if key in names} | {
        "switch": switch,
        "port": port,
    }


async def loop_options(run: RunState) -> Plain | None:
    """The running loop's options, else those that were applied last."""
    if loop_runs(run.folder):
        found = await ask(run.folder, {"op": "loop_options"})
        return dict(found) if found else None
    note = read_applied(run.folder)
    return note["config"].get("loop") if note else None


async def _switch(sites: Sites, name: str, program: Program) -> tuple[Entries, dict[Place, Plain]]:
    """The program's entries, and the settings of the ports."""
    infos = {
        (name, number): {"switch": name, "port": number, **known}
        for number, known in (await read_ports(sites, name)).items()
    }
    client = await sites.reader(name)
    check_program(program, client.table_names())
    return await read_entries(client, program.tables), infos
