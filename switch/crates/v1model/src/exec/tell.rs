// SPDX-License-Identifier: Apache-2.0
//! What a program tells: samples of digests, messages of log_msg.

use super::Machine;
use crate::compile::code::Message;
use crate::effects::LogSink;
use crate::packet::Packet;
use crate::trace::Observer;
use std::fmt::Write;

impl<O: Observer> Machine<'_, O> {
    /// Samples the digests that the control asked for.
    #[inline(always)]
    pub fn sample_digests(&mut self, packet: &Packet) {
        if self.scratch.any_digest {
            self.sample_each_digest(packet);
        }
    }

    #[cold]
    fn sample_each_digest(&mut self, packet: &Packet) {
        self.scratch.any_digest = false;
        for (index, asked) in self.scratch.digests.iter_mut().enumerate() {
            if !std::mem::take(asked) {
                continue;
            }
            let id = crate::schema::DigestId(index as u32);
            self.fx.digests.push_with(id, |bytes| {
                for &(slot, width) in &self.program.digests[index] {
                    let slot = usize::from(slot);
                    for byte in (0..width.div_ceil(8) as usize).rev() {
                        bytes.push((packet.slots[slot + byte / 8] >> (8 * (byte % 8))) as u8);
                    }
                }
            });
        }
    }
}

impl LogSink {
    /// Formats a message of the program.
    pub(crate) fn message(&mut self, message: &Message, slots: &[u64]) {
        self.line(|text| {
            text.push_str(&message.texts[0]);
            for (value, following) in message.values.iter().zip(&message.texts[1..]) {
                let first = usize::from(value.slot);
                let limbs = &slots[first..first + usize::from(value.limbs)];
                let _ = match limbs {
                    [limb] if value.signed => write!(text, "{}", *limb as i64),
                    [limb] => write!(text, "{limb}"),
                    limbs => limbs
                        .iter()
                        .rev()
                        .try_for_each(|limb| write!(text, "{limb:016x}")),
                };
                text.push_str(following);
            }
        });
    }
}
