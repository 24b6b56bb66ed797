// SPDX-License-Identifier: Apache-2.0
//! Which port is due when: a heap with one valid entry a port; entries that a change made void are skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use v1model::Nanos;

#[derive(Default)]
pub(crate) struct Calendar {
    /// (due, order of scheduling, port)
    heap: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    scheduled: u64,
}

impl Calendar {
    /// Schedules a port; returns the ticket that makes this entry the valid one.
    #[inline]
    pub(crate) fn schedule(&mut self, due: Nanos, port: u32) -> u64 {
        self.scheduled += 1;
        self.heap.push(Reverse((due, self.scheduled, port)));
        self.scheduled
    }

    /// The earliest entry: (due, ticket, port).
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Nanos, u64, u32)> {
        self.heap.peek().map(|entry| entry.0)
    }

    #[inline]
    pub(crate) fn pop(&mut self) {
        self.heap.pop();
    }
}
