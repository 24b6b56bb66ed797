// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The defence against a kernel that entered a recovery without asking the BPF program.
//
// A struct_ops program that the kernel skips leaves stale stack where its answer should be: ssthresh is garbage, and cwnd follows
// it (6e8 was seen). Two kinds of kernels skip programs:
//   - Linux before 6.1, where a softirq calls a program that a task on the same CPU is running (mended by commit 64696c40d03c,
//     "bpf: Add __bpf_prog_{enter,exit}_struct_ops for struct_ops trampoline");
//   - kernels whose operator patched __bpf_prog_enter(). That of the virtual machine on which we measured (6.18.44) returns 0
//     while a thread of process 1 is current: 3 of 829 recoveries of two flows with 1 % loss. Nothing counts these skips.
// The functions here put back what Reno would have answered (half of the window before), or the last good value; a
// sane window is never touched. They run at the next ACK: until then the window is open, and all that waits in the
// send buffer has left (36 to 1611 packets were seen).
#ifndef FAIRLANE_CC_GUARD_H
#define FAIRLANE_CC_GUARD_H

#include "tcp.h"

#define CC_SANE_SSTHRESH 10000000u // larger and not infinite: garbage
#define CC_SANE_CWND 1000000u      // packets
#define CC_FALLBACK_SSTHRESH 2u

struct cc_guard {
	cc_u32 ssthresh; // last good value, 0 before the first
	cc_u32 repairs;  // how often something was put back
};

CC_INLINE int cc_ssthresh_is_sane(cc_u32 ssthresh) {
	return ssthresh == CC_INFINITE_SSTHRESH || (ssthresh > 0 && ssthresh <= CC_SANE_SSTHRESH);
}

CC_INLINE cc_u32 cc_guard_ssthresh(const struct cc_guard *guard, const struct cc_tcp *tcp) {
	if (tcp->prior_cwnd > 0 && tcp->prior_cwnd <= CC_SANE_CWND)
		return cc_max(tcp->prior_cwnd / 2, 2);
	return guard->ssthresh && guard->ssthresh != CC_INFINITE_SSTHRESH ? guard->ssthresh : CC_FALLBACK_SSTHRESH;
}

CC_INLINE void cc_guard_check(struct cc_guard *guard, struct cc_tcp *tcp) {
	if (!cc_ssthresh_is_sane(tcp->snd_ssthresh)) {
		tcp->snd_ssthresh = cc_guard_ssthresh(guard, tcp);
		guard->repairs++;
	} else {
		guard->ssthresh = tcp->snd_ssthresh;
	}
	if (tcp->snd_cwnd > CC_SANE_CWND || tcp->snd_cwnd == 0) {
		tcp->snd_cwnd = cc_ssthresh_is_sane(tcp->snd_ssthresh) && tcp->snd_ssthresh <= CC_SANE_CWND
					? tcp->snd_ssthresh
					: CC_FALLBACK_SSTHRESH;
		tcp->snd_cwnd_cnt = 0;
		guard->repairs++;
	}
}

#endif
