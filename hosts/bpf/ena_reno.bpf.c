// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_ena_reno: 1990's Reno (../cc/reno_recovery.h) that keeps its window for a loss that the receiver named (../cc/ena.h).
#include "../cc/ena.h"
#include "../cc/reno_recovery.h"

struct fl_algorithm {
	struct ena_sender ena;
	struct reno base;
};

#define ENA_BASE_SACK 0
#define ENA_BASE_INIT(st, tcp) reno_init(&(st)->base, tcp)
#define ENA_BASE_ON_ACK(st, tcp) reno_on_ack(&(st)->base, tcp)
#define ENA_BASE_SET_STATE(st, tcp, state) reno_set_state(&(st)->base, tcp, state)
#include "ena.bpf.h"
