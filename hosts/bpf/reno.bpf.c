// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_reno: the papers' TCP Reno (Jacobson 1990, ns-2's Agent/TCP/Reno) as a struct_ops congestion control.
//
// It owns the window in recovery through cong_control, so the kernel's PRR (RFC 6937) is not at work.
// What it is not: see ../cc/reno_recovery.h.
#include "../cc/reno_recovery.h"

struct fl_algorithm {
	struct reno reno;
};
#include "tcp_core.bpf.h"

char _license[] SEC("license") = "Dual MIT/GPL";

SEC("struct_ops/init")
void BPF_PROG(fl_init, struct sock *sk) {
	struct cc_tcp tcp;

	fl_start(sk, &tcp);
	reno_init(&fl_priv(sk)->alg.reno, &tcp);
	fl_close(sk, &tcp);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(fl_ssthresh, struct sock *sk) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	return fl_remember_ssthresh(sk, reno_ssthresh(&tcp));
}

// Only the first argument is read: the others changed in 6.10.
SEC("struct_ops/cong_control")
void BPF_PROG(fl_cong_control, struct sock *sk) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	reno_on_ack(&fl_priv(sk)->alg.reno, &tcp);
	fl_close(sk, &tcp);
}

// Never called beside cong_control; kernels before 6.0 refuse to register without it.
SEC("struct_ops/cong_avoid")
void BPF_PROG(fl_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {}

SEC("struct_ops/set_state")
void BPF_PROG(fl_set_state, struct sock *sk, __u8 new_state) {
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	reno_set_state(&fl_priv(sk)->alg.reno, &tcp, new_state);
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
	.cong_control = (void *)fl_cong_control,
	.cong_avoid = (void *)fl_cong_avoid,
	.set_state = (void *)fl_set_state,
	.undo_cwnd = (void *)fl_undo_cwnd,
	.name = FL_STRINGIFY(FL_NAME),
	.flags = TCP_CONG_NON_RESTRICTED,
};
