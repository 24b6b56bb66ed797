# SPDX-License-Identifier: Apache-2.0
"""Taking back the newest change, or making again what was taken back: all or nothing, and itself a change of the history."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.journal import Change, Record, append, locked, read_history
from fairlane_controller.history.ops import Context, Request, apply_all
from fairlane_controller.state.run_state import RunState, read_run_state


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
    async with locked(folder):
        records = read_history(folder)
        target = next_redo(records) if redo else next_undo(records)
        if dry_run:
            return Undone(target, None, target.undo)
        inverse = await apply_all(context, target.undo)
        made = append(folder, target.command, Change(inverse, target.note), "redo" if redo else "undo", target.id)
    return Undone(target, made, target.undo)
