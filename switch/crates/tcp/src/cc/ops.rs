// SPDX-License-Identifier: Apache-2.0
//! The C side of congestion control as Rust sees it: the layouts of `controls.c` and `hosts/cc/tcp.h`, and its table.

use std::ffi::{c_char, c_void, CStr};

/// Linux: ICSK_CA_PRIV_SIZE; `controls.c` asserts that every control's state fits.
pub const STATE_BYTES: usize = 104;

/// Linux: TCP_INFINITE_SSTHRESH; CC_INFINITE_SSTHRESH of `tcp.h`.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// `struct cc_tcp` of `hosts/cc/tcp.h`: what a control sees, and (the first three) may change.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct CcTcp {
    pub snd_cwnd: u32,
    pub snd_cwnd_cnt: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd_clamp: u32,
    pub prior_cwnd: u32,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub high_seq: u32,
    pub in_flight: u32,
    pub retrans_out: u32,
    pub ca_state: u32,
    pub cwnd_limited: u32,
    pub delivered: u32,
}

/// Loss-recovery states: the numbers of Linux's `enum tcp_ca_state`.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum CaState {
    #[default]
    Open = 0,
    Disorder = 1,
    Cwr = 2,
    Recovery = 3,
    Loss = 4,
}

/// Events: the numbers of Linux's `enum tcp_ca_event`.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaEvent {
    /// First transmission with nothing in flight.
    TxStart = 0,
    /// The window was restarted after idle.
    CwndRestart = 1,
    /// A reduction is complete.
    CompleteCwr = 2,
    /// A retransmission timeout.
    Loss = 3,
}

/// Parameters of a control, packets.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Params {
    pub alpha: u32,
    pub beta: u32,
    pub gamma: u32,
}

/// What `pkts_acked` gets for each ACK.
#[repr(C)]
pub struct AckSample {
    pub now_ns: u64,
    /// Negative: no sample (Karn).
    pub rtt_us: i32,
    pub pkts_acked: u32,
}

/// A control's private state: opaque bytes, aligned for any member.
#[repr(C, align(8))]
pub struct State(pub [u8; STATE_BYTES]);

/// A row of the table in `controls.c`.
#[repr(C)]
pub struct CcOps {
    name: *const c_char,
    pub defaults: Params,
    pub init: unsafe extern "C" fn(*mut c_void, *mut CcTcp),
    pub ssthresh: unsafe extern "C" fn(*mut c_void, *mut CcTcp) -> u32,
    pub cong_avoid: Option<unsafe extern "C" fn(*mut c_void, *mut CcTcp, u32, *const Params)>,
    pub cong_control: Option<unsafe extern "C" fn(*mut c_void, *mut CcTcp)>,
    pub pkts_acked: Option<unsafe extern "C" fn(*mut c_void, *mut CcTcp, *const AckSample)>,
    pub set_state: Option<unsafe extern "C" fn(*mut c_void, *mut CcTcp, u32)>,
    pub cwnd_event: Option<unsafe extern "C" fn(*mut c_void, *mut CcTcp, u32)>,
    pub undo_cwnd: unsafe extern "C" fn(*mut c_void, *mut CcTcp) -> u32,
}

// SAFETY: rows are constants of the C side; the name points to a string literal; nothing behind them is ever written.
unsafe impl Sync for CcOps {}

extern "C" {
    #[link_name = "cc_controls"]
    static FIRST: CcOps;
    #[link_name = "cc_controls_len"]
    static LEN: usize;
}

impl CcOps {
    /// What a configuration calls the control.
    pub fn name(&self) -> &'static str {
        // SAFETY: every row's name is a string literal of the C side.
        unsafe { CStr::from_ptr(self.name) }.to_str().unwrap_or("")
    }
}

/// All controls, in the table's order.
pub fn controls() -> &'static [CcOps] {
    // SAFETY: the C side defines `cc_controls` as an array of `cc_controls_len` rows of this layout.
    unsafe { std::slice::from_raw_parts(&raw const FIRST, LEN) }
}
