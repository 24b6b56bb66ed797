// SPDX-License-Identifier: Apache-2.0
// cebinae.p4: routes IP; at a managed port that is saturated the largest flows are held a little below what they had, so that the others
// can grow (Yu, Sonchack, Liu: Cebinae, SIGCOMM 2022). Two queues take turns; the scheduler `calendar` serves the one that is named first.
#include <core.p4>
#include <v1model.p4>

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
// BMv2 runs ingress and egress side by side: ingress alone writes the turns, egress alone what left, and says of which period that is.
register<bit<32>>(PORTS) period;                       // [port], the one that is counted now
register<bit<64>>(2 * PORTS) period_bytes;             // [port ++ parity], all that left: bytes ++ period
register<bit<32>>(2 * PORTS) largest_bytes;            // [port ++ parity], of one flow
register<bit<64>>(2 * CEBINAE_CELLS) cell_flow;        // [cell ++ parity], whose cell it is: flow ++ period
register<bit<32>>(2 * CEBINAE_CELLS) cell_bytes;       // [cell ++ parity], that left
register<bit<32>>(PORTS) allowed_bytes;                // [port], of the taxed flows together, in the round after this one
counter(PORTS, CounterType.packets_and_bytes) saturated;   // [port], periods
counter(PORTS, CounterType.packets_and_bytes) taxed;       // [port], packets of taxed flows that came

// Ingress: the turns, and the filter of each packet.
control Cebinae(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    register<time_us_t>(PORTS) round_start;            // [port]
    register<bit<32>>(PORTS) round_number;             // [port], of this period, from 0 on
    register<bit<1>>(PORTS) head_queue;                // [port]
    register<bit<32>>(PORTS) head_bytes;               // [port], as allowed_bytes, in this round
    register<bit<32>>(PORTS) bottleneck_bytes;         // [port], in the last period, of who is to be taxed, as far as they came since
    register<bit<64>>(2 * CEBINAE_CELLS) chosen_flow;  // [cell ++ parity], who is to be taxed for that period: flow ++ period
    register<bit<32>>(2 * PORTS) bucket;               // [port ++ taxed], bytes that came and were not taken out by a turn

    bit<32> port = (bit<32>)meta.port;
    time_us_t start;
    bit<32> now_period;
    bit<32> round;
    bit<1> head;
    bit<32> here;                      // that may go into the head queue in its turn: of the taxed flows, then of the packet's group
    bit<32> next;                      // into the other one
    bit<32> sum;
    bit<32> bytes;
    bit<32> largest;
    bit<64> left;
    bit<64> owner;
    bit<64> chosen;

    apply {
        round_start.read(start, port);
        period.read(now_period, port);
        round_number.read(round, port);
        head_queue.read(head, port);
        head_bytes.read(here, port);
        allowed_bytes.read(next, port);
        bottleneck_bytes.read(sum, port);
        time_us_t elapsed = standard_metadata.ingress_global_timestamp - start;
        if (now_period == 0 || elapsed >= (time_us_t)meta.round_us << 1) {
            // At the beginning, and after a silence: nobody is taxed, for a period is left out in which nobody had anything.
            elapsed = 0;
            now_period = now_period + 1;
            round = meta.rounds;
            here = 0;
            next = 0;
            bucket.write((bit<32>)(meta.port ++ 1w0), 0);
            bucket.write((bit<32>)(meta.port ++ 1w1), 0);
        } else if (elapsed >= (time_us_t)meta.round_us) {
            // A turn takes the old head's allowances out of the buckets; that queue gets the newest ones, and waits behind the other.
            elapsed = elapsed - (time_us_t)meta.round_us;
            bucket.read(bytes, (bit<32>)(meta.port ++ 1w1));
            bucket.write((bit<32>)(meta.port ++ 1w1), bytes |-| here);
            bucket.read(bytes, (bit<32>)(meta.port ++ 1w0));
            bucket.write((bit<32>)(meta.port ++ 1w0), bytes |-| (meta.capacity |-| here));
            head = ~head;
            here = next;
            bit<32> newest = (bit<32>)(((bit<64>)sum * (bit<64>)meta.tax_share) >> 24);
            if (round == 0) { next = (newest < meta.taxed_max) ? newest : meta.taxed_max; }
            round = round + 1;
            period_bytes.read(left, (bit<32>)(meta.port ++ now_period[0:0]));
            if (left[31:0] != now_period) { left = 0; }
            if (round >= meta.rounds && left[63:32] >= meta.saturated) { saturated.count(port); }
        }
        if (round >= meta.rounds) {
            now_period = now_period + 1;
            round = 0;
            sum = 0;
        }

        // In the first round the flows that were near the largest in the last period, if that was saturated, are noted, to be taxed after it.
        bit<32> judged = now_period - 1;
        if (round == 0) {
            bit<32> cell = (bit<32>)(meta.flow[15:0] ++ judged[0:0]);
            period_bytes.read(left, (bit<32>)(meta.port ++ judged[0:0]));
            if (left[31:0] != judged) { left = 0; }
            largest_bytes.read(largest, (bit<32>)(meta.port ++ judged[0:0]));
            cell_flow.read(owner, cell);
            cell_bytes.read(bytes, cell);
            chosen_flow.read(chosen, cell);
            if (left[63:32] >= meta.saturated && owner == meta.flow ++ judged && (bit<64>)bytes << 24 > (bit<64>)largest * (bit<64>)meta.flow_share) {
                if (chosen != owner) { sum = sum + bytes; }        // added up once
                chosen_flow.write(cell, owner);
            }
            judged = judged - 1;       // until then it is those of the period before
        }
        chosen_flow.read(owner, (bit<32>)(meta.flow[15:0] ++ judged[0:0]));
        if (owner == meta.flow ++ judged) { meta.taxed = 1; taxed.count(port); }
        round_start.write(port, standard_metadata.ingress_global_timestamp - elapsed);
        period.write(port, now_period);
        round_number.write(port, round);
        head_queue.write(port, head);
        head_bytes.write(port, here);
        allowed_bytes.write(port, next);
        bottleneck_bytes.write(port, sum);

        // Leaky bucket: what came of the group in this round, or would have come at its rate until now.
        here = (meta.taxed == 1) ? here : meta.capacity |-| here;
        next = (meta.taxed == 1) ? next : meta.capacity |-| next;
        bit<32> due = (bit<32>)(((bit<64>)here * ((bit<64>)elapsed * (bit<64>)meta.inverse_us)) >> 32);
        bucket.read(bytes, (bit<32>)(meta.port ++ meta.taxed));
        bytes = ((bytes < due) ? due : bytes) |+| (bit<32>)meta.length;
        bucket.write((bit<32>)(meta.port ++ meta.taxed), bytes);
        meta.queue_turn = (bit<16>)head;
        if (bytes > here) { head = ~head; }
        if (bytes > here |+| next) { meta.reason = REASON_AQM; }
        meta.queue_id = meta.queue_id & (bit<16>)head;     // a port may have one queue only
        meta.queue = (bit<32>)(meta.port ++ head);
    }
}

control CebinaeIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    FlowHash() flow_hash;
    Cebinae() cebinae;
    Enqueue() enqueue;

    action set_cebinae(bit<32> round_us, bit<32> inverse_us, bit<32> rounds, bit<32> capacity_bytes, bit<32> taxed_max_bytes, bit<32> tax_share,
                       bit<32> flow_share, bit<32> saturated_bytes, bit<16> queues) {
        meta.managed = 1;
        meta.queue_id = queues - 1;        // the last one
        meta.round_us = round_us;
        meta.inverse_us = inverse_us;
        meta.rounds = rounds;
        meta.capacity = capacity_bytes;
        meta.taxed_max = taxed_max_bytes;
        meta.tax_share = tax_share;
        meta.flow_share = flow_share;
        meta.saturated = saturated_bytes;
    }

    table cebinae_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_cebinae; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE && cebinae_port.apply().hit) {
            flow_hash.apply(hdr, meta, 64w0x100000000);
            cebinae.apply(meta, standard_metadata);
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control CebinaeEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    Send() send;
    bit<32> now_period;
    bit<32> bytes;
    bit<32> largest;
    bit<64> left;
    bit<64> owner;

    apply {
        if (meta.managed == 1) {
            dequeue.apply(meta, standard_metadata);
            // A packet that ended behind ingress is counted out, and has no other part in anything.
            if (meta.queue_drop == 0) {
                send.apply(meta, standard_metadata);
                // What left, of all and of each flow. A cell is the flow's that came to it first in the period.
                period.read(now_period, (bit<32>)meta.port);
                bit<32> port = (bit<32>)(meta.port ++ now_period[0:0]);
                bit<32> cell = (bit<32>)(meta.flow[15:0] ++ now_period[0:0]);
                period_bytes.read(left, port);
                largest_bytes.read(largest, port);
                if (left[31:0] != now_period) {
                    left = (bit<64>)now_period;
                    largest = 0;
                }
                period_bytes.write(port, (left[63:32] + (bit<32>)meta.length) ++ now_period);
                cell_flow.read(owner, cell);
                cell_bytes.read(bytes, cell);
                if (owner[31:0] != now_period) {
                    owner = meta.flow ++ now_period;
                    bytes = 0;
                    cell_flow.write(cell, owner);
                }
                if (owner[63:32] == meta.flow) {
                    bytes = bytes + (bit<32>)meta.length;
                    cell_bytes.write(cell, bytes);
                    if (bytes > largest) { largest = bytes; }
                }
                largest_bytes.write(port, largest);
            }
        }
    }
}

V1Switch(LaneParser(), LaneVerifyChecksum(), CebinaeIngress(), CebinaeEgress(), LaneComputeChecksum(), LaneDeparser()) main;
