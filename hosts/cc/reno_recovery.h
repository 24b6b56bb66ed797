// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Fast recovery of Reno (Jacobson 1990; ns-2's Agent/TCP/Reno): it ends with the first ACK for new data.
//
// Linux repairs one hole per partial ACK (NewReno, RFC 6582) and only the window can hold it back. So after a partial
// ACK the window is kept at what is in flight, which stops the kernel's next retransmission, until three more duplicate
// ACKs come (then: a second fast retransmit, ssthresh halved again) or the retransmission timer runs out.
// NOT Reno in two places: new data waits too while the window is held (Reno may send it when its window allows),
// and with nothing at all in flight the window is 1, so the kernel repairs the hole instead of waiting for the timer.
//
//   OPEN --3 dupACKs--> FAST --partial ACK--> HELD --3 dupACKs--> FAST ...
//                        |                     '--timer--> LOSS (ssthresh halved)
//                        '--full ACK--> OPEN at cwnd = ssthresh
#ifndef FAIRLANE_CC_RENO_RECOVERY_H
#define FAIRLANE_CC_RENO_RECOVERY_H

#include "reno.h"

#define RENO_DUPACK_THRESHOLD 3u

enum reno_phase { RENO_NORMAL = 0, RENO_FAST = 1, RENO_HELD = 2 };

struct reno {
	cc_u32 snd_una; // as of the last ACK
	cc_u32 phase;   // enum reno_phase
	cc_u32 dupacks; // since the window is held
};

CC_INLINE void reno_init(struct reno *st, const struct cc_tcp *tcp) {
	*st = (struct reno){.snd_una = tcp->snd_una, .phase = RENO_NORMAL};
}

CC_INLINE void reno_enter_fast(struct reno *st, struct cc_tcp *tcp) {
	st->phase = RENO_FAST;
	st->dupacks = 0;
	tcp->snd_cwnd_cnt = 0;
	tcp->snd_cwnd = cc_max(tcp->snd_ssthresh, tcp->in_flight + 1); // room for the retransmission itself
}

CC_INLINE void reno_in_recovery(struct reno *st, struct cc_tcp *tcp, int new_data_acked) {
	if (!cc_seq_before(tcp->snd_una, tcp->high_seq)) { // full ACK; the kernel waits for one above high_seq
		st->phase = RENO_NORMAL;
		tcp->snd_cwnd = tcp->snd_ssthresh;
	} else if (st->phase == RENO_NORMAL) {
		reno_enter_fast(st, tcp);
	} else if (st->phase == RENO_FAST && !new_data_acked) {
		// Each duplicate ACK lowers in_flight by one: holding cwnd here is Reno's "inflate by one".
		tcp->snd_cwnd = reno_recovery_window(tcp);
	} else {
		st->dupacks = new_data_acked ? 0 : st->dupacks + 1;
		st->phase = RENO_HELD;
		if (st->dupacks >= RENO_DUPACK_THRESHOLD) {
			tcp->snd_ssthresh = cc_max(tcp->snd_ssthresh / 2, 2);
			reno_enter_fast(st, tcp);
		} else {
			tcp->snd_cwnd = cc_max(tcp->in_flight, 1);
		}
	}
}

// Every ACK, duplicate or not (Linux: cong_control).
CC_INLINE void reno_on_ack(struct reno *st, struct cc_tcp *tcp) {
	int new_data_acked = reno_new_data(&st->snd_una, tcp);
	if (tcp->ca_state == CC_RECOVERY) {
		reno_in_recovery(st, tcp, new_data_acked);
		return;
	}
	if (reno_in_cwr(tcp))
		return;
	if (st->phase != RENO_NORMAL && tcp->ca_state != CC_LOSS)
		reno_leave_recovery(tcp);
	st->phase = RENO_NORMAL;
	reno_cong_avoid(tcp, new_data_acked);
}

// The timer ran out while the window was held: the kernel sees one long recovery and does not ask for ssthresh again.
CC_INLINE void reno_set_state(struct reno *st, struct cc_tcp *tcp, cc_u32 new_state) {
	if (new_state == CC_LOSS) {
		if (st->phase == RENO_HELD)
			tcp->snd_ssthresh = cc_max(tcp->snd_ssthresh / 2, 2);
		st->phase = RENO_NORMAL;
		tcp->snd_cwnd_cnt = 0;
	}
}

#ifdef CC_SENDER_reno_recovery
#define CC_STATE struct reno
#define CC_INIT reno_init
#define CC_CONG_CONTROL reno_on_ack
#define CC_SET_STATE reno_set_state
#define CC_ENA 0
#endif

#endif
