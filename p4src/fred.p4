// SPDX-License-Identifier: Apache-2.0
// fred.p4: routes IP; a managed port drops by the packets that each flow has waiting (Lin and Morris, FRED, SIGCOMM 1997): RED's average queue over
// the active flows is what a flow may have.
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

    Average() average_queue;
    Choose() choose;
    bit<32> own;
    bit<32> flows;
    bit<8> strike;
    bit<64> scaled;
    bit<64> p_b;
    bit<1> above;
    bit<1> robust;
    bit<1> chosen;

    // Read and written in one action: BMv2 runs ingress and egress side by side.
    @hidden action count_in() {
        flow_packets.read(own, meta.cell);
        flow_packets.write(meta.cell, own + 1);
        active_flows.read(flows, (bit<32>)meta.port);
        active_flows.write((bit<32>)meta.port, (own == 0) ? flows + 1 : flows);
    }

    apply {
        average_queue.apply(meta, standard_metadata);
        flow_packets.read(own, meta.cell);
        active_flows.read(flows, (bit<32>)meta.port);
        strikes.read(strike, meta.cell);
        if (own == 0) {
            strike = 0;
        }
        // qlen_i >= avgcq, without a division; avgcq is at least 1.
        scaled = ((bit<64>)own * (bit<64>)flows) << 16;
        above = (own >= 1 && scaled >= (bit<64>)meta.avg) ? 1w1 : 1w0;
        robust = (meta.avg >= meta.min_th && meta.avg < meta.max_th && above == 1 && own >= meta.min_q) ? 1w1 : 1w0;
        p_b = ((bit<64>)(meta.avg |-| meta.min_th) * (bit<64>)meta.slope) >> 8;

        // Flows that do not slow down: more than min_th packets, twice their share of a long queue, or above it again.
        if (((bit<64>)own << 16) >= (bit<64>)meta.min_th
            || (meta.avg >= meta.max_th && own > 2 && scaled > (bit<64>)meta.avg << 1)
            || (above == 1 && strike > 1)) {
            strike = strike |+| 1;
            meta.reason = REASON_AQM;
        } else if (meta.avg >= meta.max_th) {
            // Many flows: two packets each.
            meta.reason = (own >= 2) ? REASON_AQM : REASON_NONE;
        } else if (robust == 1 || meta.avg < meta.min_th) {
            choose.apply(meta, robust, p_b, chosen);
            meta.reason = (chosen == 1) ? REASON_AQM : REASON_NONE;
        }
        strikes.write(meta.cell, strike);
        if (meta.reason == REASON_NONE) {
            count_in();
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
                send.apply(meta, standard_metadata);
            }
        }
    }
}

V1Switch(LaneParser(), LaneVerifyChecksum(), FredIngress(), FredEgress(), LaneComputeChecksum(), LaneDeparser()) main;
