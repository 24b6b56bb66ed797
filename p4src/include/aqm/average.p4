// SPDX-License-Identifier: Apache-2.0
// RED's average of the queue, and its choice of packets by chance (Floyd and Jacobson 1993): red.p4, fred.p4.
#ifndef FAIRLANE_AQM_AVERAGE_P4
#define FAIRLANE_AQM_AVERAGE_P4

#include "../headers.p4"

register<bit<32>>(PORTS) average;         // [port], avg, packets * 2^16
register<time_us_t>(PORTS) idle_since;    // [port], q_time, us

control Average(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    time_us_t since;
    bit<64> log;
    bit<64> fraction;

    // (1 - w_q)^m, m = idle time / s, is 2^-log; `decay` is what log grows by each us, * 2^32. 2^-f is 1 - f (0.6931 - f (0.2402 - 0.0471 f)).
    @hidden action decay_average() {
        log = (bit<64>)(bit<32>)(standard_metadata.ingress_global_timestamp - since) * (bit<64>)meta.decay;
        fraction = (log >> 8) & 0xFFFFFF;
        fraction = (1 << 24) - ((fraction * (11629080 - ((fraction * (4030332 - ((789860 * fraction) >> 24))) >> 24))) >> 24);
        meta.avg = (log >> 32 < 32) ? (bit<32>)(((bit<64>)(meta.avg >> (bit<8>)(log >> 32)) * fraction) >> 24) : 0;
    }

    @hidden action average_in() {
        meta.avg = meta.avg - (meta.avg >> meta.weight) + ((meta.queue_packets << 16) >> meta.weight);
    }

    apply {
        average.read(meta.avg, (bit<32>)meta.port);
        idle_since.read(since, (bit<32>)meta.port);
        waiting_packets.read(meta.queue_packets, meta.queue);
        if (meta.queue_packets == 0 && meta.decay != 0) {
            if (standard_metadata.ingress_global_timestamp - since > 0x7FFFFFFF) {
                meta.avg = 0;
            } else {
                decay_average();
            }
        } else {
            average_in();
        }
        average.write((bit<32>)meta.port, meta.avg);
    }
}

// Section 8 of the paper: one packet of 1 .. 1/p_b, each as likely, is chosen when count * p_b reaches R. p_b is * 2^32; `between`: it is a matter of chance.
control Choose(in metadata_t meta, in bit<1> between, in bit<64> p_b, out bit<1> chosen) {
    register<bit<32>>(PORTS) since_last;     // [port], count + 1: packets since the last one that was marked or dropped; 0: below min_th
    register<bit<32>>(PORTS) chance;         // [port], R, * 2^32

    bit<32> count;
    bit<32> r;

    apply {
        since_last.read(count, (bit<32>)meta.port);
        chance.read(r, (bit<32>)meta.port);
        chosen = 0;
        if (between == 0) {
            count = 0;
        } else if (p_b >= 0xFFFFFFFF) {
            chosen = 1;
            count = 0;
        } else {
            count = count + 1;
            if (count > 1 && (bit<64>)(count - 1) * p_b >= (bit<64>)r) {
                chosen = 1;
                count = 1;
            }
            if (count == 1) {
                random(r, 32w0, 32w0xFFFFFFFF);
                chance.write((bit<32>)meta.port, r);
            }
        }
        since_last.write((bit<32>)meta.port, count);
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
