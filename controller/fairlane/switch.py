# SPDX-License-Identifier: Apache-2.0
"""For programs. Switches: clients, entities, changes of them, ports and queues."""

from fairlane_controller.gnmi.open import open_ports as open_ports
from fairlane_controller.switch.changeset import ChangeSet as ChangeSet
from fairlane_controller.switch.changeset import apply as apply
from fairlane_controller.switch.changeset import put_entries as put_entries
from fairlane_controller.switch.client import DIGEST_LIST_S as DIGEST_LIST_S
from fairlane_controller.switch.client import SwitchClient as SwitchClient
from fairlane_controller.switch.difference import difference as difference
from fairlane_controller.switch.difference import entries_by_key as entries_by_key
from fairlane_controller.switch.difference import sort_entries as sort_entries
from fairlane_controller.switch.entities import EntityChange as EntityChange
from fairlane_controller.switch.entities import Entries as Entries
from fairlane_controller.switch.entities import entity_key as entity_key
from fairlane_controller.switch.entities import same_entity as same_entity
from fairlane_controller.switch.setup import route_entries as route_entries
from fairlane_controller.switch.shared import AAL5_TRAILER_BYTES as AAL5_TRAILER_BYTES
from fairlane_controller.switch.shared import ACTION_FORWARD as ACTION_FORWARD
from fairlane_controller.switch.shared import CELL_LINE_BYTES as CELL_LINE_BYTES
from fairlane_controller.switch.shared import CELL_PAYLOAD_BYTES as CELL_PAYLOAD_BYTES
from fairlane_controller.switch.shared import COUNTER_ADMITTED as COUNTER_ADMITTED
from fairlane_controller.switch.shared import COUNTER_PASSED as COUNTER_PASSED
from fairlane_controller.switch.shared import CPU_PORT as CPU_PORT
from fairlane_controller.switch.shared import ETHERNET_HEADER_BYTES as ETHERNET_HEADER_BYTES
from fairlane_controller.switch.shared import PORTS as PORTS
from fairlane_controller.switch.shared import TABLE_ROUTE as TABLE_ROUTE
from fairlane_controller.switch.shared import UNLIMITED as UNLIMITED
from fairlane_controller.switch.shared import PortNumber as PortNumber
from fairlane_controller.switch.shared import SwitchName as SwitchName
from fairlane_controller.switch.shared import check_port as check_port
from fairlane_controller.switch.updates import match_of as match_of
from fairlane_controller.switch.updates import plain_entry as plain_entry
