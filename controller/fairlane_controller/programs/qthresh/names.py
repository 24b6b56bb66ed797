# SPDX-License-Identifier: Apache-2.0
"""The contract of `p4src/qthresh.p4` (docs/p4.md): names, sizes, fixed point."""

from __future__ import annotations

from enum import Enum

from fairlane.measure import CountedState
from fairlane.switch import COUNTER_ADMITTED
from finsy import P4TableAction, P4TableEntry

CLASSES = 8
FLOW_SLOTS = 65_536
TAPS = 255
"Numbers of taps: 1 to so many, and from 1 again."
WEIGHT_ONE = 256
WEIGHT_MIN, WEIGHT_MAX = 1 / WEIGHT_ONE, 255.0
"""Weights are fixed-point numbers with 8 fractional bits in the data plane."""

TABLE_POLICY = "policy"
TABLE_CLASS = "flow_class"
TABLE_PORT_LIMIT = "port_limit"
TABLE_FLOW = {4: "flow_v4", 6: "flow_v6"}
COUNTER_FLOW_DROPS = "flow_drops"
REGISTER_FLOW = "flow_occupancy"
REGISTER_PORT = "port_occupancy"
REGISTER_PORT_BYTES = "port_occupancy_bytes"

COUNTED = CountedState((REGISTER_PORT, REGISTER_PORT_BYTES), REGISTER_FLOW, 81_921, COUNTER_ADMITTED, CLASSES)


class Scheme(str, Enum):
    """How an egress port treats a class."""

    DROP_TAIL = "drop_tail"
    QTHRESH = "qthresh"
    LANES = "lanes"
    "As qthresh, and each flow has a queue of its own, served by its weight."


SCHEMES = {one.value: one for one in Scheme}


def action_of(entry: P4TableEntry) -> tuple[str, dict[str, int]]:
    """Name and parameters of an entry's action; nothing where it has none."""
    action = entry.action
    if not isinstance(action, P4TableAction):
        return "", {}
    return action.name, {name: int(value) for name, value in action.args.items()}


def admitted_index(port: int, traffic_class: int) -> int:
    """Index of the counter `admitted`: port ++ class (9 + 3 bits)."""
    return port << 3 | traffic_class


def encode_weight(weight: float) -> int:
    """A weight in 1/256, as the data plane has it."""
    return round(weight * WEIGHT_ONE)


def weight_for(packets: int, qthresh_packets: int) -> int:
    """The weight in 1/256 that makes of the class's threshold a flow's `packets`: the smallest with (qthresh·weight) >> 8 ≥ packets."""
    largest = round(WEIGHT_MAX * WEIGHT_ONE)
    return max(1, min(-(-packets * WEIGHT_ONE // max(1, qthresh_packets)), largest))
