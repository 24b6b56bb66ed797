// SPDX-License-Identifier: Apache-2.0
//! Which entity acts next: an indexed heap with one instant for each entity; equal instants in the order of scheduling.
//! Nothing is allocated once the entities are there.

use crate::line::Nanos;

/// Something that acts at instants: a port, a switch, a link direction, a connection's timer, an application.
pub type EntityId = u32;

const ABSENT: u32 = u32::MAX;
/// Children of a heap node: four fit two cache lines and make the heap half as deep.
const ARITY: usize = 4;

#[derive(Clone, Copy)]
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

/// The calendar.
#[derive(Default)]
pub struct Calendar {
    heap: Vec<Slot>,
    /// Place in the heap of each entity.
    place: Vec<u32>,
    scheduled: u64,
}

impl Calendar {
    /// A new entity, with no instant yet.
    pub fn add_entity(&mut self) -> EntityId {
        self.place.push(ABSENT);
        self.heap.reserve(self.place.len() - self.heap.len());
        self.place.len() as EntityId - 1
    }

    /// The earliest instant and whose it is.
    #[inline]
    pub fn peek(&self) -> Option<(Nanos, EntityId)> {
        self.heap.first().map(|slot| (slot.at, slot.entity))
    }

    /// The instant of an entity.
    #[inline]
    pub fn due(&self, entity: EntityId) -> Option<Nanos> {
        match self.place[entity as usize] {
            ABSENT => None,
            place => Some(self.heap[place as usize].at),
        }
    }

    /// Gives an entity its instant, or none. An instant that stays keeps its place in the order.
    #[inline]
    pub fn set(&mut self, entity: EntityId, at: Option<Nanos>) {
        match at {
            Some(at) if self.due(entity) == Some(at) => {}
            Some(at) => self.schedule(entity, at),
            None => self.cancel(entity),
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
        match self.place[entity as usize] {
            ABSENT => {
                self.heap.push(slot);
                self.up(self.heap.len() - 1, slot);
            }
            place => {
                let place = place as usize;
                if slot.is_before(&self.heap[place]) {
                    self.up(place, slot);
                } else {
                    self.down(place, slot);
                }
            }
        }
    }

    #[inline]
    fn cancel(&mut self, entity: EntityId) {
        let place = self.place[entity as usize];
        if place == ABSENT {
            return;
        }
        self.place[entity as usize] = ABSENT;
        let place = place as usize;
        let Some(last) = self.heap.pop() else {
            return;
        };
        if place == self.heap.len() {
            return;
        }
        if last.is_before(&self.heap[place]) {
            self.up(place, last);
        } else {
            self.down(place, last);
        }
    }

    /// Puts `slot` at `place` or above.
    #[inline]
    fn up(&mut self, mut place: usize, slot: Slot) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if !slot.is_before(&self.heap[parent]) {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, slot);
    }

    /// Puts `slot` at `place` or below.
    #[inline]
    fn down(&mut self, mut place: usize, slot: Slot) {
        loop {
            let first = place * ARITY + 1;
            let end = (first + ARITY).min(self.heap.len());
            let Some(mut child) = (first < end).then_some(first) else {
                break;
            };
            for other in first + 1..end {
                if self.heap[other].is_before(&self.heap[child]) {
                    child = other;
                }
            }
            if !self.heap[child].is_before(&slot) {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, slot);
    }

    #[inline]
    fn put(&mut self, place: usize, slot: Slot) {
        self.heap[place] = slot;
        self.place[slot.entity as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_instants_come_in_the_order_of_scheduling() {
        let mut calendar = Calendar::default();
        let ids: Vec<EntityId> = (0..4).map(|_| calendar.add_entity()).collect();
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

    /// Against a sorted list, with seeded moves and cancellations.
    #[test]
    fn a_heap_is_a_sorted_list() {
        let mut calendar = Calendar::default();
        let mut model: Vec<Option<(Nanos, u64)>> = vec![None; 200];
        for _ in &model {
            calendar.add_entity();
        }
        let capacity = calendar.heap.capacity();
        let (mut state, mut order) = (1u64, 0u64);
        let mut random = move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            state >> 33
        };
        for _ in 0..20_000 {
            let id = (random() % 200) as usize;
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
        assert_eq!(calendar.heap.capacity(), capacity, "it never grows");
    }
}
