// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The base algorithm of ENA over SACK: Reno's growth, and the window of RFC 6675 in recovery.
//
// The window goes to ssthresh at once, and sending waits until what is in flight has fallen below it; the kernel's
// scoreboard says what is lost. NOT the variant `sack`, where PRR (RFC 6937) brings the window down packet by packet: a
// congestion control that owns its window in recovery, as ENA's does, has no PRR.
#ifndef FAIRLANE_CC_ENA_SACK_H
#define FAIRLANE_CC_ENA_SACK_H

#include "ena.h"

struct ena_sack {
	cc_u32 snd_una;	    // as of the last ACK
	cc_u32 in_recovery; // its first ACK was seen
};

CC_INLINE void ena_sack_init(struct ena_sack *st, const struct cc_tcp *tcp) {
	st->snd_una = tcp->snd_una;
	st->in_recovery = 0;
}

// Every ACK (Linux: cong_control).
CC_INLINE void ena_sack_on_ack(struct ena_sack *st, struct cc_tcp *tcp) {
	int new_data_acked = st->snd_una != tcp->snd_una;

	st->snd_una = tcp->snd_una;
	if (tcp->ca_state == CC_RECOVERY) {
		if (!st->in_recovery || !tcp->retrans_out) // room for the retransmission itself
			tcp->snd_cwnd = cc_max(tcp->snd_ssthresh, tcp->in_flight + 1);
		else
			tcp->snd_cwnd = tcp->snd_ssthresh;
		st->in_recovery = 1;
		tcp->snd_cwnd_cnt = 0;
		return;
	}
	if (tcp->ca_state == CC_CWR) { // a drop on the sender's own interface: Linux only
		tcp->snd_cwnd = cc_min(tcp->snd_cwnd, cc_max(tcp->snd_ssthresh, 2));
		return;
	}
	if (st->in_recovery && tcp->ca_state != CC_LOSS)
		tcp->snd_cwnd = cc_min(cc_max(tcp->snd_cwnd, tcp->snd_ssthresh), cc_max(tcp->snd_ssthresh, 2));
	st->in_recovery = 0;
	reno_cong_avoid(tcp, new_data_acked);
}

#ifdef CC_SENDER_ena_sack
#define CC_STATE struct ena_sack
#define CC_INIT(st, tcp) ena_sack_init(st, tcp)
#define CC_CONG_CONTROL(st, tcp) ena_sack_on_ack(st, tcp)
#endif

#endif
