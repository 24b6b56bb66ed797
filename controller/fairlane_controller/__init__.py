# SPDX-License-Identifier: Apache-2.0
"""The control plane of fairlane: it knows P4Runtime and P4Info, and no switch.

| where       | what                                                                             |
|-------------|----------------------------------------------------------------------------------|
| `cli/`      | the command `fairlane`                                                           |
| `web/` `metrics/` `export/` `live/` | what switches, ports and their objects do, read and shown |
| `loop/`     | the live loop: session, agent of a switch, topology, event log, control socket   |
| `config/`   | `fairlane.toml`: the core's sections and the programs'                           |
| `history/`  | what was changed, and its undo                                                   |
| `program/`  | the contract between all this and a queueing scheme; users import it as `fairlane` |
| `programs/` | the schemes that come with it: nothing imports them, the registry finds them     |
| `measure/`  | robust estimators and what they say per egress port                              |
| `gnmi/`     | ports and queues                                                                 |
| `switch/`   | finsy behind a client with time limits; entries compared, written, restored      |
| `state/`    | the run-state file that a topology writes; the loop's own state file             |
| `units` `errors` `documents` `problems` | text to numbers and back, the one exception, files of others |
"""

__version__ = "0.1.0"
