// SPDX-License-Identifier: Apache-2.0
// fred.p4: routes IP; a managed port drops by the packets that each flow has waiting (Lin and Morris, FRED, SIGCOMM 1997): RED's average queue over
// the active flows is what a flow may have. Packets that are taken in, and those that leave, make the average.
#include <core.p4>
#include <v1model.p4>

#include "include/sizes.p4"
#define AQM_QUEUES PORTS
// Thresholds and the average are packets * 2^16, slopes (probability a packet) * 2^24.
#define AQM_FIELDS bit<32> flow; bit<32> cell; bit<32> min_th; bit<32> max_th; bit<32> slope; bit<32> min_q; bit<8> weight; bit<32> decay; bit<32> avg;
#define FLOW_SALT
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/aqm/flow_hash.p4"
#include "include/aqm/queue.p4"
#include "include/aqm/average.p4"

register<bit<32>>(FQ_STATES) flow_packets;           // [port ++ flow], qlen_i: packets that wait
register<bit<32>>(PORTS) active_flows;               // [port], Nactive: flows with packets that wait

control Fred(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    register<bit<8>>(FQ_STATES) strikes;             // [port ++ flow]; of a flow that has packets waiting
    register<bit<32>>(PORTS) since_drop;             // [port], count + 1: packets since the last one that was dropped by chance; 0: below min_th

    Average() average_queue;
    Sample() sample;
    bit<32> own;
    bit<32> flows;
    bit<32> count;
    bit<32> r;
    bit<8> strike;
    bit<64> scaled;
    bit<64> p_b;
    bit<64> spent;
    bit<1> above;

    // Read and written in one action: BMv2 runs ingress and egress side by side.
    @hidden action count_in() {
        flow_packets.read(own, meta.cell);
        flow_packets.write(meta.cell, own + 1);
        active_flows.read(flows, (bit<32>)meta.port);
        active_flows.write((bit<32>)meta.port, (own == 0) ? flows + 1 : flows);
    }

    apply {
        waiting_packets.read(meta.queue_packets, meta.queue);
        if (meta.queue_packets == 0) {
            average_queue.apply(meta, standard_metadata);
        } else {
            average.read(meta.avg, (bit<32>)meta.port);
        }
        flow_packets.read(own, meta.cell);
        active_flows.read(flows, (bit<32>)meta.port);
        strikes.read(strike, meta.cell);
        since_drop.read(count, (bit<32>)meta.port);
        if (own == 0) {
            strike = 0;
        }
        // qlen_i >= avgcq, without a division; avgcq is at least 1.
        scaled = ((bit<64>)own * (bit<64>)flows) << 16;
        above = (own >= 1 && scaled >= (bit<64>)meta.avg) ? 1w1 : 1w0;

        // Flows that do not slow down: maxq packets, two of a long queue (many flows), or above their share again.
        if (((bit<64>)own << 16) >= (bit<64>)meta.min_th
            || (meta.avg >= meta.max_th && own >= 2)
            || (above == 1 && strike > 1)) {
            strike = strike |+| 1;
            meta.reason = REASON_AQM;
        } else if (meta.avg < meta.min_th) {
            count = 0;
        } else if (meta.avg < meta.max_th) {
            count = count |+| 1;
            // Robust flows only: r < p_a = p_b / (1 - count * p_b), probabilities * 2^32.
            if (above == 1 && own >= meta.min_q) {
                p_b = ((bit<64>)(meta.avg - meta.min_th) * (bit<64>)meta.slope) >> 8;
                spent = (bit<64>)(count - 1) * p_b;
                random(r, 32w0, 32w0xFFFFFFFF);
                if (spent + p_b >= 1 << 32 || (bit<64>)r * ((1 << 32) - spent) < p_b << 32) {
                    count = 1;
                    meta.reason = REASON_AQM;
                }
            }
        }
        strikes.write(meta.cell, strike);
        since_drop.write((bit<32>)meta.port, count);
        if (meta.reason == REASON_NONE) {
            count_in();
            if (meta.queue_packets != 0) {
                sample.apply(meta);
            }
        }
    }
}

control FredIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    FlowHash() flow_hash;
    Fred() fred;
    Enqueue() enqueue;

    action set_fred(bit<32> min_th, bit<32> max_th, bit<32> slope, bit<32> min_q, bit<8> weight, bit<32> decay) {
        meta.managed = 1;
        meta.queue = (bit<32>)meta.port;
        meta.min_th = min_th;
        meta.max_th = max_th;
        meta.slope = slope;
        meta.min_q = min_q;
        meta.weight = weight;
        meta.decay = decay;
    }

    table fred_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_fred; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE && fred_port.apply().hit) {
            flow_hash.apply(hdr, meta, 64w0x100000000);
            meta.cell = ((bit<32>)meta.port << FQ_QUEUE_BITS) | (bit<32>)meta.flow[9:0];
            fred.apply(meta, standard_metadata);
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control FredEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    Sample() sample;
    Send() send;
    NoteIdle() note_idle;

    @hidden action leave() {
        bit<32> own;
        bit<32> flows;
        flow_packets.read(own, meta.cell);
        own = own |-| 1;
        flow_packets.write(meta.cell, own);
        active_flows.read(flows, (bit<32>)meta.port);
        active_flows.write((bit<32>)meta.port, (own == 0) ? flows |-| 1 : flows);
    }

    apply {
        if (meta.managed == 1) {
            leave();
            dequeue.apply(meta, standard_metadata);
            note_idle.apply(meta, standard_metadata);
            if (meta.queue_drop == 0) {
                sample.apply(meta);
                send.apply(meta, standard_metadata);
            }
        }
    }
}

V1Switch(LaneParser(), LaneVerifyChecksum(), FredIngress(), FredEgress(), LaneComputeChecksum(), LaneDeparser()) main;
