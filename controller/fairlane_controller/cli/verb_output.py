# SPDX-License-Identifier: Apache-2.0
"""How the results of simple_switch_CLI's verbs look to people."""

from __future__ import annotations

from typing import Any

from fairlane_controller.cli.output import console, print_error, print_table
from fairlane_controller.units import counted, format_rate, format_size
from fairlane_controller.verbs.script import Line


def print_line(line: Line) -> None:
    """What one line did or read, or why it could not."""
    data = line.data
    if line.error is not None:
        print_error(line.error, as_json=False)
    elif line.said:
        _say(line.said)
    elif "tables" in data:
        (_table if line.verb == "table_info" else _tables)(data["tables"])
    elif "actions" in data:
        _actions(data)
    elif "default" in data:
        _dump(data)
    elif "entries" in data:
        _say(f"{data['table']}: {data['entries']} of {data['size']} entries")
    elif "counter" in data:
        _counter(data)
    elif "register" in data:
        _register(data)
    elif "meter" in data:
        _meter(data)
    else:
        where = f"port {data['ports']}" if data["ports"] else "there is none"
        _say(f"clone session {data['session']}: {where}")


def _say(text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)


def _actions(data: dict[str, Any]) -> None:
    rows = [
        (a["action"], ", ".join(f"{one['argument']} ({one['bits']})" for one in a["arguments"]) or "none")
        for a in data["actions"]
    ]
    print_table("actions", ("action", "arguments (bits)"), rows)


def _tables(tables: list[dict[str, Any]]) -> None:
    rows = [
        (
            t["table"],
            ", ".join(f"{k['key']} ({k['match']}, {k['bits']})" for k in t["keys"]) or "none",
            ", ".join(a["action"] for a in t["actions"]),
            t["size"],
        )
        for t in tables
    ]
    print_table("tables", ("table", "keys (match, bits)", "actions", "size"), rows, wrap=True)


def _table(tables: list[dict[str, Any]]) -> None:
    (table,) = tables
    notes = {
        f"{what.removeprefix('direct_').replace('_', ' ')} {table[what]}": table[what]
        for what in ("direct_counter", "direct_meter", "action_profile")
    }
    notes |= {"entries have a priority: the lowest wins": table["priority"], "constant": table["const"]}
    said = [counted(table["size"], "entry"), *(note for note, holds in notes.items() if holds)]
    _say(f"{table['name']}: {'; '.join(said)}")
    print_table("keys", ("key", "match", "bits"), [tuple(key.values()) for key in table["keys"]])
    _actions(table)


def _call(entry: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in entry["arguments"].items())


def _dump(data: dict[str, Any]) -> None:
    entries: list[dict[str, Any]] = data["entries"]
    ranked = ["priority"] if any(e["priority"] is not None for e in entries) else []
    counts = ["packets", "bytes"] if any("packets" in e for e in entries) else []
    rows = [
        [
            *(entry["match"][key] for key in data["keys"]),
            *(entry[name] for name in ranked),
            entry["action"],
            _call(entry),
            *([entry.get("packets"), format_size(entry.get("bytes"))] if counts else []),
        ]
        for entry in entries
    ]
    columns = [*data["keys"], *ranked, "action", "arguments", *counts]
    print_table(f"table {data['table']}: {counted(len(entries), 'entry')}", columns, rows)
    if data["default"] is not None:
        _say(f"default: {data['default']['action']} {_call(data['default'])}".rstrip())


def _counter(data: dict[str, Any]) -> None:
    cells: list[dict[str, Any]] = data["cells"]
    if len(cells) == 1 and "table" not in data:
        (cell,) = cells
        parts = [f"{cell[name]} {name}" for name in ("packets", "bytes") if cell[name] is not None]
        _say(f"{data['counter']}[{cell['index']}] = {', '.join(parts)}")
        return
    rows = [tuple(cell.values()) for cell in cells]
    empty = "all cells are 0" if "size" in data else "no entry"
    print_table(f"counter {data['counter']}", (data.get("table", "index"), "packets", "bytes"), rows, empty=empty)


def _register(data: dict[str, Any]) -> None:
    values = ", ".join(map(str, data["values"]))
    _say(
        f"{data['register']}[{data['index']}] = {values or '-'}"
        if "index" in data
        else f"{data['register']} = {values}"
    )


def _meter(data: dict[str, Any]) -> None:
    packets = data["unit"] == "packets"

    def shown(value: int | None, per_s: str) -> str:
        if value is None:
            return "-"
        if packets:
            return f"{value} packets{per_s}"
        return format_rate(8 * value) if per_s else format_size(value)

    rows = [
        (
            c["index"],
            *(shown(c[name], per_s) for name, per_s in (("cir", "/s"), ("cburst", ""), ("pir", "/s"), ("pburst", ""))),
        )
        for c in data["cells"]
    ]
    print_table(f"meter {data['meter']}", ("index", "CIR", "CBS", "PIR", "PBS"), rows, empty="no cell is set")
