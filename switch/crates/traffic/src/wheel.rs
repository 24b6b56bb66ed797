// SPDX-License-Identifier: Apache-2.0
//! A calendar of rounds: queues wait for their turn in lists by round, and rounds in which none has one are skipped.

use crate::bit_set::{BitSet, MEMBERS_MAX};

const NIL: u32 = u32::MAX;

/// Most rounds that a queue can be parked for.
pub(crate) const ROUNDS_MAX: u64 = MEMBERS_MAX as u64 - 1;

#[derive(Clone, Copy, Debug)]
struct Links {
    next: u32,
    previous: u32,
    /// The round for which it is parked.
    at: u64,
}

/// The calendar. The caller knows which queues are parked.
#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    /// First and last queue of each round, by round modulo their number.
    slots: Vec<[u32; 2]>,
    used: BitSet,
    links: Vec<Links>,
    round: u64,
}

impl Wheel {
    /// None of `queues` queues is parked.
    pub(crate) fn new(queues: usize) -> Wheel {
        let mut wheel = Wheel {
            slots: vec![[NIL; 2]; MEMBERS_MAX],
            used: BitSet::EMPTY,
            links: Vec::new(),
            round: 0,
        };
        wheel.grow(queues);
        wheel
    }

    pub(crate) fn grow(&mut self, queues: usize) {
        let links = Links {
            next: NIL,
            previous: NIL,
            at: 0,
        };
        self.links.resize(queues.max(self.links.len()), links);
    }

    /// The present round.
    pub(crate) fn round(&self) -> u64 {
        self.round
    }

    /// Rounds until the turn of a parked queue.
    #[inline]
    pub(crate) fn remaining(&self, queue: usize) -> u64 {
        self.links[queue].at - self.round
    }

    /// Puts a queue behind those that wait for the same round: 1 to [`ROUNDS_MAX`] rounds from now.
    #[inline]
    pub(crate) fn park(&mut self, queue: usize, rounds: u64) {
        let at = self.round + rounds;
        let slot = at as usize % MEMBERS_MAX;
        let [first, last] = &mut self.slots[slot];
        let previous = *last;
        *last = queue as u32;
        if previous == NIL {
            *first = queue as u32;
            self.used.insert(slot);
        } else {
            self.links[previous as usize].next = queue as u32;
        }
        self.links[queue] = Links {
            next: NIL,
            previous,
            at,
        };
    }

    /// Takes a parked queue out.
    #[inline]
    pub(crate) fn unpark(&mut self, queue: usize) {
        let Links { next, previous, at } = self.links[queue];
        let slot = at as usize % MEMBERS_MAX;
        match previous {
            NIL => self.slots[slot][0] = next,
            _ => self.links[previous as usize].next = next,
        }
        match next {
            NIL => self.slots[slot][1] = previous,
            _ => self.links[next as usize].previous = previous,
        }
        if self.slots[slot][0] == NIL {
            self.used.remove(slot);
        }
    }

    /// Takes out the queue whose turn comes next, and goes on to its round.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<usize> {
        let now = self.round as usize % MEMBERS_MAX;
        let slot = self.used.next_from(now)?;
        self.round += ((slot + MEMBERS_MAX - now) % MEMBERS_MAX) as u64;
        let queue = self.slots[slot][0] as usize;
        self.unpark(queue);
        Some(queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_come_in_order_of_round_then_of_parking() {
        let mut wheel = Wheel::new(6);
        for (queue, rounds) in [(0, 7), (1, ROUNDS_MAX), (2, 1), (3, 7), (4, 2), (5, 7)] {
            wheel.park(queue, rounds);
        }
        wheel.unpark(3);
        assert_eq!(wheel.pop(), Some(2));
        assert_eq!(wheel.remaining(0), 6);
        wheel.park(3, 6);
        wheel.park(2, ROUNDS_MAX); // the slot before the present one, a turn later
        let order: Vec<_> = std::iter::from_fn(|| wheel.pop()).collect();
        assert_eq!(order, [4, 0, 5, 3, 1, 2]);
    }
}
