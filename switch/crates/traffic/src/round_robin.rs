// SPDX-License-Identifier: Apache-2.0
//! Round robin by credit: a queue may send what its credit covers, and each round gives it credit in proportion to its weight.
//!
//! This is Deficit Round Robin (Shreedhar and Varghese 1995), with two changes that keep it O(1) a packet whatever the
//! weights are. Rounds in which a queue could send nothing are not visited: the round in which its credit will cover
//! its first packet is computed when it waits, and a calendar holds it until then. And quanta are normalised: a queue
//! of the largest weight that waits gets between half a full frame and one of them a round, so that a weight in bit/s
//! makes no burst; a smaller one in proportion, but never less than 1/2048 of a full frame, so that none starves.
//!
//! Latency. Let `q_i` be queue i's credit a round and `L` the longest frame, both in the unit below. A packet of length
//! `l` at the head of queue i is served within `k = ceil(l / q_i) + 1` rounds, and before it every other queue j sends
//! at most `k * q_j + L`, together with the frame on the line `sum over j of (k * q_j + L) + L`.

use crate::bit_set::{BitSet, MEMBERS_MAX};
use crate::limits::cells_of;
use crate::line::LinkLayer;

/// Fraction bits of a credit.
const FRACTION: u32 = 20;
/// The least quantum is a full frame divided by two to the power of this.
const SMALLEST: u32 = 11;
/// After so many packets, and one more for each queue that waits, without one of the largest weights, those that are
/// left set the scale.
const SCALE_HOLD_PACKETS: u32 = 64;

/// What credit buys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A frame, whatever its length.
    Frames,
    /// A cell, see [`cells_of`].
    Cells,
    /// A byte on the line.
    LineBytes(LinkLayer),
}

impl Unit {
    #[inline]
    fn cost(self, len_bytes: u32) -> i64 {
        let units = match self {
            Unit::Frames => 1,
            Unit::Cells => cells_of(len_bytes) as i64,
            Unit::LineBytes(layer) => i64::from(layer.line_bytes(len_bytes)),
        };
        units << FRACTION
    }

    /// A full Ethernet frame.
    fn full_frame(self) -> i64 {
        self.cost(1_514)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing waits.
    Idle,
    /// Waits for its round.
    Parked,
    /// Has its turn.
    Current,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    state: State,
    weight: u32,
    /// Of each round since it was parked.
    quantum: i64,
    /// What it may send; of a parked queue: at the round for which it is parked.
    credit: i64,
    /// Cost of its first packet when it was parked.
    need: i64,
}

/// The discipline over the queues of one port. It knows which queues hold something by `activate` and `emptied`.
#[derive(Clone, Debug)]
pub(crate) struct RoundRobin {
    unit: Unit,
    full_frame: i64,
    queues: Vec<Queue>,
    wheel: Wheel,
    current: Option<usize>,
    /// The packet picked last, until it is known to have gone to the line: queue and cost.
    charged: Option<(usize, i64)>,
    /// Waiting queues by the number of bits of their weight, and which numbers there are.
    classes: [u32; 33],
    present: u64,
    waiting: u32,
    /// Bits of the weight whose quantum is a full frame.
    scale: u32,
    below_scale: u32,
    scratch: Vec<(usize, u64)>,
}

#[inline]
fn class_of(weight: u32) -> usize {
    32 - weight.leading_zeros() as usize
}

impl RoundRobin {
    /// All of `queues` queues are empty.
    pub(crate) fn new(queues: usize, unit: Unit) -> RoundRobin {
        let mut made = RoundRobin {
            unit,
            full_frame: unit.full_frame(),
            queues: Vec::new(),
            wheel: Wheel::new(queues),
            current: None,
            charged: None,
            classes: [0; 33],
            present: 0,
            waiting: 0,
            scale: 1,
            below_scale: 0,
            scratch: Vec::new(),
        };
        made.grow(queues);
        made
    }

    pub(crate) fn grow(&mut self, queues: usize) {
        let queue = Queue {
            state: State::Idle,
            weight: 1,
            quantum: 0,
            credit: 0,
            need: 0,
        };
        self.queues.resize(queues.max(self.queues.len()), queue);
        self.wheel.grow(queues);
        self.scratch.reserve(self.queues.len());
    }

    /// A queue that was empty holds a packet of `len_bytes` now.
    #[inline]
    pub(crate) fn activate(&mut self, queue: usize, weight: u32, len_bytes: u32) {
        let q = &mut self.queues[queue];
        q.weight = weight;
        q.credit = 0;
        q.need = self.unit.cost(len_bytes);
        self.enter(class_of(weight));
        if self.largest() > self.scale {
            self.rescale(self.largest());
        }
        self.park(queue);
    }

    /// The last packet of a queue was taken. It takes no credit along.
    #[inline]
    pub(crate) fn emptied(&mut self, queue: usize) {
        match self.queues[queue].state {
            State::Idle => return,
            State::Parked => self.wheel.unpark(queue),
            State::Current => self.current = None,
        }
        self.queues[queue].state = State::Idle;
        self.leave(class_of(self.queues[queue].weight));
    }

    /// From now on; credit that the old weight earned stays.
    pub(crate) fn set_weight(&mut self, queue: usize, weight: u32) {
        let state = self.queues[queue].state;
        if state == State::Idle {
            return;
        }
        let old = std::mem::replace(&mut self.queues[queue].weight, weight);
        self.leave(class_of(old));
        self.enter(class_of(weight));
        if self.largest() > self.scale {
            self.rescale(self.largest());
        } else if state == State::Parked {
            let rounds = self.wheel.remaining(queue);
            self.wheel.unpark(queue);
            self.park_again(queue, rounds);
        }
    }

    /// The queue whose first packet is served now; `head_len_bytes` gives a waiting queue's.
    #[inline]
    pub(crate) fn pick(&mut self, head_len_bytes: impl Fn(usize) -> u32) -> Option<usize> {
        if let Some((queue, cost)) = self.charged.take() {
            // It did not go to the line.
            if self.current == Some(queue) {
                self.queues[queue].credit += cost;
            }
        }
        self.hold_scale();
        loop {
            let queue = match self.current {
                Some(queue) => queue,
                None => {
                    let queue = self.wheel.pop()?;
                    self.queues[queue].state = State::Current;
                    self.current = Some(queue);
                    queue
                }
            };
            let cost = self.unit.cost(head_len_bytes(queue));
            let q = &mut self.queues[queue];
            if q.credit >= cost {
                q.credit -= cost;
                self.charged = Some((queue, cost));
                return Some(queue);
            }
            q.need = cost;
            self.current = None;
            self.park(queue);
        }
    }

    /// The packet picked last went to the line with this length.
    #[inline]
    pub(crate) fn served(&mut self, len_bytes: u32) {
        if let Some((queue, cost)) = self.charged.take() {
            if self.current == Some(queue) {
                self.queues[queue].credit += cost - self.unit.cost(len_bytes);
            }
        }
    }

    /// Until the round in which its credit covers its need, or as far ahead as the calendar goes.
    #[inline]
    fn park(&mut self, queue: usize) {
        let quantum = self.quantum(self.queues[queue].weight);
        let q = &mut self.queues[queue];
        let missing = (q.need - q.credit).max(1);
        let rounds = ((missing + quantum - 1) / quantum).min(ROUNDS_MAX as i64);
        q.state = State::Parked;
        q.quantum = quantum;
        q.credit += rounds * quantum;
        self.wheel.park(queue, rounds as u64);
    }

    /// Parks a queue anew that was parked, with `rounds` still to go.
    fn park_again(&mut self, queue: usize, rounds: u64) {
        let q = &mut self.queues[queue];
        q.credit -= rounds as i64 * q.quantum;
        if q.credit < q.need {
            return self.park(queue);
        }
        // It is its turn already: it keeps its place, and gets no more for it.
        q.quantum = 0;
        self.wheel.park(queue, 1);
    }

    #[inline]
    fn quantum(&self, weight: u32) -> i64 {
        let share = (self.full_frame as u64 * u64::from(weight)) >> self.scale;
        (share as i64).max(self.full_frame >> SMALLEST)
    }

    #[inline]
    fn enter(&mut self, class: usize) {
        self.classes[class] += 1;
        self.waiting += 1;
        self.present |= 1 << class;
    }

    #[inline]
    fn leave(&mut self, class: usize) {
        self.classes[class] -= 1;
        self.waiting -= 1;
        if self.classes[class] == 0 {
            self.present &= !(1 << class);
        }
    }

    /// Bits of the largest weight that waits.
    #[inline]
    fn largest(&self) -> u32 {
        63 - (self.present | 1).leading_zeros()
    }

    /// The scale goes down only after a while, since a change costs as much as there are queues that wait.
    #[inline]
    fn hold_scale(&mut self) {
        let largest = self.largest();
        if largest >= self.scale || largest == 0 {
            self.below_scale = 0;
            return;
        }
        self.below_scale += 1;
        if self.below_scale > SCALE_HOLD_PACKETS + self.waiting {
            self.rescale(largest);
        }
    }

    /// Another scale: what each parked queue still misses takes as many rounds of its new quantum; their order stays.
    fn rescale(&mut self, scale: u32) {
        self.scale = scale;
        self.below_scale = 0;
        let mut parked = std::mem::take(&mut self.scratch);
        let begin = self.wheel.round();
        while let Some(queue) = self.wheel.pop() {
            parked.push((queue, self.wheel.round() - begin));
        }
        for &(queue, rounds) in &parked {
            self.park_again(queue, rounds);
        }
        parked.clear();
        self.scratch = parked;
    }
}

const NIL: u32 = u32::MAX;

/// Most rounds that a queue can be parked for.
const ROUNDS_MAX: u64 = MEMBERS_MAX as u64 - 1;

#[derive(Clone, Copy, Debug)]
struct Links {
    next: u32,
    previous: u32,
    /// The round for which it is parked.
    at: u64,
}

/// A calendar of rounds: queues wait for their turn in lists by round, and rounds in which none has one are skipped. The caller
/// knows which queues are parked.
#[derive(Clone, Debug)]
struct Wheel {
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
