# SPDX-License-Identifier: Apache-2.0
"""The verbs of BMv2's simple_switch_CLI over P4Runtime, for any program on any target.

| file | what |
|---|---|
| `catalog.py` | the verbs as data: name, kinds of arguments, help; imports nothing, so that `fairlane -h` is fast |
| `grammar.py` | the words of a line by those kinds, a table entry of words and back |
| `work.py` | what a line is planned with (P4Info, the entries that the switch will have), and what each verb reads or changes |
| `script.py` | many lines: all are planned as one `ChangeSet`, which `cli/change.py` makes as any other command's |

A verb is one row of the catalog and one function of its name. A function that reads returns plain data; one that writes returns
plain data and `EntityChange`s. The plain data is also what people see (`cli/verbs.py`).
"""
