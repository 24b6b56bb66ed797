# SPDX-License-Identifier: Apache-2.0
"""`p4src/gfr.p4` (docs/concepts/gfr.md): VCs with minimum rates on managed ports."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairlane import (
    Config,
    Entries,
    ErrorCode,
    FairlaneError,
    Program,
    Reading,
    Reason,
    Row,
    RunState,
    SwitchState,
)

from . import names, view
from .check import problems_of
from .config import GfrLoop, GfrPort, GfrSections, with_changes
from .plan import GFR_DOCUMENT, GfrPlan, gfr_store, make_plan, plan_in_force


class Gfr(Program):
    """Guaranteed frame rate."""

    name = "gfr"
    title = "GFR: minimum rates for VCs, by selective discard and weighted shares of the buffer."
    document = GFR_DOCUMENT
    tables = names.TABLES
    Settings = GfrPort
    Sections = GfrSections
    LoopSettings = GfrLoop
    control = "control:GfrTopology"
    first_commands = ("gfr apply FILE", "gfr vc list")
    loop_tables = dict.fromkeys(names.TABLES, "use `fairlane gfr vc` or `fairlane gfr`")
    units = {
        **dict.fromkeys(("qmax", "lbo", "hbo", "threshold"), "cells"),
        **dict.fromkeys(("z", "alpha"), "1/256"),
        **dict.fromkeys(("share", "inv_share", "inv_rest"), "1/65536"),
        "w": "bit/s",
    }
    columns = view.COLUMNS
    kinds = view.KINDS
    measured = view.MEASURED
    measuring_needs = view.MEASURING_NEEDS
    frequent_events = ("gfr_active",)
    reasons = {
        12: Reason("port_full", "the port's queue was full", in_queue=True, in_rows=True),
        13: Reason("gfr", "refused by the port's GFR scheme", in_queue=True, in_rows=True),
        14: Reason("pcr", "above the VC's peak rate, at its edge", in_rows=True),
        15: Reason("mfs", "longer than the VC's longest frame, at its edge", in_rows=True),
    }
    meanings = {
        "qmax": "the buffer was full (QT at QMAX)",
        "case_1": "CLP 1 below LBO: the VC has more than its share waiting and is faster than w_i",
        "case_2": "CLP 1 between LBO and HBO: the VC has more than its share waiting",
        "case_3": "CLP 1 above HBO",
        "case_5": "CLP 0 between LBO and HBO: more than its share waiting, and faster than w_i",
        "case_6": "CLP 0 above HBO",
        "hbo": "QT above HBO",
        "threshold": "the scheme's threshold for the VC was reached",
        "chance": "DFBA's chance hit it",
    }

    def ports_of(self, switch: str, current: Entries) -> dict[int, Any]:
        """The ports that have a scheme."""
        del switch
        ports = [int(entry["egress_port"]) for entry in current.values() if entry.table_id == names.TABLE_PORT_SCHEME]
        return {port: self.Settings() for port in sorted(ports)}

    def check(self, config: Config, run: RunState | None) -> Iterator[str]:
        """Its own checks, with the numbers that the ports have in the file."""
        ports = config.ports or {}
        for place, port in ports.items():
            for key in sorted(port.model_fields_set - {"mtu_bytes", "capacity"}) if port.capacity is None else ():
                yield f"{config.at[place]}.{key}: is of GFR's ports, which have a capacity (C_GFR): give capacity, or leave {key} out"
        part = with_changes(config, gfr_store(run.folder if run is not None else None).get().config)
        yield from problems_of(part, run, config.at) if part is not None else ()

    def plan(self, config: Config, run: RunState | None) -> GfrPlan:
        """What a configuration leaves out stays as it is remembered."""
        state = gfr_store(run.folder if run is not None else None).get()
        part = with_changes(config, state.config)
        if part is None and run is not None:
            return plan_in_force(state, run)
        return make_plan(part or state.config, state, time.time(), run, "the configuration")

    def plan_beside_loop(self, config: Config, run: RunState, status: Mapping[str, Any]) -> GfrPlan:
        """With the VCs that are active, and what the lines carry, as a running loop has them."""
        return self.plan(config, run).with_loop(status)

    def initial_plan(self, run: RunState, scheme: str | None = None) -> GfrPlan:
        """What is remembered."""
        if scheme is not None:
            raise FairlaneError(ErrorCode.BAD_INPUT, "--scheme: with the program gfr use `fairlane gfr set --scheme`")
        return self.plan(Config(), run)

    def remembered(self, run: RunState | None) -> Config:
        """The configuration in force."""
        config = gfr_store(run.folder if run is not None else None).get().config
        plain = config.model_dump(mode="json", exclude_defaults=True)
        return self.config_of({**plain, "clp_dscp": config.clp_dscp, "vcs": plain.get("vcs", ())})

    async def rows(self, reading: Reading, switch: SwitchState | None) -> Sequence[Row]:
        """Managed ports and VCs."""
        del switch
        return await view.read_rows(reading)
