// SPDX-License-Identifier: Apache-2.0
//! A table applied: its key put together, the entry found, the action's arguments brought.

use super::{mask, Machine};
use crate::packet::Packet;
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
        key.extend(code.key_slots.iter().map(|&slot| slots[usize::from(slot)]));
        for (limb, mask) in key.iter_mut().zip(code.masks.iter().flatten()) {
            *limb &= mask;
        }
        let bytes = packet.ingress_bytes;
        let lookup = self.state.tables[index].lookup(key, self.now, bytes);
        let (hit, entry) = (lookup.hit, lookup.entry);
        let args = usize::from(program.args);
        let mut target = lookup.target;
        let mut place = None;
        if let Target::Action(action, limbs) = target {
            slots[args..args + limbs.len()].copy_from_slice(limbs);
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
                        self.calculate(slots, packet.payload(), usize::from(selector))
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
