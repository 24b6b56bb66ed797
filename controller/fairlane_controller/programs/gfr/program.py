# SPDX-License-Identifier: Apache-2.0
"""`p4src/gfr.p4` (docs/concepts/gfr.md): VCs with minimum rates on managed ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairlane import Config, Entries, Program, Reading, Reason, Row, RunState, SwitchState
from fairlane.changes import STATE_FILE

from . import names, view
from .check import problems_of
from .config import GfrPort, GfrSections, GfrState, gfr_store
from .plan import GfrPlan, make_plan


class Gfr(Program):
    """Guaranteed frame rate."""

    name = "gfr"
    title = "GFR: minimum rates for VCs, by selective discard and weighted shares of the buffer."
    document = names.PROGRAM
    tables = names.TABLES
    Settings = GfrPort
    Sections = GfrSections
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
    measured = view.MEASURED
    measuring_needs = view.MEASURING_NEEDS
    frequent_events = ("gfr_active",)
    reasons = {
        12: Reason("port_full", "the port's queue was full", in_queue=True),
        13: Reason("gfr", "refused by the port's GFR scheme", in_queue=True),
        14: Reason("pcr", "above the VC's peak rate, at its edge", in_queue=True),
        15: Reason("mfs", "longer than the VC's longest frame, at its edge", in_queue=True),
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
        before, is_given = self._state(run), config.ports is not None or config.sections is not None
        source = "the configuration" if is_given else f"{STATE_FILE}: {self.document}"
        return make_plan(before.changed_by(config), before, run, source)

    def plan_beside_loop(self, config: Config, run: RunState, status: Mapping[str, Any]) -> GfrPlan:
        """With the VCs that are active and what the lines carry, as a running loop has them."""
        ports = {(name, port["port"]): port for name, of in status.items() for port in of["ports"]}
        active = {place: port["active"] for place, port in ports.items()}
        lines = {place: port["line_bps"] for place, port in ports.items() if "line_bps" in port}
        return replace(self.plan(config, run), active=active, lines=lines)

    def remembered(self, run: RunState | None) -> Config:
        """The configuration in force."""
        return self.config_of(
            self._state(run).model_dump(mode="json", exclude={"numbers", "used"}, exclude_defaults=True)
        )

    @staticmethod
    def _state(run: RunState | None) -> GfrState:
        return gfr_store(run.folder if run is not None else None).get()

    async def rows(self, reading: Reading, switch: SwitchState | None) -> Sequence[Row]:
        """Managed ports and VCs."""
        del switch
        return await view.read_rows(reading)
