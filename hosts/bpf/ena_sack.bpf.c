// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fl_ena_sack: SACK that keeps its window for a loss that the receiver named (../cc/ena.h).
#include "../cc/ena_sack.h"

struct fl_algorithm {
	struct ena_sender ena;
	struct ena_sack base;
};

#define ENA_BASE_SACK 1
#define ENA_BASE_INIT(st, tcp) ena_sack_init(&(st)->base, tcp)
#define ENA_BASE_ON_ACK(st, tcp) ena_sack_on_ack(&(st)->base, tcp)
#define ENA_BASE_SET_STATE(st, tcp, state) (void)(tcp)
#include "ena.bpf.h"
