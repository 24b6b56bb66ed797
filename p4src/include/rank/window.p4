// SPDX-License-Identifier: Apache-2.0
// The ranks of the last arrivals at a port, and how many of them are smaller than a packet's: its quantile (AIFO, PACKS).
#ifndef FAIRLANE_RANK_WINDOW_P4
#define FAIRLANE_RANK_WINDOW_P4

#include "../headers.p4"

control RankWindow(inout metadata_t meta) {
    register<bit<16>>(AIFO_CELLS) window_ranks;   // [port ++ place]
    register<bit<32>>(PORTS) window_next;                // the place of the next rank
    register<bit<32>>(PORTS) window_filled;              // places that hold one
    register<bit<32>>(PORTS) window_skipped;             // arrivals since the last one that was taken

    bit<32> first;
    bit<32> place;
    bit<32> held;
    bit<32> skipped;

#define COUNT(i) window_ranks.read(rank, first + i); meta.smaller = meta.smaller + ((i < meta.filled && rank < meta.rank) ? 32w1 : 32w0);
#define COUNT_8(i) COUNT(i) COUNT(i + 1) COUNT(i + 2) COUNT(i + 3) COUNT(i + 4) COUNT(i + 5) COUNT(i + 6) COUNT(i + 7)

    @hidden action count_smaller() {
        bit<16> rank;
        meta.smaller = 0;
        COUNT_8(0)
        COUNT_8(8)
        COUNT_8(16)
        COUNT_8(24)
    }

    @hidden action keep_rank() {
        window_ranks.write(first + place, meta.rank);
        window_next.write((bit<32>)meta.port, place + 1);
    }

    apply {
        first = (bit<32>)(meta.port ++ 5w0);
        window_filled.read(meta.filled, (bit<32>)meta.port);
        window_next.read(place, (bit<32>)meta.port);
        window_skipped.read(skipped, (bit<32>)meta.port);
        if (meta.filled > meta.window) {
            meta.filled = meta.window;
        }
        held = meta.filled;
        count_smaller();
        // One of `sample` arrivals replaces the oldest rank.
        skipped = skipped + 1;
        if (skipped >= meta.sample || meta.filled == 0) {
            if (place >= meta.window) {
                place = 0;
            }
            keep_rank();
            if (held < meta.window) {
                held = held + 1;
            }
            skipped = 0;
        }
        window_filled.write((bit<32>)meta.port, held);
        window_skipped.write((bit<32>)meta.port, skipped);
    }
}

#endif
