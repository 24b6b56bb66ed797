// SPDX-License-Identifier: Apache-2.0
//! The C side of congestion control as Rust sees it: the layouts of `sender.c` and `hosts/cc/tcp.h`, and the table of senders.

use libloading::Library;
use std::ffi::{c_char, c_void, CStr};

/// STATE_BYTES of `sender.c`, which asserts that every control's state fits.
pub const STATE_BYTES: usize = 288;

/// Linux: TCP_INFINITE_SSTHRESH; CC_INFINITE_SSTHRESH of `tcp.h`.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// CC_UNPACED of `tcp.h`: packets leave as the window allows.
pub const UNPACED: u64 = u64::MAX;

/// `struct cc_rate` of `hosts/cc/tcp.h`: what an ACK says of the rate at which packets arrive.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Negative: no sample.
    pub delivered: i32,
    /// Negative: no sample.
    pub interval_us: i32,
    pub prior_delivered: u32,
    pub prior_in_flight: u32,
    pub acked_sacked: u32,
    pub losses: u32,
    pub app_limited: u32,
    pub ack_delayed: u32,
}

/// `struct cc_tcp` of `hosts/cc/tcp.h`, where each member is explained: what a control sees, and may change in part.
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
    pub delivered_ce: u32,
    pub lost: u32,
    pub lost_out: u32,
    pub window_packets: u32,
    pub app_limited: u32,
    pub mss_bytes: u32,
    pub srtt_us: u32,
    /// Negative: no sample (Karn).
    pub rtt_us: i32,
    pub rcv_nxt: u32,
    pub ecn_echo: u32,
    pub ack_now: u32,
    pub ack_before: u32,
    pub params: Params,
    pub rate: Rate,
    pub now_ns: u64,
    pub pacing_rate: u64,
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
    /// As a receiver: data without a congestion mark, and with one.
    EcnNoCe = 4,
    EcnIsCe = 5,
}

/// Parameters of a control, packets.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Params {
    pub alpha: u32,
    pub beta: u32,
    pub gamma: u32,
}

/// What ENA did: recoveries that kept their window and that reduced it, heads without a name that were allowed, reductions that
/// were taken back. `struct ena_counts` of `sender.c`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct EnaCounts {
    pub kept: u32,
    pub reduced: u32,
    pub allowed: u32,
    pub restored: u32,
}

/// A control's private state: opaque bytes, aligned for any member.
#[repr(C, align(8))]
pub struct State(pub [u8; STATE_BYTES]);

/// A row of the table: `struct cc_ops` of `sender.c`.
#[repr(C)]
pub struct CcOps {
    name: *const c_char,
    pub defaults: Params,
    pub needs_ecn: u32,
    pub init: unsafe extern "C" fn(*mut c_void, *mut CcTcp),
    pub ssthresh: unsafe extern "C" fn(*mut c_void, *mut CcTcp) -> u32,
    pub cong_avoid: Option<unsafe extern "C" fn(*mut c_void, *mut CcTcp, u32)>,
    pub cong_control: Option<unsafe extern "C" fn(*mut c_void, *mut CcTcp)>,
    pub pkts_acked: unsafe extern "C" fn(*mut c_void, *mut CcTcp),
    pub set_state: unsafe extern "C" fn(*mut c_void, *mut CcTcp, u32),
    pub cwnd_event: unsafe extern "C" fn(*mut c_void, *mut CcTcp, u32),
    pub undo_cwnd: unsafe extern "C" fn(*mut c_void, *mut CcTcp) -> u32,
    pub burst: Option<unsafe extern "C" fn(*mut c_void, *mut CcTcp) -> u32>,
    pub notified: Option<unsafe extern "C" fn(*mut c_void, u32, u32)>,
    pub ena_counts: Option<unsafe extern "C" fn(*const c_void) -> EnaCounts>,
    pub bw_est: Option<unsafe extern "C" fn(*const c_void) -> u32>,
}

// SAFETY: rows are constants of the C side; the name points to a string literal; nothing behind them is ever written.
unsafe impl Sync for CcOps {}

extern "C" {
    #[link_name = "cc_senders"]
    static FIRST: &'static CcOps;
    #[link_name = "cc_senders_len"]
    static LEN: usize;
}

impl CcOps {
    /// What a configuration calls the control.
    pub fn name(&self) -> &'static str {
        // SAFETY: every row's name is a string literal of the C side.
        unsafe { CStr::from_ptr(self.name) }.to_str().unwrap_or("")
    }
}

/// All controls, in alphabetical order.
pub fn controls() -> &'static [&'static CcOps] {
    // SAFETY: `build.rs` writes `cc_senders` as an array of `cc_senders_len` pointers to rows of this layout.
    unsafe { std::slice::from_raw_parts(&raw const FIRST, LEN) }
}

/// The control in a library that `sender.c` was compiled into with CC_LIBRARY; it stays loaded until the process ends.
///
/// # Errors
/// Why the library cannot be loaded, or that it was compiled for another interface.
pub fn open_library(path: &str) -> Result<&'static CcOps, String> {
    let sizes = [size_of::<CcOps>(), size_of::<CcTcp>(), STATE_BYTES];
    // SAFETY: whoever names a library trusts its code, as a program that it runs; the sizes say that both sides have the
    // same layouts, and a row is a constant of a library that is never unloaded.
    unsafe {
        let library = Library::new(path).map_err(|error| error.to_string())?;
        let found = **library
            .get::<*const [u32; 3]>(b"cc_library_sizes")
            .map_err(|error| error.to_string())?;
        if found.map(|bytes| bytes as usize) != sizes {
            return Err(format!(
                "compiled for another interface: sizes {found:?}, not {sizes:?}"
            ));
        }
        let row = **library
            .get::<*const &'static CcOps>(b"cc_library_sender")
            .map_err(|error| error.to_string())?;
        std::mem::forget(library);
        Ok(row)
    }
}
