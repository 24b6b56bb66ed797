// SPDX-License-Identifier: GPL-2.0-only OR MIT
// TCP Tahoe (Jacobson 1988; ns-2's Agent/TCP): fast retransmit, then slow start from one packet. No fast recovery.
//
//   OPEN --3 dupACKs--> REPAIR (the lost packet goes out, cwnd = 1) --ACK above the loss--> OPEN, slow start to ssthresh
// After the retransmission nothing goes out on duplicate ACKs. Its ACK opens the window as slow start does, so that the
// first flight after one loss is two packets.
// NOT Tahoe after several losses in one window: Tahoe sends everything behind the loss again (go-back-N); Linux knows
// what arrived and fills one hole an ACK. The window counts these ACKs as slow start would, and opens at the last hole.
#ifndef FAIRLANE_CC_TAHOE_H
#define FAIRLANE_CC_TAHOE_H

#include "reno.h"

struct tahoe {
	cc_u32 snd_una; // as of the last ACK
	cc_u32 repair;  // a loss found by duplicate ACKs is being repaired
	cc_u32 window;  // Tahoe's own window meanwhile, packets
};

CC_INLINE void tahoe_init(struct tahoe *st, const struct cc_tcp *tcp) {
	*st = (struct tahoe){.snd_una = tcp->snd_una, .window = 1};
}

CC_INLINE void tahoe_in_recovery(struct tahoe *st, struct cc_tcp *tcp, int new_data_acked) {
	if (!st->repair) {
		st->repair = 1;
		st->window = 1;
		tcp->snd_cwnd_cnt = 0;
		tcp->snd_cwnd = tcp->in_flight + 1; // room for the retransmission itself; 1 from the next ACK on
		return;
	}
	if (new_data_acked)
		st->window = cc_min(st->window + 1, cc_max(tcp->snd_ssthresh, 2));
	if (!cc_seq_before(tcp->snd_una, tcp->high_seq)) // full ACK; the kernel waits for one above high_seq
		tcp->snd_cwnd = st->window;
	else if (new_data_acked || !tcp->retrans_out)
		tcp->snd_cwnd = tcp->in_flight + 1; // the next hole
	else
		tcp->snd_cwnd = 1;
}

// Every ACK, duplicate or not (Linux: cong_control).
CC_INLINE void tahoe_on_ack(struct tahoe *st, struct cc_tcp *tcp) {
	int new_data_acked = reno_new_data(&st->snd_una, tcp);
	if (tcp->ca_state == CC_RECOVERY) {
		tahoe_in_recovery(st, tcp, new_data_acked);
		return;
	}
	if (reno_in_cwr(tcp))
		return;
	if (st->repair && tcp->ca_state != CC_LOSS)
		tcp->snd_cwnd = st->window; // the recovery ended without its last ACK seen here
	st->repair = 0;
	reno_cong_avoid(tcp, new_data_acked);
}

// A timeout starts from one packet by itself: the kernel sets cwnd to 1.
CC_INLINE void tahoe_set_state(struct tahoe *st, struct cc_tcp *tcp, cc_u32 new_state) {
	if (new_state == CC_LOSS) {
		st->repair = 0;
		tcp->snd_cwnd_cnt = 0;
	}
}

#ifdef CC_SENDER_tahoe
#define CC_STATE struct tahoe
#define CC_INIT tahoe_init
#define CC_CONG_CONTROL tahoe_on_ack
#define CC_SET_STATE tahoe_set_state
#define CC_ENA 0
#endif

#endif
