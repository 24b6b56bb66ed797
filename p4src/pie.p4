// SPDX-License-Identifier: Apache-2.0
// pie.p4: routes IP; at a managed port PIE (RFC 8033) drops, or marks, arriving packets with a probability that holds the queueing
// delay at a target.
#include <core.p4>
#include <v1model.p4>

#define AQM_QUEUES PORTS
#define AQM_FIELDS bit<32> target_us; bit<32> update_us; bit<32> burst_us;
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/aqm/queue.p4"
#include "include/aqm/ecn.p4"

// A probability is a number of 2^-40: fine enough for the smallest step, 2^-11 of alpha for 1 us.
const int<64> PIE_ONE = 0x10000000000;
// alpha and beta, 1/8 and 5/4 a second (section 4.2), for each us.
const int<64> PIE_ALPHA = 137439;
const int<64> PIE_BETA = 1374390;
#define PIE_PACKET_BYTES 1024     // MEAN_PKTSIZE
#define PIE_FORGET_US 1000000     // an empty queue for so long: the congestion has gone away

register<bit<32>>(PORTS) delay_us;           // [port], what the last packet had waited (section 4.3: timestamps)
register<bit<64>>(PORTS) drop_probability;   // [port], drop_prob_

// One update, due each T_UPDATE (sections 4.2 and 4.4). Names are the RFC's; `used` of the burst allowance is what is gone of it.
control PieStep(inout int<64> p, inout bit<32> old, inout bit<32> used, in bit<32> current, in metadata_t meta) {
    int<64> step;

    apply {
        step = PIE_ALPHA * ((int<64>)(bit<64>)current - (int<64>)(bit<64>)meta.target_us)
             + PIE_BETA * ((int<64>)(bit<64>)current - (int<64>)(bit<64>)old);
        // Smaller steps where the probability is small; not more than 2 % where it is large (section 5.5).
        if (p < PIE_ONE / 1000000) { step = step >> 11; }
        else if (p < PIE_ONE / 100000) { step = step >> 9; }
        else if (p < PIE_ONE / 10000) { step = step >> 7; }
        else if (p < PIE_ONE / 1000) { step = step >> 5; }
        else if (p < PIE_ONE / 100) { step = step >> 3; }
        else if (p < PIE_ONE / 10) { step = step >> 1; }
        else if (step > PIE_ONE / 50) { step = PIE_ONE / 50; }
        p = p + step;
        if (current == 0 && old == 0) {
            p = p - (p >> 6);
        }
        if (p < 0) { p = 0; }
        if (p > PIE_ONE) { p = PIE_ONE; }
        used = used |+| meta.update_us;
        if (p == 0 && current < meta.target_us >> 1 && old < meta.target_us >> 1) {
            used = 0;
        }
        old = current;
    }
}

control Pie(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    // The RFC's names, [port].
    register<bit<48>>(PORTS) last_update;
    register<bit<32>>(PORTS) qdelay_old;
    register<bit<32>>(PORTS) burst_used;

    PieStep() pie_step;
    IsEct() is_ect;
    MarkCe() mark_ce;
    time_us_t now;
    time_us_t last;
    int<64> p;
    bit<64> probability;
    bit<32> current;
    bit<32> old;
    bit<32> used;
    bit<32> chance;

    // What is due is made up for, at most four updates a packet.
    #define PIE_DUE if (now >= last + (time_us_t)meta.update_us) { pie_step.apply(p, old, used, current, meta); last = last + (time_us_t)meta.update_us; }

    apply {
        now = standard_metadata.ingress_global_timestamp;
        last_update.read(last, (bit<32>)meta.port);
        qdelay_old.read(old, (bit<32>)meta.port);
        burst_used.read(used, (bit<32>)meta.port);
        drop_probability.read(probability, (bit<32>)meta.port);
        delay_us.read(current, (bit<32>)meta.port);
        waiting_packets.read(meta.queue_packets, meta.queue);
        waiting_bytes.read(meta.queue_bytes, meta.queue);
        if (meta.queue_packets == 0) {
            current = 0;
        }
        p = (int<64>)probability;
        if (meta.queue_packets == 0 && now >= last + PIE_FORGET_US) {
            p = 0;
            used = 0;
            old = 0;
            last = now;
        }
        PIE_DUE
        PIE_DUE
        PIE_DUE
        PIE_DUE
        if (now >= last + (time_us_t)meta.update_us) {
            last = now;
        }
        probability = (bit<64>)p;
        last_update.write((bit<32>)meta.port, last);
        qdelay_old.write((bit<32>)meta.port, old);
        burst_used.write((bit<32>)meta.port, used);
        drop_probability.write((bit<32>)meta.port, probability);

        // Section 4.1.
        if (used >= meta.burst_us && meta.queue_bytes > 2 * PIE_PACKET_BYTES
            && !(old < meta.target_us >> 1 && p < PIE_ONE / 5)) {
            random(chance, 32w0, 32w0xFFFFFFFF);
            if ((bit<64>)chance < probability >> 8) {
                is_ect.apply(hdr, meta);
                // Section 5.1: marks while the probability is at most 10 %.
                if (meta.ecn == 1 && p <= PIE_ONE / 10) {
                    mark_ce.apply(hdr, meta);
                } else {
                    meta.reason = REASON_AQM;
                }
            }
        }
    }
}

control PieIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    Pie() pie;
    Enqueue() enqueue;

    action set_pie(bit<32> target_us, bit<32> update_us, bit<32> burst_us, bit<1> ecn) {
        meta.managed = 1;
        meta.queue = (bit<32>)meta.port;
        meta.target_us = target_us;
        meta.update_us = update_us;
        meta.burst_us = burst_us;
        meta.ecn = ecn;
    }

    table pie_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_pie; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE && pie_port.apply().hit) {
            pie.apply(hdr, meta, standard_metadata);
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control PieEgress(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    Send() send;

    apply {
        if (meta.managed == 1) {
            dequeue.apply(meta, standard_metadata);
            if (meta.queue_drop == 0) {
                delay_us.write((bit<32>)meta.port, standard_metadata.deq_timedelta);
                send.apply(meta, standard_metadata);
            }
        }
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         PieIngress(),
         PieEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
