// SPDX-License-Identifier: Apache-2.0
//! Which of a port's queues is served next: strict priority, weighted or deficit round robin, a calendar, or FQ-CoDel's.

use crate::fq::Fq;
use crate::line::LinkLayer;
use crate::names::named;
use crate::round_robin::{RoundRobin, Unit};

named! {
    /// The scheduling disciplines; all are work-conserving and O(1) a packet (`fq` but for a full buffer).
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
        /// That of FQ-CoDel (RFC 8290, section 4): rounds of a quantum of bytes on the line, queues that were idle first.
        /// The queues share one buffer: the limits of a queue hold for all of them together, and what has no room makes some
        /// (`PortQueues::make_room`). Weights mean nothing.
        Fq = "fq",
    }
}

/// A discipline with its state.
#[derive(Clone, Debug)]
pub(crate) enum Scheduler {
    Strict,
    RoundRobin(Box<RoundRobin>),
    Calendar(Turn),
    Fq(Box<Fq>),
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
            (SchedulerKind::Fq, _) => return Scheduler::Fq(Box::new(Fq::new(queues))),
            (SchedulerKind::Wrr, LinkLayer::Atm) => Unit::Cells,
            (SchedulerKind::Wrr, _) => Unit::Frames,
            (SchedulerKind::Drr, layer) => Unit::LineBytes(layer),
        };
        Scheduler::RoundRobin(Box::new(RoundRobin::new(queues, unit)))
    }

    /// There are so many queues now.
    pub(crate) fn grow(&mut self, queues: usize) {
        match self {
            Scheduler::RoundRobin(scheduler) => scheduler.grow(queues),
            Scheduler::Fq(scheduler) => scheduler.grow(queues),
            Scheduler::Strict | Scheduler::Calendar(_) => {}
        }
    }

    /// A queue that was empty holds a packet of `len_bytes` now.
    #[inline]
    pub(crate) fn activate(&mut self, queue: usize, weight: u32, len_bytes: u32) {
        match self {
            Scheduler::RoundRobin(scheduler) => scheduler.activate(queue, weight, len_bytes),
            Scheduler::Fq(scheduler) => scheduler.activate(queue),
            Scheduler::Strict | Scheduler::Calendar(_) => {}
        }
    }

    /// Another number of bytes waits in a queue.
    #[inline]
    pub(crate) fn set_bytes(&mut self, queue: usize, bytes: u64) {
        if let Scheduler::Fq(scheduler) = self {
            scheduler.set_bytes(queue, bytes);
        }
    }
}
