// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The base algorithm of ENA over SACK: Reno's growth, and the window of RFC 6675 in recovery.
//
// The window goes to ssthresh at once, and sending waits until what is in flight has fallen below it; the kernel's
// scoreboard says what is lost. NOT the variant `sack`, where PRR (RFC 6937) brings the window down packet by packet: a
// congestion control that owns its window in recovery, as ENA's does, has no PRR.
#ifndef FAIRLANE_CC_RFC6675_H
#define FAIRLANE_CC_RFC6675_H

#include "reno.h"

struct rfc6675 {
	cc_u32 snd_una;	    // as of the last ACK
	cc_u32 in_recovery; // its first ACK was seen
};

CC_INLINE void rfc6675_init(struct rfc6675 *st, const struct cc_tcp *tcp) {
	*st = (struct rfc6675){.snd_una = tcp->snd_una};
}

// Every ACK (Linux: cong_control).
CC_INLINE void rfc6675_on_ack(struct rfc6675 *st, struct cc_tcp *tcp) {
	int new_data_acked = reno_new_data(&st->snd_una, tcp);

	if (tcp->ca_state == CC_RECOVERY) {
		if (!st->in_recovery || !tcp->retrans_out) // room for the retransmission itself
			tcp->snd_cwnd = cc_max(tcp->snd_ssthresh, tcp->in_flight + 1);
		else
			tcp->snd_cwnd = tcp->snd_ssthresh;
		st->in_recovery = 1;
		tcp->snd_cwnd_cnt = 0;
		return;
	}
	if (reno_in_cwr(tcp))
		return;
	if (st->in_recovery && tcp->ca_state != CC_LOSS)
		reno_leave_recovery(tcp);
	st->in_recovery = 0;
	reno_cong_avoid(tcp, new_data_acked);
}

#ifdef CC_SENDER_rfc6675
#define CC_STATE struct rfc6675
#define CC_INIT rfc6675_init
#define CC_CONG_CONTROL rfc6675_on_ack
#define CC_ENA 1
#endif

#endif
