// SPDX-License-Identifier: Apache-2.0
// Which lane a packet is in: the slot of its flow's entry or, until there is one, a hashed fallback slot.
#ifndef FAIRLANE_FLOW_P4
#define FAIRLANE_FLOW_P4

#include "state.p4"

control Flow(inout headers_t hdr, inout metadata_t meta) {
    // Every packet that arrives for a port with a limit, admitted or not.
    direct_counter(CounterType.packets_and_bytes) flow_v4_counter;
    direct_counter(CounterType.packets_and_bytes) flow_v6_counter;

    register<bit<32>>(FALLBACK) fallback_owner;       // hash of the flow that last used the slot

    /// The flow has the slot flow_id; the weight is its class's.
    action set_flow(bit<16> flow_id) {
        meta.slot = (slot_t)flow_id;
        meta.has_entry = 1;
    }

    /// The flow has the slot flow_id and a weight of its own, in 1/256.
    action set_flow_weighted(bit<16> flow_id, bit<16> weight) {
        meta.slot = (slot_t)flow_id;
        meta.flow_weight = weight;
        meta.has_entry = 1;
    }

    table flow_v4 {
        key = {
            hdr.ipv4.src      : exact @name("src");
            hdr.ipv4.dst      : exact @name("dst");
            hdr.ipv4.protocol : exact @name("protocol");
            meta.src_port     : exact @name("src_port");
            meta.dst_port     : exact @name("dst_port");
        }
        actions = { set_flow; set_flow_weighted; @defaultonly NoAction; }
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
        }
        actions = { set_flow; set_flow_weighted; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_v6_counter;
        support_timeout = true;
        size = FLOWS;
    }

    @hidden action hash_v4() {
        hash(meta.flow_hash, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.src_port, meta.dst_port },
             64w0x100000000);
        meta.has_hash = 1;
    }

    @hidden action hash_v6() {
        hash(meta.flow_hash, HashAlgorithm.crc32, 32w0,
             { hdr.ipv6.src, hdr.ipv6.dst, hdr.ipv6.next_header, meta.src_port, meta.dst_port },
             64w0x100000000);
        meta.has_hash = 1;
    }

    bit<1> collision = 0;

    // Two flows in one slot share a threshold. A packet that finds packets of another flow waiting in its
    // slot is counted, so that the controller can see it and give both an entry.
    @hidden action use_fallback() {
        bit<32> waiting;
        bit<32> owner;
        bit<32> index = (bit<32>)meta.flow_hash[FALLBACK_BITS-1:0];
        meta.slot = FLOWS + index;
        meta.tell = 1;
        flow_occupancy.read(waiting, FLOWS + index);
        fallback_owner.read(owner, index);
        collision = (waiting != 0 && owner != meta.flow_hash) ? 1w1 : 1w0;
        fallback_owner.write(index, meta.flow_hash);
    }

    apply {
        if (hdr.ipv4.isValid()) {
            flow_v4.apply();
            if (meta.has_entry == 0 || meta.tcp_payload_len != 0) {
                hash_v4();
            }
        } else {
            flow_v6.apply();
            if (meta.has_entry == 0 || meta.tcp_payload_len != 0) {
                hash_v6();
            }
        }
        if (meta.has_entry == 0) {
            use_fallback();
            if (collision == 1) {
                collisions.count((bit<32>)meta.port);
            }
        }
    }
}

#endif
