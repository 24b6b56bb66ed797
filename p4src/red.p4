// SPDX-License-Identifier: Apache-2.0
// red.p4: routes IP; at a managed port RED (Floyd and Jacobson 1993, RFC 2309) marks (RFC 3168) or drops arriving packets with a
// probability that grows with the average queue.
#include <core.p4>
#include <v1model.p4>

#define AQM_QUEUES PORTS
// Thresholds and the average are packets * 2^16, probabilities * 2^32, slopes (probability a packet) * 2^24.
#define AQM_FIELDS bit<32> min_th; bit<32> max_th; bit<32> max_p; bit<32> slope; bit<32> gentle_slope; bit<8> weight; bit<32> decay; bit<32> avg;
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/aqm/queue.p4"
#include "include/aqm/average.p4"
#include "include/aqm/ecn.p4"

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

control Red(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    Average() average_queue;
    Choose() choose;
    IsEct() is_ect;
    MarkCe() mark_ce;
    bit<64> p_b;
    bit<1> chosen;

    apply {
        average_queue.apply(meta, standard_metadata);
        if (meta.avg < meta.max_th) {
            p_b = ((bit<64>)(meta.avg |-| meta.min_th) * (bit<64>)meta.slope) >> 8;
        } else {
            p_b = (bit<64>)meta.max_p + (((bit<64>)(meta.avg - meta.max_th) * (bit<64>)meta.gentle_slope) >> 8);
        }
        choose.apply(meta, (meta.avg >= meta.min_th) ? 1w1 : 1w0, p_b, chosen);
        if (chosen == 1) {
            is_ect.apply(hdr, meta);
            // RFC 3168: above the upper threshold packets are dropped.
            if (meta.ecn == 1 && meta.avg < meta.max_th) {
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
    NoteIdle() note_idle;

    apply {
        if (meta.managed == 1) {
            dequeue.apply(meta, standard_metadata);
            note_idle.apply(meta, standard_metadata);
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
