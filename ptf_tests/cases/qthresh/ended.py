# SPDX-License-Identifier: Apache-2.0
"""Packets that were counted in and end behind admission: each is counted out, and the port takes as much as before."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

from base import REASON_ROUTE_DROP, SERVICE_S, SLOW_PORT
from client import wait_until
from packets import FiveTuple, flow, frame, host_mac, ipv4
from qthresh_base import QthreshTest, fallback_slot

BMV2 = "BMv2 does not tell the program of a packet that ends behind ingress"


class EndedTest(QthreshTest):
    """Words for what ends packets."""

    def admitted_are(self, packets: int, port: int = SLOW_PORT) -> None:
        wait_until(lambda: self.admitted(port=port)[0] == packets, f"{packets} packets admitted")

    def set_port(self, port: int, **options: int) -> None:
        """Over the switch's control socket."""
        self.ask({"op": "set_port", "port": port, **options})

    @contextmanager
    def link_down(self) -> Generator[None]:
        """The slow port's interface is down, and the switch knows."""
        command = ["ip", "link", "set", "dev", f"s{SLOW_PORT}"]
        subprocess.run([*command, "down"], check=True, timeout=10)
        try:
            yield
        finally:
            subprocess.run([*command, "up"], check=True, timeout=10)

    def all_arrive(self) -> None:
        """A burst of the port's limit comes through, as at first."""
        self.slow_port_is_idle()
        self.burst(flow(), 1 + 5)
        self.drain(1 + 5)


class LinkDown(EndedTest):
    """What is admitted while the link is down is counted out: when it is back, everything arrives."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2 sends to an interface that is down")
        self.limit_port(packets=5)
        self.set_qthresh(5)
        self.add_flow(flow(), 1)
        with self.link_down():
            wait_until(lambda: self._one_passes_by(), "the switch knows that the link is down")
            before = self.admitted()[0]
            for _ in range(100):
                self.send(frame(flow()))
            self.admitted_are(before + 100)
            self.assert_no_occupancy(1)
        wait_until(lambda: self._one_comes_through(), "the switch knows that the link is up")
        self.all_arrive()
        self.assert_no_occupancy(1)

    def _one_passes_by(self) -> bool:
        """A packet is admitted and ends at once: none waits, none is on the line."""
        before = self.admitted()[0]
        for _ in range(3):  # behind one on the line two would wait
            self.send(frame(flow()))
        self.admitted_are(before + 3)
        return self.register("port_occupancy", SLOW_PORT) == 0

    def _one_comes_through(self) -> bool:
        self.send(frame(flow()))
        return self.receive_any(SLOW_PORT, timeout_s=SERVICE_S * 2)


class QueueFull(EndedTest):
    """A limit that promises more than the queue holds: what the queue refuses is counted out."""

    def runTest(self) -> None:
        self.needs_embedded(BMV2)
        self.limit_port(packets=50)
        self.set_qthresh(40)
        self.add_flow(flow(), 1)
        self.set_port(SLOW_PORT, queue_packets=3)
        try:
            self.burst(flow(), 1 + 10)
            self.assertEqual(self.while_waiting("flow_occupancy", 1), [3])
            self.assertEqual(self.while_waiting("port_occupancy", SLOW_PORT), [3])
            self.assertEqual(self.while_waiting("port_occupancy_bytes", SLOW_PORT), [300])
            self.drain(1 + 3)
        finally:
            self.set_port(SLOW_PORT, queue_packets=60)
        self.assert_no_occupancy(1)
        self.all_arrive()


class ManagedUnderLoad(EndedTest):
    """A port that is managed while packets wait which nobody counted promises more than its queue holds: nothing leaks."""

    def runTest(self) -> None:
        self.needs_embedded(BMV2)
        self.set_port(SLOW_PORT, queue_packets=6)
        try:
            self.burst(flow(), 1 + 4)
            self.limit_port(packets=6)
            self.burst(flow(), 6)  # two of them have room
            self.assertEqual(self.while_waiting("port_occupancy", SLOW_PORT), [2])
            self.drain(1 + 4 + 2)
        finally:
            self.set_port(SLOW_PORT, queue_packets=60)
        self.assert_no_occupancy(fallback_slot(flow()))
        self.all_arrive()


class DropPortIsNotCountedIn(QthreshTest):
    """A route to v1model's drop port is a drop of the table, also where that port is managed."""

    def runTest(self) -> None:
        self.limit_port(port=511)
        self.insert("ipv4_lpm", {"hdr.ipv4.dst": ipv4(2, 66) + "/32"}, "forward", dst_mac=host_mac(2), port=511)
        self.expect_drop(frame(FiveTuple(ipv4(1), ipv4(2, 66))), REASON_ROUTE_DROP)
        self.assertEqual(self.admitted(port=511), (0, 0))


class PortThatIsNotThere(EndedTest):
    """What is admitted for a port that the switch does not have is counted out again."""

    def runTest(self) -> None:
        self.needs_embedded(BMV2)
        self.limit_port(port=77, packets=3)
        self.add_flow(FiveTuple(ipv4(1), ipv4(2, 66)), 5)
        self.insert("ipv4_lpm", {"hdr.ipv4.dst": ipv4(2, 66) + "/32"}, "forward", dst_mac=host_mac(2), port=77)
        for _ in range(10):
            self.send(frame(FiveTuple(ipv4(1), ipv4(2, 66))))
        self.admitted_are(10, port=77)
        self.assertEqual(self.register("port_occupancy", 77), 0)
        self.assertEqual(self.register("port_occupancy_bytes", 77), 0)
        self.assertEqual(self.register("flow_occupancy", 5), 0)
