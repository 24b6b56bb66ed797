// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Gentle: Reno that gives up an eighth of its window after a loss, not half of it.
//
// fairlane's hosts/cc/tcp.h says what a sender sees (`struct cc_tcp`) and which hooks there are; what has no hook here is Reno's.
#ifndef GENTLE_H
#define GENTLE_H

#include "reno.h"

// What the sender keeps of each connection.
struct gentle {
	cc_u32 reductions;
};

// A loss was found: the new slow-start threshold, packets.
CC_INLINE cc_u32 gentle_ssthresh(struct gentle *st, const struct cc_tcp *tcp) {
	st->reductions++;
	return cc_max(tcp->snd_cwnd * 7 / 8, 2);
}

#ifdef CC_SENDER_gentle
#define CC_STATE struct gentle
#define CC_SSTHRESH(st, tcp) gentle_ssthresh(st, tcp)
#endif

#endif
