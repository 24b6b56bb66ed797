// SPDX-License-Identifier: Apache-2.0
//! What a connection counts, and the view of its sender that a trace records.

use crate::cc::CaState;
use crate::Nanos;

/// Counters since the connection began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// All segments that were sent, pure ACKs and retransmissions too.
    pub segments_sent: u64,
    /// Segments with payload, retransmissions too.
    pub data_segments_sent: u64,
    pub segments_received: u64,
    /// Payload bytes sent, retransmissions too.
    pub bytes_sent: u64,
    /// Data segments (SYN and FIN too) that were sent again.
    pub retransmits: u64,
    pub bytes_retransmitted: u64,
    /// Retransmission timeouts, each step of a back-off counted.
    pub timeouts: u64,
    /// Recoveries that duplicate ACKs began.
    pub fast_retransmits: u64,
    /// Timeouts that were answered by new data instead of the head (E-RTO).
    pub erto_probes: u64,
    /// Timeouts found to be spurious (E-RTO, F-RTO or Eifel).
    pub spurious_timeouts: u64,
    /// At these, the bandwidth that the sender had estimated (CC_BW_EST), packets/s, summed; 0 where it estimates none.
    pub bw_est_pps: u64,
    /// Fast recoveries found to be spurious (Eifel).
    pub spurious_recoveries: u64,
    /// Times that ssthresh was reduced for a loss (by duplicate ACKs, SACK or a timeout), undone ones too.
    pub window_reductions: u64,
    /// Segments with a bad checksum that were attributed to this connection (receiver of ENA).
    pub ena_corrupted: u64,
    /// ACKs that named a corrupted segment (sender of ENA).
    pub ena_notified: u64,
    /// With ENA: recoveries that left the window as it was, and that reduced it.
    pub ena_kept: u64,
    pub ena_reduced: u64,
    /// With ENA+: segments without a name that were taken for corrupted, and reductions that were taken back.
    pub ena_allowed: u64,
    pub ena_restored: u64,
    /// Packets whose ACK echoed a congestion mark.
    pub delivered_ce: u64,
    /// Duplicate ACKs received (RFC 5681 §2).
    pub dupacks: u64,
    /// Segments without payload, SYN, FIN or RST.
    pub acks_sent: u64,
    /// ACKs sent because the timer of the delayed ACK ran out.
    pub delayed_acks: u64,
    /// Payload segments that arrived above a gap.
    pub out_of_order: u64,
    /// Payload segments that brought nothing new.
    pub duplicates_received: u64,
    /// Probes of a zero window (RFC 9293 §3.8.6.1).
    pub window_probes: u64,
    /// Segments that fit no state and were answered by an ACK or a RST, or dropped.
    pub unacceptable: u64,
}

/// The sender as it is now.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SenderView {
    /// Packets.
    pub snd_cwnd: u32,
    /// Packets; `cc::INFINITE_SSTHRESH` before the first loss.
    pub snd_ssthresh: u32,
    /// 0 before the first sample.
    pub srtt_ns: Nanos,
    pub rttvar_ns: Nanos,
    /// The smallest sample ever; 0 before the first.
    pub min_rtt_ns: Nanos,
    /// With its back-off.
    pub rto_ns: Nanos,
    /// Packets: sent − (sacked + lost) + retransmitted.
    pub in_flight: u32,
    pub ca_state: CaState,
}
