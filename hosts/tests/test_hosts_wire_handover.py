# SPDX-License-Identifier: Apache-2.0
"""BCR+ beside E-RTO on the wire when the network behind a delay spike is another one: slower, or faster.

3 Mbit/s (19 segments in 53 ms) --spike--> 500 kbit/s (3): the old window of 31 does not fit into 3 + a queue of 24
750 kbit/s (5)                  --spike--> 6 Mbit/s (38):  the old window of 12 is a third of it
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

import pytest
from packet_bed import PacketBed, Script, Segment, Span, Trace

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and BPF programs: needs root"),
]

MSS = 1000
SPIKE_S = 0.7


@pytest.fixture(scope="module")
def bed() -> Generator[PacketBed]:
    with PacketBed(rate_bps=3_000_000, delay_s=0.025, queue_packets=24) as made:
        yield made


@dataclass(frozen=True)
class HandOver:
    """What happened after the spike."""

    trace: Trace
    end_s: float

    @property
    def retransmissions(self) -> list[Segment]:
        return [s for s in self.trace.retransmissions if s.t_s > self.end_s - SPIKE_S]

    @property
    def queue_drops(self) -> list[Segment]:
        return [s for s in self.trace.drops if s.t_s > self.end_s - SPIKE_S]

    def acked(self, within_s: float) -> int:
        """Bytes acknowledged from the end of the spike on, those that were held left out."""
        sent = max(s.end for s in self.trace.data if s.t_s < self.end_s)
        by_then = [a.ack for a in self.trace.got() if (a.delivered_s or 0.0) < self.end_s + within_s]
        return max(by_then) - sent


def hand_over(bed: PacketBed, variant: str, old_bps: int, new_bps: int, first_loss: int, at: int) -> HandOver:
    """Everything is held from segment `at` on; meanwhile the rate changes. `first_loss` ends slow start."""
    bed.use(variant)
    bed.set_path(rate_bps=old_bps)
    bed.record()

    def change() -> None:
        deadline = time.monotonic() + 20
        while not any(s.number >= at for s in bed.segments()):
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)
        time.sleep(SPIKE_S / 3)  # what was on its way then is behind the bottleneck, and held
        bed.set_path(rate_bps=new_bps)

    changing = threading.Thread(target=change)
    changing.start()
    script = Script(drop=[first_loss], holds=[Span(for_s=SPIKE_S, from_data=at)])
    trace = bed.transfer(at * MSS + (120 if new_bps < old_bps else 600) * MSS, mss=MSS, script=script)
    changing.join()
    assert trace.complete
    assert bed.counters(bed.sender)["erto_probes"] >= 1
    return HandOver(trace, trace.sent(at).t_s + SPIKE_S)


def best_of(tries: int, pair: Callable[[], bool]) -> bool:
    """The bed's forwarder is late on a busy machine, which blurs the rate that BCR+ measures: one clear pair is enough."""
    return any(pair() for _ in range(tries))


def test_to_a_slower_network_bcr_loses_nothing_where_erto_overflows_the_queue(bed: PacketBed) -> None:
    def pair() -> bool:
        bcr, erto = (hand_over(bed, name, 3_000_000, 500_000, first_loss=45, at=400) for name in ("bcr+", "erto"))
        fewer_drops = len(bcr.queue_drops) < len(erto.queue_drops)
        return fewer_drops and len(bcr.retransmissions) < len(erto.retransmissions)

    assert best_of(3, pair)


def test_to_a_faster_network_bcr_takes_it_where_erto_grows_by_one_a_round_trip(bed: PacketBed) -> None:
    def pair() -> bool:
        bcr, erto = (hand_over(bed, name, 750_000, 6_000_000, first_loss=6, at=100) for name in ("bcr+", "erto"))
        return bcr.acked(0.8) > 1.2 * erto.acked(0.8)

    assert best_of(3, pair)
