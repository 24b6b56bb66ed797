// SPDX-License-Identifier: Apache-2.0
// sp_pifo.p4: routes IP; a managed port serves packets nearly by rank, with a few strict-priority queues (Alcoz et al., SP-PIFO, NSDI 2020).
#include <core.p4>
#include <v1model.p4>

#define AQM_FIELDS bit<8> rank_from; bit<16> rank; bit<32> rank_cell; bit<16> queues; bit<32> limit_packets; bit<16> queue_id;
#define RANK_QUEUES SP_PIFO_CELLS // [port ++ i - 1], queue 1 is served first
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/rank/rank.p4"
#include "include/rank/queue.p4"

// Algorithm 1 of the paper: the bottom-up scan, push-up and push-down, with all bounds of a port relative to one offset.
//
//   offset      how much all bounds were pushed down together; queue bound q_i = bound[i] - offset
//   key         r + offset: q_i <= r is bound[i] <= key
//
// The bounds never descend with i, so the last one that is not above r is found by halving; bound[i] only grows, and begins at 0.
control SpPifo(inout metadata_t meta) {
    register<bit<64>>(SP_PIFO_CELLS) bounds;
    register<bit<64>>(PORTS) offset;

    bit<64> pushed_down;
    bit<64> key;
    bit<64> bound;
    bit<32> first;
    bit<32> queue;

    @hidden action read_bound(bit<32> steps) {
        bounds.read(bound, first + queue + steps);
    }

#define HALVE(steps) \
        if (queue + steps < (bit<32>)meta.queues) { \
            read_bound(steps); \
            if (bound <= key) { queue = queue + steps; } \
        }

    @hidden action admit() {
        bit<32> packets;
        waiting_packets.read(packets, meta.queue);
        meta.reason = (packets < meta.limit_packets) ? REASON_NONE : REASON_PORT_FULL;
        waiting_packets.write(meta.queue, (packets < meta.limit_packets) ? packets + 1 : packets);
    }

    apply {
        first = (bit<32>)(meta.port ++ 5w0);
        queue = 0;
        offset.read(pushed_down, (bit<32>)meta.port);
        key = (bit<64>)meta.rank + pushed_down;
        HALVE(16)
        HALVE(8)
        HALVE(4)
        HALVE(2)
        HALVE(1)
        read_bound(0);
        if (bound <= key) {
            bounds.write(first + queue, key);                                         // push-up: q_i = r
        } else {
            offset.write((bit<32>)meta.port, pushed_down + (bound - key));            // push-down: all by q_1 - r
        }
        meta.queue = first + queue;
        // The traffic manager serves the largest number first, as BMv2 does.
        meta.queue_id = meta.queues - 1 - (bit<16>)queue;
        admit();
    }
}

control SpPifoIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    Rank() rank;
    SpPifo() sp_pifo;
    RankEnqueue() enqueue;

    action set_sp_pifo(bit<8> rank_from, bit<16> queues, bit<32> queue_packets) {
        meta.managed = 1;
        meta.rank_from = rank_from;
        meta.queues = queues;
        meta.limit_packets = queue_packets;
    }

    table sp_pifo_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_sp_pifo; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE) {
            sp_pifo_port.apply();
            if (meta.managed == 1) {
                rank.apply(hdr, meta, standard_metadata);
                sp_pifo.apply(meta);
                standard_metadata.priority = meta.queue_id[2:0];
            }
        }
        enqueue.apply(meta, standard_metadata);
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         SpPifoIngress(),
         RankEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
