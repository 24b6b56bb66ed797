// SPDX-License-Identifier: Apache-2.0
// afq.p4: routes IP; at a managed port a packet waits in the queue of the round that its flow's bytes reach (Sharma et al., AFQ, NSDI 2018).
// The port's scheduler serves the rounds in turn (calendar).
#include <core.p4>
#include <v1model.p4>

#include "include/sizes.p4"
#define AQM_QUEUES FQ_STATES
#define AQM_FIELDS bit<16> queue_id; bit<32> flow; bit<64> bid_round;
#define FLOW_SALT
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/aqm/flow_hash.p4"
#include "include/aqm/queue.p4"

register<bit<64>>(PORTS) current_round;              // [port]: R, the round of the packet that was served last

control Afq(inout metadata_t meta, in bit<8> round_shift, in bit<16> queues) {
    // The count-min sketch of the flows' bids, bytes: three rows, [port ++ column].
    register<bit<64>>(FQ_STATES) bids_0;
    register<bit<64>>(FQ_STATES) bids_1;
    register<bit<64>>(FQ_STATES) bids_2;

    // Section 3.2: bid = max(bid of the flow, R * BpR) + size, round = bid / BpR; refused when it is nQ or more ahead of R.
    // BpR and nQ are powers of two. A refused packet changes nothing. A bid that no packet can have had by now is from before BpR
    // or nQ changed, and none. Read and written in one action: BMv2 runs ingress and egress side by side.
    @hidden action bid() {
        bit<32> first = (bit<32>)meta.port << FQ_QUEUE_BITS;
        // CRC is linear: other salts would give rows that collide together, other bits do not.
        bit<32> cell_0 = first | (bit<32>)meta.flow[9:0];
        bit<32> cell_1 = first | (bit<32>)meta.flow[20:11];
        bit<32> cell_2 = first | (bit<32>)meta.flow[31:22];
        bit<64> bid_0;
        bit<64> bid_1;
        bit<64> bid_2;
        bit<64> now;
        bids_0.read(bid_0, cell_0);
        bids_1.read(bid_1, cell_1);
        bids_2.read(bid_2, cell_2);
        current_round.read(now, (bit<32>)meta.port);
        bit<64> end = (now + (bit<64>)queues) << round_shift;
        bid_0 = (bid_0 < end) ? bid_0 : 0;
        bid_1 = (bid_1 < end) ? bid_1 : 0;
        bid_2 = (bid_2 < end) ? bid_2 : 0;
        bit<64> least = (bid_0 < bid_1) ? bid_0 : bid_1;
        least = (bid_2 < least) ? bid_2 : least;
        bit<64> begin = now << round_shift;
        least = ((least < begin) ? begin : least) + (bit<64>)meta.length;
        meta.bid_round = least >> round_shift;
        meta.reason = (meta.bid_round - now < (bit<64>)queues) ? REASON_NONE : REASON_AQM;
        bool in_time = meta.reason == REASON_NONE;
        bids_0.write(cell_0, (in_time && bid_0 < least) ? least : bid_0);
        bids_1.write(cell_1, (in_time && bid_1 < least) ? least : bid_1);
        bids_2.write(cell_2, (in_time && bid_2 < least) ? least : bid_2);
        meta.queue_id = (bit<16>)meta.bid_round & (queues - 1);
        meta.queue = first | (bit<32>)meta.queue_id;
    }

    apply {
        bid();
    }
}

control AfqIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    FlowHash() flow_hash;
    Afq() afq;
    Enqueue() enqueue;

    bit<8> shift;
    bit<16> queues;

    action set_afq(bit<8> round_shift, bit<16> queues_count) {
        meta.managed = 1;
        shift = round_shift;
        queues = queues_count;
    }

    table afq_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_afq; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        shift = 0;
        queues = 0;
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE) {
            afq_port.apply();
            if (meta.managed == 1) {
                flow_hash.apply(hdr, meta, 64w0x100000000);
                afq.apply(meta, shift, queues);
            }
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control AfqEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    Send() send;

    apply {
        if (meta.managed == 1) {
            dequeue.apply(meta, standard_metadata);
            // A packet that ended behind ingress is counted out, and no round began with it.
            if (meta.queue_drop == 0) {
                current_round.write((bit<32>)meta.port, meta.bid_round);
                send.apply(meta, standard_metadata);
            }
        }
    }
}

V1Switch(LaneParser(), LaneVerifyChecksum(), AfqIngress(), AfqEgress(), LaneComputeChecksum(), LaneDeparser()) main;
