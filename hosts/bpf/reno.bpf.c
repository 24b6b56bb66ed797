// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_reno: the papers' TCP Reno (Jacobson 1990, ns-2's Agent/TCP/Reno) as a struct_ops congestion control.
//
// It owns the window in recovery through cong_control, so the kernel's PRR (RFC 6937) is not at work.
// What it is not: see ../cc/reno_recovery.h.
#include "../cc/reno_recovery.h"

struct fl_algorithm {
	struct reno reno;
};
#include "tcp_core.bpf.h"

#define FL_INIT(st, tcp) reno_init(&(st)->reno, tcp)
#define FL_CONG_CONTROL(st, tcp) reno_on_ack(&(st)->reno, tcp)
#define FL_SET_STATE(st, tcp, state) reno_set_state(&(st)->reno, tcp, state)
#include "struct_ops.bpf.h"
