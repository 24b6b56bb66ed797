# SPDX-License-Identifier: Apache-2.0
"""Updates of table entries as plain data: as a history keeps them, as `--dry-run` prints them, and back again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, cast, get_args

from finsy import P4IndirectAction, P4MeterConfig, P4Schema, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4entity import encode_updates
from finsy.proto import p4r
from google.protobuf import text_format
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fairlane_controller.errors import bad_input, short
from fairlane_controller.problems import MAX_PROBLEM_CHARS, describe
from fairlane_controller.switch.entities import KINDS as ENTITY_KINDS
from fairlane_controller.switch.entities import Entity, decoded, identity, kind_of, update_of, written
from fairlane_controller.switch.shared import UNLIMITED
from fairlane_controller.switch.values import format_match, format_value
from fairlane_controller.units import format_rate, format_size, format_time

_UNIT_ENDS = {"_packets": "packets", "_cells": "cells", "_bytes": "B", "_us": "us"}
_FORMATS: dict[str, Callable[[int], str]] = {"us": lambda value: format_time(value / 1e6), "bit/s": format_rate}

Plain = dict[str, Any]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Value = Annotated[int, Field(ge=0)] | str
MeterValue = Literal["cir", "cburst", "pir", "pburst"]


class Strict(BaseModel):
    """Exact types, and no other keys."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Update(Strict):
    """The plain form: of a table entry, or by `entity` and `text` of anything else."""

    update: Literal["insert", "modify", "delete"]
    entity: str | None = None
    text: str = ""
    table: str | None = None
    match: dict[str, Value | Annotated[list[Value], Field(min_length=2, max_length=2)]] | None = None
    priority: Count = 0
    action: str | None = None
    args: dict[str, Value] = Field(default_factory=dict)
    indirect: dict[Literal["member_id", "group_id"], Count | None] | None = None
    meter: Annotated[dict[MeterValue, Count], Field(min_length=4)] | None = None
    idle_timeout_ns: Count = 0
    metadata: str = ""
    default: bool = False

    @model_validator(mode="after")
    def _names_one(self) -> Update:
        if self.entity is None and (self.table is None or self.match is None):
            raise ValueError("must have a table and a match, or an entity")
        return self

    @property
    def value(self) -> Entity:
        """The entity; raises ValueError, ParseError."""
        if self.entity is not None:
            entity = text_format.Parse(self.text, p4r.Entity())
            if kind_of(entity) not in ENTITY_KINDS:
                raise ValueError(f"it must be one of {', '.join(ENTITY_KINDS)}")
            return entity
        match = {name: tuple(one) if isinstance(one, list) else one for name, one in (self.match or {}).items()}
        action = P4TableAction(self.action, **self.args) if self.action else None
        return P4TableEntry(
            self.table or "",
            match=P4TableMatch(match),
            action=P4IndirectAction(**self.indirect) if self.indirect else action,
            priority=self.priority,
            meter_config=P4MeterConfig(**self.meter) if self.meter else None,
            idle_timeout_ns=self.idle_timeout_ns,
            metadata=bytes.fromhex(self.metadata),
            is_default_action=self.default,
        )


def plain_updates(updates: Iterable[Any], schema: P4Schema) -> list[Plain]:
    """finsy's updates as plain data; raises BAD_INPUT when the P4Info refuses one.

    A table entry: `{"update": "insert", "table", "match": {field: value}, "priority", "action", "args": {name: value}, "meter"}`;
    lpm is `[value, length]`, ternary `[value, mask]`. Anything else: `{"update", "entity", "text"}`, the text protobuf's.
    """
    try:
        made = [cast("p4r.Update", one) for one in encode_updates(list(updates), schema)]
        return [plain_update(p4r.Update.Type.Name(one.type).lower(), decoded(one.entity, schema)) for one in made]
    except (ValueError, KeyError) as ex:
        raise bad_input(short(str(ex), MAX_PROBLEM_CHARS)) from None


def plain_update(kind: str, entity: Entity) -> Plain:
    """An update of a kind as plain data; a deletion has no value."""
    entity = identity(entity) if kind == "delete" else written(entity)
    if isinstance(entity, P4TableEntry):
        return {"update": kind, **plain_entry(entity)}
    return {"update": kind, "entity": kind_of(entity), "text": text_format.MessageToString(entity, as_one_line=True)}


def plain_entry(entry: P4TableEntry) -> Plain:
    """A decoded table entry without its update. Raises BAD_INPUT for one with actions of its own (a one-shot action set)."""
    action, meter = entry.action, entry.meter_config
    values: Plain = {}
    if isinstance(action, P4TableAction):
        values = {"action": action.name, "args": {k: _plain_value(v) for k, v in action.args.items()}}
    elif action is not None and action.action_set is not None:
        raise bad_input(f"table {entry.table_id}: an entry with a one-shot action set can be shown, and not changed")
    elif action is not None:
        values = {"indirect": {"member_id": action.member_id, "group_id": action.group_id}}
    more = {
        "meter": meter and {name: getattr(meter, name) for name in get_args(MeterValue)},
        "priority": entry.priority,
        "idle_timeout_ns": entry.idle_timeout_ns,
        "metadata": entry.metadata.hex(),
        "default": entry.is_default_action,
    }
    match = {name: _plain_value(value) for name, value in match_of(entry)}
    return {"table": entry.table_id, "match": match, **values, **{key: value for key, value in more.items() if value}}


def match_of(entry: P4TableEntry) -> list[tuple[str, Any]]:
    """(field, value) of its match."""
    return list(cast("dict[str, Any]", entry.match or {}).items())


def _plain_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain_value(part) for part in cast("tuple[Any, ...]", value)]
    return value if isinstance(value, (int, str)) else str(value)


def entity_of_plain(data: Plain) -> Entity:
    """The inverse of `plain_update`, without its kind; raises BAD_INPUT for what is no entity."""
    try:
        return Update.model_validate(data).value
    except ValidationError as ex:
        why = "; ".join(describe(ex, Update)[:1])
    except (ValueError, text_format.ParseError) as ex:
        why = short(str(ex), MAX_PROBLEM_CHARS)
    raise bad_input(f"no entity: {why} in {short(repr(data))}")


def updates_of(data: Sequence[Plain]) -> list[Any]:
    """finsy's updates of plain ones, in their order; raises BAD_INPUT."""
    return [update_of(str(one["update"]), entity_of_plain(one)) for one in data]


# ---- for people ------------------------------------------------------------------------------------------------------


def match_text(entry: P4TableEntry, schema: P4Schema) -> str:
    """`egress_port=3 traffic_class=0`, with addresses as people write them."""
    fields = schema.tables[entry.table_id].match_fields
    known = [(fields[name], value) for name, value in match_of(entry)]
    parts = [f"{f.alias}={format_match(value, f.match_type, f.bitwidth, f.alias)}" for f, value in known]
    if entry.priority:
        parts.append(f"priority={entry.priority}")
    return " ".join(parts)


def action_text(entry: P4TableEntry, schema: P4Schema, units: Mapping[str, str]) -> str:
    """`set_limit(max_packets=5 packets, weight=1.5)`, and behind it idle time-out, metadata and meter where it has them; `units` of parameters as `Program.units` has them."""
    action = entry.action
    if not isinstance(action, P4TableAction):
        return "-"
    text = f"{action.name}({', '.join(f'{name}={value}' for name, value in _arguments(entry, schema, units).items())})"
    if entry.idle_timeout_ns:
        text += f" idle time-out: {format_time(entry.idle_timeout_ns / 1e9)}"
    if entry.metadata:
        text += f" metadata: {entry.metadata.hex()}"
    meter = entry.meter_config
    if meter is not None:
        text += f" meter: CIR {format_rate(meter.cir * 8)} burst {format_size(meter.cburst)}, PIR {format_rate(meter.pir * 8)} burst {format_size(meter.pburst)}"
    return text


def changed_arguments(
    before: P4TableEntry | None, after: P4TableEntry, schema: P4Schema, units: Mapping[str, str]
) -> str:
    """The arguments that `after` has and `before` has not, as `action_text` has them without their names: `5 packets, 2000 B`."""
    old = _arguments(before, schema, units) if before is not None else {}
    return ", ".join(value for name, value in _arguments(after, schema, units).items() if old.get(name) != value)


def _arguments(entry: P4TableEntry, schema: P4Schema, units: Mapping[str, str]) -> dict[str, str]:
    """The arguments of its action, each with its unit."""
    action = entry.action
    if not isinstance(action, P4TableAction):
        return {}
    widths = {param.name: param.bitwidth for param in schema.tables[entry.table_id].actions[action.name].params}
    return {
        name: _argument_text(name, value, widths.get(name, 0), units.get(name, ""))
        for name, value in action.args.items()
    }


def update_row(data: Plain, schema: P4Schema | None, units: Mapping[str, str]) -> tuple[str, str, str, str]:
    """(update, table, match, action) of a plain update for a table that people read."""
    if "table" not in data:
        return str(data["update"]), str(data["entity"]), "", str(data["text"])
    entry = cast("P4TableEntry", entity_of_plain(data))
    if schema is None:
        match = " ".join(f"{k}={v}" for k, v in data["match"].items())
        return str(data["update"]), entry.table_id, match, str(data.get("action", "-"))
    action = "" if data["update"] == "delete" else action_text(entry, schema, units)
    return str(data["update"]), entry.table_id, match_text(entry, schema), action


def _argument_text(name: str, value: Any, bits: int, unit: str) -> str:
    """An argument with its unit: that of `Program.units`, else the one that its name ends in."""
    if not isinstance(value, int):
        return str(value)
    if value == UNLIMITED and name.startswith("max_"):
        return "unlimited"
    unit = unit or next((unit for end, unit in _UNIT_ENDS.items() if name.endswith(end)), "")
    if unit.startswith("1/"):
        return f"{value / int(unit[2:]):g}"
    if unit in _FORMATS:
        return _FORMATS[unit](value)
    return f"{format_value(value, bits, name)} {unit}".rstrip()
