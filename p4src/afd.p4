// SPDX-License-Identifier: Apache-2.0
// afd.p4: routes IP; a managed port drops a flow's arriving packets with the chance 1 - M_fair/M_i (Pan et al., AFD, CCR 2003).
// One queue: rates are those of a sample of recent arrivals.
#include <core.p4>
#include <v1model.p4>

#include "include/sizes.p4"
#define AQM_QUEUES PORTS
#define AQM_FIELDS bit<32> flow; bit<32> target_bytes; bit<32> update_us; bit<32> sample; bit<32> alpha; bit<32> beta; bit<32> ceiling_bytes;
#define FLOW_SALT
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/aqm/flow_hash.p4"
#include "include/aqm/queue.p4"

#define AFD_FORGET_US 1000000     // an empty queue for so long: the congestion has gone away

register<bit<64>>(PORTS) fair_share;                 // [port], M_fair, bytes * 2^10

control Afd(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    register<bit<32>>(FQ_STATES) shadow;             // [port ++ place], the shadow buffer: flow(10) ++ unused(6) ++ bytes(16) of a packet
    register<bit<32>>(FQ_STATES) flow_bytes;         // [port ++ flow], M_i: the flow's bytes in the shadow buffer
    register<bit<48>>(PORTS) last_update;            // [port], us
    register<bit<32>>(PORTS) last_bytes;             // [port], Q_old

    time_us_t now;
    time_us_t last;
    bit<32> first;
    bit<32> cell;
    bit<32> bytes;
    bit<32> old;
    bit<64> share;
    bit<64> own;
    bit<32> draw;
    int<64> fair;
    int<64> ceiling;

    // One of `sample` arrivals takes a place drawn at random.
    @hidden action remember() {
        bit<9> place;
        bit<32> gone;
        random(place, 9w0, 9w511);
        shadow.read(gone, first | (bit<32>)place);
        shadow.write(first | (bit<32>)place, meta.flow[9:0] ++ 6w0 ++ meta.length);
        flow_bytes.read(bytes, first | (bit<32>)gone[31:22]);
        flow_bytes.write(first | (bit<32>)gone[31:22], bytes - (bit<32>)gone[15:0]);
        flow_bytes.read(bytes, cell);
        flow_bytes.write(cell, bytes + (bit<32>)meta.length);
    }

    // M_fair + alpha (Q_old - Q_target) - beta (Q - Q_target), from 0 to what one flow alone can have.
    @hidden action update() {
        last_bytes.read(old, (bit<32>)meta.port);
        last_bytes.write((bit<32>)meta.port, meta.queue_bytes);
        last_update.write((bit<32>)meta.port, now);
        fair = (int<64>)share + (int<64>)(bit<64>)meta.alpha * ((int<64>)(bit<64>)old - (int<64>)(bit<64>)meta.target_bytes)
             - (int<64>)(bit<64>)meta.beta * ((int<64>)(bit<64>)meta.queue_bytes - (int<64>)(bit<64>)meta.target_bytes);
    }

    apply {
        now = standard_metadata.ingress_global_timestamp;
        first = (bit<32>)meta.port << FQ_QUEUE_BITS;
        cell = first | (bit<32>)meta.flow[9:0];
        random(draw, 32w0, 32w0xFFFFFFFF);
        if ((bit<64>)draw * (bit<64>)meta.sample <= 0xFFFFFFFF) {
            remember();
        }

        waiting_bytes.read(meta.queue_bytes, meta.queue);
        fair_share.read(share, (bit<32>)meta.port);
        last_update.read(last, (bit<32>)meta.port);
        if (last == 0 || now - last >= (time_us_t)meta.update_us) {
            update();
            ceiling = (int<64>)((bit<64>)meta.ceiling_bytes << 10);
            if (fair < 0) { fair = 0; }
            if (fair > ceiling || last == 0 || (meta.queue_bytes == 0 && now - last >= AFD_FORGET_US)) { fair = ceiling; }
            share = (bit<64>)fair;
            fair_share.write((bit<32>)meta.port, share);
        }

        flow_bytes.read(bytes, cell);
        own = (bit<64>)bytes << 10;
        random(draw, 32w0, 32w0xFFFF);
        if ((bit<64>)draw * own < (own |-| share) << 16) {
            meta.reason = REASON_AQM;
        }
    }
}

control AfdIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    FlowHash() flow_hash;
    Afd() afd;
    Enqueue() enqueue;

    action set_afd(bit<32> target_bytes, bit<32> update_us, bit<32> sample, bit<32> alpha, bit<32> beta, bit<32> ceiling_bytes) {
        meta.managed = 1;
        meta.queue = (bit<32>)meta.port;
        meta.target_bytes = target_bytes;
        meta.update_us = update_us;
        meta.sample = sample;
        meta.alpha = alpha;
        meta.beta = beta;
        meta.ceiling_bytes = ceiling_bytes;
    }

    table afd_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_afd; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE && afd_port.apply().hit) {
            flow_hash.apply(hdr, meta, 64w0x100000000);
            afd.apply(meta, standard_metadata);
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control AfdEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    Send() send;

    apply {
        if (meta.managed == 1) {
            dequeue.apply(meta, standard_metadata);
            if (meta.queue_drop == 0) {
                send.apply(meta, standard_metadata);
            }
        }
    }
}

V1Switch(LaneParser(), LaneVerifyChecksum(), AfdIngress(), AfdEgress(), LaneComputeChecksum(), LaneDeparser()) main;
