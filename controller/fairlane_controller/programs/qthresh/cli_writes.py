# SPDX-License-Identifier: Apache-2.0
"""Changes of policies by the command line, all or none, recorded as one change; `--dry-run` plans the same and writes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from fairlane_controller import history
from fairlane_controller.cli.dry import DryResult
from fairlane_controller.cli.targets import Targets
from fairlane_controller.history.steps import make
from fairlane_controller.programs.qthresh import changes
from fairlane_controller.programs.qthresh.policies import answer_json
from fairlane_controller.programs.qthresh.store import LoopStore
from fairlane_controller.typed import typed


def change_all(targets: Targets, port: int | None, request: dict[str, Any], *, every: bool) -> list[dict[str, Any]]:
    """Make one request (`changes.DECIDE`) at every place that the command means.

    Without a port it means all managed ports when `every`, else the only one there is.

    Returns:
        The policies then in force, each with `via` loop or direct.
    """

    async def work() -> list[dict[str, Any]]:
        async with (
            history.changing(targets.folder, typed(), targets.run),
            history.Sites(targets.run, targets.endpoints, writes=True) as sites,
        ):
            plan, current = await _plan(sites, {**request, "port": port, "every": every})
            await make([plan.change], sites, plan.documents)
        via = "direct" if sites.loop_folder is None else "loop"
        about = {"via": via, "remembered": sites.folder is not None}
        return [{"switch": name, **answer_json(policy, current[name].state), **about} for name, policy in plan.policies]

    return asyncio.run(work())


def dry_all(targets: Targets, port: int | None, request: dict[str, Any], *, every: bool) -> list[DryResult]:
    """What `change_all` would write, with the same checks."""

    async def work() -> list[DryResult]:
        async with history.Sites(targets.run, targets.endpoints) as sites:
            plan, _ = await _plan(sites, {**request, "port": port, "every": every})
            return [
                DryResult(
                    name, plan.change.updates(name), (await sites.reader(name)).switch.p4info, notes=_notes(plan, name)
                )
                for name in plan.change.entries
            ]

    return asyncio.run(work())


async def _plan(sites: history.Sites, request: dict[str, Any]) -> tuple[changes.PolicyPlan, dict[str, changes.Ports]]:
    current = await changes.read_ports(sites)
    return changes.plan_policies(current, LoopStore(sites.folder), request, sites.endpoint), current


def _notes(plan: changes.PolicyPlan, switch: str) -> list[str]:
    """A sentence for each setting that the plan would change."""
    notes: list[str] = []
    for key, after in plan.settings.items():
        old, new = plan.before[key].model_dump(mode="json"), after.model_dump(mode="json")
        texts = [f"{name} {old[name]} becomes {new[name]}" for name in new if old[name] != new[name]]
        if key[0] == switch and texts:
            notes.append(f"port {key[1]} class {key[2]}: {', '.join(texts)}")
    return notes
