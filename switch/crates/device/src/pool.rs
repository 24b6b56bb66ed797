// SPDX-License-Identifier: Apache-2.0
//! Packets for reuse: as many as were ever in flight at once, then no allocation.

use v1model::{Packet, Pipeline, ProgramId};

#[derive(Default)]
pub(crate) struct Pool {
    /// Of the packets in it.
    program: Option<ProgramId>,
    // Boxed, since packets move through queues by pointer.
    #[allow(clippy::vec_box)]
    free: Vec<Box<Packet>>,
}

impl Pool {
    /// Forgets packets of another program and makes `packets` of this one.
    pub(crate) fn refill(&mut self, pipeline: &Pipeline, packets: usize) {
        self.clear();
        self.program = Some(pipeline.program_id());
        self.free
            .extend((0..packets).map(|_| pipeline.new_packet()));
    }

    #[inline]
    pub(crate) fn get(&mut self, pipeline: &Pipeline) -> Box<Packet> {
        self.free.pop().unwrap_or_else(|| pipeline.new_packet())
    }

    /// One that was on a line when the program changed is of no use any more.
    #[inline]
    pub(crate) fn put(&mut self, packet: Box<Packet>) {
        if self.program == Some(packet.program_id()) {
            self.free.push(packet);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.program = None;
        self.free.clear();
    }
}
