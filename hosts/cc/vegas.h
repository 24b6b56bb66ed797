// SPDX-License-Identifier: GPL-2.0-only OR MIT
// TCP Vegas as its paper (Brakmo & Peterson 1995) and ns-2's Agent/TCP/Vegas define the window.
//
// Once a round trip, with rtt the mean of its samples and base the smallest RTT ever seen:
//   diff = cwnd * (rtt - base) / rtt, rounded to the nearest packet      (packets this flow keeps in queues)
//   slow start: every other round trip; diff > gamma ends it: cwnd -= cwnd/8, ssthresh = 2; else cwnd += 1 an ACK
//   avoidance:  diff > beta: cwnd -= 1;  diff < alpha: cwnd += 1/cwnd an ACK;  else stay
// A loss found by duplicate ACKs costs a quarter of the window and ends slow start for good (ssthresh = 2), a timeout sends cwnd to 1.
//
// NOT Linux's tcp_vegas (vegas_linux.h): divides by rtt, not by base; no fall-back to Reno at <= 2 samples;
// base is never learned anew in mid-flow; the mean RTT, not the smallest.
// NOT the paper in: no fine-grained timer that retransmits at the first duplicate ACK (the kernel owns loss recovery:
// three duplicate ACKs, NewReno); ns-2's "base = rtt when one packet was in transit" is left out. After a
// loss ns-2 makes 2 of a window of 3, and half where a packet was lost twice: without the fine-grained timer a window of 2 would wait
// for a timeout.
#ifndef FAIRLANE_CC_VEGAS_H
#define FAIRLANE_CC_VEGAS_H

#include "reno.h"

enum vegas_increase { VEGAS_STAY = 0, VEGAS_SLOW_START = 1, VEGAS_AVOIDANCE = 2 };

struct vegas {
	cc_u64 sum_rtt_us;   // of this round trip
	cc_u32 rtt_count;    // samples of this round trip
	cc_u32 base_rtt_us;  // CC_NO_RTT before the first sample
	cc_u32 beg_snd_nxt;  // the round trip ends when this byte is acknowledged
	cc_u32 increase;     // enum vegas_increase: what each ACK of this round trip does
	cc_u32 grow_this_rtt; // slow start: every other round trip
};

CC_INLINE void vegas_init(struct vegas *st, const struct cc_tcp *tcp) {
	*st = (struct vegas){.base_rtt_us = CC_NO_RTT, .increase = VEGAS_SLOW_START, .grow_this_rtt = 1};
	st->beg_snd_nxt = tcp->snd_nxt;
}

CC_INLINE void vegas_pkts_acked(struct vegas *st, cc_s32 rtt_us) {
	if (rtt_us <= 0)
		return;
	st->base_rtt_us = cc_min(st->base_rtt_us, (cc_u32)rtt_us);
	st->sum_rtt_us += (cc_u32)rtt_us;
	st->rtt_count++;
}

// Packets that wait in queues, to the nearest one. base_rtt_us <= rtt_us, rtt_us > 0.
CC_INLINE cc_u32 vegas_diff(cc_u32 cwnd, cc_u64 rtt_us, cc_u32 base_rtt_us) {
	if (!rtt_us || rtt_us < base_rtt_us)
		return 0;
	return (cc_u32)((cwnd * (rtt_us - base_rtt_us) + rtt_us / 2) / rtt_us);
}

CC_INLINE void vegas_slow_start_decision(struct vegas *st, struct cc_tcp *tcp, cc_u32 diff, cc_u32 gamma) {
	st->grow_this_rtt = !st->grow_this_rtt;
	if (!st->grow_this_rtt) {
		st->increase = VEGAS_STAY;
	} else if (diff > gamma) {
		tcp->snd_ssthresh = 2;
		tcp->snd_cwnd = cc_max(tcp->snd_cwnd - tcp->snd_cwnd / 8, 2);
		tcp->snd_cwnd_cnt = 0;
		st->increase = VEGAS_STAY;
	} else {
		st->increase = VEGAS_SLOW_START;
	}
}

CC_INLINE void vegas_avoidance_decision(struct vegas *st, struct cc_tcp *tcp, cc_u32 diff,
					const struct cc_params *params) {
	if (diff > params->beta) {
		tcp->snd_cwnd = cc_max(tcp->snd_cwnd - 1, 2);
		tcp->snd_cwnd_cnt = 0;
		st->increase = VEGAS_STAY;
	} else {
		st->increase = diff < params->alpha ? VEGAS_AVOIDANCE : VEGAS_STAY;
	}
}

CC_INLINE void vegas_cong_avoid(struct vegas *st, struct cc_tcp *tcp, cc_u32 acked, const struct cc_params *params) {
	if (cc_seq_after(tcp->snd_una, st->beg_snd_nxt)) {
		st->beg_snd_nxt = tcp->snd_nxt;
		if (st->rtt_count) {
			cc_u64 rtt_us = st->sum_rtt_us / st->rtt_count;
			cc_u32 diff = vegas_diff(tcp->snd_cwnd, rtt_us, st->base_rtt_us);
			if (cc_in_slow_start(tcp))
				vegas_slow_start_decision(st, tcp, diff, params->gamma);
			else
				vegas_avoidance_decision(st, tcp, diff, params);
		}
		st->sum_rtt_us = 0;
		st->rtt_count = 0;
	}
	if (!acked || !tcp->cwnd_limited)
		return;
	if (st->increase == VEGAS_SLOW_START && cc_in_slow_start(tcp))
		reno_slow_start(tcp);
	else if (st->increase != VEGAS_STAY)
		reno_additive_increase(tcp);
}

// A loss by duplicate ACKs: three quarters (ns-2). A timeout: vegas_cwnd_event puts half there.
CC_INLINE cc_u32 vegas_ssthresh(const struct cc_tcp *tcp) { return cc_max(tcp->snd_cwnd - tcp->snd_cwnd / 4, 2); }

// A timeout: right after its ssthresh(), cwnd not yet reduced. The end of a recovery: cwnd is ssthresh unless it was undone.
// CC_TX_START is not looked at: base survives idle times.
CC_INLINE void vegas_cwnd_event(struct cc_tcp *tcp, cc_u32 event) {
	if (event == CC_EVENT_LOSS) {
		tcp->snd_ssthresh = cc_max(tcp->snd_cwnd / 2, 2);
	} else if (event == CC_COMPLETE_CWR && tcp->snd_cwnd == tcp->snd_ssthresh) {
		tcp->snd_ssthresh = 2;
	}
}

// What was sampled before a recovery says nothing about the round trip after it.
CC_INLINE void vegas_set_state(struct vegas *st, struct cc_tcp *tcp, cc_u32 new_state) {
	if (new_state == CC_OPEN || new_state == CC_LOSS) {
		st->sum_rtt_us = 0;
		st->rtt_count = 0;
		st->beg_snd_nxt = tcp->snd_nxt;
		tcp->snd_cwnd_cnt = 0;
	}
	if (new_state == CC_RECOVERY || new_state == CC_CWR)
		st->increase = VEGAS_STAY;
	// Every timeout, also one within a recovery, which is told by no event.
	if (new_state == CC_LOSS) {
		st->increase = VEGAS_SLOW_START;
		st->grow_this_rtt = 1;
	}
}

#ifdef CC_SENDER_vegas
#define CC_STATE struct vegas
#define CC_DEFAULTS {.alpha = 1, .beta = 3, .gamma = 1}
#define CC_INIT vegas_init
#define CC_SSTHRESH(st, tcp) vegas_ssthresh(tcp)
#define CC_CONG_AVOID(st, tcp, acked) vegas_cong_avoid(st, tcp, acked, &(tcp)->params)
#define CC_PKTS_ACKED(st, tcp) vegas_pkts_acked(st, (tcp)->rtt_us)
#define CC_SET_STATE vegas_set_state
#define CC_CWND_EVENT(st, tcp, event) vegas_cwnd_event(tcp, event)
#endif

#endif
