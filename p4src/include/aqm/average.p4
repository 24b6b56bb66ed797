// SPDX-License-Identifier: Apache-2.0
// RED's average of the queue (Floyd and Jacobson 1993): red.p4, fred.p4.
#ifndef FAIRLANE_AQM_AVERAGE_P4
#define FAIRLANE_AQM_AVERAGE_P4

#include "../headers.p4"

register<bit<32>>(PORTS) average;         // [port], avg, packets * 2^16
register<time_us_t>(PORTS) idle_since;    // [port], q_time, us

// The queue's length joins the average. Read and written in one action: BMv2 runs ingress and egress side by side.
control Sample(inout metadata_t meta) {
    @hidden action average_in() {
        average.read(meta.avg, (bit<32>)meta.port);
        bit<32> packets = (meta.queue_packets < 0xFFFF) ? meta.queue_packets : 0xFFFF;      // more do not fit
        meta.avg = meta.avg - (meta.avg >> meta.weight) + ((packets << 16) >> meta.weight);
        average.write((bit<32>)meta.port, meta.avg);
    }

    apply {
        average_in();
    }
}

// What waits, and the average as a packet comes.
control Average(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    Sample() sample;
    time_us_t since;
    bit<64> log;
    bit<64> fraction;

    // (1 - w_q)^m, m = idle time / s, is 2^-log; `decay` is what log grows by each us, * 2^32. 2^-f is 1 - f (0.6931 - f (0.2402 - 0.0471 f)).
    @hidden action decay_average() {
        average.read(meta.avg, (bit<32>)meta.port);
        idle_since.read(since, (bit<32>)meta.port);
        since = standard_metadata.ingress_global_timestamp - since;
        log = (bit<64>)(bit<32>)since * (bit<64>)meta.decay;
        fraction = (log >> 8) & 0xFFFFFF;
        fraction = (1 << 24) - ((fraction * (11629080 - ((fraction * (4030332 - ((789860 * fraction) >> 24))) >> 24))) >> 24);
        meta.avg = (since <= 0x7FFFFFFF && log >> 32 < 32) ? (bit<32>)(((bit<64>)(meta.avg >> (bit<8>)(log >> 32)) * fraction) >> 24) : 0;
        average.write((bit<32>)meta.port, meta.avg);
    }

    apply {
        waiting_packets.read(meta.queue_packets, meta.queue);
        if (meta.queue_packets == 0 && meta.decay != 0) {
            decay_average();
        } else {
            sample.apply(meta);
        }
    }
}

// The end of egress at a managed port: since when nothing waits.
control NoteIdle(in metadata_t meta, in standard_metadata_t standard_metadata) {
    apply {
        if (meta.queue_packets == 0) {
            idle_since.write((bit<32>)meta.port, standard_metadata.egress_global_timestamp);
        }
    }
}

#endif
