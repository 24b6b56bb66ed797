# SPDX-License-Identifier: Apache-2.0
"""A change that is made and recorded, or taken back: by hand, or the newest one undone or made again. All or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.journal import INTENT, Change, Kind, Record, append, read_history
from fairlane_controller.history.ops import Context, Request, apply_all
from fairlane_controller.state.ask import change_id
from fairlane_controller.state.events import write_event
from fairlane_controller.state.locks import change_lock
from fairlane_controller.state.run_state import RunState, read_run_state
from fairlane_controller.state.store import Store, release_room


@dataclass(frozen=True)
class Undone:
    """What an undo, or a redo, did."""

    target: Record
    "The change that was taken back, or made again."
    recorded: Record | None
    "The change of the history that this is; None in a dry run."
    requests: tuple[Request, ...]


def next_undo(records: list[Record]) -> Record:
    """The newest change that has not been undone; BAD_INPUT when there is none, or when it cannot be."""
    for one in reversed(records):
        if one.kind != "undo" and not one.undone:
            return _possible(one, "undone")
    raise FairlaneError(ErrorCode.BAD_INPUT, "there is nothing to undo: `fairlane undo --list` shows the history")


def next_redo(records: list[Record]) -> Record:
    """The newest undo since the last change; BAD_INPUT when there is none."""
    for one in reversed(records):
        if one.kind == "change":
            break
        if one.kind == "undo" and not one.undone:
            return _possible(one, "made again")
    raise FairlaneError(ErrorCode.BAD_INPUT, "there is nothing to make again: nothing was undone since the last change")


def _possible(one: Record, how: str) -> Record:
    if one.undo:
        return one
    why = one.note or "its undo is empty"
    raise FairlaneError(ErrorCode.BAD_INPUT, f"change {one.id} (`{one.command}`) cannot be {how}: {why}")


async def undo_last(folder: Path, run: RunState | None = None, *, dry_run: bool = False) -> Undone:
    """Take the newest change back. Raises BAD_INPUT when there is none, or what refused it, with nothing changed."""
    return await _apply(folder, run, redo=False, dry_run=dry_run)


async def redo_last(folder: Path, run: RunState | None = None, *, dry_run: bool = False) -> Undone:
    """Make again what was undone last."""
    return await _apply(folder, run, redo=True, dry_run=dry_run)


async def _apply(folder: Path, run: RunState | None, *, redo: bool, dry_run: bool) -> Undone:
    context = Context(folder, run or read_run_state(folder))
    choose = next_redo if redo else next_undo
    async with change_lock(folder):
        if not dry_run:
            await settle(folder)
        target = choose(read_history(folder))
        if dry_run:
            return Undone(target, None, target.undo)
        with Store(folder).room():
            change = Change(undo=await apply_all(context, target.undo), note=target.note)
            await keep(folder, lambda: context.run, target.command, change, "redo" if redo else "undo", target.id)
    return Undone(target, change.recorded, target.undo)


async def keep(
    folder: Path,
    run: Callable[[], RunState],
    command: str,
    change: Change,
    kind: Kind = "change",
    of: int | None = None,
) -> None:
    """Record a change that was made; when that fails after all, it is taken back. Raises BAD_FILE, which says what is in force."""
    try:
        await asyncio.to_thread(append, folder, command, change, kind, of)
        return
    except FairlaneError as ex:
        problem = ex
    release_room()
    if not change.undo:
        raise FairlaneError(problem.code, f"{problem.message}; the change is made, and cannot be taken back")
    try:
        await apply_all(Context(folder, run()), change.undo)
    except FairlaneError as second:
        raise FairlaneError(
            problem.code, f"{problem.message}; the change is made, and could not be taken back: {second.message}"
        ) from None
    raise FairlaneError(problem.code, f"{problem.message}; the change was taken back")


@asynccontextmanager
async def changing(folder: Path | None, command: str) -> AsyncGenerator[Change]:
    """One change by hand at a time: the body makes it and says its undo, and then it is recorded, or taken back.

    Nothing is recorded when the body raises, or when it leaves neither an undo nor a note, or without a folder. What the body has
    announced (`Change.begin`) is taken back by the next change where this process is killed, or the loop does not answer in
    time. Raises TIMED_OUT when another change takes 30 s, and BAD_FILE, before the body, where it could not be recorded.
    """
    change = Change(command, folder)
    if folder is None:
        yield change
        return
    async with change_lock(folder):
        await settle(folder)
        with Store(folder).room():
            token = change_id.set(change.id)
            try:
                yield change
                if change.undo or change.note:
                    await keep(folder, lambda: read_run_state(folder), command, change)
            except FairlaneError as ex:
                if ex.code is not ErrorCode.TIMED_OUT:  # else it may still be made
                    await change.end()
                raise
            finally:
                change_id.reset(token)
            await change.end()


async def settle(folder: Path) -> None:
    """End what another process has begun and not ended: recorded when the loop has made it, else taken back. The caller has the lock."""
    with Store(folder) as store:
        intent = store.get(INTENT)
    if not isinstance(intent, dict):
        return
    begun = cast("dict[str, Any]", intent)
    undo: list[Request] = list(begun.get("undo") or ())
    command = str(begun.get("command", ""))
    context = Context(folder, read_run_state(folder))
    answers: list[dict[str, Any]] = []
    if context.loop_runs:
        answers = await context.ask({"op": "result", "of": str(begun.get("id", "-"))})
    if answers and answers[-1].get("ok"):
        await asyncio.to_thread(append, folder, command, Change(undo=undo))
        how = "made by the loop after its command had ended: recorded"
    else:
        how = "begun and not ended: taken back"
        try:
            await apply_all(context, undo)
        except FairlaneError as ex:
            if ex.code in (ErrorCode.SWITCH_UNREACHABLE, ErrorCode.TIMED_OUT):
                raise
            how = f"begun and not ended: it could not be taken back: {ex.message}"
        with Store(folder) as store:
            store.put({INTENT: None})
    write_event(folder, "settled", command=command, why=f"`{command}` was {how}")
