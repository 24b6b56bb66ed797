# SPDX-License-Identifier: Apache-2.0
"""`p4src/qthresh.p4` (docs/design.md): per-flow thresholds of managed ports."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane import Program, Reading, Reason, Row, SwitchState

from fairlane_controller.programs.qthresh import names, view


class Qthresh(Program):
    """Per-flow queue thresholds."""

    name = "qthresh"
    title = "Qthresh: a threshold for each TCP flow, computed from the link and tuned by goodput."
    p4 = "../../../../p4src/compiled/qthresh"
    tables = (names.TABLE_PORT_LIMIT, names.TABLE_POLICY)
    control = "topology:QthreshTopology"
    kept_tables = tuple(names.TABLE_FLOW.values())
    loop_tables = {
        **dict.fromkeys(names.TABLE_FLOW.values(), "it makes and deletes flow entries itself"),
        names.TABLE_POLICY: "use `fairlane threshold` or `fairlane scheme`",
    }
    columns = view.COLUMNS
    kinds = view.KINDS
    reasons = {
        int(names.DropReason.QTHRESH): Reason(
            "qthresh", "the flow had its threshold of packets waiting", in_queue=True
        ),
        int(names.DropReason.PORT_FULL): Reason("port_full", "the port's queue was full", in_queue=True),
    }

    async def rows(self, reading: Reading, switch: SwitchState | None) -> Sequence[Row]:
        """Managed ports, classes and flows."""
        del switch
        return await view.read_rows(reading)
