// SPDX-License-Identifier: Apache-2.0
//! Tables applied, selects of the parser, samples of digests, messages of log_msg.

use std::fmt::Write;

use num_bigint::{BigInt, Sign};

use super::{mask, Machine};
use crate::compile::code::{Case, Message, Select};
use crate::packet::{LogSink, Packet};
use crate::schema::ActionId;
use crate::table::Target;
use crate::trace::Observer;

impl<O: Observer> Machine<'_, O> {
    /// Looks a packet up and brings the arguments: whether an entry was found, and the action, if there is one.
    pub fn apply(
        &mut self,
        packet: &Packet,
        slots: &mut [u64],
        index: usize,
    ) -> (bool, Option<ActionId>) {
        let program = self.program;
        let code = &program.tables[index];
        let key = &mut self.scratch.key;
        key.clear();
        let limbs = code.key.iter();
        key.extend(limbs.map(|&(slot, mask)| slots[usize::from(slot)] & mask));
        let bytes = packet.ingress_bytes;
        let lookup = self.state.tables[index].lookup(key, self.now, bytes);
        let (hit, entry) = (lookup.hit, lookup.entry);
        let args = usize::from(program.args);
        let profile = code.profile.map(|profile| profile as usize);
        let (mut call, mut member) = (None, None);
        match lookup.target {
            Target::Action(action, limbs) => {
                slots[args..args + limbs.len()].copy_from_slice(limbs);
                call = Some(action);
            }
            Target::Member(at) => member = Some(at),
            Target::Group(group) => {
                let selector = program.selector(code).map(usize::from);
                let hash = selector.map_or(0, |s| self.calculate(slots, packet.payload(), s));
                member = profile.and_then(|at| self.state.profiles[at].select(group, hash));
            }
            Target::None => {}
        }
        if let (Some(member), Some(profile)) = (member, profile) {
            if let Some((action, limbs)) = self.state.profiles[profile].member(member) {
                slots[args..args + limbs.len()].copy_from_slice(limbs);
                call = Some(action);
            }
        }
        if let (Some((slot, w)), Some(entry)) = (code.meter, entry) {
            let color = self.state.tables[index].meter_color(entry, self.now, bytes);
            slots[usize::from(slot)] = u64::from(color) & mask(w);
        }
        (hit, call)
    }

    /// The first case that the key matches; their number where none does.
    pub fn select(&mut self, slots: &[u64], select: &Select) -> usize {
        let key = &mut self.scratch.key;
        key.clear();
        for &(slot, limbs, _) in &select.parts {
            let slot = usize::from(slot);
            key.extend_from_slice(&slots[slot..slot + usize::from(limbs)]);
        }
        let matches = |case: &Case| match case {
            Case::Masked { values, masks } => {
                let mut limbs = key.iter().zip(masks).zip(values);
                limbs.all(|((key, mask), value)| key & mask == *value)
            }
            Case::ValueSet(set) => {
                let mut joined = [0u64; 64];
                let width: u32 = select.parts.iter().map(|p| p.2).sum();
                let limbs = (width.div_ceil(64) as usize).min(joined.len());
                join(slots, select, &mut joined[..limbs]);
                self.state.value_sets[*set as usize].contains(&joined[..limbs])
            }
        };
        let found = select.cases.iter().position(matches);
        found.unwrap_or(select.cases.len())
    }

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

/// The parts of a select's key as one number, the first part most significant.
fn join(slots: &[u64], select: &Select, out: &mut [u64]) {
    let mut low = 0usize;
    for &(slot, limbs, width) in select.parts.iter().rev() {
        for i in 0..usize::from(limbs) {
            let value = slots[usize::from(slot) + i];
            let at = low + i * 64;
            let (word, shift) = (at / 64, at % 64);
            if word < out.len() {
                out[word] |= value << shift;
            }
            if shift > 0 && word + 1 < out.len() {
                out[word + 1] |= value >> (64 - shift);
            }
        }
        low += width as usize;
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
                    limbs => {
                        let bytes: Vec<u8> = limbs.iter().flat_map(|l| l.to_le_bytes()).collect();
                        let number = match value.signed {
                            true => BigInt::from_signed_bytes_le(&bytes),
                            false => BigInt::from_bytes_le(Sign::Plus, &bytes),
                        };
                        write!(text, "{number}")
                    }
                };
                text.push_str(following);
            }
        });
    }
}
