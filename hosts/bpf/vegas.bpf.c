// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_vegas: Vegas as its paper and ns-2 define it (../cc/vegas.h), as a struct_ops congestion control.
#include "../cc/vegas.h"

struct fl_algorithm {
	struct vegas vegas;
};
#include "tcp_core.bpf.h"

static const struct vegas_params fl_params = {.alpha = FL_ALPHA, .beta = FL_BETA, .gamma = FL_GAMMA};

#define FL_INIT(st, tcp) vegas_init(&(st)->vegas, tcp)
#define FL_SSTHRESH(st, tcp) vegas_ssthresh(tcp)
#define FL_CONG_AVOID(st, tcp, acked) vegas_cong_avoid(&(st)->vegas, tcp, acked, &fl_params)
#define FL_PKTS_ACKED(st, tcp, sample) vegas_pkts_acked(&(st)->vegas, (sample)->rtt_us)
#define FL_SET_STATE(st, tcp, state) vegas_set_state(&(st)->vegas, tcp, state)
#define FL_CWND_EVENT(st, tcp, event) vegas_cwnd_event(&(st)->vegas, tcp, event)
#include "struct_ops.bpf.h"
