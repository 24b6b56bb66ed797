# SPDX-License-Identifier: Apache-2.0
"""The contract of `p4src/gfr.p4` (docs/p4.md): names, sizes, verdicts, and the indices of its counters."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from fairlane import P4TableAction, P4TableEntry
from fairlane.measure import CountedState
from fairlane.switch import COUNTER_ADMITTED, PORTS

PROGRAM = "gfr"
VC_IDS = 1 << 16
"""Ids of VCs are 1..65535; 0 is a frame of no VC."""
VC_SLOTS = 4096
"""Slots of (egress port, VC); behind them one slot a port for frames of no VC."""
NO_VC_SLOT = VC_SLOTS
"""Plus the egress port: the slot of its frames of no VC."""
CELLS_MAX = 65_535
"""QT and Q_i are exact up to here."""

TABLE_PORT_SCHEME = "port_scheme"
TABLE_VC_CLASSIFY = {4: "vc_classify", 6: "vc_classify_v6"}
TABLE_CLP_MARK = "clp_mark"
TABLE_VC_EDGE = "vc_edge"
TABLE_VC_POLICE = "vc_police"
TABLE_VC_POLICE_MARKED = "vc_police_marked"
TABLE_VC_SHARE = "vc_share"
TABLES = (
    TABLE_VC_SHARE, TABLE_PORT_SCHEME, TABLE_CLP_MARK, TABLE_VC_POLICE, TABLE_VC_POLICE_MARKED, TABLE_VC_EDGE, *TABLE_VC_CLASSIFY.values(),
)  # fmt: skip
"""A VC's share and meters are there before a packet is said to be its; deletes go the other way round."""

COUNTER_VERDICTS = "vc_verdicts"
REGISTER_PORT_CELLS = "port_cells"
REGISTER_VC_CELLS = "vc_cells"
REGISTER_VC_RATE = "vc_rate"
RATE_ONE = 256
"""Fixed point of `vc_rate`: bit/s in 1/256."""

RATE_PERIOD_MIN_US = 64
"""T of the paper's (2) between arrivals: frames that come closer count together (`RATE_BURST_US`)."""
RATE_PERIOD_MAX_US = 1_000_000
PERIOD_CELLS_MAX = (1 << 24) - 1
"""Cells of a period that `vc_burst` counts."""


class Verdict(IntEnum):
    """The low 4 bits of an index of `vc_verdicts`."""

    QMAX = 0
    CASE_1 = 1
    CASE_2 = 2
    CASE_3 = 3
    ACCEPTED_CLP0 = 4
    CASE_5 = 5
    CASE_6 = 6
    ACCEPTED_CLP1 = 7
    ACCEPTED_BETWEEN = 8
    HBO = 9
    THRESHOLD = 10
    CHANCE = 11
    PCR = 12
    MFS = 13
    ACCEPTED = 14

    @property
    def accepted(self) -> bool:
        """Whether the frame went into the queue."""
        return self in (Verdict.ACCEPTED_CLP0, Verdict.ACCEPTED_CLP1, Verdict.ACCEPTED_BETWEEN, Verdict.ACCEPTED)


VERDICTS_A_SLOT = 32
"""Cells of `vc_verdicts` that a slot has."""


def verdict_index(slot: int, clp: int, verdict: int) -> int:
    """Index of the counter `vc_verdicts`: slot << 5 | clp << 4 | verdict."""
    return slot << 5 | clp << 4 | verdict


def args_of(entry: P4TableEntry) -> Mapping[str, Any]:
    """The arguments of an entry's action."""
    return entry.action.args if isinstance(entry.action, P4TableAction) else {}


COUNTED = CountedState((REGISTER_PORT_CELLS,), REGISTER_VC_CELLS, VC_SLOTS + PORTS, COUNTER_ADMITTED, 1)
