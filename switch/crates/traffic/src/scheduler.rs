// SPDX-License-Identifier: Apache-2.0
//! Which of a port's queues is served next: the trait, and strict priority.

/// The queues of a port that are not empty.
#[derive(Clone, Debug)]
pub struct Backlog {
    words: Vec<u64>,
    queues: usize,
}

impl Backlog {
    /// `queues` empty queues.
    pub fn new(queues: usize) -> Backlog {
        Backlog {
            words: vec![0; queues.div_ceil(64)],
            queues,
        }
    }

    /// Number of queues, empty ones too.
    pub fn queues(&self) -> usize {
        self.queues
    }

    /// More queues; those that are there stay as they are.
    pub fn grow(&mut self, queues: usize) {
        self.queues = self.queues.max(queues);
        self.words.resize(self.queues.div_ceil(64), 0);
    }

    /// Notes whether a queue holds something.
    #[inline]
    pub fn set(&mut self, queue: usize, waiting: bool) {
        let bit = 1u64 << (queue % 64);
        if waiting {
            self.words[queue / 64] |= bit;
        } else {
            self.words[queue / 64] &= !bit;
        }
    }

    /// True when the queue holds something.
    #[inline]
    pub fn contains(&self, queue: usize) -> bool {
        self.words[queue / 64] >> (queue % 64) & 1 == 1
    }

    /// The largest number of a queue that holds something.
    #[inline]
    pub fn highest(&self) -> Option<usize> {
        for (i, &word) in self.words.iter().enumerate().rev() {
            if word != 0 {
                return Some(i * 64 + 63 - word.leading_zeros() as usize);
            }
        }
        None
    }

    /// The first queue at or after `from`, wrapping round, that holds something.
    pub fn next_from(&self, from: usize) -> Option<usize> {
        (from..self.queues)
            .chain(0..from.min(self.queues))
            .find(|&queue| self.contains(queue))
    }
}

/// A scheduling discipline over the queues of one port. WRR and DRR are further implementations.
pub trait Scheduler: Send {
    /// The queue to serve now: one of `backlog`, or None when all are empty. Must be work-conserving.
    /// `head_len_bytes(queue)` is the length of a waiting queue's first packet.
    fn pick(&mut self, backlog: &Backlog, head_len_bytes: &dyn Fn(usize) -> u32) -> Option<usize>;

    /// A packet of `queue` went to the line with this length (it may differ from the length when picked).
    fn served(&mut self, queue: usize, len_bytes: u32);
}

/// The largest queue number first, as in BMv2.
#[derive(Clone, Copy, Debug, Default)]
pub struct StrictPriority;

impl Scheduler for StrictPriority {
    #[inline]
    fn pick(&mut self, backlog: &Backlog, _: &dyn Fn(usize) -> u32) -> Option<usize> {
        backlog.highest()
    }

    #[inline]
    fn served(&mut self, _: usize, _: u32) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_waiting_queue_is_found_across_words() {
        let mut backlog = Backlog::new(200);
        assert_eq!(backlog.highest(), None);
        for queue in [0, 63, 64, 199] {
            backlog.set(queue, true);
            assert_eq!(backlog.highest(), Some(queue));
        }
        backlog.set(199, false);
        assert_eq!(backlog.highest(), Some(64));
        assert_eq!(backlog.next_from(1), Some(63));
        assert_eq!(backlog.next_from(65), Some(0));
    }
}
