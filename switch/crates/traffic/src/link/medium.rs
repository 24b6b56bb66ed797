// SPDX-License-Identifier: Apache-2.0
//! The frames on the medium of a link's direction: they have left the line, and are due at instants that are known.

use super::Nanos;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// The frames on their way, in the order of their delivery.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Medium<T> {
    /// In the order of their instants as well as of their entry.
    in_order: VecDeque<Flight<T>>,
    sequence: u64,
    /// Latest delivery instant given out so far.
    last_due: Nanos,
    /// Those that overtake one that entered before.
    overtaking: BinaryHeap<Flight<T>>,
    /// Nothing is delivered within.
    hold: Window,
}

/// A frame on the medium. The heap's top is the earliest, in order of entry among equals.
#[derive(Debug)]
pub(super) struct Flight<T> {
    at: Nanos,
    sequence: u64,
    pub len_bytes: u32,
    pub flips: u32,
    pub item: T,
}

impl<T> Ord for Flight<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl<T> PartialOrd for Flight<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Flight<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Flight<T> {}

/// A span of time, [from, until).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    from: Nanos,
    pub until: Nanos,
}

impl Window {
    /// When it ends, if `at` is within.
    #[inline]
    pub fn end_at(self, at: Nanos) -> Option<Nanos> {
        (self.from <= at && at < self.until).then_some(self.until)
    }

    /// The window from `now` on, joined with one that is open at `now`.
    pub fn opened(self, now: Nanos, duration: Nanos) -> Self {
        let until = now.saturating_add(duration);
        match self.end_at(now) {
            Some(end) => Self {
                from: self.from,
                until: until.max(end),
            },
            None => Self { from: now, until },
        }
    }
}

impl<T> Medium<T> {
    /// Has room for so many frames, and grows at a new high water only.
    pub fn new(frames: usize) -> Self {
        Self {
            in_order: VecDeque::with_capacity(frames),
            overtaking: BinaryHeap::new(),
            sequence: 0,
            last_due: 0,
            hold: Window::default(),
        }
    }

    /// How many are on their way.
    pub fn len(&self) -> usize {
        self.in_order.len() + self.overtaking.len()
    }

    /// The latest instant at which one of all frames so far is due.
    #[inline]
    pub fn last_due(&self) -> Nanos {
        self.last_due
    }

    /// Nothing is delivered from `now` on for `duration`; then all that is due comes at once, in order.
    pub fn hold(&mut self, now: Nanos, duration: Nanos) {
        self.hold = self.hold.opened(now, duration);
    }

    /// When a running hold ends, if there is one at `now`.
    pub fn held_until(&self, now: Nanos) -> Option<Nanos> {
        self.hold.end_at(now)
    }

    /// A frame is on the medium until it is due.
    #[inline]
    pub fn fly(&mut self, due: Nanos, len_bytes: u32, flips: u32, item: T) {
        self.last_due = self.last_due.max(due);
        let flight = Flight {
            at: due,
            sequence: self.sequence,
            len_bytes,
            flips,
            item,
        };
        self.sequence += 1;
        match self.in_order.back() {
            Some(last) if last.at > due => self.overtaking.push(flight),
            _ => self.in_order.push_back(flight),
        }
    }

    /// The next frame to leave: flights compare as a heap wants it, the earliest is the greatest.
    #[inline]
    fn first(&self) -> Option<&Flight<T>> {
        match self.overtaking.peek() {
            None => self.in_order.front(),
            overtaking => self.in_order.front().max(overtaking),
        }
    }

    /// When the next frame leaves.
    #[inline]
    pub fn next_due(&self) -> Option<Nanos> {
        self.first().map(|flight| self.due(flight.at))
    }

    /// When the next of those that overtake leaves.
    pub fn next_overtaking(&self) -> Option<Nanos> {
        self.overtaking.peek().map(|flight| self.due(flight.at))
    }

    /// The next frame, and when it leaves, if that is by `now`.
    #[inline]
    pub fn take_due(&mut self, now: Nanos) -> Option<(Nanos, Flight<T>)> {
        let due = self.next_due().filter(|due| *due <= now)?;
        let is_overtaking =
            !self.overtaking.is_empty() && self.overtaking.peek() > self.in_order.front();
        let flight = match is_overtaking {
            true => self.overtaking.pop(),
            false => self.in_order.pop_front(),
        }?;
        Some((due, flight))
    }

    /// When a frame is delivered that would be at `at`, a hold considered.
    #[inline]
    pub fn due(&self, at: Nanos) -> Nanos {
        self.hold.end_at(at).unwrap_or(at)
    }

    /// Those that overtake none.
    #[inline]
    pub fn in_order(&self) -> impl Iterator<Item = &T> {
        self.in_order.iter().map(|flight| &flight.item)
    }

    /// Frames that are due before `limit` and overtake none, in the order of their delivery.
    pub fn arrivals_before(&self, limit: Nanos) -> impl Iterator<Item = (Nanos, &T)> {
        let flights = self.in_order.iter();
        let due = flights.map(|flight| (self.due(flight.at), &flight.item));
        due.take_while(move |(at, _)| *at < limit)
    }
}
