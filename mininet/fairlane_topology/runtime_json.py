# SPDX-License-Identifier: Apache-2.0
"""p4lang/tutorials' `s1-runtime.json`: read and checked whole, then written to a switch over P4Runtime.

A switch whose topology entry has `"runtime_json"` runs that file's program with that file's entries, and nothing else:
`fairlane config init` and the control loop leave it alone. Keys: `target`, `p4info`, `bmv2_json`, `table_entries`,
`multicast_group_entries`, `clone_session_entries`. Paths in it, and its own, are looked for in the topology file's
folder, in that folder's parent (where the tutorials' `make run` stands), and in the current directory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import is_file
from fairlane_controller.errors import FairlaneError, short, unknown_name
from fairlane_controller.switch.client import Endpoint, PipelineFiles, SwitchClient
from finsy import (
    P4CloneSessionEntry,
    P4MulticastGroupEntry,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from finsy.p4schema import P4MatchType, P4Table
from pydantic import Field

from fairlane_topology.links import Strict
from fairlane_topology.topology import Topology, TopologyError, read_document, validate

TARGETS = ("bmv2",)
"""What `target` may be: the embedded switch runs the same files as BMv2."""
CONNECT_TIMEOUT_S = 15.0
PROGRAM_TIMEOUT_S = 60.0

_NEEDS_PRIORITY = (P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL)
_PAIRS = {
    P4MatchType.LPM: "[value, prefix length]",
    P4MatchType.TERNARY: "[value, mask]",
    P4MatchType.RANGE: "[low, high]",
}


class _TableEntry(Strict):
    """One entry; a match value is a scalar (exact, optional; also as a list of one), `[value, prefix length]`, `[value, mask]` or `[low, high]`."""

    table: str
    match: dict[str, Any] = Field(default_factory=dict)
    action_name: str
    action_params: dict[str, Any] = Field(default_factory=dict)
    priority: int = Field(default=0, ge=0, lt=2**31)
    default_action: bool = False


class _Replica(Strict):
    egress_port: int = Field(ge=0, lt=512)
    instance: int = Field(default=0, ge=0, lt=2**16)


class _MulticastGroup(Strict):
    multicast_group_id: int = Field(ge=1, lt=2**16)
    replicas: list[_Replica]


class _CloneSession(Strict):
    clone_session_id: int = Field(ge=1, lt=2**15)
    replicas: list[_Replica]
    class_of_service: int = Field(default=0, ge=0)
    packet_length_bytes: int = Field(default=0, ge=0)


class _File(Strict):
    target: str
    p4info: str
    bmv2_json: str
    table_entries: tuple[_TableEntry, ...] = ()
    multicast_group_entries: tuple[_MulticastGroup, ...] = ()
    clone_session_entries: tuple[_CloneSession, ...] = ()


@dataclass(frozen=True)
class SwitchRuntime:
    """A checked runtime file."""

    path: Path
    pipeline: PipelineFiles
    updates: tuple[tuple[str, Callable[[], Any]], ...]
    """(JSON pointer, maker of the finsy update), in the order in which they are written."""


def load_all(topology: Topology) -> dict[str, SwitchRuntime]:
    """The runtime file of every switch that names one; nothing is started or written.

    Raises TopologyError naming the file, the JSON pointer and what is allowed.
    """
    found: dict[str, SwitchRuntime] = {}
    places = _places(topology)
    for name, switch in topology.switches.items():
        where = f"{topology.path}: /switches/{name}"
        if switch.cli_input is not None:
            raise TopologyError(
                f"{where}/cli_input: commands of simple_switch_CLI are not applied; write the entries as runtime_json"
            )
        if switch.runtime_json is not None:
            found[name] = load(_find(switch.runtime_json, places, f"{where}/runtime_json"), places)
        elif switch.program is not None:
            raise TopologyError(f"{where}/program: needs a runtime_json beside it, which names the P4Info too")
    return found


def load(path: Path, places: Sequence[Path] = ()) -> SwitchRuntime:
    """Read and check one runtime file against its P4Info. Raises TopologyError."""
    file: _File = validate(_File, read_document(path, "runtime file"), str(path), "")
    if file.target not in TARGETS:
        raise TopologyError(
            f"{path}: /target: {short(repr(file.target))} is not supported; allowed: {', '.join(TARGETS)}"
        )
    looked = (*places, path.parent, path.parent.parent)
    pipeline = PipelineFiles(
        json=_find(file.bmv2_json, looked, f"{path}: /bmv2_json"), p4info=_find(file.p4info, looked, f"{path}: /p4info")
    )
    try:
        schema = P4Schema(pipeline.p4info)
    except Exception as error:  # finsy raises what the protobuf parser raises
        raise TopologyError(
            f"{path}: /p4info: {pipeline.p4info} is not a P4Info text file: {short(str(error))}"
        ) from None
    updates: list[tuple[str, Callable[[], Any]]] = []
    for index, entry in enumerate(file.table_entries):
        updates.append(_checked(path, f"/table_entries/{index}", _table_update(path, index, entry, schema), schema))
    for index, group in enumerate(file.multicast_group_entries):
        updates.append(_checked(path, f"/multicast_group_entries/{index}", _group_update(group), schema))
    for index, session in enumerate(file.clone_session_entries):
        updates.append(_checked(path, f"/clone_session_entries/{index}", _session_update(session), schema))
    return SwitchRuntime(path, pipeline, tuple(updates))


def program_switch(runtime: SwitchRuntime, endpoint: Endpoint) -> int:
    """Load the program and write every entry; returns how many. Raises RuntimeError naming the file and JSON pointer.

    Entries go one by one, so that the switch's words belong to one place in the file.
    """
    try:
        return asyncio.run(asyncio.wait_for(_program(runtime, endpoint), PROGRAM_TIMEOUT_S))
    except (TimeoutError, asyncio.TimeoutError):
        raise RuntimeError(f"{runtime.path}: {endpoint} did not take it within {PROGRAM_TIMEOUT_S:g} s") from None
    except FairlaneError as error:
        raise RuntimeError(f"{runtime.path}: {error.message}") from None


async def _program(runtime: SwitchRuntime, endpoint: Endpoint) -> int:
    client = SwitchClient(endpoint, write=True, pipeline=runtime.pipeline, timeout_s=CONNECT_TIMEOUT_S)
    async with client:
        for pointer, update in runtime.updates:
            try:
                await client.write([update()])
            except FairlaneError as error:
                raise FairlaneError(error.code, f"{pointer}: {error.message}") from None
    return len(runtime.updates)


def _places(topology: Topology) -> tuple[Path, ...]:
    folder = Path(topology.path).parent
    return (folder, folder.parent, Path())


def _find(name: str, places: Sequence[Path], where: str) -> Path:
    candidates = list(dict.fromkeys((place / name).absolute() for place in places))
    for candidate in candidates:
        if is_file(candidate):
            return candidate.resolve()
    looked = ", ".join(short(str(candidate)) for candidate in candidates)
    raise TopologyError(f"{where}: there is no file {short(name)!r}; looked for {looked}")


def _checked(path: Path, pointer: str, make: Callable[[], Any], schema: P4Schema) -> tuple[str, Callable[[], Any]]:
    """The update, once finsy has encoded it against the P4Info. finsy's operators mark the object, hence a maker."""
    try:
        make().encode_update(schema)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise TopologyError(f"{path}: {pointer}: {short(str(error))}") from None
    return pointer, make


def _table_update(path: Path, index: int, entry: _TableEntry, schema: P4Schema) -> Callable[[], Any]:
    where = f"{path}: /table_entries/{index}"
    table = next((t for t in schema.tables if entry.table in (t.alias, t.name)), None)
    if table is None:
        raise TopologyError(f"{where}/table: {unknown_name('table', entry.table, (t.name for t in schema.tables))}")
    action = next((a for a in table.actions if entry.action_name in (a.alias, a.name)), None)
    if action is None:
        raise TopologyError(
            f"{where}/action_name: {unknown_name('action', entry.action_name, (a.name for a in table.actions))}"
        )
    parameters = {p.name: p for p in action.params}
    values = {name: _alone(value) for name, value in entry.action_params.items()}
    for name, value in values.items():
        if name not in parameters:
            raise TopologyError(f"{where}/action_params: {unknown_name('parameter', name, parameters)}")
        if not _is_scalar(value):
            raise TopologyError(
                f"{where}/action_params/{name}: {short(repr(value))} is neither a whole number nor a text"
            )
    absent = [name for name in parameters if name not in entry.action_params]
    if absent:
        raise TopologyError(f"{where}/action_params: the parameter {absent[0]} of {action.name} is missing")
    call = P4TableAction(action.alias, **values)
    if entry.default_action:
        if entry.match:
            raise TopologyError(f"{where}/match: a default action has no match")
        return lambda: ~P4TableEntry(table.alias, action=call, is_default_action=True)
    match = _match(where, entry, table)
    ordered = any(field.match_type in _NEEDS_PRIORITY for field in table.match_fields)
    if ordered != (entry.priority > 0):
        need = "1 or more, because it has ternary, range or optional fields" if ordered else "left out"
        raise TopologyError(f"{where}/priority: for table {table.name} it must be {need}")
    return lambda: +P4TableEntry(table.alias, match=match, action=call, priority=entry.priority)


def _match(where: str, entry: _TableEntry, table: P4Table) -> P4TableMatch:
    fields = {key: field for field in table.match_fields for key in (field.alias, field.name)}
    match = P4TableMatch()
    for name, value in entry.match.items():
        field = fields.get(name)
        if field is None:
            known = (field.name for field in table.match_fields)
            raise TopologyError(f"{where}/match: {unknown_name('match field', name, known)}")
        pair = _PAIRS.get(field.match_type) if isinstance(field.match_type, P4MatchType) else None
        values = [_alone(item) for item in (cast("list[Any]", value) if isinstance(value, list) else [value])]
        if len(values) != (1 if pair is None else 2) or not all(map(_is_scalar, values)):
            kind = field.match_type.name.lower() if isinstance(field.match_type, P4MatchType) else field.match_type
            raise TopologyError(
                f"{where}/match/{name}: this {kind} field wants {pair or 'one number or text'}, got {short(repr(cast('object', value)))}"
            )
        match[field.alias] = values[0] if pair is None else tuple(values)
    missing = [f.name for f in table.match_fields if f.match_type is P4MatchType.EXACT and f.alias not in match]
    if missing:
        raise TopologyError(f"{where}/match: the exact field {missing[0]} is missing")
    return match


def _alone(value: Any) -> Any:
    """What the tutorials write as a list of one value, `[1]`, is that value."""
    if not isinstance(value, list):
        return value
    items = cast("list[Any]", value)
    return items[0] if len(items) == 1 else items


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def _replicas(replicas: Sequence[_Replica]) -> list[tuple[int, int]]:
    return [(replica.egress_port, replica.instance) for replica in replicas]


def _group_update(group: _MulticastGroup) -> Callable[[], Any]:
    return lambda: +P4MulticastGroupEntry(group.multicast_group_id, replicas=_replicas(group.replicas))


def _session_update(session: _CloneSession) -> Callable[[], Any]:
    return lambda: (
        +P4CloneSessionEntry(
            session.clone_session_id,
            class_of_service=session.class_of_service,
            packet_length_bytes=session.packet_length_bytes,
            replicas=_replicas(session.replicas),
        )
    )
