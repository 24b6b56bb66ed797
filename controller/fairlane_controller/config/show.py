# SPDX-License-Identifier: Apache-2.0
"""What is in force, as a configuration: read from the switches, the loop's settings and what is remembered; and as TOML text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import tomlkit

from fairlane_controller.config.compare import read_applied, read_ports
from fairlane_controller.config.model import FairlaneConfig, config_model
from fairlane_controller.documents import is_array, is_table
from fairlane_controller.history.sites import Sites
from fairlane_controller.program.contract import Config
from fairlane_controller.program.registry import check_program, load_program
from fairlane_controller.state.ask import ask, loop_runs
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.changeset import read_entries
from fairlane_controller.switch.entities import Entries

Plain = dict[str, Any]
_RATES = ("rate", "capacity", "mcr", "pcr")


async def program_config(sites: Sites, switches: Iterable[str]) -> Config:
    """What the program of a topology is set to: at these switches, or by its document. Raises what a switch answers."""
    run = sites.run
    assert run is not None
    program = load_program(run.program)

    async def read(name: str) -> tuple[str, Entries]:
        client = await sites.reader(name)
        check_program(program, client.table_names())
        return name, await read_entries(client, program.tables)

    return program.read_config(dict(await asyncio.gather(*map(read, () if program.document else switches))), run)


async def read_current_config(run: RunState) -> tuple[FairlaneConfig, list[str]]:
    """The configuration in force, and what a file cannot say of it, in words. Raises what a switch answers."""
    program, names = load_program(run.program), [switch.name for switch in run.switches]
    async with Sites(run) as sites:
        found = await asyncio.gather(*(read_ports(sites, name) for name in names))
        part = await program_config(sites, names)
    ports = {(name, port): one for name, of in zip(names, found, strict=True) for port, one in of.items()}
    for place, chosen in (part.ports or {}).items():
        ports[place] = {**chosen.plain(), **ports.get(place, {})}
    rows = [{"switch": place[0], "port": place[1], **ports[place]} for place in sorted(ports)]
    loop = await _loop_options(run)
    sections: Plain = part.sections.plain() if part.sections is not None else {}
    data: Plain = {"program": run.program, "topology": {"name": run.folder.name}, **({"loop": loop} if loop else {})}
    model = config_model(program)
    return model.model_validate({**data, **sections, "ports": rows}), list(part.notes)


async def port_in_force(run: RunState, switch: str, port: int) -> Plain:
    """What the program is set to at one port, as `[[ports]]` has it: what a change that names single keys leaves as it is."""
    async with Sites(run) as sites:
        chosen = ((await program_config(sites, [switch])).ports or {}).get((switch, port))
    return {"switch": switch, "port": port, **(chosen.plain() if chosen else {})}


async def _loop_options(run: RunState) -> Plain | None:
    """The running loop's options, else those that were applied last."""
    if loop_runs(run.folder):
        return await ask(run.folder, {"op": "loop_options"})
    note = read_applied(run.folder)
    return note["config"].get("loop") if note else None


# ---- text ------------------------------------------------------------------------------------------------------------


def to_toml(config: FairlaneConfig, header: Sequence[str] = ()) -> str:
    """A configuration as TOML text, with units, that `read.py` reads back to the same values.

    Args:
        config: the configuration.
        header: comment lines above it.
    """
    return "".join(f"# {line}\n" for line in header) + tomlkit.dumps(with_units(config.plain()))


def with_units(value: Any, key: str = "") -> Any:
    """A value of a configuration, or of the key `key`, with rates as texts, and without what is None, which TOML cannot say."""
    if is_table(value):
        return {name: with_units(one, name) for name, one in value.items() if one is not None}
    if is_array(value):
        return [with_units(one) for one in value]
    return rate_text(value) if key in _RATES and isinstance(value, (int, float)) else value


def rate_text(rate_bps: float) -> str:
    """`51.84Mbit`: the largest unit in which it is exact."""
    for factor, unit in ((1e9, "Gbit"), (1e6, "Mbit"), (1e3, "kbit")):
        text = f"{rate_bps / factor:.9f}".rstrip("0").rstrip(".")
        if rate_bps >= factor and float(text) * factor == rate_bps:
            return f"{text}{unit}"
    return f"{rate_bps:.6f}".rstrip("0").rstrip(".") + "bit"
