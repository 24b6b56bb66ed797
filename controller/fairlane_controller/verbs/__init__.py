# SPDX-License-Identifier: Apache-2.0
"""The verbs of BMv2's simple_switch_CLI over P4Runtime, for any program on any target.

| file | what |
|---|---|
| `catalog.py` | the verbs: names, usage, sentences; imports nothing, so that `fairlane -h` is fast |
| `values.py` | text to numbers by width and kind of match, and back |
| `entries.py` | a table entry from the words of a line, and as words again |
| `words.py` | the words of a line by its verb's usage: how many, names and indices |
| `context.py` | what a line needs to know: P4Info, what the switch holds, handles |
| `tables.py`, `cells.py` | the verbs of tables; of registers, counters, meters and clone sessions |
| `script.py` | many lines: all read and checked, then written by the loop or as the primary, taken back when one is refused |
"""
