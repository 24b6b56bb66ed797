// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The place of a host's counters: one map for the machine, sixteen numbers a host (fairlane_hosts/host.py).
//
// Every host has its own copy of a program; who attaches it writes its number into `host_slot`. A congestion control, which
// is one for the machine, counts for the host whose number it finds in the socket's storage.
#ifndef FAIRLANE_HOST_SLOT_BPF_H
#define FAIRLANE_HOST_SLOT_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define HOST_SLOTS 256 // SLOTS of fairlane_hosts/host.py
#define HOST_COUNTERS 16

SEC(".maps") struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HOST_SLOTS * HOST_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} shared_count;

static __always_inline void host_count(__u32 slot, __u32 counter) {
	__u32 key = slot * HOST_COUNTERS + counter;
	__u64 *value = bpf_map_lookup_elem(&shared_count, &key);

	if (value)
		__sync_fetch_and_add(value, 1);
}

#ifndef HOST_SLOT_OF_SOCKET_ONLY // a congestion control has no host of its own
SEC(".maps") struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} host_slot;

static __always_inline __u32 host_slot_number(void) {
	__u32 zero = 0, *slot = bpf_map_lookup_elem(&host_slot, &zero);

	return slot ? *slot : 0;
}
#endif

#endif
