# SPDX-License-Identifier: Apache-2.0
"""p4lang/tutorials' `s1-runtime.json`: read and checked whole, then written to a switch over P4Runtime.

A switch whose topology entry has `"runtime_json"` runs that file's program with that file's entries, and nothing else:
`fairlane config init` and the control loop leave it alone. Paths in it, and its own, are looked for in the topology file's
folder, in that folder's parent (where the tutorials' `make run` stands), and in the current directory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fairlane_controller.documents import is_array, is_file
from fairlane_controller.errors import FairlaneError, short
from fairlane_controller.switch.client import Endpoint, PipelineFiles, SwitchClient
from fairlane_controller.verbs.grammar import needs_priority
from finsy import (
    P4CloneSessionEntry,
    P4MulticastGroupEntry,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from finsy.p4schema import P4MatchType
from pydantic import BeforeValidator, Field

from fairlane_topology.links import Strict
from fairlane_topology.topology import Topology, TopologyError, read_document, validate

CONNECT_TIMEOUT_S = 15.0
PROGRAM_TIMEOUT_S = 60.0


def _value(value: object) -> object:
    """A number or text, or two of them; what the tutorials write as a list of one value, `[1]`, is that value."""
    values = [
        part[0] if is_array(part) and len(part) == 1 else part for part in (value if is_array(value) else [value])
    ]
    if len(values) not in (1, 2) or any(isinstance(v, bool) or not isinstance(v, int | str) for v in values):
        raise ValueError(
            f"{short(repr(value))} is no value; allowed: a whole number, a text, "
            "[value, prefix length], [value, mask] or [low, high]"
        )
    return values[0] if len(values) == 1 else tuple(values)


_Value = Annotated[Any, BeforeValidator(_value)]


class _TableEntry(Strict):
    table: str
    match: dict[str, _Value] = Field(default_factory=dict)
    action_name: str
    action_params: dict[str, _Value] = Field(default_factory=dict)
    priority: int = Field(default=0, ge=0, lt=2**31)
    default_action: bool = False

    def update(self, schema: P4Schema) -> P4TableEntry:
        """Raises ValueError for what finsy would write and a switch refuse; what finsy refuses, its encoder finds."""
        table = schema.tables[self.table]
        action = P4TableAction(self.action_name, **self.action_params)
        if self.default_action:
            if self.match:
                raise ValueError("match: a default action has no match")
            return ~P4TableEntry(table.alias, action=action, is_default_action=True)
        for field in table.match_fields:
            if field.match_type is P4MatchType.EXACT and not {field.alias, field.name} & set(self.match):
                raise ValueError(f"match: the exact field {field.name} is missing")
        ordered = needs_priority(table)
        if ordered != (self.priority > 0):
            need = "1 or more, because it has ternary, range or optional fields" if ordered else "left out"
            raise ValueError(f"priority: for table {table.name} it must be {need}")
        return +P4TableEntry(table.alias, match=P4TableMatch(self.match), action=action, priority=self.priority)


class _Replica(Strict):
    egress_port: int = Field(ge=0, lt=512)
    instance: int = Field(default=0, ge=0, lt=2**16)


class _Replicas(Strict):
    replicas: list[_Replica]

    def ports(self) -> list[tuple[int, int]]:
        return [(replica.egress_port, replica.instance) for replica in self.replicas]


class _MulticastGroup(_Replicas):
    multicast_group_id: int = Field(ge=1, lt=2**16)

    def update(self, _schema: P4Schema) -> P4MulticastGroupEntry:
        return +P4MulticastGroupEntry(self.multicast_group_id, replicas=self.ports())


class _CloneSession(_Replicas):
    clone_session_id: int = Field(ge=1, lt=2**15)
    class_of_service: int = Field(default=0, ge=0)
    packet_length_bytes: int = Field(default=0, ge=0)

    def update(self, _schema: P4Schema) -> P4CloneSessionEntry:
        options = self.model_dump(include={"class_of_service", "packet_length_bytes"})
        return +P4CloneSessionEntry(self.clone_session_id, replicas=self.ports(), **options)


class _File(Strict):
    target: Literal["bmv2"]
    """The embedded switch runs the same files."""
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
    """(JSON pointer, maker of the finsy update: finsy's operators mark the object), in the order in which they are written."""


def load_all(topology: Topology) -> dict[str, SwitchRuntime]:
    """The runtime file of every switch that names one; nothing is started or written.

    Raises:
        TopologyError: with the file, the JSON pointer and what is allowed.
    """
    found: dict[str, SwitchRuntime] = {}
    folder = Path(topology.path).parent
    places = (folder, folder.parent, Path())
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
    file: _File = validate(_File, read_document(path, "runtime file"), str(path))
    places = (*places, path.parent, path.parent.parent)
    files = PipelineFiles(
        json=_find(file.bmv2_json, places, f"{path}: /bmv2_json"),
        p4info=_find(file.p4info, places, f"{path}: /p4info"),
    )
    try:
        schema = P4Schema(files.p4info)
    except Exception as error:  # finsy raises what the protobuf parser raises
        raise TopologyError(f"{path}: /p4info: {files.p4info} is not a P4Info text file: {short(str(error))}") from None
    updates = [
        (f"/{kind}/{index}", partial(entry.update, schema))
        for kind in ("table_entries", "multicast_group_entries", "clone_session_entries")
        for index, entry in enumerate(getattr(file, kind))
    ]
    for pointer, make in updates:
        try:
            make().encode_update(schema)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise TopologyError(f"{path}: {pointer}: {short(str(error))}") from None
    return SwitchRuntime(path, files, tuple(updates))


def program_switch(runtime: SwitchRuntime, endpoint: Endpoint) -> int:
    """Load the program and write every entry; returns how many.

    Entries go one by one, so that the switch's words belong to one place in the file.

    Raises:
        RuntimeError: with the file and the JSON pointer.
    """

    async def write() -> None:
        client = SwitchClient(endpoint, write=True, pipeline=runtime.pipeline, timeout_s=CONNECT_TIMEOUT_S)
        async with client:
            for pointer, update in runtime.updates:
                try:
                    await client.write([update()])
                except FairlaneError as error:
                    raise error.code(f"{pointer}: {error.message}") from None

    try:
        asyncio.run(asyncio.wait_for(write(), PROGRAM_TIMEOUT_S))
    except asyncio.TimeoutError:
        raise RuntimeError(f"{runtime.path}: {endpoint} did not take it within {PROGRAM_TIMEOUT_S:g} s") from None
    except FairlaneError as error:
        raise RuntimeError(f"{runtime.path}: {error.message}") from None
    return len(runtime.updates)


def _find(name: str, places: Sequence[Path], where: str) -> Path:
    candidates = list(dict.fromkeys((place / name).absolute() for place in places))
    for candidate in candidates:
        if is_file(candidate):
            return candidate.resolve()
    looked = ", ".join(short(str(candidate)) for candidate in candidates)
    raise TopologyError(f"{where}: there is no file {short(name)!r}; looked for {looked}")
