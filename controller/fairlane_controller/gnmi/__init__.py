# SPDX-License-Identifier: Apache-2.0
"""Ports and queues: gNMI with OpenConfig's paths on the embedded switch; on BMv2 what its Thrift command line can do.

`ports.py` is what is known of a port and what can be changed, each option once with its leaf, range and what BMv2 has; `embedded.py` and `bmv2.py` are the two ways to a switch, `open.py`
chooses; `queues.py` feeds the live view. `config/port_change.py` makes a change with all that follows from it.

    from fairlane_controller.gnmi import PortChange, open_ports

    async with open_ports(endpoint) as ports:
        for port in await ports.ports():
            print(port.interface, port.rate_bps, port.waiting_packets)
        await ports.set_port(3, PortChange(rate_bps=2_000_000))
        async for update in ports.subscribe():
            print(update.interface, update.leaf, update.value)
"""

from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.gnmi.ports import PortChange, PortInfo, PortsClient, PortUpdate, QueueInfo

__all__ = ["PortChange", "PortInfo", "PortUpdate", "PortsClient", "QueueInfo", "open_ports"]
