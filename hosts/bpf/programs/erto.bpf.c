// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Host program `erto`: the first three timeouts in a row send the next new segment instead of the head (E-RTO).
//
//   timer fires ── RTO_CB: new data, and the peer takes it? ──yes── armed {head's sequence number}
//   kernel enters Loss (cwnd 1, all lost), retransmits the head
//     └─ cgroup_skb/egress sees the armed number: dropped; TCP gets EPERM and does not count it as in flight
//   RETRANS_CB with that error: nothing is in flight, so TCP_NODELAY pushes exactly one new segment
// The kernel's F-RTO then judges by the ACKs; ../../cc/erto.h keeps the window still meanwhile. The new segment must leave
// after the kernel has entered Loss: before, it would lie below high_seq and its ACK would pass for the old data's.
// This order of calls is no promise of the kernel: `fairlane hosts check` tries it on the running one.
//
// Only for sockets whose congestion control asks for it (host_sender.bpf.h). An ordinary timeout without new data, with a window that takes none, within a recovery (F-RTO would not judge), and from the fourth on.
#include "../kernel.bpf.h"

#include <bpf/bpf_endian.h>

#include "host_sender.bpf.h"
#include "host_slot.bpf.h"

#define TCP_NODELAY 1
#define ERTO_TIMEOUTS 3
#define CA_RECOVERY 3
#define PROTOCOL_TCP 6
#define IPV6_HEADER_BYTES 40

enum { ERTO_PROBES, ERTO_ORDINARY };

SEC("license") char _license[] = "Dual MIT/GPL";

struct timeout {
	__u32 armed;   // the head's retransmission is to be dropped
	__u32 probing; // the newest timeout sent new data, and nothing was retransmitted since
	__u32 snd_una; // the head, bytes
	__u32 segs_in; // segments received until then: the retransmission is the timer's, not an ACK's
};

SEC(".maps") struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct timeout);
} timeouts;

// Data to send, and the peer's window takes a segment of it (or all there is).
static __always_inline int may_send_new_data(const struct tcp_sock *tp) {
	__u32 unsent = tp->write_seq - tp->snd_nxt, room = tp->snd_una + tp->snd_wnd - tp->snd_nxt;
	__u32 segment = unsent < tp->mss_cache ? unsent : tp->mss_cache;

	return (__s32)unsent > 0 && (__s32)room >= (__s32)segment;
}

static __always_inline void on_timeout(struct bpf_sock_ops *skops, struct bpf_sock *sk) {
	const struct tcp_sock *tp = (const struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	struct timeout *timeout;
	__u32 before = skops->args[0]; // timeouts in a row before this one
	int applies;

	if (!tp || !sender_asks(skops, PROGRAM_ERTO))
		return;
	timeout = bpf_sk_storage_get(&timeouts, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!timeout)
		return;
	if (before == 0)
		applies = BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_state) < CA_RECOVERY;
	else
		applies = before < ERTO_TIMEOUTS && timeout->probing && timeout->snd_una == tp->snd_una;
	timeout->armed = applies && may_send_new_data(tp);
	timeout->probing = timeout->armed;
	timeout->snd_una = tp->snd_una;
	timeout->segs_in = tp->segs_in;
	if (!timeout->armed)
		host_count(host_slot_number(), ERTO_ORDINARY);
}

static __always_inline void push_one_segment(struct bpf_sock_ops *skops) {
	int was = 1, on = 1, off = 0;

	bpf_getsockopt(skops, SOL_TCP, TCP_NODELAY, &was, sizeof(was));
	bpf_setsockopt(skops, SOL_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!was)
		bpf_setsockopt(skops, SOL_TCP, TCP_NODELAY, &off, sizeof(off));
}

static __always_inline void on_retransmission(struct bpf_sock_ops *skops, struct bpf_sock *sk) {
	struct timeout *timeout = bpf_sk_storage_get(&timeouts, sk, 0, 0);

	if (!timeout)
		return;
	if (timeout->armed && skops->args[0] == timeout->snd_una && (__s32)skops->args[2] < 0) {
		timeout->armed = 0;
		host_count(host_slot_number(), ERTO_PROBES);
		push_one_segment(skops);
	} else {
		timeout->armed = 0;
		timeout->probing = 0;
	}
}

SEC("sockops")
int erto_sockops(struct bpf_sock_ops *skops) {
	struct bpf_sock *sk = skops->sk; // once: a second read is "or null" again for the verifier
	int flags = BPF_SOCK_OPS_RTO_CB_FLAG | BPF_SOCK_OPS_RETRANS_CB_FLAG;

	if (!sk)
		return 1;
	switch (skops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		bpf_sock_ops_cb_flags_set(skops, skops->bpf_sock_ops_cb_flags | flags);
		break;
	case BPF_SOCK_OPS_RTO_CB:
		on_timeout(skops, sk);
		break;
	case BPF_SOCK_OPS_RETRANS_CB:
		on_retransmission(skops, sk);
		break;
	}
	return 1;
}

// False when it is no TCP segment.
static __always_inline int read_seq(struct __sk_buff *skb, __u32 *seq) {
	__u8 first, protocol;
	__u32 transport;
	__be32 raw;

	if (bpf_skb_load_bytes(skb, 0, &first, 1))
		return 0;
	if (first >> 4 == 4) {
		transport = (first & 0xf) * 4;
		if (bpf_skb_load_bytes(skb, 9, &protocol, 1))
			return 0;
	} else {
		transport = IPV6_HEADER_BYTES; // with extension headers it is not ours
		if (bpf_skb_load_bytes(skb, 6, &protocol, 1))
			return 0;
	}
	if (protocol != PROTOCOL_TCP || bpf_skb_load_bytes(skb, transport + 4, &raw, sizeof(raw)))
		return 0;
	*seq = bpf_ntohl(raw);
	return 1;
}

SEC("cgroup_skb/egress")
int erto_egress(struct __sk_buff *skb) {
	struct bpf_sock *sk = skb->sk;
	struct bpf_tcp_sock *tcp;
	struct timeout *timeout;
	__u32 seq;

	if (!sk)
		return 1;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return 1;
	timeout = bpf_sk_storage_get(&timeouts, sk, 0, 0);
	if (!timeout || !timeout->armed || !read_seq(skb, &seq) || seq != timeout->snd_una)
		return 1;
	tcp = bpf_tcp_sock(sk);
	return !tcp || tcp->segs_in != timeout->segs_in; // 0: drop
}
