// SPDX-License-Identifier: Apache-2.0
// Which lane a packet is in: the slot of its flow's entry or, until there is one, a hashed fallback slot.
#ifndef FAIRLANE_FLOW_P4
#define FAIRLANE_FLOW_P4

#include "state.p4"

control Flow(inout headers_t hdr, inout metadata_t meta) {
    // Every packet that arrives for a port with a limit, admitted or not.
    direct_counter(CounterType.packets_and_bytes) flow_v4_counter;
    direct_counter(CounterType.packets_and_bytes) flow_v6_counter;

    bit<16> ether_type = 0;                           // behind the tags, of what is not IP
    register<bit<32>>(FALLBACK) fallback_owner;       // hash of the flow that last used the slot

    /// The flow has the slot flow_id; the weight is its class's.
    action set_flow(bit<16> flow_id) {
        meta.slot = (slot_t)flow_id;
        meta.has_entry = 1;
    }

    /// The flow has the slot flow_id and a weight of its own, in 1/256.
    action set_flow_weighted(bit<16> flow_id, bit<16> weight) {
        meta.slot = (slot_t)flow_id;
        meta.weight = (weight != 0) ? weight : meta.weight;
        meta.has_entry = 1;
    }

    /// As set_flow_weighted (a weight of 0 is the class's), and the flow loses one packet for each new number of a tap: the next
    /// one with data that finds TAP_LEAST packets waiting at the port. 1 .. 255; where the packet can be marked it is marked.
    action set_flow_tapped(bit<16> flow_id, bit<16> weight, bit<8> tap) {
        meta.slot = (slot_t)flow_id;
        meta.weight = (weight != 0) ? weight : meta.weight;
        meta.tap = tap;
        meta.has_entry = 1;
    }

    table flow_v4 {
        key = {
            hdr.ipv4.src      : exact @name("src");
            hdr.ipv4.dst      : exact @name("dst");
            hdr.ipv4.protocol : exact @name("protocol");
            meta.src_port     : exact @name("src_port");
            meta.dst_port     : exact @name("dst_port");
            meta.vid          : exact @name("vid");
        }
        actions = { set_flow; set_flow_weighted; set_flow_tapped; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_v4_counter;
        support_timeout = true;
        size = FLOWS;
    }

    table flow_v6 {
        key = {
            hdr.ipv6.src         : exact @name("src");
            hdr.ipv6.dst         : exact @name("dst");
            hdr.ipv6.next_header : exact @name("protocol");
            meta.src_port        : exact @name("src_port");
            meta.dst_port        : exact @name("dst_port");
            meta.vid             : exact @name("vid");
        }
        actions = { set_flow; set_flow_weighted; set_flow_tapped; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_v6_counter;
        support_timeout = true;
        size = FLOWS;
    }

    @hidden action hash_v4() {
        hash(meta.flow_hash, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.src_port, meta.dst_port },
             64w0x100000000);
    }

    @hidden action hash_v6() {
        hash(meta.flow_hash, HashAlgorithm.crc32, 32w0,
             { hdr.ipv6.src, hdr.ipv6.dst, hdr.ipv6.next_header, meta.src_port, meta.dst_port },
             64w0x100000000);
    }

    // A frame that is not IP is a flow by its addresses, its EtherType and its tunnel.
    @hidden action hash_l2() {
        hash(meta.flow_hash, HashAlgorithm.crc32, 32w0,
             { hdr.ethernet.src, hdr.ethernet.dst, ether_type, meta.tunnel },
             64w0x100000000);
    }

    // Which fallback slot: the CRC, which everybody can compute, plus a keyed hash (multilinear: Lemire & Kaser, "Strongly
    // universal string hashing is fast", The Computer Journal 57, 2014): who does not know the key finds two flows for
    // one slot with a chance of 1 in FALLBACK. A key of 0, which holds until the controller gives one, adds nothing.
    bit<64> k0 = 0;
    bit<64> k1 = 0;
    bit<64> k2 = 0;
    bit<64> k3 = 0;
    bit<64> k4 = 0;
    bit<64> k5 = 0;
    bit<64> k6 = 0;
    bit<64> k7 = 0;
    bit<64> k8 = 0;
    bit<64> k9 = 0;
    bit<64> k10 = 0;

    /// The key of the fallback slots' hash, to be random: 64 bits for each 32 of an IPv6 flow, and 64 more.
    action set_hash_key(bit<64> key_0, bit<64> key_1, bit<64> key_2, bit<64> key_3, bit<64> key_4, bit<64> key_5,
                        bit<64> key_6, bit<64> key_7, bit<64> key_8, bit<64> key_9, bit<64> key_10) {
        k0 = key_0;
        k1 = key_1;
        k2 = key_2;
        k3 = key_3;
        k4 = key_4;
        k5 = key_5;
        k6 = key_6;
        k7 = key_7;
        k8 = key_8;
        k9 = key_9;
        k10 = key_10;
    }

    /// No entries: the key is its default action's.
    table hash_key {
        actions = { set_hash_key; @defaultonly NoAction; }
        default_action = NoAction();
        size = 1;
    }

    @hidden action key_v4() {
        bit<64> sum = k0 + k1 * (bit<64>)hdr.ipv4.src + k2 * (bit<64>)hdr.ipv4.dst
            + k3 * (bit<64>)(meta.src_port ++ meta.dst_port) + k4 * (bit<64>)(meta.vid ++ hdr.ipv4.protocol);
        meta.lane_hash = meta.flow_hash + (bit<32>)meta.vid + sum[63:32];
    }

    @hidden action key_v6() {
        bit<64> sum = k0 + k1 * (bit<64>)hdr.ipv6.src[127:96] + k2 * (bit<64>)hdr.ipv6.src[95:64]
            + k3 * (bit<64>)hdr.ipv6.src[63:32] + k4 * (bit<64>)hdr.ipv6.src[31:0]
            + k5 * (bit<64>)hdr.ipv6.dst[127:96] + k6 * (bit<64>)hdr.ipv6.dst[95:64]
            + k7 * (bit<64>)hdr.ipv6.dst[63:32] + k8 * (bit<64>)hdr.ipv6.dst[31:0]
            + k9 * (bit<64>)(meta.src_port ++ meta.dst_port) + k10 * (bit<64>)(meta.vid ++ hdr.ipv6.next_header);
        meta.lane_hash = meta.flow_hash + (bit<32>)meta.vid + sum[63:32];
    }

    @hidden action key_l2() {
        bit<64> sum = k0 + k1 * (bit<64>)hdr.ethernet.src[47:16]
            + k2 * (bit<64>)(hdr.ethernet.src[15:0] ++ hdr.ethernet.dst[47:32]) + k3 * (bit<64>)hdr.ethernet.dst[31:0]
            + k4 * (bit<64>)(meta.vid ++ ether_type) + k5 * (bit<64>)meta.tunnel;
        meta.lane_hash = meta.flow_hash + (bit<32>)meta.vid + sum[63:32];
    }

    bit<1> collision = 0;

    // Two flows in one slot share a threshold. A packet that finds packets of another flow waiting in its
    // slot is counted, so that the controller can see it and give both an entry.
    @hidden action use_fallback() {
        bit<32> waiting;
        bit<32> owner;
        bit<32> index = (bit<32>)meta.lane_hash[FALLBACK_BITS-1:0];
        meta.slot = FLOWS + index;
        meta.lane = FLOWS + index;
        meta.tell = 1;
        flow_occupancy.read(waiting, FLOWS + index);
        fallback_owner.read(owner, index);
        collision = (waiting != 0 && owner != meta.lane_hash) ? 1w1 : 1w0;
        fallback_owner.write(index, meta.lane_hash);
    }

    // Packets from before the flow's entry may still wait in their lane by hash: the flow stays there until it is empty, so that
    // none overtakes another, but not for longer than LANE_STAY_US: it may never be. Of two flows with one fallback slot only the
    // one that used it last without an entry stays: together they would keep it from being empty.
    @hidden action keep_order() {
        bit<32> waiting;
        bit<32> owner;
        time_us_t seen;
        bit<32> index = (bit<32>)meta.lane_hash[FALLBACK_BITS-1:0];
        flow_occupancy.read(waiting, FLOWS + index);
        fallback_owner.read(owner, index);
        flow_seen.read(seen, FLOWS + index);            // the last packet without an entry
        meta.lane = (waiting != 0 && owner == meta.lane_hash && meta.now - seen < (time_us_t)LANE_STAY_US) ? FLOWS + index : meta.slot;
    }

    // Queue 0 is for what is in no lane.
    @hidden action take_lane() {
        bit<16> first = (meta.lane < FLOWS) ? 16w1 : meta.lanes + 1;
        bit<16> queues = (meta.lane < FLOWS) ? meta.lanes : meta.lanes_by_hash;
        meta.queue_id = first + (meta.lane[15:0] & (queues - 1));
        meta.queue_weight = (bit<32>)meta.weight;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            flow_v4.apply();
            if (meta.has_entry == 0 || meta.tcp_payload_len != 0 || meta.lanes != 0) {
                hash_v4();
            }
        } else if (hdr.ipv6.isValid()) {
            flow_v6.apply();
            if (meta.has_entry == 0 || meta.tcp_payload_len != 0 || meta.lanes != 0) {
                hash_v6();
            }
        } else {
            if (hdr.inner_vlan.isValid()) {
                ether_type = hdr.inner_vlan.ether_type;
            } else if (hdr.vlan.isValid()) {
                ether_type = hdr.vlan.ether_type;
            } else {
                ether_type = hdr.ethernet.ether_type;
            }
            hash_l2();
        }
        meta.lane = meta.slot;
        if (meta.has_entry == 0 || meta.lanes != 0) {
            hash_key.apply();
            if (hdr.ipv4.isValid()) {
                key_v4();
            } else if (hdr.ipv6.isValid()) {
                key_v6();
            } else {
                key_l2();
            }
            if (meta.has_entry == 1) {
                keep_order();
            } else {
                use_fallback();
            }
            if (collision == 1) {
                collisions.count((bit<32>)meta.port);
            }
        }
        if (meta.lanes != 0) {
            take_lane();
        }
    }
}

#endif
