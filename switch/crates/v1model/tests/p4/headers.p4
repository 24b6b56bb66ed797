// SPDX-License-Identifier: Apache-2.0
// A header stack, a varbit header and a header union, for tests of the parser and the deparser.
#include <core.p4>
#include <v1model.p4>

header start_t { bit<8> kind; bit<8> action_; }
header label_t { bit<7> value; bit<1> last; }
header options_t { bit<8> length_bytes; varbit<64> data; bit<4> a; bit<4> b; }
header small_t { bit<16> x; }
header large_t { bit<136> x; }
header_union body_t { small_t small; large_t large; }

struct headers_t {
    start_t start;
    label_t[3] labels;
    options_t options;
    body_t body;
}
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.start);
        transition select(hdr.start.kind) {
            1: labels;
            2: options;
            3: small;
            4: large;
            5 &&& 0x0d: ahead;      // 5, 7, 0x15, 0x17, …
            default: accept;
        }
    }
    state labels {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.last) {
            0: labels;
            1: accept;
        }
    }
    state options {
        packet.extract(hdr.options, (bit<32>)(packet.lookahead<bit<8>>()) << 3);
        transition accept;
    }
    state small {
        packet.extract(hdr.body.small);
        transition accept;
    }
    state large {
        packet.extract(hdr.body.large);
        transition accept;
    }
    state ahead {
        transition select(packet.lookahead<bit<24>>()) {
            0x010203: small;
            default: accept;
        }
    }
}

control V(inout headers_t hdr, inout metadata_t meta) { apply { } }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = std.parser_error == error.NoError ? 9w1 : 9w2;
        if (hdr.start.action_ == 1) {
            hdr.labels.pop_front(1);
        } else if (hdr.start.action_ == 2) {
            hdr.labels.push_front(1);
            hdr.labels[0].setValid();
            hdr.labels[0].value = 0x55;
            hdr.labels[0].last = 0;
        } else if (hdr.start.action_ == 3) {
            hdr.body.large.setValid();
            hdr.body.large.x = 136w0x0102030405060708090a0b0c0d0e0f1011;
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
