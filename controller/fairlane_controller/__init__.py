# SPDX-License-Identifier: Apache-2.0
"""The control plane of fairlane: it knows P4Runtime and P4Info, and no switch.

| where       | what                                                                          |
|-------------|-------------------------------------------------------------------------------|
| `units`     | text to numbers and back: `2Mbit`, `5ms`, `64KB`                              |
| `errors`    | the one exception, its stable codes and the exit codes                        |
| `models/`   | equations of the papers as pure functions                                     |
| `state/`    | the run-state file that a topology writes; the loop's own state file          |
| `switch/`   | finsy behind a client with time limits; the contract of `p4src/qthresh.p4`    |
| `measure/`  | robust estimators and what they say per egress port                           |
| `loop/`     | flows, decisions, event log, control socket: the live loop                    |
| `cli/`      | the command `fairlane`                                                        |
"""

__version__ = "0.1.0"
