# SPDX-License-Identifier: Apache-2.0
"""The request that every program's changes are taken back with: table entries, and what the program remembers with them."""

from __future__ import annotations

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.ops import Context, Request, register
from fairlane_controller.program.registry import load_program


async def apply_table_write(context: Context, request: Request) -> list[Request]:
    """`{"op": "table_write", "switch", "updates": […], "settings": {…}}`, updates as `switch/updates.py` has them."""
    program = load_program(context.run.program)
    if context.loop_runs:
        control = program.topology_control()
        if control is None or request["op"] not in control.requests:
            raise FairlaneError(
                ErrorCode.LOOP_RUNNING,
                f"a control loop of {program.name} runs for {context.run.name!r} and keeps its entries: stop it first",
            )
        return list(await context.ask(request))
    async with context.writer(str(request["switch"])) as client:
        return [await program.write_entries(client, context.folder, request)]


register("table_write", apply_table_write)
