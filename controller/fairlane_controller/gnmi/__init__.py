# SPDX-License-Identifier: Apache-2.0
"""Ports and queues: gNMI with OpenConfig's paths on the embedded switch; on BMv2 what its Thrift command line can do.

`ports.py` has what is known of a port and what can be changed; `embedded.py` and `bmv2.py` are the two targets, and `open.py`
chooses one. `config/port_change.py` makes a change with all that follows from it.

    from fairlane_controller.gnmi import PortChange, open_ports

    async with open_ports(endpoint) as ports:
        for port in await ports.ports():
            print(port.interface, port.rate_bps, port.waiting_packets)
        await ports.set_port(3, PortChange(rate_bps=2_000_000))
"""

from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.gnmi.ports import PortChange, PortInfo, PortsClient, QueueInfo

__all__ = ["PortChange", "PortInfo", "PortsClient", "QueueInfo", "open_ports"]
