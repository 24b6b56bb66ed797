// SPDX-License-Identifier: Apache-2.0
// An action profile that two tables share, and an action selector that hashes two fields.
#include "include/probe.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action_profile(4) shared;
    action_selector(HashAlgorithm.crc16, 8, 16) balance;

    action set_x(bit<8> value) { hdr.p.x = value; }
    action set_both(bit<8> x, bit<16> c) { hdr.p.x = x; hdr.p.c = c; }
    action set_z(bit<8> value) { hdr.p.z = value; }

    table first {
        key = { hdr.p.key : exact; }
        actions = { set_x; set_both; NoAction; }
        implementation = shared;
        size = 8;
    }
    table second {
        key = { hdr.p.key : ternary; }
        actions = { set_x; set_both; NoAction; }
        implementation = shared;
        size = 8;
    }
    table spread {
        key = { hdr.p.key : exact; hdr.p.a : selector; hdr.p.b : selector; }
        actions = { set_z; NoAction; }
        implementation = balance;
        size = 8;
    }
    apply {
        if (hdr.p.hit == 1) {
            switch (second.apply().action_run) {
                set_both: { hdr.p.y = 5; }
                default: { hdr.p.y = 6; }
            }
        } else {
            if (first.apply().hit) { hdr.p.hit = 9; }
        }
        spread.apply();
        std.egress_spec = 1;
    }
}

V1Switch(ProbeParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), ProbeDeparser()) main;
