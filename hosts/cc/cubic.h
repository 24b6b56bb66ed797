// SPDX-License-Identifier: GPL-2.0-only OR MIT
// CUBIC (RFC 9438): after a loss the window follows a cubic of the time since, level at the window of the loss.
//
//   W_cubic(t) = C (t - K)^3 + W_max,  C = 0.4,  K = cbrt((W_max - cwnd_epoch) / C)         eq. (1), (2); seconds, packets
//   each packet acknowledged: cwnd += (target - cwnd) / cwnd,  target = W_cubic(t + RTT) in [cwnd, 1.5 cwnd]      §4.2 to 4.5
//   where Reno would have more (W_cubic(t) < W_est): cwnd = W_est, which grows by alpha / cwnd a packet           §4.3
//   a loss: ssthresh = 0.7 cwnd; W_max = cwnd, or 0.85 cwnd where it did not reach the last one again           §4.6, §4.7
//   a timeout: the same ssthresh; the next congestion avoidance has K = 0, W_max = its first cwnd               §4.8
//
// NOT RFC 9438 in: growth counts packets, not ACKs (as Linux; with delayed ACKs eq. would lag); ssthresh from cwnd, not
// from FlightSize (as Linux, reno.h); no HyStart++ (§4.10).
// NOT Linux's tcp_cubic: cubic_linux.h is that. Beyond its list here an undo restores the epoch (§4.9), and nothing is added where
// the target is reached.
#ifndef FAIRLANE_CC_CUBIC_H
#define FAIRLANE_CC_CUBIC_H

#include "reno_linux.h"

#define CUBIC_MS3_PER_PACKET 2500000000ull // 1/C in ms^3: (t - K)^3 / this is in packets
#define CUBIC_TIME_MAX_MS (1u << 20)       // beyond it the cube would not fit
#define CUBIC_DROP_MAX 400000000u          // packets; nor would its cube root
#define CUBIC_BETA 717u                    // 0.7, of 1024
#define CUBIC_EST_SHIFT 20                 // W_est is in 2^-20 packets
#define CUBIC_ALPHA 555128u                // 3 (1 - 0.7) / (1 + 0.7), in the same unit

// One congestion avoidance, from its first ACK to the next loss.
struct cubic_epoch {
	cc_u64 begin_ns; // moved on while the sender has nothing to send; 0: it has not begun
	cc_u64 w_est;    // Reno's window, 2^-20 packets
	cc_u32 w_max;    // packets; 0 before the first loss
	cc_u32 k_ms;
};

struct cubic {
	struct cubic_epoch now;
	struct cubic_epoch before; // the last loss, for an undo
	cc_u64 last_ns;            // the last ACK
	cc_u32 cwnd_prior;         // packets, at the last loss
};

CC_INLINE void cubic_init(struct cubic *st, const struct cc_tcp *tcp) {
	*st = (struct cubic){.last_ns = tcp->now_ns};
}

// The largest root with root^3 <= x, for x < 2^63. No branch in the loop, so the kernel's verifier walks it once.
CC_INLINE cc_u32 cubic_root(cc_u64 x) {
	cc_u64 root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		cc_u64 next = root | 1ull << bit;
		cc_u64 is_too_large = (x - next * next * next) >> 63;

		root |= (1 - is_too_large) << bit;
	}
	return (cc_u32)root;
}

// W_cubic, packets, at `t_ms` of the epoch.
CC_INLINE cc_u32 cubic_window(const struct cubic_epoch *epoch, cc_u64 t_ms) {
	cc_u64 distance_ms = t_ms < epoch->k_ms ? epoch->k_ms - t_ms : t_ms - epoch->k_ms, packets;

	if (distance_ms > CUBIC_TIME_MAX_MS)
		distance_ms = CUBIC_TIME_MAX_MS;
	packets = distance_ms * distance_ms * distance_ms / CUBIC_MS3_PER_PACKET;
	if (t_ms >= epoch->k_ms)
		return epoch->w_max + (cc_u32)packets;
	return packets < epoch->w_max ? epoch->w_max - (cc_u32)packets : 0;
}

CC_INLINE void cubic_begin_epoch(struct cubic *st, struct cc_tcp *tcp) {
	st->now.begin_ns = tcp->now_ns;
	st->now.w_est = (cc_u64)tcp->snd_cwnd << CUBIC_EST_SHIFT;
	st->now.k_ms = 0;
	if (tcp->snd_cwnd < st->now.w_max)
		st->now.k_ms = cubic_root(cc_min(st->now.w_max - tcp->snd_cwnd, CUBIC_DROP_MAX) * CUBIC_MS3_PER_PACKET);
	else
		st->now.w_max = tcp->snd_cwnd;
	tcp->snd_cwnd_cnt = 0;
}

CC_INLINE void cubic_avoid(struct cubic *st, struct cc_tcp *tcp, cc_u32 acked) {
	struct cubic_epoch *epoch = &st->now;
	cc_u32 cwnd = tcp->snd_cwnd, target, reno, alpha;
	cc_u64 t_ms;

	if (!epoch->begin_ns)
		cubic_begin_epoch(st, tcp);
	t_ms = (tcp->now_ns - epoch->begin_ns) / 1000000;
	alpha = epoch->w_est >> CUBIC_EST_SHIFT >= st->cwnd_prior ? 1u << CUBIC_EST_SHIFT : CUBIC_ALPHA;
	epoch->w_est += (cc_u64)alpha * acked / cc_max(cwnd, 1);
	reno = (cc_u32)(epoch->w_est >> CUBIC_EST_SHIFT);
	if (cubic_window(epoch, t_ms) < reno) {
		tcp->snd_cwnd = cc_max(cwnd, reno);
		return;
	}
	target = cc_min(cubic_window(epoch, t_ms + tcp->srtt_us / 1000), cwnd + cwnd / 2);
	if (target <= cwnd)
		return;
	// 1 / cwnd of a packet for each packet and each packet that is missing: snd_cwnd_cnt counts in 1 / cwnd.
	reno_count_packets(tcp, acked * (target - cwnd), cwnd);
}

CC_INLINE void cubic_cong_avoid(struct cubic *st, struct cc_tcp *tcp, cc_u32 acked) {
	cc_u64 passed_ns = tcp->now_ns - st->last_ns;

	st->last_ns = tcp->now_ns;
	if (!tcp->cwnd_limited) {
		if (st->now.begin_ns)
			st->now.begin_ns += passed_ns; // §5.8: time in which the application is the limit does not count
		return;
	}
	if (reno_avoids(tcp, &acked)) {
		cubic_avoid(st, tcp, acked);
		tcp->snd_cwnd = cc_min(tcp->snd_cwnd, tcp->snd_cwnd_clamp);
	}
}

CC_INLINE cc_u32 cubic_ssthresh(struct cubic *st, const struct cc_tcp *tcp) {
	cc_u32 cwnd = tcp->snd_cwnd;

	st->before = st->now;
	st->now.begin_ns = 0;
	st->now.w_max = cwnd < st->now.w_max ? cwnd * (1024 + CUBIC_BETA) / 2048 : cwnd; // fast convergence
	st->cwnd_prior = cwnd;
	return cc_max(cwnd * CUBIC_BETA / 1024, 2);
}

CC_INLINE void cubic_set_state(struct cubic *st, cc_u32 new_state) {
	if (new_state == CC_LOSS)
		st->now.w_max = 0; // cubic_begin_epoch takes the window of then
}

CC_INLINE cc_u32 cubic_undo_cwnd(struct cubic *st, const struct cc_tcp *tcp) {
	st->now = st->before;
	return reno_undo_cwnd(tcp);
}

// Leaving an idle time: it was no time of the epoch.
CC_INLINE void cubic_cwnd_event(struct cubic *st, const struct cc_tcp *tcp, cc_u32 event) {
	if (event != CC_TX_START)
		return;
	if (st->now.begin_ns)
		st->now.begin_ns += tcp->now_ns - st->last_ns;
	st->last_ns = tcp->now_ns;
}

#ifdef CC_SENDER_cubic
#define CC_STATE struct cubic
#define CC_INIT cubic_init
#define CC_SSTHRESH cubic_ssthresh
#define CC_CONG_AVOID cubic_cong_avoid
#define CC_SET_STATE(st, tcp, state) cubic_set_state(st, state)
#define CC_CWND_EVENT cubic_cwnd_event
#define CC_UNDO_CWND cubic_undo_cwnd
#endif

#endif
