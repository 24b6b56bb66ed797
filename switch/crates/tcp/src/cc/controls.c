// SPDX-License-Identifier: Apache-2.0
// The congestion controls of hosts/cc/ behind one table of functions: one row per control, each called as its BPF program does.
//
// A new control: include its header, write its wrappers between two rules, add a row to cc_controls.
#include <stddef.h>

#include "bcr.h"
#include "erto.h"
#include "fast.h"
#include "reno.h"
#include "reno_recovery.h"
#include "tahoe.h"
#include "vegas.h"
#include "vegas_linux.h"
#include "westwood.h"

#define CC_STATE_BYTES 104 // Linux: ICSK_CA_PRIV_SIZE; the same number stands in ops.rs

struct cc_params {
	cc_u32 alpha; // packets
	cc_u32 beta;
	cc_u32 gamma;
};

struct cc_ack_sample {
	cc_u64 now_ns;
	cc_s32 rtt_us;      // negative: none (Karn)
	cc_u32 pkts_acked;
};

// The shape of Linux's tcp_congestion_ops. NULL: the control does not have it. cong_control, if there, owns cwnd.
struct cc_ops {
	const char *name;
	struct cc_params defaults;
	void (*init)(void *st, struct cc_tcp *tcp);
	cc_u32 (*ssthresh)(void *st, struct cc_tcp *tcp);
	void (*cong_avoid)(void *st, struct cc_tcp *tcp, cc_u32 acked, const struct cc_params *params);
	void (*cong_control)(void *st, struct cc_tcp *tcp);
	void (*pkts_acked)(void *st, struct cc_tcp *tcp, const struct cc_ack_sample *sample);
	void (*set_state)(void *st, struct cc_tcp *tcp, cc_u32 new_state);
	void (*cwnd_event)(void *st, struct cc_tcp *tcp, cc_u32 event);
	cc_u32 (*undo_cwnd)(void *st, struct cc_tcp *tcp);
};

// ---- reno, reno_linux -----------------------------------------------------------------------------------------------
static void none_init(void *st, struct cc_tcp *tcp) {
	(void)st;
	(void)tcp;
}

static cc_u32 ops_reno_ssthresh(void *st, struct cc_tcp *tcp) {
	(void)st;
	return reno_ssthresh(tcp);
}

static void ops_reno_cong_avoid(void *st, struct cc_tcp *tcp, cc_u32 acked, const struct cc_params *params) {
	(void)st;
	(void)params;
	reno_cong_avoid(tcp, acked);
}

static void ops_reno_linux_cong_avoid(void *st, struct cc_tcp *tcp, cc_u32 acked, const struct cc_params *params) {
	(void)st;
	(void)params;
	reno_cong_avoid_packets(tcp, acked);
}

static cc_u32 ops_reno_undo_cwnd(void *st, struct cc_tcp *tcp) {
	(void)st;
	return reno_undo_cwnd(tcp);
}

// ---- reno_recovery --------------------------------------------------------------------------------------------------
_Static_assert(sizeof(struct reno) <= CC_STATE_BYTES, "state does not fit");

static void ops_reno_recovery_init(void *st, struct cc_tcp *tcp) { reno_init(st, tcp); }

static void ops_reno_recovery_cong_control(void *st, struct cc_tcp *tcp) { reno_on_ack(st, tcp); }

static void ops_reno_recovery_set_state(void *st, struct cc_tcp *tcp, cc_u32 new_state) {
	reno_set_state(st, tcp, new_state);
}

// ---- vegas ----------------------------------------------------------------------------------------------------------
_Static_assert(sizeof(struct vegas) <= CC_STATE_BYTES, "state does not fit");

static void ops_vegas_init(void *st, struct cc_tcp *tcp) { vegas_init(st, tcp); }

static cc_u32 ops_vegas_ssthresh(void *st, struct cc_tcp *tcp) {
	(void)st;
	return vegas_ssthresh(tcp);
}

static void ops_vegas_cong_avoid(void *st, struct cc_tcp *tcp, cc_u32 acked, const struct cc_params *params) {
	const struct vegas_params vegas = {.alpha = params->alpha, .beta = params->beta, .gamma = params->gamma};

	vegas_cong_avoid(st, tcp, acked, &vegas);
}

static void ops_vegas_pkts_acked(void *st, struct cc_tcp *tcp, const struct cc_ack_sample *sample) {
	(void)tcp;
	vegas_pkts_acked(st, sample->rtt_us);
}

static void ops_vegas_set_state(void *st, struct cc_tcp *tcp, cc_u32 new_state) { vegas_set_state(st, tcp, new_state); }

static void ops_vegas_cwnd_event(void *st, struct cc_tcp *tcp, cc_u32 event) { vegas_cwnd_event(st, tcp, event); }

// ---- vegas_linux ----------------------------------------------------------------------------------------------------
_Static_assert(sizeof(struct vegas_linux) <= CC_STATE_BYTES, "state does not fit");

static void ops_vegas_linux_init(void *st, struct cc_tcp *tcp) { vegas_linux_init(st, tcp); }

static void ops_vegas_linux_cong_avoid(void *st, struct cc_tcp *tcp, cc_u32 acked, const struct cc_params *params) {
	const struct vegas_params vegas = {.alpha = params->alpha, .beta = params->beta, .gamma = params->gamma};

	vegas_linux_cong_avoid(st, tcp, acked, &vegas);
}

static void ops_vegas_linux_pkts_acked(void *st, struct cc_tcp *tcp, const struct cc_ack_sample *sample) {
	(void)tcp;
	vegas_linux_pkts_acked(st, sample->rtt_us);
}

static void ops_vegas_linux_set_state(void *st, struct cc_tcp *tcp, cc_u32 new_state) {
	vegas_linux_set_state(st, tcp, new_state);
}

static void ops_vegas_linux_cwnd_event(void *st, struct cc_tcp *tcp, cc_u32 event) {
	vegas_linux_cwnd_event(st, tcp, event);
}

// ---- tahoe ----------------------------------------------------------------------------------------------------------
_Static_assert(sizeof(struct tahoe) <= CC_STATE_BYTES, "state does not fit");

static void ops_tahoe_init(void *st, struct cc_tcp *tcp) { tahoe_init(st, tcp); }

static void ops_tahoe_cong_control(void *st, struct cc_tcp *tcp) { tahoe_on_ack(st, tcp); }

static void ops_tahoe_set_state(void *st, struct cc_tcp *tcp, cc_u32 new_state) { tahoe_set_state(st, tcp, new_state); }

// ---- nss, nca -------------------------------------------------------------------------------------------------------
static void ops_nss_open(void *st, struct cc_tcp *tcp) {
	(void)st;
	nss_open(tcp);
}

static cc_u32 ops_nss_ssthresh(void *st, struct cc_tcp *tcp) {
	(void)st;
	return nss_ssthresh(tcp);
}

static void ops_nss_set_state(void *st, struct cc_tcp *tcp, cc_u32 new_state) {
	(void)st;
	(void)new_state;
	nss_open(tcp);
}

static cc_u32 ops_nss_undo_cwnd(void *st, struct cc_tcp *tcp) {
	(void)st;
	return nss_undo_cwnd(tcp);
}

static void ops_nca_cong_avoid(void *st, struct cc_tcp *tcp, cc_u32 acked, const struct cc_params *params) {
	(void)st;
	(void)params;
	nca_cong_avoid(tcp, acked);
}

// ---- westwood -------------------------------------------------------------------------------------------------------
_Static_assert(sizeof(struct westwood) <= CC_STATE_BYTES, "state does not fit");

static void ops_westwood_init(void *st, struct cc_tcp *tcp) { westwood_init(st, tcp); }

static cc_u32 ops_westwood_ssthresh(void *st, struct cc_tcp *tcp) { return westwood_ssthresh(st, tcp); }

static void ops_westwood_pkts_acked(void *st, struct cc_tcp *tcp, const struct cc_ack_sample *sample) {
	westwood_pkts_acked(st, tcp, sample->rtt_us, sample->now_ns);
}

static void ops_westwood_set_state(void *st, struct cc_tcp *tcp, cc_u32 new_state) {
	westwood_set_state(st, tcp, new_state);
}

static void ops_westwood_cwnd_event(void *st, struct cc_tcp *tcp, cc_u32 event) { westwood_cwnd_event(st, tcp, event); }

// ---- erto -----------------------------------------------------------------------------------------------------------
_Static_assert(sizeof(struct erto) <= CC_STATE_BYTES, "state does not fit");

static void ops_erto_init(void *st, struct cc_tcp *tcp) { erto_init(st, tcp); }

static void ops_erto_cong_avoid(void *st, struct cc_tcp *tcp, cc_u32 acked, const struct cc_params *params) {
	(void)params;
	erto_cong_avoid(st, tcp, acked);
}

static void ops_erto_pkts_acked(void *st, struct cc_tcp *tcp, const struct cc_ack_sample *sample) {
	(void)sample;
	erto_pkts_acked(st, tcp);
}

static void ops_erto_set_state(void *st, struct cc_tcp *tcp, cc_u32 new_state) {
	(void)tcp;
	erto_set_state(st, new_state);
}

// ---- bcr ------------------------------------------------------------------------------------------------------------
_Static_assert(sizeof(struct bcr) <= CC_STATE_BYTES, "state does not fit");

static void ops_bcr_init(void *st, struct cc_tcp *tcp) { bcr_init(st, tcp); }

static void ops_bcr_cong_avoid(void *st, struct cc_tcp *tcp, cc_u32 acked, const struct cc_params *params) {
	(void)params;
	erto_cong_avoid(&((struct bcr *)st)->erto, tcp, acked);
}

static void ops_bcr_pkts_acked(void *st, struct cc_tcp *tcp, const struct cc_ack_sample *sample) {
	bcr_pkts_acked(st, tcp, sample->rtt_us, sample->now_ns);
}

static void ops_bcr_set_state(void *st, struct cc_tcp *tcp, cc_u32 new_state) { bcr_set_state(st, tcp, new_state); }

static void ops_bcr_cwnd_event(void *st, struct cc_tcp *tcp, cc_u32 event) {
	(void)tcp;
	bcr_cwnd_event(st, event);
}

static cc_u32 ops_bcr_undo_cwnd(void *st, struct cc_tcp *tcp) { return bcr_undo_cwnd(st, tcp); }

// ---- the table ------------------------------------------------------------------------------------------------------
extern const struct cc_ops cc_controls[];
extern const size_t cc_controls_len;

const struct cc_ops cc_controls[] = {
	{
		.name = "reno",
		.init = none_init,
		.ssthresh = ops_reno_ssthresh,
		.cong_avoid = ops_reno_cong_avoid,
		.undo_cwnd = ops_reno_undo_cwnd,
	},
	{
		.name = "reno_recovery",
		.init = ops_reno_recovery_init,
		.ssthresh = ops_reno_ssthresh,
		.cong_control = ops_reno_recovery_cong_control,
		.set_state = ops_reno_recovery_set_state,
		.undo_cwnd = ops_reno_undo_cwnd,
	},
	{
		.name = "reno_linux",
		.init = none_init,
		.ssthresh = ops_reno_ssthresh,
		.cong_avoid = ops_reno_linux_cong_avoid,
		.undo_cwnd = ops_reno_undo_cwnd,
	},
	{
		.name = "vegas",
		.defaults = {.alpha = 1, .beta = 3, .gamma = 1},
		.init = ops_vegas_init,
		.ssthresh = ops_vegas_ssthresh,
		.cong_avoid = ops_vegas_cong_avoid,
		.pkts_acked = ops_vegas_pkts_acked,
		.set_state = ops_vegas_set_state,
		.cwnd_event = ops_vegas_cwnd_event,
		.undo_cwnd = ops_reno_undo_cwnd,
	},
	{
		.name = "vegas_linux",
		.defaults = {.alpha = 2, .beta = 4, .gamma = 1},
		.init = ops_vegas_linux_init,
		.ssthresh = ops_reno_ssthresh,
		.cong_avoid = ops_vegas_linux_cong_avoid,
		.pkts_acked = ops_vegas_linux_pkts_acked,
		.set_state = ops_vegas_linux_set_state,
		.cwnd_event = ops_vegas_linux_cwnd_event,
		.undo_cwnd = ops_reno_undo_cwnd,
	},
	{
		.name = "tahoe",
		.init = ops_tahoe_init,
		.ssthresh = ops_reno_ssthresh,
		.cong_control = ops_tahoe_cong_control,
		.set_state = ops_tahoe_set_state,
		.undo_cwnd = ops_reno_undo_cwnd,
	},
	{
		.name = "nss",
		.init = ops_nss_open,
		.ssthresh = ops_nss_ssthresh,
		.cong_control = ops_nss_open,
		.set_state = ops_nss_set_state,
		.cwnd_event = ops_nss_set_state,
		.undo_cwnd = ops_nss_undo_cwnd,
	},
	{
		.name = "nca",
		.init = none_init,
		.ssthresh = ops_reno_ssthresh,
		.cong_avoid = ops_nca_cong_avoid,
		.undo_cwnd = ops_reno_undo_cwnd,
	},
	{
		.name = "westwood",
		.init = ops_westwood_init,
		.ssthresh = ops_westwood_ssthresh,
		.cong_avoid = ops_reno_cong_avoid,
		.pkts_acked = ops_westwood_pkts_acked,
		.set_state = ops_westwood_set_state,
		.cwnd_event = ops_westwood_cwnd_event,
		.undo_cwnd = ops_reno_undo_cwnd,
	},
	{
		.name = "erto",
		.init = ops_erto_init,
		.ssthresh = ops_reno_ssthresh,
		.cong_avoid = ops_erto_cong_avoid,
		.pkts_acked = ops_erto_pkts_acked,
		.set_state = ops_erto_set_state,
		.undo_cwnd = ops_reno_undo_cwnd,
	},
	{
		.name = "bcr",
		.init = ops_bcr_init,
		.ssthresh = ops_reno_ssthresh,
		.cong_avoid = ops_bcr_cong_avoid,
		.pkts_acked = ops_bcr_pkts_acked,
		.set_state = ops_bcr_set_state,
		.cwnd_event = ops_bcr_cwnd_event,
		.undo_cwnd = ops_bcr_undo_cwnd,
	},
};

const size_t cc_controls_len = sizeof(cc_controls) / sizeof(cc_controls[0]);
