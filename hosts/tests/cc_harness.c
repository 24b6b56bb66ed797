// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The algorithms of ../cc behind plain C functions, for the unit tests to load as a shared library.
#include "../cc/bcr.h"
#include "../cc/bcr_plus.h"
#include "../cc/guard.h"
#include "../cc/nca.h"
#include "../cc/nss.h"
#include "../cc/reno_recovery.h"
#include "../cc/tahoe.h"
#include "../cc/vegas_linux.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned long size_of_tcp(void) { return sizeof(struct cc_tcp); }
EXPORT unsigned long size_of_reno(void) { return sizeof(struct reno); }
EXPORT unsigned long size_of_vegas(void) { return sizeof(struct vegas); }
EXPORT unsigned long size_of_vegas_linux(void) { return sizeof(struct vegas_linux); }

EXPORT void t_guard_check(struct cc_guard *guard, struct cc_tcp *tcp) { cc_guard_check(guard, tcp); }

EXPORT void t_reno_cong_avoid(struct cc_tcp *tcp, unsigned acked) { reno_cong_avoid(tcp, acked); }
EXPORT void t_reno_cong_avoid_packets(struct cc_tcp *tcp, unsigned acked) { reno_cong_avoid_packets(tcp, acked); }
EXPORT unsigned t_reno_ssthresh(struct cc_tcp *tcp) { return reno_ssthresh(tcp); }
EXPORT unsigned t_reno_undo_cwnd(struct cc_tcp *tcp) { return reno_undo_cwnd(tcp); }
EXPORT void t_reno_init(struct reno *st, struct cc_tcp *tcp) { reno_init(st, tcp); }
EXPORT void t_reno_on_ack(struct reno *st, struct cc_tcp *tcp) { reno_on_ack(st, tcp); }
EXPORT void t_reno_set_state(struct reno *st, struct cc_tcp *tcp, unsigned state) { reno_set_state(st, tcp, state); }

EXPORT unsigned long size_of_tahoe(void) { return sizeof(struct tahoe); }
EXPORT void t_tahoe_init(struct tahoe *st, struct cc_tcp *tcp) { tahoe_init(st, tcp); }
EXPORT void t_tahoe_on_ack(struct tahoe *st, struct cc_tcp *tcp) { tahoe_on_ack(st, tcp); }
EXPORT void t_tahoe_set_state(struct tahoe *st, struct cc_tcp *tcp, unsigned state) { tahoe_set_state(st, tcp, state); }

EXPORT void t_nss_open(struct cc_tcp *tcp) { nss_open(tcp); }
EXPORT unsigned t_nss_ssthresh(struct cc_tcp *tcp) { return nss_ssthresh(tcp); }
EXPORT unsigned t_nss_undo_cwnd(struct cc_tcp *tcp) { return nss_undo_cwnd(tcp); }
EXPORT void t_nca_cong_avoid(struct cc_tcp *tcp, unsigned acked) { nca_cong_avoid(tcp, acked); }

EXPORT void t_vegas_init(struct vegas *st, struct cc_tcp *tcp) { vegas_init(st, tcp); }
EXPORT void t_vegas_pkts_acked(struct vegas *st, int rtt_us) { vegas_pkts_acked(st, rtt_us); }
EXPORT void t_vegas_cong_avoid(struct vegas *st, struct cc_tcp *tcp, unsigned acked, const struct cc_params *params) {
	vegas_cong_avoid(st, tcp, acked, params);
}
EXPORT unsigned t_vegas_ssthresh(struct cc_tcp *tcp) { return vegas_ssthresh(tcp); }
EXPORT void t_vegas_cwnd_event(struct cc_tcp *tcp, unsigned event) { vegas_cwnd_event(tcp, event); }
EXPORT void t_vegas_set_state(struct vegas *st, struct cc_tcp *tcp, unsigned state) { vegas_set_state(st, tcp, state); }
EXPORT unsigned t_vegas_diff(unsigned cwnd, unsigned long long rtt_us, unsigned base_us) { return vegas_diff(cwnd, rtt_us, base_us); }

EXPORT void t_vegas_linux_init(struct vegas_linux *st, struct cc_tcp *tcp) { vegas_linux_init(st, tcp); }
EXPORT void t_vegas_linux_pkts_acked(struct vegas_linux *st, int rtt_us) { vegas_linux_pkts_acked(st, rtt_us); }
EXPORT void t_vegas_linux_cong_avoid(struct vegas_linux *st, struct cc_tcp *tcp, unsigned acked,
				     const struct cc_params *params) {
	vegas_linux_cong_avoid(st, tcp, acked, params);
}
EXPORT void t_vegas_linux_cwnd_event(struct vegas_linux *st, struct cc_tcp *tcp, unsigned event) {
	vegas_linux_cwnd_event(st, tcp, event);
}
EXPORT void t_vegas_linux_set_state(struct vegas_linux *st, struct cc_tcp *tcp, unsigned state) {
	vegas_linux_set_state(st, tcp, state);
}

EXPORT unsigned long size_of_westwood(void) { return sizeof(struct westwood); }
EXPORT unsigned long size_of_bcr(void) { return sizeof(struct bcr); }
EXPORT unsigned long size_of_bcr_plus(void) { return sizeof(struct bcr_plus); }

EXPORT void t_westwood_init(struct westwood *st, struct cc_tcp *tcp) { westwood_init(st, tcp); }
EXPORT int t_westwood_pkts_acked(struct westwood *st, struct cc_tcp *tcp, int rtt_us, unsigned long long now_ns) {
	return westwood_pkts_acked(st, tcp, rtt_us, now_ns);
}
EXPORT unsigned t_westwood_bdp(struct westwood *st) { return westwood_bdp(st); }
EXPORT unsigned t_westwood_ssthresh(struct westwood *st, struct cc_tcp *tcp) { return westwood_ssthresh(st, tcp); }
EXPORT void t_westwood_cwnd_event(struct westwood *st, struct cc_tcp *tcp, unsigned event) {
	westwood_cwnd_event(st, tcp, event);
}
EXPORT void t_westwood_set_state(struct westwood *st, struct cc_tcp *tcp, unsigned state) {
	westwood_set_state(st, tcp, state);
}

EXPORT void t_bcr_init(struct bcr *st, struct cc_tcp *tcp) { bcr_init(st, tcp); }
EXPORT void t_bcr_pkts_acked(struct bcr *st, struct cc_tcp *tcp, int rtt_us, unsigned long long now_ns) {
	bcr_pkts_acked(st, tcp, rtt_us, now_ns);
}
EXPORT void t_bcr_cong_avoid(struct bcr *st, struct cc_tcp *tcp, unsigned acked) {
	erto_cong_avoid(&st->erto, tcp, acked);
}
EXPORT void t_bcr_set_state(struct bcr *st, struct cc_tcp *tcp, unsigned state) { bcr_set_state(st, tcp, state); }
EXPORT unsigned t_bcr_undo_cwnd(struct bcr *st, struct cc_tcp *tcp) { return bcr_undo_cwnd(st, tcp); }

EXPORT void t_bcr_plus_init(struct bcr_plus *st, struct cc_tcp *tcp) { bcr_plus_init(st, tcp); }
EXPORT void t_bcr_plus_pkts_acked(struct bcr_plus *st, struct cc_tcp *tcp, int rtt_us, unsigned long long now_ns) {
	bcr_plus_pkts_acked(st, tcp, rtt_us, now_ns);
}
EXPORT void t_bcr_plus_cong_avoid(struct bcr_plus *st, struct cc_tcp *tcp, unsigned acked) {
	erto_cong_avoid(&st->erto, tcp, acked);
}
EXPORT void t_bcr_plus_set_state(struct bcr_plus *st, struct cc_tcp *tcp, unsigned state) { bcr_plus_set_state(st, tcp, state); }
EXPORT unsigned t_bcr_plus_undo_cwnd(struct bcr_plus *st, struct cc_tcp *tcp) { return bcr_plus_undo_cwnd(st, tcp); }
