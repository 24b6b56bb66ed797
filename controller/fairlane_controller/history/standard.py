# SPDX-License-Identifier: Apache-2.0
"""The request that changes are made and taken back with: entities of a switch, and what its program remembers with them."""

from __future__ import annotations

from fairlane_controller.history.ops import Context, Request, register
from fairlane_controller.program.registry import load_program
from fairlane_controller.switch.client import SwitchClient


async def apply_table_write(context: Context, request: Request) -> list[Request]:
    """`{"op": "table_write", "switch", "updates": […], "settings": {…}}`, updates as `switch/updates.py` has them."""
    if context.loop_runs:
        return list(await context.ask(request))
    async with SwitchClient(context.endpoint(str(request["switch"])), write=True) as client:
        return [await load_program(context.run.program).write_entries(client, context.folder, request)]


register("table_write", apply_table_write)
