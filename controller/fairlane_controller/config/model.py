# SPDX-License-Identifier: Apache-2.0
"""The one configuration file, `fairlane.toml`, as values: topology, loop, ports, and the sections of the programs.

The core has its own sections; what a program can be set to comes from its `Settings`, `Sections` and `LoopSettings` alone, and is joined
here (`config_model`). What one value alone can show is refused here; what needs others, or the topology, in `read.py`. A section that
the file has not got is None: what the switches hold of it is left alone.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from fairlane_controller.gnmi.ports import LinkLayer, Scheduler
from fairlane_controller.program.contract import Config, Place, Program, port_state
from fairlane_controller.program.quantities import (
    CellLimit,
    PacketLimit,
    Packets,
    Rate,
    SizeLimit,
)
from fairlane_controller.program.registry import loaded_programs
from fairlane_controller.program.settings import Section
from fairlane_controller.state.run_state import PortState, RunState
from fairlane_controller.switch.shared import QUEUES_MAX, PortNumber, SwitchName

# ---- topology --------------------------------------------------------------------------------------------------------


class TlsConfig(Section):
    """PEM files with which the controller talks to a switch."""

    ca: Path
    "The CA that signed the switch's certificate."
    cert: Path | None = None
    key: Path | None = None


class SwitchConfig(Section):
    """Where one switch is."""

    name: SwitchName
    grpc: Annotated[str, Field(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^\[\]:@\s]+):\d{1,5}$")]
    "HOST:PORT of its P4Runtime and gNMI server."
    device_id: int = Field(default=1, ge=0)
    tls: TlsConfig | None = None
    json_file: Path | None = Field(default=None, alias="json")
    "The compiled program (BMv2 JSON), for switches that no running topology describes; relative to the file."
    p4info: Path | None = None


class TopologyConfig(Section):
    """The topology that the file is for."""

    name: str = Field(default="", pattern=r"^[A-Za-z0-9_.-]*$")
    "Name of the running topology (its run-state folder); empty: the one that runs."
    switches: tuple[SwitchConfig, ...] = ()
    "Where switches are, instead of what the run state says, or, with a name, where there is none."
    target: Literal["embedded", "bmv2"] = "embedded"
    "Which switch it is, where there is no run state."


# ---- the loop --------------------------------------------------------------------------------------------------------


class LoopConfig(Section):
    """How the control loop works; what is not given is as in the loop's own defaults."""

    dry_run: bool = False
    "Measure and decide, write nothing."


# ---- ports --------------------------------------------------------------------------------------------------------------


class PortConfig(Section):
    """One port of a switch: its queue, and what the program does there. What is not given is left alone."""

    switch: SwitchName
    port: PortNumber
    rate: Rate | None = None
    "Rate of the port's shaper, bits on the line: 2Mbps."
    queue_packets: Packets | None = None
    "Packets that may wait in each queue of the port."
    queue_bytes: SizeLimit | None = None
    "Bytes that may wait in each queue."
    queue_cells: CellLimit | None = None
    "Cells that may wait in each queue."
    port_packets: PacketLimit | None = None
    "Packets that may wait in all queues of the port together."
    port_bytes: SizeLimit | None = None
    "Bytes that may wait in all queues together."
    port_cells: CellLimit | None = None
    "Cells that may wait in all queues together."
    scheduler: Scheduler | None = None
    "Which queue is served next: strict, wrr, drr, calendar or fq."
    link_layer: LinkLayer | None = None
    "What a frame takes on the line: none its bytes, ethernet preamble, gap and FCS too, atm 53 bytes a cell."
    queue_count: int | None = Field(default=None, ge=1, le=QUEUES_MAX)
    "Queues of the port; never fewer than a running switch has."
    enabled: bool | None = None
    "Whether the port is up."

    @property
    def place(self) -> Place:
        """(switch, port)."""
        return self.switch, self.port

    def state(self, run: RunState | None) -> PortState:
        """The port as the run state knows it, with the queue that this gives it."""
        given = self.model_dump(include={"queue_packets", "queue_bytes"}, exclude_none=True)
        return port_state(run, self.place).model_copy(update=given)


# ---- all of it -------------------------------------------------------------------------------------------------------


class FairlaneConfig(Section):
    """The whole file."""

    program: str | None = None
    "The P4 program that the file is for; refused on a topology that runs another one."
    topology: TopologyConfig = TopologyConfig()
    loop: LoopConfig | None = None
    ports: tuple[PortConfig, ...] | None = None

    def part_of(self, program: Program, run: RunState | None = None) -> Config:
        """What a program has of it; ports that say nothing of the program are not in it."""
        ports: dict[Place, Any] = {}
        for port in self.ports or ():
            given = {name: getattr(port, name) for name in port.model_fields_set & program.Settings.model_fields.keys()}
            if given:
                ports[port.place] = program.Settings.model_construct(**given)
        names = self.model_fields_set & program.Sections.model_fields.keys()
        sections = program.Sections.model_construct(**{name: getattr(self, name) for name in names})
        return Config(
            ports if self.ports is not None else None,
            sections if names else None,
            at={port.place: f"ports[{index}]" for index, port in enumerate(self.ports or ())},
            states={port.place: port.state(run) for port in self.ports or ()},
            given={port.place: frozenset(port.model_fields_set) for port in self.ports or ()},
        )


def _joined(base: type[Any], part: str, programs: tuple[Program, ...], **fields: Any) -> type[Any]:
    """A model of the core with the keys of the same part of programs."""
    parts = [getattr(one, part) for one in programs or loaded_programs()]
    bases = (base, *(one for one in parts if one.model_fields))
    return create_model(base.__name__, __base__=bases, __doc__=base.__doc__, **fields)


@cache
def loop_model(*programs: Program) -> type[LoopConfig]:
    """The model of `[loop]`: the core's keys and those of `programs`; without one those of all that have a name."""
    return _joined(LoopConfig, "LoopSettings", programs)


@cache
def config_model(*programs: Program) -> type[FairlaneConfig]:
    """The model of the whole file: the core's sections and those of `programs`; without one those of all that have a name."""
    port: Any = _joined(PortConfig, "Settings", programs)
    loop: Any = loop_model(*programs)
    ports: Any = tuple[port, ...] | None
    return _joined(FairlaneConfig, "Sections", programs, loop=(loop | None, None), ports=(ports, None))


# ---- for editors: taplo and others complete keys and underline mistakes by a schema ------------------------------------

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema; its descriptions are the model's own."""
    made = config_model().model_json_schema(by_alias=True, mode="validation")
    return {"$schema": DIALECT, **made, "title": "fairlane.toml"}


def json_schema_text() -> str:
    """As `docs/fairlane.schema.json` has it."""
    return json.dumps(json_schema(), indent=2) + "\n"
