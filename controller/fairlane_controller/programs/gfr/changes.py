# SPDX-License-Identifier: Apache-2.0
"""Changes of the configuration that a person asks for: a VC added, changed, removed; ports' options; the whole file.

A request is plain data: `{"op": "vc_add", "vc": {…}}`, `{"op": "vc_set", "name", "changes": {…}}`, `{"op": "vc_del", "names": […]}`,
`{"op": "gfr_set", "switch", "port", "changes": {…}}` (switch and port may be None: all), `{"op": "gfr_apply", "config": {…}, "source": "gfr.toml"}`."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any, cast

from fairlane import ErrorCode, FairlaneError, change_set, load_program, unknown_name
from fairlane.changes import Sites, ask, changing, typed
from fairlane.changes import make as make_steps
from fairlane.cli import DryResult, PortRef, Targets, planned_results, print_json, resolve, tell_dry
from fairlane.switch import ChangeSet
from fairlane.text import counted

from .config import GfrConfig, parse_config
from .names import PROGRAM
from .plan import GfrPlan, GfrStore, make_plan

OPS = ("vc_add", "vc_set", "vc_del", "gfr_set", "gfr_apply")

Plain = dict[str, Any]


def source_of(request: Plain) -> str:
    """What stands where a file's name stands in an error."""
    return str(request.get("source") or str(request["op"]).replace("_", " "))


def apply_edit(config: GfrConfig, request: Plain) -> GfrConfig:
    """The configuration after a request, its single values checked; raises BAD_INPUT, UNKNOWN_NAME or, for a file, BAD_FILE."""
    data = config.model_dump(mode="json")
    match request["op"]:
        case "gfr_apply":
            return parse_config(cast("Plain", request["config"]), source_of(request))
        case "vc_add":
            name = str(request["vc"].get("name", ""))
            if config.vc(name) is not None:
                raise FairlaneError(
                    ErrorCode.BAD_INPUT, f"vc add: there is a VC {name!r} already: change it with `fairlane gfr vc set`"
                )
            data["vcs"] = [*data["vcs"], request["vc"]]
        case "vc_set":
            position = _position(config, str(request["name"]))
            data["vcs"][position] = {**data["vcs"][position], **request["changes"]}
        case "vc_del":
            gone = {_position(config, str(name)) for name in request["names"]}
            data["vcs"] = [vc for position, vc in enumerate(data["vcs"]) if position not in gone]
        case "gfr_set":
            for position in _ports(config, request.get("switch"), request.get("port")):
                data["ports"][position] = {**data["ports"][position], **request["changes"]}
        case other:
            raise unknown_name("op", str(other), OPS)
    try:
        return parse_config(data, source_of(request))
    except FairlaneError as problem:
        raise locate_problem(problem, request, data) from None


def locate_problem(problem: FairlaneError, request: Plain, data: Plain) -> FairlaneError:
    """A problem of a configuration that was not a file: BAD_INPUT, with a VC's name where the file has its number."""
    if request["op"] == "gfr_apply" or problem.code is not ErrorCode.BAD_FILE:
        return problem

    def vc(found: re.Match[str]) -> str:
        return f"VC {data['vcs'][int(found[1])].get('name')}: "

    def port(found: re.Match[str]) -> str:
        return f"{data['ports'][int(found[1])].get('switch')}:{data['ports'][int(found[1])].get('port')}: "

    text = re.sub(r"(?<=[ ;])vcs\[(\d+)\](?:\.|(?=:): ?)", vc, problem.message)
    text = re.sub(r"(?<=[ ;])ports\[(\d+)\](?:\.|(?=:): ?)", port, text)
    return FairlaneError(ErrorCode.BAD_INPUT, text)


def _position(config: GfrConfig, name: str) -> int:
    names = [vc.name for vc in config.vcs]
    if name not in names:
        raise unknown_name("VC", name, names)
    return names.index(name)


def _ports(config: GfrConfig, switch: object, number: object) -> list[int]:
    if not config.ports:
        raise FairlaneError(
            ErrorCode.UNKNOWN_NAME, "no port is managed yet: give the ports with `fairlane gfr apply FILE`"
        )
    found = [
        position
        for position, port in enumerate(config.ports)
        if switch in (None, port.switch) and number in (None, port.port)
    ]
    if not found:
        named = ":".join(str(part) for part in (switch, number) if part is not None)
        raise unknown_name("port", named, [f"{port.switch}:{port.port}" for port in config.ports])
    return found


def gfr_topology(state: str | None, switch: list[str] | None = None, port: PortRef | None = None) -> Targets:
    """The running topology; WRONG_PROGRAM when it runs another program than gfr."""
    targets = resolve(state, switch, port)
    run = targets.need_run()
    if run.program != PROGRAM:
        raise FairlaneError(
            ErrorCode.WRONG_PROGRAM,
            f"the topology {run.name!r} runs the program {run.program!r}: VCs need one that was started with the program gfr",
        )
    return targets


def make(state: str | None, request: dict[str, Any], what: str, *, dry_run: bool, as_json: bool) -> None:
    """Make a change and tell it, or show what it would write."""
    if dry_run:
        tell_dry(asyncio.run(_dry(gfr_topology(state), request)), as_json)
        return
    tell(what, change(state, request), as_json)


def change(state: str | None, request: dict[str, Any]) -> dict[str, Any]:
    """One edit, all or nothing, recorded; returns entries written by switch, and `via` loop or direct."""
    run = gfr_topology(state).need_run()

    async def work() -> dict[str, Any]:
        async with changing(run.folder, typed(), run), Sites(run) as sites:
            plan, planned = await _plan(sites, request)
            await make_steps([planned], sites, plan.documents, plan.documents_back)
        via = "direct" if sites.loop_folder is None else "loop"
        return {"written": {name: len(changes) for name, changes in planned.entries.items()}, "via": via}

    return asyncio.run(work())


async def _plan(sites: Sites, request: dict[str, Any]) -> tuple[GfrPlan, ChangeSet]:
    """What a request would put in force, and what differs from it; raises what is wrong with it."""
    run = sites.run
    assert run is not None
    state = GfrStore(run.folder).state
    config = apply_edit(state.config, request)
    try:
        plan = make_plan(config, state, time.time(), run, source_of(request))
    except FairlaneError as problem:
        raise locate_problem(problem, request, config.model_dump(mode="json")) from None
    if sites.loop_folder is not None:
        plan = plan.with_loop({one["switch"]: one for one in await ask(sites.loop_folder, {"op": "status"})})
    clients = {name: await sites.reader(name) for name in plan.switches}
    return plan, await change_set(load_program(PROGRAM), plan, clients)


async def _dry(targets: Targets, request: dict[str, Any]) -> list[DryResult]:
    async with Sites(targets.need_run()) as sites:
        _, planned = await _plan(sites, request)
        return await planned_results(sites, planned)


def tell(what: str, result: dict[str, Any], as_json: bool) -> None:
    """What a change has done."""
    if as_json:
        print_json(result)
        return
    parts = ", ".join(f"{switch}: {counted(count, 'entry')}" for switch, count in result["written"].items())
    print(f"{what} ({parts or 'no switch concerned'})")
