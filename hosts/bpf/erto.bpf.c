// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_erto: NewReno whose window waits for E-RTO's verdict (../cc/erto.h); programs/erto.bpf.c sends the new segment.
#include "../cc/erto.h"

struct fl_algorithm {
	struct erto erto;
};
#include "tcp_core.bpf.h"

#define FL_INIT(st, tcp) erto_init(&(st)->erto, tcp)
#define FL_CONG_AVOID(st, tcp, acked) erto_cong_avoid(&(st)->erto, tcp, acked)
#define FL_PKTS_ACKED(st, tcp, sample) erto_pkts_acked(&(st)->erto, tcp)
#define FL_SET_STATE(st, tcp, state) erto_set_state(&(st)->erto, state)
#include "struct_ops.bpf.h"
