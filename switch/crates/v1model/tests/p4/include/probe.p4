// SPDX-License-Identifier: Apache-2.0
// The header and the empty controls that the test programs share: a packet is one probe.
// Compiled in the folder above, for each program X: p4c-bm2-ss --std p4-16 -o compiled/X.json X.p4
#include <core.p4>
#include <v1model.p4>

header probe_t {
    bit<32> key;
    bit<32> a;
    bit<32> b;
    bit<16> c;
    bit<8>  x;
    bit<8>  y;
    bit<8>  z;
    bit<8>  hit;
}

struct headers { probe_t p; }
struct metadata { bit<8> color; }

parser ProbeParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.p);
        transition accept;
    }
}

control NoVerify(inout headers hdr, inout metadata meta) { apply { } }
control NoEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }
control NoCompute(inout headers hdr, inout metadata meta) { apply { } }
control ProbeDeparser(packet_out packet, in headers hdr) { apply { packet.emit(hdr.p); } }
