// SPDX-License-Identifier: Apache-2.0
//! A table applied: its key put together, the entry found, the action's arguments brought.

use super::{mask, Machine};
use crate::packet::Packet;
use crate::schema::ActionId;
use crate::table::Target;

/// Limbs of a lookup key that is put together on the stack.
const SHORT_KEY: usize = 8;

impl Machine<'_> {
    /// Looks a packet up and brings the arguments: whether an entry was found, and the action, if there is one.
    #[inline(never)]
    pub fn apply(
        &mut self,
        packet: &Packet,
        slots: &mut [u64],
        index: usize,
    ) -> (bool, Option<ActionId>) {
        let program = self.program;
        let code = &program.tables[index];
        // Short keys on the stack: their number of limbs is known to be small.
        let mut short = [0u64; SHORT_KEY];
        let key = match code.key_slots.len() {
            n @ ..=SHORT_KEY => &mut short[..n],
            n => {
                self.scratch.key.resize(n, 0);
                self.scratch.key.as_mut_slice()
            }
        };
        for (limb, &slot) in key.iter_mut().zip(&code.key_slots) {
            *limb = slots[usize::from(slot)];
        }
        if let Some(masks) = &code.masks {
            for (key, mask) in key.iter_mut().zip(masks) {
                *key &= mask;
            }
        }
        let bytes = packet.ingress_bytes;
        let lookup = self.state.tables[index].lookup(key, self.now, bytes);
        let (hit, entry) = (lookup.hit, lookup.entry);
        let args = usize::from(program.args);
        let mut target = lookup.target;
        let mut place = None;
        if let Target::Action(action, limbs) = target {
            // Few: a loop is quicker than a call that copies.
            for (arg, &limb) in slots[args..].iter_mut().zip(limbs) {
                *arg = limb;
            }
            place = Some(action);
            target = Target::None;
        }
        let target = match target {
            Target::Member(member) => Some((member, false)),
            Target::Group(group) => Some((group, true)),
            _ => None,
        };
        if let (Some((which, is_group)), Some(profile)) = (target, code.profile) {
            let profile = profile as usize;
            let member = if is_group {
                let hash = match code.selector {
                    Some(selector) => {
                        self.calculate_slots(slots, packet.payload(), usize::from(selector))
                    }
                    None => 0,
                };
                self.state.profiles[profile].select(which, hash)
            } else {
                Some(which)
            };
            if let Some((action, limbs)) =
                member.and_then(|m| self.state.profiles[profile].member(m))
            {
                slots[args..args + limbs.len()].copy_from_slice(limbs);
                place = Some(action);
            }
        }
        if let (Some((slot, w)), Some(entry)) = (code.meter, entry) {
            let color = self.state.tables[index].meter_color(entry, self.now, bytes);
            slots[usize::from(slot)] = u64::from(color) & mask(w);
        }
        (hit, place)
    }
}
