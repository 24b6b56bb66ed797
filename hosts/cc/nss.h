// SPDX-License-Identifier: GPL-2.0-only OR MIT
// FastTCP's NSS, no slow start: cwnd never limits, at the start, after a loss or after a timeout; the receiver's advertised
// window alone does. Loss recovery is the runtime's own: what is found lost goes out again at once.
//
// The FastTCP paper's NCA is nca.h; its ORG (NewReno with IW 2), FST1 (a duplicate-ACK threshold of 1) and MRTO (RTO near
// the RTT) are settings, not windows: rows of fairlane_hosts/variants.py.
#ifndef FAIRLANE_CC_NSS_H
#define FAIRLANE_CC_NSS_H

#include "reno.h"

// Packets: 17 MB of 536 bytes, above what Linux's socket buffers hold. Not more: Linux sizes the send buffer by
// 2 * cwnd * (bytes of a packet in memory, 17 KB for jumbo frames) in an int, and takes an overflow for "small".
#define NSS_CWND 32768u

// Wherever the window can have been touched.
CC_INLINE void nss_open(struct cc_tcp *tcp) {
	tcp->snd_cwnd = cc_min(NSS_CWND, tcp->snd_cwnd_clamp);
	tcp->snd_cwnd_cnt = 0;
	tcp->snd_ssthresh = NSS_CWND;
}

CC_INLINE cc_u32 nss_ssthresh(const struct cc_tcp *tcp) {
	(void)tcp;
	return NSS_CWND;
}

CC_INLINE cc_u32 nss_undo_cwnd(const struct cc_tcp *tcp) { return cc_min(NSS_CWND, tcp->snd_cwnd_clamp); }

#ifdef CC_SENDER_nss
#define CC_STATE struct cc_no_state
#define CC_INIT(st, tcp) nss_open(tcp)
#define CC_SSTHRESH(st, tcp) nss_ssthresh(tcp)
#define CC_CONG_CONTROL(st, tcp) nss_open(tcp)
#define CC_SET_STATE(st, tcp, state) nss_open(tcp)
#define CC_CWND_EVENT(st, tcp, event) nss_open(tcp)
#define CC_UNDO_CWND(st, tcp) nss_undo_cwnd(tcp)
#endif

#endif
