// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_westwood: Reno's growth, and after a loss the window of Westwood's bandwidth estimate (../cc/westwood.h).
#include "../cc/westwood.h"

struct fl_algorithm {
	struct westwood westwood;
};
#include "tcp_core.bpf.h"

#define FL_INIT(st, tcp) westwood_init(&(st)->westwood, tcp)
#define FL_SSTHRESH(st, tcp) westwood_ssthresh(&(st)->westwood, tcp)
#define FL_PKTS_ACKED(st, tcp, sample) \
	(void)westwood_pkts_acked(&(st)->westwood, tcp, (sample)->rtt_us, bpf_ktime_get_ns())
#define FL_SET_STATE(st, tcp, state) westwood_set_state(&(st)->westwood, tcp, state)
#define FL_CWND_EVENT(st, tcp, event) westwood_cwnd_event(&(st)->westwood, tcp, event)
#include "struct_ops.bpf.h"
