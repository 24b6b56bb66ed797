# SPDX-License-Identifier: Apache-2.0
"""The contract of `p4src/qthresh.p4` (docs/p4.md): names, sizes, fixed point, drop reasons."""

from __future__ import annotations

from enum import IntEnum

from fairlane import out_of_range
from fairlane.measure import CountedState
from fairlane.switch import COUNTER_ADMITTED

from .model import QTHRESH_MAX_PACKETS, WEIGHT_MAX, WEIGHT_MIN

CLASSES = 8
FLOW_SLOTS = 65_536
TAPS = 255
"Numbers of taps: 1 to so many, and from 1 again."
WEIGHT_ONE = 256

TABLE_POLICY = "policy"
TABLE_CLASS = "flow_class"
TABLE_PORT_LIMIT = "port_limit"
TABLE_HASH_KEY = "hash_key"
TABLE_FLOW = {4: "flow_v4", 6: "flow_v6"}
ACTION_SET_CLASS = "set_class"
ACTION_SET_PORT_LIMIT = "set_port_limit"
ACTION_SET_QTHRESH = "set_qthresh"
ACTION_SET_QTHRESH_SPACED = "set_qthresh_spaced"
ACTION_SET_LANES = "set_lanes"
ACTION_DROP_TAIL = "drop_tail"
SCHEMES = {ACTION_SET_QTHRESH: "qthresh", ACTION_SET_QTHRESH_SPACED: "qthresh", ACTION_SET_LANES: "lanes"}
"Actions of policies with thresholds, and the scheme that each is."
ACTION_SET_FLOW = "set_flow"
ACTION_SET_FLOW_WEIGHTED = "set_flow_weighted"
ACTION_SET_FLOW_TAPPED = "set_flow_tapped"
ACTION_SET_HASH_KEY = "set_hash_key"
DIGEST_NEW_FLOW = "new_flow_t"
COUNTER_FLOW_DROPS = "flow_drops"
COUNTER_COLLISIONS = "collisions"

REPORT_PERIOD_US = 200_000
"""A port's report (BW, L_D, N_C) comes at most this often: four of them within a second show a change."""


class DropReason(IntEnum):
    """The program's own among the low 4 bits of an index of the counter `drops`; the others are `switch/shared.py`'s."""

    QTHRESH = 11
    PORT_FULL = 12


def admitted_index(port: int, traffic_class: int) -> int:
    """Index of the counter `admitted`: port ++ class (9 + 3 bits)."""
    return port << 3 | traffic_class


def encode_weight(weight: float) -> int:
    """A weight in 1/256, as the data plane has it; OUT_OF_RANGE outside 1/256..255."""
    if not WEIGHT_MIN <= weight <= WEIGHT_MAX:
        raise out_of_range("weight", weight, f"{WEIGHT_MIN:g}", f"{WEIGHT_MAX:g}")
    return round(weight * WEIGHT_ONE)


def decode_weight(fixed: int) -> float:
    """The inverse of `encode_weight`."""
    return fixed / WEIGHT_ONE


def weight_for(packets: int, qthresh_packets: int) -> int:
    """The weight in 1/256 that makes of the class's threshold a flow's `packets`: the smallest with (qthresh·weight) >> 8 ≥ packets."""
    most = round(WEIGHT_MAX * WEIGHT_ONE)
    return max(1, min(-(-packets * WEIGHT_ONE // max(1, qthresh_packets)), most))


def check_class(traffic_class: int) -> int:
    """The class itself when it is 0..7, OUT_OF_RANGE otherwise."""
    if not 0 <= traffic_class < CLASSES:
        raise out_of_range("class", traffic_class, 0, CLASSES - 1)
    return traffic_class


def check_threshold(packets: int, capacity_packets: int = 0) -> int:
    """The threshold itself when it is 1..capacity (65,535 where the port's capacity is unknown), else OUT_OF_RANGE."""
    most = capacity_packets if 0 < capacity_packets < QTHRESH_MAX_PACKETS else QTHRESH_MAX_PACKETS
    if not 1 <= packets <= most:
        raise out_of_range("threshold", packets, 1, most, "packets")
    return packets


COUNTED = CountedState(("port_occupancy", "port_occupancy_bytes"), "flow_occupancy", 81_921, COUNTER_ADMITTED, CLASSES)
