# SPDX-License-Identifier: Apache-2.0
"""For programs. Measurements: bandwidth, delays, packets of flows, by digests and probes."""

from fairlane_controller.measure.changes import LinkChange
from fairlane_controller.measure.estimators import Estimate, QuantileWindow
from fairlane_controller.measure.occupancy import CountedState, OccupancyKeeper
from fairlane_controller.measure.port import MeasureOptions, PortMeasurement, PortMeter, PortReport, plain
from fairlane_controller.measure.probe import Probe
from fairlane_controller.measure.source import (
    DIGEST_PORT_REPORT,
    DIGEST_T_RES,
    listen_digest,
    listen_probes,
    listen_reports,
    listen_t_res,
    send_probes,
)
from fairlane_controller.measure.tau import LinkProbe

__all__ = [
    "DIGEST_PORT_REPORT",
    "DIGEST_T_RES",
    "CountedState",
    "Estimate",
    "LinkChange",
    "LinkProbe",
    "MeasureOptions",
    "OccupancyKeeper",
    "PortMeasurement",
    "PortMeter",
    "PortReport",
    "Probe",
    "QuantileWindow",
    "listen_digest",
    "listen_probes",
    "listen_reports",
    "listen_t_res",
    "plain",
    "send_probes",
]
