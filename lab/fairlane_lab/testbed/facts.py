# SPDX-License-Identifier: Apache-2.0
"""What a running topology really is, read back: target, offloads of every interface, the first windows of the BPF senders."""

from __future__ import annotations

import subprocess
from typing import Any

from fairlane_hosts.variants import bpf_variants

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
    return {
        "runtime": "mininet",
        "target": bed.target,
        "instance": network.options.instance,
        "program": network.options.program,
        "offloads": {name: _offloads(name, prefix) for name, prefix in interfaces.items()},
        "initial_window_packets": {
            variant.name: variant.defines["FL_INITIAL_WINDOW"]
            for variant in bpf_variants()
            if "FL_INITIAL_WINDOW" in variant.defines
        },
        "control_loop": "runs in every run, also where it decides nothing",
        "queue_packets": "sampled"
        if bed.target == "embedded"
        else "unknown: BMv2 does not read registers over P4Runtime",
    }


def _offloads(name: str, prefix: list[str]) -> list[str]:
    """The offloads that are on: none, or the run would be false."""
    command = [*prefix, "ethtool", "-k", name.rpartition("/")[2]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise RunError(f"{' '.join(command)}: {done.stderr.strip()}")
    on = [feature for feature in OFFLOADS if f"{feature}: on" in done.stdout]
    if any(feature in on for feature in OFFLOADS[1:]):
        raise RunError(f"{name}: these offloads are on: {', '.join(on)}")
    return on
