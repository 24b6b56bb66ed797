// SPDX-License-Identifier: GPL-2.0-only OR MIT
// BIC (Xu, Harfoush, Rhee: "Binary increase congestion control (BIC) for fast long-distance networks", INFOCOM 2004) as Linux's tcp_bic and ns-3's TcpBic
// behave, written from their behaviour: after a loss the window searches for the one at which it was lost, W_max.
//
//   below W_max a round trip adds (W_max - cwnd) / 4, at most 16 packets; where that is one or less, 4/20 of a packet
//   above it 4/20 for the first 4 packets, then (cwnd - W_max) / 3, at most 16
//   a loss: ssthresh = 0.8 cwnd; W_max = cwnd, or 0.9 cwnd where it did not reach the last one again; to 14 packets it is Reno
//
// NOT the paper's in: beta 0.2 for 0.125, S_max 16 for 32, a quarter of the way for half of it, S_min 0.2 for 0.01 (as Linux).
// NOT Linux's tcp_bic in: growth is not scaled by packets for each ACK, and follows the window at each ACK, not each 31 ms.
#ifndef FAIRLANE_CC_BIC_LINUX_H
#define FAIRLANE_CC_BIC_LINUX_H

#include "reno_linux.h"

#define BIC_LOW_WINDOW 14u
#define BIC_INCREMENT_MAX 16u
#define BIC_BETA 819u // 0.8, of 1024
#define BIC_PARTS 4u  // of the way to W_max
#define BIC_SMOOTH 20u
#define BIC_FIRST_MAX 20u // ACKs for a packet at most, before the first loss

struct bic_linux {
	cc_u32 w_max; // packets; 0 before the first loss, and after a timeout
};

// How many packets have to be acknowledged for one more.
CC_INLINE cc_u32 bic_linux_count(const struct bic_linux *st, cc_u32 cwnd) {
	cc_u32 distance, count;

	if (cwnd <= BIC_LOW_WINDOW)
		return cwnd;
	if (cwnd < st->w_max) {
		distance = (st->w_max - cwnd) / BIC_PARTS;
		count = distance > 1 ? cwnd / cc_min(distance, BIC_INCREMENT_MAX) : cwnd * BIC_SMOOTH / BIC_PARTS;
	} else if (cwnd < st->w_max + BIC_PARTS)
		count = cwnd * BIC_SMOOTH / BIC_PARTS;
	else if (cwnd < st->w_max + BIC_INCREMENT_MAX * (BIC_PARTS - 1))
		count = cwnd * (BIC_PARTS - 1) / (cwnd - st->w_max);
	else
		count = cwnd / BIC_INCREMENT_MAX;
	if (!st->w_max)
		count = cc_min(count, BIC_FIRST_MAX);
	return cc_max(count, 1);
}

CC_INLINE void bic_linux_cong_avoid(const struct bic_linux *st, struct cc_tcp *tcp, cc_u32 acked) {
	if (reno_avoids(tcp, &acked))
		reno_count_packets(tcp, acked, bic_linux_count(st, tcp->snd_cwnd));
}

CC_INLINE cc_u32 bic_linux_ssthresh(struct bic_linux *st, const struct cc_tcp *tcp) {
	cc_u32 cwnd = tcp->snd_cwnd;

	st->w_max = cwnd < st->w_max ? cwnd * (1024 + BIC_BETA) / 2048 : cwnd; // fast convergence
	return cc_max(cwnd <= BIC_LOW_WINDOW ? cwnd / 2 : cwnd * BIC_BETA / 1024, 2);
}

// A timeout: what was known of the path is forgotten.
CC_INLINE void bic_linux_set_state(struct bic_linux *st, cc_u32 new_state) {
	if (new_state == CC_LOSS)
		st->w_max = 0;
}

#ifdef CC_SENDER_bic_linux
#define CC_STATE struct bic_linux
#define CC_INIT(st, tcp) ((st)->w_max = 0)
#define CC_SSTHRESH bic_linux_ssthresh
#define CC_CONG_AVOID bic_linux_cong_avoid
#define CC_SET_STATE(st, tcp, new_state) bic_linux_set_state(st, new_state)
#endif

#endif
