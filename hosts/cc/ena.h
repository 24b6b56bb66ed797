// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Error Notification ACK (ENA): a sender keeps its window when a segment was corrupted, and reduces it when one was dropped.
// The decisions of both ends, in plain C: the same for Linux (BPF) and for the simulator.
//
// Receiver: the ACK that answers a corrupted segment carries its sequence number, which is the segment's name (the paper's). For
// ENA+ every ACK carries the lowest of those that are missing.
//
// Sender: a segment that was named is sent again, and the window stays. A loss without a name was a drop: the base algorithm
// (Tahoe, Reno, SACK) reduces the window as always.
//
// One recovery may have holes of both kinds, and TCP asks the base algorithm once only, when it begins. So each hole is
// judged here when it becomes the head, which is the segment at snd_una:
// - With a name, it changes nothing. The name is there in time: the ACK that moves snd_una to the hole carries it.
// - Without one, it reduces the window then, once a recovery.
// - It is a hole only when TCP counts something as lost. Else the head may still be on its way.
//
// That is the paper's ENA. ENA+ (FL_ENA_PLUS) is ours, and adds:
// - An allowance. A router drops a segment with a wrong IP header (20 bytes), and nobody can name that. It happens to about
//   20/L of the corrupted segments of L bytes. So each head with a name adds twice 20/L to the allowance, which is one
//   segment to begin with and four at most. A head without a name takes one segment from it, and the window stays. This
//   holds while 7 of 8 heads were named lately. Drops by congestion add nothing.
// - Debts. The first names may come after the first head without one. That reduction is a debt. Once 7 of 8 heads were named
//   and the allowance covers all debts, ssthresh becomes what it was before them, and slow start goes back to it. Without
//   this, one such head costs minutes at a satellite's round trip of 0.6 s. Where most heads have no name, debts are
//   forgotten.
// - Pacing, from the first recovery that kept its window.
//
//   struct ena_names      a set of names: the receiver's own, or those that the sender was told
//   struct ena_sender     what the sender keeps beside its base algorithm
//   ..._base              what the base algorithm answers
#ifndef FAIRLANE_CC_ENA_H
#define FAIRLANE_CC_ENA_H

#include "reno.h"

#ifndef FL_ENA_PLUS
#define FL_ENA_PLUS 0
#endif

#define ENA_NAMES 32u // a GEO window of 215 segments has 9 holes at BER 1e-5

// The loops have no branches, so the kernel's verifier walks them once; comparisons are done in 64 bits for that.
struct ena_names {
	cc_u32 used; // bit i: seq[i] is in the set
	cc_u32 seq[ENA_NAMES];
};

CC_INLINE cc_u32 ena_is_zero(cc_u32 x) { return (cc_u32)(((cc_u64)x - 1) >> 63); }

// The place of the only bit that is set.
CC_INLINE cc_u32 ena_bit_place(cc_u32 bit) {
	return (1 - ena_is_zero(bit & 0xffff0000u)) << 4 | (1 - ena_is_zero(bit & 0xff00ff00u)) << 3 |
	       (1 - ena_is_zero(bit & 0xf0f0f0f0u)) << 2 | (1 - ena_is_zero(bit & 0xccccccccu)) << 1 |
	       (1 - ena_is_zero(bit & 0xaaaaaaaau));
}

// Takes away the names below `una`: those segments have arrived.
CC_INLINE void ena_forget(struct ena_names *names, cc_u32 una) {
	cc_u32 gone = 0;

	for (cc_u32 i = 0; i < ENA_NAMES; i++)
		gone |= (names->seq[i] - una) >> 31 << i;
	names->used &= ~gone;
}

CC_INLINE int ena_holds(const struct ena_names *names, cc_u32 seq) {
	cc_u32 same = 0;

	for (cc_u32 i = 0; i < ENA_NAMES; i++)
		same |= ena_is_zero(names->seq[i] ^ seq) << i;
	return (same & names->used) != 0;
}

// The lowest name, counted from `una`. 0: the set is empty.
CC_INLINE int ena_lowest(const struct ena_names *names, cc_u32 una, cc_u32 *seq) {
	cc_u64 lowest = 0xffffffffu;

	for (cc_u32 i = 0; i < ENA_NAMES; i++) {
		cc_u64 other = (names->seq[i] - una) | ((names->used >> i & 1) - 1); // all ones where it is not used
		cc_u64 is_lower = (other - lowest) >> 63;

		lowest = lowest ^ ((lowest ^ other) & (0 - is_lower));
	}
	*seq = una + (cc_u32)lowest;
	return names->used != 0;
}

// Adds a name, once. Where the set is full, one goes: it is named again when it comes to be the lowest.
CC_INLINE void ena_add(struct ena_names *names, cc_u32 seq) {
	cc_u32 free = ~names->used & (names->used + 1); // the lowest free place
	cc_u32 place = ena_bit_place(free | (ena_is_zero(free) << (ENA_NAMES - 1)));

	if (ena_holds(names, seq))
		return;
	place &= ENA_NAMES - 1;
	names->seq[place] = seq;
	names->used |= 1u << place;
}

// ---- receiver ------------------------------------------------------------------------------------------------------

// A segment with a wrong checksum says `seq`: named only where the window is. 1 when it was taken.
CC_INLINE int ena_corrupted(struct ena_names *names, cc_u32 seq, cc_u32 rcv_nxt, cc_u32 window) {
	if (seq - rcv_nxt >= window)
		return 0;
	ena_forget(names, rcv_nxt);
	ena_add(names, seq);
	return 1;
}

// The name that the next ACK carries. 0: none.
CC_INLINE int ena_to_name(struct ena_names *names, cc_u32 rcv_nxt, cc_u32 *seq) {
	ena_forget(names, rcv_nxt);
	return ena_lowest(names, rcv_nxt, seq);
}

// ---- sender --------------------------------------------------------------------------------------------------------

// ENA_OPEN: a recovery that an ACK for new data began, which proves nothing: what follows decides.
enum ena_verdict { ENA_NONE = 0, ENA_KEPT = 1, ENA_REDUCED = 2, ENA_OPEN = 3 };

#define ENA_DUPACK_THRESHOLD 3u

struct ena_sender {
	cc_u32 sack;	  // the peer's ACKs say what has arrived
	cc_u32 judged;    // the head (snd_una) that was judged last
	cc_u32 verdict;   // enum ena_verdict, of the recovery that runs
	cc_u32 window;    // packets, while it is kept
	cc_u32 delivered; // of the last ACK
	cc_u32 snd_una;   // as of the last ACK
	cc_u32 dupacks;   // in a row, while the verdict is open
	cc_u32 kept;      // recoveries without a reduction
	cc_u32 reduced;   // recoveries with one
	cc_u32 allowed;   // heads without a name that the allowance paid for
	cc_u32 allowance; // 1/ENA_ALLOWANCE_ONE segments
	cc_u32 named_heads, other_heads; // lately
	cc_u32 debts;	 // reductions for a head without a name that names may still pay for
	cc_u32 doubted;	 // ssthresh before the first of them, at least its window
	cc_u32 restored; // debts that were paid
};

#define ENA_ALLOWANCE_ONE 4096u
#define ENA_ALLOWANCE_MOST (4 * ENA_ALLOWANCE_ONE)
#define ENA_SHARES 2u // of what is expected: chance clusters
#define ENA_IP_HEADER_BYTES 20u
#define ENA_HEADERS_BYTES 40u
#define ENA_HEADS_MEMORY 128u // then both counts are halved
#define ENA_NAMED_PER_OTHER 7u
#define ENA_DEBTS_MOST 3u

CC_INLINE void ena_init(struct ena_sender *st, const struct cc_tcp *tcp, cc_u32 sack) {
	*st = (struct ena_sender){.sack = sack, .verdict = ENA_NONE, .window = tcp->snd_cwnd, .allowance = ENA_ALLOWANCE_ONE};
	st->judged = st->snd_una = tcp->snd_una;
}

// An ACK names `seq`; it acknowledges up to `ack`. Before the ACK is looked at otherwise.
CC_INLINE void ena_notified(struct ena_names *named, cc_u32 seq, cc_u32 ack) {
	ena_forget(named, ack);
	if (!cc_seq_before(seq, ack))
		ena_add(named, seq);
}

// The recovery that ran is over.
CC_INLINE void ena_end(struct ena_sender *st) {
	st->kept += st->verdict == ENA_KEPT;
	st->verdict = ENA_NONE;
}

CC_INLINE int ena_names_rule(const struct ena_sender *st) {
	return st->named_heads >= st->other_heads * ENA_NAMED_PER_OTHER;
}

// A hole is at the head of the queue: 1 when it takes nothing from the window.
CC_INLINE int ena_judge(struct ena_sender *st, const struct ena_names *named, const struct cc_tcp *tcp) {
	cc_u32 head = tcp->snd_una;

	st->judged = head;
	if (st->named_heads + st->other_heads >= ENA_HEADS_MEMORY) {
		st->named_heads /= 2;
		st->other_heads /= 2;
	}
	if (ena_holds(named, head)) {
		cc_u32 share = ENA_IP_HEADER_BYTES * ENA_ALLOWANCE_ONE / (tcp->mss_bytes + ENA_HEADERS_BYTES);

		st->named_heads++;
		st->allowance = cc_min(st->allowance + ENA_SHARES * share, ENA_ALLOWANCE_MOST);
		return 1;
	}
	st->other_heads++;
	if (!FL_ENA_PLUS || st->allowance < ENA_ALLOWANCE_ONE || !ena_names_rule(st))
		return 0;
	st->allowance -= ENA_ALLOWANCE_ONE;
	st->allowed++;
	return 1;
}

// The window falls, from `window` and `ssthresh`.
CC_INLINE void ena_reduce(struct ena_sender *st, cc_u32 window, cc_u32 ssthresh) {
	int drops_rule = st->other_heads > st->named_heads + 1;

	st->verdict = ENA_REDUCED;
	st->reduced++;
	if (drops_rule || st->debts == ENA_DEBTS_MOST) {
		st->debts = 0;
		return;
	}
	if (!st->debts)
		st->doubted = cc_max(window, ssthresh);
	st->debts++;
}

// The window was kept for a head: the new ssthresh, where it was `ssthresh`.
CC_INLINE cc_u32 ena_settle(struct ena_sender *st, cc_u32 ssthresh) {
	cc_u32 owed = st->debts * ENA_ALLOWANCE_ONE;

	if (!FL_ENA_PLUS || !st->debts || st->allowance < owed || !ena_names_rule(st))
		return ssthresh;
	st->allowance -= owed;
	st->restored += st->debts;
	st->debts = 0;
	return cc_max(ssthresh, st->doubted);
}

// Without SACK three duplicate ACKs begin a recovery. One that begins with an ACK for new data is Linux's mistake at the end of
// a timeout's repair: duplicate ACKs for holes long repaired still count, and the next segment, on its way, is taken for lost.
// Where drops are the rule that is left as it is without ENA.
CC_INLINE int ena_is_doubtful(const struct ena_sender *st, const struct cc_tcp *tcp) {
	return !st->sack && st->named_heads > st->other_heads && cc_seq_after(tcp->snd_una, st->snd_una);
}

// A recovery or a timeout begins: the new ssthresh.
CC_INLINE cc_u32 ena_ssthresh(struct ena_sender *st, const struct ena_names *named, const struct cc_tcp *tcp,
			      cc_u32 ssthresh_base) {
	ena_end(st);
	if (ena_is_doubtful(st, tcp)) {
		st->verdict = ENA_OPEN;
		st->window = tcp->snd_cwnd;
		st->dupacks = 0;
		return tcp->snd_ssthresh;
	}
	if (ena_judge(st, named, tcp)) {
		st->verdict = ENA_KEPT;
		st->window = tcp->snd_cwnd;
		return ena_settle(st, tcp->snd_ssthresh);
	}
	ena_reduce(st, tcp->snd_cwnd, tcp->snd_ssthresh);
	return ssthresh_base;
}

// Growth by what was delivered, cumulatively or behind a hole: an ACK in a kept recovery counts like any other. Not past
// what the peer offers: an open hole holds the window there, and what a larger cwnd allows would leave as one burst.
CC_INLINE void ena_grow(struct ena_sender *st, struct cc_tcp *tcp, int delivered) {
	tcp->snd_cwnd = st->window;
	if (st->window < tcp->window_packets)
		reno_cong_avoid(tcp, delivered);
	st->window = tcp->snd_cwnd;
}

#define ENA_PACING_NUMERATOR 5 // times 5/4 the window per round trip
#define ENA_PACING_DENOMINATOR 4

// Bytes a second. A repaired hole gives the whole window free at once; sent as a burst it would overflow the buffer
// before the satellite link (100 packets), and the corruption would end in a drop after all. What may be outstanding
// counts, the least of cwnd, its clamp and the peer's window; and never Linux's 2 times of slow start: at twice the line's
// rate 220 segments on a line that holds 197 leave 120 in the queue, at 5/4 60. 0: no pacing, which begins with the first
// recovery that keeps its window.
CC_INLINE cc_u64 ena_pacing_rate(const struct ena_sender *st, const struct cc_tcp *tcp) {
	cc_u32 window = cc_min(cc_min(tcp->snd_cwnd, tcp->snd_cwnd_clamp), cc_max(tcp->window_packets, 1));
	cc_u64 rate = tcp->srtt_us ? (cc_u64)window * tcp->mss_bytes * 1000000 / tcp->srtt_us : 0;

	if (!FL_ENA_PLUS || (!st->kept && st->verdict != ENA_KEPT))
		return 0;
	return rate * ENA_PACING_NUMERATOR / ENA_PACING_DENOMINATOR;
}

// A new head is a hole that was dropped; where it was not, debts may be settled. After a timeout everything counts as
// lost, and nothing follows from that.
CC_INLINE int ena_is_dropped(struct ena_sender *st, const struct ena_names *named, struct cc_tcp *tcp) {
	if (tcp->snd_una == st->judged || !tcp->lost_out || !cc_seq_before(tcp->snd_una, tcp->high_seq))
		return 0;
	if (!ena_judge(st, named, tcp))
		return 1;
	tcp->snd_ssthresh = ena_settle(st, tcp->snd_ssthresh);
	return 0;
}

// Whether a lost segment leaves although the window is full: the paper's at once, whatever is in flight; ENA+ one after the other.
CC_INLINE int ena_may_repair(const struct cc_tcp *tcp) {
	return FL_ENA_PLUS ? !tcp->retrans_out : tcp->lost_out > tcp->retrans_out;
}

// Every ACK (Linux: cong_control), before the base algorithm's. 1: the window is settled; 0: it is the base's.
// Where a recovery is found to hold a drop after all, snd_ssthresh becomes what the base answers, and the base sees its
// recovery begin.
CC_INLINE int ena_on_ack(struct ena_sender *st, const struct ena_names *named, struct cc_tcp *tcp, cc_u32 ssthresh_base) {
	int something = st->delivered != tcp->delivered;

	st->delivered = tcp->delivered;
	st->dupacks = tcp->snd_una == st->snd_una ? st->dupacks + 1 : 0;
	st->snd_una = tcp->snd_una;
	if (tcp->ca_state != CC_RECOVERY && tcp->ca_state != CC_LOSS) {
		int was_kept = st->verdict == ENA_KEPT || st->verdict == ENA_OPEN;

		ena_end(st);
		if (was_kept) // the recovery's last ACK
			ena_grow(st, tcp, something);
		return was_kept;
	}
	if (st->verdict == ENA_OPEN && (tcp->ca_state == CC_LOSS || st->dupacks >= ENA_DUPACK_THRESHOLD))
		st->verdict = ENA_KEPT; // unless its head was dropped
	if (st->verdict != ENA_KEPT && st->verdict != ENA_OPEN)
		return 0;
	if (tcp->ca_state == CC_RECOVERY && st->verdict == ENA_KEPT && ena_is_dropped(st, named, tcp)) {
		ena_reduce(st, st->window, tcp->snd_ssthresh);
		tcp->snd_cwnd = st->window;
		tcp->snd_ssthresh = ssthresh_base;
		return 0;
	}
	ena_grow(st, tcp, something);
	if (ena_may_repair(tcp))
		tcp->snd_cwnd = cc_max(st->window, tcp->in_flight + 1);
	return 1;
}

// After the base algorithm's answer to an ACK or to a timeout, where ssthresh was `before`. A named hole is repaired at
// once also where the base would wait, and is no reason to reduce once more (Reno halves for each hole).
CC_INLINE void ena_after_base(const struct ena_names *named, struct cc_tcp *tcp, cc_u32 before) {
	if (!ena_holds(named, tcp->snd_una))
		return;
	tcp->snd_ssthresh = cc_max(tcp->snd_ssthresh, before);
	if (tcp->ca_state == CC_RECOVERY && ena_may_repair(tcp))
		tcp->snd_cwnd = cc_max(tcp->snd_cwnd, tcp->in_flight + 1);
}

#endif
