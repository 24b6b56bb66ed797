# SPDX-License-Identifier: Apache-2.0
"""The verbs of BMv2's simple_switch_CLI over P4Runtime, for any program on any target.

| file | what |
|---|---|
| `catalog.py` | the verbs as data: name, types of the arguments, sentences; imports nothing, so that `fairlane -h` is fast |
| `grammar.py` | the words of a line by those types: how many, objects and values, and what may come next |
| `entries.py` | a table entry from the words of a line, and as words again |
| `context.py` | what a line needs to know: P4Info, what the switch has, handles |
| `tables.py`, `cells.py` | what each verb reads or changes: tables; registers, counters, meters and clone sessions |
| `script.py` | many lines: all read and checked, then written by the loop or as the primary, taken back when one is refused |
"""
