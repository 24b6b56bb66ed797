# SPDX-License-Identifier: Apache-2.0
"""Runners: each takes one `Scenario` and returns its `RunResult`; `sim` in virtual time, `mininet` with real TCP."""

SIM = "fairlane_lab.runners.sim:run"
"""`run(scenario) -> RunResult`."""
KERNEL = "fairlane_lab.runners.sim:run_kernel"
"""As `SIM`, with real hosts."""
MININET = "fairlane_lab.runners.mininet:run_many"
"""`run_many(scenarios, options, on_result, report)`."""
