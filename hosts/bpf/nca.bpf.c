// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_nca, fl_nca_mrto: FastTCP's sender without congestion avoidance (../cc/fast.h), over the kernel's NewReno recovery.
#include "../cc/fast.h"

struct fl_algorithm {
	cc_u32 unused;
};
#include "tcp_core.bpf.h"

#define FL_CONG_AVOID(st, tcp, acked) nca_cong_avoid(tcp, acked)
#include "struct_ops.bpf.h"
