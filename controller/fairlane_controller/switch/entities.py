# SPDX-License-Identifier: Apache-2.0
"""Entities of P4Runtime as values: which two are the same one, whether nothing is to be written, and a change of one with its inverse.

A table entry is finsy's `P4TableEntry`, as `SwitchClient.canonical` makes it; everything else (counters,
registers, meters, clone sessions, multicast groups, members and groups of action profiles) is a `p4r.Entity`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from finsy import P4Schema, P4TableEntry
from finsy.p4entity import P4Entity
from finsy.proto import p4r
from google.protobuf.message import Message

Entity = P4TableEntry | p4r.Entity
Entities = dict[str, Entity]
"""By `entity_key`."""
Entries = dict[str, P4TableEntry]
"""Table entries by `entity_key`."""

CELLS = ("counter_entry", "direct_counter_entry", "register_entry", "meter_entry", "direct_meter_entry")
"""They are there always: they are modified only."""
KINDS = ("table_entry", *CELLS, "packet_replication_engine_entry", "action_profile_member", "action_profile_group")
"""P4Runtime's names of what a change can be of."""
_IDS = ("table_id", "match", "priority", "is_default_action", "table_entry", "counter_id", "register_id", "meter_id", "index", "session_id", "multicast_group_id", "action_profile_id", "member_id", "group_id")  # fmt: skip
"""The fields by which P4Runtime says which entity is meant; all others are its value."""


def entity_of(entity: P4Entity, schema: P4Schema) -> Entity:
    """The value of what a switch has answered."""
    return entity if isinstance(entity, P4TableEntry) else entity.encode(schema)


def decoded(entity: p4r.Entity, schema: P4Schema) -> Entity:
    """The value of an encoded entity."""
    return P4TableEntry.decode(entity, schema) if entity.HasField("table_entry") else entity


def kind_of(entity: Entity) -> str:
    """P4Runtime's name of its kind."""
    return "table_entry" if isinstance(entity, P4TableEntry) else str(entity.WhichOneof("entity"))


def table_of(entity: Entity, schema: P4Schema) -> str | None:
    """The short name of the table that it belongs to."""
    if isinstance(entity, P4TableEntry):
        return entity.table_id
    own = getattr(entity, kind_of(entity))
    table = schema.tables.get(getattr(getattr(own, "table_entry", own), "table_id", 0))
    return table.alias if table is not None else None


def identity(entity: Entity) -> Any:
    """The entity without its value: what is deleted, and what is asked for when it is read."""
    if isinstance(entity, P4TableEntry):
        match, default = entity.match, entity.is_default_action
        return P4TableEntry(entity.table_id, match=match, priority=entity.priority, is_default_action=default)
    bare = p4r.Entity()
    bare.CopyFrom(entity)
    own: Message = getattr(bare, kind_of(entity))
    if isinstance(own, p4r.PacketReplicationEngineEntry):
        own = getattr(own, own.WhichOneof("type") or "multicast_group_entry")
    for field, _ in own.ListFields():
        if field.name not in _IDS:
            own.ClearField(field.name)
    return bare


def entity_key(entity: Entity) -> str:
    """Equal for two entities of a switch that are the same one, whatever their values."""
    if isinstance(entity, P4TableEntry):
        match: dict[str, Any] = entity.match or {}
        return f"{entity.table_id} {sorted(match.items())!r} {entity.priority}{' default' * entity.is_default_action}"
    return str(identity(entity))


def written(entity: Entity) -> Any:
    """What a client wrote of it, as a copy: without what the switch counts."""
    if isinstance(entity, P4TableEntry):
        return replace(entity, counter_data=None, meter_counter_data=None, time_since_last_hit=None, is_const=False)
    return entity


def same_entity(one: Entity | None, other: Entity | None) -> bool:
    """Whether nothing is to be written for a switch that has the one to have the other; None: it is not there.

    Of a table entry that is: table, match, priority, action with its arguments, metadata, meter, idle time-out.
    """
    if one is None or other is None:
        return one is other
    return written(one) == written(other)


@dataclass(frozen=True)
class EntityChange:
    """One entity before and after; None: it is not there."""

    before: Entity | None
    after: Entity | None

    @property
    def entity(self) -> Entity:
        """The one that there is."""
        entity = self.after or self.before
        assert entity is not None
        return entity

    @property
    def entries(self) -> tuple[P4TableEntry | None, P4TableEntry | None]:
        """Before and after, of a change that is known to be one of a table entry."""
        return cast("tuple[P4TableEntry | None, P4TableEntry | None]", (self.before, self.after))

    @property
    def kind(self) -> str:
        """`insert`, `modify` or `delete`: an entity that is there is modified, so that there is no instant without it."""
        if self.after is None:
            return "delete"
        return "insert" if self.before is None and kind_of(self.after) not in CELLS else "modify"

    @property
    def has_inverse(self) -> bool:
        """False for a cell of which nobody knows what it had: that of an entry that comes in the same change."""
        return self.before is not None or kind_of(self.entity) not in CELLS

    @property
    def inverse(self) -> EntityChange:
        """What takes it back."""
        return EntityChange(self.after, self.before)

    @property
    def update(self) -> p4r.Update | P4TableEntry:
        """The update for finsy."""
        return update_of(self.kind, self.entity)


def update_of(kind: str, entity: Entity) -> p4r.Update | P4TableEntry:
    """finsy's update of a kind that `EntityChange.kind` names; a deletion has no value."""
    value = identity(entity) if kind == "delete" else written(entity)
    if not isinstance(value, P4TableEntry):
        return p4r.Update(type=p4r.Update.Type.Value(kind.upper()), entity=value)
    return -value if kind == "delete" else +value if kind == "insert" else ~value
