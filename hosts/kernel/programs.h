// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Host programs that are built into a kernel: what libbpf's headers are for BPF. `make kernel` puts this file in their place;
// ../bpf/programs is compiled as it is. Helpers are the kernel's own; maps are found by their names (programs.c).
#ifndef FAIRLANE_KERNEL_PROGRAMS_H
#define FAIRLANE_KERNEL_PROGRAMS_H

#include "kernel.bpf.h"

#include <linux/bpf.h>

// ---- maps ------------------------------------------------------------------------------------------------------------

#define __uint(name, number) int(*name)[number]
#define __type(name, what) typeof(what) *name
#define FL_NUMBER(pointer) (sizeof(*(pointer)) / sizeof(int))

void *fl_element(const char *name, size_t bytes, u32 entries, u32 index);
void *fl_storage(const char *name, struct sock *sk, u64 flags);

#define bpf_map_lookup_elem(map, key)                                                                                  \
	((typeof((map)->value))fl_element(#map, sizeof(*(map)->value), FL_NUMBER((map)->max_entries), *(key)))
#define bpf_sk_storage_get(map, sk, value, flags) fl_storage(#map, (struct sock *)(sk), flags)

// ---- contexts --------------------------------------------------------------------------------------------------------

struct fl_sock_ops {
	u32 op;
	u32 args[4];
	struct sock *sk;
	void *skb_data, *skb_data_end;
	u32 skb_len;
	u32 rcv_nxt;
	u32 bpf_sock_ops_cb_flags;
	struct bpf_sock_ops_kern *kernel;
};

#define bpf_sock_ops fl_sock_ops
#define bpf_sock sock
#define __sk_buff sk_buff
#define GSO_IS_ON(skb) skb_is_gso(skb)

// ---- helpers ---------------------------------------------------------------------------------------------------------

u64 fl_call(enum bpf_func_id id, u64 a, u64 b, u64 c, u64 d, u64 e);

#define FL_U64(value) ((u64)(unsigned long)(value))
#define FL_CALL(helper, a, b, c, d, e) fl_call(BPF_FUNC_##helper, FL_U64(a), FL_U64(b), FL_U64(c), FL_U64(d), FL_U64(e))

#define bpf_getsockopt(ops, level, name, value, len) ((int)FL_CALL(getsockopt, (ops)->kernel, level, name, value, len))
#define bpf_setsockopt(ops, level, name, value, len) ((int)FL_CALL(setsockopt, (ops)->kernel, level, name, value, len))
#define bpf_sock_ops_cb_flags_set(ops, flags) ((int)FL_CALL(sock_ops_cb_flags_set, (ops)->kernel, flags, 0, 0, 0))
#define bpf_reserve_hdr_opt(ops, len, flags) ((int)FL_CALL(reserve_hdr_opt, (ops)->kernel, len, flags, 0, 0))
#define bpf_store_hdr_opt(ops, from, len, flags) ((int)FL_CALL(store_hdr_opt, (ops)->kernel, from, len, flags, 0))
#define bpf_load_hdr_opt(ops, found, len, flags) ((int)FL_CALL(load_hdr_opt, (ops)->kernel, found, len, flags, 0))
#define bpf_skb_load_bytes(skb, offset, to, len) ((int)FL_CALL(skb_load_bytes, skb, offset, to, len, 0))
#define bpf_skb_store_bytes(skb, offset, from, len, flags) ((int)FL_CALL(skb_store_bytes, skb, offset, from, len, flags))
#define bpf_skb_change_tail(skb, len, flags) ((int)FL_CALL(skb_change_tail, skb, len, flags, 0, 0))
#define bpf_csum_diff(from, from_len, to, to_len, seed) ((s64)FL_CALL(csum_diff, from, from_len, to, to_len, seed))
#define bpf_skc_lookup_tcp(skb, tuple, len, netns, flags)                                                              \
	((struct sock *)(unsigned long)FL_CALL(skc_lookup_tcp, skb, tuple, len, netns, flags))
#define bpf_sk_release(sk) FL_CALL(sk_release, sk, 0, 0, 0, 0)
#define bpf_sk_fullsock(sk) (sk_fullsock(sk) ? (sk) : NULL)
#define bpf_skc_to_tcp_sock(sk) (sk_fullsock(sk) && (sk)->sk_protocol == IPPROTO_TCP ? tcp_sk(sk) : NULL)
#define bpf_tcp_sock(sk) fl_tcp_view(sk)

static __always_inline struct bpf_tcp_sock *fl_tcp_view(struct sock *sk) {
	static struct bpf_tcp_sock view; // one CPU, and read at once

	view.segs_in = tcp_sk(sk)->segs_in;
	return &view;
}

static __always_inline long bpf_loop(u32 rounds, long (*step)(u32, void *), void *context, u64 flags) {
	u32 i;

	for (i = 0; i < rounds; i++)
		if (step(i, context))
			return i + 1;
	return rounds;
}

#define sender_asks(ops, program) (inet_csk((ops)->sk)->icsk_ca_ops->flags >> FL_REGISTERED_SHIFT & BIT(program))
#define BPF_CORE_READ_BITFIELD_PROBED(structure, bits) ((structure)->bits)
#define bpf_htons(x) htons(x)
#define bpf_ntohs(x) ntohs(x)
#define bpf_htonl(x) htonl(x)
#define bpf_ntohl(x) ntohl(x)

#endif
