// SPDX-License-Identifier: Apache-2.0
// CoDel at dequeue (RFC 8289 section 5): codel.p4 has one queue a port, fq_codel.p4 many.
//
// The RFC's deque() may drop several packets in one call. Here each is a pass of egress of its own: the switch takes the next packet
// at the same instant when egress dropped one. What the RFC does between two packets of a call is in the state:
//
//   CODEL_IDLE     dropping_ is false
//   CODEL_DROPPING dropping_ is true
//   CODEL_PENDING  the same; the last packet was dropped (or marked): drop_next_ is still to be moved, if this one is to be dropped too
//   CODEL_ENTERED  the same; the last packet was the first one dropped: the one behind it passes, whatever its delay
#ifndef FAIRLANE_AQM_CODEL_P4
#define FAIRLANE_AQM_CODEL_P4

#include "queue.p4"
#include "ecn.p4"

#define CODEL_IDLE 0
#define CODEL_DROPPING 1
#define CODEL_PENDING 2
#define CODEL_ENTERED 3

control Codel(inout headers_t hdr,
              inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    // The RFC's names, [queue].
    register<bit<48>>(AQM_QUEUES) first_above_time;    // us, 0: below target
    register<bit<48>>(AQM_QUEUES) drop_next;           // us
    register<bit<32>>(AQM_QUEUES) drop_count;          // count_
    register<bit<32>>(AQM_QUEUES) last_count;
    register<bit<2>>(AQM_QUEUES)  drop_state;

    IsEct() is_ect;
    MarkCe() mark_ce;

    time_us_t now;
    time_us_t first_above;
    time_us_t next;
    time_us_t base;
    bit<32> count;
    bit<32> last;
    bit<2> state;
    bit<1> ok_to_drop;
    bit<1> chosen;
    bit<32> left;
    bit<64> root;

    // 1/sqrt(count) * 2^24 by Newton's rule; the first value is right within a factor of sqrt(2), then five steps.
    @hidden action improve() {
        bit<64> three_minus = (64w3 << 48) - (bit<64>)count * root * root;
        root = (root * (three_minus >> 24)) >> 25;
    }

    apply {
        now = standard_metadata.egress_global_timestamp;
        first_above_time.read(first_above, meta.queue);
        drop_next.read(next, meta.queue);
        drop_count.read(count, meta.queue);
        last_count.read(last, meta.queue);
        drop_state.read(state, meta.queue);
        is_ect.apply(hdr, meta);
        base = 0;
        ok_to_drop = 0;
        chosen = 0;

        // dodequeue()
        if (standard_metadata.deq_timedelta < meta.target_us || meta.queue_bytes <= meta.max_packet_bytes) {
            first_above = 0;
        } else if (first_above == 0) {
            first_above = now + (time_us_t)meta.interval_us;
        } else if (now >= first_above) {
            ok_to_drop = 1;
        }

        // deque()
        if (state == CODEL_ENTERED) {
            state = CODEL_DROPPING;
        } else if (ok_to_drop == 0) {
            state = CODEL_IDLE;
        } else if (state == CODEL_IDLE) {
            chosen = 1;
            if (count - last > 1 && now < next + ((time_us_t)meta.interval_us << 4)) {
                count = count - last;
            } else {
                count = 1;
            }
            last = count;
            base = now;
            state = (meta.ecn == 1) ? (bit<2>)CODEL_DROPPING : CODEL_ENTERED;
        } else {
            if (state == CODEL_PENDING) {
                base = next;
            }
            state = CODEL_DROPPING;
        }

        // control_law(): drop_next_ = base + interval / sqrt(count)
        if (base != 0) {
            root = 64w1 << 24;
            left = count;
            if (left >= 0x8000) { root = root >> 8; left = left >> 16; }
            if (left >= 0x80) { root = root >> 4; left = left >> 8; }
            if (left >= 8) { root = root >> 2; left = left >> 4; }
            if (left >= 2) { root = root >> 1; }
            improve();
            improve();
            improve();
            improve();
            improve();
            next = base + (time_us_t)(((bit<64>)meta.interval_us * root) >> 24);
        }

        if (state == CODEL_DROPPING && ok_to_drop == 1 && chosen == 0 && now >= next) {
            chosen = 1;
            count = count + 1;
            state = CODEL_PENDING;
        }

        first_above_time.write(meta.queue, first_above);
        drop_next.write(meta.queue, next);
        drop_count.write(meta.queue, count);
        last_count.write(meta.queue, last);
        drop_state.write(meta.queue, state);

        if (chosen == 1) {
            if (meta.ecn == 1) {
                mark_ce.apply(hdr, meta);
            } else {
                meta.reason = REASON_AQM;
                drops.count((bit<32>)(meta.port ++ meta.reason));
                mark_to_drop(standard_metadata);
            }
        }
    }
}

#endif
