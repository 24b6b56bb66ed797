// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_vegas_linux: Vegas as Linux has it (../cc/vegas_linux.h), to stand beside the paper's, as a struct_ops congestion control.
#include "../cc/vegas_linux.h"

struct fl_algorithm {
	struct vegas_linux vegas;
};
#include "tcp_core.bpf.h"

char _license[] SEC("license") = "Dual MIT/GPL";

static const struct vegas_params fl_params = {.alpha = FL_ALPHA, .beta = FL_BETA, .gamma = FL_GAMMA};

SEC("struct_ops/init")
void BPF_PROG(fl_init, struct sock *sk) {
	struct cc_tcp tcp;

	fl_start(sk, &tcp);
	vegas_linux_init(&fl_priv(sk)->alg.vegas, &tcp);
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
	vegas_linux_cong_avoid(&fl_priv(sk)->alg.vegas, &tcp, acked, &fl_params);
	fl_close(sk, &tcp);
}

SEC("struct_ops/pkts_acked")
void BPF_PROG(fl_pkts_acked, struct sock *sk, const struct ack_sample *sample) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	vegas_linux_pkts_acked(&fl_priv(sk)->alg.vegas, sample->rtt_us);
	fl_close(sk, &tcp);
}

SEC("struct_ops/set_state")
void BPF_PROG(fl_set_state, struct sock *sk, __u8 new_state) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	vegas_linux_set_state(&fl_priv(sk)->alg.vegas, &tcp, new_state);
	fl_close(sk, &tcp);
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(fl_cwnd_event, struct sock *sk, int event) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	vegas_linux_cwnd_event(&fl_priv(sk)->alg.vegas, &tcp, event);
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
