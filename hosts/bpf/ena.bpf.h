// SPDX-License-Identifier: GPL-2.0-only OR MIT
// ENA around a base sender (the one that is compiled): the programs of sender.bpf.c ask ../cc/ena.h first.
//
// CC_ENA is 1 where the connection has SACK, else 0. FL_ENA_PLUS: ENA+ instead of the paper's. What the receiver named
// comes from the host program `ena` through the socket's storage. A host without the program has no names: then this is
// the base sender.
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

static __always_inline __u32 ena_hook_ssthresh(struct sock *sk, struct ena_sender *st, const struct cc_tcp *tcp) {
	struct ena_socket *socket = ena_socket(sk, 0);
	struct ena_sender before = *st;
	__u32 ssthresh;

	if (!socket)
		return reno_ssthresh(tcp);
	ssthresh = ena_ssthresh(st, &socket->named, tcp, reno_ssthresh(tcp));
	ena_count_change(socket, &before, st);
	return ssthresh;
}

static __always_inline void ena_pace(const struct ena_sender *st, struct cc_tcp *tcp) {
	__u64 rate = ena_pacing_rate(st, tcp);

	if (rate)
		tcp->pacing_rate = rate;
}

// 1: the window is settled.
static __always_inline int ena_hook_on_ack(struct sock *sk, struct ena_sender *st, struct cc_tcp *tcp) {
	struct ena_socket *socket = ena_socket(sk, 0);
	struct ena_sender before = *st;
	int settled;

	if (!socket)
		return 0;
	settled = ena_on_ack(st, &socket->named, tcp, reno_ssthresh(tcp));
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
		ena_init(&(st)->ena, tcp, CC_ENA);                                                                     \
		CC_INIT(&(st)->base, tcp);                                                                             \
	} while (0)
#define FL_SSTHRESH(st, tcp) ena_hook_ssthresh(sk, &(st)->ena, tcp)
#define FL_CONG_CONTROL(st, tcp)                                                                                       \
	do {                                                                                                           \
		if (!ena_hook_on_ack(sk, &(st)->ena, tcp)) {                                                           \
			__u32 before = (tcp)->snd_ssthresh;                                                            \
			CC_CONG_CONTROL(&(st)->base, tcp);                                                             \
			ena_hook_after_base(sk, tcp, before);                                                          \
		}                                                                                                      \
		ena_pace(&(st)->ena, tcp);                                                                             \
	} while (0)
#define FL_SET_STATE(st, tcp, state)                                                                                   \
	do {                                                                                                           \
		__u32 before = (tcp)->snd_ssthresh;                                                                    \
		CC_SET_STATE(&(st)->base, tcp, state);                                                                 \
		ena_hook_after_base(sk, tcp, before);                                                                  \
	} while (0)

#endif
