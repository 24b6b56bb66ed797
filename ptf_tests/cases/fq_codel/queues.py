# SPDX-License-Identifier: GPL-2.0-or-later
"""Flows in queues of their own by their hash, CoDel in each, and the RFC's scheduler. The slow port has 8 queues, and strict priority where nothing else is said."""

from __future__ import annotations

import struct
import zlib

from aqm_base import ECT, FRAME_BYTES, REASON_AQM, SERVICE_US, AqmTest
from base import SLOW_PORT
from codel_oracle import Codel, Waiting
from fq_codel_oracle import FqCodel
from packets import FiveTuple, flow

TARGET_US, INTERVAL_US, MAX_PACKET_BYTES = 300_000, 500_000, 150
QUEUES = 8


def queue_of(five_tuple: FiveTuple, salt: int) -> int:
    """RFC 8290 section 4.1 with CRC-32: salt, addresses, protocol, ports."""
    words = struct.pack(f"!{1 + len(five_tuple.address_words())}I", salt, *five_tuple.address_words())
    rest = struct.pack("!BHH", five_tuple.protocol, five_tuple.src_port, five_tuple.dst_port)
    return zlib.crc32(words + rest) % QUEUES


class FqCodelTest(AqmTest):
    """A managed slow port."""

    def manage(self, **changed: int) -> None:
        values = {"target_us": TARGET_US, "interval_us": INTERVAL_US, "max_packet_bytes": MAX_PACKET_BYTES, "ecn": 1}
        values |= {"queues_count": QUEUES, "hash_salt": 0, "quantum_bytes": 1_514} | changed
        self.insert("fq_codel_port", {"egress_port": SLOW_PORT}, "set_fq_codel", **values)

    def flow_in(self, queue: int, salt: int = 0) -> FiveTuple:
        """A flow whose packets go to this queue."""
        return next(one for one in map(flow, range(1_000)) if queue_of(one, salt) == queue)


class QueueOfTheHash(FqCodelTest):
    """Each flow waits in the queue of its hash, which the salt changes."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2 does not say what waits in a queue")
        for salt in (0, 4711):
            self.setUp()
            self.manage(hash_salt=salt)
            flows = [flow(number) for number in range(5)]
            self._frames = []
            self.bursts((flow(99), 1), *((one, 1) for one in flows))
            waiting = self.while_waiting(self.WAITING_REGISTER, *(SLOW_PORT << 10 | queue for queue in range(QUEUES)))
            expected = [sum(queue_of(one, salt) == queue for one in flows) for queue in range(QUEUES)]
            assert waiting == expected, (salt, waiting, expected)
            self.receive_all()


class CodelInEachQueue(FqCodelTest):
    """A queue that CoDel drops from does not touch another one's packets."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2's queue waits a service time also behind a packet that egress drops")
        # Strict priority serves queue 7 first: what waits in queue 0 waits 3 services more.
        long, short = self.flow_in(0), self.flow_in(7)
        self.manage()
        self._frames = []
        self.bursts((long, 12), (short, 3))
        frames = self.receive_all()
        mine = [name for name, port in ((bytes(one)[-1], one["TCP"].sport) for one in frames) if port == long.src_port]
        assert len(frames) - len(mine) == 3
        codel = Codel(TARGET_US, INTERVAL_US, MAX_PACKET_BYTES)
        codel.queue.extend(Waiting(0, FRAME_BYTES, name) for name in range(12))
        out: list[int] = []
        for now in (0, *range(4 * SERVICE_US, 16 * SERVICE_US, SERVICE_US)):
            packet = codel.deque(now)
            out += [packet.name] if packet is not None else []
        assert mine == out, (mine, out)
        assert self.drops(REASON_AQM)[0] == len(codel.dropped) > 0


class NewQueuesFirst(FqCodelTest):
    """Under the scheduler `fq` flows leave as the RFC has them: one that was idle before those with a long queue, each by its quantum."""

    def setUp(self) -> None:
        super().setUp()
        self.needs_embedded("BMv2 has strict priority only")
        self.ask({"op": "set_port", "port": SLOW_PORT, "scheduler": "fq"})

    def tearDown(self) -> None:
        if self.is_embedded:
            self.ask({"op": "set_port", "port": SLOW_PORT, "scheduler": "strict"})
        super().tearDown()

    def runTest(self) -> None:
        quantum = 256  # 2.56 frames
        self.manage(quantum_bytes=quantum, target_us=10**9)  # CoDel drops none
        flows = [self.flow_in(queue) for queue in (6, 1, 3)]
        orders = list(zip(flows, (7, 4, 1), strict=True))
        model = FqCodel([Codel(10**9) for _ in range(QUEUES)], quantum)
        expected: list[int] = []
        for one, count in orders:
            for number in range(count):
                model.enqueue(queue_of(one, 0), Waiting(0, FRAME_BYTES, one.src_port))
                if not expected and number == 0:  # on the line at once
                    expected += [packet.name for packet in [model.dequeue(0)] if packet is not None]
        while (packet := model.dequeue(0)) is not None:
            expected.append(packet.name)
        self._frames = []
        self.bursts(*orders)
        left = [frame["TCP"].sport for frame in self.receive_all()]
        assert left == expected, (left, expected)


class Marks(FqCodelTest):
    """Packets that say ECT are marked instead of dropped."""

    def runTest(self) -> None:
        self.manage()
        frames = self.burst_of(12, ecn=ECT)
        assert self.fills(frames) == list(range(12))
        assert self.counter("marked", SLOW_PORT)[0] == sum(one["IP"].tos & 3 == 3 for one in frames) > 0
