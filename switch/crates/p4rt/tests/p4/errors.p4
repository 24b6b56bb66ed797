// SPDX-License-Identifier: Apache-2.0
// Keys of type error, entries that are there at the start and not const, and a message without values.
#include <core.p4>
#include <v1model.p4>

header start_t {
    bit<8> kind;
}

header more_t {
    bit<32> value;
}

struct headers_t {
    start_t start;
    more_t  more;
}

struct metadata_t {}

parser ErrorsParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.start);
        packet.extract(hdr.more);
        transition accept;
    }
}

control ErrorsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    action drop() {
        log_msg("an unknown kind");
        mark_to_drop(standard_metadata);
    }
    table by_kind {
        key = { hdr.start.kind : exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 16;
        entries = {
            1 : forward(1);
            2 : forward(2);
        }
    }
    table by_error {
        key = { standard_metadata.parser_error : exact; }
        actions = { forward; @defaultonly NoAction; }
        size = 8;
    }
    table by_error_mask {
        key = { standard_metadata.parser_error : ternary; }
        actions = { forward; @defaultonly NoAction; }
        size = 8;
    }
    apply {
        by_kind.apply();
        if (!by_error.apply().hit) {
            by_error_mask.apply();
        }
    }
}

control ErrorsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {}
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control NoCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ErrorsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(ErrorsParser(), NoVerify(), ErrorsIngress(), ErrorsEgress(), NoCompute(), ErrorsDeparser()) main;
