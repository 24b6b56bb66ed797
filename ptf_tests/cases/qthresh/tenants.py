# SPDX-License-Identifier: Apache-2.0
"""Who has which lane beyond the 5-tuple: VLANs, two tags, frames that are not IP, and the key of the fallback slots."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import finsy as fy

from base import SLOW_PORT
from packets import SWITCH_MAC, FiveTuple, arp_request, built, flow, flow6, forwarded, frame, host_mac
from qthresh_base import FALLBACK_SLOTS, FIRST_FALLBACK_SLOT, REASON_QTHRESH, QthreshTest, fallback_slot

MPLS, PPPOE, VLAN, SERVICE_VLAN = 0x8847, 0x8864, 0x8100, 0x88A8


def two_tags(five_tuple: FiveTuple, outer: int, inner: int, tpid: int = VLAN, pcp: int = 0) -> bytes:
    """A frame of 104 bytes with two VLAN tags."""
    one = bytes(frame(five_tuple, vlan=inner))
    return one[:12] + struct.pack("!HH", tpid, pcp << 13 | outer) + one[12:]


def other(ether_type: int, payload: bytes, vid: int = 0, source: int = 1, pcp: int = 0) -> bytes:
    """A frame of 100 bytes that is not IP."""
    tag = struct.pack("!HH", VLAN, pcp << 13 | vid) if vid or pcp else b""
    return (_mac(SWITCH_MAC) + _mac(host_mac(source)) + tag + struct.pack("!H", ether_type) + payload).ljust(100, b"\0")


def mpls(label: int, **options: int) -> bytes:
    return other(MPLS, struct.pack("!I", label << 12 | 0x1FF) + bytes(frame(flow()))[14:], **options)


def pppoe(session: int) -> bytes:
    return other(PPPOE, struct.pack("!BBHH", 0x11, 0, session, 42) + b"\0\x21")


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


class OtherFrames(QthreshTest):
    """What the tests here share: every frame that is not IP goes to the slow port."""

    def send_all_to_the_slow_port(self) -> None:
        self.insert("l2", {"standard_metadata.ingress_port": "1/&0x1ff"}, "l2_forward", priority=1, port=SLOW_PORT)

    def send_frames(self, *frames: bytes) -> None:
        """Behind one of another flow, which is on the wire."""
        self.burst(flow(99), 1)
        for one in frames:
            self.dataplane.send(0, 1, one)
        self.count_sent(len(frames))


class VlanTellsFlowsApart(QthreshTest):
    """Tenants with the same addresses and ports in different VLANs have an entry and a lane each."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(1)
        for number, vid in enumerate((0, 7, 8)):
            self.add_flow(flow().with_changes(vid=vid), number)
        self.bursts((flow(), 4), (flow(), 3, {"vlan": 7}), (flow(), 3, {"vlan": 8}))
        self.drain(1 + 3)
        self.assertEqual([self.counter("flow_drops", slot)[0] for slot in range(3)], [2, 2, 2])
        self.assertEqual(self.flow_arrivals(flow().with_changes(vid=7))[0], 3)
        self.assert_no_occupancy(0, 1, 2)


class VlanTellsFallbackFlowsApart(QthreshTest):
    """The same without entries: a fallback slot each, of IPv4 and IPv6."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(1)
        slots = [fallback_slot(one.with_changes(vid=vid)) for one in (flow(), flow6()) for vid in (7, 8)]
        self.assertEqual(len(set(slots)), 4)
        self.bursts((flow(99), 1), *((one, 2, {"vlan": vid}) for one in (flow(), flow6()) for vid in (7, 8)))
        self.drain(1 + 4)
        self.assertEqual([self.counter("flow_drops", slot)[0] for slot in slots], [1] * 4)
        self.assertEqual(self.counter("collisions", SLOW_PORT)[0], 0)
        self.assert_no_occupancy(*slots)


class NewFlowNamesTheVlan(QthreshTest):
    """The digest of a new flow has its VLAN."""

    def runTest(self) -> None:
        self.limit_port(port=2)
        self.enable_digest("new_flow_t")
        for vid in (0, 4094):
            self.send(frame(flow(vid, to_port=2), vlan=vid) if vid else frame(flow(vid, to_port=2)))
            self.assertEqual(self.next_digest("new_flow_t")["vid"], vid)


class TwoTagsAreRouted(QthreshTest):
    """IP behind two tags is routed with both kept, whichever of the two EtherTypes the outer has."""

    def runTest(self) -> None:
        for tpid in (VLAN, SERVICE_VLAN):
            for five_tuple in (flow(to_port=2), flow6(to_port=2)):
                packet = two_tags(five_tuple, 100, 7, tpid)
                bare = forwarded(built(frame(five_tuple, vlan=7)), 2)
                self.send(packet)
                self.receive(bytes(bare)[:12] + packet[12:16] + bytes(bare)[12:], 2)


class TwoTagsHaveALane(QthreshTest):
    """The outer of two tags is the tenant and names the class; the threshold is the flow's."""

    def runTest(self) -> None:
        self.limit_port()
        self.insert("flow_class", {"pcp": "3/&0x7"}, "set_class", priority=1, traffic_class=3)
        self.set_qthresh(2, traffic_class=3)
        self.add_flow(flow().with_changes(vid=100), 1)
        self.burst(flow(99), 1)
        for tpid in (VLAN, SERVICE_VLAN):
            for _ in range(2):
                self.dataplane.send(0, 1, two_tags(flow(), 100, 7, tpid, pcp=3))
        self.count_sent(4)
        self.assertEqual(self.counter("flow_drops", 1)[0], 2)
        self.assertEqual(self.admitted(traffic_class=3)[0], 2)
        self.drain(1 + 2)
        self.assert_no_occupancy(1)


class OtherFramesHaveALane(OtherFrames):
    """Frames that are not IP are held to their class's threshold, a flow for each MPLS label, PPPoE session, VLAN and pair of addresses."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(1)
        self.send_all_to_the_slow_port()
        frames = [mpls(100), mpls(200), pppoe(1), pppoe(2), mpls(100, vid=5), mpls(100, source=2), other(0x88CC, b"x")]
        frames.append(two_tags(flow(), 9, 8)[:20] + struct.pack("!H", 0x88CC) + bytes(80))
        self.send_frames(*(one for one in frames for _ in range(3)), *[bytes(arp_request(1, 3))] * 3)
        self.drain(1 + len(frames) + 1)
        self.assertEqual(self.drops(REASON_QTHRESH)[0], 2 * (len(frames) + 1))
        self.assertEqual(self.counter("collisions", SLOW_PORT)[0], 0)
        self.assert_no_occupancy(*(l2_slot(one) for one in (mpls(100), pppoe(1))))


class OtherFramesHaveAClass(OtherFrames):
    """Their class comes from the port and the VLAN tag's priority."""

    def runTest(self) -> None:
        self.limit_port()
        self.insert("flow_class", {"pcp": "3/&0x7"}, "set_class", priority=1, traffic_class=3)
        self.set_qthresh(1, traffic_class=3)
        self.send_all_to_the_slow_port()
        self.send_frames(*[mpls(100, vid=5, pcp=3)] * 4, *[mpls(100, vid=5)] * 4)
        self.assertEqual(self.admitted(traffic_class=3)[0], 1)
        self.drain(1 + 1 + 4)
        self.assertEqual(self.drops(REASON_QTHRESH)[0], 3)


class OtherFramesAreNotTold(OtherFrames):
    """No digest of a new flow: there is no table for what is not IP."""

    def runTest(self) -> None:
        self.limit_port()
        self.enable_digest("new_flow_t")
        self.send_all_to_the_slow_port()
        self.send(mpls(100))
        self.no_digest("new_flow_t")


class HashKey(OtherFrames):
    """With a key the fallback slots are where the keyed hash says, for IPv4, IPv6 and the rest, and otherwise nothing changes."""

    def runTest(self) -> None:
        numbers = random.Random(3)
        key = [numbers.getrandbits(64) for _ in range(11)]
        arguments = {f"key_{i}": k for i, k in enumerate(key)}
        action = fy.Action("set_hash_key", **arguments)
        self.switch.write(~fy.P4TableEntry("hash_key", is_default_action=True, action=action))
        self.limit_port()
        self.set_qthresh(1)
        self.send_all_to_the_slow_port()
        slots: list[int] = []
        orders: list[tuple[Any, ...]] = []
        for five_tuple in (flow(1), flow6(2), flow(3).with_changes(vid=77)):
            orders.append((five_tuple, 3, {"vlan": five_tuple.vid} if five_tuple.vid else {}))
            slots.append(keyed_slot(five_tuple, key))
        self.bursts((flow(99), 1), *orders)
        for _ in range(3):
            self.dataplane.send(0, 1, mpls(100, vid=5))
        self.count_sent(3)
        slots.append(l2_slot(mpls(100, vid=5), key))
        self.assertEqual([self.counter("flow_drops", slot)[0] for slot in slots], [2] * 4)
        self.drain(1 + 4)
        self.assert_no_occupancy(*slots)


def multilinear(words: list[int], key: list[int]) -> int:
    return (key[0] + sum(k * word for k, word in zip(key[1:], words, strict=False))) % 2**64 >> 32


def keyed_slot(five_tuple: FiveTuple, key: list[int]) -> int:
    ports = five_tuple.src_port << 16 | five_tuple.dst_port
    words = [*five_tuple.address_words(), ports, five_tuple.vid << 8 | five_tuple.protocol]
    return FIRST_FALLBACK_SLOT + (five_tuple.hash() + five_tuple.vid + multilinear(words, key)) % FALLBACK_SLOTS


def l2_slot(raw: bytes, key: list[int] | None = None) -> int:
    """Of a frame with one tag at most."""
    vid, at = 0, 12
    if raw[12:14] == struct.pack("!H", VLAN):
        vid, at = struct.unpack("!H", raw[14:16])[0] & 0xFFF, 16
    (ether_type,) = struct.unpack("!H", raw[at : at + 2])
    (word,) = struct.unpack("!I", raw[at + 2 : at + 6])
    tunnel = word >> 12 if ether_type == MPLS else word & 0xFFFF if ether_type == PPPOE else 0
    addresses = raw[6:12] + raw[:6]
    crc = zlib.crc32(addresses + struct.pack("!HI", ether_type, tunnel))
    words = [*struct.unpack("!III", addresses), vid << 16 | ether_type, tunnel]
    return FIRST_FALLBACK_SLOT + (crc + vid + (multilinear(words, key) if key else 0)) % FALLBACK_SLOTS
