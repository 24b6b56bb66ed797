# SPDX-License-Identifier: Apache-2.0
"""What a running topology really is, read back: target, offloads of every interface."""

from __future__ import annotations

import subprocess
from typing import Any

from fairlane_lab.run_result import RunError
from fairlane_lab.testbed.bed import Bed

OFFLOADS = (
    "rx-checksumming",
    "tx-checksumming",
    "scatter-gather",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
)


def describe_bed(bed: Bed) -> dict[str, Any]:
    """Facts for `RunResult.about`. Raises RunError when an offload is on that would falsify the run."""
    network = bed.network
    interfaces = {f"{name}/eth0": ["mnexec", "-a", str(host.pid)] for name, host in network.hosts.items()}
    interfaces |= {port: [] for switch in network.switches.values() for port in switch.interfaces().values()}
    offloads: dict[str, list[str]] = {}
    for name, prefix in interfaces.items():
        command = [*prefix, "ethtool", "-k", name.rpartition("/")[2]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        if done.returncode != 0:
            raise RunError(f"{' '.join(command)}: {done.stderr.strip()}")
        on = offloads[name] = [feature for feature in OFFLOADS if f"{feature}: on" in done.stdout]
        if any(feature != "rx-checksumming" for feature in on):
            raise RunError(f"{name}: these offloads are on: {', '.join(on)}")
    options = network.options
    about = {"target": bed.target, "instance": options.instance, "program": options.program, "offloads": offloads}
    return {"runtime": "mininet", "processes": "one" if options.in_one_process else "separate", **about}
