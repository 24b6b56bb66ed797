// SPDX-License-Identifier: Apache-2.0
//! The machine on a program with notes: it stops at each, tells the recorder, and goes on.

use super::{At, Machine};
use crate::compile::code::Pc;
use crate::packet::Packet;
use crate::schema::Schema;
use crate::trace::{Recorder, Scene};

impl Machine<'_> {
    /// As `run`, with a record of it.
    ///
    /// # Panics
    /// As `run`.
    pub fn run_noted(
        &mut self,
        packet: &mut Packet,
        pc: Pc,
        schema: &Schema,
        recorder: &mut Recorder,
    ) {
        recorder.begin(&packet.slots);
        let mut at = At::from(pc);
        loop {
            self.run(packet, at);
            recorder.settle(&packet.slots);
            let Some(pause) = self.scratch.pause.take() else {
                return;
            };
            let scene = Scene {
                program: self.program,
                schema,
                slots: &packet.slots,
            };
            recorder.note(&scene, self.state, pause.note);
            at = pause.at;
        }
    }
}
