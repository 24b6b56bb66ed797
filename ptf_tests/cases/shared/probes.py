# SPDX-License-Identifier: GPL-2.0-or-later
"""Probes of a link: sent by the controller, turned round by a neighbour, back with times; in nobody's counters, and no tool for hosts."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import time
from dataclasses import replace

from base import REASON_SHORT
from client import wait_until
from probe_base import BACK, MACS, OUT, PACKET_IN_PROBE, REFUSED, TURN_PERIOD_S, TURNED, Probe, ProbeTest


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
