// SPDX-License-Identifier: GPL-2.0-only OR MIT
// TCP Westwood's bandwidth estimate (ABE; Casetti et al. 2002) and its answer to a loss.
//
//   BW_cur(k) = d_k / (t_k - t_k-1)                         over at least one round trip, d_k from `delivered`
//   BW_est(k) = alpha * BW_est(k-1) + (1 - alpha) * BW_cur(k),  alpha = 0.2
//   after a loss: ssthresh = BW_est * RTT_base / segment size, cwnd = min(cwnd, ssthresh); after a timeout cwnd = 1
// Bandwidth is counted in packets a second, so the segment size falls out of the window in packets.
//
// A delay spike would ruin the estimate: the first gap is the spike itself, and the burst behind it is too fast. So a
// timeout freezes it: the value from before is in force until the first full round trip of data sent after it.
// In Recovery the holes limit the sender, not the network (NewReno fills one a round trip): what is slower there is no sample.
//
// NOT the paper's filter, Tustin's with a gain that follows the gaps of ACKs: the BCR paper's is above. Samples last a round trip, not one
// ACK (one delayed ACK would dominate; as Westwood+ has it). NOT the paper in: ssthresh above cwnd becomes cwnd.
// NOT Linux's tcp_westwood: growth counts ACKs (reno.h); no 50 ms floor of a sample; frozen by timeouts.
#ifndef FAIRLANE_CC_WESTWOOD_H
#define FAIRLANE_CC_WESTWOOD_H

#include "reno.h"

#define WESTWOOD_BW_SCALE 256u // bandwidths are in 1/256 packets a second
#define WESTWOOD_BDP_MAX 1000000u

struct westwood {
	cc_u64 sample_ns;        // when the running sample began; 0: none runs
	cc_u32 sample_delivered; // packets delivered until then
	cc_u32 bw_cur;           // newest sample, packets/s * WESTWOOD_BW_SCALE
	cc_u32 bw_est;           // the same, filtered; 0 before the first sample
	cc_u32 rtt_us;           // newest sample; 0 before the first
	cc_u32 rtt_base_us;      // smallest sample; CC_NO_RTT before the first
	cc_u32 frozen;           // a timeout was seen: no samples until snd_una passes thaw_seq
	cc_u32 thaw_seq;         // end of the data sent before the end of the timeout
};

CC_INLINE void westwood_init(struct westwood *st, const struct cc_tcp *tcp) {
	*st = (struct westwood){.sample_delivered = tcp->delivered, .rtt_base_us = CC_NO_RTT, .thaw_seq = tcp->snd_una};
}

// Packets over nanoseconds as a scaled rate; saturates. elapsed_ns > 0, packets < 2^20.
CC_INLINE cc_u32 westwood_rate(cc_u32 packets, cc_u64 elapsed_ns) {
	cc_u64 rate = (cc_u64)packets * WESTWOOD_BW_SCALE * 1000000000ull / elapsed_ns;
	return rate < 0xffffffffull ? (cc_u32)rate : 0xffffffffu;
}

// Bandwidth times RTT in packets, to the nearest one; 0 while one of them is not known.
CC_INLINE cc_u32 westwood_packets(cc_u32 bw, cc_u32 rtt_us) {
	const cc_u64 unit = WESTWOOD_BW_SCALE * 1000000ull;
	cc_u64 packets;
	if (!bw || rtt_us == CC_NO_RTT)
		return 0;
	packets = ((cc_u64)bw * rtt_us + unit / 2) / unit;
	return packets < WESTWOOD_BDP_MAX ? (cc_u32)packets : WESTWOOD_BDP_MAX;
}

// Packets a second, to the nearest one.
CC_INLINE cc_u32 westwood_pps(cc_u32 bw) { return westwood_packets(bw, 1000000); }

CC_INLINE cc_u32 westwood_bdp(const struct westwood *st) { return westwood_packets(st->bw_est, st->rtt_base_us); }

// The same as a window: at least 2. 0: no estimate yet.
CC_INLINE cc_u32 westwood_target(cc_u32 bw, cc_u32 rtt_us) {
	cc_u32 packets = westwood_packets(bw, rtt_us);
	return packets ? cc_max(packets, 2) : 0;
}

CC_INLINE void westwood_begin_sample(struct westwood *st, const struct cc_tcp *tcp, cc_u64 now_ns) {
	st->sample_ns = now_ns;
	st->sample_delivered = tcp->delivered;
}

CC_INLINE void westwood_freeze(struct westwood *st, const struct cc_tcp *tcp) {
	st->frozen = 1;
	st->thaw_seq = tcp->snd_nxt;
	st->sample_ns = 0;
}

// Every ACK. 1: it completed a sample.
CC_INLINE int westwood_pkts_acked(struct westwood *st, const struct cc_tcp *tcp, cc_s32 rtt_us, cc_u64 now_ns) {
	if (rtt_us > 0)
		st->rtt_base_us = cc_min(st->rtt_base_us, (cc_u32)rtt_us);
	if (tcp->ca_state == CC_LOSS) {
		westwood_freeze(st, tcp); // also when the kernel did not say that the timer ran out
		return 0;
	}
	if (st->frozen) {
		if (!cc_seq_after(tcp->snd_una, st->thaw_seq))
			return 0;
		st->frozen = 0;
	}
	if (rtt_us > 0)
		st->rtt_us = (cc_u32)rtt_us;
	if (!st->sample_ns) {
		westwood_begin_sample(st, tcp, now_ns);
		return 0;
	}
	cc_u64 elapsed_ns = now_ns - st->sample_ns;
	if (!st->rtt_us || elapsed_ns < cc_max(st->rtt_us, 1) * 1000ull)
		return 0;
	cc_u32 current = westwood_rate(tcp->delivered - st->sample_delivered, elapsed_ns);
	westwood_begin_sample(st, tcp, now_ns);
	if (tcp->ca_state == CC_RECOVERY && current < st->bw_est)
		return 0;
	st->bw_cur = current;
	st->bw_est = st->bw_est ? (cc_u32)((st->bw_est + 4ull * current) / 5) : current; // alpha = 1/5
	return 1;
}

// Without an estimate: Reno's half.
CC_INLINE cc_u32 westwood_ssthresh(const struct westwood *st, const struct cc_tcp *tcp) {
	cc_u32 bdp = westwood_bdp(st);
	return bdp ? cc_max(cc_min(bdp, tcp->snd_cwnd), 2) : reno_ssthresh(tcp);
}

// Right after ssthresh() of a timeout: cwnd goes to 1, so nothing limits ssthresh to it. An idle time is no sample.
CC_INLINE void westwood_cwnd_event(struct westwood *st, struct cc_tcp *tcp, cc_u32 event) {
	cc_u32 bdp = westwood_bdp(st);
	if (event == CC_EVENT_LOSS && bdp)
		tcp->snd_ssthresh = cc_max(bdp, 2);
	if (event == CC_TX_START)
		st->sample_ns = 0;
}

CC_INLINE void westwood_set_state(struct westwood *st, const struct cc_tcp *tcp, cc_u32 new_state) {
	if (new_state == CC_LOSS)
		westwood_freeze(st, tcp);
	else if (new_state == CC_OPEN)
		st->sample_ns = 0;
}

#ifdef CC_SENDER_westwood
#define CC_STATE struct westwood
#define CC_INIT westwood_init
#define CC_SSTHRESH westwood_ssthresh
#define CC_PKTS_ACKED(st, tcp) (void)westwood_pkts_acked(st, tcp, (tcp)->rtt_us, (tcp)->now_ns)
#define CC_SET_STATE westwood_set_state
#define CC_CWND_EVENT westwood_cwnd_event
#endif

#endif
