# SPDX-License-Identifier: Apache-2.0
"""The journal of changes by hand; a change from its begin to its end, undo, and what a killed process has left. All or nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane_controller.documents import is_table
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file, bad_input
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import NotTakenBack, make, plan_steps, take_back
from fairlane_controller.state.events import write_event
from fairlane_controller.state.intent import Intent, Plain, making
from fairlane_controller.state.locks import ChangeLock, change_lock, try_change_lock
from fairlane_controller.state.run_state import RunState, read_run_state
from fairlane_controller.state.store import Store

SETTLE_TIMEOUT_S = 10.0
"""How long a command that is ended takes back what it has begun; after that the next change does."""
RETRYABLE = (ErrorCode.SWITCH_UNREACHABLE, ErrorCode.TIMED_OUT)
"""What cannot be taken back now, and can be when the switch answers again."""


class Record(BaseModel):
    """One change that was made."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: int = Field(ge=1)
    time: str
    "ISO 8601, UTC."
    command: str
    "As it was typed."
    undo: tuple[Plain, ...] = ()
    "Steps that take it back (`steps.py`), in the order in which they are applied; none: it cannot be undone."
    of: int | None = None
    "The change that this one undid; None: it is no undo."
    undone: bool = False
    "Whether a newer change undid it."
    note: str = ""
    "What cannot be taken back, in words."


def read_history(folder: Path) -> list[Record]:
    """The changes that the journal has, oldest first.

    Raises:
        FairlaneError: BAD_FILE, with the change, when one cannot be understood.
    """
    with Store(folder) as store:
        rows = store.journal()
    undone: list[Any] = [row.get("of") for _, row in rows if is_table(row)]
    records: list[Record] = []
    for number, row in rows:
        try:
            records.append(Record.model_validate({**row, "id": number, "undone": number in undone}))
        except (TypeError, ValidationError):
            raise bad_file(f"{store.path}: journal: change {number}: no change of a journal") from None
    return records


def next_undo(records: Sequence[Record]) -> Record:
    """The newest change that an undo takes back.

    Raises:
        FairlaneError: BAD_INPUT when there is none, or when it cannot be undone.
    """
    one = next((one for one in reversed(records) if one.of is None and not one.undone), None)
    if one is None:
        raise bad_input("there is nothing to undo: `fairlane undo --list` shows the history")
    if not one.undo:
        why = one.note or "its undo is empty"
        raise bad_input(f"change {one.id} (`{one.command}`) cannot be undone: {why}")
    return one


async def undo_last(folder: Path, run: RunState | None = None) -> tuple[Record, int | None]:
    """Take the newest change back: all of it, or nothing.

    Returns:
        The change that was taken back, and the number of this change in the history.

    Raises:
        FairlaneError: BAD_INPUT when there is none, or what refused it.
    """
    run = run or read_run_state(folder)
    async with changing(folder, "", run) as change, Sites(run) as sites:
        target = next_undo(read_history(folder))
        change.command, change.note, change.of = target.command, target.note, target.id
        steps, documents = await plan_steps(target.undo, sites)
        await make(steps, sites, documents)
    return target, change.number


@asynccontextmanager
async def changing(folder: Path | None, command: str, run: RunState | None = None) -> AsyncGenerator[Intent]:
    """One change by hand at a time: the body announces each part and makes it (`steps.make`); then the change is in the journal.

    Nothing is recorded when the body raises, or when it leaves neither an undo nor a note, or without a folder. What was announced
    and may be half made is taken back when the body is cancelled or the loop ends, and by the next change, or the next loop, where
    this process is killed.

    Args:
        folder: the run-state folder; None: there is none, and nothing is recorded.
        command: as it was typed.
        run: the topology, with the addresses that are meant; None: as the folder has it.

    Raises:
        FairlaneError: TIMED_OUT when another change takes 30 s, or what a half made change needs to be taken back.
    """
    if folder is None:
        yield Intent(command)
        return
    async with change_lock(folder) as lock:
        await settle(lock, run)
        change = Intent(command, lock)
        token = making.set(change)
        try:
            yield change
            await change.keep()
        except (FairlaneError, asyncio.CancelledError) as ex:
            making.set(None)
            with contextlib.suppress(FairlaneError, asyncio.TimeoutError):
                await _end_badly(change, lock, run, ex)
            raise
        finally:
            making.reset(token)


async def _end_badly(change: Intent, lock: ChangeLock, run: RunState | None, problem: BaseException) -> None:
    """What was refused is taken back already; what may be half made is taken back now, or by the next change."""
    if isinstance(problem, NotTakenBack):
        change.undo = problem.undo
        await change.keep(change.before)
        return
    code = problem.code if isinstance(problem, FairlaneError) else None
    half_made = isinstance(problem, FairlaneError) and problem.half_made
    if code in (None, ErrorCode.NO_LOOP, ErrorCode.SWITCH_UNREACHABLE):
        await asyncio.wait_for(settle(lock, run), SETTLE_TIMEOUT_S)
    elif code is not ErrorCode.TIMED_OUT and not half_made:  # else the loop may still make it
        await change.forget()
        if change.before:
            await Sites(run or read_run_state(lock.folder)).poke()


async def settle(lock: ChangeLock, run: RunState | None = None) -> None:
    """Take back what another process has begun and not ended.

    Raises:
        FairlaneError: SWITCH_UNREACHABLE or TIMED_OUT where a part cannot be taken back now: that one is left for the next time.
    """
    number, folder = lock.unfinished, lock.folder
    if number is None:
        return
    record = next((one for one in read_history(folder) if one.id == number), None)
    if record is None:  # killed before anything was begun
        lock.end()
        return
    begun = f"`{record.command}` was begun and not ended"
    async with Sites(run or read_run_state(folder)) as sites:
        documents, left = await take_back(record.undo, sites)
        later = [one for one in left if one[1].code in RETRYABLE]
        with Store(folder) as store:
            if later:
                rest = record.model_copy(update={"undo": tuple(step for step, _ in later)})
                await asyncio.to_thread(store.record, number, rest.model_dump(mode="json"), documents)
            else:
                await asyncio.to_thread(store.forget, number, documents)
        if documents:
            await sites.poke()
    if later:
        problem = later[0][1]
        raise problem.code(f"{begun}: it could not be taken back yet: {problem.message}")
    lock.end()
    how = f"it could not be taken back: {left[0][1].message}" if left else "taken back"
    write_event(folder, "settled", command=record.command, why=f"{begun}: {how}")


async def settle_at_start(folder: Path) -> None:
    """As `settle`, for a loop that starts: a change whose maker lives is its maker's, and what cannot be taken back yet waits for the next change."""
    lock = try_change_lock(folder)
    if lock is not None:
        with lock as taken, contextlib.suppress(FairlaneError):
            await settle(taken)
