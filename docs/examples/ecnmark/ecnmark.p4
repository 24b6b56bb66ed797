// SPDX-License-Identifier: Apache-2.0
// ecnmark.p4: routes IP, and marks ECN-capable packets that find `packets` or more in the queue (RFC 8257 section 3.1).
#include <core.p4>
#include <v1model.p4>

#include "sizes.p4"

// What the shared controls want of a packet's metadata, and a field of our own.
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

    bit<19>  threshold_packets; // 0: the port marks nothing
}

#include "headers.p4"
#include "parser.p4"
#include "control/validate.p4"
#include "control/route.p4"

const bit<2> CONGESTION_EXPERIENCED = 3;  // RFC 3168 section 5

counter(PORTS, CounterType.packets_and_bytes) passed;          // [egress port]
counter(PORTS, CounterType.packets_and_bytes) marked;          // [egress port]
counter(DROP_COUNTERS, CounterType.packets_and_bytes) drops;   // [port ++ reason]

control EcnMarkIngress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    Validate() validate;
    Route() route;

    action set_threshold(bit<19> packets) {
        meta.threshold_packets = packets;
    }

    table ecnmark_threshold {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_threshold; NoAction; }
        default_action = NoAction();
        size = PORTS;
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
            ecnmark_threshold.apply();
            standard_metadata.egress_spec = meta.port;
            passed.count((bit<32>)meta.port);
        }
    }
}

control EcnMarkEgress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    // RFC 1624 eq. 3, HC' = ~(~HC + ~m + m'): ~m + m' is 0xFFFF and what the field grows by.
    @hidden action mark() {
        bit<32> sum = (bit<32>)(~hdr.ipv4.checksum) + 0xFFFF + (bit<32>)(CONGESTION_EXPERIENCED - hdr.ipv4.ecn);
        sum = (bit<32>)sum[15:0] + (bit<32>)sum[31:16];
        sum = (bit<32>)sum[15:0] + (bit<32>)sum[31:16];
        hdr.ipv4.checksum = ~sum[15:0];
        hdr.ipv4.ecn = CONGESTION_EXPERIENCED;
    }

    apply {
        if (meta.threshold_packets != 0 && standard_metadata.enq_qdepth >= meta.threshold_packets
                && hdr.ipv4.isValid() && hdr.ipv4.ecn != 0) {
            mark();
            marked.count((bit<32>)meta.port);
        }
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         EcnMarkIngress(),
         EcnMarkEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
