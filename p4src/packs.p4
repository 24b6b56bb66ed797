// SPDX-License-Identifier: Apache-2.0
// packs.p4: routes IP; a managed port has a few strict-priority queues, and a packet waits in the first one that has room for its rank, or
// is refused (Alcoz et al., PACKS, NSDI 2025).
#include <core.p4>
#include <v1model.p4>

#define AQM_FIELDS bit<8> rank_from; bit<16> rank; bit<32> rank_cell; bit<32> k; bit<32> queues; bit<32> limit_packets; bit<16> queue_id; bit<32> window; bit<32> sample; bit<32> filled; bit<32> smaller;
#define RANK_QUEUES SP_PIFO_CELLS // [port ++ i - 1], queue 1 is served first
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/rank/rank.p4"
#include "include/rank/window.p4"
#include "include/rank/queue.p4"

#define NO_QUEUE 8

// Algorithm 1 of the paper: the first queue i with b_i < B_i and W.quantile(r) <= 1/(1 - k) sum of (B_j - b_j) for j <= i, over B.
// The quantile of a rank is the share of the window's ranks that are smaller.
control Packs(inout metadata_t meta) {
#define TRY(i) waiting_packets.read(packets, first + i); room = (i < meta.queues) ? meta.limit_packets |-| packets : 0; free = free + (bit<64>)room; \
    chosen = (chosen == NO_QUEUE && room != 0 && needed <= ((bit<64>)meta.filled * free) << 16) ? i : chosen;

    // k in 1/65536. Read and written in one action: BMv2 runs ingress and egress side by side.
    @hidden action admit() {
        bit<32> first = (bit<32>)(meta.port ++ 5w0);
        bit<64> needed = (bit<64>)meta.smaller * (bit<64>)meta.queues * (bit<64>)meta.limit_packets * (bit<64>)(0x10000 - meta.k);
        bit<64> free = 0;
        bit<32> chosen = NO_QUEUE;
        bit<32> packets;
        bit<32> room;
        TRY(0) TRY(1) TRY(2) TRY(3) TRY(4) TRY(5) TRY(6) TRY(7)
        meta.reason = (chosen != NO_QUEUE) ? REASON_NONE : ((free == 0) ? REASON_PORT_FULL : REASON_RANK);
        chosen = (chosen != NO_QUEUE) ? chosen : 0;
        meta.queue = first + chosen;
        waiting_packets.read(packets, meta.queue);
        waiting_packets.write(meta.queue, (meta.reason == REASON_NONE) ? packets + 1 : packets);
        // The traffic manager serves the largest number first, as BMv2 does.
        meta.queue_id = (bit<16>)(meta.queues - 1 - chosen);
    }

    apply {
        admit();
    }
}

control PacksIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    Rank() rank;
    RankWindow() rank_window;
    Packs() packs;
    RankEnqueue() enqueue;

    action set_packs(bit<8> rank_from, bit<32> queues, bit<32> queue_packets, bit<32> k, bit<32> window, bit<32> sample) {
        meta.managed = 1;
        meta.rank_from = rank_from;
        meta.queues = queues;
        meta.limit_packets = queue_packets;
        meta.k = k;
        meta.window = window;
        meta.sample = sample;
    }

    table packs_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_packs; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE && packs_port.apply().hit) {
            rank.apply(hdr, meta, standard_metadata);
            rank_window.apply(meta);
            packs.apply(meta);
            standard_metadata.priority = meta.queue_id[2:0];
        }
        enqueue.apply(meta, standard_metadata);
    }
}

V1Switch(LaneParser(), LaneVerifyChecksum(), PacksIngress(), RankEgress(), LaneComputeChecksum(), LaneDeparser()) main;
