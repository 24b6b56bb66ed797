// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_ena_tahoe: Tahoe (../cc/tahoe.h) that keeps its window for a loss that the receiver named (../cc/ena.h).
#include "../cc/ena.h"
#include "../cc/tahoe.h"

struct fl_algorithm {
	struct ena_sender ena;
	struct tahoe base;
};

#define ENA_BASE_SACK 0
#define ENA_BASE_INIT(st, tcp) tahoe_init(&(st)->base, tcp)
#define ENA_BASE_ON_ACK(st, tcp) tahoe_on_ack(&(st)->base, tcp)
#define ENA_BASE_SET_STATE(st, tcp, state) tahoe_set_state(&(st)->base, tcp, state)
#include "ena.bpf.h"
