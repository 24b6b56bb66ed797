// SPDX-License-Identifier: Apache-2.0
// Counters direct and indirect, idle time-outs, digests, random numbers and registers.
#include "include/probe.p4"

struct sample_t { bit<32> key; bit<9> port; bit<48> wide; }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    counter(4, CounterType.packets_and_bytes) by_index;
    direct_counter(CounterType.packets_and_bytes) by_entry;
    register<bit<32>>(4) last_key;
    register<bit<128>>(2) wide;

    action tag(bit<8> value) { hdr.p.x = value; by_entry.count(); }
    action other() { hdr.p.x = 0xff; }
    table by_key {
        key = { hdr.p.key : lpm; }
        actions = { tag; other; }
        default_action = other;
        counters = by_entry;
        support_timeout = true;
        size = 16;
    }
    apply {
        by_index.count(hdr.p.a);
        by_key.apply();
        bit<32> before;
        last_key.read(before, hdr.p.a);
        last_key.write(hdr.p.a, hdr.p.key);
        wide.write(1, hdr.p.key ++ hdr.p.a ++ hdr.p.b ++ before);
        bit<32> drawn;
        random<bit<32>>(drawn, 10, hdr.p.b);
        if (hdr.p.y == 1) {
            digest<sample_t>(1, { hdr.p.key, std.ingress_port, (bit<48>)hdr.p.b });
        }
        hdr.p.a = before;
        hdr.p.b = drawn;
        std.egress_spec = 1;
    }
}

V1Switch(ProbeParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), ProbeDeparser()) main;
