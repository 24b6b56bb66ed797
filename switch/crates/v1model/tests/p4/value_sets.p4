// SPDX-License-Identifier: Apache-2.0
// Parser value sets: of one field, and of two.
#include <core.p4>
#include <v1model.p4>

header probe_t { bit<16> kind; bit<8> part; bit<8> taken; }
header more_t { bit<8> value; }
struct headers { probe_t p; more_t first; more_t second; }
struct metadata { }
struct pair_t { bit<16> kind; bit<8> part; }

parser SetParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) kinds;
    value_set<pair_t>(4) pairs;
    state start {
        packet.extract(hdr.p);
        transition select(hdr.p.kind) {
            kinds: one;
            default: pair;
        }
    }
    state pair {
        transition select(hdr.p.kind, hdr.p.part) {
            pairs: two;
            default: accept;
        }
    }
    state one { packet.extract(hdr.first); transition accept; }
    state two { packet.extract(hdr.second); transition accept; }
}

control NoVerify(inout headers hdr, inout metadata meta) { apply { } }
control NoCompute(inout headers hdr, inout metadata meta) { apply { } }
control NoEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }
control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (hdr.first.isValid()) { hdr.p.taken = 1; }
        if (hdr.second.isValid()) { hdr.p.taken = 2; }
        std.egress_spec = 1;
    }
}
control SetDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr.p); packet.emit(hdr.first); packet.emit(hdr.second); }
}

V1Switch(SetParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), SetDeparser()) main;
