// SPDX-License-Identifier: GPL-2.0-only OR MIT
// FastTCP's NCA, no congestion avoidance: cwnd += 1 an ACK for ever, below ssthresh and above it. Losses halve as in NewReno.
#ifndef FAIRLANE_CC_NCA_H
#define FAIRLANE_CC_NCA_H

#include "reno.h"

CC_INLINE void nca_cong_avoid(struct cc_tcp *tcp, cc_u32 acked) {
	if (acked && tcp->cwnd_limited)
		reno_slow_start(tcp);
}

#ifdef CC_SENDER_nca
#define CC_STATE struct cc_no_state
#define CC_CONG_AVOID(st, tcp, acked) nca_cong_avoid(tcp, acked)
#endif

#endif
