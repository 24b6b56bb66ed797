// SPDX-License-Identifier: Apache-2.0
// A frame says its queue and the queue's weight: what the tests of queue_id and queue_weight run.
#include <core.p4>
#include <v1model.p4>

header wish_t {
    bit<16> queue;
    bit<32> weight;
    bit<8>  port;
    bit<8>  lost_at_egress;
}

struct headers_t { wish_t wish; }

struct metadata_t {
    bit<16> queue_id;
    bit<32> queue_weight;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.wish);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = (bit<9>) hdr.wish.port;
        meta.queue_id = hdr.wish.queue;
        meta.queue_weight = hdr.wish.weight;
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.wish.lost_at_egress == 1) {
            mark_to_drop(std);
        }
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control Emit(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.wish); } }

V1Switch(P(), Verify(), In(), Out(), Compute(), Emit()) main;
