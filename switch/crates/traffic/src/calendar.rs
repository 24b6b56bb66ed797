// SPDX-License-Identifier: Apache-2.0
//! Which entity acts next: indexed heaps with one instant for each entity; equal instants in the order of scheduling.
//! Entities that move seldom have a heap of their own: they may be thousands, and the others' heap stays shallow.
//! The place of an entity that acts is free for the next that is scheduled: often that is one for the same instant.
//! Nothing is allocated once the entities are there.

use crate::line::Nanos;

/// Something that acts at instants: a port, a switch, a link direction, a connection's timer, an application.
pub type EntityId = u32;

const ABSENT: u32 = u32::MAX;
/// Children of a heap node: four fit two cache lines and make the heap half as deep.
const ARITY: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Slot {
    at: Nanos,
    order: u64,
    entity: EntityId,
}

impl Slot {
    #[inline]
    fn is_before(&self, other: &Slot) -> bool {
        (self.at, self.order) < (other.at, other.order)
    }
}

/// How often an entity gets another instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    Often,
    Seldom,
}

/// Where an entity is.
#[derive(Clone, Copy, Debug)]
struct Home {
    heap: Moves,
    /// `ABSENT` without an instant.
    place: u32,
}

/// The calendar.
#[derive(Debug, Default)]
pub struct Calendar {
    /// By `Moves`.
    heaps: [Vec<Slot>; 2],
    homes: Vec<Home>,
    scheduled: u64,
    /// The heap whose first place is free: its entity acts.
    free: Option<Moves>,
}

impl Calendar {
    /// A new entity, with no instant yet.
    pub fn add_entity(&mut self, moves: Moves) -> EntityId {
        self.homes.push(Home {
            heap: moves,
            place: ABSENT,
        });
        let heap = &mut self.heaps[moves as usize];
        heap.reserve(self.homes.len() - heap.len());
        self.homes.len() as EntityId - 1
    }

    /// The earliest instant and whose it is.
    #[inline]
    pub fn peek(&self) -> Option<(Nanos, EntityId)> {
        debug_assert!(self.free.is_none(), "an entity acts");
        let first = match [self.heaps[0].first(), self.heaps[1].first()] {
            [Some(a), Some(b)] if b.is_before(a) => Some(b),
            [a, b] => a.or(b),
        };
        first.map(|slot| (slot.at, slot.entity))
    }

    /// The entity that `peek` names acts from here to `end`, and has no instant until it gets one.
    #[inline]
    pub fn begin(&mut self, entity: EntityId) {
        let home = &mut self.homes[entity as usize];
        debug_assert!(home.place == 0 && self.free.is_none(), "the first acts");
        home.place = ABSENT;
        self.free = Some(home.heap);
    }

    /// The entity has acted.
    #[inline]
    pub fn end(&mut self) {
        let Some(heap) = self.free.take() else {
            return;
        };
        let slots = &mut self.heaps[heap as usize];
        match slots.pop() {
            Some(last) if !slots.is_empty() => self.down(heap, 0, last),
            _ => {}
        }
    }

    /// The instant of an entity.
    #[inline]
    pub fn due(&self, entity: EntityId) -> Option<Nanos> {
        let Home { heap, place } = self.homes[entity as usize];
        match place {
            ABSENT => None,
            place => Some(self.heaps[heap as usize][place as usize].at),
        }
    }

    /// Gives an entity its instant, or none. An instant that stays keeps its place in the order.
    #[inline]
    pub fn set(&mut self, entity: EntityId, at: Option<Nanos>) {
        if self.due(entity) != at {
            self.set_after_action(entity, at);
        }
    }

    /// As `set` for the entity that has just acted: the same instant again comes behind all that is scheduled for it.
    #[inline]
    pub fn set_after_action(&mut self, entity: EntityId, at: Option<Nanos>) {
        match at {
            Some(at) => self.schedule(entity, at),
            None => self.cancel(entity),
        }
    }

    #[inline]
    fn schedule(&mut self, entity: EntityId, at: Nanos) {
        self.scheduled += 1;
        let slot = Slot {
            at,
            order: self.scheduled,
            entity,
        };
        let Home { heap, place } = self.homes[entity as usize];
        if self.free == Some(heap) {
            if place == ABSENT {
                self.free = None;
                return self.down(heap, 0, slot);
            }
            self.end();
        }
        match self.homes[entity as usize].place {
            ABSENT => {
                let slots = &mut self.heaps[heap as usize];
                slots.push(slot);
                let last = slots.len() - 1;
                self.up(heap, last, slot);
            }
            place => self.settle(heap, place as usize, slot),
        }
    }

    #[inline]
    fn cancel(&mut self, entity: EntityId) {
        if self.homes[entity as usize].place == ABSENT {
            return;
        }
        self.end();
        let Home { heap, place } = self.homes[entity as usize];
        self.homes[entity as usize].place = ABSENT;
        let place = place as usize;
        let slots = &mut self.heaps[heap as usize];
        match slots.pop() {
            Some(last) if place < slots.len() => self.settle(heap, place, last),
            _ => {}
        }
    }

    /// Puts `slot` at `place`, above or below.
    #[inline]
    fn settle(&mut self, heap: Moves, place: usize, slot: Slot) {
        if slot.is_before(&self.heaps[heap as usize][place]) {
            self.up(heap, place, slot);
        } else {
            self.down(heap, place, slot);
        }
    }

    /// Puts `slot` at `place` or above.
    #[inline]
    fn up(&mut self, heap: Moves, mut place: usize, slot: Slot) {
        let slots = &mut self.heaps[heap as usize];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if !slot.is_before(&slots[parent]) {
                break;
            }
            let lower = slots[parent];
            put(slots, &mut self.homes, place, lower);
            place = parent;
        }
        put(slots, &mut self.homes, place, slot);
    }

    /// Puts `slot` at `place` or below.
    #[inline]
    fn down(&mut self, heap: Moves, mut place: usize, slot: Slot) {
        let slots = &mut self.heaps[heap as usize];
        loop {
            let first = place * ARITY + 1;
            let end = (first + ARITY).min(slots.len());
            let Some(mut child) = (first < end).then_some(first) else {
                break;
            };
            for other in first + 1..end {
                if slots[other].is_before(&slots[child]) {
                    child = other;
                }
            }
            if !slots[child].is_before(&slot) {
                break;
            }
            let upper = slots[child];
            put(slots, &mut self.homes, place, upper);
            place = child;
        }
        put(slots, &mut self.homes, place, slot);
    }
}

#[inline]
fn put(slots: &mut [Slot], homes: &mut [Home], place: usize, slot: Slot) {
    slots[place] = slot;
    homes[slot.entity as usize].place = place as u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_instants_come_in_the_order_of_scheduling() {
        let mut calendar = Calendar::default();
        let ids = [Moves::Often, Moves::Seldom, Moves::Often, Moves::Seldom]
            .map(|moves| calendar.add_entity(moves));
        for id in [2, 0, 3, 1] {
            calendar.set(ids[id], Some(5));
        }
        calendar.set(ids[2], Some(5)); // as it was: keeps its place
        let mut order = Vec::new();
        while let Some((at, id)) = calendar.peek() {
            order.push((at, id));
            // Entity 2 acts again at the same instant, behind all others.
            let again = (id == 2 && order.len() == 1).then_some(5);
            calendar.set_after_action(id, again);
        }
        assert_eq!(order, [(5, 2), (5, 0), (5, 3), (5, 1), (5, 2)]);
    }

    /// Against a sorted list, with seeded moves, cancellations and acts.
    #[test]
    fn heaps_are_a_sorted_list() {
        let mut calendar = Calendar::default();
        let mut model: Vec<Option<(Nanos, u64)>> = vec![None; 200];
        for i in 0..model.len() {
            calendar.add_entity(match i % 3 {
                0 => Moves::Often,
                _ => Moves::Seldom,
            });
        }
        let capacity = |calendar: &Calendar| calendar.heaps.each_ref().map(Vec::capacity);
        let before = capacity(&calendar);
        let (mut state, mut order) = (1u64, 0u64);
        let mut random = move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            state >> 33
        };
        for _ in 0..20_000 {
            let acts = calendar.peek().filter(|_| random() % 2 == 0);
            if let Some((_, entity)) = acts {
                calendar.begin(entity);
                model[entity as usize] = None;
            }
            for _ in 0..random() % 4 {
                let id = match acts.filter(|_| random() % 2 == 0) {
                    Some((_, entity)) => entity as usize,
                    None => (random() % 200) as usize,
                };
                let at = (random() % 4 != 0).then(|| random() % 50);
                if let Some(at) = at {
                    if model[id].map(|(a, _)| a) != Some(at) {
                        order += 1;
                        model[id] = Some((at, order));
                    }
                } else {
                    model[id] = None;
                }
                calendar.set(id as EntityId, at);
                assert_eq!(calendar.due(id as EntityId), at);
            }
            calendar.end();
            let first = model
                .iter()
                .enumerate()
                .filter_map(|(id, slot)| slot.map(|(at, order)| (at, order, id)))
                .min();
            assert_eq!(
                calendar.peek(),
                first.map(|(at, _, id)| (at, id as EntityId))
            );
        }
        assert_eq!(capacity(&calendar), before, "they never grow");
    }
}
