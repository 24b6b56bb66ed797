// SPDX-License-Identifier: GPL-2.0-only OR MIT
// What a congestion control sees of a TCP sender: plain C, no kernel types, the same for BPF and for a simulator.
//
// An algorithm of this folder is a set of static inline functions in the shape of Linux's tcp_congestion_ops:
//   X_init(st, tcp)             the connection is established (or the algorithm was chosen in mid-flow)
//   X_ssthresh(st, tcp)         a loss was found: the new ssthresh in packets; the kernel reduces cwnd to it
//   X_cong_avoid(st, tcp, acked) an ACK for `acked` new packets came while cwnd may grow
//   X_pkts_acked(st, tcp, rtt_us) an RTT sample in µs, negative when there is none (Karn)
//   X_set_state(st, tcp, state) the loss-recovery state is about to change
//   X_cwnd_event(st, tcp, event)
//   X_undo_cwnd(st, tcp)        the reduction was spurious: the window to go back to
// The caller fills `struct cc_tcp`, calls, and writes snd_cwnd, snd_cwnd_cnt and snd_ssthresh back.
#ifndef FAIRLANE_CC_TCP_H
#define FAIRLANE_CC_TCP_H

#ifdef __bpf__
typedef unsigned char cc_u8;
typedef unsigned int cc_u32;
typedef int cc_s32;
typedef unsigned long long cc_u64;
#define CC_INLINE static inline __attribute__((always_inline, unused))
#else
#include <stdint.h>
typedef uint8_t cc_u8;
typedef uint32_t cc_u32;
typedef int32_t cc_s32;
typedef uint64_t cc_u64;
#define CC_INLINE static inline __attribute__((unused))
#endif

#define CC_INFINITE_SSTHRESH 0x7fffffffu // Linux: TCP_INFINITE_SSTHRESH
#define CC_NO_RTT 0x7fffffffu

// Loss-recovery states: the numbers of Linux's enum tcp_ca_state.
enum cc_state { CC_OPEN = 0, CC_DISORDER = 1, CC_CWR = 2, CC_RECOVERY = 3, CC_LOSS = 4 };

// Events: the numbers of Linux's enum tcp_ca_event.
enum cc_event { CC_TX_START = 0, CC_CWND_RESTART = 1, CC_COMPLETE_CWR = 2, CC_EVENT_LOSS = 3 };

struct cc_tcp {
	cc_u32 snd_cwnd;       // packets; written
	cc_u32 snd_cwnd_cnt;   // ACKs (or packets) counted towards the next +1; written
	cc_u32 snd_ssthresh;   // packets; written
	cc_u32 snd_cwnd_clamp; // packets
	cc_u32 prior_cwnd;     // cwnd before the last reduction
	cc_u32 snd_una;        // bytes, modulo 2^32
	cc_u32 snd_nxt;        // bytes, modulo 2^32
	cc_u32 high_seq;       // snd_nxt when the recovery began
	cc_u32 in_flight;      // packets: sent - (sacked + lost) + retransmitted, never below 0
	cc_u32 retrans_out;    // retransmitted packets in flight
	cc_u32 ca_state;       // enum cc_state
	cc_u32 cwnd_limited;   // the window, not the application, limits sending
	cc_u32 delivered;      // packets known to have arrived (acknowledged, SACKed or told by a duplicate ACK), modulo 2^32
};

CC_INLINE cc_u32 cc_min(cc_u32 a, cc_u32 b) { return a < b ? a : b; }
CC_INLINE cc_u32 cc_max(cc_u32 a, cc_u32 b) { return a > b ? a : b; }
CC_INLINE int cc_seq_before(cc_u32 a, cc_u32 b) { return (cc_s32)(a - b) < 0; }
CC_INLINE int cc_seq_after(cc_u32 a, cc_u32 b) { return (cc_s32)(b - a) < 0; }
CC_INLINE int cc_in_slow_start(const struct cc_tcp *tcp) { return tcp->snd_cwnd < tcp->snd_ssthresh; }

#endif
