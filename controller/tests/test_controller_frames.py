# SPDX-License-Identifier: Apache-2.0
"""The loop against real switches with frames on the wire: flow entries, ageing, and measurements that have a truth."""

from __future__ import annotations

import contextlib
import heapq
import ipaddress
import select
import socket
import struct
import threading
import time

import pytest
from fairlane_controller.programs.qthresh.model import QthreshPlan
from live_switch import RATE_BPS, LiveSwitch, idle, wait_until
from steady import void_when_stalled


def ipv4_frame(protocol: int, source: str, destination: str, payload: bytes) -> bytes:
    """An Ethernet frame to the switch with an IPv4 packet whose header checksum is right."""
    ends = ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(destination).packed
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0) + ends
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    header = header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:]
    return bytes.fromhex("0800000001fe080000000111") + b"\x08\x00" + header + payload


def udp_frame(source_port: int) -> bytes:
    """A datagram of 100 bytes from 10.0.1.1 to 10.0.3.1:5001."""
    return ipv4_frame(17, "10.0.1.1", "10.0.3.1", struct.pack("!HHHH", source_port, 5001, 108, 0) + bytes(100))


def tcp_header(source_port: int, destination_port: int, seq: int, ack: int) -> bytes:
    """A TCP header without options, flag ACK; nobody here checks its checksum."""
    return struct.pack("!HHIIBBHHH", source_port, destination_port, seq, ack, 5 << 4, 0x10, 65_535, 0, 0)


def send(switch: LiveSwitch, *frames: bytes) -> None:
    """Put frames on the wire of port 1."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((switch.interfaces[1] + "x", 0))
        for frame in frames:
            wire.send(frame)


def flow_names(switch: LiveSwitch) -> set[str]:
    """The flows that have an entry."""
    return {row["flow"] for row in switch.json("flows")}


def test_new_flows_get_entries_that_a_restarted_loop_adopts(wired_switch: LiveSwitch) -> None:
    switch = wired_switch
    names = {f"udp 10.0.1.1:{port} > 10.0.3.1:5001" for port in (1001, 1002, 1003)}
    with switch.loop() as process:
        send(switch, *(udp_frame(port) for port in (1001, 1002, 1003)))
        wait_until("three flow entries", lambda: flow_names(switch) == names)
        send(switch, udp_frame(1001), udp_frame(1001))
        rows = {row["src_port"]: row for row in switch.json("flows")}
        assert sorted(row["slot"] for row in rows.values()) == [0, 1, 2]
        wait_until("two packets counted", lambda: packets(switch, 1001) == 2)
        process.kill()
        process.wait(timeout=10)
    assert flow_names(switch) == names
    with switch.loop():
        assert switch.events("took_over")[-1]["flows"] == 3
        send(switch, udp_frame(1004))
        wait_until("the fourth entry", lambda: len(flow_names(switch)) == 4)
        assert sorted(row["slot"] for row in switch.json("flows")) == [0, 1, 2, 3]
        assert packets(switch, 1001) == 2


def packets(switch: LiveSwitch, source_port: int) -> int:
    """Packets counted by the flow's direct counter."""
    return next(int(row["packets"]) for row in switch.json("flows") if row["src_port"] == source_port)


def test_idle_flows_age_out(wired_switch: LiveSwitch) -> None:
    switch = wired_switch
    with switch.loop(*idle(switch.folder, "2s")):
        send(switch, udp_frame(1001))
        wait_until("the entry", lambda: len(flow_names(switch)) == 1)
        wait_until("the entry to age out", lambda: not flow_names(switch), 30)
        assert switch.loop_status()["flows"] == 0
        send(switch, udp_frame(1001))
        wait_until("the flow's next entry", lambda: len(flow_names(switch)) == 1)


class Traffic(threading.Thread):
    """Two TCP-like flows that keep port 3 busy, and a receiver that answers each segment `answer_s` later.

    What the receiver really took, from a segment's arrival to its ACK's departure, is kept in `answered_s`: with it
    the measured T_res has a truth on a machine that is slow as well.
    """

    PAYLOAD = 960
    FRAME = 14 + 20 + 20 + PAYLOAD

    def __init__(self, switch: LiveSwitch, answer_s: float) -> None:
        super().__init__(daemon=True)
        self.answer_s = answer_s
        self.answered_s: list[float] = []
        self.halt = threading.Event()
        self._sender, self._receiver = (
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2)
        )
        self._sender.bind((switch.interfaces[1] + "x", 0))
        self._receiver.bind((switch.interfaces[3] + "x", 0))
        self._receiver.setblocking(False)

    def run(self) -> None:
        seq = {2001: 1, 2002: 1}
        due: list[tuple[float, float, int, int]] = []  # when, arrival, port, acknowledgement
        next_send = time.monotonic()
        while not self.halt.is_set():
            now = time.monotonic()
            if now >= next_send:
                next_send = now + 0.025
                for port in seq:
                    for _ in range(4):  # 8 frames in 25 ms: 2.6 Mbit/s for a line of 2
                        segment = tcp_header(port, 5001, seq[port], 1) + bytes(self.PAYLOAD)
                        self._sender.send(ipv4_frame(6, "10.0.1.1", "10.0.3.1", segment))
                        seq[port] += self.PAYLOAD
            while due and due[0][0] <= time.monotonic():
                _, arrival, port, ack = heapq.heappop(due)
                self._receiver.send(ipv4_frame(6, "10.0.3.1", "10.0.1.1", tcp_header(5001, port, 1, ack)))
                self.answered_s.append(time.monotonic() - arrival)
            wait_s = min(next_send, due[0][0] if due else next_send) - time.monotonic()
            if not select.select([self._receiver], [], [], max(0.0, wait_s))[0]:
                continue
            with contextlib.suppress(BlockingIOError):
                while True:
                    frame, address = self._receiver.recvfrom(2048)
                    arrival = time.monotonic()
                    if address[2] != socket.PACKET_OUTGOING and len(frame) == self.FRAME and frame[23] == 6:
                        port, _, sent = struct.unpack("!HHI", frame[34:42])
                        heapq.heappush(due, (arrival + self.answer_s, arrival, port, sent + self.PAYLOAD))

    def stop(self) -> None:
        """End the traffic."""
        self.halt.set()
        self.join(timeout=10)
        self._sender.close()
        self._receiver.close()


@void_when_stalled
def test_the_loop_measures_the_link_and_sets_the_threshold(wired_switch: LiveSwitch) -> None:
    switch = wired_switch
    if switch.target == "bmv2":
        pytest.skip("BMv2 limits packets, not bits, per second: there is no rate whose truth the test could set")
    switch.fairlane("threshold", "set", "12")
    switch.fairlane("threshold", "auto")
    told = len(switch.events("threshold"))
    traffic = Traffic(switch, 0.020)
    with switch.loop():
        traffic.start()
        try:
            events = wait_until("a threshold of the loop's own", lambda: switch.events("threshold")[told:], 30)
            wait_until("100 answers", lambda: len(traffic.answered_s) > 100)
            (measured,) = switch.json("ports", "measure")
        finally:
            traffic.stop()
    truth_s = sorted(traffic.answered_s)[len(traffic.answered_s) // 4]
    assert measured["bw_bps"]["value"] == pytest.approx(RATE_BPS, rel=0.005)
    assert measured["l_d_bytes"]["value"] == pytest.approx(Traffic.FRAME)
    assert measured["n_c"]["value"] == 2
    assert measured["t_res_s"]["value"] == pytest.approx(truth_s, rel=0.05)
    inputs = events[-1]["plan"]
    wanted = QthreshPlan(
        inputs["rate_bps"], inputs["t_res_s"], inputs["packet_bytes"], inputs["connections"], capacity_packets=50
    )
    assert events[-1]["qthresh_packets"] == wanted.qthresh_packets
    assert events[0]["previous_packets"] == 12
