// SPDX-License-Identifier: Apache-2.0
// cebinae.p4: routes IP; at a managed port that is saturated the largest flows are held a little below what they had, so that the others
// can grow (Yu, Sonchack, Liu: Cebinae, SIGCOMM 2022). Two queues take turns; the scheduler `calendar` serves the one that is named first.
#include <core.p4>
#include <v1model.p4>

#include "include/sizes.p4"
#define AQM_QUEUES (2 * PORTS)     // index = port ++ queue
#define AQM_FIELDS bit<16> queue_id; bit<16> queue_turn; bit<32> flow; bit<1> taxed; bit<32> round_us; bit<32> inverse_us; bit<32> rounds; bit<32> capacity; bit<32> taxed_max; bit<32> tax_share; bit<32> flow_share; bit<32> saturated;
#define FLOW_SALT meta.port, 7w0,
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/aqm/flow_hash.p4"
#include "include/aqm/queue.p4"

// A round (dT) is the turn of a queue, a period so many rounds (P): at its end the flows are judged. Periods of a port have numbers, and what
// is of one period lies at its parity, beside that of the period before. Shares are numbers of 2^-24.
register<bit<32>>(PORTS) period;                       // [port], the one that is counted now
register<bit<32>>(2 * PORTS) period_bytes;             // [port ++ parity], all that left
register<bit<32>>(2 * PORTS) largest_bytes;            // [port ++ parity], of one flow
register<bit<64>>(2 * CEBINAE_CELLS) cell_flow;        // [cell ++ parity], whose cell it is: flow ++ period
register<bit<32>>(2 * CEBINAE_CELLS) cell_bytes;       // [cell ++ parity], that left
register<bit<32>>(PORTS) allowed_bytes;                // [port], of the taxed flows together, in a round, from the last turn on
counter(PORTS, CounterType.packets_and_bytes) saturated;   // [port], periods
counter(PORTS, CounterType.packets_and_bytes) taxed;       // [port], packets of taxed flows that came

#define NOBODY 0xFFFFFFFF          // so many bytes no flow has

// Ingress: the turns, and the filter of each packet.
control Cebinae(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    register<bit<48>>(PORTS) round_start;              // [port], us
    register<bit<32>>(PORTS) round_number;             // [port], of this period, from 0 on
    register<bit<1>>(PORTS) head_queue;                // [port]
    register<bit<32>>(PORTS) limit_bytes;              // [port], who had more in the last period is to be taxed
    register<bit<32>>(PORTS) bottleneck_bytes;         // [port], of them together, as far as they came in the round after it
    register<bit<64>>(2 * CEBINAE_CELLS) chosen_flow;  // [cell ++ parity], who is to be taxed for that period: flow ++ period
    register<bit<32>>(4 * PORTS) allowance;            // [port ++ taxed ++ queue], bytes
    register<bit<32>>(2 * PORTS) bucket;               // [port ++ taxed], bytes that came and were not taken out by a turn

    time_us_t start;
    bit<32> port;
    bit<32> now_period;
    bit<32> round;
    bit<1> head;
    bit<32> limit;
    bit<32> sum;
    bit<32> judged;
    bit<32> taxed_now;
    bit<32> bytes;
    bit<32> here;
    bit<32> next;
    bit<64> tag;
    bit<64> found;

    // The end of a period: was the line saturated, who had nearly as much as the largest flow?
    @hidden action end_period() {
        period_bytes.read(bytes, (bit<32>)(meta.port ++ now_period[0:0]));
        largest_bytes.read(here, (bit<32>)(meta.port ++ now_period[0:0]));
        limit = (bytes >= meta.saturated) ? (bit<32>)(((bit<64>)here * (bit<64>)meta.flow_share) >> 24) : NOBODY;
        sum = 0;
        round = 0;
        now_period = now_period + 1;
        period_bytes.write((bit<32>)(meta.port ++ now_period[0:0]), 0);
        largest_bytes.write((bit<32>)(meta.port ++ now_period[0:0]), 0);
    }

    // A turn takes one allowance of the queue that had it out of a bucket; the queue gets the next one, and waits behind the other.
    #define TURN(group, bytes_next) bucket.read(bytes, (bit<32>)(meta.port ++ group)); allowance.read(here, (bit<32>)(meta.port ++ group ++ head)); bucket.write((bit<32>)(meta.port ++ group), bytes |-| here); allowance.write((bit<32>)(meta.port ++ group ++ head), bytes_next);
    @hidden action turn() {
        start = start + (time_us_t)meta.round_us;
        allowed_bytes.read(next, port);
        TURN(1w1, next)
        TURN(1w0, meta.capacity - next)
        head = ~head;
    }

    // After a silence, and at the beginning: nobody is taxed.
    #define BEGIN(group, bytes_next) bucket.write((bit<32>)(meta.port ++ group), 0); allowance.write((bit<32>)(meta.port ++ group ++ 1w0), bytes_next); allowance.write((bit<32>)(meta.port ++ group ++ 1w1), bytes_next);
    @hidden action begin() {
        start = standard_metadata.ingress_global_timestamp;
        now_period = now_period + 1;
        end_period();
        limit = NOBODY;
        allowed_bytes.write(port, 0);
        BEGIN(1w1, 0)
        BEGIN(1w0, meta.capacity)
    }

    // Leaky bucket: what came of the group in this round, or would have come at its rate until now.
    @hidden action fill() {
        bit<64> elapsed = (bit<64>)(standard_metadata.ingress_global_timestamp - start) * (bit<64>)meta.inverse_us;
        allowance.read(here, (bit<32>)(meta.port ++ meta.taxed ++ head));
        allowance.read(next, (bit<32>)(meta.port ++ meta.taxed ++ ~head));
        bucket.read(bytes, (bit<32>)(meta.port ++ meta.taxed));
        bit<32> due = (bit<32>)(((bit<64>)here * elapsed) >> 32);
        bytes = ((bytes < due) ? due : bytes) |+| (bit<32>)meta.length;
        bucket.write((bit<32>)(meta.port ++ meta.taxed), bytes);
    }

    apply {
        port = (bit<32>)meta.port;
        round_start.read(start, port);
        period.read(now_period, port);
        round_number.read(round, port);
        head_queue.read(head, port);
        limit_bytes.read(limit, port);
        bottleneck_bytes.read(sum, port);
        if (now_period == 0 || standard_metadata.ingress_global_timestamp >= start + ((time_us_t)meta.round_us << 1)) {
            begin();
        } else if (standard_metadata.ingress_global_timestamp >= start + (time_us_t)meta.round_us) {
            if (round == 0) {      // who was largest is known, and what they had together
                next = (bit<32>)(((bit<64>)sum * (bit<64>)meta.tax_share) >> 24);
                if (next > meta.taxed_max) { next = meta.taxed_max; }
                allowed_bytes.write(port, next);
            }
            turn();
            round = round + 1;
            if (round >= meta.rounds) {
                end_period();
                if (limit != NOBODY) { saturated.count(port); }
            }
        }

        // In the first round of a period each flow that was large in the last one is noted, and added up.
        judged = now_period - 1;
        tag = meta.flow ++ judged;
        if (round == 0 && limit != NOBODY) {
            cell_flow.read(found, (bit<32>)(meta.flow[15:0] ++ judged[0:0]));
            cell_bytes.read(bytes, (bit<32>)(meta.flow[15:0] ++ judged[0:0]));
            if (found == tag && bytes > limit) {
                chosen_flow.read(found, (bit<32>)(meta.flow[15:0] ++ judged[0:0]));
                if (found != tag) {
                    chosen_flow.write((bit<32>)(meta.flow[15:0] ++ judged[0:0]), tag);
                    sum = sum + bytes;
                }
            }
        }
        taxed_now = (round == 0) ? now_period - 2 : judged;        // the period whose largest flows are taxed now
        chosen_flow.read(found, (bit<32>)(meta.flow[15:0] ++ taxed_now[0:0]));
        if (found == meta.flow ++ taxed_now) {
            meta.taxed = 1;
            taxed.count(port);
        }
        round_start.write(port, start);
        period.write(port, now_period);
        round_number.write(port, round);
        head_queue.write(port, head);
        limit_bytes.write(port, limit);
        bottleneck_bytes.write(port, sum);
        fill();
        meta.queue_turn = (bit<16>)head;
        if (bytes > here) {
            bytes = bytes - here;
            head = ~head;
            if (bytes > next) { meta.reason = REASON_AQM; }
        }
        meta.queue_id = (bit<16>)head;
        meta.queue = (bit<32>)(meta.port ++ head);
    }
}

// Egress: what left, of all and of each flow. A cell is the flow's that came to it first in the period.
control Count(in metadata_t meta) {
    bit<32> now_period;
    bit<32> bytes;
    bit<32> most;
    bit<64> found;

    @hidden action count_port() {
        period_bytes.read(bytes, (bit<32>)(meta.port ++ now_period[0:0]));
        period_bytes.write((bit<32>)(meta.port ++ now_period[0:0]), bytes + (bit<32>)meta.length);
    }

    apply {
        period.read(now_period, (bit<32>)meta.port);
        count_port();
        cell_flow.read(found, (bit<32>)(meta.flow[15:0] ++ now_period[0:0]));
        cell_bytes.read(bytes, (bit<32>)(meta.flow[15:0] ++ now_period[0:0]));
        if (found[31:0] != now_period) {
            found = meta.flow ++ now_period;
            bytes = 0;
            cell_flow.write((bit<32>)(meta.flow[15:0] ++ now_period[0:0]), found);
        }
        if (found[63:32] == meta.flow) {
            bytes = bytes + (bit<32>)meta.length;
            cell_bytes.write((bit<32>)(meta.flow[15:0] ++ now_period[0:0]), bytes);
            largest_bytes.read(most, (bit<32>)(meta.port ++ now_period[0:0]));
            if (bytes > most) { largest_bytes.write((bit<32>)(meta.port ++ now_period[0:0]), bytes); }
        }
    }
}

control CebinaeIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    FlowHash() flow_hash;
    Cebinae() cebinae;
    Enqueue() enqueue;
    bit<16> last_queue;

    action set_cebinae(bit<32> round_us, bit<32> inverse_us, bit<32> rounds, bit<32> capacity_bytes, bit<32> taxed_max_bytes, bit<32> tax_share,
                       bit<32> flow_share, bit<32> saturated_bytes, bit<16> queues) {
        meta.managed = 1;
        meta.round_us = round_us;
        meta.inverse_us = inverse_us;
        meta.rounds = rounds;
        meta.capacity = capacity_bytes;
        meta.taxed_max = taxed_max_bytes;
        meta.tax_share = tax_share;
        meta.flow_share = flow_share;
        meta.saturated = saturated_bytes;
        last_queue = queues - 1;
    }

    table cebinae_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_cebinae; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        last_queue = 0;
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE && cebinae_port.apply().hit) {
            // All that is not IP is one flow.
            if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) { flow_hash.apply(hdr, meta, 64w0x100000000); }
            cebinae.apply(meta, standard_metadata);
            if (meta.queue_id > last_queue) { meta.queue_id = last_queue; }
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control CebinaeEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    Count() count;
    Send() send;

    apply {
        if (meta.managed == 1) {
            dequeue.apply(meta, standard_metadata);
            // A packet that ended behind ingress is counted out, and has no other part in anything.
            if (meta.queue_drop == 0) {
                count.apply(meta);
                send.apply(meta, standard_metadata);
            }
        }
    }
}

V1Switch(LaneParser(), LaneVerifyChecksum(), CebinaeIngress(), CebinaeEgress(), LaneComputeChecksum(), LaneDeparser()) main;
