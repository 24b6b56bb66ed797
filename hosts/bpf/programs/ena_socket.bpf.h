// SPDX-License-Identifier: GPL-2.0-only OR MIT
// What ENA keeps of a socket: shared by the host program (both roles) and the congestion controls (the sender's role).
#ifndef FAIRLANE_ENA_SOCKET_BPF_H
#define FAIRLANE_ENA_SOCKET_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../../cc/ena.h"
#include "host_slot.bpf.h"

enum ena_counter {
	ENA_COUNT_CORRUPTED,
	ENA_COUNT_NOTIFIED,
	ENA_COUNT_KEPT,
	ENA_COUNT_REDUCED,
	ENA_COUNT_ALLOWED,
	ENA_COUNT_RESTORED
};

#define ENA_FRESH 16u // a power of two

struct ena_socket {
	struct ena_names corrupted; // the receiver's, where its ACKs name the lowest
	struct ena_names named;	    // the sender's: what was reported to it
	// Written where a segment comes in, without the socket's lock. Named one by one by the ACKs that answer them, or, where
	// the lowest is named, moved to `corrupted` by who holds the lock.
	__u32 fresh[ENA_FRESH];
	__u32 fresh_written, fresh_taken;
	__u32 rcv_high; // behind the last byte that arrived whole
	__u32 slot; // of the host, plus one; 0: its host has no program
	__u32 is_sender;
	__u32 names_lowest; // host program `ena-lowest`
};

SEC(".maps") struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ena_socket);
} shared_ena;

static __always_inline void ena_count(const struct ena_socket *socket, enum ena_counter counter) {
	if (socket->slot)
		host_count(socket->slot - 1, counter);
}

#endif
