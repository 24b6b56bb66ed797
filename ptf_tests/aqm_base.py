# SPDX-License-Identifier: GPL-2.0-or-later
"""AqmTest: bursts into the slow port of a program that manages queues, and what comes out of it, frame by frame."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any, ClassVar

from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from base import SERVICE_S, SLOW_PORT, LaneTest
from packets import FiveTuple, flow

REASON_AQM = 11
SERVICE_US = round(SERVICE_S * 1e6)
FRAME_BYTES = 100
ECT1, ECT, CE = 1, 2, 3
"""ECT(1), ECT(0) and CE of RFC 3168."""


class AqmTest(LaneTest):
    """Frames of a burst are told apart by their fill: 0, 1, 2, …"""

    WAITING_REGISTER = "waiting_packets"
    REFUSALS: ClassVar[tuple[int, ...]] = ()

    def burst_of(self, count: int, ecn: int = 0, five_tuple: FiveTuple | None = None, **options: Any) -> list[Any]:
        """`count` frames of one flow with this ECN field arrive while the first is on the line; what comes out, in order."""
        self._frames: list[Any] = []
        self.burst(five_tuple or flow(), count, ecn=ecn, **options)
        return self.receive_all()

    def receive_any(self, port: int, timeout_s: float) -> bool:
        """As of `LaneTest`, and what comes out of the slow port is kept."""
        result = self.dataplane.poll(port_number=port, timeout=timeout_s)
        if not isinstance(result, self.dataplane.PollSuccess):
            return False
        if port == SLOW_PORT:
            self._frames.append(Ether(result.packet))
        return True

    def receive_all(self) -> list[Any]:
        """Receive all frames of the slow port until it is idle."""
        self._receive_until_quiet()
        if self.is_embedded:
            self.wait_for_empty_queue()
            self._receive_until_quiet()  # it may have been quiet because this machine stood still
        self.slow_port_is_idle()
        return self._frames

    def _receive_until_quiet(self) -> None:
        while self.receive_any(SLOW_PORT, timeout_s=SERVICE_S * 2.5):
            pass

    @staticmethod
    def fills(frames: list[Any]) -> list[int]:
        """Which frames of a burst these are."""
        return [bytes(one)[-1] for one in frames]

    def check_marks(self, frames: list[Any], marked: list[int]) -> None:
        """Exactly these frames say CE, and every IPv4 checksum is right."""
        fields = [(one[IPv6].tc if IPv6 in one else one[IP].tos) & 3 for one in frames]
        assert [bytes(one)[-1] for one, ecn in zip(frames, fields, strict=True) if ecn == CE] == marked, fields
        for one in (each for each in frames if IP in each):
            again = one.copy()
            del again[IP].chksum
            assert Ether(bytes(again))[IP].chksum == one[IP].chksum
