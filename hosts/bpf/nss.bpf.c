// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_nss, fl_nss_mrto: FastTCP's sender without slow start (../cc/fast.h): the advertised window alone limits.
#include "../cc/fast.h"

struct fl_algorithm {
	cc_u32 unused;
};
#include "tcp_core.bpf.h"

#define FL_INIT(st, tcp) nss_open(tcp)
#define FL_SSTHRESH(st, tcp) nss_ssthresh(tcp)
#define FL_CONG_CONTROL(st, tcp) nss_open(tcp)
#define FL_SET_STATE(st, tcp, state) nss_open(tcp)
#define FL_CWND_EVENT(st, tcp, event) nss_open(tcp)
#define FL_UNDO_CWND(st, tcp) nss_undo_cwnd(tcp)
#include "struct_ops.bpf.h"
