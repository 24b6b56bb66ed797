# SPDX-License-Identifier: Apache-2.0
"""What `--dry-run` prints: the updates as they would be written, for people as a table with units, for programs as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from finsy import P4Schema

from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.config.compare import Comparison
from fairlane_controller.program.registry import find_program
from fairlane_controller.switch.updates import Plain, update_row
from fairlane_controller.units import counted


@dataclass
class DryResult:
    """What one switch would be sent."""

    switch: str
    updates: list[Plain] = field(default_factory=lambda: list[Plain]())
    schema: P4Schema | None = None
    loads: bool = False
    "The program would be loaded: every entry and counter lost."
    notes: list[str] = field(default_factory=lambda: list[str]())
    "What would be remembered beside the switch, in words."


def dry_results(found: Comparison) -> list[DryResult]:
    """What a configuration that was compared would write."""
    results: list[DryResult] = []
    for one in found.switches:
        notes = [f"{row.what}{row.place and ' '}{row.place}: {row.held} becomes {row.wanted}" for row in one.rows if row.what in ("settings", "port", "options")]  # fmt: skip
        results.append(DryResult(one.switch, one.updates, one.schema, notes=notes))
    return results


def _units(schema: P4Schema | None) -> Mapping[str, str]:
    program = find_program(table.alias for table in schema.tables) if schema is not None else None
    return program.units if program is not None else {}


def print_dry(results: Sequence[DryResult], as_json: bool) -> None:
    """Print what would be written."""
    if as_json:
        updates = [{"switch": one.switch, **update} for one in results for update in one.updates]
        data: Plain = {"dry_run": True, "updates": updates}
        data["loads_program"] = [one.switch for one in results if one.loads]
        data["notes"] = [{"switch": one.switch, "note": note} for one in results for note in one.notes]
        print_json(data)
        return
    for one in results:
        if one.loads:
            console.print(
                f"{one.switch}: the program would be loaded, and its entries written; every entry and counter is lost",
                markup=False,
            )
    rows = [
        (one.switch, *update_row(update, one.schema, _units(one.schema))) for one in results for update in one.updates
    ]
    columns = ("switch", "update", "table", "match", "action")
    if rows or not any(one.loads for one in results):
        print_table(
            f"dry run: {counted(len(rows), 'update')}, nothing is written",
            columns,
            rows,
            empty="no table entry differs" if any(one.notes for one in results) else "the switches hold it already",
        )
    for one in results:
        for note in one.notes:
            console.print(f"{one.switch}: {note}", markup=False, soft_wrap=True)
