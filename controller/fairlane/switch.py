# SPDX-License-Identifier: Apache-2.0
"""For programs. Switches: clients, entities, changes of them, ports and queues."""

from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.switch.changeset import ChangeSet, put_entries
from fairlane_controller.switch.client import DIGEST_LIST_S, SwitchClient
from fairlane_controller.switch.entities import EntityChange, Entries, same_entity
from fairlane_controller.switch.shared import (
    AAL5_TRAILER_BYTES,
    CELL_LINE_BYTES,
    CELL_PAYLOAD_BYTES,
    COUNTER_ADMITTED,
    COUNTER_PASSED,
    CPU_PORT,
    ETHERNET_HEADER_BYTES,
    PORTS,
    QUEUES_MAX,
    UNLIMITED,
    VLAN_TAG_BYTES,
    PortNumber,
    SwitchName,
)
from fairlane_controller.switch.updates import match_of

__all__ = [
    "AAL5_TRAILER_BYTES",
    "CELL_LINE_BYTES",
    "CELL_PAYLOAD_BYTES",
    "COUNTER_ADMITTED",
    "COUNTER_PASSED",
    "CPU_PORT",
    "DIGEST_LIST_S",
    "ETHERNET_HEADER_BYTES",
    "PORTS",
    "QUEUES_MAX",
    "UNLIMITED",
    "VLAN_TAG_BYTES",
    "ChangeSet",
    "EntityChange",
    "Entries",
    "PortNumber",
    "SwitchClient",
    "SwitchName",
    "match_of",
    "open_ports",
    "put_entries",
    "same_entity",
]
