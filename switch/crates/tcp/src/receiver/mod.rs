// SPDX-License-Identifier: Apache-2.0
//! The receiving half: what arrived, when it is acknowledged, and the window that is announced.
//!
//! [`reassembly`]: what lies above a gap; [`ena`]: what came in corrupted.
//!
//! NOT here: PAWS (RFC 7323 §5), D-SACK, automatic tuning of the receive buffer.

pub mod ena;
pub mod reassembly;

use crate::clock::Clock;
use crate::config::{Recovery, SackLimit, TcpConfig, LARGEST_WINDOW_BYTES};
use crate::segment::options::SackBlocks;
use crate::seq::{after, before};
use crate::stats::Stats;
use crate::Nanos;
use ena::Corrupted;
use reassembly::Reassembly;

/// What a full segment is held to be before one was seen (RFC 9293 §3.7.1: the default MSS).
const FIRST_FULL_SEGMENT_BYTES: u32 = 536;
const MAX_WINDOW_SCALE: u8 = 14; // RFC 7323 §2.3

pub struct Receiver {
    rcv_nxt: u32,
    /// The right edge announced so far; it never moves back.
    right_edge: u32,
    buffer_bytes: u64,
    /// Bytes beyond the announced edge that are taken too (`SackLimit::Outstanding`).
    beyond_edge: u32,
    /// Received in order, and the application did not read it yet.
    unread_bytes: u64,
    reading: bool,
    /// Application bytes that were read.
    received_bytes: u64,
    queue: Reassembly,
    /// None without ENA.
    corrupted: Option<Corrupted>,
    fin_at: Option<u32>,
    fin_received: bool,

    window_shift: u8,
    sack: bool,
    /// TS.Recent (RFC 7323 §4.3).
    ts_recent: Option<u32>,

    clock: Clock,
    delayed_ack: bool,
    delayed_ack_timeout_ns: Nanos,
    quick_acks_left: u32,
    full_segment_bytes: u32,
    /// A segment that is not full came since the last ACK.
    short_segment: bool,
    /// The last ACK number sent (RFC 7323: Last.ACK.sent).
    last_ack_sent: u32,
    ack_now: bool,
    delayed_ack_deadline: Option<Nanos>,
    /// Our ACKs carry ECE (RFC 3168 §6.1.3, RFC 8257 §3.2).
    echo: bool,
    /// An ACK that goes before the next one: its number and whether it carries ECE.
    earlier_ack: Option<(u32, bool)>,
}

/// The shift that makes a buffer fit into the window field.
pub fn window_shift(buffer_bytes: u64) -> u8 {
    let mut shift = 0;
    while shift < MAX_WINDOW_SCALE && buffer_bytes >> shift > u64::from(u16::MAX) {
        shift += 1;
    }
    shift
}

impl Receiver {
    /// A receiver that waits for the peer's SYN.
    pub fn new(config: &TcpConfig, clock: Clock) -> Receiver {
        Receiver {
            rcv_nxt: 0,
            right_edge: 0,
            buffer_bytes: config.receive_buffer_bytes(),
            beyond_edge: match (config.recovery, config.sack_limit) {
                (Recovery::Sack, SackLimit::Outstanding) => {
                    let beyond = u64::from(config.sack_buffer_windows) - 1;
                    (config.receive_buffer_bytes() * beyond).min(LARGEST_WINDOW_BYTES / 2) as u32
                }
                _ => 0,
            },
            unread_bytes: 0,
            reading: true,
            received_bytes: 0,
            queue: Reassembly::default(),
            corrupted: config.ena.then(|| Corrupted::new(config.ena_naming)),
            fin_at: None,
            fin_received: false,
            window_shift: 0,
            sack: false,
            ts_recent: None,
            clock,
            delayed_ack: config.delayed_ack,
            delayed_ack_timeout_ns: config.delayed_ack_timeout_ns,
            quick_acks_left: config.quick_acks,
            full_segment_bytes: config.mss_bytes.min(FIRST_FULL_SEGMENT_BYTES),
            short_segment: false,
            last_ack_sent: 0,
            ack_now: false,
            delayed_ack_deadline: None,
            echo: false,
            earlier_ack: None,
        }
    }

    /// The peer's SYN is here. `window_shift` holds for our window from now on; `ts_recent` when timestamps are on.
    pub fn establish(&mut self, irs: u32, window_shift: u8, sack: bool, ts_recent: Option<u32>) {
        self.rcv_nxt = irs.wrapping_add(1);
        self.last_ack_sent = self.rcv_nxt;
        self.right_edge = self
            .rcv_nxt
            .wrapping_add(self.buffer_bytes.min(u64::from(u16::MAX)) as u32); // what our SYN says
        self.window_shift = window_shift;
        self.sack = sack;
        self.ts_recent = ts_recent;
    }

    pub fn rcv_nxt(&self) -> u32 {
        self.rcv_nxt
    }

    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    pub fn fin_received(&self) -> bool {
        self.fin_received
    }

    pub fn ts_recent(&self) -> Option<u32> {
        self.ts_recent
    }

    /// RFC 9293 §3.10.7.4, first check, widened to segments that end where the last ACK was: a probe below is not.
    pub fn is_acceptable(&self, seq: u32, seq_len: u32) -> bool {
        let end = seq.wrapping_add(seq_len);
        !before(end, self.last_ack_sent) && !after(seq, self.last_taken())
    }

    /// RFC 7323 §4.3: the timestamp to echo is that of the segment that the last ACK waited for.
    pub fn note_timestamp(&mut self, seq: u32, tsval: u32) {
        if let Some(recent) = &mut self.ts_recent {
            if !before(tsval, *recent) && !after(seq, self.last_ack_sent) {
                *recent = tsval;
            }
        }
    }

    /// Payload, or FIN, of an acceptable segment.
    pub fn on_data(&mut self, now: Nanos, seq: u32, len: u32, fin: bool, stats: &mut Stats) {
        let mut end = seq.wrapping_add(len).wrapping_add(u32::from(fin));
        let beyond_window = after(end, self.last_taken());
        if beyond_window {
            end = self.last_taken();
        } else if fin {
            self.fin_at = Some(end.wrapping_sub(1));
        }
        self.full_segment_bytes = self.full_segment_bytes.max(len);
        self.short_segment |= len < self.full_segment_bytes;
        if !after(end, self.rcv_nxt) {
            stats.duplicates_received += 1;
            self.ack_now = true;
        } else if after(seq, self.rcv_nxt) {
            stats.out_of_order += 1;
            if !self.queue.insert(seq, end) {
                stats.duplicates_received += 1;
            }
            if let Some(corrupted) = &mut self.corrupted {
                corrupted.repaired(seq, end);
            }
            self.ack_now = true; // RFC 5681 §4.2: at once, for fast retransmit
        } else {
            let fills_gap = !self.queue.is_empty();
            self.advance(end, fills_gap);
            self.schedule_ack(now, fills_gap || beyond_window || self.fin_received);
        }
    }

    /// The edge of what is taken.
    fn last_taken(&self) -> u32 {
        self.right_edge.wrapping_add(self.beyond_edge)
    }

    /// A segment of this connection with a bad checksum: it is attributed when it would have brought something of the
    /// window that is announced, and then answered at once. Whether it was.
    pub fn on_corrupted(&mut self, seq: u32, seq_len: u32) -> bool {
        let edge = self.last_taken();
        let Some(corrupted) = &mut self.corrupted else {
            return false;
        };
        let in_window = !before(seq, self.rcv_nxt) && before(seq, edge);
        if seq_len == 0 || !in_window || self.queue.contains(seq) {
            return false; // an ACK, or a header that was hit
        }
        corrupted.note(seq);
        self.ack_now = true;
        true
    }

    /// A corrupted segment waits for its answer.
    pub fn owes_an_answer(&self) -> bool {
        self.ack_now
            && self
                .corrupted
                .as_ref()
                .is_some_and(Corrupted::owes_an_answer)
    }

    /// The name that the ACK which leaves now carries.
    pub fn take_name(&mut self) -> Option<u32> {
        let corrupted = self.corrupted.as_mut()?;
        let name = corrupted.take_name();
        self.ack_now |= corrupted.owes_an_answer();
        name
    }

    fn advance(&mut self, end: u32, fills_gap: bool) {
        let next = if fills_gap {
            self.queue.advance(end)
        } else {
            end
        };
        let mut bytes = next.wrapping_sub(self.rcv_nxt);
        if self.fin_at.is_some_and(|fin_at| before(fin_at, next)) && !self.fin_received {
            self.fin_received = true;
            bytes -= 1;
        }
        self.rcv_nxt = next;
        if let Some(corrupted) = &mut self.corrupted {
            corrupted.advance(next);
        }
        if self.reading {
            self.received_bytes += u64::from(bytes);
        } else {
            self.unread_bytes += u64::from(bytes);
        }
    }

    /// RFC 5681 §4.2: every second full segment, and within a time. While what the application did not read narrows the window,
    /// its reading or the time decides (Linux: __tcp_ack_snd_check).
    fn schedule_ack(&mut self, now: Nanos, at_once: bool) {
        let quick = self.quick_acks_left > 0;
        self.quick_acks_left = self.quick_acks_left.saturating_sub(1);
        let announced = self.right_edge.wrapping_sub(self.last_ack_sent);
        let keeps_window = self.free_bytes() >= u64::from(announced);
        let second = self.waiting_bytes() > self.full_segment_bytes && keeps_window;
        if at_once || quick || !self.delayed_ack || second {
            self.ack_now = true;
        } else if self.delayed_ack_deadline.is_none() {
            self.delayed_ack_deadline = Some(self.clock.after(now, self.delayed_ack_timeout_ns));
        }
    }

    /// What came in order and was not acknowledged.
    fn waiting_bytes(&self) -> u32 {
        self.rcv_nxt.wrapping_sub(self.last_ack_sent)
    }

    fn free_bytes(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.unread_bytes)
    }

    pub fn echoes_mark(&self) -> bool {
        self.echo
    }

    pub fn set_echo(&mut self, echo: bool) {
        self.echo = echo;
    }

    /// Data that came waits for its ACK.
    pub fn ack_is_delayed(&self) -> bool {
        self.delayed_ack_deadline.is_some()
    }

    /// The next ACK is one of `ack` with the present echo, and one of all that is there follows it.
    pub fn acknowledge_before(&mut self, ack: u32) {
        self.earlier_ack = Some((ack, self.echo));
    }

    pub fn take_earlier_ack(&mut self) -> Option<(u32, bool)> {
        self.earlier_ack.take()
    }

    /// An ACK that something else than data asks for.
    pub fn request_ack(&mut self) {
        self.ack_now = true;
    }

    pub fn ack_is_due(&self) -> bool {
        self.ack_now
    }

    pub fn next_timer(&self) -> Option<Nanos> {
        self.delayed_ack_deadline
    }

    pub fn on_timer(&mut self, now: Nanos, stats: &mut Stats) {
        if self
            .delayed_ack_deadline
            .is_some_and(|deadline| deadline <= now)
        {
            self.delayed_ack_deadline = None;
            self.ack_now = true;
            stats.delayed_acks += 1;
        }
    }

    /// The application stops to read, so the window shuts, or goes on, so it opens: an ACK for more than a full segment, for one that
    /// is not full, or for a window that at least doubles; else the delayed ACK's time decides (Linux: tcp_cleanup_rbuf).
    pub fn set_reading(&mut self, reading: bool) {
        self.reading = reading;
        if reading {
            self.received_bytes += std::mem::take(&mut self.unread_bytes);
            let waiting = self.waiting_bytes();
            let left = u64::from(self.right_edge.wrapping_sub(self.rcv_nxt));
            let window = u64::from(self.edge_now().wrapping_sub(self.rcv_nxt));
            if waiting > self.full_segment_bytes
                || waiting > 0 && (self.short_segment || !self.delayed_ack)
                || window > left && window >= 2 * left
            {
                self.ack_now = true;
            }
        }
    }

    /// The edge that may be announced now. It moves by a full segment or half the buffer at least, or not at all
    /// (RFC 9293 §3.8.6.2.2).
    fn edge_now(&self) -> u32 {
        let edge = self.rcv_nxt.wrapping_add(self.free_bytes() as u32);
        let gain = edge.wrapping_sub(self.right_edge) as i32;
        let least = u64::from(self.full_segment_bytes)
            .min(self.buffer_bytes / 2)
            .max(1);
        if i64::from(gain) >= least as i64 {
            edge
        } else {
            self.right_edge
        }
    }

    /// The window field of a segment that leaves now; `syn`: not scaled (RFC 7323 §2.2).
    pub fn announce(&mut self, syn: bool) -> u16 {
        let edge = self.edge_now();
        let shift = if syn { 0 } else { self.window_shift };
        let window = (edge.wrapping_sub(self.rcv_nxt) >> shift).min(u32::from(u16::MAX));
        let announced = self.rcv_nxt.wrapping_add(window << shift);
        if after(announced, self.right_edge) {
            self.right_edge = announced;
        }
        self.last_ack_sent = self.rcv_nxt;
        self.ack_now = false;
        self.short_segment = false;
        self.delayed_ack_deadline = None;
        window as u16
    }

    pub fn sack_blocks(&self) -> SackBlocks {
        if self.sack {
            self.queue.blocks()
        } else {
            SackBlocks::default()
        }
    }
}
