# SPDX-License-Identifier: Apache-2.0
"""The kernel runner: one scenario in virtual time, its hosts namespaces of a User-mode Linux with the kernel's own TCP."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from fairlane_lab.run_result import RunResult
from fairlane_lab.runners import sim
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.kernel import make_machine


def run(scenario: Scenario) -> RunResult:
    """One run, as `runners.sim.run`. The result depends on the scenario and the kernel's file alone, but for `wall_s`."""
    cores = os.sched_getaffinity(0)  # the simulation shares a core with the machine
    try:
        with tempfile.TemporaryDirectory(prefix="fairlane-kernel-") as folder:
            machine = make_machine(Path(folder))
            result = sim.run(scenario, machine)
            machine.check_programs()
            return result
    finally:
        os.sched_setaffinity(0, cores)
