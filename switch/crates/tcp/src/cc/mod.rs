// SPDX-License-Identifier: Apache-2.0
//! Congestion control: a control chosen by name, with its private state, called over the C table.
//!
//! [`ops`]: the layouts, and the table of the headers of `hosts/cc/` that `build.rs` makes.

pub mod ops;

use ops::{controls, open_library, CcOps, State, STATE_BYTES};
pub use ops::{CaEvent, CaState, CcTcp, EnaCounts, Params, Rate, INFINITE_SSTHRESH, UNPACED};
use serde::Deserialize;
use std::ffi::c_void;

/// A congestion control that the table has, by its name, or one in a library, by its path.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub struct CcName(&'static CcOps);

/// There is no such control.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnknownControl {
    #[error("no congestion control is called {name:?} (allowed: {allowed})")]
    Name { name: String, allowed: String },
    #[error("congestion control {path:?}: {why}")]
    Library { path: String, why: String },
}

impl CcName {
    pub fn as_str(self) -> &'static str {
        self.0.name()
    }

    /// Whether it asks for ECN, and has a rule of its own for what its receiver echoes.
    pub fn needs_ecn(self) -> bool {
        self.0.needs_ecn != 0
    }

    /// alpha, beta, gamma where a configuration leaves them out; zeros when the control has none.
    pub fn default_params(self) -> Params {
        self.0.defaults
    }

    /// Every name of the table.
    pub fn all() -> impl Iterator<Item = CcName> {
        controls().iter().copied().map(CcName)
    }
}

impl std::str::FromStr for CcName {
    type Err = UnknownControl;

    /// A name of the table, or the path of a library, which has a slash.
    fn from_str(name: &str) -> Result<CcName, UnknownControl> {
        if name.contains('/') {
            return open_library(name)
                .map(CcName)
                .map_err(|why| UnknownControl::Library {
                    path: name.to_string(),
                    why,
                });
        }
        CcName::all()
            .find(|control| control.as_str() == name)
            .ok_or_else(|| UnknownControl::Name {
                name: name.to_string(),
                allowed: CcName::all()
                    .map(CcName::as_str)
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }
}

impl TryFrom<String> for CcName {
    type Error = UnknownControl;

    fn try_from(name: String) -> Result<CcName, UnknownControl> {
        name.parse()
    }
}

impl Default for CcName {
    /// `reno`.
    fn default() -> CcName {
        "reno".parse().expect("hosts/cc has reno.h")
    }
}

impl PartialEq for CcName {
    fn eq(&self, other: &CcName) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for CcName {}

impl std::fmt::Debug for CcName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One connection's congestion control. The methods are Linux's `tcp_congestion_ops`; what they may change is in `CcTcp`.
pub struct CongestionControl {
    ops: &'static CcOps,
    state: State,
}

impl CongestionControl {
    /// A control whose `init` was not called yet.
    pub fn new(name: CcName) -> CongestionControl {
        CongestionControl {
            ops: name.0,
            state: State([0; STATE_BYTES]),
        }
    }

    pub fn name(&self) -> &'static str {
        self.ops.name()
    }

    pub fn needs_ecn(&self) -> bool {
        self.ops.needs_ecn != 0
    }

    /// Packets that leave back to back when it paces, at least 1.
    pub fn burst(&mut self, tcp: &mut CcTcp) -> u32 {
        match self.ops.burst {
            // SAFETY: as `state` says.
            Some(burst) => unsafe { burst(self.state(), tcp) }.max(1),
            None => 1,
        }
    }

    /// Whether the control owns the window (`cong_control`), in recovery too.
    pub fn owns_cwnd(&self) -> bool {
        self.ops.cong_control.is_some()
    }

    /// For the C side, which has the same layouts (`STATE_BYTES` is asserted there) and keeps no pointer: state and view
    /// are valid and nobody else's during a call.
    fn state(&mut self) -> *mut c_void {
        std::ptr::from_mut(&mut self.state).cast()
    }

    pub fn init(&mut self, tcp: &mut CcTcp) {
        // SAFETY: as `state` says.
        unsafe { (self.ops.init)(self.state(), tcp) }
    }

    /// The new ssthresh in packets, after a loss.
    pub fn ssthresh(&mut self, tcp: &mut CcTcp) -> u32 {
        // SAFETY: as `state` says.
        unsafe { (self.ops.ssthresh)(self.state(), tcp) }
    }

    pub fn cong_avoid(&mut self, tcp: &mut CcTcp, acked: u32) {
        if let Some(cong_avoid) = self.ops.cong_avoid {
            // SAFETY: as `state` says.
            unsafe { cong_avoid(self.state(), tcp, acked) }
        }
    }

    pub fn cong_control(&mut self, tcp: &mut CcTcp) {
        if let Some(cong_control) = self.ops.cong_control {
            // SAFETY: as `state` says.
            unsafe { cong_control(self.state(), tcp) }
        }
    }

    /// `tcp.rtt_us` is the ACK's RTT sample.
    pub fn pkts_acked(&mut self, tcp: &mut CcTcp) {
        // SAFETY: as `state` says.
        unsafe { (self.ops.pkts_acked)(self.state(), tcp) }
    }

    /// The loss-recovery state is about to change; `tcp.ca_state` is still the old one.
    pub fn set_state(&mut self, tcp: &mut CcTcp, new_state: CaState) {
        // SAFETY: as `state` says.
        unsafe { (self.ops.set_state)(self.state(), tcp, new_state as u32) }
    }

    pub fn cwnd_event(&mut self, tcp: &mut CcTcp, event: CaEvent) {
        // SAFETY: as `state` says.
        unsafe { (self.ops.cwnd_event)(self.state(), tcp, event as u32) }
    }

    /// Whether it has ENA around it.
    pub fn has_ena(&self) -> bool {
        self.ops.notified.is_some()
    }

    /// An ACK up to `ack` names the segment at `seq`; before the ACK is looked at otherwise.
    pub fn notified(&mut self, seq: u32, ack: u32) {
        if let Some(notified) = self.ops.notified {
            // SAFETY: as `state` says.
            unsafe { notified(self.state(), seq, ack) }
        }
    }

    /// The bandwidth that it estimates, packets/s; 0 where it estimates none.
    pub fn bw_est(&self) -> u32 {
        match self.ops.bw_est {
            // SAFETY: the C side reads its own state.
            Some(bw_est) => unsafe { bw_est(std::ptr::from_ref(&self.state).cast()) },
            None => 0,
        }
    }

    /// Zeros without ENA.
    pub fn ena_counts(&self) -> EnaCounts {
        match self.ops.ena_counts {
            // SAFETY: the C side reads its own state.
            Some(counts) => unsafe { counts(std::ptr::from_ref(&self.state).cast()) },
            None => EnaCounts::default(),
        }
    }

    /// The window to go back to, packets: the reduction was spurious.
    pub fn undo_cwnd(&mut self, tcp: &mut CcTcp) -> u32 {
        // SAFETY: as `state` says.
        unsafe { (self.ops.undo_cwnd)(self.state(), tcp) }
    }
}
