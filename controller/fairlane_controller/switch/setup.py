# SPDX-License-Identifier: Apache-2.0
"""Bringing a switch to what its run state says: where it is, its program, its routes."""

from __future__ import annotations

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from fairlane_controller.errors import bad_file
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.client import Endpoint, PipelineFiles, SwitchClient
from fairlane_controller.switch.security import tls_of_environment
from fairlane_controller.switch.shared import ACTION_FORWARD, TABLE_ROUTE


def endpoint_of(state: SwitchState) -> Endpoint:
    """Where the switch of a run state is."""
    return Endpoint(state.name, state.grpc, state.device_id, tls_of_environment() or state.tls)


def pipeline_of(state: SwitchState) -> PipelineFiles:
    """The compiled program of a run state; BAD_FILE when it names none."""
    if state.json_file is None or state.p4info is None:
        raise bad_file(f"the run state names no compiled program for switch {state.name} (json, p4info)")
    return PipelineFiles(state.json_file, state.p4info)


def route_entries(client: SwitchClient, state: SwitchState) -> list[P4TableEntry]:
    """The routes' entries."""
    entries: list[P4TableEntry] = []
    for route in state.routes:
        table = TABLE_ROUTE[route.network.version]
        (field,) = client.switch.p4info.tables[client.check_table(table)].match_fields
        action = P4TableAction(ACTION_FORWARD, dst_mac=route.mac, port=route.port)
        entries.append(P4TableEntry(table, match=P4TableMatch({field.alias: str(route.network)}), action=action))
    return entries
