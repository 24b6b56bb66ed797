// SPDX-License-Identifier: Apache-2.0
//! `Observer`: who looks on while a packet takes its path. `()` sees nothing, at no cost, and packets wait in queues; a
//! trace sees all, and nothing waits.

use v1model::{Effects, Packet, Pipeline};

use crate::device::Core;
use crate::stats::DropReason;

/// A packet or copy on its way to a port.
pub(crate) struct Outgoing {
    pub packet: Box<Packet>,
    /// How often it went round already.
    pub rounds: u8,
    pub port: u32,
    /// 0: the one that the program chose.
    pub queue: u32,
}

/// What has just happened.
pub(crate) enum Seen<'s> {
    /// The parser has run, on a packet that came in so.
    Parsed(&'static str, &'s Packet),
    /// Ingress has run.
    Ingress(&'s Effects),
    /// What becomes of the packet, and port or group.
    Fate(&'static str, u64),
    /// The program drops it, or does not come to its end.
    Dropped(DropReason),
    /// Packets of this kind are sent from now on.
    Copies(&'static str),
    /// There is no such clone session.
    NoSession,
    /// It ends on its way to this port; the program's report ran so, if there is one.
    Refused(u32, DropReason, &'s Effects),
    /// Egress has run.
    Egress(&'s Effects),
    /// It is deparsed, and goes round where true.
    Leaves(&'s mut Packet, bool),
}

pub(crate) trait Observer: Sized {
    /// Packets are shown only: no count of a port changes.
    const SHADOW: bool;

    /// Puts a packet into its queue, at a port that is there and up.
    fn admit(core: &mut Core<Self>, pipeline: &mut Pipeline, out: Outgoing);

    #[inline(always)]
    fn see(&mut self, _pipeline: &mut Pipeline, _seen: Seen<'_>) {}

    /// True when another round may be shown.
    #[inline(always)]
    fn has_room(&mut self) -> bool {
        true
    }

    /// The packet, where it is to be sent at once.
    #[inline(always)]
    fn defer(&mut self, out: Outgoing) -> Option<Outgoing> {
        Some(out)
    }
}

impl Observer for () {
    const SHADOW: bool = false;

    #[inline(always)]
    fn admit(core: &mut Core, pipeline: &mut Pipeline, out: Outgoing) {
        core.admit(pipeline, out);
    }
}
