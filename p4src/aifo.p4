// SPDX-License-Identifier: Apache-2.0
// aifo.p4: routes IP; a managed port has one FIFO queue, and refuses by rank what a PIFO would drop later (Yu et al., AIFO, SIGCOMM 2021).
#include <core.p4>
#include <v1model.p4>

#define AQM_FIELDS bit<8> rank_from; bit<16> rank; bit<32> rank_cell; bit<32> capacity; bit<32> k; bit<32> window; bit<32> sample;
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/rank/rank.p4"
#include "include/rank/queue.p4"

register<bit<32>>(PORTS) waiting_packets;            // [port]: c, the packets that wait

// Algorithm 1 of the paper: a packet is admitted when c <= k C, or W.quantile(r) <= 1/(1 - k) (C - c)/C. The quantile of a rank is the
// share of the window's ranks that are smaller.
control Aifo(inout metadata_t meta) {
    register<bit<16>>(AIFO_CELLS) window_ranks;      // [port ++ place]
    register<bit<32>>(PORTS) window_next;            // the place of the next rank
    register<bit<32>>(PORTS) window_filled;          // places that hold one
    register<bit<32>>(PORTS) window_skipped;         // arrivals since the last one that was taken

    bit<32> first;
    bit<32> filled;
    bit<32> place;
    bit<32> skipped;
    bit<32> smaller;

#define COUNT(i) window_ranks.read(rank, first + i); smaller = smaller + ((i < filled && rank < meta.rank) ? 32w1 : 32w0);
#define COUNT_8(i) COUNT(i) COUNT(i + 1) COUNT(i + 2) COUNT(i + 3) COUNT(i + 4) COUNT(i + 5) COUNT(i + 6) COUNT(i + 7)

    @hidden action count_smaller() {
        bit<16> rank;
        smaller = 0;
        COUNT_8(0)
        COUNT_8(8)
        COUNT_8(16)
        COUNT_8(24)
    }

    @hidden action keep_rank() {
        window_ranks.write(first + place, meta.rank);
        window_next.write((bit<32>)meta.port, place + 1);
    }

    // k in 1/65536. Read and written in one action: BMv2 runs ingress and egress side by side.
    @hidden action admit() {
        bit<32> packets;
        waiting_packets.read(packets, (bit<32>)meta.port);
        bit<64> free = (bit<64>)(meta.capacity |-| packets);
        bool below_k = ((bit<64>)packets << 16) <= (bit<64>)meta.k * (bit<64>)meta.capacity;
        bool urgent = (bit<64>)smaller * (bit<64>)meta.capacity * (bit<64>)(0x10000 - meta.k) <= ((bit<64>)filled * free) << 16;
        meta.reason = (free == 0) ? REASON_PORT_FULL : ((below_k || urgent) ? REASON_NONE : REASON_RANK);
        waiting_packets.write((bit<32>)meta.port, (meta.reason == REASON_NONE) ? packets + 1 : packets);
    }

    apply {
        first = (bit<32>)(meta.port ++ 5w0);
        window_filled.read(filled, (bit<32>)meta.port);
        window_next.read(place, (bit<32>)meta.port);
        window_skipped.read(skipped, (bit<32>)meta.port);
        if (filled > meta.window) {
            filled = meta.window;
        }
        count_smaller();
        admit();
        // One of `sample` arrivals replaces the oldest rank.
        skipped = skipped + 1;
        if (skipped >= meta.sample || filled == 0) {
            if (place >= meta.window) {
                place = 0;
            }
            keep_rank();
            if (filled < meta.window) {
                filled = filled + 1;
            }
            skipped = 0;
        }
        window_filled.write((bit<32>)meta.port, filled);
        window_skipped.write((bit<32>)meta.port, skipped);
    }
}

control AifoIngress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    Rank() rank;
    Aifo() aifo;
    RankEnqueue() enqueue;

    action set_aifo(bit<8> rank_from, bit<32> capacity_packets, bit<32> k, bit<32> window, bit<32> sample) {
        meta.managed = 1;
        meta.rank_from = rank_from;
        meta.capacity = capacity_packets;
        meta.k = k;
        meta.window = window;
        meta.sample = sample;
    }

    table aifo_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_aifo; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE) {
            aifo_port.apply();
            if (meta.managed == 1) {
                rank.apply(hdr, meta, standard_metadata);
                aifo.apply(meta);
            }
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control AifoEgress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    RankDequeue() dequeue;

    @hidden action leave_queue() {
        bit<32> packets;
        waiting_packets.read(packets, (bit<32>)meta.port);
        waiting_packets.write((bit<32>)meta.port, (packets == 0) ? 0 : packets - 1);
    }

    apply {
        if (meta.managed == 1) {
            leave_queue();
            dequeue.apply(meta);
        }
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         AifoIngress(),
         AifoEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
