// SPDX-License-Identifier: Apache-2.0
//! Which of a port's queues is served next: strict priority, weighted round robin or deficit round robin.

use crate::link_layer::LinkLayer;
use crate::names::named;
use crate::round_robin::{RoundRobin, Unit};

named! {
    /// The scheduling disciplines; all are work-conserving and O(1) a packet.
    pub enum SchedulerKind ("scheduler") {
        /// The larger queue number first, as in BMv2.
        #[default]
        Strict = "strict",
        /// Weighted round robin: shares in cells on an `atm` line, in frames elsewhere.
        Wrr = "wrr",
        /// Deficit round robin: shares in bytes on the line.
        Drr = "drr",
    }
}

/// A discipline with its state.
#[derive(Clone, Debug)]
pub(crate) enum Scheduler {
    Strict,
    RoundRobin(Box<RoundRobin>),
}

impl Scheduler {
    /// For `queues` empty queues.
    pub(crate) fn new(kind: SchedulerKind, layer: LinkLayer, queues: usize) -> Scheduler {
        let unit = match (kind, layer) {
            (SchedulerKind::Strict, _) => return Scheduler::Strict,
            (SchedulerKind::Wrr, LinkLayer::Atm) => Unit::Cells,
            (SchedulerKind::Wrr, _) => Unit::Frames,
            (SchedulerKind::Drr, layer) => Unit::LineBytes(layer),
        };
        Scheduler::RoundRobin(Box::new(RoundRobin::new(queues, unit)))
    }
}
