# SPDX-License-Identifier: Apache-2.0
"""Virtual time: the control plane's own code on simulated switches, with nothing in between that knows of a wall clock.

| where     | what                                                                                             |
|-----------|--------------------------------------------------------------------------------------------------|
| `loop`    | an asyncio event loop whose clock is the simulation: to wait is to simulate                       |
| `client`  | a `SwitchClient` whose switch is in the simulation                                                |
| `config`  | a `Scenario` as the simulator's configuration (`kernel`: that of real hosts)                       |
| `world`   | one simulation with its loop and its switches, set up and controlled by the controller's own code |
| `result`  | counters and samples as a `Recording` (`sharing`: what is computed of it)                         |
"""
