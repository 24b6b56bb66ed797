// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_bcr: E-RTO's detection, and after a spurious timeout the window of the bandwidth estimate (../cc/bcr.h).
#include "../cc/bcr.h"

struct fl_algorithm {
	struct bcr bcr;
};
#include "tcp_core.bpf.h"

#define FL_INIT(st, tcp) bcr_init(&(st)->bcr, tcp)
#define FL_CONG_AVOID(st, tcp, acked) erto_cong_avoid(&(st)->bcr.erto, tcp, acked)
#define FL_PKTS_ACKED(st, tcp, sample) bcr_pkts_acked(&(st)->bcr, tcp, (sample)->rtt_us, bpf_ktime_get_ns())
#define FL_SET_STATE(st, tcp, state) bcr_set_state(&(st)->bcr, tcp, state)
#define FL_CWND_EVENT(st, tcp, event) bcr_cwnd_event(&(st)->bcr, event)
#define FL_UNDO_CWND(st, tcp) bcr_undo_cwnd(&(st)->bcr, tcp)
#include "struct_ops.bpf.h"
