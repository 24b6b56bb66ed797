# SPDX-License-Identifier: Apache-2.0
"""`p4src/gfr.p4` (docs/design-gfr.md): VCs with minimum rates on managed ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlane import Entries, Program, Reading, Reason, Row, SwitchState

from fairlane_controller.programs.gfr import names, view


class Gfr(Program):
    """Guaranteed frame rate."""

    name = "gfr"
    title = "GFR: minimum rates for VCs, by selective discard and weighted shares of the buffer."
    p4 = "../../../../p4src/compiled/gfr"
    tables = names.TABLES
    control = "topology:GfrTopology"
    loop_tables = dict.fromkeys(names.TABLES, "use `fairlane vc` or `fairlane gfr`")
    columns = view.COLUMNS
    kinds = view.KINDS
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
        "pcr": "above the VC's peak rate, at its edge",
        "mfs": "longer than the VC's longest frame, at its edge",
    }

    def ports_of(self, switch: str, current: Entries) -> dict[int, Any]:
        """The ports that have a scheme."""
        del switch
        ports = [int(entry["egress_port"]) for entry in current.values() if entry.table_id == names.TABLE_PORT_SCHEME]
        return {port: self.Settings() for port in sorted(ports)}

    async def rows(self, reading: Reading, switch: SwitchState | None) -> Sequence[Row]:
        """Managed ports and VCs."""
        del switch
        return await view.read_rows(reading)
