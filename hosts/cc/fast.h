// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The windows of FastTCP's cheats (the FastTCP paper's NSS and NCA); its other cases change no window.
//
//   NSS  no slow start: cwnd never limits, at the start, after a loss or after a timeout; the receiver's advertised
//        window alone does. Loss recovery is the sender's own: what is found lost goes out again at once.
//   NCA  no congestion avoidance: cwnd += 1 an ACK for ever, below ssthresh and above it. Losses halve as in NewReno.
// ORG (NewReno with IW 2), FST1 (a duplicate-ACK threshold of 1) and MRTO (RTO near the RTT) are settings, not windows.
#ifndef FAIRLANE_CC_FAST_H
#define FAIRLANE_CC_FAST_H

#include "reno.h"

// Packets: 17 MB of 536 bytes, above what Linux's socket buffers hold. Not more: Linux sizes the send buffer by
// 2 * cwnd * (bytes of a packet in memory, 17 KB for jumbo frames) in an int, and takes an overflow for "small".
#define NSS_CWND 32768u

// Wherever the window can have been touched: X_init, X_on_ack (Linux: cong_control), X_set_state, X_cwnd_event.
CC_INLINE void nss_open(struct cc_tcp *tcp) {
	tcp->snd_cwnd = cc_min(NSS_CWND, tcp->snd_cwnd_clamp);
	tcp->snd_cwnd_cnt = 0;
	tcp->snd_ssthresh = NSS_CWND;
}

CC_INLINE cc_u32 nss_ssthresh(const struct cc_tcp *tcp) {
	(void)tcp;
	return NSS_CWND;
}

CC_INLINE cc_u32 nss_undo_cwnd(const struct cc_tcp *tcp) { return cc_min(NSS_CWND, tcp->snd_cwnd_clamp); }

CC_INLINE void nca_cong_avoid(struct cc_tcp *tcp, cc_u32 acked) {
	if (acked && tcp->cwnd_limited)
		reno_slow_start(tcp);
}

#endif
