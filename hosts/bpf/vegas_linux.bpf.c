// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_vegas_linux: Vegas as Linux has it (../cc/vegas_linux.h), to stand beside the paper's, as a struct_ops congestion control.
#include "../cc/vegas_linux.h"

struct fl_algorithm {
	struct vegas_linux vegas;
};
#include "tcp_core.bpf.h"

static const struct vegas_params fl_params = {.alpha = FL_ALPHA, .beta = FL_BETA, .gamma = FL_GAMMA};

#define FL_INIT(st, tcp) vegas_linux_init(&(st)->vegas, tcp)
#define FL_CONG_AVOID(st, tcp, acked) vegas_linux_cong_avoid(&(st)->vegas, tcp, acked, &fl_params)
#define FL_PKTS_ACKED(st, tcp, sample) vegas_linux_pkts_acked(&(st)->vegas, (sample)->rtt_us)
#define FL_SET_STATE(st, tcp, state) vegas_linux_set_state(&(st)->vegas, tcp, state)
#define FL_CWND_EVENT(st, tcp, event) vegas_linux_cwnd_event(&(st)->vegas, tcp, event)
#include "struct_ops.bpf.h"
