// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Corrupted segments that do not say whose they are: a bit of an address, a port or the sequence number was flipped.
//
// A path keeps the order, so such a segment leaves a gap exactly as long as it was, just before the next segment of its
// connection. A gap of another length is a drop. A stray is forgotten when STRAY_AGE segments have arrived whole.
#ifndef FAIRLANE_ENA_STRAYS_BPF_H
#define FAIRLANE_ENA_STRAYS_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define STRAYS 4u // a power of two
#define STRAY_AGE 8

struct strays {
	__u32 frame_bytes[STRAYS]; // 0: none
	__u32 age[STRAYS];
	__u32 next;
	__u32 pending;
};

SEC(".maps") struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct strays);
} strays;

static __always_inline void stray_add(__u32 frame_bytes) {
	__u32 zero = 0, place;
	struct strays *all = bpf_map_lookup_elem(&strays, &zero);

	if (!all)
		return;
	place = all->next++ & (STRAYS - 1);
	all->frame_bytes[place] = frame_bytes;
	all->age[place] = 0;
	all->pending = 1;
}

// 1 when one of this length was there; it is used up.
static __always_inline int stray_take(__u32 frame_bytes) {
	__u32 zero = 0;
	struct strays *all = bpf_map_lookup_elem(&strays, &zero);

	for (__u32 i = 0; all && all->pending && i < STRAYS; i++) {
		if (all->frame_bytes[i] == frame_bytes) {
			all->frame_bytes[i] = 0;
			return 1;
		}
	}
	return 0;
}

// A segment arrived whole.
static __always_inline void stray_grow_old(void) {
	__u32 zero = 0, left = 0;
	struct strays *all = bpf_map_lookup_elem(&strays, &zero);

	if (!all || !all->pending)
		return;
	for (__u32 i = 0; i < STRAYS; i++) {
		if (all->frame_bytes[i] && ++all->age[i] > STRAY_AGE)
			all->frame_bytes[i] = 0;
		left |= all->frame_bytes[i];
	}
	all->pending = left != 0;
}

#endif
