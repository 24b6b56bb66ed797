# SPDX-License-Identifier: Apache-2.0
"""The request `p4_write` of the control socket: P4Runtime updates of what the loop does not keep, written by it as the primary."""

from __future__ import annotations

from typing import Any

from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.session import Log
from fairlane_controller.units import counted
from fairlane_controller.verbs.updates import serve_write


async def write_raw(agent: SwitchAgent, log: Log, request: dict[str, Any]) -> dict[str, Any]:
    """`p4_write` (`verbs/updates.py`): updates of any kind that the loop does not keep itself."""
    done = await agent.exclusively(lambda client: serve_write(client, request))
    log.write(
        "changed",
        switch=agent.endpoint.name,
        written=done["written"],
        refused=len(done["failed"]),
        why=f"asked for by hand: {counted(done['written'], 'update')} of what the loop does not keep"
        + (f", {len(done['failed'])} refused by the switch" if done["failed"] else ""),
    )
    return done
