// SPDX-License-Identifier: GPL-2.0-only OR MIT
// TCP Hybla (Caini, Firrincieli: "TCP Hybla: a TCP enhancement for heterogeneous networks", 2004) as Linux's tcp_hybla behaves, written from its
// behaviour: a connection with a long round trip gets the window that Reno would have with RTT_0 = 25 ms.
//
//   rho = the smallest SRTT over RTT_0, at least 1, in eighths
//   the first window is rho; an ACK adds 2^rho - 1 in slow start, and rho^2 / cwnd in avoidance; a loss halves the window
//   while packets are missing it grows as Reno
//
// NOT the paper's in: no first ssthresh from a measured bandwidth, no pacing: at 600 ms (rho = 24) the first ACK opens the window to its limit.
// NOT Linux's tcp_hybla in: rho is learned later too where the handshake gave no RTT.
#ifndef FAIRLANE_CC_HYBLA_H
#define FAIRLANE_CC_HYBLA_H

#include "reno_linux.h"

#define HYBLA_RTT0_US 25000u
#define HYBLA_PARTS 128u        // of a packet
#define HYBLA_EXPONENT_MAX 16u  // of slow start
#define HYBLA_CWND_MAX 65535u

struct hybla {
	cc_u32 srtt_us; // smallest so far; CC_NO_RTT before the first
	cc_u32 rho;     // in eighths
	cc_u32 parts;   // of the next packet, HYBLA_PARTS to one
	cc_u32 missing; // 1: packets are missing
};

CC_INLINE void hybla_learn(struct hybla *st, cc_u32 srtt_us) {
	if (!srtt_us || srtt_us >= st->srtt_us)
		return;
	st->srtt_us = srtt_us;
	st->rho = cc_max((cc_u32)(8ull * srtt_us / HYBLA_RTT0_US), 8);
}

CC_INLINE void hybla_init(struct hybla *st, struct cc_tcp *tcp) {
	*st = (struct hybla){.srtt_us = CC_NO_RTT, .rho = 8};
	hybla_learn(st, tcp->srtt_us);
	tcp->snd_cwnd = st->rho / 8;
}

// 2^rho in HYBLA_PARTS of a packet.
CC_INLINE cc_u32 hybla_power(cc_u32 rho) {
	cc_u64 power = 1 << 16;
	if (rho & 4)
		power = power * 92682 >> 16; // 2^(4/8)
	if (rho & 2)
		power = power * 77936 >> 16; // 2^(2/8)
	if (rho & 1)
		power = power * 71468 >> 16; // 2^(1/8)
	return (cc_u32)(power * HYBLA_PARTS >> 16) << cc_min(rho / 8, HYBLA_EXPONENT_MAX);
}

CC_INLINE void hybla_cong_avoid(struct hybla *st, struct cc_tcp *tcp, cc_u32 acked) {
	cc_u32 most = cc_min(tcp->snd_cwnd_clamp, HYBLA_CWND_MAX), more;

	hybla_learn(st, tcp->srtt_us);
	if (st->missing) {
		reno_cong_avoid_packets(tcp, acked);
		return;
	}
	if (!tcp->cwnd_limited)
		return;
	if (cc_in_slow_start(tcp)) {
		more = hybla_power(st->rho) - HYBLA_PARTS;
		most = cc_min(most, tcp->snd_ssthresh);
	} else
		more = (cc_u32)((cc_u64)st->rho * st->rho * HYBLA_PARTS / 64 / tcp->snd_cwnd);
	if (!more) { // less than a part: a packet a window, as Reno
		reno_additive_increase(tcp);
		return;
	}
	st->parts += more;
	tcp->snd_cwnd = cc_min(tcp->snd_cwnd + st->parts / HYBLA_PARTS, most);
	st->parts %= HYBLA_PARTS;
}

#ifdef CC_SENDER_hybla
#define CC_STATE struct hybla
#define CC_INIT hybla_init
#define CC_CONG_AVOID hybla_cong_avoid
#define CC_SET_STATE(st, tcp, state) ((st)->missing = (state) != CC_OPEN)
#endif

#endif
