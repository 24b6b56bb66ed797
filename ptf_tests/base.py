# SPDX-License-Identifier: GPL-2.0-or-later
"""LaneTest: what every PTF test starts from.

           ┌──────────┐
port 1 ────┤          ├──── port 3   slow: one 100-byte frame takes SERVICE_S
port 2 ────┤  switch  │
           └──────────┘   behind port N: 10.0.N.0/24 and fd00:0:0:N::/64
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import functools
import json
import queue
import socket
import time
from pathlib import Path
from typing import Any, ClassVar

import finsy as fy
import ptf
import ptf.testutils
from ptf.base_tests import BaseTest

from client import P4RuntimeClient, Pipeline, TimedOut, wait_until
from packets import FiveTuple, forwarded, frame, host_mac

FAST_PORTS = (1, 2)
SLOW_PORT = 3
SERVICE_S = 0.2
EMPTY_WITHIN_S = 15.0
"""A full queue of the slow port is 60 frames of SERVICE_S."""
ATTEMPTS = 12
SLOW_RATE_BPS = 4000
CPU_PORT = 510

REASON_SHORT, REASON_BAD_VERSION, REASON_BAD_IHL, REASON_BAD_LENGTH, REASON_BAD_CHECKSUM = 1, 2, 3, 4, 5
REASON_TTL, REASON_NON_IP, REASON_NO_ROUTE, REASON_ROUTE_DROP, REASON_PARSER = 6, 7, 8, 9, 10
REASON_PORT_FULL = 12

_client: P4RuntimeClient | None = None


def the_client() -> P4RuntimeClient:
    """One connection for the whole run."""
    global _client
    if _client is None:
        parameters: dict[str, Any] = ptf.testutils.test_params_get()
        _client = P4RuntimeClient(
            parameters["grpc"],
            int(parameters["device_id"]),
            Pipeline(Path(parameters["p4info"]), Path(parameters["json"])),
        )
    return _client


class TooSlow(Exception):
    """This machine took longer than SERVICE_S for what the test needs to happen within it."""


class LaneTest(BaseTest):
    """Arbitration, a fresh pipeline, routes to every port, and the words that the tests use."""

    def __init_subclass__(cls) -> None:
        """Starts a test again that the machine was too slow for: nothing was learnt about the switch."""
        super().__init_subclass__()
        if "runTest" not in cls.__dict__:
            return
        run_once = cls.__dict__["runTest"]

        @functools.wraps(run_once)
        def run_test(self: LaneTest) -> None:
            for _ in range(ATTEMPTS - 1):
                try:
                    return run_once(self)
                except TooSlow:
                    self.tearDown()
                    self.setUp()
            try:
                run_once(self)
            except TooSlow:
                self.fail(f"the machine was {ATTEMPTS} times too slow for this test: {SERVICE_S} s")

        cls.runTest = run_test

    WAITING_REGISTER = "port_occupancy"
    """The program's register of what waits for a port; 0 when the only frame is on the wire. Empty: it has none."""

    REFUSALS: ClassVar[tuple[int, ...]] = (REASON_PORT_FULL,)
    """Drop reasons of packets that were refused for a port, counted there."""

    dataplane: Any
    switch: P4RuntimeClient

    def setUp(self) -> None:
        super().setUp()
        self.dataplane = ptf.dataplane_instance
        self.switch = the_client()
        self.switch.set_pipeline()
        self.switch.flush()
        self.switch.write(
            [
                [
                    +fy.P4TableEntry(
                        f"ipv{version}_lpm",
                        match=fy.Match(**{f"hdr.ipv{version}.dst": prefix}),
                        action=fy.Action("forward", dst_mac=host_mac(port), port=port),
                    )
                    for version, prefix in ((4, f"10.0.{port}.0/24"), (6, f"fd00:0:0:{port:x}::/64"))
                ]
                for port in (*FAST_PORTS, SLOW_PORT)
            ]
        )
        self.dataplane.flush()
        self._sent = 0  # to the slow port
        self._already_out = 0
        self._window_end: float | None = None  # None: the slow port is idle

    def tearDown(self) -> None:
        if self._window_end is not None:  # not drained: the next test wants an idle port
            self.receive_count(SLOW_PORT, timeout_s=SERVICE_S * 2)
        super().tearDown()

    @property
    def is_embedded(self) -> bool:
        """True where registers can be read and rates are bits per second."""
        return ptf.testutils.test_params_get()["target"] == "embedded"

    def needs_embedded(self, why: str) -> None:
        """Skips the test elsewhere, saying why."""
        if not self.is_embedded:
            self.skipTest(f"not on {ptf.testutils.test_params_get()['target']}: {why}")

    @staticmethod
    def ask(request: dict[str, Any]) -> dict[str, Any]:
        """The answer of the embedded switch's control socket."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5.0)
            client.connect(str(ptf.testutils.test_params_get()["control"]))
            client.sendall(json.dumps(request).encode() + b"\n")
            with client.makefile("rb") as lines:
                answer: dict[str, Any] = json.loads(lines.readline())
        assert answer["ok"], answer
        return answer

    # ---- what a controller writes ------------------------------------------------------------------

    def insert(self, table: str, match: dict[str, Any], action: str, priority: int = 0, **args: Any) -> None:
        self.switch.write(+self._entry(table, match, action, priority, args))

    def modify(self, table: str, match: dict[str, Any], action: str, priority: int = 0, **args: Any) -> None:
        self.switch.write(~self._entry(table, match, action, priority, args))

    @staticmethod
    def _entry(table: str, match: dict[str, Any], action: str, priority: int, args: dict[str, Any]) -> fy.P4TableEntry:
        return fy.P4TableEntry(table, match=fy.Match(**match), action=fy.Action(action, **args), priority=priority)

    def enable_digest(self, name: str) -> None:
        self.switch.write(+fy.P4DigestEntry(name, max_list_size=1, max_timeout_ns=0, ack_timeout_ns=10**9))

    # ---- what a controller reads -------------------------------------------------------------------

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of one cell of an indirect counter."""
        (entry,) = self.switch.read(fy.P4CounterEntry(name, index=index))
        return entry.packet_count, entry.byte_count

    def drops(self, reason: int, port: int = SLOW_PORT) -> tuple[int, int]:
        return self.counter("drops", port << 4 | reason)

    def all_drops(self) -> dict[tuple[int, int], int]:
        """{(port, reason): packets} of every drop counter of the test's ports that is not 0."""
        ports = (0, *FAST_PORTS, SLOW_PORT, CPU_PORT)
        cells = [fy.P4CounterEntry("drops", index=port << 4 | reason) for port in ports for reason in range(16)]
        entries = self.switch.read(cells)
        return {(e.index >> 4, e.index & 15): e.packet_count for e in entries if e.packet_count}

    def register(self, name: str, index: int) -> int:
        (entry,) = self.switch.read(fy.P4RegisterEntry(name, index=index))
        return entry.data

    def while_waiting(self, name: str, *indices: int) -> list[int]:
        """These cells of a register, read at once, while what a burst left behind the first frame waits.

        Raises TooSlow when a packet that waited may have been sent meanwhile: the test starts again.
        """
        entries = self.switch.read([fy.P4RegisterEntry(name, index=index) for index in indices])
        self.settle()
        return [entry.data for entry in entries]

    def next_packet_in(self) -> fy.P4PacketIn:
        try:
            return self.switch.packets.get(timeout=3)
        except queue.Empty:
            raise TimedOut("no packet-in within 3 s") from None

    def next_digest(self, name: str, timeout_s: float = 3.0) -> dict[str, Any]:
        """The next digest of that name, acknowledged; others are passed over."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                digests = self.switch.digests.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimedOut(f"no {name} digest within {timeout_s} s") from None
            self.switch.acknowledge(digests)
            if digests.digest_id == name:
                assert len(digests) == 1, digests
                return digests[0]

    def no_digest(self, name: str, within_s: float = 0.3) -> None:
        try:
            digest = self.next_digest(name, within_s)
        except TimedOut:
            return
        self.fail(f"a {name} digest came: {digest}")

    # ---- what hosts send and receive ----------------------------------------------------------------

    def send(self, packet: Any, port: int = 1) -> None:
        ptf.testutils.send_packet(self, port, packet)

    def receive(self, packet: Any, port: int, timeout_s: float = 3.0) -> None:
        """Exactly this packet comes out of the port next."""
        ptf.testutils.verify_packet(self, packet, port, timeout=timeout_s)

    def send_and_receive(self, packet: Any, to_port: int = 2, from_port: int = 1) -> None:
        """The packet is routed to the port: rewritten as a router does, and nothing else comes out."""
        self.send(packet, from_port)
        self.receive(forwarded(packet, to_port), to_port)

    def receive_count(self, port: int, timeout_s: float = 1.0) -> int:
        """Packets that come out of a port until none came for timeout_s."""
        count = 0
        while self.receive_any(port, timeout_s):
            count += 1
        return count

    def receive_any(self, port: int, timeout_s: float) -> bool:
        """Whether any packet came out of the port in time; it is taken."""
        return isinstance(self.dataplane.poll(port_number=port, timeout=timeout_s), self.dataplane.PollSuccess)

    def receive_nothing(self, within_s: float = 0.2) -> None:
        ptf.testutils.verify_no_other_packets(self, timeout=within_s)

    def expect_drop(self, packet: Any, reason: int, port: int = 1) -> None:
        """The packet does not come out, and the one counter of (ingress port, reason) goes up by one."""
        before = self.all_drops()
        self.send(packet, port)
        key = (port, reason)
        wait_until(
            lambda: self.all_drops().get(key, 0) == before.get(key, 0) + 1, f"drop of reason {reason} at port {port}"
        )
        self.assertEqual(self.all_drops(), before | {key: before.get(key, 0) + 1})
        self.receive_nothing(within_s=0.05)

    # ---- lanes ------------------------------------------------------------------------------------

    def burst(self, five_tuple: FiveTuple, count: int, **options: Any) -> None:
        """`count` frames of 100 bytes of one flow for the slow port: see bursts."""
        self.bursts((five_tuple, count, options))

    def bursts(self, *orders: tuple[FiveTuple, int] | tuple[FiveTuple, int, dict[str, Any]]) -> None:
        """Bursts (flow, count[, options of frame]) that ingress handles within one service time of the line.

        The first frame into the idle port is on the wire, and no longer counted, before the second is sent.
        Raises TooSlow when the switch may have sent a second frame meanwhile: the test starts again.
        """
        frames: list[bytes] = []
        for five_tuple, count, *options in orders:
            frames += [bytes(frame(five_tuple, fill=i % 256, **(options[0] if options else {}))) for i in range(count)]
        if self._window_end is None:
            self._start_line(frames.pop(0))
        for one in frames:
            self.dataplane.send(0, 1, one)
        self.count_sent(len(frames))

    def _start_line(self, first: bytes) -> None:
        """Sends one frame into the empty queue and returns when it is on the wire, so that no race is left."""
        self._window_end = time.monotonic() + SERVICE_S
        self.dataplane.send(0, 1, first)
        self._sent += 1
        if self.is_embedded:
            self.settle()
            self.wait_for_empty_queue()
        else:  # BMv2 sends a frame at once when it takes it from the queue
            self.assertTrue(self.receive_any(SLOW_PORT, timeout_s=1.0), "the first frame did not come out")
            self._already_out += 1

    def wait_for_empty_queue(self) -> None:
        """Returns when nothing waits for the slow port (embedded switch), as far as the program counts it."""
        if self.WAITING_REGISTER:
            wait_until(lambda: self.register(self.WAITING_REGISTER, SLOW_PORT) == 0, "nothing waits", EMPTY_WITHIN_S)

    def arrivals(self, port: int = SLOW_PORT) -> int:
        """Packets that ingress has decided about for a port."""
        return sum(entry.packet_count for entry in self.switch.read(self.arrival_cells(port)))

    def arrival_cells(self, port: int) -> list[fy.P4CounterEntry]:
        """The counters of what passed to a port and of what was refused."""
        refused = [fy.P4CounterEntry("drops", index=port << 4 | reason) for reason in self.REFUSALS]
        return [fy.P4CounterEntry("passed", index=port), *refused]

    def count_sent(self, packets: int) -> None:
        """Says that a test sent packets for the slow port in its own way, and settles."""
        self._sent += packets
        self.settle()

    def settle(self) -> None:
        """Returns when ingress has decided about every packet sent to the slow port, its line still busy with one."""
        wait_until(lambda: self.arrivals() == self._sent, f"{self._sent} packets handled", 5.0)
        if self._window_end is not None and time.monotonic() > self._window_end:
            raise TooSlow

    def drain(self, expected: int) -> None:
        """Exactly `expected` packets come out of the slow port, and it is idle then."""
        count = self._already_out
        while count < expected and self.receive_any(SLOW_PORT, timeout_s=5.0):
            count += 1
        # One more would come within one service time.
        count += self.receive_count(SLOW_PORT, timeout_s=SERVICE_S * 1.5)
        self.assertEqual(count, expected, f"drops {{(port, reason): packets}}: {self.all_drops()}")
        self.slow_port_is_idle()

    def slow_port_is_idle(self) -> None:
        """Says that nothing waits: the next burst starts with a frame that goes on the wire at once."""
        self._sent = self.arrivals()
        self._already_out = 0
        self._window_end = None
