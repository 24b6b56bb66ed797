# SPDX-License-Identifier: Apache-2.0
"""The one configuration file: its model, its JSON schema, comparison with the switches, reconciliation, reload.

| file | what |
|---|---|
| `model.py` | `fairlane.toml` as values; its JSON schema for editors |
| `read.py` | the file to values, or an error with line, key and what is allowed; what it must fulfil as a whole and on the topology that runs; which topology that is |
| `compare.py` | the plan: what the file says beside what the switches have, and the steps that end the difference; a change of a port |
| `apply.py` | the plan into all switches, or into none |
| `show.py` | what is in force as such a file |
| `reload.py` | the file of a running loop: SIGHUP, a change of the file |

`config diff`, `--dry-run`, `config edit`, `config apply`, `config set` and the loop's reload show or make one plan, `Comparison`.
"""
