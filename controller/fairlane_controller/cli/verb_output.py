# SPDX-License-Identifier: Apache-2.0
"""How the results of simple_switch_CLI's verbs look to people."""

from __future__ import annotations

from typing import Any

from fairlane_controller.cli.output import console, print_table
from fairlane_controller.units import counted, format_rate, format_size
from fairlane_controller.verbs.script import Outcome


def print_outcome(outcome: Outcome) -> None:
    """What one line did or read."""
    data = outcome.data
    if outcome.said:
        console.print(outcome.said, markup=False, soft_wrap=True)
    elif "tables" in data:
        _tables(data["tables"], alone=outcome.line.verb == "table_info")
    elif "actions" in data:
        rows = [(a["action"], _arguments(a)) for a in data["actions"]]
        print_table("actions", ("action", "arguments (bits)"), rows)
    elif outcome.line.verb == "table_dump":
        _dump(data)
    elif outcome.line.verb == "table_num_entries":
        console.print(f"{data['table']}: {data['entries']} of {data['size']} entries", markup=False)
    elif "counter" in data:
        _counter(data)
    elif "register" in data:
        _register(data)
    elif "meter" in data:
        _meter(data)
    elif "session" in data:
        where = f"port {data['ports']}" if data["ports"] else "there is none"
        console.print(f"clone session {data['session']}: {where}", markup=False)


def _arguments(action: dict[str, Any]) -> str:
    return ", ".join(f"{a['argument']} ({a['bits']})" for a in action["arguments"]) or "none"


def _tables(tables: list[dict[str, Any]], *, alone: bool) -> None:
    if not alone:
        rows = [
            (t["table"], ", ".join(f"{k['key']} ({k['match']}, {k['bits']})" for k in t["keys"]) or "none", ", ".join(a["action"] for a in t["actions"]), t["size"])
            for t in tables
        ]  # fmt: skip
        print_table("tables", ("table", "keys (match, bits)", "actions", "size"), rows, wrap=True)
        return
    for table in tables:
        attached = [
            f"{what} {table[key]}"
            for key, what in (
                ("direct_counter", "counter"),
                ("direct_meter", "meter"),
                ("action_profile", "action profile"),
            )
            if table[key]
        ]
        notes = [*attached, *(["entries have a priority: the lowest wins"] if table["priority"] else []), *(["constant"] if table["const"] else [])]  # fmt: skip
        console.print(
            f"{table['name']}: {counted(table['size'], 'entry')}{'; ' if notes else ''}{'; '.join(notes)}", markup=False
        )
        print_table("keys", ("key", "match", "bits"), [(k["key"], k["match"], k["bits"]) for k in table["keys"]])
        print_table("actions", ("action", "arguments (bits)"), [(a["action"], _arguments(a)) for a in table["actions"]])


def _dump(data: dict[str, Any]) -> None:
    entries: list[dict[str, Any]] = data["entries"]
    ranked = any(e["priority"] is not None for e in entries)
    has_counts = any("packets" in e for e in entries)
    columns = [*data["keys"], *(["priority"] if ranked else []), "action", "arguments"]
    columns += ["packets", "bytes"] if has_counts else []
    rows = [
        [
            *(entry["match"][key] for key in data["keys"]),
            *([entry["priority"]] if ranked else []),
            entry["action"],
            " ".join(f"{name}={value}" for name, value in entry["arguments"].items()),
            *([entry.get("packets"), format_size(entry.get("bytes"))] if has_counts else []),
        ]
        for entry in entries
    ]
    print_table(f"table {data['table']}: {counted(len(entries), 'entry')}", columns, rows)
    default = data["default"]
    if default is not None:
        said = " ".join([default["action"], *(f"{name}={value}" for name, value in default["arguments"].items())])
        console.print(f"default: {said}", markup=False)


def _counter(data: dict[str, Any]) -> None:
    cells: list[dict[str, Any]] = data["cells"]
    if len(cells) == 1 and "table" not in data:
        cell = cells[0]
        parts = [f"{cell[name]} {name}" for name in ("packets", "bytes") if cell[name] is not None]
        console.print(f"{data['counter']}[{cell['index']}] = {', '.join(parts)}", markup=False)
        return
    rows = [(cell["index"], cell["packets"], cell["bytes"]) for cell in cells]
    first = data.get("table", "index")
    empty = "all cells are 0" if "size" in data else "no entry"
    print_table(f"counter {data['counter']}", (first, "packets", "bytes"), rows, empty=empty)


def _register(data: dict[str, Any]) -> None:
    if "index" in data:
        value = data["values"][0] if data["values"] else "-"
        console.print(f"{data['register']}[{data['index']}] = {value}", markup=False)
    else:
        values = ", ".join(str(value) for value in data["values"])
        console.print(f"{data['register']} = {values}", markup=False, soft_wrap=True)


def _meter(data: dict[str, Any]) -> None:
    def rate(value: int | None) -> str:
        if value is None:
            return "-"
        return f"{value} packets/s" if data["unit"] == "packets" else f"{format_rate(8 * value)}"

    def burst(value: int | None) -> str:
        if value is None:
            return "-"
        return f"{value} packets" if data["unit"] == "packets" else format_size(value)

    rows = [(c["index"], rate(c["cir"]), burst(c["cburst"]), rate(c["pir"]), burst(c["pburst"])) for c in data["cells"]]
    print_table(f"meter {data['meter']}", ("index", "CIR", "CBS", "PIR", "PBS"), rows, empty="no cell is set")
