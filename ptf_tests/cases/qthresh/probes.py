# SPDX-License-Identifier: GPL-2.0-or-later
"""qthresh.p4: probes wait in the queues of managed ports, and are in nothing that is counted of flows."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from base import SERVICE_S, SLOW_PORT, TooSlow
from client import wait_until
from packets import flow
from probe_base import REFUSED, SENT, Probe, ProbeTest
from qthresh_base import NO_FLOW_SLOT, QthreshTest


class InTheQueue(QthreshTest, ProbeTest):
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


class LengthOfPackets(QthreshTest, ProbeTest):
    """Probes are in nothing that a port's report says of its line: L_D stays the length of the flows' packets."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2 does not read registers")
        self.limit_port(packets=50, report_period_us=0xFFFFFFFF)
        self.bursts((flow(1), 3))
        self.switch.send_packet_out(Probe().emit(), SLOW_PORT)
        wait_until(lambda: self.probes(SLOW_PORT)[SENT] == 1, "the probe admitted, ahead of the last frame")
        self.bursts((flow(1), 1))
        self.drain(5)
        # Whole services that began with something waiting: the second and third frame's; the probe's is left out.
        self.assertEqual(self.register("busy_packets", SLOW_PORT), 2)
        self.assertEqual(self.register("busy_bytes", SLOW_PORT), 200)
