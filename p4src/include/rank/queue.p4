// SPDX-License-Identifier: Apache-2.0
// What waits in each queue and which ranks wait at a port, and what became of each rank: arrivals, drops, inversions.
// A program defines RANK_QUEUES, the number of queues, before; its ingress counts a packet into its queue, meta.queue.
//
// An inversion is a packet that leaves while one of a smaller rank waits (SP-PIFO, section 3). Ranks above 126 are counted as one, 127.
#ifndef FAIRLANE_RANK_QUEUE_P4
#define FAIRLANE_RANK_QUEUE_P4

#include "../headers.p4"

register<bit<32>>(RANK_QUEUES) waiting_packets;                  // [queue]
register<bit<32>>(RANK_CELLS) rank_packets;                      // [port ++ rank]: packets that wait
register<bit<128>>(PORTS) waiting_ranks;                         // [port]: bit r is 1 when packets of rank r wait
counter(PORTS, CounterType.packets_and_bytes) passed;            // [port], accepted by ingress
counter(PORTS, CounterType.packets_and_bytes) refused;           // [managed port]
counter(PORTS, CounterType.packets_and_bytes) inverted;          // [managed port]
counter(DROP_COUNTERS, CounterType.packets_and_bytes) drops;     // [port ++ reason]
counter(RANK_CELLS, CounterType.packets) rank_arrivals;          // [port ++ rank]
counter(RANK_CELLS, CounterType.packets) rank_drops;
counter(RANK_CELLS, CounterType.packets) rank_inversions;

// The end of ingress. A packet that is accepted is counted in.
control RankEnqueue(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Read and written in one action: BMv2 runs ingress and egress side by side.
    @hidden action count_in() {
        bit<32> packets;
        bit<128> ranks;
        rank_packets.read(packets, meta.rank_cell);
        rank_packets.write(meta.rank_cell, packets + 1);
        waiting_ranks.read(ranks, (bit<32>)meta.port);
        waiting_ranks.write((bit<32>)meta.port, ranks | (128w1 << meta.rank_cell[6:0]));
    }

    apply {
        if (meta.managed == 1) {
            rank_arrivals.count(meta.rank_cell);
        }
        if (meta.reason != REASON_NONE) {
            drops.count((bit<32>)(meta.port ++ meta.reason));
            if (meta.managed == 1) {
                refused.count((bit<32>)meta.port);
                rank_drops.count(meta.rank_cell);
            }
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = meta.port;
            passed.count((bit<32>)meta.port);
            if (meta.managed == 1) {
                count_in();
            }
        }
    }
}

// Egress: a packet of a managed port is counted out.
control RankEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<128> smaller;

    @hidden action count_out() {
        bit<32> packets;
        bit<128> ranks;
        bit<128> own = 128w1 << meta.rank_cell[6:0];
        waiting_packets.read(packets, meta.queue);
        waiting_packets.write(meta.queue, (packets == 0) ? 0 : packets - 1);
        rank_packets.read(packets, meta.rank_cell);
        packets = (packets == 0) ? 0 : packets - 1;
        rank_packets.write(meta.rank_cell, packets);
        waiting_ranks.read(ranks, (bit<32>)meta.port);
        ranks = (packets == 0) ? ranks & ~own : ranks;
        waiting_ranks.write((bit<32>)meta.port, ranks);
        smaller = ranks & (own - 1);
    }

    apply {
        if (meta.managed == 1) {
            count_out();
            if (meta.queue_drop == 0 && smaller != 0) {
                inverted.count((bit<32>)meta.port);
                rank_inversions.count(meta.rank_cell);
            }
        }
    }
}

#endif
