// SPDX-License-Identifier: Apache-2.0
// fq_codel.p4: routes IP; at a managed port each flow has a queue by the hash of its 5-tuple, and each queue CoDel (RFC 8290).
// The port's scheduler `fq` serves the queues and drops where the buffer is full (RFC 8290 section 4).
#include <core.p4>
#include <v1model.p4>

#include "include/sizes.p4"
#define AQM_QUEUES FQ_STATES
#define AQM_FIELDS bit<32> target_us; bit<32> interval_us; bit<32> max_packet_bytes; bit<16> queue_id; bit<32> queue_quantum; bit<32> flow; bit<32> salt;
#define FLOW_SALT meta.salt,
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/aqm/flow_hash.p4"
#include "include/aqm/codel.p4"

control FqCodelIngress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    FlowHash() flow_hash;
    Enqueue() enqueue;

    bit<64> queues;

    action set_fq_codel(bit<32> target_us, bit<32> interval_us, bit<32> max_packet_bytes, bit<1> ecn, bit<16> queues_count, bit<32> hash_salt,
                        bit<32> quantum_bytes) {
        meta.managed = 1;
        meta.target_us = target_us;
        meta.interval_us = interval_us;
        meta.max_packet_bytes = max_packet_bytes;
        meta.ecn = ecn;
        queues = (bit<64>)queues_count;
        meta.salt = hash_salt;
        meta.queue_quantum = quantum_bytes;
    }

    table fq_codel_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_fq_codel; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        queues = 1;
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE && fq_codel_port.apply().hit) {
            flow_hash.apply(hdr, meta, queues);     // RFC 8290 section 4.1: protocol, addresses and ports, and a salt
            meta.queue_id = (bit<16>)meta.flow;
            meta.queue = ((bit<32>)meta.port << FQ_QUEUE_BITS) | meta.flow;
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control FqCodelEgress(inout headers_t hdr,
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
         FqCodelIngress(),
         FqCodelEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
