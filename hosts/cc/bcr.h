// SPDX-License-Identifier: GPL-2.0-only OR MIT
// BCR as its paper defines it (Lee, Ahn, Choo): E-RTO's detection, and after a spurious timeout the window that Westwood's
// estimate gives.
//
//   each ACK that acknowledges data:  BW_cur(k) = d_k / (t_k - t_k-1),  BW_est(k) = alpha * BW_est(k-1) + (1 - alpha) * BW_cur(k),
//                                     alpha = 0.2
//   the timeout was spurious:         ssthresh = BW_est * RTT_base / segment size, RTT_base the smallest RTT so far
//                                     cwnd = ssthresh where the old cwnd >= ssthresh, else the old cwnd
// Bandwidth is counted in packets a second, so the segment size falls out. The newest sample has four fifths of the
// estimate: at the undo that is the gap between the two ACKs that judged the timeout. It shows the new network's rate where
// the spike kept packets in the queue before the line, stopped no ACKs, and the second ACK judges (after at most three
// timeouts; the fourth sends the head, and then one ACK is enough). Else it is a gap of the access link, of ACKs that waited
// together, or the spike itself (experiment bcr-spike). `bcr_plus.h` measures what the network delivers after the spike instead.
#ifndef FAIRLANE_CC_BCR_H
#define FAIRLANE_CC_BCR_H

#include "erto.h"
#include "westwood.h"

struct bcr {
	struct erto erto;
	cc_u64 ack_ns;      // of the newest ACK with data; 0 before the first
	cc_u32 delivered;   // packets until then
	cc_u32 bw_est;      // packets/s * WESTWOOD_BW_SCALE; 0 before the first sample
	cc_u32 rtt_base_us; // CC_NO_RTT before the first RTT
	cc_u32 restored;    // ssthresh of an undo that has still to be written; 0: none
};

CC_INLINE void bcr_init(struct bcr *st, const struct cc_tcp *tcp) {
	*st = (struct bcr){.delivered = tcp->delivered, .rtt_base_us = CC_NO_RTT};
	erto_init(&st->erto, tcp);
}

// Every ACK, before the window grows. ACKs of one instant are one sample.
CC_INLINE void bcr_pkts_acked(struct bcr *st, const struct cc_tcp *tcp, cc_s32 rtt_us, cc_u64 now_ns) {
	cc_u32 acked = tcp->delivered - st->delivered;

	erto_pkts_acked(&st->erto, tcp);
	if (rtt_us > 0)
		st->rtt_base_us = cc_min(st->rtt_base_us, (cc_u32)rtt_us);
	if (!acked || now_ns == st->ack_ns)
		return;
	if (st->ack_ns) {
		cc_u32 current = westwood_rate(acked, now_ns - st->ack_ns);

		st->bw_est = st->bw_est ? (cc_u32)((st->bw_est + 4ull * current) / 5) : current;
	}
	st->ack_ns = now_ns;
	st->delivered = tcp->delivered;
}

// A reduction in Recovery that was undone goes back to the old window as usual.
CC_INLINE cc_u32 bcr_undo_cwnd(struct bcr *st, const struct cc_tcp *tcp) {
	cc_u32 target = westwood_target(st->bw_est, st->rtt_base_us);

	if (tcp->ca_state != CC_LOSS || !target)
		return reno_undo_cwnd(tcp);
	st->restored = target;
	return cc_min(tcp->prior_cwnd, target);
}

// The end of the timeout: Linux has just put the old ssthresh back, where it was larger.
CC_INLINE void bcr_set_state(struct bcr *st, struct cc_tcp *tcp, cc_u32 new_state) {
	erto_set_state(&st->erto, new_state);
	if (new_state == CC_OPEN && st->restored)
		tcp->snd_ssthresh = st->restored;
	st->restored = 0;
}

#ifdef CC_SENDER_bcr
#define CC_STATE struct bcr
#define CC_INIT bcr_init
#define CC_CONG_AVOID(st, tcp, acked) erto_cong_avoid(&(st)->erto, tcp, acked)
#define CC_PKTS_ACKED(st, tcp) bcr_pkts_acked(st, tcp, (tcp)->rtt_us, (tcp)->now_ns)
#define CC_SET_STATE bcr_set_state
#define CC_UNDO_CWND bcr_undo_cwnd
#define CC_BW_EST(st) westwood_pps((st)->bw_est)
#endif

#endif
