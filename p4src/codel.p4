// SPDX-License-Identifier: Apache-2.0
// codel.p4: routes IP; at a managed port CoDel (RFC 8289) drops, or marks, when packets have waited longer than target for an interval.
#include <core.p4>
#include <v1model.p4>

#define AQM_QUEUES PORTS
#define AQM_FIELDS bit<32> target_us; bit<32> interval_us; bit<32> max_packet_bytes;
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/aqm/codel.p4"

control CodelIngress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    Enqueue() enqueue;

    action set_codel(bit<32> target_us, bit<32> interval_us, bit<32> max_packet_bytes, bit<1> ecn) {
        meta.managed = 1;
        meta.queue = (bit<32>)meta.port;
        meta.target_us = target_us;
        meta.interval_us = interval_us;
        meta.max_packet_bytes = max_packet_bytes;
        meta.ecn = ecn;
    }

    table codel_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_codel; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE) {
            codel_port.apply();
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control CodelEgress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    Codel() codel;
    Send() send;

    apply {
        if (meta.managed == 1) {
            dequeue.apply(meta, standard_metadata);
            // A packet that ended behind ingress is counted out, and has no other part in anything.
            if (meta.queue_drop == 0) {
                codel.apply(hdr, meta, standard_metadata);
                if (meta.reason == REASON_NONE) {
                    send.apply(meta, standard_metadata);
                }
            }
        }
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         CodelIngress(),
         CodelEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
