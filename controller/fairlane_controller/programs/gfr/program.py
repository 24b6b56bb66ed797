# SPDX-License-Identifier: Apache-2.0
"""`p4src/gfr.p4` (docs/concepts/gfr.md): VCs with minimum rates on managed ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairlane import Config, Entries, Program, Reading, Reason, Row, RunState, SwitchState

from . import names, view
from .check import problems_of
from .config import GfrLoop, GfrPort, GfrSections, GfrState, gfr_store
from .plan import GfrPlan, make_plan


class Gfr(Program):
    """Guaranteed frame rate."""

    name = "gfr"
    title = "GFR: minimum rates for VCs, by selective discard and weighted shares of the buffer."
    document = names.PROGRAM
    tables = names.TABLES
    Settings = GfrPort
    Sections = GfrSections
    LoopSettings = GfrLoop
    control = "control:GfrTopology"
    first_commands = ("config apply FILE", "gfr vc list")
    loop_tables = dict.fromkeys(names.TABLES, "use `fairlane gfr vc` or `fairlane config set`")
    units = {
        **dict.fromkeys(("qmax", "lbo", "hbo", "threshold"), "cells"),
        **dict.fromkeys(("z", "alpha"), "1/256"),
        **dict.fromkeys(("share", "inv_share", "inv_rest"), "1/65536"),
        "w": "bit/s",
    }
    columns = view.COLUMNS
    kinds = view.KINDS
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
        missing = [config.at[place] for place, port in (config.ports or {}).items() if port.capacity is None]
        yield from (f"{at}.capacity: must be given: it is C_GFR of a port with other keys of GFR" for at in missing)
        yield from problems_of(self._state(run).changed_by(config), run, config.at)

    def plan(self, config: Config, run: RunState | None) -> GfrPlan:
        """What a configuration leaves out stays as it is remembered."""
        before = self._state(run)
        return make_plan(before.changed_by(config), before, run, "the configuration")

    def plan_beside_loop(self, config: Config, run: RunState, status: Mapping[str, Any]) -> GfrPlan:
        """With the VCs that are active, as a running loop has them."""
        active = {(name, port["port"]): port["active"] for name, of in status.items() for port in of["ports"]}
        return replace(self.plan(config, run), active=active)

    def remembered(self, run: RunState | None) -> Config:
        """The configuration in force."""
        return self.config_of(self._state(run).model_dump(mode="json", exclude={"numbers"}, exclude_defaults=True))

    @staticmethod
    def _state(run: RunState | None) -> GfrState:
        return gfr_store(run.folder if run is not None else None).get()

    async def rows(self, reading: Reading, switch: SwitchState | None) -> Sequence[Row]:
        """Managed ports and VCs."""
        del switch
        return await view.read_rows(reading)
