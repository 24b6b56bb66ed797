// SPDX-License-Identifier: Apache-2.0
//! Which of a port's queues is served next: strict priority, weighted or deficit round robin, or a calendar.

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
        /// The queue served last until it is empty, then the next larger number that holds something, around to 0:
        /// the rotating strict priority of AFQ (Sharma et al., NSDI 2018, section 3.3). A program may say whose turn it is
        /// instead (`PortQueues::set_turn`): Cebinae's two queues, which rotate by the clock.
        Calendar = "calendar",
    }
}

/// A discipline with its state.
#[derive(Clone, Debug)]
pub(crate) enum Scheduler {
    Strict,
    RoundRobin(Box<RoundRobin>),
    Calendar(Turn),
}

/// Where a calendar begins to look for a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// The queue served last, or the one that the program named.
    pub(crate) queue: usize,
    /// The program says it: the turn stays until it names another.
    pub(crate) told: bool,
}

impl Scheduler {
    /// For `queues` empty queues.
    pub(crate) fn new(kind: SchedulerKind, layer: LinkLayer, queues: usize) -> Scheduler {
        let unit = match (kind, layer) {
            (SchedulerKind::Strict, _) => return Scheduler::Strict,
            (SchedulerKind::Calendar, _) => return Scheduler::Calendar(Turn::default()),
            (SchedulerKind::Wrr, LinkLayer::Atm) => Unit::Cells,
            (SchedulerKind::Wrr, _) => Unit::Frames,
            (SchedulerKind::Drr, layer) => Unit::LineBytes(layer),
        };
        Scheduler::RoundRobin(Box::new(RoundRobin::new(queues, unit)))
    }
}
