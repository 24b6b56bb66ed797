// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The interface of a TCP sender: what its congestion control sees and may change. Plain C, no kernel types, so that one
// header is the same sender in BPF and in the simulator.
//
// A sender is `hosts/cc/NAME.h` and a row of fairlane_hosts/variants.py. The header ends with its hooks, in the shape of
// Linux's tcp_congestion_ops, each a macro that names or calls a function of the header:
//
//   #ifdef CC_SENDER_name               this header is the sender, not a part of another one
//   #define CC_STATE struct name        what it keeps of a connection: at most CC_STATE_BYTES, with CC_BW_EST 8 less
//   #define CC_DEFAULTS {.alpha = 1}    its parameters (struct cc_params), unless the row says others
//   #define CC_INIT(st, tcp)            the connection is established (or the sender was chosen in mid-flow)
//   #define CC_SSTHRESH(st, tcp)        a loss or a mark was found: the new ssthresh in packets; the runtime reduces cwnd to it
//   #define CC_CONG_AVOID(st, tcp, acked)   an ACK for `acked` new packets came while cwnd may grow
//   #define CC_CONG_CONTROL(st, tcp)    every ACK, instead of CC_CONG_AVOID: the sender owns cwnd, in a recovery too
//   #define CC_PKTS_ACKED(st, tcp)      every ACK, before the loss states: tcp->rtt_us is its RTT sample
//   #define CC_SET_STATE(st, tcp, state)    the loss-recovery state is about to change
//   #define CC_CWND_EVENT(st, tcp, event)
//   #define CC_UNDO_CWND(st, tcp)       the reduction was spurious: the window to go back to
//   #define CC_BURST(st, tcp)           the sender paces: so many packets leave back to back
//   #define CC_BW_EST(st)               the bandwidth that it estimates, packets/s; counted where a timeout is undone (not in Mininet)
//   #define CC_NEEDS_ECN 1              it asks for ECN, and sends its data as ECN-capable
//   #define CC_ENA 0                    with CC_CONG_CONTROL: there is a second sender, it with ENA around it (ena.h); 1: with SACK
//   #endif
//
// A hook that is not there does what hooks.h says. The runtime fills `struct cc_tcp`, calls, and takes back what is "written".
#ifndef FAIRLANE_CC_TCP_H
#define FAIRLANE_CC_TCP_H

#if defined(__bpf__) || defined(__KERNEL__) // no stdint.h
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
enum cc_event {
	CC_TX_START = 0,
	CC_CWND_RESTART = 1,
	CC_COMPLETE_CWR = 2,
	CC_EVENT_LOSS = 3,
	CC_ECN_NO_CE = 4, // as a receiver: an ECN-capable packet came without a mark,
	CC_ECN_IS_CE = 5, // with one (RFC 3168 §5: congestion experienced)
};

#define CC_STATE_BYTES 96u               // Linux: ICSK_CA_PRIV_SIZE (104), less struct cc_guard
#define CC_UNPACED 0xffffffffffffffffull // as a pacing rate: none

// A sender without state.
struct cc_no_state {
	cc_u32 unused;
};

// Parameters of a sender, packets. What they mean is the sender's.
struct cc_params {
	cc_u32 alpha;
	cc_u32 beta;
	cc_u32 gamma;
};

// What an ACK says of the rate at which packets arrive (draft-cheng-iccrg-delivery-rate-estimation-00 §3.3, Linux: struct
// rate_sample). The sampled packet is the one sent last of those that the ACK acknowledged or SACKed.
struct cc_rate {
	cc_s32 delivered;       // packets delivered over the interval; negative: no sample
	cc_s32 interval_us;     // from the sampled packet's flight to this ACK; negative: no sample
	cc_u32 prior_delivered; // cc_tcp.delivered when the sampled packet left
	cc_u32 prior_in_flight; // packets in flight before this ACK
	cc_u32 acked_sacked;    // packets that this ACK showed to have arrived
	cc_u32 losses;          // packets that this ACK showed to be lost
	cc_u32 app_limited;     // the application had been the limit when the sampled packet left
	cc_u32 ack_delayed;     // the receiver may have held the ACK back: the RTT sample may be too long
};

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
	cc_u32 delivered_ce;   // of these, the ones whose ACK echoed a congestion mark (ECE), modulo 2^32
	cc_u32 lost;           // packets found lost, modulo 2^32
	cc_u32 lost_out;       // packets in the queue that count as lost
	cc_u32 window_packets; // what the peer offers
	cc_u32 app_limited;    // the application is the limit until `delivered` has passed this; 0: it is not; written with CC_BURST
	cc_u32 mss_bytes;      // of a full segment
	cc_u32 srtt_us;        // smoothed RTT; 0 before the first sample
	cc_s32 rtt_us;         // RTT sample of this ACK, negative: none (Karn); CC_PKTS_ACKED and CC_CONG_CONTROL only
	cc_u32 rcv_nxt;        // as a receiver: the next byte expected; CC_CWND_EVENT only, as the next three
	cc_u32 ecn_echo;       // written: our ACKs carry ECE from now on
	cc_u32 ack_now;        // written: acknowledge at once, and before the change of ecn_echo what came until `ack_before`
	cc_u32 ack_before;     // written
	struct cc_params params;
	struct cc_rate rate; // CC_CONG_CONTROL only
	cc_u64 now_ns;
	cc_u64 pacing_rate; // bytes a second; written with CC_BURST; CC_UNPACED: packets leave as the window allows
};

CC_INLINE cc_u32 cc_min(cc_u32 a, cc_u32 b) { return a < b ? a : b; }
CC_INLINE cc_u32 cc_max(cc_u32 a, cc_u32 b) { return a > b ? a : b; }
CC_INLINE int cc_seq_before(cc_u32 a, cc_u32 b) { return (cc_s32)(a - b) < 0; }
CC_INLINE int cc_seq_after(cc_u32 a, cc_u32 b) { return (cc_s32)(b - a) < 0; }
CC_INLINE int cc_in_slow_start(const struct cc_tcp *tcp) { return tcp->snd_cwnd < tcp->snd_ssthresh; }

#endif
