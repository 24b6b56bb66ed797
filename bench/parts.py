# SPDX-License-Identifier: Apache-2.0
"""The parts of `make bench`, in their order."""

from __future__ import annotations

from collections.abc import Callable

import chain
import differences
import forwarding
import kernel_time
import loop
import netsim
import p4runtime
import pipeline
import topology
import wire
from summary import Run

PARTS: dict[str, Callable[[Run], None]] = {
    "pipeline": pipeline.bench,
    "netsim": netsim.bench,
    "kernel_time": kernel_time.bench,
    "forwarding.throughput": forwarding.throughput,
    "forwarding.draining": forwarding.draining,
    "forwarding.memory": forwarding.memory,
    "forwarding.rates": forwarding.rates,
    "forwarding.delays": forwarding.delays,
    "chain.throughput": chain.throughput,
    "chain.tcp": chain.tcp,
    "topology": topology.bench,
    "p4runtime": p4runtime.bench,
    "loop": loop.bench,
    "wire": wire.bench,
    "differences": differences.bench,
}
"""By the file, and the function where it has several."""
