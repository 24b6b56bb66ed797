// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Host program `ena`: Error Notification ACK in both roles (docs/concepts/ena.md draws the option).
//
//   ena_ingress (tc)   finds a corrupted segment by its checksum over the whole payload, notes its sequence number where
//                      that lies in the window, and makes an empty segment of it that the stack answers at once; where the
//                      header was hit, the gap that the segment leaves tells which it was (ena_strays.bpf.h)
//   ena (sockops)      writes the option into the ACK that answers such a segment (with `ena-lowest`: the lowest number into
//                      every ACK while rcv_nxt <= it); takes it from ACKs for senders
//   ena_egress (tc)    where timestamps and SACK blocks fill the options, the last block gives its room
// IPv4. Checksums on the wire must be real (offloads off). Not answered: fragments, IP options, segments without payload.
#include "../kernel.bpf.h"

#include "ena_checksum.bpf.h"
#include "ena_socket.bpf.h"
#include "ena_strays.bpf.h"

#include <linux/pkt_cls.h>

SEC("license") char _license[] = "Dual MIT/GPL";

#define OPTIONS_MAX 40
#define OPTION_KIND 253 // RFC 6994
#define OPTION_BYTES 8
#define OPTION_EXID_HIGH 0xeb
#define OPTION_EXID_LOW 0x0a

struct ena_option {
	__u8 kind, length, exid_high, exid_low;
	__be32 seq;
} __attribute__((packed));

static __always_inline void fill_option(struct ena_option *option, __u32 seq) {
	*option = (struct ena_option){OPTION_KIND, OPTION_BYTES, OPTION_EXID_HIGH, OPTION_EXID_LOW, bpf_htonl(seq)};
}

// ---- receiver: the segment -------------------------------------------------------------------------------------------

// The segment becomes an empty one outside the window: the stack answers such a one at once with what it has.
static __always_inline int make_question(struct __sk_buff *skb, const struct segment *s, const struct tcp_sock *tp) {
	struct {
		struct iphdr ip;
		struct tcphdr tcp;
	} packet;

	if (bpf_skb_change_tail(skb, ETH_HLEN + sizeof(packet), 0))
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, ETH_HLEN, &packet, sizeof(packet)))
		return TC_ACT_OK;
	packet.ip.tot_len = bpf_htons(sizeof(packet));
	packet.ip.check = 0;
	packet.ip.check = checksum_fold(bpf_csum_diff(0, 0, (__be32 *)&packet.ip, sizeof(packet.ip), 0));
	packet.tcp = (struct tcphdr){.source = packet.tcp.source, .dest = packet.tcp.dest, .doff = 5, .ack = 1};
	packet.tcp.seq = bpf_htonl(tp->rcv_wup - 1);
	packet.tcp.ack_seq = bpf_htonl(tp->snd_una);
	packet.tcp.window = bpf_htons(s->window);
	packet.tcp.check = checksum_fold(bpf_csum_diff(0, 0, (__be32 *)&packet.tcp, sizeof(packet.tcp),
						       pseudo_header(packet.ip.saddr, packet.ip.daddr, sizeof(packet.tcp))));
	bpf_skb_store_bytes(skb, ETH_HLEN, &packet, sizeof(packet), BPF_F_INVALIDATE_HASH);
	return TC_ACT_OK;
}

static __always_inline void name(struct ena_socket *socket, __u32 seq) {
	socket->fresh[socket->fresh_written & (ENA_FRESH - 1)] = seq;
	__sync_fetch_and_add(&socket->fresh_written, 1);
	ena_count(socket, ENA_COUNT_CORRUPTED);
}

static __always_inline struct bpf_sock *receiver_of(struct __sk_buff *skb, const struct segment *s) {
	struct bpf_sock_tuple tuple = {.ipv4 = {.saddr = s->saddr, .daddr = s->daddr, .sport = s->source, .dport = s->dest}};

	return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
}

// The header's length may itself be what was corrupted.
static __always_inline int may_hold_payload(const struct segment *s) {
	return s->payload_bytes || s->tcp_bytes > sizeof(struct tcphdr) + OPTIONS_MAX;
}

// A segment is where new data is expected, or would be if a stray had arrived: that one is named then. `rcv_high` goes
// behind it.
static __always_inline int reach(struct ena_socket *socket, const struct segment *s, const struct tcp_sock *tp) {
	if (cc_seq_before(socket->rcv_high, tp->rcv_nxt))
		socket->rcv_high = tp->rcv_nxt;
	if (s->seq - socket->rcv_high - 1 < SEGMENT_BYTES_MAX &&
	    stray_take(s->seq - socket->rcv_high + s->tcp_offset + s->tcp_header_bytes)) {
		name(socket, socket->rcv_high);
		socket->rcv_high = s->seq;
	}
	if (s->seq != socket->rcv_high)
		return 0;
	socket->rcv_high += s->payload_bytes;
	return 1;
}

static __always_inline int corrupted(struct __sk_buff *skb, const struct segment *s) {
	struct bpf_sock *sk = receiver_of(skb, s);
	struct ena_socket *socket;
	struct tcp_sock *tp;
	int verdict = TC_ACT_OK, is_next = 0;

	if (!sk) {
		stray_add(skb->len);
		return verdict;
	}
	socket = bpf_sk_storage_get(&shared_ena, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (socket && tp) {
		is_next = reach(socket, s, tp);
		if (s->seq - tp->rcv_nxt < tp->rcv_wup + tp->rcv_wnd - tp->rcv_nxt) {
			name(socket, s->seq);
			verdict = make_question(skb, s, tp);
		}
	}
	if (!is_next)
		stray_add(s->tcp_offset + s->tcp_bytes);
	bpf_sk_release(sk);
	return verdict;
}

static __always_inline void arrived(struct __sk_buff *skb, const struct segment *s) {
	struct bpf_sock *sk = receiver_of(skb, s);
	struct ena_socket *socket;
	struct tcp_sock *tp;

	if (!sk)
		return;
	socket = bpf_sk_storage_get(&shared_ena, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (socket && tp && !reach(socket, s, tp) && cc_seq_after(s->seq + s->payload_bytes, socket->rcv_high))
		socket->rcv_high = s->seq + s->payload_bytes;
	bpf_sk_release(sk);
}

SEC("tc")
int ena_ingress(struct __sk_buff *skb) {
	struct segment s;

	switch (parse_segment(skb, &s)) {
	case SEGMENT_BROKEN: // the stack drops it
		stray_add(skb->len);
		return TC_ACT_OK;
	case SEGMENT_NONE:
		return TC_ACT_OK;
	}
	if (!may_hold_payload(&s))
		return TC_ACT_OK;
	if (!checksum_is_right(skb, &s))
		return corrupted(skb, &s);
	if (s.payload_bytes) {
		arrived(skb, &s);
		stray_grow_old();
	}
	return TC_ACT_OK;
}

// ---- receiver: the ACK -----------------------------------------------------------------------------------------------

// The oldest one that no ACK has named yet, if it is still missing: it becomes `seq`, and `take` says that an ACK names it now.
static __always_inline int name_of_its_own(struct ena_socket *socket, __u32 rcv_nxt, int take, __u32 *seq) {
	__u32 written = socket->fresh_written;

	for (__u32 i = 0; i < ENA_FRESH && socket->fresh_taken != written; i++) {
		if (written - socket->fresh_taken > ENA_FRESH)
			socket->fresh_taken = written - ENA_FRESH;
		*seq = socket->fresh[socket->fresh_taken & (ENA_FRESH - 1)];
		if (!cc_seq_before(*seq, rcv_nxt)) {
			socket->fresh_taken += take;
			return 1;
		}
		socket->fresh_taken++;
	}
	return 0;
}

// The name that the next ACK carries; the socket's lock is held.
static __always_inline int name_to_write(struct ena_socket *socket, __u32 rcv_nxt, int take, __u32 *seq) {
	__u32 written = socket->fresh_written;

	if (!socket->names_lowest)
		return name_of_its_own(socket, rcv_nxt, take, seq);
	for (__u32 i = 0; i < ENA_FRESH && socket->fresh_taken != written; i++) {
		__u32 fresh = socket->fresh[socket->fresh_taken++ & (ENA_FRESH - 1)];

		if (!cc_seq_before(fresh, rcv_nxt))
			ena_add(&socket->corrupted, fresh);
	}
	socket->fresh_taken = written;
	return ena_to_name(&socket->corrupted, rcv_nxt, seq);
}

static __always_inline struct ena_socket *socket_of(struct bpf_sock_ops *skops, __u64 flags) {
	struct bpf_sock *sk = skops->sk; // read once: the verifier takes a second read for another pointer

	return sk ? bpf_sk_storage_get(&shared_ena, sk, 0, flags) : 0;
}

static __always_inline void reserve_room(struct bpf_sock_ops *skops) {
	struct ena_socket *socket = socket_of(skops, 0);
	__u32 seq;

	// An option beside data would make a full segment too long.
	if (!socket || skops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || skops->skb_len)
		return;
	if (name_to_write(socket, skops->rcv_nxt, 0, &seq))
		bpf_reserve_hdr_opt(skops, OPTION_BYTES, 0);
}

static __always_inline void write_option(struct bpf_sock_ops *skops) {
	struct ena_socket *socket = socket_of(skops, 0);
	struct ena_option option;
	__u32 seq;

	if (!socket || !name_to_write(socket, skops->rcv_nxt, 1, &seq))
		return;
	fill_option(&option, seq);
	bpf_store_hdr_opt(skops, &option, sizeof(option), 0);
}

// ---- sender ----------------------------------------------------------------------------------------------------------

static __always_inline void take_option(struct bpf_sock_ops *skops) {
	struct ena_socket *socket = socket_of(skops, 0);
	struct ena_option option = {.kind = OPTION_KIND, .length = 4, .exid_high = OPTION_EXID_HIGH, .exid_low = OPTION_EXID_LOW};
	struct tcphdr *tcp = skops->skb_data;

	if (!socket || !socket->is_sender || (void *)(tcp + 1) > skops->skb_data_end)
		return;
	if (bpf_load_hdr_opt(skops, &option, sizeof(option), 0) != OPTION_BYTES)
		return; // another unknown option
	ena_notified(&socket->named, bpf_ntohl(option.seq), bpf_ntohl(tcp->ack_seq));
	ena_count(socket, ENA_COUNT_NOTIFIED);
}

static __always_inline void begin(struct bpf_sock_ops *skops) {
	struct ena_socket *socket = socket_of(skops, BPF_SK_STORAGE_GET_F_CREATE);

	if (!socket)
		return;
	socket->slot = host_slot_number() + 1;
	socket->rcv_high = skops->rcv_nxt;
	bpf_sock_ops_cb_flags_set(skops, skops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG |
						 BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG);
}

SEC("sockops")
int ena(struct bpf_sock_ops *skops) {
	switch (skops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		begin(skops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		reserve_room(skops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write_option(skops);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		take_option(skops);
		break;
	}
	return 1;
}

// ---- receiver: no room -----------------------------------------------------------------------------------------------

#define TCPOPT_SACK 5
#define SACK_BYTES(blocks) (2 + 8 * (blocks))
#define OPTIONS_FULL 36 // from here on eight bytes more do not fit

// Where an ACK's SACK option begins, if it has at least two blocks: the stack writes NOP NOP, then it, at the end.
static __always_inline int find_sack(const __u8 options[OPTIONS_MAX], __u32 bytes, __u32 *at, __u32 *blocks) {
	for (__u32 i = 0; i + 1 < OPTIONS_MAX; i++) {
		__u32 length = options[i + 1];

		if (options[i] == TCPOPT_SACK && i + length == bytes && length >= SACK_BYTES(2) && (length - 2) % 8 == 0) {
			*at = i;
			*blocks = (length - 2) / 8;
			return 1;
		}
	}
	return 0;
}

// 1 when the ACK names `seq`.
static __always_inline int trade_block(struct __sk_buff *skb, const struct segment *s, __u32 seq) {
	__u32 start = s->tcp_offset + sizeof(struct tcphdr), bytes = s->tcp_header_bytes - sizeof(struct tcphdr), at, blocks;
	__u8 options[OPTIONS_MAX] = {}, length;
	struct ena_option option;

	if (bytes < OPTIONS_FULL || bytes > OPTIONS_MAX || bpf_skb_load_bytes(skb, start, options, OPTIONS_FULL))
		return 0;
	if (bytes == OPTIONS_MAX && bpf_skb_load_bytes(skb, start + OPTIONS_FULL, options + OPTIONS_FULL, OPTIONS_MAX - OPTIONS_FULL))
		return 0;
	if (!find_sack(options, bytes, &at, &blocks))
		return 0;
	fill_option(&option, seq);
	length = SACK_BYTES(blocks - 1);
	bpf_skb_store_bytes(skb, start + at + 1, &length, sizeof(length), 0);
	bpf_skb_store_bytes(skb, start + bytes - OPTION_BYTES, &option, sizeof(option), 0);
	mend_checksum(skb, s);
	return 1;
}

SEC("tc")
int ena_egress(struct __sk_buff *skb) {
	struct bpf_sock *sk = skb->sk;
	struct ena_socket *socket;
	struct tcp_sock *tp;
	struct segment s;
	__u32 seq;

	if (!sk || parse_segment(skb, &s) != SEGMENT_WHOLE || s.payload_bytes || s.tcp_header_bytes < sizeof(struct tcphdr) + OPTIONS_FULL)
		return TC_ACT_OK;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return TC_ACT_OK;
	socket = bpf_sk_storage_get(&shared_ena, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (socket && tp && name_to_write(socket, tp->rcv_nxt, 0, &seq) && trade_block(skb, &s, seq))
		name_to_write(socket, tp->rcv_nxt, 1, &seq);
	return TC_ACT_OK;
}
