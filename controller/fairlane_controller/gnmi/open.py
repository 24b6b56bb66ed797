# SPDX-License-Identifier: Apache-2.0
"""The right client for a switch: gNMI, or Thrift where the target of the run state is BMv2."""

from __future__ import annotations

from fairlane_controller.gnmi.bmv2 import ThriftPorts
from fairlane_controller.gnmi.embedded import GnmiPorts
from fairlane_controller.gnmi.ports import PortsClient
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import Endpoint


def open_ports(endpoint: Endpoint, run: RunState | None = None) -> PortsClient:
    """A client that is not yet connected: use it in `async with`."""
    if run is not None and run.target == "bmv2":
        return ThriftPorts(endpoint, run.switch(endpoint.name))
    return GnmiPorts(endpoint)
