# SPDX-License-Identifier: Apache-2.0
"""The window without a single loss, on the wire: Vegas stops a few packets above the path, Reno's kin fill the queue.

sender --[2 Mbit/s, 50 packets, 25 ms]-- receiver: the path itself holds 12 packets of 1040 bytes
"""

from __future__ import annotations

import os
from collections.abc import Generator
from statistics import median

import pytest
from packet_bed import PacketBed, Trace

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and BPF programs: needs root"),
]

MSS = 1000
FRAME_BYTES = MSS + 54
RATE_BPS, RTT_S, QUEUE_PACKETS = 2_000_000, 0.05, 50
PATH_PACKETS = RATE_BPS * RTT_S / 8 / FRAME_BYTES
SECONDS = 4


@pytest.fixture(scope="module")
def bed() -> Generator[PacketBed]:
    with PacketBed(rate_bps=RATE_BPS, delay_s=RTT_S / 2, queue_packets=QUEUE_PACKETS) as made:
        made.sysctl(made.receiver, "tcp_rmem", "4096 1000000 4000000")
        yield made


def flights(trace: Trace, from_s: float) -> list[int]:
    return [flight for t_s, flight in trace.flights(MSS) if t_s >= from_s]


def test_vegas_keeps_between_alpha_and_beta_packets_in_the_queue(bed: PacketBed) -> None:
    bed.use("vegas")
    trace = bed.transfer(seconds=SECONDS, mss=MSS)
    assert not trace.drops
    assert not trace.retransmissions
    waiting = median(flights(trace, SECONDS / 2)) - PATH_PACKETS
    # alpha = 1 to beta = 3, one packet on the line, and what the machine adds to the RTT looks like a queue to Vegas.
    assert -2 <= waiting <= 5


def test_newreno_fills_the_queue_until_it_overflows(bed: PacketBed) -> None:
    bed.use("newreno")
    trace = bed.transfer(seconds=SECONDS, mss=MSS)
    (first, *_) = [s for s in trace.drops if s.dropped == "queue"]
    before = [flight for t_s, flight in trace.flights(MSS) if t_s < first.t_s]
    assert max(before) >= PATH_PACKETS + QUEUE_PACKETS - 2


def test_vegas_slow_start_doubles_every_other_round_trip(bed: PacketBed) -> None:
    """Of a train of round trips in slow start, Vegas grows in every second; NewReno in each."""
    bed.use("vegas")
    vegas = round_trips_to(bed.transfer(60_000, mss=MSS), 8)
    bed.use("newreno")
    newreno = round_trips_to(bed.transfer(60_000, mss=MSS), 8)
    assert newreno < 4.0
    assert vegas > newreno + 1.0


def round_trips_to(trace: Trace, packets: int) -> float:
    """Round trips from the first data segment until so many packets are out."""
    start_s = trace.sent(1).t_s
    return next((t_s - start_s) / RTT_S for t_s, flight in trace.flights(MSS) if flight >= packets)
