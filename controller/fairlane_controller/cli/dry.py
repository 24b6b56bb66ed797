# SPDX-License-Identifier: Apache-2.0
"""What `--dry-run` prints: the updates as they would be written, for people as a table with units, for programs as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from finsy import P4Schema

from fairlane_controller.cli.output import print_json, print_table, say
from fairlane_controller.config.compare import Comparison
from fairlane_controller.errors import FairlaneError, short
from fairlane_controller.gnmi.ports import PortChange
from fairlane_controller.program.registry import find_program
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.dry import DryClient
from fairlane_controller.switch.setup import pipeline_of
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
    "What would be set or remembered beside its entries, in words."


def dry_results(found: Comparison) -> list[DryResult]:
    """What a configuration that was compared would write."""
    results: list[DryResult] = []
    for one in found.switches:
        notes = [f"{row.what}{row.place and ' '}{row.place}: {row.held} becomes {row.wanted}" for row in one.rows if row.what in ("settings", "port", "options")]  # fmt: skip
        results.append(DryResult(one.switch, one.updates, one.schema, notes=notes))
    return results


def dry_result(client: SwitchClient, notes: Sequence[str] = ()) -> DryResult:
    """What a `DryClient` that is still open was asked to write."""
    assert isinstance(client, DryClient)
    schema = client.switch.p4info if client.has_pipeline else None
    return DryResult(client.endpoint.name, list(client.updates), schema, client.loads, list(notes))


def journal_results(steps: Sequence[Plain], run: RunState) -> list[DryResult]:
    """What steps of the journal would write (`history/steps.py`); no switch is asked."""
    found: dict[str, DryResult] = {}
    for one in steps:
        name = str(one.get("switch", run.name))
        result = found.setdefault(name, DryResult(name, schema=_schema(run, name)))
        match one["op"]:
            case "table_write":
                result.updates += one["updates"]
            case "port_put":
                result.notes.append(f"port {one['port']}: {PortChange.from_values(one['change']).describe()}")
            case "put":
                documents: Plain = one["documents"]
                result.notes += [f"{key} becomes {short(json.dumps(value))}" for key, value in documents.items()]
            case op:
                result.notes.append(f"{op}: {one.get('loop')}")
    return list(found.values())


def _schema(run: RunState, switch: str) -> P4Schema | None:
    """The P4Info of a switch's program; None where there is no such file."""
    try:
        return P4Schema(pipeline_of(run.switch(switch)).p4info)
    except (FairlaneError, OSError):
        return None


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
    notes = [f"{one.switch}: the program would be loaded; every entry and counter is lost" for one in results if one.loads]  # fmt: skip
    notes += [f"{one.switch}: {note}" for one in results for note in one.notes]
    rows = [
        (one.switch, *update_row(update, one.schema, _units(one.schema))) for one in results for update in one.updates
    ]
    print_table(
        f"dry run: {counted(len(rows), 'update')}, nothing is written",
        ("switch", "update", "table", "match", "action"),
        rows,
        empty="no table entry differs" if notes else "the switches hold it already",
    )
    for note in notes:
        say(note)
