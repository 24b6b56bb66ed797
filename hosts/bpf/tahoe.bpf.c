// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_tahoe: fast retransmit, then slow start from 1 (../cc/tahoe.h), as a struct_ops congestion control.
//
// It owns the window in recovery through cong_control, so the kernel's PRR (RFC 6937) is not at work.
#include "../cc/tahoe.h"

struct fl_algorithm {
	struct tahoe tahoe;
};
#include "tcp_core.bpf.h"

#define FL_INIT(st, tcp) tahoe_init(&(st)->tahoe, tcp)
#define FL_CONG_CONTROL(st, tcp) tahoe_on_ack(&(st)->tahoe, tcp)
#define FL_SET_STATE(st, tcp, state) tahoe_set_state(&(st)->tahoe, tcp, state)
#include "struct_ops.bpf.h"
