// SPDX-License-Identifier: GPL-2.0-only OR MIT
// What a congestion control asks of its host: the programs of its row of the table of variants, written when it is registered
// (fairlane_hosts/loader.py). A program leaves sockets alone whose congestion control does not ask for it, whatever its name.
#ifndef FAIRLANE_HOST_SENDER_BPF_H
#define FAIRLANE_HOST_SENDER_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

enum host_program { PROGRAM_MRTO, PROGRAM_ERTO, PROGRAM_ENA, PROGRAM_ENA_LOWEST, PROGRAMS }; // `bit` of fairlane_hosts/programs.py

#ifndef sender_asks // built into a kernel: ../../kernel/programs.h
#define SENDERS 256
#define SOL_TCP 6
#define TCP_CONGESTION 13

struct sender_name {
	char bytes[16];
};

SEC(".maps") struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SENDERS);
	__type(key, struct sender_name);
	__type(value, __u32); // a bit for each program
} shared_senders;

static __always_inline int sender_asks(struct bpf_sock_ops *skops, enum host_program program) {
	struct sender_name name = {};
	__u32 *programs;

	if (bpf_getsockopt(skops, SOL_TCP, TCP_CONGESTION, name.bytes, sizeof(name.bytes)))
		return 0;
	programs = bpf_map_lookup_elem(&shared_senders, &name);
	return programs && *programs & 1u << program;
}
#endif

#endif
