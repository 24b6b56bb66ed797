// SPDX-License-Identifier: Apache-2.0
// A sender of hosts/cc/ as a row of functions; build.rs compiles this file once for each header that has hooks.
//
//   CC_HEADER   the sender's header; CC_SENDER_<its name> is defined too, for its hooks (hosts/cc/tcp.h)
//   CC_NAME     its name, without quotes
//   CC_WITH_ENA with error notification around it (hosts/cc/ena.h); FL_ENA_PLUS: ENA+ instead of the paper's
//   CC_LIBRARY  as a library of its own: a sender of the user's own, which hosts/fairlane_hosts/build.py compiles
#include <stddef.h>

#include CC_HEADER
#include "hooks.h"

#define STATE_BYTES 288 // CC_STATE_BYTES, and what ENA remembers of a connection; STATE_BYTES of ops.rs

#ifdef CC_WITH_ENA
#include "ena.h"
struct with_ena {
	struct ena_sender ena;
	struct ena_names named;
	CC_STATE base;
};
_Static_assert(sizeof(struct with_ena) <= STATE_BYTES, "the state does not fit");
#define BASE(state) (&((struct with_ena *)(state))->base)
#else
#define BASE(state) ((CC_STATE *)(state))
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define QUOTE_(a) #a
#define QUOTE(a) QUOTE_(a)
#define ROW PASTE(cc_sender_, CC_NAME)

// Of ENA: recoveries that kept their window and that reduced it, heads without a name that were allowed, reductions taken back.
struct ena_counts {
	cc_u32 kept, reduced, allowed, restored;
};

// The shape of Linux's tcp_congestion_ops; the same layout stands in ops.rs.
struct cc_ops {
	const char *name;
	struct cc_params defaults;
	cc_u32 needs_ecn;
	void (*init)(void *st, struct cc_tcp *tcp);
	cc_u32 (*ssthresh)(void *st, struct cc_tcp *tcp);
	void (*cong_avoid)(void *st, struct cc_tcp *tcp, cc_u32 acked); // NULL beside cong_control
	void (*cong_control)(void *st, struct cc_tcp *tcp);             // owns cwnd; NULL: cong_avoid grows it
	void (*pkts_acked)(void *st, struct cc_tcp *tcp);
	void (*set_state)(void *st, struct cc_tcp *tcp, cc_u32 new_state);
	void (*cwnd_event)(void *st, struct cc_tcp *tcp, cc_u32 event);
	cc_u32 (*undo_cwnd)(void *st, struct cc_tcp *tcp);
	cc_u32 (*burst)(void *st, struct cc_tcp *tcp); // NULL: packets leave one by one
	void (*notified)(void *st, cc_u32 seq, cc_u32 ack); // ENA: an ACK up to `ack` names a segment; NULL: no ENA
	struct ena_counts (*ena_counts)(const void *st);     // beside `notified`
	cc_u32 (*bw_est)(const void *st);                    // packets/s; NULL: it estimates no bandwidth
};

#ifdef CC_WITH_ENA
static void init(void *state, struct cc_tcp *tcp) {
	struct with_ena *st = state;

	ena_init(&st->ena, tcp, CC_ENA);
	st->named.used = 0;
	CC_INIT(&st->base, tcp);
}

static cc_u32 ssthresh(void *state, struct cc_tcp *tcp) {
	struct with_ena *st = state;

	return ena_ssthresh(&st->ena, &st->named, tcp, reno_ssthresh(tcp));
}

static void cong_control(void *state, struct cc_tcp *tcp) {
	struct with_ena *st = state;
	cc_u64 rate;

	if (!ena_on_ack(&st->ena, &st->named, tcp, reno_ssthresh(tcp))) {
		cc_u32 before = tcp->snd_ssthresh;

		CC_CONG_CONTROL(&st->base, tcp);
		ena_after_base(&st->named, tcp, before);
	}
	rate = ena_pacing_rate(&st->ena, tcp);
	if (rate)
		tcp->pacing_rate = rate;
}

static void set_state(void *state, struct cc_tcp *tcp, cc_u32 new_state) {
	cc_u32 before = tcp->snd_ssthresh;

	CC_SET_STATE(BASE(state), tcp, new_state);
	ena_after_base(&((struct with_ena *)state)->named, tcp, before);
}

static void notified(void *state, cc_u32 seq, cc_u32 ack) { ena_notified(&((struct with_ena *)state)->named, seq, ack); }

static struct ena_counts ena_counts(const void *state) {
	const struct ena_sender *ena = &((const struct with_ena *)state)->ena;

	return (struct ena_counts){ena->kept, ena->reduced, ena->allowed, ena->restored};
}
#else
static void init(void *state, struct cc_tcp *tcp) { CC_INIT(BASE(state), tcp); }

static cc_u32 ssthresh(void *state, struct cc_tcp *tcp) { return CC_SSTHRESH(BASE(state), tcp); }

#ifdef CC_CONG_CONTROL
static void cong_control(void *state, struct cc_tcp *tcp) { CC_CONG_CONTROL(BASE(state), tcp); }
#else
static void cong_avoid(void *state, struct cc_tcp *tcp, cc_u32 acked) { CC_CONG_AVOID(BASE(state), tcp, acked); }
#endif

static void set_state(void *state, struct cc_tcp *tcp, cc_u32 new_state) { CC_SET_STATE(BASE(state), tcp, new_state); }
#endif

static void pkts_acked(void *state, struct cc_tcp *tcp) { CC_PKTS_ACKED(BASE(state), tcp); }

static void cwnd_event(void *state, struct cc_tcp *tcp, cc_u32 event) { CC_CWND_EVENT(BASE(state), tcp, event); }

static cc_u32 undo_cwnd(void *state, struct cc_tcp *tcp) { return CC_UNDO_CWND(BASE(state), tcp); }

#ifdef CC_BURST
static cc_u32 burst(void *state, struct cc_tcp *tcp) { return CC_BURST(BASE(state), tcp); }
#endif

#ifdef CC_BW_EST
static cc_u32 bw_est(const void *state) { return CC_BW_EST((const CC_STATE *)state); }
#endif

extern const struct cc_ops ROW;
const struct cc_ops ROW = {
	.name = QUOTE(CC_NAME),
	.defaults = CC_DEFAULTS,
	.needs_ecn = CC_NEEDS_ECN,
	.init = init,
	.ssthresh = ssthresh,
#ifdef CC_CONG_CONTROL
	.cong_control = cong_control,
#else
	.cong_avoid = cong_avoid,
#endif
	.pkts_acked = pkts_acked,
	.set_state = set_state,
	.cwnd_event = cwnd_event,
	.undo_cwnd = undo_cwnd,
#ifdef CC_BURST
	.burst = burst,
#endif
#ifdef CC_WITH_ENA
	.notified = notified,
	.ena_counts = ena_counts,
#endif
#ifdef CC_BW_EST
	.bw_est = bw_est,
#endif
};

#ifdef CC_LIBRARY
// What the simulator asks a library for (ops.rs): the row, and the sizes of what both sides must see alike.
extern const struct cc_ops *const cc_library_sender;
const struct cc_ops *const cc_library_sender = &ROW;
extern const cc_u32 cc_library_sizes[3];
const cc_u32 cc_library_sizes[3] = {sizeof(struct cc_ops), sizeof(struct cc_tcp), STATE_BYTES};
#endif
