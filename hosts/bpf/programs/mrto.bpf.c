// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Host program `mrto`: the RTO floor of every socket whose congestion control is an MRTO one, as low as the kernel goes.
//
// By TCP_RTO_MIN_US where a BPF program may set it (one jiffy), else by TCP_BPF_RTO_MIN (two jiffies): RTO = SRTT +
// max(4·RTTVAR, floor), rounded up to a jiffy. Only for congestion controls that ask for it (host_sender.bpf.h); one that a
// socket takes after its handshake is not seen: the namespace's sysctl tcp_rto_min_us does for all, where there is one.
#include <linux/bpf.h>
#include <linux/tcp.h>

#include <bpf/bpf_helpers.h>

#include "host_sender.bpf.h"
#include "host_slot.bpf.h"

#define TCP_RTO_MIN_US 45
#define TRIES 8

enum { MRTO_SOCKETS };

SEC("license") char _license[] = "Dual MIT/GPL";

static __always_inline int set_floor(struct bpf_sock_ops *skops) {
	int floor_us = 1;

	if (!bpf_setsockopt(skops, SOL_TCP, TCP_RTO_MIN_US, &floor_us, sizeof(floor_us)))
		return 0;
	floor_us = 1000;
#pragma unroll
	for (int i = 0; i < TRIES; i++) { // two jiffies: 2 ms at HZ=1000, 8 ms at HZ=250, 20 ms at HZ=100
		if (!bpf_setsockopt(skops, SOL_TCP, TCP_BPF_RTO_MIN, &floor_us, sizeof(floor_us)))
			return 0;
		floor_us = i == 0 ? 2000 : i == 1 ? 4000 : i == 2 ? 8000 : i == 3 ? 20000 : floor_us * 2;
	}
	return -1;
}

// Set before the SYN goes out: its sample makes RTTVAR no less than the floor of that moment, and RTTVAR falls only by a
// quarter a round trip. Set again when the connection is there, for a socket that chose its algorithm meanwhile.
SEC("sockops")
int mrto(struct bpf_sock_ops *skops) {
	int established = skops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || skops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;

	if (!established && skops->op != BPF_SOCK_OPS_TCP_CONNECT_CB)
		return 1;
	if (sender_asks(skops, PROGRAM_MRTO) && !set_floor(skops) && established)
		host_count(host_slot_number(), MRTO_SOCKETS);
	return 1;
}
