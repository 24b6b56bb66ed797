# SPDX-License-Identifier: Apache-2.0
"""The one configuration file: its model, its JSON schema, comparison with the switches, reconciliation, reload.

| file | what |
|---|---|
| `model.py` | `fairlane.toml` as values |
| `read.py`, `positions.py` | the file to values, or an error with line, column, key and what is allowed |
| `target.py` | the topology that it is for |
| `check.py` | what a file must fulfil as a whole and on the topology that runs |
| `compare.py` | what the file says beside what the switches hold |
| `port_change.py` | a change of a port's queue or rate, with what its program makes of it |
| `apply.py` | the difference into all switches, or into none |
| `show.py`, `emit.py` | what is in force as such a file |
| `schema.py` | the JSON schema for editors |
| `reload.py` | the file of a running loop: SIGHUP, a change of the file, `fairlane config reload` |
"""
