// SPDX-License-Identifier: GPL-2.0-only OR MIT
// TCP Prague (draft-briscoe-iccrg-prague-congestion-control-04): DCTCP for the Internet, with rates that do not go by the RTT.
//
//   RTT_virt = max(SRTT, 25 ms): what DCTCP does once a round trip is done once in it
//   alpha += g (F - alpha),  F = packets acknowledged with ECE / all of them, g = 1/16
//   an ACK with ECE:          cwnd -= cwnd alpha / 2
//   each packet without one:  cwnd += (SRTT / RTT_virt)^2 / cwnd, right after a mark too; not in a recovery
//   a loss:                   half the window
//   packets are paced at cwnd / SRTT, at twice of it in the first half of slow start
//   receiver: DCTCP's echo
//
// NOT the draft in: no accurate ECN: marks are counted as DCTCP's receiver tells of them, by ECE; no fall-back for a Classic ECN
// queue; a loss takes half of what a mark in the same round trip left; rates are independent of the RTT from the end of slow start
// on, not some round trips later; no window below 2 packets. alpha is 1 until the first mark, which halves, as DCTCP's.
// Data is ECT(1) by the simulator's `ect1`: no kernel lets BPF choose that, so there Prague would be in the Classic queue.
#ifndef FAIRLANE_CC_PRAGUE_H
#define FAIRLANE_CC_PRAGUE_H

#include "dctcp.h"

#define PRAGUE_SHIFT 20 // of fractions
#define PRAGUE_ONE (1u << PRAGUE_SHIFT)
#define PRAGUE_G_SHIFT 4     // g = 1/16
#define PRAGUE_RTT_US 25000u // the least RTT_virt
#define PRAGUE_WINDOW_MIN (2ull << PRAGUE_SHIFT)

struct prague {
	struct dctcp receiver;
	cc_u64 window;          // packets, 2^-20
	cc_u64 alpha_ns;        // when alpha was updated
	cc_u64 reduced_ns;      // when a mark reduced the window last
	cc_u32 cwnd;            // packets, as we wrote it last
	cc_u32 alpha;           // 2^-20
	cc_u32 reduced_end;     // cc_tcp.snd_nxt then
	cc_u32 round_end;       // cc_tcp.snd_nxt when alpha was updated
	cc_u32 round_delivered; // cc_tcp.delivered then
	cc_u32 round_ce;        // cc_tcp.delivered_ce then
	cc_u32 delivered;       // the same at the last ACK
	cc_u32 delivered_ce;
};

CC_INLINE void prague_init(struct prague *st, const struct cc_tcp *tcp) {
	*st = (struct prague){.cwnd = tcp->snd_cwnd, .alpha = PRAGUE_ONE, .reduced_end = tcp->snd_una, .round_end = tcp->snd_nxt};
	st->window = (cc_u64)tcp->snd_cwnd << PRAGUE_SHIFT;
	st->delivered = st->round_delivered = tcp->delivered;
	st->delivered_ce = st->round_ce = tcp->delivered_ce;
	dctcp_init(&st->receiver, tcp);
}

// Whether RTT_virt is over: a round trip that began when `end` was the next byte, at `begin_ns`, and 25 ms.
CC_INLINE int prague_rtt_virt_is_over(const struct cc_tcp *tcp, cc_u32 end, cc_u64 begin_ns) {
	return !cc_seq_before(tcp->snd_una, end) && tcp->now_ns - begin_ns >= PRAGUE_RTT_US * 1000ull;
}

// What a timeout, an undo or slow start made of cwnd is our window from now on.
CC_INLINE void prague_take_window(struct prague *st, const struct cc_tcp *tcp) {
	if (st->cwnd != tcp->snd_cwnd)
		st->window = (cc_u64)tcp->snd_cwnd << PRAGUE_SHIFT;
	st->cwnd = tcp->snd_cwnd;
}

CC_INLINE void prague_set_window(struct prague *st, struct cc_tcp *tcp, cc_u64 window) {
	st->window = window < PRAGUE_WINDOW_MIN ? PRAGUE_WINDOW_MIN : window;
	tcp->snd_cwnd = cc_min((cc_u32)(st->window >> PRAGUE_SHIFT), tcp->snd_cwnd_clamp);
	st->cwnd = tcp->snd_cwnd;
}

CC_INLINE void prague_update_alpha(struct prague *st, const struct cc_tcp *tcp) {
	cc_u32 delivered = tcp->delivered - st->round_delivered, marked = tcp->delivered_ce - st->round_ce, share;

	if (!prague_rtt_virt_is_over(tcp, st->round_end, st->alpha_ns))
		return;
	if (tcp->delivered_ce && delivered) {
		share = (cc_u32)((cc_u64)PRAGUE_ONE * cc_min(marked, delivered) / delivered);
		st->alpha = st->alpha - (st->alpha >> PRAGUE_G_SHIFT) + (share >> PRAGUE_G_SHIFT);
	}
	st->alpha_ns = tcp->now_ns;
	st->round_end = tcp->snd_nxt;
	st->round_delivered = tcp->delivered;
	st->round_ce = tcp->delivered_ce;
}

// What `packets` without a mark add to the window, 2^-20 packets.
CC_INLINE cc_u64 prague_increase(const struct prague *st, const struct cc_tcp *tcp, cc_u32 packets) {
	cc_u64 ratio = ((cc_u64)cc_min(tcp->srtt_us, PRAGUE_RTT_US) << PRAGUE_SHIFT) / PRAGUE_RTT_US;

	return ((packets * (ratio * ratio >> PRAGUE_SHIFT)) << PRAGUE_SHIFT) / st->window;
}

CC_INLINE void prague_pace(struct cc_tcp *tcp) {
	cc_u64 window_bytes = (cc_u64)cc_max(tcp->snd_cwnd, tcp->in_flight) * tcp->mss_bytes;

	if (tcp->srtt_us)
		tcp->pacing_rate = window_bytes * 1000000 / tcp->srtt_us * (tcp->snd_cwnd < tcp->snd_ssthresh / 2 ? 2 : 1);
}

// A mark.
CC_INLINE void prague_reduce(struct prague *st, struct cc_tcp *tcp) {
	if (!prague_rtt_virt_is_over(tcp, st->reduced_end, st->reduced_ns))
		return;
	st->reduced_ns = tcp->now_ns;
	st->reduced_end = tcp->snd_nxt;
	prague_set_window(st, tcp, st->window - (st->window * st->alpha >> (PRAGUE_SHIFT + 1)));
	tcp->snd_ssthresh = tcp->snd_cwnd;
}

// Every ACK.
CC_INLINE void prague_control(struct prague *st, struct cc_tcp *tcp) {
	cc_u32 acked = tcp->delivered - st->delivered, marked = tcp->delivered_ce - st->delivered_ce;

	st->delivered = tcp->delivered;
	st->delivered_ce = tcp->delivered_ce;
	prague_update_alpha(st, tcp);
	prague_take_window(st, tcp);
	if (tcp->ca_state == CC_RECOVERY) {
		tcp->snd_cwnd = reno_recovery_window(tcp);
		st->cwnd = tcp->snd_cwnd;
	} else {
		if (marked)
			prague_reduce(st, tcp);
		acked = tcp->cwnd_limited ? acked - cc_min(marked, acked) : 0;
		if (cc_in_slow_start(tcp)) {
			reno_slow_start_packets(tcp, &acked);
			prague_take_window(st, tcp);
		}
		prague_set_window(st, tcp, st->window + prague_increase(st, tcp, acked));
	}
	prague_pace(tcp);
}

// A loss was found by duplicate ACKs.
CC_INLINE void prague_set_state(struct prague *st, struct cc_tcp *tcp, cc_u32 new_state) {
	if (new_state != CC_RECOVERY || tcp->ca_state == CC_RECOVERY)
		return;
	prague_take_window(st, tcp);
	prague_set_window(st, tcp, st->window / 2);
	tcp->snd_ssthresh = tcp->snd_cwnd;
}

#ifdef CC_SENDER_prague
#define CC_STATE struct prague
#define CC_INIT prague_init
#define CC_SSTHRESH(st, tcp) ((tcp)->snd_cwnd) // prague_reduce and prague_set_state reduce
#define CC_CONG_CONTROL prague_control
#define CC_SET_STATE prague_set_state
#define CC_CWND_EVENT(st, tcp, event) dctcp_cwnd_event(&(st)->receiver, tcp, event)
#define CC_BURST(st, tcp) 1
#define CC_NEEDS_ECN 1
#endif

#endif
