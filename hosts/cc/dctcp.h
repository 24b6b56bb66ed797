// SPDX-License-Identifier: GPL-2.0-only OR MIT
// DCTCP (RFC 8257): the window shrinks by the share of packets that were marked, not by half.
//
//   sender, once a window:   alpha += g (F - alpha),  F = packets acknowledged with ECE / all of them, g = 1/16     §3.3
//   an ACK with ECE:         ssthresh = cwnd (1 - alpha / 2), once a window; a loss: half                      §3.4, §3.5
//   receiver:                an ACK has ECE if, and only if, the packets that it is for were marked; where that changes,
//                            what waits for a delayed ACK is acknowledged first                                       §3.2
//   growth:                  Reno's
//
// NOT RFC 8257 in: F counts packets, not bytes; growth counts packets, not ACKs (as Linux).
// NOT Linux's tcp_dctcp in: no fall-back to Reno's halving where the peer has no ECN (without marks it is the same).
// Both ends need it: the receiver's half works on a socket whose congestion control this is.
#ifndef FAIRLANE_CC_DCTCP_H
#define FAIRLANE_CC_DCTCP_H

#include "reno_linux.h"

#define DCTCP_ONE 1024u // alpha = 1
#define DCTCP_G_SHIFT 4 // g = 1/16

struct dctcp {
	cc_u32 alpha;        // of DCTCP_ONE
	cc_u32 window_end;   // the window ends when this byte is acknowledged
	cc_u32 delivered;    // cc_tcp.delivered when it began
	cc_u32 delivered_ce; // cc_tcp.delivered_ce when it began
	cc_u32 marked;       // as a receiver: the last packet was
	cc_u32 rcv_nxt;      // as a receiver: of the last packet
};

CC_INLINE void dctcp_begin_window(struct dctcp *st, const struct cc_tcp *tcp) {
	st->window_end = tcp->snd_nxt;
	st->delivered = tcp->delivered;
	st->delivered_ce = tcp->delivered_ce;
}

CC_INLINE void dctcp_init(struct dctcp *st, const struct cc_tcp *tcp) {
	*st = (struct dctcp){.alpha = DCTCP_ONE, .rcv_nxt = tcp->rcv_nxt}; // §4.2: half the window at the first mark
	dctcp_begin_window(st, tcp);
}

CC_INLINE void dctcp_pkts_acked(struct dctcp *st, const struct cc_tcp *tcp) {
	cc_u32 delivered = tcp->delivered - st->delivered, marked = tcp->delivered_ce - st->delivered_ce, share;

	if (cc_seq_before(tcp->snd_una, st->window_end))
		return;
	share = delivered ? (cc_u32)((cc_u64)DCTCP_ONE * cc_min(marked, delivered) / delivered) : 0;
	st->alpha -= st->alpha >> DCTCP_G_SHIFT ? st->alpha >> DCTCP_G_SHIFT : cc_min(st->alpha, 1);
	st->alpha = cc_min(st->alpha + (share >> DCTCP_G_SHIFT), DCTCP_ONE);
	dctcp_begin_window(st, tcp);
}

CC_INLINE cc_u32 dctcp_ssthresh(const struct dctcp *st, const struct cc_tcp *tcp) {
	cc_u32 cut = (cc_u32)((cc_u64)tcp->snd_cwnd * st->alpha / (2 * DCTCP_ONE));
	return cc_max(tcp->snd_cwnd - cut, 2);
}

// A loss was found by duplicate ACKs, while cwnd is what it was.
CC_INLINE void dctcp_set_state(struct cc_tcp *tcp, cc_u32 new_state) {
	if (new_state == CC_RECOVERY && tcp->ca_state != CC_RECOVERY)
		tcp->snd_ssthresh = reno_ssthresh(tcp);
}

CC_INLINE void dctcp_receive(struct dctcp *st, struct cc_tcp *tcp, cc_u32 marked) {
	if (st->marked != marked) {
		tcp->ack_now = 1;
		tcp->ack_before = st->rcv_nxt;
	}
	tcp->ecn_echo = marked;
	st->marked = marked;
	st->rcv_nxt = tcp->rcv_nxt;
}

CC_INLINE void dctcp_cwnd_event(struct dctcp *st, struct cc_tcp *tcp, cc_u32 event) {
	if (event == CC_EVENT_LOSS)
		tcp->snd_ssthresh = reno_ssthresh(tcp);
	else if (event == CC_ECN_IS_CE || event == CC_ECN_NO_CE)
		dctcp_receive(st, tcp, event == CC_ECN_IS_CE);
}

#ifdef CC_SENDER_dctcp
#define CC_STATE struct dctcp
#define CC_INIT dctcp_init
#define CC_SSTHRESH dctcp_ssthresh
#define CC_CONG_AVOID(st, tcp, acked) reno_cong_avoid_packets(tcp, acked)
#define CC_PKTS_ACKED dctcp_pkts_acked
#define CC_SET_STATE(st, tcp, state) dctcp_set_state(tcp, state)
#define CC_CWND_EVENT dctcp_cwnd_event
#define CC_NEEDS_ECN 1
#endif

#endif
