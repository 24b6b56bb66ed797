# SPDX-License-Identifier: Apache-2.0
"""The verbs of simple_switch_CLI that exist here: usage, what they do, an example. Nothing is imported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verb:
    """One verb, as `fairlane p4 VERB …` and as a line of a script."""

    name: str
    arguments: str
    "As its usage says them."
    summary: str
    example: str
    "Its arguments in an example, quoted for a shell."
    writes: bool = False

    @property
    def usage(self) -> str:
        """`table_add TABLE ACTION …`."""
        return f"{self.name} {self.arguments}".strip()


CATALOG = (
    Verb("show_tables", "", "The tables of the program: keys, actions, size.", ""),
    Verb("show_actions", "[ACTION]", "The actions of the program and their parameters.", ""),
    Verb("table_info", "TABLE", "One table: its keys, actions, size and what is attached to it.", "ipv4_lpm"),
    Verb("table_show_actions", "TABLE", "The actions of one table.", "ipv4_lpm"),
    Verb("table_dump", "TABLE", "The entries of a table and its default.", "ipv4_lpm"),
    Verb("table_num_entries", "TABLE", "How many entries a table holds.", "ipv4_lpm"),
    Verb(
        "table_add", "TABLE ACTION MATCH... => ARGS... [PRIORITY]", "Add an entry.",
        "ipv4_lpm forward 10.0.9.0/24 '=>' 08:00:00:00:09:99 1", writes=True,
    ),
    Verb(
        "table_modify", "TABLE ACTION MATCH...|HANDLE => ARGS... [PRIORITY]", "Give an entry another action or arguments.",
        "ipv4_lpm forward 10.0.9.0/24 '=>' 08:00:00:00:09:99 3", writes=True,
    ),
    Verb("table_delete", "TABLE MATCH...|HANDLE [PRIORITY]", "Delete an entry.", "ipv4_lpm 10.0.9.0/24", writes=True),
    Verb("table_clear", "TABLE", "Delete all entries of a table.", "ipv4_lpm", writes=True),
    Verb("table_set_default", "TABLE ACTION [ARGS...]", "Set the default action of a table.", "ipv4_lpm drop", writes=True),
    Verb("table_reset_default", "TABLE", "Give a table its program's default action again.", "ipv4_lpm", writes=True),
    Verb("counter_read", "COUNTER [INDEX]", "A cell of a counter; without INDEX all that are not 0.", "drops 12"),
    Verb("counter_write", "COUNTER INDEX PACKETS BYTES", "Set a cell of a counter.", "collisions 3 0 0", writes=True),
    Verb("counter_reset", "COUNTER", "Set all cells of a counter to 0.", "collisions", writes=True),
    Verb("register_read", "REGISTER [INDEX]", "A cell of a register; without INDEX all (BMv2 refuses).", "port_occupancy 3"),
    Verb("register_write", "REGISTER INDEX VALUE", "Set a cell of a register (BMv2 refuses).", "port_occupancy 3 0", writes=True),
    Verb("register_reset", "REGISTER", "Set all cells of a register to 0 (BMv2 refuses).", "port_occupancy", writes=True),
    Verb("meter_get_rates", "METER [INDEX]", "The rates and bursts of a cell of a meter.", "m 0"),
    Verb(
        "meter_set_rates", "METER INDEX CIR:CBS PIR:PBS", "Set them: units a microsecond, or 2Mbit:15KB.",
        "m 0 0.25:15000 0.5:15000", writes=True,
    ),
    Verb("mirroring_add", "SESSION PORT", "Make a clone session that sends to a port.", "5 3", writes=True),
    Verb("mirroring_delete", "SESSION", "Delete a clone session.", "5", writes=True),
    Verb("mirroring_get", "SESSION", "Where a clone session sends.", "5"),
)  # fmt: skip

BY_NAME = {verb.name: verb for verb in CATALOG}

ELSEWHERE = {
    "set_queue_rate": "the rate of a port is set over gNMI: `fairlane ports set`",
    "set_queue_depth": "the depth of a queue is set over gNMI: `fairlane ports set`",
    "show_ports": "`fairlane ports` shows the ports",
    "switch_info": "`fairlane status` shows the switches",
    "load_new_config_file": "`fairlane config init` loads the program",
    "swap_configs": "`fairlane config init` loads the program",
    "table_set_timeout": "P4Runtime sets a timeout with the entry only",
    "table_dump_entry": "P4Runtime has no handles: `table_dump TABLE` shows all entries",
    "get_time_elapsed": "P4Runtime has no clock of the switch",
    "get_time_since_epoch": "P4Runtime has no clock of the switch",
    "reset_state": "P4Runtime has no such thing: `fairlane config init --force` loads the program again",
}
"""Verbs of simple_switch_CLI that P4Runtime has no word for, and what to do instead."""
