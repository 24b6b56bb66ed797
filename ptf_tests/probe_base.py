# SPDX-License-Identifier: GPL-2.0-or-later
"""ProbeTest: what the tests of probes start from."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

from base import LaneTest

OUT, BACK = 1, 2
REFUSED, SENT, TURNED, HOME = range(4)
"""Of the counter `probes`."""
PACKET_IN_PROBE = 127
TURN_PERIOD_S = 0.01
MACS = bytes.fromhex("0180c200000e 020000000001")


@dataclass(frozen=True)
class Probe:
    """A probe's frame; times in us."""

    kind: int = OUT
    nonce: int = 0x1234_5678
    departed_us: int = 0
    returned_us: int = 0
    turn_us: int = 0

    def emit(self, length: int = 60) -> bytes:
        times = (self.departed_us << 48 | self.returned_us).to_bytes(12, "big") + self.turn_us.to_bytes(4, "big")
        body = struct.pack("!HHBBI", 0x88B5, 0xFA1A, self.kind, 0, self.nonce) + times
        return (MACS + body).ljust(length, b"\0")

    @staticmethod
    def parse(data: bytes) -> Probe:
        ether_type, magic, kind, _, nonce = struct.unpack("!HHBBI", data[12:22])
        assert (ether_type, magic) == (0x88B5, 0xFA1A), data.hex()
        times = int.from_bytes(data[22:34], "big")
        return Probe(kind, nonce, times >> 48, times & (1 << 48) - 1, int.from_bytes(data[34:38], "big"))


class ProbeTest(LaneTest):
    """Probes of a port; skipped for a program that has none."""

    def setUp(self) -> None:
        super().setUp()
        if "probes" not in {counter.alias for counter in self.switch.schema.counters}:
            self.skipTest("the program has no probes")

    def probes(self, port: int) -> list[int]:
        """Refused, sent, turned, home."""
        return [self.counter("probes", port << 2 | what)[0] for what in range(4)]

    def take(self, port: int, timeout_s: float = 3.0) -> Probe:
        """The probe that comes out of a port next."""
        seen = self.dataplane.poll(port_number=port, timeout=timeout_s)
        self.assertIsInstance(seen, self.dataplane.PollSuccess, f"no probe out of port {port}")
        return Probe.parse(bytes(seen.packet))

    def turn_one(self, port: int, probe: Probe) -> Probe:
        """What the switch makes of a neighbour's probe, once the port may turn one again."""
        time.sleep(2 * TURN_PERIOD_S)
        self.send(probe.emit(), port)
        return self.take(port)
