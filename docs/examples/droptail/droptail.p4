// SPDX-License-Identifier: Apache-2.0
// droptail.p4: routes IP, and at a limited port at most `packets` wait: the smallest queueing scheme there is.
#include <core.p4>
#include <v1model.p4>

#include "sizes.p4"

// What the shared controls want of a packet's metadata, and two fields of our own.
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

    bit<1>   counted;          // at a port with a limit
    bit<32>  limit_packets;
}

#include "headers.p4"
#include "parser.p4"
#include "control/validate.p4"
#include "control/route.p4"

#define REASON_OVER_LIMIT 14

register<bit<32>>(PORTS) waiting;                              // packets in the port's queue
counter(PORTS, CounterType.packets_and_bytes) passed;          // [egress port]
counter(PORTS, CounterType.packets_and_bytes) refused;         // [egress port], over the limit
counter(DROP_COUNTERS, CounterType.packets_and_bytes) drops;   // [port ++ reason]

control DropTailIngress(inout headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    Validate() validate;
    Route() route;

    action set_limit(bit<32> packets) {
        meta.counted = 1;
        meta.limit_packets = packets;
    }

    table droptail_limit {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_limit; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    // Read and written in one action: BMv2 runs ingress and egress side by side.
    @hidden action admit() {
        bit<32> packets;
        waiting.read(packets, (bit<32>)meta.port);
        meta.reason = (packets < meta.limit_packets) ? REASON_NONE : (reason_t)REASON_OVER_LIMIT;
        waiting.write((bit<32>)meta.port, (packets < meta.limit_packets) ? packets + 1 : packets);
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
        if (meta.reason == REASON_NONE) {
            droptail_limit.apply();
            if (meta.counted == 1) {
                admit();
                if (meta.reason != REASON_NONE) {
                    refused.count((bit<32>)meta.port);
                }
            }
        }
        if (meta.reason != REASON_NONE) {
            drops.count((bit<32>)(meta.port ++ meta.reason));
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = meta.port;
            passed.count((bit<32>)meta.port);
        }
    }
}

control DropTailEgress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    @hidden action count_out() {
        bit<32> packets;
        waiting.read(packets, (bit<32>)meta.port);
        waiting.write((bit<32>)meta.port, (packets != 0) ? packets - 1 : 0);
    }

    apply {
        if (meta.counted == 1 && meta.reason == REASON_NONE) {
            count_out();
        }
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         DropTailIngress(),
         DropTailEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
