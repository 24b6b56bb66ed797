// SPDX-License-Identifier: Apache-2.0
// aifo.p4: routes IP; a managed port has one FIFO queue, and refuses by rank what a PIFO would drop later (Yu et al., AIFO, SIGCOMM 2021).
#include <core.p4>
#include <v1model.p4>

#define AQM_FIELDS bit<8> rank_from; bit<16> rank; bit<32> rank_cell; bit<32> capacity; bit<32> k; bit<32> window; bit<32> sample; bit<32> filled; bit<32> smaller;
#define RANK_QUEUES PORTS
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/rank/rank.p4"
#include "include/rank/window.p4"
#include "include/rank/queue.p4"

// Algorithm 1 of the paper: a packet is admitted when c <= k C, or W.quantile(r) <= 1/(1 - k) (C - c)/C. The quantile of a rank is the
// share of the window's ranks that are smaller.
control Aifo(inout metadata_t meta) {
    // k in 1/65536. Read and written in one action: BMv2 runs ingress and egress side by side.
    @hidden action admit() {
        bit<32> packets;                             // c
        waiting_packets.read(packets, meta.queue);
        bit<64> free = (bit<64>)(meta.capacity |-| packets);
        bool below_k = ((bit<64>)packets << 16) <= (bit<64>)meta.k * (bit<64>)meta.capacity;
        bool urgent = (bit<64>)meta.smaller * (bit<64>)meta.capacity * (bit<64>)(0x10000 - meta.k) <= ((bit<64>)meta.filled * free) << 16;
        meta.reason = (free == 0) ? REASON_PORT_FULL : ((below_k || urgent) ? REASON_NONE : REASON_RANK);
        waiting_packets.write(meta.queue, (meta.reason == REASON_NONE) ? packets + 1 : packets);
    }

    apply {
        admit();
    }
}

control AifoIngress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    Rank() rank;
    RankWindow() rank_window;
    Aifo() aifo;
    RankEnqueue() enqueue;

    action set_aifo(bit<8> rank_from, bit<32> capacity_packets, bit<32> k, bit<32> window, bit<32> sample) {
        meta.managed = 1;
        meta.queue = (bit<32>)meta.port;
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
                rank_window.apply(meta);
                aifo.apply(meta);
            }
        }
        enqueue.apply(meta, standard_metadata);
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         AifoIngress(),
         RankEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
