// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Reno's growth as Linux's tcp_reno has it, and Linux's other senders as well: packets count, not ACKs.
#ifndef FAIRLANE_CC_RENO_LINUX_H
#define FAIRLANE_CC_RENO_LINUX_H

#include "reno.h"

// Slow start takes what it needs to reach ssthresh, the rest counts for avoidance.
CC_INLINE void reno_slow_start_packets(struct cc_tcp *tcp, cc_u32 *acked) {
	cc_u32 cwnd = cc_min(tcp->snd_cwnd + *acked, tcp->snd_ssthresh);
	*acked -= cc_min(*acked, cwnd - tcp->snd_cwnd);
	tcp->snd_cwnd = cc_min(cwnd, tcp->snd_cwnd_clamp);
}

// Slow start's part of an ACK. 1: packets are left for avoidance, and the window may grow.
CC_INLINE int reno_avoids(struct cc_tcp *tcp, cc_u32 *acked) {
	if (!tcp->cwnd_limited)
		return 0;
	if (!cc_in_slow_start(tcp))
		return 1;
	reno_slow_start_packets(tcp, acked);
	return *acked != 0;
}

// One packet more for each `count` that are acknowledged (Linux: tcp_cong_avoid_ai()).
CC_INLINE void reno_count_packets(struct cc_tcp *tcp, cc_u32 acked, cc_u32 count) {
	tcp->snd_cwnd_cnt += acked;
	if (count && tcp->snd_cwnd_cnt >= count) {
		tcp->snd_cwnd += tcp->snd_cwnd_cnt / count;
		tcp->snd_cwnd_cnt %= count;
	}
	tcp->snd_cwnd = cc_min(tcp->snd_cwnd, tcp->snd_cwnd_clamp);
}

CC_INLINE void reno_cong_avoid_packets(struct cc_tcp *tcp, cc_u32 acked) {
	if (reno_avoids(tcp, &acked))
		reno_count_packets(tcp, acked, tcp->snd_cwnd);
}

#ifdef CC_SENDER_reno_linux
#define CC_STATE struct cc_no_state
#define CC_CONG_AVOID(st, tcp, acked) reno_cong_avoid_packets(tcp, acked)
#endif

#endif
