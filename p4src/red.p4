// SPDX-License-Identifier: Apache-2.0
// red.p4: routes IP; at a managed port RED (Floyd and Jacobson 1993, RFC 2309) marks (RFC 3168) or drops arriving packets with a
// probability that grows with the average queue.
#include <core.p4>
#include <v1model.p4>

#define AQM_QUEUES PORTS
// Thresholds and the average are packets * 2^16, probabilities * 2^32, slopes (probability a packet) * 2^24.
#define AQM_FIELDS bit<32> min_th; bit<32> max_th; bit<32> max_p; bit<32> slope; bit<32> gentle_slope; bit<8> weight; bit<32> decay;
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/aqm/queue.p4"
#include "include/aqm/ecn.p4"

register<bit<32>>(PORTS) average;        // [port], avg, packets * 2^16
register<time_us_t>(PORTS) idle_since;    // [port], q_time, us

control Red(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    register<bit<32>>(PORTS) since_last;     // [port], count + 1: packets since the last one that was marked or dropped; 0: below min_th
    register<bit<32>>(PORTS) chance;         // [port], R, * 2^32

    IsEct() is_ect;
    MarkCe() mark_ce;
    bit<32> avg;
    time_us_t since;
    bit<32> count;
    bit<32> r;
    bit<64> p_b;
    bit<64> log;
    bit<64> fraction;
    bit<1> chosen;

    // (1 - w_q)^m, m = idle time / s, is 2^-log; `decay` is what log grows by each us, * 2^32. 2^-f is 1 - f (0.6931 - f (0.2402 - 0.0471 f)).
    @hidden action decay_average() {
        log = (bit<64>)(bit<32>)(standard_metadata.ingress_global_timestamp - since) * (bit<64>)meta.decay;
        fraction = (log >> 8) & 0xFFFFFF;
        fraction = (1 << 24) - ((fraction * (11629080 - ((fraction * (4030332 - ((789860 * fraction) >> 24))) >> 24))) >> 24);
        avg = (log >> 32 < 32) ? (bit<32>)(((bit<64>)(avg >> (bit<8>)(log >> 32)) * fraction) >> 24) : 0;
    }

    @hidden action average_in() {
        avg = avg - (avg >> meta.weight) + ((meta.queue_packets << 16) >> meta.weight);
    }

    apply {
        average.read(avg, (bit<32>)meta.port);
        idle_since.read(since, (bit<32>)meta.port);
        since_last.read(count, (bit<32>)meta.port);
        chance.read(r, (bit<32>)meta.port);
        waiting_packets.read(meta.queue_packets, meta.queue);
        chosen = 0;
        if (meta.queue_packets == 0 && meta.decay != 0) {
            if (standard_metadata.ingress_global_timestamp - since > 0x7FFFFFFF) {
                avg = 0;
            } else {
                decay_average();
            }
        } else {
            average_in();
        }
        average.write((bit<32>)meta.port, avg);

        if (avg < meta.min_th) {
            count = 0;
        } else {
            if (avg < meta.max_th) {
                p_b = ((bit<64>)(avg - meta.min_th) * (bit<64>)meta.slope) >> 8;
            } else {
                p_b = (bit<64>)meta.max_p + (((bit<64>)(avg - meta.max_th) * (bit<64>)meta.gentle_slope) >> 8);
            }
            if (p_b >= 0xFFFFFFFF) {
                chosen = 1;
                count = 0;
            } else {
                // Section 8 of the paper: one packet of 1 .. 1/p_b, each as likely, is chosen when count * p_b reaches R.
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
        }
        since_last.write((bit<32>)meta.port, count);

        if (chosen == 1) {
            is_ect.apply(hdr, meta);
            // RFC 3168: above the upper threshold packets are dropped.
            if (meta.ecn == 1 && avg < meta.max_th) {
                mark_ce.apply(hdr, meta);
            } else {
                meta.reason = REASON_AQM;
            }
        }
    }
}

control RedIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    Red() red;
    Enqueue() enqueue;

    action set_red(bit<32> min_th, bit<32> max_th, bit<32> max_p, bit<32> slope, bit<32> gentle_slope, bit<8> weight, bit<32> decay, bit<1> ecn) {
        meta.managed = 1;
        meta.queue = (bit<32>)meta.port;
        meta.min_th = min_th;
        meta.max_th = max_th;
        meta.max_p = max_p;
        meta.slope = slope;
        meta.gentle_slope = gentle_slope;
        meta.weight = weight;
        meta.decay = decay;
        meta.ecn = ecn;
    }

    table red_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_red; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE && red_port.apply().hit) {
            red.apply(hdr, meta, standard_metadata);
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control RedEgress(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    Send() send;

    apply {
        if (meta.managed == 1) {
            dequeue.apply(meta, standard_metadata);
            if (meta.queue_packets == 0) {
                idle_since.write((bit<32>)meta.port, standard_metadata.egress_global_timestamp);
            }
            if (meta.queue_drop == 0) {
                send.apply(meta, standard_metadata);
            }
        }
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         RedIngress(),
         RedEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
