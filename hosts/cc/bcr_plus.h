// SPDX-License-Identifier: GPL-2.0-only OR MIT
// BCR+: BCR (bcr.h) that goes on measuring after the undo. Ours, not the paper's.
//
// At the undo the paper's two equations, with the estimate from before the timeout (westwood.h: samples last a round trip):
//   ssthresh = BW_est * RTT_base / segment size;  cwnd = ssthresh where the old cwnd >= ssthresh, else the old cwnd
// The network may be another one after the spike (a hand-over). So the window then follows what it delivers:
//
//   RESTORED --ACK for data sent after the spike--> TRAIN --3/4 of what was in flight delivered--> ROUND --> NONE
//     TRAIN's end: BW_est is the train's own rate (packets sent back to back leave the bottleneck at its rate; the last
//                  ones may be stragglers, sent when a delayed ACK came).
//                  Until then the window stands still.
//                  Down: ssthresh = BW_est * RTT_base, and cwnd at most half as much again, without a loss. Up, or as
//                  before: the old window is safe, so ssthresh = the larger of it and BW_est * RTT_base; cwnd goes up to the old one or to
//                  BW_est * RTT_base at once, and from there in slow start.
//     ROUND's end, a round trip later: RTT_base is learned anew, since the path may be longer; ssthresh takes it up; and a
//                  train that read too high (ACKs come in clumps) is corrected: nothing above two round trips' delivery.
// A loss found by duplicate ACKs ends all that. Losses themselves are answered as Reno answers them: half.
#ifndef FAIRLANE_CC_BCR_PLUS_H
#define FAIRLANE_CC_BCR_PLUS_H

#include "erto.h"
#include "westwood.h"

#define BCR_PLUS_TRAIN_MIN 2u
#define BCR_PLUS_TRAIN_MAX 32u

enum bcr_plus_phase { BCR_PLUS_NONE = 0, BCR_PLUS_RESTORED = 1, BCR_PLUS_TRAIN = 2, BCR_PLUS_ROUND = 3 };

struct bcr_plus {
	struct westwood bw;
	struct erto erto;
	cc_u32 phase;         // enum bcr_plus_phase
	cc_u32 old_cwnd;      // packets, before the timeout
	cc_u32 old_target;    // packets, BW_est * RTT_base from before it
	cc_u32 train_packets; // delivered packets that end the train
	cc_u32 round_seq;     // the round is made of what was sent from here on
	cc_u32 round_rtt_us;  // its smallest RTT; CC_NO_RTT before the first
};

CC_INLINE void bcr_plus_init(struct bcr_plus *st, const struct cc_tcp *tcp) {
	*st = (struct bcr_plus){.phase = BCR_PLUS_NONE, .round_seq = tcp->snd_una, .round_rtt_us = CC_NO_RTT};
	westwood_init(&st->bw, tcp);
	erto_init(&st->erto, tcp);
}

// 0: no estimate yet.
CC_INLINE cc_u32 bcr_plus_target(const struct bcr_plus *st) { return westwood_target(st->bw.bw_est, st->bw.rtt_base_us); }

// The timeout was spurious. A reduction in Recovery that was undone goes back to the old window as usual.
CC_INLINE cc_u32 bcr_plus_undo_cwnd(struct bcr_plus *st, const struct cc_tcp *tcp) {
	cc_u32 target = bcr_plus_target(st);
	if (tcp->ca_state != CC_LOSS || !target)
		return reno_undo_cwnd(tcp);
	st->phase = BCR_PLUS_RESTORED;
	st->old_cwnd = tcp->prior_cwnd;
	st->old_target = target;
	return cc_min(tcp->prior_cwnd, target);
}

// The end of the timeout: Linux has just put the old ssthresh back, where it was larger.
CC_INLINE void bcr_plus_set_state(struct bcr_plus *st, struct cc_tcp *tcp, cc_u32 new_state) {
	westwood_set_state(&st->bw, tcp, new_state);
	erto_set_state(&st->erto, new_state);
	if (new_state == CC_OPEN && st->phase == BCR_PLUS_RESTORED)
		tcp->snd_ssthresh = bcr_plus_target(st);
	else if (new_state == CC_LOSS)
		st->phase = BCR_PLUS_NONE;
}

CC_INLINE void bcr_plus_begin_train(struct bcr_plus *st, const struct cc_tcp *tcp, cc_u64 now_ns) {
	st->phase = BCR_PLUS_TRAIN;
	st->train_packets = cc_min(cc_max(tcp->in_flight * 3 / 4, BCR_PLUS_TRAIN_MIN), BCR_PLUS_TRAIN_MAX);
	westwood_begin_sample(&st->bw, tcp, now_ns);
}

// By more than a quarter, which the train may be wrong by.
CC_INLINE int bcr_plus_slower(const struct bcr_plus *st, cc_u32 target) { return 4 * target < 3 * st->old_target; }

CC_INLINE void bcr_plus_end_train(struct bcr_plus *st, struct cc_tcp *tcp, cc_u64 now_ns) {
	cc_u64 elapsed_ns = now_ns - st->bw.sample_ns;
	cc_u32 target;
	st->bw.bw_est = westwood_rate(tcp->delivered - st->bw.sample_delivered, elapsed_ns ? elapsed_ns : 1);
	target = bcr_plus_target(st);
	if (bcr_plus_slower(st, target)) {
		tcp->snd_ssthresh = target;
		tcp->snd_cwnd = cc_min(cc_max(tcp->snd_cwnd, st->old_cwnd), target + target / 2);
	} else {
		tcp->snd_ssthresh = cc_max(target, st->old_cwnd);
		tcp->snd_cwnd = cc_max(tcp->snd_cwnd, cc_min(st->old_cwnd, target));
	}
	tcp->snd_cwnd_cnt = 0;
	st->phase = BCR_PLUS_ROUND;
	st->round_seq = tcp->snd_nxt;
	st->round_rtt_us = CC_NO_RTT;
	st->bw.sample_ns = 0;
}

CC_INLINE void bcr_plus_end_round(struct bcr_plus *st, struct cc_tcp *tcp) {
	cc_u32 target;
	st->bw.bw_est = st->bw.bw_cur; // nothing of the train's
	if (st->round_rtt_us != CC_NO_RTT)
		st->bw.rtt_base_us = st->round_rtt_us;
	target = bcr_plus_target(st);
	tcp->snd_ssthresh = cc_min(cc_max(tcp->snd_ssthresh, target), 2 * target);
	tcp->snd_cwnd = cc_min(tcp->snd_cwnd, 2 * target);
	st->phase = BCR_PLUS_NONE;
}

// Every ACK, before the window grows.
CC_INLINE void bcr_plus_pkts_acked(struct bcr_plus *st, struct cc_tcp *tcp, cc_s32 rtt_us, cc_u64 now_ns) {
	cc_u32 was_frozen = st->bw.frozen;
	int in_round = st->phase == BCR_PLUS_ROUND && cc_seq_after(tcp->snd_una, st->round_seq);

	erto_pkts_acked(&st->erto, tcp);
	if (tcp->ca_state == CC_LOSS || tcp->ca_state == CC_RECOVERY || tcp->ca_state == CC_CWR)
		st->phase = BCR_PLUS_NONE;
	if (st->phase == BCR_PLUS_TRAIN) { // the train is its own sample
		if (rtt_us > 0)
			st->bw.rtt_base_us = cc_min(st->bw.rtt_base_us, (cc_u32)rtt_us);
		if (tcp->delivered - st->bw.sample_delivered >= st->train_packets)
			bcr_plus_end_train(st, tcp, now_ns);
		else
			st->erto.hold = 1;
		return;
	}
	if (st->phase == BCR_PLUS_ROUND && !in_round)
		return;
	if (in_round && rtt_us > 0)
		st->round_rtt_us = cc_min(st->round_rtt_us, (cc_u32)rtt_us);
	int sampled = westwood_pkts_acked(&st->bw, tcp, rtt_us, now_ns);
	if (st->phase == BCR_PLUS_RESTORED && was_frozen && !st->bw.frozen)
		bcr_plus_begin_train(st, tcp, now_ns);
	if (st->phase == BCR_PLUS_RESTORED || st->phase == BCR_PLUS_TRAIN)
		st->erto.hold = 1;
	else if (st->phase == BCR_PLUS_ROUND && sampled)
		bcr_plus_end_round(st, tcp);
}

CC_INLINE void bcr_plus_cwnd_event(struct bcr_plus *st, cc_u32 event) {
	if (event == CC_TX_START && st->phase != BCR_PLUS_TRAIN)
		st->bw.sample_ns = 0;
}

#ifdef CC_SENDER_bcr_plus
#define CC_STATE struct bcr_plus
#define CC_INIT bcr_plus_init
#define CC_CONG_AVOID(st, tcp, acked) erto_cong_avoid(&(st)->erto, tcp, acked)
#define CC_PKTS_ACKED(st, tcp) bcr_plus_pkts_acked(st, tcp, (tcp)->rtt_us, (tcp)->now_ns)
#define CC_SET_STATE bcr_plus_set_state
#define CC_CWND_EVENT(st, tcp, event) bcr_plus_cwnd_event(st, event)
#define CC_UNDO_CWND bcr_plus_undo_cwnd
#define CC_BW_EST(st) westwood_pps((st)->bw.bw_est)
#endif

#endif
