// SPDX-License-Identifier: GPL-2.0-only OR MIT
// ENA around a base sender (the one that is compiled): the programs of sender.bpf.c ask ../cc/ena.h first.
//
// FL_ENA is 1 where the connection has SACK, else 0. What the receiver named comes from the host program `ena` through
// the socket's storage. A host without the program has no names: then this is the base sender.
#ifndef FAIRLANE_BPF_ENA_H
#define FAIRLANE_BPF_ENA_H

#define HOST_SLOT_OF_SOCKET_ONLY
#include "programs/ena_socket.bpf.h"

static __always_inline struct ena_socket *ena_socket(struct sock *sk, __u64 flags) {
	return bpf_sk_storage_get(&shared_ena, sk, 0, flags);
}

static __always_inline void ena_begin(struct sock *sk) {
	struct ena_socket *socket = ena_socket(sk, BPF_SK_STORAGE_GET_F_CREATE);

	if (socket)
		socket->is_sender = 1;
}

static __always_inline void ena_count_change(const struct ena_socket *socket, const struct ena_sender *before,
					     const struct ena_sender *now) {
	if (now->kept != before->kept)
		ena_count(socket, ENA_COUNT_KEPT);
	if (now->reduced != before->reduced)
		ena_count(socket, ENA_COUNT_REDUCED);
	if (now->allowed != before->allowed)
		ena_count(socket, ENA_COUNT_ALLOWED);
	for (__u32 i = 0; i < ENA_DEBTS_MOST; i++)
		if (now->restored - before->restored > i)
			ena_count(socket, ENA_COUNT_RESTORED);
}

static __always_inline void ena_fill_path(struct sock *sk, struct ena_path *path) {
	const struct tcp_sock *tp = fl_tcp_sock(sk);

	path->delivered = tp->delivered;
	path->lost_out = tp->lost_out;
	path->mss_bytes = tp->mss_cache;
	path->window_packets = tp->mss_cache ? tp->snd_wnd / tp->mss_cache : 0;
	path->srtt_us = tp->srtt_us >> 3;
	path->sack = FL_ENA;
}

static __always_inline __u32 ena_hook_ssthresh(struct sock *sk, struct ena_sender *st, const struct cc_tcp *tcp) {
	struct ena_socket *socket = ena_socket(sk, 0);
	struct ena_sender before = *st;
	struct ena_path path;
	__u32 ssthresh;

	if (!socket)
		return reno_ssthresh(tcp);
	ena_fill_path(sk, &path);
	ssthresh = ena_ssthresh(st, &socket->named, tcp, &path, reno_ssthresh(tcp));
	ena_count_change(socket, &before, st);
	return ssthresh;
}

static __always_inline void ena_pace(struct sock *sk, const struct ena_sender *st, struct cc_tcp *tcp) {
	struct ena_path path;
	__u64 rate;

	ena_fill_path(sk, &path);
	rate = ena_pacing_rate(st, tcp, &path);
	if (rate)
		tcp->pacing_rate = rate;
}

// 1: the window is settled.
static __always_inline int ena_hook_on_ack(struct sock *sk, struct ena_sender *st, struct cc_tcp *tcp) {
	struct ena_socket *socket = ena_socket(sk, 0);
	struct ena_sender before = *st;
	struct ena_path path;
	int settled;

	if (!socket)
		return 0;
	ena_fill_path(sk, &path);
	settled = ena_on_ack(st, &socket->named, tcp, &path, reno_ssthresh(tcp));
	ena_count_change(socket, &before, st);
	return settled;
}

static __always_inline void ena_hook_after_base(struct sock *sk, struct cc_tcp *tcp, __u32 ssthresh_before) {
	struct ena_socket *socket = ena_socket(sk, 0);

	if (socket)
		ena_after_base(&socket->named, tcp, ssthresh_before);
}

#define FL_INIT(st, tcp)                                                                                               \
	do {                                                                                                           \
		ena_begin(sk);                                                                                         \
		ena_init(&(st)->ena, tcp);                                                                             \
		CC_INIT(&(st)->base, tcp);                                                                                \
	} while (0)
#define FL_SSTHRESH(st, tcp) ena_hook_ssthresh(sk, &(st)->ena, tcp)
#define FL_CONG_CONTROL(st, tcp)                                                                                       \
	do {                                                                                                           \
		if (!ena_hook_on_ack(sk, &(st)->ena, tcp)) {                                                           \
			__u32 before = (tcp)->snd_ssthresh;                                                            \
			CC_CONG_CONTROL(&(st)->base, tcp);                                                                      \
			ena_hook_after_base(sk, tcp, before);                                                          \
		}                                                                                                      \
		ena_pace(sk, &(st)->ena, tcp);                                                                         \
	} while (0)
#define FL_SET_STATE(st, tcp, state)                                                                                   \
	do {                                                                                                           \
		__u32 before = (tcp)->snd_ssthresh;                                                                    \
		CC_SET_STATE(&(st)->base, tcp, state);                                                                    \
		ena_hook_after_base(sk, tcp, before);                                                                  \
	} while (0)

#endif
