// SPDX-License-Identifier: Apache-2.0
// Indirect meters of bytes and of packets, and a direct meter; each colour goes into a byte of the packet.
#include "include/probe.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    meter(8, MeterType.bytes) byte_meter;
    meter(4, MeterType.packets) packet_meter;
    direct_meter<bit<8>>(MeterType.packets) entry_meter;

    action metered(bit<8> tag) {
        entry_meter.read(meta.color);
        hdr.p.hit = tag;
    }
    table by_key {
        key = { hdr.p.key : exact; }
        actions = { metered; NoAction; }
        default_action = NoAction;
        meters = entry_meter;
        size = 16;
    }
    apply {
        byte_meter.execute_meter(hdr.p.a, hdr.p.x);
        packet_meter.execute_meter(hdr.p.b, hdr.p.y);
        by_key.apply();
        hdr.p.z = meta.color;
        std.egress_spec = 1;
    }
}

V1Switch(ProbeParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), ProbeDeparser()) main;
