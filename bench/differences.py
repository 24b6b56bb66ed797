# SPDX-License-Identifier: Apache-2.0
"""Measures what BMv2's queues do otherwise than ours, with the same program between the same interfaces (docs/bmv2.md).

Both targets get a port of 1 Mbit/s for frames of 1000 bytes and a queue of 50: BMv2 as 125 packets a second over Thrift,
fairlane-switch in bit/s.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator

from fairlane_switch.bmv2 import queue_depth, queue_rate, run_cli
from fairlane_switch.switch import PortOptions
from summary import Run
from testbed import Bed, bmv2_is_installed, entries, make_bed, start_bmv2, start_ours

RATE_BPS = 1_000_000
MEAN_BYTES = 1000
QUEUE_PACKETS = 50
LENGTHS = (250, 1000, 1500)
BURST_FRAMES = 300
UNMANAGED = 100_000
"""Packets after which the program itself refuses: never before the queue is full, so that the target's queue shows."""

Target = Callable[[Bed], contextlib.AbstractContextManager[object]]


def ours(bed: Bed) -> contextlib.AbstractContextManager[object]:
    """fairlane-switch; the rate in bit/s."""
    shaped = PortOptions(2, bed.right, rate_bps=RATE_BPS, queue_packets=QUEUE_PACKETS)
    return start_ours((PortOptions(1, bed.left), shaped), entries(0, max_packets=UNMANAGED))


@contextlib.contextmanager
def bmv2(bed: Bed) -> Generator[None]:
    """simple_switch_grpc; the rate in packets a second, over Thrift. Raises RuntimeError with its words."""
    with start_bmv2((bed.left, bed.right), entries(0, max_packets=UNMANAGED)) as switch:
        run_cli(switch.thrift_port or 0, queue_rate(2, RATE_BPS, MEAN_BYTES), queue_depth(2, QUEUE_PACKETS))
        yield


def rate(bed: Bed, length: int, seconds: float) -> float:
    """Bit/s that arrive of twice the rate, offered in frames of `length` bytes."""
    pps = int(2 * RATE_BPS / (8 * min(length, MEAN_BYTES))) + 1
    result = bed.probe("--from", "pa", "--to", "pb", "--seconds", seconds, "--length", length, "--pps", pps)
    return float(result["received"]["rate_bps"])


def burst(bed: Bed) -> int:
    """Frames that come out of `BURST_FRAMES` that arrive within a few milliseconds."""
    command = ("--from", "pa", "--to", "pb", "--seconds", 0.02, "--length", MEAN_BYTES, "--pps", BURST_FRAMES * 50)
    drained_s = (QUEUE_PACKETS + 200) * 8 * MEAN_BYTES / RATE_BPS
    before = bed.arrived()
    sent = bed.probe(*command)["sent"]
    time.sleep(drained_s)  # whatever waits behind the queue has time to come out
    return bed.arrived() - before if sent else 0


def bench(run: Run) -> None:
    """The rows, none where BMv2 is missing; they are all that is measured."""
    targets: dict[str, Target] = {"fairlane-switch": ours, "simple_switch_grpc": bmv2} if bmv2_is_installed() else {}
    for name, target in targets.items():
        group = f"what BMv2 does otherwise: {name}"
        for length in LENGTHS:
            with make_bed() as bed, target(bed):
                got = rate(bed, length, run.seconds) / RATE_BPS
            run.row(group, f"1 Mbit/s, {length}-byte frames", 100 * got, "%")
        with make_bed() as bed, target(bed):
            run.row(group, f"burst of {BURST_FRAMES}, queue of {QUEUE_PACKETS}", burst(bed), "frames")
