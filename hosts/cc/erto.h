// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The congestion-control half of E-RTO (Lee & Kwon 2006): the window stands still until the timeout is judged.
//
// When the timer fires, E-RTO sends the next new segment instead of the head (host program `erto`; the simulator does it
// itself). F-RTO (RFC 5682) then finds out whether the timeout was spurious, from what the ACKs acknowledge. Without SACK
// and timestamps it needs the second one, for the first covers the head, which counts as sent twice; were the window to
// grow on it, the kernel would begin to send everything again. So the first ACK after a timeout opens nothing.
//
//   timeout (new segment out) --ACK advances: hold--> --2nd ACK advances--> spurious: undo, cwnd and ssthresh as before
//                              '--duplicate ACK--> the loss is real: retransmit, slow start
#ifndef FAIRLANE_CC_ERTO_H
#define FAIRLANE_CC_ERTO_H

#include "reno.h"

struct erto {
	cc_u32 snd_una; // as of the last ACK
	cc_u32 open;    // no ACK came since the newest timeout
	cc_u32 hold;    // this ACK is the first, and it advances: the window stays
};

CC_INLINE void erto_init(struct erto *st, const struct cc_tcp *tcp) {
	*st = (struct erto){.snd_una = tcp->snd_una, .open = 1};
}

// Every ACK, before the window grows. A probe is out where snd_nxt is beyond what was sent at the timeout, and nothing else is.
CC_INLINE void erto_pkts_acked(struct erto *st, const struct cc_tcp *tcp) {
	int advanced = reno_new_data(&st->snd_una, tcp), in_loss = tcp->ca_state == CC_LOSS;
	st->hold = in_loss && st->open && advanced && !tcp->retrans_out && cc_seq_after(tcp->snd_nxt, tcp->high_seq);
	st->open = !in_loss;
}

// Also the second and the third timeout in a row.
CC_INLINE void erto_set_state(struct erto *st, cc_u32 new_state) {
	if (new_state == CC_LOSS)
		st->open = 1;
}

CC_INLINE void erto_cong_avoid(struct erto *st, struct cc_tcp *tcp, cc_u32 acked) {
	if (!st->hold)
		reno_cong_avoid(tcp, acked);
}

#ifdef CC_SENDER_erto
#define CC_STATE struct erto
#define CC_INIT erto_init
#define CC_CONG_AVOID erto_cong_avoid
#define CC_PKTS_ACKED erto_pkts_acked
#define CC_SET_STATE(st, tcp, state) erto_set_state(st, state)
#endif

#endif
