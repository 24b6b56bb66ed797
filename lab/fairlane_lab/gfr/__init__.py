# SPDX-License-Identifier: Apache-2.0
"""What only program `gfr` has in the lab (docs/design-gfr.md): VCs, their ideal shares, what they got.

windows.py  when a VC is active, when it counts   ideal.py    w_i and ideal goodput over time
results.py  samples → VcResult                    metrics.py  VcResult → metrics of a run
ways.py     which managed ports a VC crosses      config.py   scenario → the controller's configuration
counters.py verdicts of each VC                   line.py     what frames take on an ATM line
in_sim.py   set-up and watch in virtual time      (in Mininet: testbed/gfr_watch.py)
"""
