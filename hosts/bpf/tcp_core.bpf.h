// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The way from the kernel's structures (kernel.bpf.h) to struct cc_tcp, and back. sender.bpf.c defines the sender's private
// state, `struct fl_algorithm`, and uses fl_open()/fl_close() around each call.
#ifndef FAIRLANE_BPF_TCP_CORE_H
#define FAIRLANE_BPF_TCP_CORE_H

#include "kernel.bpf.h"

#include "../cc/guard.h"
#include "../cc/hooks.h"

#define FL_STRINGIFY_(x) #x
#define FL_STRINGIFY(x) FL_STRINGIFY_(x)
#define FL_UNEARNED_CWND 32768u // NSS_CWND of ../cc/nss.h

#ifdef FL_ALPHA
static const struct cc_params fl_params = {.alpha = FL_ALPHA, .beta = FL_BETA, .gamma = FL_GAMMA};
#else
static const struct cc_params fl_params = CC_DEFAULTS;
#endif

// What a sender that estimates a bandwidth says of its connection (TCP_CC_INFO). Only one that is built into a kernel: struct_ops
// have no get_info.
#if defined(CC_BW_EST) && defined(__KERNEL__)
#define FL_UNDONE 1
struct fl_undone { // switch/crates/guest/src/records.rs reads it
	__u32 timeouts;
	__u32 bw_est_pps; // at each, summed
};
#endif

// An algorithm's state and the guard's.
struct fl_priv {
	struct cc_guard guard;
#ifdef FL_UNDONE
	struct fl_undone undone;
#endif
	struct fl_algorithm alg;
};
_Static_assert(sizeof(struct fl_priv) <= FL_PRIV_BYTES, "state does not fit in icsk_ca_priv");

static __always_inline struct tcp_sock *fl_tcp_sock(struct sock *sk) { return (struct tcp_sock *)sk; }

static __always_inline struct fl_priv *fl_priv(struct sock *sk) {
	return (struct fl_priv *)fl_tcp_sock(sk)->inet_conn.icsk_ca_priv;
}

// Linux's tcp_is_cwnd_limited(); the flag is a bit field, which only BPF_CORE_READ_BITFIELD reads right.
static __always_inline __u32 fl_is_cwnd_limited(const struct tcp_sock *tp) {
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

// Fills the view and repairs what a skipped callback may have left (../cc/guard.h).
static __always_inline void fl_open(struct sock *sk, struct cc_tcp *tcp) {
	const struct tcp_sock *tp = fl_tcp_sock(sk);
	__u32 gone = tp->sacked_out + tp->lost_out, sent = tp->packets_out + tp->retrans_out;

	tcp->snd_cwnd = tp->snd_cwnd;
	tcp->snd_cwnd_cnt = tp->snd_cwnd_cnt;
	tcp->snd_ssthresh = tp->snd_ssthresh;
	tcp->snd_cwnd_clamp = tp->snd_cwnd_clamp;
	tcp->prior_cwnd = tp->prior_cwnd;
	tcp->snd_una = tp->snd_una;
	tcp->snd_nxt = tp->snd_nxt;
	tcp->high_seq = tp->high_seq;
	tcp->in_flight = sent > gone ? sent - gone : 0;
	tcp->retrans_out = tp->retrans_out;
	tcp->ca_state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	tcp->cwnd_limited = fl_is_cwnd_limited(tp);
	tcp->delivered = tp->delivered;
	tcp->delivered_ce = tp->delivered_ce;
	tcp->lost = tp->lost;
	tcp->lost_out = tp->lost_out;
	tcp->window_packets = tp->mss_cache ? tp->snd_wnd / tp->mss_cache : 0;
	tcp->app_limited = tp->app_limited;
	tcp->mss_bytes = tp->mss_cache;
	tcp->srtt_us = tp->srtt_us >> 3;
	tcp->rtt_us = -1;
	tcp->params = fl_params;
	tcp->now_ns = tp->tcp_mstamp * 1000;
	tcp->pacing_rate = sk->sk_pacing_rate;
	cc_guard_check(&fl_priv(sk)->guard, tcp);
}

static __always_inline void fl_close(struct sock *sk, const struct cc_tcp *tcp) {
	struct tcp_sock *tp = fl_tcp_sock(sk);

	tp->snd_cwnd = tcp->snd_cwnd;
	tp->snd_cwnd_cnt = tcp->snd_cwnd_cnt;
	tp->snd_ssthresh = tcp->snd_ssthresh;
	// Only in a sender that paces: the kernel lets programs write the rate since 6.0, app_limited since 6.4.
#ifdef CC_BURST
	tp->app_limited = tcp->app_limited;
#endif
#if defined(CC_BURST) || defined(FL_ENA)
	if (tcp->pacing_rate == sk->sk_pacing_rate)
		return;
	sk->sk_pacing_rate = tcp->pacing_rate;
	if (sk->sk_pacing_status == PACING_NONE)
		sk->sk_pacing_status = PACING_NEEDED;
#endif
}

static __always_inline void fl_rate_sample(const struct rate_sample *rs, struct cc_tcp *tcp) {
	tcp->rtt_us = (cc_s32)rs->rtt_us;
	tcp->rate.delivered = rs->delivered;
	tcp->rate.interval_us = (cc_s32)rs->interval_us;
	tcp->rate.prior_delivered = rs->prior_delivered;
	tcp->rate.prior_in_flight = rs->prior_in_flight;
	tcp->rate.acked_sacked = rs->acked_sacked;
	tcp->rate.losses = (cc_u32)rs->losses;
	tcp->rate.app_limited = rs->is_app_limited;
	tcp->rate.ack_delayed = rs->is_ack_delayed;
}

// A fresh connection starts at FL_INITIAL_WINDOW; one that changes its algorithm in mid-flow keeps its window, unless it
// comes from NSS, whose window nobody has earned: then it goes on with what is in flight.
static __always_inline void fl_start(struct sock *sk, struct cc_tcp *tcp) {
	*fl_priv(sk) = (struct fl_priv){0};
	fl_open(sk, tcp);
	tcp->rcv_nxt = fl_tcp_sock(sk)->rcv_nxt;
	if (tcp->snd_cwnd >= FL_UNEARNED_CWND)
		tcp->snd_cwnd = cc_max(tcp->in_flight, 2);
#ifdef FL_INITIAL_WINDOW
	if (fl_tcp_sock(sk)->data_segs_out == 0)
		tcp->snd_cwnd = FL_INITIAL_WINDOW;
#endif
}

// As a receiver of a sender that needs ECN: data came, with a mark or without.
static __always_inline void fl_open_mark(struct sock *sk, struct cc_tcp *tcp) {
	const struct tcp_sock *tp = fl_tcp_sock(sk);

	tcp->rcv_nxt = tp->rcv_nxt;
	tcp->ecn_echo = (tp->ecn_flags & TCP_ECN_DEMAND_CWR) != 0;
	tcp->ack_now = 0;
}

static __always_inline void fl_close_mark(struct sock *sk, const struct cc_tcp *tcp) {
	struct tcp_sock *tp = fl_tcp_sock(sk);

	if (tcp->ack_now) {
		if (tp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER)
			bpf_tcp_send_ack(tp, tcp->ack_before); // with the echo as it was
		tp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
	}
	if (tcp->ecn_echo)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

// What ssthresh() answered is the newest good value.
static __always_inline __u32 fl_remember_ssthresh(struct sock *sk, __u32 ssthresh) {
	fl_priv(sk)->guard.ssthresh = ssthresh;
	return ssthresh;
}

#endif
