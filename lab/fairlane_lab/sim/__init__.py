# SPDX-License-Identifier: Apache-2.0
"""Virtual time: the control plane's own code on simulated switches, with nothing in between that knows of a wall clock.

| where      | what                                                                                    |
|------------|-----------------------------------------------------------------------------------------|
| `loop`     | an asyncio event loop whose clock is the simulation: to wait is to simulate             |
| `client`   | a `SwitchClient` whose switch is in the simulation                                       |
| `programs` | compiled P4 programs, read once a process                                               |
| `variants` | TCP variants by the names of `fairlane_hosts.variants`, in the simulator's options       |
| `config`   | a `Scenario` as the simulator's configuration                                           |
| `world`    | one simulation with its loop and its switches, set up by the controller's own code       |
| `measure`  | what is read at the ends of the measured window and while it runs, and its sum          |
"""
