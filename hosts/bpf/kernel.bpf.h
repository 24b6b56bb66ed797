// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The few kernel structures that a congestion control touches, as BPF sees them: relocated by CO-RE.
//
// Hand-written, so no vmlinux.h is needed and one object runs on every kernel from 5.15 on. A sender that is built into a kernel
// has ../kernel/kernel.bpf.h in this file's place: the same names over the kernel's own headers.
#ifndef FAIRLANE_BPF_KERNEL_H
#define FAIRLANE_BPF_KERNEL_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

extern int LINUX_KERNEL_VERSION __kconfig;

#ifndef KERNEL_VERSION
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#endif
#define TCP_CONG_NEEDS_ECN 2
#define TCP_CONG_NON_RESTRICTED 1 // without it, a namespace's default cannot be set to the algorithm (5.13 and newer)
#define TCP_ECN_DEMAND_CWR 4 // of ecn_flags: our ACKs carry ECE
#define ICSK_ACK_TIMER 2     // of icsk_ack.pending: an ACK is delayed
#define ICSK_ACK_NOW 16
#define FL_PRIV_BYTES 104 // ICSK_CA_PRIV_SIZE

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_pacing_rate;
	__u32 sk_pacing_status;
};

struct inet_connection_sock {
	__u8 icsk_ca_state : 5;
	struct {
		__u8 pending;
	} icsk_ack;
	__u64 icsk_ca_priv[FL_PRIV_BYTES / 8];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 segs_in;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 data_segs_out;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 max_packets_out;
	__u8 is_cwnd_limited : 1;
	__u32 snd_ssthresh;
	__u32 snd_cwnd;
	__u32 snd_cwnd_cnt;
	__u32 snd_cwnd_clamp;
	__u32 prior_cwnd;
	__u32 high_seq;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 lost;
	__u32 app_limited;
	__u32 srtt_us; // times 8
	__u64 tcp_mstamp; // µs, of the newest event
	__u32 rcv_nxt;
	__u32 rcv_wup;
	__u32 rcv_wnd;
	__u32 write_seq;
	__u8 ecn_flags;
	__u32 mss_cache;
	__u32 snd_wnd;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
};

struct rate_sample {
	__u32 prior_delivered;
	__s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	__u32 acked_sacked;
	__u32 prior_in_flight;
	_Bool is_app_limited;
	_Bool is_ack_delayed;
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, int ev);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk); // what follows changed in 6.10: fl_rate_sample()
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
};

#pragma clang attribute pop

enum { PACING_NONE, PACING_NEEDED }; // enum sk_pacing; with the qdisc fq there is a third, which stays

// Of tcp_congestion_ops.flags: a program may have no flags of its own there.
#define FL_REGISTERED(programs) 0

// The program cong_control, which gets (sk, rs) before 6.10, (sk, ack, flag, rs) since.
#define FL_RATE_PROG(name) BPF_PROG(name, struct sock *sk)

// The rate sample among its arguments. The verifier knows the version, and so walks one branch.
static __always_inline const struct rate_sample *fl_rate_argument(const unsigned long long *ctx) {
	const struct rate_sample *rs;

	// In assembly, or the compiler makes one load of both, at an offset that the verifier does not take.
	if (LINUX_KERNEL_VERSION >= KERNEL_VERSION(6, 10, 0))
		asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(rs) : "r"(ctx));
	else
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(rs) : "r"(ctx));
	return rs;
}

#endif
