# SPDX-License-Identifier: Apache-2.0
"""What was changed by hand, and its undo.

`journal.py` reads and adds to the journal in the state file; `ops.py` holds the requests that take a change back, and how each is applied;
`undo.py` makes a change with its record, and applies the newest change's undo. A room that writes registers its own request when it is imported (and names its module in
`ops.MODULES`), and records what it did:

    from fairlane_controller import history

    async def put(context: history.Context, request: dict[str, Any]) -> list[dict[str, Any]]:
        undo = [{**request, "value": await …}]  # what takes it back: what this is about to replace
        await announce(undo)                # written down before (`state/intent.py`); a ChangeSet does so itself
        await …                             # apply `request`, or raise FairlaneError with nothing changed
        return undo

    history.register("queue_set", put)

    async with history.changing(folder, "set_queue_rate 3 2Mbit") as change:   # one change at a time; nothing is recorded when it raises
        change.undo = [{"op": "queue_set", "switch": "s1", "value": before}]
"""

from fairlane_controller.history.journal import Change, Record, read_history
from fairlane_controller.history.ops import Context, register
from fairlane_controller.history.undo import changing, record_elsewhere, redo_last, undo_last

__all__ = [
    "Change",
    "Context",
    "Record",
    "changing",
    "read_history",
    "record_elsewhere",
    "redo_last",
    "register",
    "undo_last",
]
