# SPDX-License-Identifier: Apache-2.0
"""For programs. Measurements: bandwidth, delays, packets of flows, by digests and probes."""

from fairlane_controller.measure.estimators import LinkChange
from fairlane_controller.measure.occupancy import CountedState
from fairlane_controller.measure.port import MeasureOptions, PortMeasurement, PortMeter, PortReport, TResSample, plain
from fairlane_controller.measure.source import (
    DIGEST_PORT_REPORT,
    DIGEST_T_RES,
    listen_digest,
)
from fairlane_controller.program.rows import BW, TAU

__all__ = [
    "BW",
    "DIGEST_PORT_REPORT",
    "DIGEST_T_RES",
    "TAU",
    "CountedState",
    "LinkChange",
    "MeasureOptions",
    "PortMeasurement",
    "PortMeter",
    "PortReport",
    "TResSample",
    "listen_digest",
    "plain",
]
