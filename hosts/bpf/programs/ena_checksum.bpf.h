// SPDX-License-Identifier: GPL-2.0-only OR MIT
// TCP segments in tc programs: where their parts are, and whether the checksum over the whole of one is right.
#ifndef FAIRLANE_ENA_CHECKSUM_BPF_H
#define FAIRLANE_ENA_CHECKSUM_BPF_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define CHUNK_BYTES 256u // bpf_csum_diff() takes 512 before 6.13
#define SEGMENT_BYTES_MAX 9216u
#define IP_FRAGMENT 0x3fff // more fragments, or an offset
#ifndef GSO_IS_ON // built into a kernel
#define GSO_IS_ON(skb) ((skb)->gso_size != 0)
#endif

struct segment {
	__be32 saddr, daddr;
	__be16 source, dest;
	__u32 seq;
	__u16 window;
	__be16 check;
	__u32 tcp_offset, tcp_bytes, tcp_header_bytes, payload_bytes;
};

struct chunk_buffer {
	__u8 bytes[CHUNK_BYTES];
};
SEC(".maps") struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chunk_buffer);
} chunks;

static __always_inline __u16 checksum_fold(__s64 sum) {
	__u64 folded = (__u32)sum;

	folded = (folded & 0xffff) + (folded >> 16);
	folded = (folded & 0xffff) + (folded >> 16);
	return (__u16)~folded;
}

static __always_inline __u32 pseudo_header(__be32 saddr, __be32 daddr, __u32 tcp_bytes) {
	__be32 words[3] = {saddr, daddr, bpf_htonl(IPPROTO_TCP << 16 | tcp_bytes)};

	return (__u32)bpf_csum_diff(0, 0, words, sizeof(words), 0);
}

enum { SEGMENT_NONE, SEGMENT_WHOLE, SEGMENT_BROKEN };

// SEGMENT_WHOLE: an IPv4 TCP segment, no fragment and without IP options. SEGMENT_BROKEN: the IP header is not what was sent.
static __always_inline int parse_segment(struct __sk_buff *skb, struct segment *s) {
	struct tcphdr tcp;
	struct iphdr ip;

	if (skb->protocol != bpf_htons(ETH_P_IP) || GSO_IS_ON(skb) || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return SEGMENT_NONE;
	if (ip.version == 4 && ip.ihl > 5) {
		ip.ihl = 5; // with options the sum over 20 bytes is wrong; it is right where only the length was hit
		return checksum_fold(bpf_csum_diff(0, 0, (__be32 *)&ip, sizeof(ip), 0)) ? SEGMENT_NONE : SEGMENT_BROKEN;
	}
	if (checksum_fold(bpf_csum_diff(0, 0, (__be32 *)&ip, sizeof(ip), 0)))
		return SEGMENT_BROKEN;
	if (ip.protocol != IPPROTO_TCP || ip.frag_off & bpf_htons(IP_FRAGMENT))
		return SEGMENT_NONE;
	s->tcp_offset = ETH_HLEN + sizeof(ip);
	s->tcp_bytes = bpf_ntohs(ip.tot_len) - sizeof(ip);
	if (s->tcp_bytes < sizeof(tcp) || s->tcp_bytes > SEGMENT_BYTES_MAX || s->tcp_offset + s->tcp_bytes > skb->len)
		return SEGMENT_NONE;
	if (bpf_skb_load_bytes(skb, s->tcp_offset, &tcp, sizeof(tcp)))
		return SEGMENT_NONE;
	s->tcp_header_bytes = tcp.doff * 4;
	s->payload_bytes = s->tcp_bytes > s->tcp_header_bytes ? s->tcp_bytes - s->tcp_header_bytes : 0;
	s->saddr = ip.saddr;
	s->daddr = ip.daddr;
	s->source = tcp.source;
	s->dest = tcp.dest;
	s->seq = bpf_ntohl(tcp.seq);
	s->window = bpf_ntohs(tcp.window);
	s->check = tcp.check;
	return SEGMENT_WHOLE;
}

struct summing {
	struct __sk_buff *skb;
	__u32 offset, left;
	__s64 sum;
};

static long sum_chunk(__u32 index, void *context) {
	struct summing *state = context;
	__u32 zero = 0, bytes = state->left < CHUNK_BYTES ? state->left : CHUNK_BYTES;
	struct chunk_buffer *chunk = bpf_map_lookup_elem(&chunks, &zero);

	if (!chunk || !bytes || bytes > CHUNK_BYTES)
		return 1;
	if (bytes < CHUNK_BYTES)
		__builtin_memset(chunk->bytes, 0, CHUNK_BYTES);
	if (bpf_skb_load_bytes(state->skb, state->offset, chunk->bytes, bytes))
		return 1;
	state->sum = bpf_csum_diff(0, 0, (__be32 *)chunk->bytes, CHUNK_BYTES, (__u32)state->sum);
	state->offset += bytes;
	state->left -= bytes;
	return !state->left;
}

// The checksum is still to be made, by the interface or just before it: the field holds the pseudo header's sum alone.
static __always_inline int checksum_is_pending(const struct segment *s) {
	return s->check == (__u16)~checksum_fold(pseudo_header(s->saddr, s->daddr, s->tcp_bytes));
}

static __always_inline int checksum_is_right(struct __sk_buff *skb, const struct segment *s) {
	struct summing state = {.skb = skb, .offset = s->tcp_offset, .left = s->tcp_bytes};

	if (checksum_is_pending(s))
		return 1;
	state.sum = pseudo_header(s->saddr, s->daddr, s->tcp_bytes);
	bpf_loop(SEGMENT_BYTES_MAX / CHUNK_BYTES + 1, sum_chunk, &state, 0);
	return state.left || !checksum_fold(state.sum);
}

// Makes the checksum of a segment anew, unless that is still to be done.
static __always_inline void mend_checksum(struct __sk_buff *skb, const struct segment *s) {
	struct summing state = {.skb = skb, .offset = s->tcp_offset, .left = s->tcp_bytes};
	__be16 check = 0;

	if (checksum_is_pending(s))
		return;
	bpf_skb_store_bytes(skb, s->tcp_offset + offsetof(struct tcphdr, check), &check, sizeof(check), 0);
	state.sum = pseudo_header(s->saddr, s->daddr, s->tcp_bytes);
	bpf_loop(SEGMENT_BYTES_MAX / CHUNK_BYTES + 1, sum_chunk, &state, 0);
	check = checksum_fold(state.sum);
	bpf_skb_store_bytes(skb, s->tcp_offset + offsetof(struct tcphdr, check), &check, sizeof(check), 0);
}

#endif
