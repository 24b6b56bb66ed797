// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The struct_ops programs around an algorithm of ../cc: the last include of each congestion control's file.
//
// A congestion control is its algorithm's header, `struct fl_algorithm` (its state), "tcp_core.bpf.h", those of the
// hooks below that it has, and this file. In a hook, `st` is its struct fl_algorithm *, `tcp` its struct cc_tcp *,
// and the BPF program's `sk` is in scope. What a hook leaves undefined does what stands beside it:
//   FL_INIT(st, tcp)                nothing
//   FL_SSTHRESH(st, tcp)            half the window (reno_ssthresh)
//   FL_CONG_CONTROL(st, tcp)        no cong_control: the kernel's PRR owns the window in recovery
//   FL_CONG_AVOID(st, tcp, acked)   Reno's growth; not called beside cong_control
//   FL_PKTS_ACKED(st, tcp, sample)  nothing; sample->rtt_us, sample->pkts_acked
//   FL_SET_STATE(st, tcp, state)    nothing
//   FL_CWND_EVENT(st, tcp, event)   nothing
//   FL_UNDO_CWND(st, tcp)           the window before the reduction (reno_undo_cwnd)
// Each program goes through fl_open(): where nothing is to be decided, it puts right what a skipped callback left.
#ifndef FAIRLANE_BPF_STRUCT_OPS_H
#define FAIRLANE_BPF_STRUCT_OPS_H

#include "../cc/reno.h"

#ifndef FL_INIT
#define FL_INIT(st, tcp) (void)(tcp)
#endif
#ifndef FL_SSTHRESH
#define FL_SSTHRESH(st, tcp) reno_ssthresh(tcp)
#endif
#ifndef FL_CONG_AVOID
#define FL_CONG_AVOID(st, tcp, acked) reno_cong_avoid(tcp, acked)
#endif
#ifndef FL_PKTS_ACKED
#define FL_PKTS_ACKED(st, tcp, sample) (void)(tcp)
#endif
#ifndef FL_SET_STATE
#define FL_SET_STATE(st, tcp, state) (void)(tcp)
#endif
#ifndef FL_UNDO_CWND
#define FL_UNDO_CWND(st, tcp) reno_undo_cwnd(tcp)
#endif

char _license[] SEC("license") = "Dual MIT/GPL";

static __always_inline struct fl_algorithm *fl_algorithm(struct sock *sk) { return &fl_priv(sk)->alg; }

SEC("struct_ops/init")
void BPF_PROG(fl_init, struct sock *sk) {
	struct fl_algorithm *st __attribute__((unused)) = fl_algorithm(sk);
	struct cc_tcp tcp;

	fl_start(sk, &tcp);
	FL_INIT(st, &tcp);
	fl_close(sk, &tcp);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(fl_ssthresh, struct sock *sk) {
	struct fl_algorithm *st __attribute__((unused)) = fl_algorithm(sk);
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	return fl_remember_ssthresh(sk, FL_SSTHRESH(st, &tcp));
}

#ifdef FL_CONG_CONTROL
// Only the first argument is read: the others changed in 6.10.
SEC("struct_ops/cong_control")
void BPF_PROG(fl_cong_control, struct sock *sk) {
	struct fl_algorithm *st __attribute__((unused)) = fl_algorithm(sk);
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	FL_CONG_CONTROL(st, &tcp);
	fl_close(sk, &tcp);
}

// Never called beside cong_control; kernels before 6.0 refuse to register without it.
SEC("struct_ops/cong_avoid")
void BPF_PROG(fl_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {}
#else
SEC("struct_ops/cong_avoid")
void BPF_PROG(fl_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {
	struct fl_algorithm *st __attribute__((unused)) = fl_algorithm(sk);
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	FL_CONG_AVOID(st, &tcp, acked);
	fl_close(sk, &tcp);
}
#endif

SEC("struct_ops/pkts_acked")
void BPF_PROG(fl_pkts_acked, struct sock *sk, const struct ack_sample *sample) {
	struct fl_algorithm *st __attribute__((unused)) = fl_algorithm(sk);
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	FL_PKTS_ACKED(st, &tcp, sample);
	fl_close(sk, &tcp);
}

SEC("struct_ops/set_state")
void BPF_PROG(fl_set_state, struct sock *sk, __u8 new_state) {
	struct fl_algorithm *st __attribute__((unused)) = fl_algorithm(sk);
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	FL_SET_STATE(st, &tcp, new_state);
	fl_close(sk, &tcp);
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(fl_cwnd_event, struct sock *sk, int event) {
	struct fl_algorithm *st __attribute__((unused)) = fl_algorithm(sk);
	struct cc_tcp tcp;

#ifdef FL_CWND_EVENT
	fl_open(sk, &tcp);
	FL_CWND_EVENT(st, &tcp, event);
#else
	if (event != CC_COMPLETE_CWR)
		return;
	fl_open(sk, &tcp);
#endif
	fl_close(sk, &tcp);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(fl_undo_cwnd, struct sock *sk) {
	struct fl_algorithm *st __attribute__((unused)) = fl_algorithm(sk);
	struct cc_tcp tcp;

	fl_open(sk, &tcp);
	return FL_UNDO_CWND(st, &tcp);
}

SEC(".struct_ops")
struct tcp_congestion_ops FL_NAME = {
	.init = (void *)fl_init,
	.ssthresh = (void *)fl_ssthresh,
#ifdef FL_CONG_CONTROL
	.cong_control = (void *)fl_cong_control,
#endif
	.cong_avoid = (void *)fl_cong_avoid,
	.pkts_acked = (void *)fl_pkts_acked,
	.set_state = (void *)fl_set_state,
	.cwnd_event = (void *)fl_cwnd_event,
	.undo_cwnd = (void *)fl_undo_cwnd,
	.name = FL_STRINGIFY(FL_NAME),
	.flags = TCP_CONG_NON_RESTRICTED,
};

#endif
