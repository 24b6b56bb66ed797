// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A sender of ../cc as a struct_ops congestion control: this file is compiled once for each row of the table of variants.
//
//   CC_HEADER       the sender's header; CC_SENDER_<its name> is defined too, for its hooks (../cc/tcp.h)
//   FL_NAME         what the kernel calls it
//   FL_ENA          with error notification around it (ena.bpf.h); FL_ENA_PLUS: ENA+ instead of the paper's
//   FL_PROGRAMS     the host programs that it asks for, a bit each (programs/host_sender.bpf.h)
//   FL_ALPHA, FL_BETA, FL_GAMMA; FL_INITIAL_WINDOW   its parameters, and its first window, where the row has them
//
// Each program goes through fl_open(): where nothing is to be decided, it puts right what a skipped callback left.
#include CC_HEADER
#include "../cc/hooks.h"

#ifdef FL_ENA
#include "../cc/ena.h"
struct fl_algorithm {
	struct ena_sender ena;
	CC_STATE base;
};
#include "tcp_core.bpf.h"
#include "ena.bpf.h"
#else
struct fl_algorithm {
	CC_STATE base;
};
#include "tcp_core.bpf.h"
#define FL_INIT(st, tcp) CC_INIT(&(st)->base, tcp)
#define FL_SSTHRESH(st, tcp) CC_SSTHRESH(&(st)->base, tcp)
#define FL_CONG_CONTROL(st, tcp) CC_CONG_CONTROL(&(st)->base, tcp)
#define FL_SET_STATE(st, tcp, state) CC_SET_STATE(&(st)->base, tcp, state)
#endif
#ifdef FL_PROGRAMS
#include "programs/host_sender.bpf.h"
#else
#define FL_PROGRAMS 0
#endif

// What each program begins with.
#define FL_BEGIN(sk)                                                                                                   \
	struct fl_algorithm *st __attribute__((unused)) = &fl_priv(sk)->alg;                                           \
	struct cc_tcp tcp;                                                                                             \
	fl_open(sk, &tcp)

SEC("license") char _license[] = "Dual MIT/GPL";

SEC("struct_ops/init")
void BPF_PROG(fl_init, struct sock *sk) {
	struct fl_algorithm *st __attribute__((unused)) = &fl_priv(sk)->alg;
	struct cc_tcp tcp;

	fl_start(sk, &tcp);
	FL_INIT(st, &tcp);
	fl_close(sk, &tcp);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(fl_ssthresh, struct sock *sk) {
	FL_BEGIN(sk);

	return fl_remember_ssthresh(sk, FL_SSTHRESH(st, &tcp));
}

#ifdef CC_CONG_CONTROL
SEC("struct_ops/cong_control")
void FL_RATE_PROG(fl_cong_control) {
	FL_BEGIN(sk);

	fl_rate_sample(fl_rate_argument(ctx), &tcp);
	FL_CONG_CONTROL(st, &tcp);
	fl_close(sk, &tcp);
}

// Never called beside cong_control; kernels before 6.0 refuse to register without it.
SEC("struct_ops/cong_avoid")
void BPF_PROG(fl_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {}
#else
SEC("struct_ops/cong_avoid")
void BPF_PROG(fl_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {
	FL_BEGIN(sk);

	CC_CONG_AVOID(&st->base, &tcp, acked);
	fl_close(sk, &tcp);
}
#endif

SEC("struct_ops/pkts_acked")
void BPF_PROG(fl_pkts_acked, struct sock *sk, const struct ack_sample *sample) {
	FL_BEGIN(sk);

	tcp.rtt_us = sample->rtt_us;
	CC_PKTS_ACKED(&st->base, &tcp);
	fl_close(sk, &tcp);
}

SEC("struct_ops/set_state")
void BPF_PROG(fl_set_state, struct sock *sk, __u8 new_state) {
	FL_BEGIN(sk);

	FL_SET_STATE(st, &tcp, new_state);
	fl_close(sk, &tcp);
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(fl_cwnd_event, struct sock *sk, int event) {
	FL_BEGIN(sk);

#if CC_NEEDS_ECN
	if (event == CC_ECN_NO_CE || event == CC_ECN_IS_CE) {
		fl_open_mark(sk, &tcp);
		CC_CWND_EVENT(&st->base, &tcp, (__u32)event);
		fl_close_mark(sk, &tcp);
		return;
	}
#endif
	CC_CWND_EVENT(&st->base, &tcp, (__u32)event);
	fl_close(sk, &tcp);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(fl_undo_cwnd, struct sock *sk) {
	FL_BEGIN(sk);

#ifdef FL_UNDONE
	if (tcp.ca_state == CC_LOSS) {
		fl_priv(sk)->undone.timeouts++;
		fl_priv(sk)->undone.bw_est_pps += CC_BW_EST(&st->base);
	}
#endif
	return CC_UNDO_CWND(&st->base, &tcp);
}

#ifdef FL_UNDONE
// getsockopt() asks for all there is. sock_diag(7) asks for attributes, and has none for this.
static size_t fl_get_info(struct sock *sk, __u32 wanted, int *attribute, union tcp_cc_info *info) {
	if (wanted != ~0u)
		return 0;
	memcpy(info, &fl_priv(sk)->undone, sizeof(struct fl_undone));
	return sizeof(struct fl_undone);
}
#endif

#ifdef CC_BURST
SEC("struct_ops/min_tso_segs")
__u32 BPF_PROG(fl_min_tso_segs, struct sock *sk) {
	FL_BEGIN(sk);

	return CC_BURST(&st->base, &tcp);
}
#endif

SEC(".struct_ops")
struct tcp_congestion_ops FL_NAME = {
	.init = (void *)fl_init,
	.ssthresh = (void *)fl_ssthresh,
#ifdef CC_CONG_CONTROL
	.cong_control = (void *)fl_cong_control,
#endif
	.cong_avoid = (void *)fl_cong_avoid,
	.pkts_acked = (void *)fl_pkts_acked,
	.set_state = (void *)fl_set_state,
	.cwnd_event = (void *)fl_cwnd_event,
	.undo_cwnd = (void *)fl_undo_cwnd,
#ifdef FL_UNDONE
	.get_info = fl_get_info,
#endif
#ifdef CC_BURST
	.min_tso_segs = (void *)fl_min_tso_segs,
#endif
	.name = FL_STRINGIFY(FL_NAME),
	.flags = TCP_CONG_NON_RESTRICTED | (CC_NEEDS_ECN ? TCP_CONG_NEEDS_ECN : 0) | FL_REGISTERED(FL_PROGRAMS),
};
