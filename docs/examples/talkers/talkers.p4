// SPDX-License-Identifier: Apache-2.0
// talkers.p4: routes IP, and counts what each pair of IPv4 hosts sends. A pair without an entry is announced by a digest.
#include <core.p4>
#include <v1model.p4>

#include "sizes.p4"

#define TALKERS 1024
#define LARGE_BYTES 1000

// What the shared controls want of a packet's metadata.
#define FAIRLANE_METADATA_P4
struct metadata_t {
    bit<16>  src_port;
    bit<16>  dst_port;
    bit<6>   dscp;
    bit<3>   pcp;
    bit<12>  vid;
    bit<32>  tunnel;
    bit<16>  l2_length;
    bit<16>  tcp_header;
    bit<16>  tcp_payload_len;
    bit<16>  length;           // bytes of the frame
    reason_t reason;           // a packet is dropped when it is not REASON_NONE
    port_t   port;             // egress port
}

#include "headers.p4"
#include "parser.p4"
#include "control/validate.p4"
#include "control/route.p4"

struct new_talker_t {
    bit<32> src;
    bit<32> dst;
}

counter(PORTS, CounterType.packets_and_bytes) passed;          // [egress port]
counter(TALKERS, CounterType.packets_and_bytes) large;         // [slot], frames of LARGE_BYTES or more
counter(DROP_COUNTERS, CounterType.packets_and_bytes) drops;   // [port ++ reason]

control TalkersIngress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    Validate() validate;
    Route() route;
    direct_counter(CounterType.packets_and_bytes) sent;

    action set_talker(bit<16> slot) {
        sent.count();
        if (meta.length >= LARGE_BYTES) {
            large.count((bit<32>)slot);
        }
    }

    action announce() {
        sent.count();
        digest<new_talker_t>(1, { hdr.ipv4.src, hdr.ipv4.dst });
    }

    table talker {
        key = {
            hdr.ipv4.src : exact @name("src");
            hdr.ipv4.dst : exact @name("dst");
        }
        actions = { set_talker; @defaultonly announce; }
        const default_action = announce();
        counters = sent;
        support_timeout = true;
        size = TALKERS;
    }

    apply {
        meta.length = (bit<16>)standard_metadata.packet_length;
        meta.port = standard_metadata.ingress_port;     // where a refusal without a route is counted
        if (hdr.packet_out.isValid()) {
            meta.port = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            validate.apply(hdr, meta, standard_metadata);
            if (meta.reason == REASON_NONE) {
                route.apply(hdr, meta, standard_metadata);
            }
        }
        if (meta.reason != REASON_NONE) {
            drops.count((bit<32>)(meta.port ++ meta.reason));
            mark_to_drop(standard_metadata);
        } else {
            if (hdr.ipv4.isValid()) {
                talker.apply();
            }
            standard_metadata.egress_spec = meta.port;
            passed.count((bit<32>)meta.port);
        }
    }
}

control TalkersEgress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    apply {
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         TalkersIngress(),
         TalkersEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
