# SPDX-License-Identifier: Apache-2.0
"""A switch that runs `gfr.p4` to what its run state and the configuration in force say: routes, then GFR's entries."""

from __future__ import annotations

import time

from fairlane_controller.program.registry import check_program
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.deploy import Plan, apply_plan, make_plan
from fairlane_controller.programs.gfr.store import GFR_DOCUMENT, GfrState
from fairlane_controller.state.run_state import RunState, SwitchState
from fairlane_controller.state.store import STATE_FILE
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.setup import SetupResult, route_entries


def is_gfr(run: RunState) -> bool:
    """Whether a topology runs `gfr.p4`."""
    return run.program == program.PROGRAM


def plan_in_force(state: GfrState, run: RunState) -> Plan:
    """The plan of what is remembered; raises BAD_FILE when the topology cannot have it any more."""
    return make_plan(state.config, state, time.time(), run, f"{run.folder / STATE_FILE}: {GFR_DOCUMENT}")


async def set_up_gfr(client: SwitchClient, state: SwitchState, plan: Plan) -> SetupResult:
    """Routes and the plan into one switch; what is right already is not touched."""
    check_program(program.PROGRAM, client.table_names())
    written = await client.put_entries(route_entries(client, state))
    applied = await apply_plan(client, plan)
    ports = tuple(port.port for port in plan.state.config.ports if port.switch == state.name)
    return SetupResult(state.name, len(state.routes), ports, written + applied)
