// SPDX-License-Identifier: Apache-2.0
// dualpi2.p4: routes IP; at a managed port L4S packets have a queue beside the Classic one, and one PI controller marks the first and
// drops from the second so that flows of both have about the same rate (RFC 9332, Appendix A). The port's scheduler serves the queues.
#include <core.p4>
#include <v1model.p4>

#define AQM_QUEUES (2 * PORTS)     // index = port ++ l4s
#define AQM_FIELDS bit<16> queue_id; bit<32> queue_weight; bit<1> l4s; bit<32> target_us; bit<32> update_us; bit<64> alpha; bit<64> beta; bit<8> k; bit<32> min_th_us; bit<32> max_th_us; bit<64> ramp;
#include "include/aqm/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/arrive.p4"
#include "include/aqm/queue.p4"
#include "include/aqm/ecn.p4"

// A probability is a number of 2^-40; alpha and beta are such numbers for each us, ramp for each us of delay above minTh.
const int<64> PI2_ONE = 0x10000000000;
#define PI2_TH_LEN 1               // Th_len: no native mark while no more packets wait behind
#define REASON_OVERLOAD 13         // an L4S packet while p_CL is at its most

register<bit<64>>(PORTS) base_probability;                     // [port], p'
register<bit<32>>(AQM_QUEUES) delay_us;                        // [queue], what its last packet had waited; 0: none waits behind it
register<bit<64>>(PORTS) l_waited_us;                          // [port], the delay of all packets that left the L4S queue, together
register<bit<64>>(PORTS) c_waited_us;
counter(PORTS, CounterType.packets_and_bytes) l_sent;          // [port]
counter(PORTS, CounterType.packets_and_bytes) c_sent;
counter(PORTS, CounterType.packets_and_bytes) l_marked;

// dualpi2_update(), due each Tupdate: the first packet served after it makes it. What was missed is made up with the delay of now.
control Pi2Update(out int<64> p, in metadata_t meta, in standard_metadata_t standard_metadata) {
    register<bit<48>>(PORTS) last_update;
    register<bit<32>>(PORTS) prevq_us;

    time_us_t now;
    time_us_t last;
    bit<64> stored;
    bit<32> curq;
    bit<32> prevq;
    bit<32> waiting;
    int<64> integral;

    // 2^n updates at once that differ in nothing: what prevq adds was in the first.
    #define PI2_DUE(n) if (now >= last + ((time_us_t)meta.update_us << n)) { last = last + ((time_us_t)meta.update_us << n); p = p + (integral << n); }
    #define PI2_CLAMP if (p < 0) { p = 0; } if (p > PI2_ONE) { p = PI2_ONE; }

    apply {
        now = standard_metadata.egress_global_timestamp;
        last_update.read(last, (bit<32>)meta.port);
        prevq_us.read(prevq, (bit<32>)meta.port);
        base_probability.read(stored, (bit<32>)meta.port);
        p = (int<64>)stored;

        // curq = max(cq.time(), lq.time()); a queue in which nothing waits has none.
        delay_us.read(curq, meta.queue ^ 1);
        waiting_packets.read(waiting, meta.queue ^ 1);
        if (waiting == 0) { curq = 0; }
        if (standard_metadata.deq_timedelta > curq) { curq = standard_metadata.deq_timedelta; }
        delay_us.write(meta.queue, (meta.queue_packets != 0) ? standard_metadata.deq_timedelta : 0);

        if (now >= last + ((time_us_t)meta.update_us << 8)) {
            if (now > last + (time_us_t)curq) {
                last = now;     // nothing was sent for so long, and nothing waited: begins anew
                p = 0;
                prevq = curq;
            } else {
                last = now - ((time_us_t)meta.update_us << 8);      // a packet takes so long: no more updates are made up
            }
        }
        integral = (int<64>)meta.alpha * ((int<64>)(bit<64>)curq - (int<64>)(bit<64>)meta.target_us);
        if (integral > PI2_ONE) { integral = PI2_ONE; }
        if (integral < -PI2_ONE) { integral = -PI2_ONE; }
        if (now >= last + (time_us_t)meta.update_us) {
            last = last + (time_us_t)meta.update_us;
            p = p + integral + (int<64>)meta.beta * ((int<64>)(bit<64>)curq - (int<64>)(bit<64>)prevq);
            prevq = curq;
            PI2_CLAMP
        }
        PI2_DUE(7) PI2_DUE(6) PI2_DUE(5) PI2_DUE(4) PI2_DUE(3) PI2_DUE(2) PI2_DUE(1) PI2_DUE(0)
        PI2_CLAMP
        last_update.write((bit<32>)meta.port, last);
        prevq_us.write((bit<32>)meta.port, prevq);
        base_probability.write((bit<32>)meta.port, (bit<64>)p);
    }
}

// dualpi2_dequeue() for the packet that the scheduler chose, with what Appendix A adds for overload: p_CL at p_Lmax, 1, is p_C at p_Cmax,
// 1/k^2. A packet that is dropped is a pass of egress of its own: the switch takes the next one at the same instant.
control DualPi2(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<64>>(AQM_QUEUES) recur_count;                 // [queue], q.count

    Pi2Update() pi2_update;
    IsEct() is_ect;
    MarkCe() mark_ce;
    int<64> p;
    bit<64> likelihood;
    bit<64> p_native;
    bit<64> count;
    bit<1> overload;
    bit<1> chosen;

    apply {
        pi2_update.apply(p, meta, standard_metadata);
        is_ect.apply(hdr, meta);
        likelihood = (bit<64>)p * (bit<64>)meta.k;             // p_CL
        overload = (likelihood >= (bit<64>)PI2_ONE) ? 1w1 : 1w0;
        if (meta.l4s == 0 || overload == 1) {
            likelihood = ((bit<64>)(p >> 9) * (bit<64>)(p >> 9)) >> 22;     // p_C = p'^2
        } else if (meta.queue_packets > PI2_TH_LEN && standard_metadata.deq_timedelta > meta.min_th_us) {
            p_native = (bit<64>)PI2_ONE;                       // laqm()
            if (standard_metadata.deq_timedelta < meta.max_th_us) {
                p_native = (bit<64>)(standard_metadata.deq_timedelta - meta.min_th_us) * meta.ramp;
            }
            if (p_native > likelihood) { likelihood = p_native; }
        }

        // recur(): no chance; its answers add up to the likelihood.
        recur_count.read(count, meta.queue);
        count = count + likelihood;
        chosen = 0;
        if (count > (bit<64>)PI2_ONE) {
            count = count - (bit<64>)PI2_ONE;
            chosen = 1;
        }
        recur_count.write(meta.queue, count);

        if (chosen == 1 && (meta.ecn == 0 || overload == 1)) {
            meta.reason = REASON_AQM;
            if (meta.l4s == 1) { meta.reason = REASON_OVERLOAD; }
            drops.count((bit<32>)(meta.port ++ meta.reason));
            mark_to_drop(standard_metadata);
        } else if (chosen == 1 || (meta.l4s == 1 && overload == 1)) {
            mark_ce.apply(hdr, meta);
            if (meta.l4s == 1) { l_marked.count((bit<32>)meta.port); }
        }
    }
}

control DualPi2Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Arrive() arrive;
    Enqueue() enqueue;

    action set_dualpi2(bit<32> target_us, bit<32> update_us, bit<64> alpha, bit<64> beta, bit<8> k, bit<32> min_th_us, bit<32> max_th_us,
                       bit<64> ramp, bit<16> l4s_queue, bit<32> l4s_weight) {
        meta.managed = 1;
        meta.ecn = 1;
        meta.queue_id = l4s_queue;
        meta.queue_weight = l4s_weight;
        meta.target_us = target_us;
        meta.update_us = update_us;
        meta.alpha = alpha;
        meta.beta = beta;
        meta.k = k;
        meta.min_th_us = min_th_us;
        meta.max_th_us = max_th_us;
        meta.ramp = ramp;
    }

    table dualpi2_port {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_dualpi2; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        arrive.apply(hdr, meta, standard_metadata);
        if (meta.reason == REASON_NONE && dualpi2_port.apply().hit) {
            // dualpi2_enqueue(): ECT(1) or CE.
            if ((hdr.ipv4.isValid() && hdr.ipv4.ecn[0:0] == 1) || (hdr.ipv6.isValid() && hdr.ipv6.ecn[0:0] == 1)) {
                meta.l4s = 1;
            } else {
                meta.queue_id = 0;
                meta.queue_weight = 1;
            }
            meta.queue = (bit<32>)(meta.port ++ meta.l4s);
        }
        enqueue.apply(meta, standard_metadata);
    }
}

control DualPi2Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    DualPi2() dualpi2;
    Send() send;
    bit<64> us;

    apply {
        if (meta.managed == 1) {
            dequeue.apply(meta, standard_metadata);
            // A packet that ended behind ingress is counted out, and has no other part in anything.
            if (meta.queue_drop == 0) {
                dualpi2.apply(hdr, meta, standard_metadata);
                if (meta.reason == REASON_NONE) {
                    send.apply(meta, standard_metadata);
                    if (meta.l4s == 1) {
                        l_sent.count((bit<32>)meta.port);
                        l_waited_us.read(us, (bit<32>)meta.port);
                        l_waited_us.write((bit<32>)meta.port, us + (bit<64>)standard_metadata.deq_timedelta);
                    } else {
                        c_sent.count((bit<32>)meta.port);
                        c_waited_us.read(us, (bit<32>)meta.port);
                        c_waited_us.write((bit<32>)meta.port, us + (bit<64>)standard_metadata.deq_timedelta);
                    }
                }
            }
        }
    }
}

V1Switch(LaneParser(), LaneVerifyChecksum(), DualPi2Ingress(), DualPi2Egress(), LaneComputeChecksum(), LaneDeparser()) main;
