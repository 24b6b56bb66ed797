// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Reno's growth (RFC 5681) over the kernel's own recovery: NewReno with tcp_sack=0, SACK with tcp_sack=1.
//
// With tcp_sack=0 the kernel repairs one hole per partial ACK, as RFC 6582 has it. Several variants are this program
// under another name, told apart by their sysctls: fl_newreno, fl_sack, fl_org, fl_fst1, fl_frto, fl_mrto.
// NOT RFC 6582 in the window during recovery: the kernel's PRR (RFC 6937) brings cwnd down to ssthresh.
struct fl_algorithm {
	unsigned int unused;
};
#include "tcp_core.bpf.h"

#include "struct_ops.bpf.h"
