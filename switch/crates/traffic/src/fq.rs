// SPDX-License-Identifier: Apache-2.0
//! The scheduler of FQ-CoDel (RFC 8290 section 4): Deficit Round Robin in bytes, and queues that were idle before the others.
//!
//! A queue that gets a packet and is in no list goes to the end of the list of new queues, with a quantum of credits. It
//! sends while it has credits; then it gets a quantum and goes to the end of the list of old queues, which are served when
//! no queue is new. A queue that is found empty goes from the new ones to the end of the old ones, and from the old ones out
//! of the lists: so a flow gains nothing by letting its queue run empty.
//!
//! Section 4.2 calls credits used up when they are "negative", and says of what that means "at least a quantum": as in
//! Linux, 0 is used up too, so that a quantum of one frame is one frame a round.

use std::collections::VecDeque;

/// Credits a round: a full Ethernet frame without FCS.
const QUANTUM_BYTES: u32 = 1_514;
/// The least quantum, that of Linux: a round costs time, and a frame may need many.
const QUANTUM_BYTES_MIN: u32 = 256;

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    credits: i64,
    /// In one of the lists.
    listed: bool,
}

/// The discipline over the queues of one port.
#[derive(Clone, Debug)]
pub(crate) struct Fq {
    quantum: i64,
    queues: Vec<Queue>,
    /// What waits in each queue.
    bytes: Vec<u32>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// Whose packet was picked last.
    picked: usize,
}

impl Fq {
    /// All of `queues` queues are empty.
    pub(crate) fn new(queues: usize) -> Fq {
        let mut made = Fq {
            quantum: QUANTUM_BYTES.into(),
            queues: Vec::new(),
            bytes: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            picked: 0,
        };
        made.grow(queues);
        made
    }

    pub(crate) fn grow(&mut self, queues: usize) {
        self.queues
            .resize(queues.max(self.queues.len()), Queue::default());
        self.bytes.resize(self.queues.len(), 0);
        self.new.reserve(self.queues.len());
        self.old.reserve(self.queues.len());
    }

    /// Another quantum from now on; 0 changes nothing.
    #[inline]
    pub(crate) fn set_quantum(&mut self, bytes: u32) {
        if bytes != 0 {
            self.quantum = bytes.max(QUANTUM_BYTES_MIN).into();
        }
    }

    /// A queue that was empty holds a packet now.
    #[inline]
    pub(crate) fn activate(&mut self, queue: usize) {
        let q = &mut self.queues[queue];
        if !q.listed {
            *q = Queue {
                credits: self.quantum,
                listed: true,
            };
            self.new.push_back(queue);
        }
    }

    /// Another number of bytes waits in a queue.
    #[inline]
    pub(crate) fn set_bytes(&mut self, queue: usize, bytes: u64) {
        self.bytes[queue] = bytes.min(u32::MAX.into()) as u32;
    }

    /// The queue with the most bytes once it has the packet that comes to `queue`, of equal ones the lowest number
    /// (section 4.1). It looks at all, 4 bytes each: only a full buffer asks.
    pub(crate) fn fattest(&self, queue: usize, len_bytes: u32) -> usize {
        let most = self.bytes.iter().copied().max().unwrap_or(0);
        let coming = self.bytes[queue].saturating_add(len_bytes);
        let first = self.bytes.iter().position(|&bytes| bytes == most);
        match first {
            Some(first) if coming < most => first,
            Some(first) if coming == most => first.min(queue),
            _ => queue,
        }
    }

    /// The queue whose first packet is served now. None when all are empty: then no list names any.
    #[inline]
    pub(crate) fn pick(&mut self, is_empty: impl Fn(usize) -> bool) -> Option<usize> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let queue = *list.front()?;
            let q = &mut self.queues[queue];
            if q.credits > 0 && !is_empty(queue) {
                self.picked = queue;
                return Some(queue);
            }
            list.pop_front();
            if q.credits <= 0 {
                q.credits += self.quantum;
            } else if !is_new {
                q.listed = false;
                continue;
            }
            self.old.push_back(queue);
        }
    }

    /// The packet picked last went to the line with this length; one that egress dropped costs nothing.
    #[inline]
    pub(crate) fn served(&mut self, line_bytes: u32) {
        self.queues[self.picked].credits -= i64::from(line_bytes);
    }
}
