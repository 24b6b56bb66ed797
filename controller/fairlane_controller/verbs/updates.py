# SPDX-License-Identifier: Apache-2.0
"""P4Runtime updates of any kind through a running loop or as the primary; as text for its socket and for the history.

Request: `{"op": "p4_write", "switch", "updates": [base64 of p4.v1.Update, …]}`; answer: `{"written": n, "failed": {index: message}}`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from finsy import P4ClientError, P4Schema, P4TableEntry
from finsy.proto import p4r
from google.protobuf.message import DecodeError

from fairlane_controller import history
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.registry import find_program
from fairlane_controller.state.ask import ask
from fairlane_controller.state.intent import announce
from fairlane_controller.switch.client import Endpoint, SwitchClient, same_entry
from fairlane_controller.switch.faults import translate
from fairlane_controller.units import counted
from fairlane_controller.verbs.context import Context
from fairlane_controller.verbs.entries import key_of

OP = "p4_write"
BATCH_UPDATES = 1_000
"""In one P4Runtime request, and in one line of the control socket."""

Failed = dict[int, str]
"""Index of an update, and the switch's error text for it."""


def to_text(updates: Iterable[p4r.Update]) -> list[str]:
    """Each update in base64."""
    return [base64.b64encode(update.SerializeToString()).decode("ascii") for update in updates]


def from_text(texts: Sequence[str]) -> list[p4r.Update]:
    """The inverse of `to_text`; raises BAD_INPUT."""
    try:
        return [p4r.Update.FromString(base64.b64decode(text, validate=True)) for text in texts]
    except (binascii.Error, DecodeError, ValueError, TypeError) as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{OP}: not a P4Runtime update in base64: {ex}") from None


def check_owned(updates: Iterable[p4r.Update], schema: P4Schema, where: str) -> None:
    """LOOP_RUNNING when an update is of a table that a running loop keeps, with the command that changes it."""
    names = {table.alias for table in schema.tables}
    program = find_program(names)
    owned: Mapping[str, str] = program.loop_tables if program is not None else {}
    for update in updates:
        entity = update.entity
        table_id = entity.table_entry.table_id or entity.direct_counter_entry.table_entry.table_id
        table = schema.tables.get(table_id) if table_id else None
        if table is not None and table.alias in owned:
            raise FairlaneError(
                ErrorCode.LOOP_RUNNING,
                f"the running control loop keeps the table {table.alias} of {where}: {owned[table.alias]}, or stop the loop first",
            )


async def write_raw(client: SwitchClient, updates: Sequence[p4r.Update]) -> Failed:
    """Write in batches; returns what the switch refused, by index. Raises FairlaneError when nothing can be written at all."""
    failed: Failed = {}
    for start in range(0, len(updates), BATCH_UPDATES):
        piece = list(updates[start : start + BATCH_UPDATES])
        try:
            await client.switch.write(piece)
        except P4ClientError as ex:
            if not ex.details:
                raise translate(ex, str(client.endpoint)) from None
            for index, detail in ex.details.items():
                failed[start + index] = f"{detail.canonical_code.name}: {detail.message}".strip(": ")
    return failed


async def serve_write(client: SwitchClient, request: dict[str, Any]) -> dict[str, Any]:
    """The running loop's side of a request."""
    updates = from_text(request["updates"])
    if len(updates) > BATCH_UPDATES:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{OP}: {len(updates)} updates are more than {BATCH_UPDATES}")
    check_owned(updates, client.switch.p4info, client.endpoint.name)
    failed = await write_raw(client, updates)
    return {"written": len(updates) - len(failed), "failed": {str(index): text for index, text in failed.items()}}


class Writer:
    """Writes to one switch: through the loop of `loop_folder`, else as the primary of its own connection, made when needed."""

    def __init__(self, endpoint: Endpoint, loop_folder: Path | None) -> None:
        self._endpoint = endpoint
        self._folder = loop_folder
        self._client: SwitchClient | None = None

    @property
    def through_loop(self) -> bool:
        """Whether a loop is the primary."""
        return self._folder is not None

    async def write(self, updates: Sequence[p4r.Update]) -> Failed:
        """As `write_raw`."""
        if self._folder is not None:
            return await self._ask(self._folder, updates)
        if self._client is None:
            client = SwitchClient(self._endpoint, write=True)
            await client.__aenter__()
            self._client = client
        return await write_raw(self._client, updates)

    async def _ask(self, folder: Path, updates: Sequence[p4r.Update]) -> Failed:
        failed: Failed = {}
        for start in range(0, len(updates), BATCH_UPDATES):
            piece = to_text(updates[start : start + BATCH_UPDATES])
            answer = await ask(folder, {"op": OP, "switch": self._endpoint.name, "updates": piece})
            failed |= {start + int(index): str(text) for index, text in answer["failed"].items()}
        return failed

    async def close(self) -> None:
        """End the connection, if there is one."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


async def apply_p4_write(context: history.Context, request: dict[str, Any]) -> list[dict[str, Any]]:
    """An undo of the history: all updates or none; `back` are those that take it back in turn.

    What is so already (an entry that is to go is not there) needs no update: so what an interrupted undo has left half done is
    done by the next one. Raises with what the switch said, and with what could not be put back.
    """
    endpoint = context.reader(str(request["switch"])).endpoint
    updates, back = from_text(request["updates"]), from_text(request["back"])
    inverse = [{**request, "updates": request["back"], "back": request["updates"]}]
    await announce(inverse)
    writer = Writer(endpoint, context.folder if context.loop_runs else None)
    refused: Failed = {}
    taken: list[int] = []
    problem: FairlaneError | None = None
    try:
        for start in range(0, len(updates), BATCH_UPDATES):
            piece = updates[start : start + BATCH_UPDATES]
            failed = await writer.write(piece)
            refused |= {start + index: text for index, text in failed.items()}
            taken += [start + index for index in range(len(piece)) if index not in failed]
        refused = await _unmet(context, endpoint.name, updates, refused)
        if refused:
            index, text = min(refused.items())
            said = f"{endpoint} refused {len(refused)} of {counted(len(updates), 'update')}, e.g. {index}: {text}"
            problem = FairlaneError(ErrorCode.REFUSED, said)
    except FairlaneError as ex:
        problem = ex
    try:
        if problem is not None:
            raise await _put_back(writer, [back[len(updates) - 1 - index] for index in reversed(taken)], problem)
    finally:
        await writer.close()
    return inverse


def undo_request(switch: str, undo: Sequence[p4r.Update], done: Sequence[p4r.Update]) -> dict[str, Any]:
    """The request that takes `done` back by `undo`, its inverse."""
    return {"op": OP, "switch": switch, "updates": to_text(undo), "back": to_text(done)}


async def _put_back(writer: Writer, updates: list[p4r.Update], problem: FairlaneError) -> FairlaneError:
    """The problem, after what the switch took has been put back; what could not be is in it."""
    if not updates:
        return problem
    try:
        failed = await writer.write(updates)
        left, why = len(failed), next(iter(failed.values()), "")
    except FairlaneError as ex:
        left, why = len(updates), ex.message
    if not left:
        return problem
    text = f"{left} of the {counted(len(updates), 'update')} that it took could not be put back ({why})"
    return FairlaneError(
        problem.code, f"{problem.message}; {text}: half of it is done, and the next attempt does the rest"
    )


async def _unmet(context: history.Context, switch: str, updates: Sequence[p4r.Update], refused: Failed) -> Failed:
    """The refusals but those of updates whose end is reached all the same: the switch holds what the last of its key wants."""
    last = {key_of(u.entity.table_entry): u for u in updates if u.entity.HasField("table_entry")}
    unmet = {index: text for index, text in refused.items() if not _is_gone(updates[index], text)}
    entries = {index: e.table_entry for index in unmet if (e := updates[index].entity).HasField("table_entry")}
    if not entries:
        return unmet
    async with context.reader(switch) as client:
        held = Context(client)
        for index, entry in entries.items():
            wanted = last[key_of(entry)]
            after = None if wanted.type == p4r.Update.DELETE else wanted.entity.table_entry
            raw = (await held.read_entry(entry), after)
            if same_entry(*(None if one is None else P4TableEntry.decode_entry(one, held.schema) for one in raw)):
                del unmet[index]
    return unmet


def _is_gone(update: p4r.Update, text: str) -> bool:
    """Whether what was to go, and is no table entry, was not there."""
    is_entry = update.entity.HasField("table_entry")
    return not is_entry and update.type == p4r.Update.DELETE and text.startswith("NOT_FOUND")


history.register(OP, apply_p4_write)
