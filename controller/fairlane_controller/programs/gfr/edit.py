# SPDX-License-Identifier: Apache-2.0
"""Changes of a configuration that a person asks for: a VC added, changed, removed; ports' options; the whole file. Pure.

A request is plain data: `{"op": "vc_add", "vc": {…}}`, `{"op": "vc_set", "name",
"changes": {…}}`, `{"op": "vc_del", "names": […]}`, `{"op": "gfr_set", "switch", "port", "changes": {…}}` (switch and port may be
None: all), `{"op": "gfr_apply", "config": {…}, "source": "gfr.toml"}`.
"""

from __future__ import annotations

import re
from typing import Any, cast

from fairlane_controller.errors import ErrorCode, FairlaneError, unknown_name
from fairlane_controller.programs.gfr.config import GfrConfig, parse_config

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
