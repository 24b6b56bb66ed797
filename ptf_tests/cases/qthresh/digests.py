# SPDX-License-Identifier: Apache-2.0
"""Digests: a new flow, a sample of T_res, a port's report; each with the right values, and none too many."""

from __future__ import annotations

import ipaddress
import time
from typing import Any

from base import SERVICE_S, SLOW_PORT, SLOW_RATE_BPS
from packets import FiveTuple, data, flow, flow6, frame
from qthresh_base import QthreshTest


class NewFlow(QthreshTest):
    """The first packet of a flow without an entry tells the flow, once for a burst."""

    def runTest(self) -> None:
        self.enable_digest("new_flow_t")
        self.limit_port(port=2)
        for five_tuple, version in ((flow(1, to_port=2), 4), (flow6(2, to_port=2), 6)):
            for _ in range(5):
                self.send(frame(five_tuple))
            digest = self.next_digest("new_flow_t")
            self.assertEqual(
                digest,
                {
                    "ip_version": version,
                    "src": int(ipaddress.ip_address(five_tuple.src)),
                    "dst": int(ipaddress.ip_address(five_tuple.dst)),
                    "protocol": 6,
                    "src_port": five_tuple.src_port,
                    "dst_port": five_tuple.dst_port,
                    "egress_port": 2,
                    "traffic_class": 0,
                    "vid": 0,
                },
            )
            self.assertEqual(self.receive_count(2, timeout_s=0.2), 5)
            self.no_digest("new_flow_t", within_s=0.05)


class NewFlowAgain(QthreshTest):
    """A flow that still has no entry is reported again, at most once in 100 ms."""

    def runTest(self) -> None:
        self.enable_digest("new_flow_t")
        self.limit_port(port=2)
        told: list[float] = []
        started = time.monotonic()
        sent = 0
        while len(told) < 3:
            self.assertLess(time.monotonic(), started + 5, "not told three times in 5 s")
            # A UDP source port that varies would be another flow; the class tells the digests apart.
            self.send(frame(flow(3, to_port=2)))
            sent += 1
            if not self.switch.digests.empty():
                self.next_digest("new_flow_t")
                told.append(time.monotonic())
            time.sleep(0.002)
        self.assertGreaterEqual(told[2] - started, 0.19)
        self.assertGreater(sent, len(told), "each packet was told")


class NoNewFlowWithEntry(QthreshTest):
    """A flow with an entry, or for a port without a limit, is not told."""

    def runTest(self) -> None:
        self.enable_digest("new_flow_t")
        self.limit_port(port=2)
        self.add_flow(flow(1, to_port=2), 1)
        self.send_and_receive(frame(flow(1, to_port=2)))
        self.send_and_receive(frame(flow(2, to_port=SLOW_PORT)), to_port=SLOW_PORT)
        self.no_digest("new_flow_t")


class TResTest(QthreshTest):
    """Data goes 1 -> 2, the ACK comes back 2 -> 1; port 2 is managed, so that its departures are probed."""

    five_tuple: FiveTuple = flow(1, to_port=2)

    def setUp(self) -> None:
        super().setUp()
        self.limit_port(port=2)
        for number, five_tuple in enumerate((flow(1, to_port=2), flow6(1, to_port=2))):
            self.add_flow(five_tuple, number)
        self.enable_digest("t_res_t")
        # Probes are 50 ms apart, also from the start of the switch's clock.
        time.sleep(0.06)

    def send_data(self, seq: int, payload: int = 100) -> float:
        """The time at which the segment was out, s."""
        self.send_and_receive(data(self.five_tuple, seq, payload))
        return time.monotonic()

    def send_ack(self, ack: int, payload: int = 0) -> None:
        self.send_and_receive(data(self.five_tuple.reverse(), 1, payload, ack=ack), to_port=1, from_port=2)

    def sample(self, wait_s: float = 0.03, seq: int = 1000) -> dict[str, Any]:
        """One probe and its ACK: checks the sample against the clock here."""
        before_data = time.monotonic()
        after_data = self.send_data(seq)
        while time.monotonic() < after_data + wait_s:
            time.sleep(0.001)
        before_ack = time.monotonic()
        self.send_ack(seq + 100)
        digest = self.next_digest("t_res_t")
        after_ack = time.monotonic()
        self.assertGreaterEqual(digest["t_res_us"], (before_ack - after_data) * 1e6)
        self.assertLessEqual(digest["t_res_us"], (after_ack - before_data) * 1e6)
        return digest


class TResSample(TResTest):
    """T_res is the time from the segment's departure to the ACK of its last byte."""

    def runTest(self) -> None:
        digest = self.sample()
        self.assertEqual(digest["egress_port"], 2)
        self.assertEqual(digest["traffic_class"], 0)
        self.assertEqual(digest["frame_bytes"], 154)
        self.assertEqual(digest["flow_hash"], self.five_tuple.hash())
        if self.is_embedded:
            self.assertEqual(self.register("t_res_last_us", 2), digest["t_res_us"])
            self.assertEqual(self.register("t_res_min_us", 2), digest["t_res_us"])


class TResSampleIpv6(TResTest):
    """The same over IPv6."""

    five_tuple = flow6(1, to_port=2)

    def runTest(self) -> None:
        self.assertEqual(self.sample()["flow_hash"], self.five_tuple.hash())


class TResSequenceWraps(TResTest):
    """Sequence numbers wrap: a segment that ends beyond 2^32 is measured."""

    def runTest(self) -> None:
        before = time.monotonic()
        self.send_data(2**32 - 50)
        self.send_ack(50)
        self.assertLessEqual(self.next_digest("t_res_t")["t_res_us"], (time.monotonic() - before) * 1e6)


class TResDelayedAck(TResTest):
    """An ACK for more than the probe was delayed for a later segment: no sample. The next probe measures again."""

    def runTest(self) -> None:
        self.send_data(1000)
        self.send_data(1100)
        self.send_ack(1200)
        self.no_digest("t_res_t", within_s=0.1)
        self.sample(seq=1200)


class TResOldAck(TResTest):
    """An ACK for less than the probe changes nothing: the probe waits on."""

    def runTest(self) -> None:
        self.send_data(1000)
        self.send_ack(1000)
        self.no_digest("t_res_t", within_s=0.1)
        self.send_ack(1100)
        self.assertGreaterEqual(self.next_digest("t_res_t")["t_res_us"], 100_000)


class TResKarn(TResTest):
    """A retransmission while the probe is out spoils it (Karn): no sample."""

    def runTest(self) -> None:
        self.send_data(1000)
        self.send_data(1000)
        self.send_ack(1100)
        self.no_digest("t_res_t", within_s=0.1)
        self.sample(seq=1100)


class TResOnlyPureAcks(TResTest):
    """An ACK with data waits for the application: it is not a sample."""

    def runTest(self) -> None:
        self.send_data(1000)
        self.send_ack(1100, payload=20)
        self.no_digest("t_res_t", within_s=0.1)


class TResOtherFlow(TResTest):
    """The ACK of another flow is not an answer."""

    def runTest(self) -> None:
        self.send_data(1000)
        other = self.five_tuple.with_changes(src_port=39999)
        self.send_and_receive(data(other.reverse(), 1, 0, ack=1100), to_port=1, from_port=2)
        self.no_digest("t_res_t", within_s=0.1)
        self.send_ack(1100)
        self.next_digest("t_res_t")


class PortReport(QthreshTest):
    """A port's report holds the rate of its busy line, the mean frame, the active flows and what waits."""

    def runTest(self) -> None:
        self.enable_digest("port_report_t")
        for number in range(3):
            self.add_flow(flow(number), number)
        self.limit_port(report_period_us=1_000_000)
        self.bursts((flow(0), 4), (flow(1), 1), (flow(1), 1, {"length": 180}))
        self.drain(6)
        # 6 services: the first began with nothing waiting behind it, after the last, a longer one, nothing
        # followed; 4 are timed.
        # This packet finds the period over.
        self.burst(flow(2), 1)
        while True:
            report = self.next_digest("port_report_t")
            if report["busy_packets"]:
                break
        self.assertEqual(report["egress_port"], SLOW_PORT)
        self.assertEqual(report["busy_packets"], 4)
        self.assertEqual(report["busy_bytes"], 400)
        rate_bps = 8e6 * report["busy_bytes"] / report["busy_us"]
        tolerance = 0.001 if self.is_embedded else 0.02
        self.assertAlmostEqual(rate_bps, SLOW_RATE_BPS, delta=tolerance * SLOW_RATE_BPS)
        self.assertEqual(report["flows"], 3)  # the packet that finds the period over counts in it
        self.assertGreaterEqual(report["interval_us"], 1_000_000)
        self.assertLessEqual(report["waiting_packets"], 1)
        self.drain(1)


class NoReportWithoutPeriod(QthreshTest):
    """A port with report period 0 reports nothing."""

    def runTest(self) -> None:
        self.enable_digest("port_report_t")
        self.add_flow(flow(), 1)
        self.limit_port(report_period_us=0)
        self.burst(flow(), 4)
        self.drain(4)
        self.no_digest("port_report_t", within_s=SERVICE_S)
