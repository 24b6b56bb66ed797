// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Vegas as Linux's tcp_vegas behaves, written from its behaviour, to stand beside the paper's in vegas.h.
//
// Differences from vegas.h: diff = cwnd * (rtt - base) / base, truncated, with rtt the smallest of the round trip;
// at two samples or fewer it grows as Reno; slow start grows every round trip and leaves by cwnd = target + 1;
// leaving idle (TX_START, CWND_RESTART) and every recovery restart the measurement, TX_START forgets base as well;
// a loss halves the window. Default alpha, beta, gamma are 2, 4, 1.
// NOT a copy of the kernel's file and not tested against it packet by packet.
#ifndef FAIRLANE_CC_VEGAS_LINUX_H
#define FAIRLANE_CC_VEGAS_LINUX_H

#include "reno_linux.h"
#include "vegas.h"

#define VEGAS_LINUX_FEW_SAMPLES 2u

struct vegas_linux {
	cc_u32 enabled;     // 0 outside of Open: Reno's growth
	cc_u32 beg_snd_nxt;
	cc_u32 rtt_count;
	cc_u32 min_rtt_us;  // of this round trip
	cc_u32 base_rtt_us; // since the last init
};

CC_INLINE void vegas_linux_enable(struct vegas_linux *st, const struct cc_tcp *tcp) {
	st->enabled = 1;
	st->beg_snd_nxt = tcp->snd_nxt;
	st->rtt_count = 0;
	st->min_rtt_us = CC_NO_RTT;
}

CC_INLINE void vegas_linux_init(struct vegas_linux *st, const struct cc_tcp *tcp) {
	st->base_rtt_us = CC_NO_RTT;
	vegas_linux_enable(st, tcp);
}

CC_INLINE void vegas_linux_pkts_acked(struct vegas_linux *st, cc_s32 rtt_us) {
	if (rtt_us < 0)
		return;
	cc_u32 sample_us = (cc_u32)rtt_us + 1; // never zero
	st->base_rtt_us = cc_min(st->base_rtt_us, sample_us);
	st->min_rtt_us = cc_min(st->min_rtt_us, sample_us);
	st->rtt_count++;
}

CC_INLINE void vegas_linux_set_state(struct vegas_linux *st, const struct cc_tcp *tcp, cc_u32 new_state) {
	if (new_state == CC_OPEN)
		vegas_linux_enable(st, tcp);
	else
		st->enabled = 0;
}

CC_INLINE void vegas_linux_cwnd_event(struct vegas_linux *st, const struct cc_tcp *tcp, cc_u32 event) {
	if (event == CC_TX_START || event == CC_CWND_RESTART)
		vegas_linux_init(st, tcp);
}

CC_INLINE void vegas_linux_once_per_rtt(struct vegas_linux *st, struct cc_tcp *tcp, cc_u32 acked,
					const struct cc_params *params) {
	cc_u32 rtt_us = st->min_rtt_us, base_us = st->base_rtt_us;
	cc_u64 diff = (cc_u64)tcp->snd_cwnd * (rtt_us - base_us) / base_us;
	if (cc_in_slow_start(tcp)) {
		if (diff > params->gamma) {
			cc_u32 target = (cc_u32)((cc_u64)tcp->snd_cwnd * base_us / rtt_us);
			tcp->snd_cwnd = cc_min(tcp->snd_cwnd, target + 1);
			tcp->snd_ssthresh = cc_min(tcp->snd_ssthresh, cc_max(tcp->snd_cwnd, 3) - 1);
		} else {
			reno_slow_start_packets(tcp, &acked);
		}
	} else if (diff > params->beta) {
		tcp->snd_cwnd--;
		tcp->snd_ssthresh = cc_min(tcp->snd_ssthresh, cc_max(tcp->snd_cwnd, 3) - 1);
	} else if (diff < params->alpha) {
		tcp->snd_cwnd++;
	}
	tcp->snd_cwnd = cc_min(cc_max(tcp->snd_cwnd, 2), tcp->snd_cwnd_clamp);
	tcp->snd_ssthresh = cc_max(tcp->snd_ssthresh, (tcp->snd_cwnd >> 1) + (tcp->snd_cwnd >> 2));
}

CC_INLINE void vegas_linux_cong_avoid(struct vegas_linux *st, struct cc_tcp *tcp, cc_u32 acked,
				      const struct cc_params *params) {
	if (!st->enabled) {
		reno_cong_avoid_packets(tcp, acked);
		return;
	}
	if (cc_seq_after(tcp->snd_una, st->beg_snd_nxt)) {
		st->beg_snd_nxt = tcp->snd_nxt;
		if (st->rtt_count <= VEGAS_LINUX_FEW_SAMPLES)
			reno_cong_avoid_packets(tcp, acked);
		else
			vegas_linux_once_per_rtt(st, tcp, acked, params);
		st->rtt_count = 0;
		st->min_rtt_us = CC_NO_RTT;
	} else if (cc_in_slow_start(tcp)) {
		reno_slow_start_packets(tcp, &acked);
	}
}

#ifdef CC_SENDER_vegas_linux
#define CC_STATE struct vegas_linux
#define CC_DEFAULTS {.alpha = 2, .beta = 4, .gamma = 1}
#define CC_INIT vegas_linux_init
#define CC_CONG_AVOID(st, tcp, acked) vegas_linux_cong_avoid(st, tcp, acked, &(tcp)->params)
#define CC_PKTS_ACKED(st, tcp) vegas_linux_pkts_acked(st, (tcp)->rtt_us)
#define CC_SET_STATE vegas_linux_set_state
#define CC_CWND_EVENT vegas_linux_cwnd_event
#endif

#endif
