// SPDX-License-Identifier: Apache-2.0
// A sender of hosts/cc/ as a row of functions; build.rs compiles this file once for each header that has hooks.
//
//   CC_HEADER   the sender's header; CC_SENDER_<its name> is defined too, for its hooks (hosts/cc/tcp.h)
//   CC_NAME     its name, without quotes
//   CC_LIBRARY  as a library of its own: a sender of the user's own, which hosts/fairlane_hosts/build.py compiles
#include <stddef.h>

#include CC_HEADER
#include "hooks.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define QUOTE_(a) #a
#define QUOTE(a) QUOTE_(a)
#define ROW PASTE(cc_sender_, CC_NAME)

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
};

static void init(void *state, struct cc_tcp *tcp) { CC_INIT((CC_STATE *)state, tcp); }

static cc_u32 ssthresh(void *state, struct cc_tcp *tcp) { return CC_SSTHRESH((CC_STATE *)state, tcp); }

#ifdef CC_CONG_CONTROL
static void cong_control(void *state, struct cc_tcp *tcp) { CC_CONG_CONTROL((CC_STATE *)state, tcp); }
#else
static void cong_avoid(void *state, struct cc_tcp *tcp, cc_u32 acked) { CC_CONG_AVOID((CC_STATE *)state, tcp, acked); }
#endif

static void pkts_acked(void *state, struct cc_tcp *tcp) { CC_PKTS_ACKED((CC_STATE *)state, tcp); }

static void set_state(void *state, struct cc_tcp *tcp, cc_u32 new_state) { CC_SET_STATE((CC_STATE *)state, tcp, new_state); }

static void cwnd_event(void *state, struct cc_tcp *tcp, cc_u32 event) { CC_CWND_EVENT((CC_STATE *)state, tcp, event); }

static cc_u32 undo_cwnd(void *state, struct cc_tcp *tcp) { return CC_UNDO_CWND((CC_STATE *)state, tcp); }

#ifdef CC_BURST
static cc_u32 burst(void *state, struct cc_tcp *tcp) { return CC_BURST((CC_STATE *)state, tcp); }
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
};

#ifdef CC_LIBRARY
// What the simulator asks a library for (ops.rs): the row, and the sizes of what both sides must see alike.
extern const struct cc_ops *const cc_library_sender;
const struct cc_ops *const cc_library_sender = &ROW;
extern const cc_u32 cc_library_sizes[3];
const cc_u32 cc_library_sizes[3] = {sizeof(struct cc_ops), sizeof(struct cc_tcp), CC_STATE_BYTES};
#endif
