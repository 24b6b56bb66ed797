# SPDX-License-Identifier: GPL-2.0-or-later
"""Probes of a link: sent by the controller, turned round by a neighbour, back with times; in nobody's counters, and no tool for hosts."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import struct
import time
from dataclasses import dataclass, replace

from packet_io import PacketIoTest

from base import NO_FLOW_SLOT, REASON_SHORT, SERVICE_S, SLOW_PORT, LaneTest, TooSlow
from client import wait_until
from packets import flow

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


class ProbeTest(PacketIoTest):
    """Words for the tests below."""

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


class ThereAndBack(ProbeTest):
    """A probe leaves with the time of its departure; turned round it comes to the controller with the time of its return, on one clock."""

    def runTest(self) -> None:
        self.switch.send_packet_out(Probe().emit(), 2)
        out = self.take(2)
        self.assertEqual((out.kind, out.nonce, out.turn_us), (OUT, 0x1234_5678, 0))
        self.assertGreater(out.departed_us, 0)
        time.sleep(0.05)
        self.send(replace(out, kind=BACK, turn_us=77).emit(), 2)
        packet = self.next_packet_in()
        self.assertEqual((packet["ingress_port"], packet["reason"]), (2, PACKET_IN_PROBE))
        home = Probe.parse(packet.payload)
        self.assertEqual((home.departed_us, home.nonce, home.turn_us), (out.departed_us, out.nonce, 77))
        self.assertGreaterEqual(home.returned_us - home.departed_us, 50_000)
        self.assertLess(home.returned_us - home.departed_us, 5_000_000)
        self.assertEqual(self.probes(2), [0, 1, 0, 1])
        self.assertEqual(self.all_drops(), {})


class TurnedRound(ProbeTest):
    """A neighbour's probe goes back where it came from at once, with what it stayed; its own times are as they were."""

    def runTest(self) -> None:
        for port in (1, 2):
            back = self.turn_one(port, Probe(departed_us=123_456_789_012))
            self.assertEqual(replace(back, turn_us=0), Probe(BACK, departed_us=123_456_789_012))
            self.assertLess(back.turn_us, 1_000_000)
            self.assertEqual(self.probes(port), [0, 0, 1, 0])
        self.receive_nothing()
        self.assertEqual(self.all_drops(), {})


class OnlyWhatIsAwaited(ProbeTest):
    """A frame that no probe of this port waits for goes nowhere: before, with another nonce, at another port, and a second time."""

    def runTest(self) -> None:
        answer = Probe(BACK).emit()
        self.send(answer, 2)
        self.switch.send_packet_out(Probe().emit(), 2)
        self.take(2)
        self.send(Probe(BACK, nonce=0x1234_5670).emit(), 2)
        self.send(Probe(BACK, nonce=0).emit(), 2)
        self.send(answer, 1)
        self.send(answer, 2)
        self.next_packet_in()
        for _ in range(20):
            self.send(answer, 2)
        wait_until(lambda: self.probes(2) == [23, 1, 0, 1], f"23 refusals at port 2, seen {self.probes(2)}")
        self.assertEqual(self.probes(1), [1, 0, 0, 0])
        self.assertTrue(self.switch.packets.empty(), "a host can make packet-ins")
        self.receive_nothing()
        self.assertEqual(self.all_drops(), {})


class EightOutstanding(ProbeTest):
    """Probes whose nonces differ in the low 3 bits wait beside each other, so a long link can be probed often."""

    def runTest(self) -> None:
        for place in range(8):
            self.switch.send_packet_out(Probe(nonce=0xABCD_EF00 + place).emit(), 1)
        sent = [self.take(1) for _ in range(8)]
        for probe in reversed(sent):
            self.send(replace(probe, kind=BACK).emit(), 1)
        home = sorted(Probe.parse(self.next_packet_in().payload).nonce for _ in sent)
        self.assertEqual(home, [0xABCD_EF00 + place for place in range(8)])


class FloodOfProbes(ProbeTest):
    """A port turns at most one probe in 10 ms, and no long frame: a host gets no echo of what it sends."""

    def runTest(self) -> None:
        time.sleep(2 * TURN_PERIOD_S)
        began = time.monotonic()
        for _ in range(200):
            self.send(Probe().emit(), 1)
        self.send(Probe().emit(65), 1)
        wait_until(lambda: self.probes(1)[REFUSED] + self.probes(1)[TURNED] == 201, "all probes looked at")
        most = 1 + (time.monotonic() - began) / TURN_PERIOD_S
        self.assertLessEqual(self.probes(1)[TURNED], most)
        self.assertGreaterEqual(self.probes(1)[TURNED], 1)
        self.receive_count(1, timeout_s=0.2)
        self.assertEqual(self.all_drops(), {})


class ShortProbe(ProbeTest):
    """A frame of the EtherType that ends before or inside a probe's header is short, not a probe; from the controller it goes out as it is."""

    def runTest(self) -> None:
        for kind in (OUT, BACK):
            whole = Probe(kind).emit(38)
            for length in (
                14,
                16,
                17,
                37,
            ):  # no word of it, before the kind, behind the kind, one byte less than a probe
                self.expect_drop(whole[:length], REASON_SHORT)
                self.switch.send_packet_out(whole[:length], 2)
                self.receive(whole[:length], 2)
        for port in (1, 2):
            self.assertEqual(self.probes(port), [0, 0, 0, 0])
        self.assertTrue(self.switch.packets.empty())
        self.assertEqual(self.turn_one(1, Probe()).kind, BACK)


class OtherExperiments(ProbeTest):
    """Frames of the EtherType that are not ours are frames like any other, from hosts and from the controller."""

    def runTest(self) -> None:
        other = MACS + bytes.fromhex("88b5 0001 0203") + bytes(40)
        self.insert("l2", {"hdr.ethernet.ether_type": "0x88b5/&0xffff"}, "l2_forward", priority=1, port=2)
        self.send(other, 1)
        self.receive(other, 2)
        strange = Probe(kind=7).emit()
        self.send(strange, 1)
        self.receive(strange, 2)
        for payload in (other, other[:16], strange):
            self.switch.send_packet_out(payload, 1)
            self.receive(payload, 1)
        self.assertEqual(self.probes(1), [0, 0, 0, 0])


class InTheQueue(ProbeTest):
    """A probe waits behind the traffic of a managed port, departs when it is its turn, and is no flow, no packet admitted and no drop."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2 does not read registers")
        self.limit_port(packets=3, report_period_us=0xFFFFFFFF)
        self.bursts((flow(1), 4))
        before, flows = self.admitted(), self.register("report_flows", SLOW_PORT)
        self.switch.send_packet_out(Probe(nonce=9).emit(), SLOW_PORT)
        wait_until(lambda: sum(self.probes(SLOW_PORT)) == 1, "the probe looked at")
        if self.probes(SLOW_PORT)[REFUSED] == 0:
            raise TooSlow
        self.assertTrue(self.receive_any(SLOW_PORT, timeout_s=SERVICE_S * 5))
        self.switch.send_packet_out(Probe().emit(), SLOW_PORT)
        wait_until(lambda: self.probes(SLOW_PORT)[SENT] == 1, "the probe admitted")
        self.assertEqual((self.admitted(), self.register("report_flows", SLOW_PORT)), (before, flows))
        for _ in range(3):
            self.assertTrue(self.receive_any(SLOW_PORT, timeout_s=SERVICE_S * 5))
        self.assertGreater(self.take(SLOW_PORT).departed_us, 0)
        self.assertEqual(self.all_drops(), {})
        self.assertEqual(self.counter("flow_drops", NO_FLOW_SLOT)[0], 0)
        self.assert_no_occupancy(NO_FLOW_SLOT)
        self.slow_port_is_idle()


class LengthOfPackets(LaneTest):
    """Probes are in nothing that a port's report says of its line: L_D stays the length of the flows' packets."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2 does not read registers")
        self.limit_port(packets=50, report_period_us=0xFFFFFFFF)
        self.bursts((flow(1), 3))
        self.switch.send_packet_out(Probe().emit(), SLOW_PORT)
        self.bursts((flow(1), 1))
        self.drain(5)
        # Whole services that began with something waiting: the second and third frame's; the probe's is left out.
        self.assertEqual(self.register("busy_packets", SLOW_PORT), 2)
        self.assertEqual(self.register("busy_bytes", SLOW_PORT), 200)
