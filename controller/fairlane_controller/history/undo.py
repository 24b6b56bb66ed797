# SPDX-License-Identifier: Apache-2.0
"""A change that is made and recorded, or taken back: by hand, or the newest one undone or made again. All or nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.journal import Change, Record, append, read_history
from fairlane_controller.history.ops import Context, Request, apply_all, take_back
from fairlane_controller.state.events import write_event
from fairlane_controller.state.intent import INTENT, making
from fairlane_controller.state.locks import CHANGE_LOCK_FILE, change_lock, take_lock
from fairlane_controller.state.run_state import RunState, read_run_state
from fairlane_controller.state.store import Store
from fairlane_controller.typed import typed

SETTLE_TIMEOUT_S = 10.0
"""How long a command that is ended takes back what it has begun; after that the next change does."""


@dataclass(frozen=True)
class Undone:
    """What an undo, or a redo, did."""

    target: Record
    "The change that was taken back, or made again."
    recorded: Record | None
    "The change of the history that this is; None in a dry run."
    requests: tuple[Request, ...]
    passed: tuple[Record, ...] = ()
    "Newer changes that no undo takes back, the newest first."


def next_undo(records: list[Record]) -> Record:
    """The newest change that has not been undone; BAD_INPUT when there is none, or when it cannot be."""
    for one in reversed(records):
        if one.kind in ("change", "redo") and not one.undone:
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
    choose = next_redo if redo else next_undo
    if dry_run:
        records = read_history(folder)
        target = choose(records)
        return Undone(target, None, target.undo, _passed(records, target))
    context = Context(folder, run or read_run_state(folder))
    async with changing(folder, "", context.run) as change:
        records = read_history(folder)
        target = choose(records)
        change.command, change.note, change.of = target.command, target.note, target.id
        change.kind = "redo" if redo else "undo"
        change.undo = await apply_all(context, target.undo)
    return Undone(target, change.recorded, target.undo, _passed(records, target))


def _passed(records: list[Record], target: Record) -> tuple[Record, ...]:
    return tuple(one for one in reversed(records) if one.kind == "elsewhere" and one.id > target.id)


def record_elsewhere(folder: Path, what: str) -> None:
    """Record the command as a change of `what`, which no undo takes back; the change is made. Raises FairlaneError, which says so."""

    async def work() -> None:
        async with change_lock(folder):
            note = f"`fairlane undo` takes no change of {what} back: set it again"
            await asyncio.to_thread(append, folder, Change(typed(), note=note, kind="elsewhere"))

    try:
        asyncio.run(work())
    except FairlaneError as ex:
        raise FairlaneError(ex.code, f"{ex.message}; the change is made, and not recorded") from None


async def _keep(folder: Path, run: RunState | None, change: Change) -> None:
    """Record a change that was made; when that fails after all, it is taken back. Raises BAD_FILE, which says what is in force."""
    try:
        await asyncio.to_thread(append, folder, change)
        return
    except FairlaneError as ex:
        problem = ex
    if not change.undo:
        raise FairlaneError(problem.code, f"{problem.message}; the change is made, and cannot be taken back")
    left = await take_back(Context(folder, run or read_run_state(folder)), change.undo)
    if left:
        why = "; ".join(second.message for _, second in left)
        raise FairlaneError(
            problem.code, f"{problem.message}; the change is made, and could not be taken back: {why}"
        ) from None
    raise FairlaneError(problem.code, f"{problem.message}; the change was taken back")


@asynccontextmanager
async def changing(folder: Path | None, command: str, run: RunState | None = None) -> AsyncGenerator[Change]:
    """One change by hand at a time: the body makes it and says its undo, and then it is recorded, or taken back.

    Nothing is recorded when the body raises, or when it leaves neither an undo nor a note, or without a folder. What was announced
    in it (`state/intent.py`) is taken back when it is cancelled or the loop ends, and by the next change, or the next loop, where
    this process is killed, or the loop does not answer in time. Raises TIMED_OUT when another change takes 30 s, and BAD_FILE,
    before the body, where it could not be recorded.
    """
    change = Change(command, folder)
    if folder is None:
        yield change
        return
    async with change_lock(folder):
        await settle(folder, run)
        with Store(folder).room():
            token = making.set(change)
            try:
                yield change
                if change.undo or change.note or change.kind != "change":
                    await _keep(folder, run, change)
            except (FairlaneError, asyncio.CancelledError) as ex:
                making.set(None)
                await _end_badly(folder, run, change, ex)
                raise
            finally:
                making.reset(token)
            await change.end()


async def _end_badly(folder: Path, run: RunState | None, change: Change, problem: BaseException) -> None:
    """What was refused is taken back already; what may be half made is taken back now, or by the next change."""
    half_made = isinstance(problem, FairlaneError) and problem.half_made
    code = problem.code if isinstance(problem, FairlaneError) else None
    with contextlib.suppress(FairlaneError, TimeoutError, asyncio.TimeoutError):
        if code in (None, ErrorCode.NO_LOOP, ErrorCode.SWITCH_UNREACHABLE):
            await asyncio.wait_for(settle(folder, run), SETTLE_TIMEOUT_S)
        elif code is not ErrorCode.TIMED_OUT and not half_made:  # else the loop may still make it
            await change.end()


async def settle(folder: Path, run: RunState | None = None) -> None:
    """End what another process has begun and not ended: recorded when the loop has made it, else taken back. The caller has the lock.

    Raises SWITCH_UNREACHABLE or TIMED_OUT where a part cannot be taken back now: that one is left for the next time.
    """
    begun = _begun(folder)
    if begun is None:
        return
    context = Context(folder, run or read_run_state(folder))
    answers: list[dict[str, Any]] = []
    if context.loop_runs:  # it waits for the end of what is being carried out
        answers = await context.ask({"op": "result", "of": str(begun.get("id", "-"))})
        begun = _begun(folder)
        if begun is None:
            return
    command = str(begun.get("command", ""))
    undo: list[Request] = list(begun.get("undo") or ())
    if begun.get("whole") and answers and answers[-1].get("ok"):
        await asyncio.to_thread(append, folder, Change(command, undo=undo))
        how = "made by the loop after its command had ended: recorded"
    else:
        how = "begun and not ended: taken back"
        left = await take_back(context, undo)
        later = [one for one in left if one[1].code in (ErrorCode.SWITCH_UNREACHABLE, ErrorCode.TIMED_OUT)]
        if later:
            how = f"begun and not ended: it could not be taken back yet: {later[0][1].message}"
        elif left:
            how = f"begun and not ended: it could not be taken back: {left[0][1].message}"
        with Store(folder) as store:
            store.put({INTENT: {**begun, "undo": [request for request, _ in later]} if later else None})
        if later:
            raise FairlaneError(later[0][1].code, f"`{command}` was {how}")
    write_event(folder, "settled", command=command, why=f"`{command}` was {how}")


def _begun(folder: Path) -> dict[str, Any] | None:
    with Store(folder) as store:
        intent = store.get(INTENT)
    return cast("dict[str, Any]", intent) if isinstance(intent, dict) else None


async def settle_at_start(folder: Path) -> None:
    """As `settle`, for a loop that starts: a change whose maker lives is its maker's, and what cannot be taken back yet waits for the next change."""
    lock = take_lock(folder, CHANGE_LOCK_FILE)
    if lock is not None:
        with lock, contextlib.suppress(FairlaneError):
            await settle(folder)
