// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Reno's window growth and halving (RFC 5681 §3.1 and §3.2), which NewReno shares.
//
// Growth counts ACKs, as the papers' simulator (ns-2) and RFC 5681 eq. (2), (3) do: with delayed ACKs the window grows
// by one packet every other round trip. NOT Linux's tcp_reno, which counts acknowledged packets, in slow start without
// a limit per ACK; that is reno_linux.h.
#ifndef FAIRLANE_CC_RENO_H
#define FAIRLANE_CC_RENO_H

#include "tcp.h"

// One ACK of congestion avoidance: cwnd += 1/cwnd. RFC 5681 eq. (3), in packets.
CC_INLINE void reno_additive_increase(struct cc_tcp *tcp) {
	tcp->snd_cwnd_cnt++;
	if (tcp->snd_cwnd_cnt >= tcp->snd_cwnd) {
		tcp->snd_cwnd_cnt = 0;
		tcp->snd_cwnd++;
	}
	tcp->snd_cwnd = cc_min(tcp->snd_cwnd, tcp->snd_cwnd_clamp);
}

// One ACK of slow start: cwnd += 1, however many packets the ACK covers. RFC 5681 eq. (2), in packets.
CC_INLINE void reno_slow_start(struct cc_tcp *tcp) {
	tcp->snd_cwnd = cc_min(tcp->snd_cwnd + 1, tcp->snd_cwnd_clamp);
}

CC_INLINE void reno_cong_avoid(struct cc_tcp *tcp, cc_u32 acked) {
	if (!acked || !tcp->cwnd_limited)
		return;
	if (cc_in_slow_start(tcp))
		reno_slow_start(tcp);
	else
		reno_additive_increase(tcp);
}

// Half the window, at least two packets. RFC 5681 eq. (4), with cwnd for FlightSize as ns-2 and Linux have it.
CC_INLINE cc_u32 reno_ssthresh(const struct cc_tcp *tcp) { return cc_max(tcp->snd_cwnd / 2, 2); }

CC_INLINE cc_u32 reno_undo_cwnd(const struct cc_tcp *tcp) { return cc_max(tcp->snd_cwnd, tcp->prior_cwnd); }

#ifdef CC_SENDER_reno
#define CC_STATE struct cc_no_state
#endif

#endif
