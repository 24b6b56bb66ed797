# SPDX-License-Identifier: Apache-2.0
"""The verbs of simple_switch_CLI that exist here, one row each. This module imports nothing of fairlane."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Verb:
    """One verb, as `fairlane p4 VERB …` and as a line of a script."""

    name: str
    arguments: str
    "Their kinds, as the usage has them: `TABLE ACTION MATCH... => ARGS...`; optional ones in brackets."
    summary: str
    example: str = ""
    "Its arguments in an example, quoted for a shell."
    writes: bool = False

    @property
    def usage(self) -> str:
        """`table_add TABLE ACTION …`."""
        return f"{self.name} {self.arguments}".strip()


_READS = (
    Verb("show_tables", "", "The tables of the program: keys, actions, size."),
    Verb("table_info", "TABLE", "One table: its keys, actions, size and what is attached to it.", "ipv4_lpm"),
    Verb("table_dump", "TABLE", "The entries of a table and its default.", "ipv4_lpm"),
    Verb("table_num_entries", "TABLE", "The number of entries of a table.", "ipv4_lpm"),
    Verb("counter_read", "COUNTER [INDEX]", "A cell of a counter; without INDEX all that are not 0, also of a table's entries.", "drops 12"),
    Verb("register_read", "REGISTER [INDEX]", "A cell of a register; without INDEX all that are not 0 (BMv2 refuses).", "port_occupancy 3"),
    Verb("meter_get_rates", "METER [INDEX]", "Rates (units a second) and bursts of a meter's cell; without INDEX all that are set.", "m 0"),
    Verb("mirroring_get", "SESSION", "The ports of a clone session.", "5"),
)  # fmt: skip
_WRITES = (
    Verb(
        "table_add", "TABLE ACTION MATCH... => ARGS... [PRIORITY]", "Add an entry.",
        "ipv4_lpm forward 10.0.9.0/24 '=>' 08:00:00:00:09:99 1",
    ),
    Verb(
        "table_modify", "TABLE ACTION MATCH... => ARGS... [PRIORITY]", "Change the action or the arguments of an entry.",
        "ipv4_lpm forward 10.0.9.0/24 '=>' 08:00:00:00:09:99 3",
    ),
    Verb("table_delete", "TABLE MATCH... [PRIORITY]", "Delete an entry.", "ipv4_lpm 10.0.9.0/24"),
    Verb("table_clear", "TABLE", "Delete all entries of a table.", "ipv4_lpm"),
    Verb("table_set_default", "TABLE ACTION [ARGS...]", "Set the default action of a table.", "ipv4_lpm drop"),
    Verb("table_reset_default", "TABLE", "Reset the default action of a table to the program's.", "ipv4_lpm"),
    Verb("counter_write", "COUNTER INDEX PACKETS BYTES", "Set a cell of a counter.", "collisions 3 5 0"),
    Verb("counter_reset", "COUNTER", "Set all cells of a counter to 0.", "collisions"),
    Verb("register_write", "REGISTER INDEX VALUE", "Set a cell of a register (BMv2 refuses).", "port_occupancy 3 0"),
    Verb("register_reset", "REGISTER", "Set all cells of a register to 0 (BMv2 refuses).", "port_occupancy"),
    Verb(
        "meter_set_rates", "METER INDEX CIR:CBURST PIR:PBURST", "Set rates (units a microsecond) and bursts of a meter's cell.",
        "m 0 0.25:15000 0.5:15000",
    ),
    Verb("mirroring_add", "SESSION PORT", "Make a clone session that sends to a port.", "5 3"),
    Verb("mirroring_delete", "SESSION", "Delete a clone session.", "5"),
)  # fmt: skip

CATALOG = (*_READS, *(replace(verb, writes=True) for verb in _WRITES))
BY_NAME = {verb.name: verb for verb in CATALOG}
