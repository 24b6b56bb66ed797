// SPDX-License-Identifier: GPL-2.0-only OR MIT
// BBR version 1 (Cardwell et al., ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00): paces at the bandwidth
// that it measures, and keeps what is in flight near bandwidth times the smallest RTT.
//
//   STARTUP --bandwidth grew less than 25 % in three round trips--> DRAIN --in flight <= BDP--> PROBE_BW
//   PROBE_BW: eight phases of a min_rtt each, pacing gain 5/4, 3/4, 1 …;  cwnd gain 2
//   any --min_rtt not seen again for 10 s--> PROBE_RTT (cwnd 4 for 200 ms and a round trip) --> PROBE_BW or STARTUP
//   bandwidth: the largest delivery rate (cc_tcp.rate) of 10 round trips;  min_rtt: the smallest RTT of 10 s
//
// Beside the draft, as Linux's tcp_bbr: 1 % less than the bandwidth is paced at, so that the queue drains; the window has
// room for ACKs that come in clumps (the most that came above the bandwidth in 5 to 10 round trips); even windows.
// NOT Linux's tcp_bbr in: no long-term sampling for policers; in flight is taken as it is, not as it will be at the next
// paced departure; the first phase of PROBE_BW comes from the sequence number and the time, not from a random number; the
// send buffer is the kernel's default of 2 windows, not 3.
// NOT the draft in: bandwidth in bytes a second, 4 GB/s at most.
#ifndef FAIRLANE_CC_BBR_H
#define FAIRLANE_CC_BBR_H

#include "tcp.h"

#define BBR_UNIT 256u                 // gains are in 1/256
#define BBR_HIGH_GAIN 739u            // 2/ln 2 = 2.89: doubles what is in flight each round trip
#define BBR_DRAIN_GAIN 88u            // its inverse
#define BBR_CWND_GAIN (2 * BBR_UNIT)
#define BBR_MARGIN_PERCENT 99u        // of the bandwidth is paced at
#define BBR_BW_ROUNDS 10u
#define BBR_CYCLE_PHASES 8u
#define BBR_MIN_RTT_US 10000000u      // a min_rtt older than that is measured anew
#define BBR_PROBE_RTT_US 200000u
#define BBR_MIN_CWND 4u               // packets
#define BBR_FULL_BW_PERCENT 125u      // growth that is still start-up
#define BBR_FULL_BW_ROUNDS 3u
#define BBR_INITIAL_CWND 10u          // packets (RFC 6928)
#define BBR_INITIAL_RTT_US 1000u      // before the first sample, for the pacing rate
#define BBR_EXTRA_ROUNDS 5u           // of each of the two windows of extra_acked
#define BBR_EXTRA_MAX_US 100000u      // of bandwidth: the most that it adds
#define BBR_EPOCH_MAX 0xfffffu        // packets
#define BBR_ONE_PACKET_BPS 150000u    // bytes a second: below, packets leave one by one,
#define BBR_TWO_PACKETS_BPS 3000000u  // below, by two; above, by what takes 1 ms (the draft's §4.2.2)
#define BBR_BURST_MAX_BYTES 65536u

enum bbr_mode { BBR_STARTUP = 0, BBR_DRAIN = 1, BBR_PROBE_BW = 2, BBR_PROBE_RTT = 3 };

struct bbr_max {
	cc_u32 round;
	cc_u32 bw; // bytes a second
};

struct bbr {
	struct bbr_max best[3];  // the largest, the second and the third largest that came after it
	cc_u32 min_rtt_us;       // CC_NO_RTT before the first sample
	cc_u32 min_rtt_at_us;    // when it was seen; of time, the last 32 bits
	cc_u32 probe_rtt_end_us; // 0: the window has not fallen yet
	cc_u32 round;
	cc_u32 round_end;        // the round trip ends when what is sent at this `delivered` has arrived
	cc_u32 phase_at_us;
	cc_u32 prior_cwnd;       // before a recovery or PROBE_RTT
	cc_u32 full_bw;          // bytes a second: the last that was a quarter more than the one before
	cc_u32 extra_acked[2];   // packets
	cc_u32 epoch_at_us;
	cc_u32 epoch_acked;      // packets since then
	cc_u8 extra_rounds;
	cc_u8 extra_window;
	cc_u8 mode;              // enum bbr_mode
	cc_u8 phase;             // of PROBE_BW
	cc_u8 full_bw_rounds;
	cc_u8 pipe_is_full;
	cc_u8 round_start;       // this ACK begins a round trip
	cc_u8 conservation;      // a recovery's first round trip: a packet out for each one delivered
	cc_u8 idle_restart;
	cc_u8 ca_state;          // as of the last ACK
	cc_u8 has_rtt;
	cc_u8 probe_rtt_round;   // PROBE_RTT has had its round trip
};

CC_INLINE cc_u32 bbr_now_us(const struct cc_tcp *tcp) { return (cc_u32)(tcp->now_ns / 1000); }

CC_INLINE cc_u32 bbr_bw(const struct bbr *st) { return st->best[0].bw; }

// ---- the largest of some rounds: Kathleen Nichols' filter, three values -------------------------------------------------

CC_INLINE void bbr_max_update(struct bbr *st, cc_u32 round, cc_u32 bw) {
	struct bbr_max sample = {.round = round, .bw = bw};
	cc_u32 age;

	if (bw >= st->best[0].bw || round - st->best[2].round > BBR_BW_ROUNDS) {
		st->best[0] = st->best[1] = st->best[2] = sample;
		return;
	}
	if (bw >= st->best[1].bw)
		st->best[1] = st->best[2] = sample;
	else if (bw >= st->best[2].bw)
		st->best[2] = sample;
	age = round - st->best[0].round;
	if (age > BBR_BW_ROUNDS) {
		st->best[0] = st->best[1];
		st->best[1] = st->best[2];
		st->best[2] = sample;
		if (round - st->best[0].round > BBR_BW_ROUNDS) {
			st->best[0] = st->best[1];
			st->best[1] = st->best[2];
			st->best[2] = sample;
		}
	} else if (st->best[1].round == st->best[0].round && age > BBR_BW_ROUNDS / 4) {
		st->best[1] = st->best[2] = sample;
	} else if (st->best[2].round == st->best[1].round && age > BBR_BW_ROUNDS / 2) {
		st->best[2] = sample;
	}
}

// ---- gains, pacing rate, windows --------------------------------------------------------------------------------------

CC_INLINE cc_u32 bbr_pacing_gain(const struct bbr *st) {
	if (st->mode == BBR_STARTUP)
		return BBR_HIGH_GAIN;
	if (st->mode == BBR_DRAIN)
		return BBR_DRAIN_GAIN;
	if (st->mode == BBR_PROBE_BW && st->phase < 2)
		return st->phase == 0 ? BBR_UNIT * 5 / 4 : BBR_UNIT * 3 / 4;
	return BBR_UNIT;
}

CC_INLINE cc_u32 bbr_cwnd_gain(const struct bbr *st) {
	if (st->mode == BBR_STARTUP || st->mode == BBR_DRAIN)
		return BBR_HIGH_GAIN;
	return st->mode == BBR_PROBE_BW ? BBR_CWND_GAIN : BBR_UNIT;
}

CC_INLINE void bbr_pace(struct bbr *st, struct cc_tcp *tcp, cc_u64 bw, cc_u32 gain) {
	cc_u64 rate = bw * gain / BBR_UNIT * BBR_MARGIN_PERCENT / 100;

	if (st->pipe_is_full || rate > tcp->pacing_rate)
		tcp->pacing_rate = rate;
}

// Before the first bandwidth sample: the window in the smoothed RTT, times the start-up's gain.
CC_INLINE void bbr_pace_from_rtt(struct bbr *st, struct cc_tcp *tcp) {
	cc_u32 rtt_us = tcp->srtt_us ? tcp->srtt_us : BBR_INITIAL_RTT_US;

	st->has_rtt = tcp->srtt_us != 0;
	tcp->pacing_rate = (cc_u64)tcp->snd_cwnd * tcp->mss_bytes * 1000000 / rtt_us;
	tcp->pacing_rate = tcp->pacing_rate * BBR_HIGH_GAIN / BBR_UNIT * BBR_MARGIN_PERCENT / 100;
}

// Packets that leave back to back (the draft's send_quantum, Linux: tcp_tso_autosize): at least this many.
CC_INLINE cc_u32 bbr_min_burst(const struct cc_tcp *tcp) { return tcp->pacing_rate < BBR_ONE_PACKET_BPS ? 1 : 2; }

CC_INLINE cc_u32 bbr_burst(const struct cc_tcp *tcp) {
	cc_u64 bytes = tcp->pacing_rate >> 10; // about a millisecond, as Linux shifts

	if (bytes > BBR_BURST_MAX_BYTES)
		bytes = BBR_BURST_MAX_BYTES;
	return cc_max((cc_u32)bytes / cc_max(tcp->mss_bytes, 1), bbr_min_burst(tcp));
}

// gain times bandwidth times min_rtt in packets, rounded up.
CC_INLINE cc_u32 bbr_bdp(const struct bbr *st, const struct cc_tcp *tcp, cc_u32 bw, cc_u32 gain) {
	cc_u64 bytes;

	if (st->min_rtt_us == CC_NO_RTT)
		return BBR_INITIAL_CWND;
	bytes = (cc_u64)bw * st->min_rtt_us / 1000000 * gain / BBR_UNIT;
	return (cc_u32)(bytes / cc_max(tcp->mss_bytes, 1)) + 1;
}

// Room for what a sender and a receiver hold back: three bursts, an even number, two more while it probes.
CC_INLINE cc_u32 bbr_with_quanta(const struct bbr *st, const struct cc_tcp *tcp, cc_u32 cwnd) {
	cwnd += 3 * bbr_burst(tcp);
	cwnd = (cwnd + 1) & ~1u;
	return st->mode == BBR_PROBE_BW && st->phase == 0 ? cwnd + 2 : cwnd;
}

CC_INLINE cc_u32 bbr_inflight(const struct bbr *st, const struct cc_tcp *tcp, cc_u32 gain) {
	return bbr_with_quanta(st, tcp, bbr_bdp(st, tcp, bbr_bw(st), gain));
}

// ---- the model --------------------------------------------------------------------------------------------------------

CC_INLINE void bbr_update_round_and_bw(struct bbr *st, const struct cc_tcp *tcp) {
	const struct cc_rate *rate = &tcp->rate;
	cc_u64 bw;

	st->round_start = 0;
	if (rate->delivered < 0 || rate->interval_us <= 0)
		return;
	if (!cc_seq_before(rate->prior_delivered, st->round_end)) {
		st->round_end = tcp->delivered;
		st->round++;
		st->round_start = 1;
		st->conservation = 0;
	}
	bw = (cc_u64)(cc_u32)rate->delivered * tcp->mss_bytes * 1000000 / (cc_u32)rate->interval_us;
	if (bw > 0xffffffffull)
		bw = 0xffffffffull;
	if (!rate->app_limited || bw >= bbr_bw(st))
		bbr_max_update(st, st->round, (cc_u32)bw);
}

// The most that came in clumps, above what the bandwidth explains.
CC_INLINE void bbr_update_extra_acked(struct bbr *st, const struct cc_tcp *tcp) {
	const struct cc_rate *rate = &tcp->rate;
	cc_u32 now_us = bbr_now_us(tcp), extra, *most;
	cc_u64 expected;

	if (!rate->acked_sacked || rate->delivered < 0 || rate->interval_us <= 0)
		return;
	if (st->round_start && ++st->extra_rounds >= BBR_EXTRA_ROUNDS) {
		st->extra_rounds = 0;
		st->extra_window ^= 1;
		if (st->extra_window)
			st->extra_acked[1] = 0;
		else
			st->extra_acked[0] = 0;
	}
	expected = (cc_u64)bbr_bw(st) * (now_us - st->epoch_at_us) / 1000000 / cc_max(tcp->mss_bytes, 1);
	if (st->epoch_acked <= expected || st->epoch_acked >= BBR_EPOCH_MAX) {
		st->epoch_acked = 0;
		st->epoch_at_us = now_us;
		expected = 0;
	}
	st->epoch_acked = cc_min(st->epoch_acked + rate->acked_sacked, BBR_EPOCH_MAX);
	extra = cc_min(st->epoch_acked - (cc_u32)expected, tcp->snd_cwnd);
	most = st->extra_window ? &st->extra_acked[1] : &st->extra_acked[0];
	*most = cc_max(*most, extra);
}

CC_INLINE cc_u32 bbr_extra_cwnd(const struct bbr *st, const struct cc_tcp *tcp) {
	cc_u64 most = (cc_u64)bbr_bw(st) * BBR_EXTRA_MAX_US / 1000000 / cc_max(tcp->mss_bytes, 1);
	cc_u32 extra = cc_max(st->extra_acked[0], st->extra_acked[1]);

	return !st->pipe_is_full ? 0 : most < extra ? (cc_u32)most : extra;
}

CC_INLINE void bbr_next_phase(struct bbr *st, const struct cc_tcp *tcp) {
	st->phase = (st->phase + 1) & (BBR_CYCLE_PHASES - 1);
	st->phase_at_us = bbr_now_us(tcp);
}

// Any phase but the draining one, so that flows do not probe together.
CC_INLINE void bbr_enter_probe_bw(struct bbr *st, const struct cc_tcp *tcp) {
	cc_u32 mixed = (tcp->snd_nxt ^ bbr_now_us(tcp)) * 2654435761u;

	st->mode = BBR_PROBE_BW;
	st->phase = BBR_CYCLE_PHASES - 1 - (cc_u8)((mixed >> 16) % (BBR_CYCLE_PHASES - 1));
	bbr_next_phase(st, tcp);
}

CC_INLINE int bbr_phase_is_over(const struct bbr *st, const struct cc_tcp *tcp) {
	cc_u32 in_flight = tcp->rate.prior_in_flight, gain = bbr_pacing_gain(st);
	int had_its_time = bbr_now_us(tcp) - st->phase_at_us > st->min_rtt_us;

	if (gain == BBR_UNIT)
		return had_its_time;
	if (gain > BBR_UNIT) // until it has put so much more into the network, or lost some
		return had_its_time && (tcp->rate.losses || in_flight >= bbr_inflight(st, tcp, gain));
	return had_its_time || in_flight <= bbr_inflight(st, tcp, BBR_UNIT);
}

CC_INLINE void bbr_check_full_pipe(struct bbr *st, const struct cc_tcp *tcp) {
	if (st->pipe_is_full || !st->round_start || tcp->rate.app_limited)
		return;
	if (bbr_bw(st) >= (cc_u64)st->full_bw * BBR_FULL_BW_PERCENT / 100) {
		st->full_bw = bbr_bw(st);
		st->full_bw_rounds = 0;
		return;
	}
	st->pipe_is_full = ++st->full_bw_rounds >= BBR_FULL_BW_ROUNDS;
}

CC_INLINE void bbr_check_drain(struct bbr *st, const struct cc_tcp *tcp) {
	if (st->mode == BBR_STARTUP && st->pipe_is_full)
		st->mode = BBR_DRAIN;
	if (st->mode == BBR_DRAIN && tcp->in_flight <= bbr_inflight(st, tcp, BBR_UNIT))
		bbr_enter_probe_bw(st, tcp);
}

CC_INLINE void bbr_save_cwnd(struct bbr *st, const struct cc_tcp *tcp) {
	if (st->ca_state < CC_RECOVERY && st->mode != BBR_PROBE_RTT)
		st->prior_cwnd = tcp->snd_cwnd;
	else
		st->prior_cwnd = cc_max(st->prior_cwnd, tcp->snd_cwnd);
}

CC_INLINE void bbr_leave_probe_rtt(struct bbr *st, struct cc_tcp *tcp) {
	if (!st->probe_rtt_end_us || (cc_s32)(bbr_now_us(tcp) - st->probe_rtt_end_us) < 0)
		return;
	st->min_rtt_at_us = bbr_now_us(tcp);
	tcp->snd_cwnd = cc_max(tcp->snd_cwnd, st->prior_cwnd);
	if (st->pipe_is_full)
		bbr_enter_probe_bw(st, tcp);
	else
		st->mode = BBR_STARTUP;
}

CC_INLINE void bbr_update_min_rtt(struct bbr *st, struct cc_tcp *tcp) {
	cc_u32 now_us = bbr_now_us(tcp);
	int is_old = (cc_s32)(now_us - st->min_rtt_at_us - BBR_MIN_RTT_US) > 0;

	if (tcp->rtt_us >= 0 && ((cc_u32)tcp->rtt_us < st->min_rtt_us || (is_old && !tcp->rate.ack_delayed))) {
		st->min_rtt_us = (cc_u32)tcp->rtt_us;
		st->min_rtt_at_us = now_us;
	}
	if (is_old && !st->idle_restart && st->mode != BBR_PROBE_RTT) {
		st->mode = BBR_PROBE_RTT;
		bbr_save_cwnd(st, tcp);
		st->probe_rtt_end_us = 0;
	}
	if (st->mode == BBR_PROBE_RTT) {
		// What is measured with four packets in flight is no bandwidth.
		tcp->app_limited = cc_max(tcp->delivered + tcp->in_flight, 1);
		if (!st->probe_rtt_end_us && tcp->in_flight <= BBR_MIN_CWND) {
			st->probe_rtt_end_us = cc_max(now_us + BBR_PROBE_RTT_US, 1);
			st->probe_rtt_round = 0;
			st->round_end = tcp->delivered;
		} else if (st->probe_rtt_end_us) {
			st->probe_rtt_round |= st->round_start;
			if (st->probe_rtt_round)
				bbr_leave_probe_rtt(st, tcp);
		}
	}
	if (tcp->rate.delivered > 0)
		st->idle_restart = 0;
}

// ---- the window -------------------------------------------------------------------------------------------------------

// A recovery begins with packet conservation, and ends with the window from before it. 1: the window is settled.
CC_INLINE int bbr_recover(struct bbr *st, struct cc_tcp *tcp, cc_u32 acked) {
	cc_u32 cwnd = tcp->snd_cwnd;

	if (tcp->rate.losses)
		cwnd = cwnd > tcp->rate.losses ? cwnd - tcp->rate.losses : 1;
	if (tcp->ca_state == CC_RECOVERY && st->ca_state != CC_RECOVERY) {
		st->conservation = 1;
		st->round_end = tcp->delivered;
		cwnd = tcp->in_flight + acked;
	} else if (st->ca_state >= CC_RECOVERY && tcp->ca_state < CC_RECOVERY) {
		cwnd = cc_max(cwnd, st->prior_cwnd);
		st->conservation = 0;
	}
	st->ca_state = (cc_u8)tcp->ca_state;
	tcp->snd_cwnd = st->conservation ? cc_max(cwnd, tcp->in_flight + acked) : cwnd;
	return st->conservation;
}

CC_INLINE void bbr_set_cwnd(struct bbr *st, struct cc_tcp *tcp) {
	cc_u32 acked = tcp->rate.acked_sacked, target;

	if (acked && !bbr_recover(st, tcp, acked)) {
		target = bbr_bdp(st, tcp, bbr_bw(st), bbr_cwnd_gain(st)) + bbr_extra_cwnd(st, tcp);
		target = bbr_with_quanta(st, tcp, target);
		if (st->pipe_is_full)
			tcp->snd_cwnd = cc_min(tcp->snd_cwnd + acked, target);
		else if (tcp->snd_cwnd < target || tcp->delivered < BBR_INITIAL_CWND)
			tcp->snd_cwnd += acked;
		tcp->snd_cwnd = cc_max(tcp->snd_cwnd, BBR_MIN_CWND);
	}
	tcp->snd_cwnd = cc_min(tcp->snd_cwnd, tcp->snd_cwnd_clamp);
	if (st->mode == BBR_PROBE_RTT)
		tcp->snd_cwnd = cc_min(tcp->snd_cwnd, BBR_MIN_CWND);
}

// ---- the hooks --------------------------------------------------------------------------------------------------------

CC_INLINE void bbr_init(struct bbr *st, struct cc_tcp *tcp) {
	*st = (struct bbr){.round_end = tcp->delivered, .mode = BBR_STARTUP, .ca_state = CC_OPEN};
	st->min_rtt_us = tcp->srtt_us ? tcp->srtt_us : CC_NO_RTT; // the handshake's (BBRInit() of the draft)
	st->min_rtt_at_us = st->phase_at_us = st->epoch_at_us = bbr_now_us(tcp);
	tcp->snd_ssthresh = CC_INFINITE_SSTHRESH;
	bbr_pace_from_rtt(st, tcp);
}

// Every ACK.
CC_INLINE void bbr_on_ack(struct bbr *st, struct cc_tcp *tcp) {
	bbr_update_round_and_bw(st, tcp);
	bbr_update_extra_acked(st, tcp);
	if (st->mode == BBR_PROBE_BW && bbr_phase_is_over(st, tcp))
		bbr_next_phase(st, tcp);
	bbr_check_full_pipe(st, tcp);
	bbr_check_drain(st, tcp);
	bbr_update_min_rtt(st, tcp);
	if (!st->has_rtt && tcp->srtt_us)
		bbr_pace_from_rtt(st, tcp);
	bbr_pace(st, tcp, bbr_bw(st), bbr_pacing_gain(st));
	bbr_set_cwnd(st, tcp);
}

CC_INLINE cc_u32 bbr_ssthresh(struct bbr *st, const struct cc_tcp *tcp) {
	bbr_save_cwnd(st, tcp);
	return tcp->snd_ssthresh;
}

// A timeout ends the round trip; that the pipe is full is to be seen anew.
CC_INLINE void bbr_set_state(struct bbr *st, cc_u32 new_state) {
	if (new_state != CC_LOSS)
		return;
	st->ca_state = CC_LOSS;
	st->full_bw = 0;
	st->round_start = 1;
}

// After an idle time: at the bandwidth, not above it.
CC_INLINE void bbr_cwnd_event(struct bbr *st, struct cc_tcp *tcp, cc_u32 event) {
	if (event != CC_TX_START || !tcp->app_limited)
		return;
	st->idle_restart = 1;
	st->epoch_at_us = bbr_now_us(tcp);
	st->epoch_acked = 0;
	if (st->mode == BBR_PROBE_BW)
		bbr_pace(st, tcp, bbr_bw(st), BBR_UNIT);
	else if (st->mode == BBR_PROBE_RTT)
		bbr_leave_probe_rtt(st, tcp);
}

CC_INLINE cc_u32 bbr_undo_cwnd(struct bbr *st, const struct cc_tcp *tcp) {
	st->full_bw = 0;
	st->full_bw_rounds = 0;
	return tcp->snd_cwnd;
}

#ifdef CC_SENDER_bbr
#define CC_STATE struct bbr
#define CC_INIT bbr_init
#define CC_SSTHRESH bbr_ssthresh
#define CC_CONG_CONTROL bbr_on_ack
#define CC_SET_STATE(st, tcp, state) bbr_set_state(st, state)
#define CC_CWND_EVENT bbr_cwnd_event
#define CC_UNDO_CWND bbr_undo_cwnd
#define CC_BURST(st, tcp) bbr_burst(tcp)
#endif

#endif
