// SPDX-License-Identifier: GPL-2.0-only OR MIT
// CUBIC as Linux's tcp_cubic behaves, written from its behaviour, to stand beside RFC 9438's in cubic.h.
//
// Differences from cubic.h: the target is W_cubic(t + the smallest RTT), not t + SRTT; Reno's window grows by 8/15 of a packet a
// round trip above the old window too, and the window moves towards it instead of jumping; a round trip adds half of the window
// at most, a hundredth at least, and before the first loss a twentieth; a timeout forgets the path, an undo does not restore the epoch.
// HyStart (Ha, Rhee: "Taming the elephants: New TCP slow start", 2011) ends slow start from 16 packets on, where a round trip's
// train of ACKs, each within 2 ms of the one before, lasts for half of the smallest RTT and 1 ms (paced: for all of it), or where the
// smallest RTT of a round trip, of more than 8, is an eighth (4 to 16 ms) above the smallest seen.
//
// The target is new where the window has changed, else each 31 ms.
//
// NOT Linux's tcp_cubic in: time in milliseconds, not jiffies; that 1 ms, for the host's own bursts, is less above 2 Gbit/s; HyStart
// may end a slow start after an idle time too.
#ifndef FAIRLANE_CC_CUBIC_LINUX_H
#define FAIRLANE_CC_CUBIC_LINUX_H

#include "cubic.h"

#define CUBIC_LINUX_ALPHA 559241u        // 8/15 of a packet, in 2^-CUBIC_EST_SHIFT
#define CUBIC_LINUX_SETTLED_NS 1000000000ull // no RTT sample is taken so soon after a recovery
#define CUBIC_LINUX_RENEW_MS 31u
#define HYSTART_WINDOW_MIN 16u           // packets
#define HYSTART_SAMPLES 8u
#define HYSTART_GAP_US 2000u
#define HYSTART_BURST_US 1000u
#define HYSTART_DELAY_MIN_US 4000u
#define HYSTART_DELAY_MAX_US 16000u

struct cubic_linux {
	struct cubic base;
	cc_u32 min_rtt_us; // CC_NO_RTT before the first sample
	cc_u32 count;      // packets to be acknowledged for one more; 0: the window has changed
	cc_u32 counted_at_ms;
	// HyStart's round trip; times are the last 32 bits.
	cc_u32 round_end; // it ends when this byte is acknowledged
	cc_u32 round_at_us;
	cc_u32 last_ack_us; // the last ACK of the train
	cc_u32 round_rtt_us;
	cc_u32 samples;
};

CC_INLINE void hystart_begin_round(struct cubic_linux *st, const struct cc_tcp *tcp) {
	st->round_end = tcp->snd_nxt;
	st->round_at_us = st->last_ack_us = (cc_u32)(tcp->now_ns / 1000);
	st->round_rtt_us = CC_NO_RTT;
	st->samples = 0;
}

CC_INLINE void cubic_linux_init(struct cubic_linux *st, const struct cc_tcp *tcp) {
	*st = (struct cubic_linux){.min_rtt_us = CC_NO_RTT};
	cubic_init(&st->base, tcp);
	hystart_begin_round(st, tcp);
}

// Slow start has found the line's limit.
CC_INLINE int hystart_found(struct cubic_linux *st, const struct cc_tcp *tcp, cc_u32 rtt_us) {
	cc_u32 now_us = (cc_u32)(tcp->now_ns / 1000), train_us = st->min_rtt_us + HYSTART_BURST_US, margin_us;

	if (cc_seq_after(tcp->snd_una, st->round_end))
		hystart_begin_round(st, tcp);
	if (tcp->snd_cwnd < HYSTART_WINDOW_MIN)
		return 0;
	if (now_us - st->last_ack_us <= HYSTART_GAP_US) {
		st->last_ack_us = now_us;
		if (now_us - st->round_at_us > train_us / (tcp->pacing_rate == CC_UNPACED ? 2 : 1))
			return 1;
	}
	st->round_rtt_us = cc_min(st->round_rtt_us, rtt_us);
	if (st->samples < HYSTART_SAMPLES) {
		st->samples++;
		return 0;
	}
	margin_us = cc_min(cc_max(st->min_rtt_us / 8, HYSTART_DELAY_MIN_US), HYSTART_DELAY_MAX_US);
	return st->round_rtt_us > st->min_rtt_us + margin_us;
}

CC_INLINE void cubic_linux_pkts_acked(struct cubic_linux *st, struct cc_tcp *tcp) {
	if (tcp->rtt_us < 0 || (st->base.now.begin_ns && tcp->now_ns - st->base.now.begin_ns < CUBIC_LINUX_SETTLED_NS))
		return;
	st->min_rtt_us = cc_min(st->min_rtt_us, cc_max((cc_u32)tcp->rtt_us, 1));
	if (cc_in_slow_start(tcp) && hystart_found(st, tcp, (cc_u32)tcp->rtt_us))
		tcp->snd_ssthresh = tcp->snd_cwnd;
}

// How many packets have to be acknowledged for one more.
CC_INLINE cc_u32 cubic_linux_count(const struct cubic_linux *st, cc_u32 cwnd, cc_u32 t_ms) {
	cc_u32 rtt_ms = st->min_rtt_us == CC_NO_RTT ? 0 : st->min_rtt_us / 1000;
	cc_u32 target = cubic_window(&st->base.now, (cc_u64)t_ms + rtt_ms);
	cc_u32 reno = (cc_u32)(st->base.now.w_est >> CUBIC_EST_SHIFT), count;

	count = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
	if (!st->base.cwnd_prior)
		count = cc_min(count, 20);
	if (reno > cwnd)
		count = cc_min(count, cwnd / (reno - cwnd));
	return cc_max(count, 2);
}

CC_INLINE void cubic_linux_cong_avoid(struct cubic_linux *st, struct cc_tcp *tcp, cc_u32 acked) {
	cc_u32 before, t_ms;

	st->base.last_ns = tcp->now_ns;
	if (!reno_avoids(tcp, &acked))
		return;
	if (!st->base.now.begin_ns) {
		cubic_begin_epoch(&st->base, tcp);
		st->count = 0;
	}
	before = cc_max(tcp->snd_cwnd, 1);
	st->base.now.w_est += (cc_u64)CUBIC_LINUX_ALPHA * acked / before;
	t_ms = (cc_u32)((tcp->now_ns - st->base.now.begin_ns) / 1000000);
	if (!st->count || t_ms - st->counted_at_ms > CUBIC_LINUX_RENEW_MS) {
		st->count = cubic_linux_count(st, before, t_ms);
		st->counted_at_ms = t_ms;
	}
	if (tcp->snd_cwnd_cnt >= st->count) { // counted while more was asked for: one packet
		tcp->snd_cwnd_cnt = 0;
		tcp->snd_cwnd++;
	}
	reno_count_packets(tcp, acked, st->count);
	if (tcp->snd_cwnd != before)
		st->count = 0;
}

CC_INLINE void cubic_linux_set_state(struct cubic_linux *st, const struct cc_tcp *tcp, cc_u32 new_state) {
	if (new_state == CC_LOSS)
		cubic_linux_init(st, tcp);
}

#ifdef CC_SENDER_cubic_linux
#define CC_STATE struct cubic_linux
#define CC_INIT cubic_linux_init
#define CC_SSTHRESH(st, tcp) cubic_ssthresh(&(st)->base, tcp)
#define CC_CONG_AVOID cubic_linux_cong_avoid
#define CC_PKTS_ACKED cubic_linux_pkts_acked
#define CC_SET_STATE cubic_linux_set_state
#define CC_CWND_EVENT(st, tcp, event) cubic_cwnd_event(&(st)->base, tcp, event)
#endif

#endif
