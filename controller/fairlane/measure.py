# SPDX-License-Identifier: Apache-2.0
"""For programs. Measurements: bandwidth, delays, packets of flows, by digests and probes."""

from fairlane_controller.measure.changes import LinkChange as LinkChange
from fairlane_controller.measure.estimators import Estimate as Estimate
from fairlane_controller.measure.estimators import QuantileWindow as QuantileWindow
from fairlane_controller.measure.occupancy import CountedState as CountedState
from fairlane_controller.measure.occupancy import OccupancyKeeper as OccupancyKeeper
from fairlane_controller.measure.port import MeasureOptions as MeasureOptions
from fairlane_controller.measure.port import PortMeasurement as PortMeasurement
from fairlane_controller.measure.port import PortMeter as PortMeter
from fairlane_controller.measure.port import plain as plain
from fairlane_controller.measure.probe import Probe as Probe
from fairlane_controller.measure.source import DIGEST_PORT_REPORT as DIGEST_PORT_REPORT
from fairlane_controller.measure.source import DIGEST_T_RES as DIGEST_T_RES
from fairlane_controller.measure.source import listen_digest as listen_digest
from fairlane_controller.measure.source import listen_probes as listen_probes
from fairlane_controller.measure.source import listen_reports as listen_reports
from fairlane_controller.measure.source import listen_t_res as listen_t_res
from fairlane_controller.measure.source import send_probes as send_probes
from fairlane_controller.measure.tau import LinkProbe as LinkProbe
from fairlane_controller.measure.tau import ProbeOptions as ProbeOptions
