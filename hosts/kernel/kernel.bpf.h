// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A sender that is built into a kernel: what ../bpf/kernel.bpf.h is for BPF, over the kernel's own headers. `make kernel` puts
// this file in that one's place; sender.bpf.c, tcp_core.bpf.h and ../cc are compiled as they are.
#ifndef FAIRLANE_BPF_KERNEL_H
#define FAIRLANE_BPF_KERNEL_H

#include <linux/version.h>
#include <net/tcp.h>

#define SEC(section) static __maybe_unused
#define BPF_PROG(name, arguments...) name(arguments)
#define BPF_CORE_READ_BITFIELD(structure, bits) ((structure)->bits)
#define FL_PRIV_BYTES ICSK_CA_PRIV_SIZE

// Of tcp_congestion_ops.flags: the host programs that a sender asks for (bpf/programs/host_sender.bpf.h).
#define FL_REGISTERED_SHIFT 16
#define FL_REGISTERED(programs) ((programs) << FL_REGISTERED_SHIFT)

enum { PACING_NONE = SK_PACING_NONE, PACING_NEEDED = SK_PACING_NEEDED };

// Before 6.10 cong_control had fewer arguments; the shared memory of time travel is younger.
_Static_assert(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0), "a kernel that hands cong_control (sk, ack, flag, rs)");
#define FL_RATE_PROG(name) name(struct sock *sk, u32 ack, int flag, const struct rate_sample *ctx)

static __always_inline const struct rate_sample *fl_rate_argument(const struct rate_sample *rs) { return rs; }

static __always_inline void bpf_tcp_send_ack(struct tcp_sock *tp, u32 rcv_nxt) {
	__tcp_send_ack((struct sock *)tp, rcv_nxt, 0);
}

#endif
