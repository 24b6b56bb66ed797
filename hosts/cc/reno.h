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

// Whether an ACK acknowledges new data; `snd_una` is as of the last one.
CC_INLINE int reno_new_data(cc_u32 *snd_una, const struct cc_tcp *tcp) {
	int is_new = *snd_una != tcp->snd_una;
	*snd_una = tcp->snd_una;
	return is_new;
}

// For a sender that owns its window: ssthresh after a mark, or on Linux a drop on the sender's own interface. 1: that is so.
CC_INLINE int reno_in_cwr(struct cc_tcp *tcp) {
	if (tcp->ca_state != CC_CWR)
		return 0;
	tcp->snd_cwnd = cc_min(tcp->snd_cwnd, cc_max(tcp->snd_ssthresh, 2));
	return 1;
}

// The window of a fast recovery: ssthresh; with room for the retransmission itself while it has not gone out.
CC_INLINE cc_u32 reno_recovery_window(const struct cc_tcp *tcp) {
	return tcp->retrans_out ? tcp->snd_ssthresh : cc_max(tcp->snd_ssthresh, tcp->in_flight + 1);
}

// A recovery ended without its last ACK seen by the sender.
CC_INLINE void reno_leave_recovery(struct cc_tcp *tcp) {
	tcp->snd_cwnd = cc_min(cc_max(tcp->snd_cwnd, tcp->snd_ssthresh), cc_max(tcp->snd_ssthresh, 2));
}

#ifdef CC_SENDER_reno
#define CC_STATE struct cc_no_state
#endif

#endif
