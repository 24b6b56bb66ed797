// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_newreno: Reno's growth (RFC 5681) over the kernel's NewReno recovery, as a struct_ops congestion control.
//
// With tcp_sack=0 the kernel repairs one hole per partial ACK, as RFC 6582 has it.
// NOT RFC 6582 in the window during recovery: the kernel's PRR (RFC 6937) brings cwnd down to ssthresh.
#include "../cc/reno.h"

struct fl_algorithm {
	cc_u32 unused;
};
#include "tcp_core.bpf.h"

char _license[] SEC("license") = "Dual MIT/GPL";

SEC("struct_ops/init")
void BPF_PROG(fl_init, struct sock *sk) {
	struct cc_tcp tcp;

	fl_start(sk, &tcp);
	fl_close(sk, &tcp);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(fl_ssthresh, struct sock *sk) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	return fl_remember_ssthresh(sk, reno_ssthresh(&tcp));
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(fl_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	reno_cong_avoid(&tcp, acked);
	fl_close(sk, &tcp);
}

// Nothing to decide in the next three: fl_open() puts right what a skipped callback left.
SEC("struct_ops/pkts_acked")
void BPF_PROG(fl_pkts_acked, struct sock *sk, const struct ack_sample *sample) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	fl_close(sk, &tcp);
}

SEC("struct_ops/set_state")
void BPF_PROG(fl_set_state, struct sock *sk, __u8 new_state) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	fl_close(sk, &tcp);
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(fl_cwnd_event, struct sock *sk, int event) {
	struct cc_tcp tcp;

	if (event != CC_COMPLETE_CWR)
		return;
	fl_open(sk, &tcp);
	fl_close(sk, &tcp);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(fl_undo_cwnd, struct sock *sk) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	return reno_undo_cwnd(&tcp);
}

SEC(".struct_ops")
struct tcp_congestion_ops FL_NAME = {
	.init = (void *)fl_init,
	.ssthresh = (void *)fl_ssthresh,
	.cong_avoid = (void *)fl_cong_avoid,
	.pkts_acked = (void *)fl_pkts_acked,
	.set_state = (void *)fl_set_state,
	.cwnd_event = (void *)fl_cwnd_event,
	.undo_cwnd = (void *)fl_undo_cwnd,
	.name = FL_STRINGIFY(FL_NAME),
	.flags = TCP_CONG_NON_RESTRICTED,
};
