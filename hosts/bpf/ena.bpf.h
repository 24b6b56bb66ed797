// SPDX-License-Identifier: GPL-2.0-only OR MIT
// ENA around a base algorithm: the hooks of struct_ops.bpf.h that ask ../cc/ena.h first.
//
// The includer has `struct fl_algorithm` with a member `ena` (struct ena_sender) and defines, each as there:
//   ENA_BASE_INIT(st, tcp)   ENA_BASE_ON_ACK(st, tcp)   ENA_BASE_SET_STATE(st, tcp, state)
// What the receiver named comes from the host program `ena` through the socket's storage. A host without the program
// has no names: then this is the base algorithm.
#ifndef FAIRLANE_BPF_ENA_H
#define FAIRLANE_BPF_ENA_H

#define HOST_SLOT_OF_SOCKET_ONLY
#include "programs/ena_socket.bpf.h"

#include "tcp_core.bpf.h"

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

// 1: the window is settled.
static __always_inline int ena_hook_on_ack(struct sock *sk, struct ena_sender *st, struct cc_tcp *tcp) {
	struct ena_socket *socket = ena_socket(sk, 0);
	struct ena_sender before = *st;
	int settled;

	if (!socket)
		return 0;
	settled = ena_on_ack(st, &socket->named, tcp, fl_tcp_sock(sk)->delivered, reno_ssthresh(tcp));
	ena_count_change(socket, &before, st);
	return settled;
}

static __always_inline void ena_hook_after_base(struct sock *sk, struct cc_tcp *tcp) {
	struct ena_socket *socket = ena_socket(sk, 0);

	if (socket)
		ena_after_base(&socket->named, tcp);
}

#define FL_INIT(st, tcp)                                                                                               \
	do {                                                                                                           \
		ena_begin(sk);                                                                                         \
		ena_init(&(st)->ena, tcp);                                                                             \
		ENA_BASE_INIT(st, tcp);                                                                                \
	} while (0)
#define FL_SSTHRESH(st, tcp) ena_hook_ssthresh(sk, &(st)->ena, tcp)
#define FL_CONG_CONTROL(st, tcp)                                                                                       \
	do {                                                                                                           \
		if (!ena_hook_on_ack(sk, &(st)->ena, tcp)) {                                                           \
			ENA_BASE_ON_ACK(st, tcp);                                                                      \
			ena_hook_after_base(sk, tcp);                                                                  \
		}                                                                                                      \
	} while (0)
#define FL_SET_STATE(st, tcp, state) ENA_BASE_SET_STATE(st, tcp, state)

#include "struct_ops.bpf.h"

#endif
