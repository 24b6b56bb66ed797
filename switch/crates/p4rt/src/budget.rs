// SPDX-License-Identifier: Apache-2.0
//! What all clients together may hold of something, such as bytes of memory, and what each of them holds.
//!
//! Long answers in one message: what of them is on its way to clients, all together bounded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use prost::Message;
use tonic::{Response, Status};

use crate::error::bail;
use crate::gate::UntilSent;

/// So much there is for all together.
#[derive(Debug, Clone)]
pub struct Budget {
    pub max: usize,
    used: Arc<AtomicUsize>,
}

impl Budget {
    pub fn new(max: usize) -> Budget {
        let used = Arc::default();
        Budget { max, used }
    }

    /// What all together hold.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// What one of them holds, until it is dropped.
#[derive(Debug)]
pub struct Share {
    pub budget: Budget,
    own: AtomicUsize,
}

impl Share {
    /// Nothing at first.
    pub fn new(budget: &Budget) -> Share {
        Share {
            budget: budget.clone(),
            own: AtomicUsize::new(0),
        }
    }

    pub fn own(&self) -> usize {
        self.own.load(Ordering::Relaxed)
    }

    /// Takes so much more, whether it is there or not.
    pub fn add(&self, more: usize) {
        self.budget.used.fetch_add(more, Ordering::Relaxed);
        self.own.fetch_add(more, Ordering::Relaxed);
    }

    /// Takes so much more; false when that is not there, and then nothing is taken.
    pub fn take(&self, more: usize) -> bool {
        let (used, max) = (&self.budget.used, self.budget.max);
        let sum = |all: usize| all.checked_add(more).filter(|all| *all <= max);
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        if taken.is_ok() {
            self.own.fetch_add(more, Ordering::Relaxed);
        }
        taken.is_ok()
    }

    /// Gives so much of it back.
    pub fn give(&self, less: usize) {
        self.own.fetch_sub(less, Ordering::Relaxed);
        self.budget.used.fetch_sub(less, Ordering::Relaxed);
    }

    /// Takes more, or gives back, until it holds so much; false when that is not there, and then it holds what it held.
    pub fn set(&self, wanted: usize) -> bool {
        match wanted.checked_sub(self.own()) {
            Some(more) => self.take(more),
            None => {
                self.give(self.own() - wanted);
                true
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Bytes of answers on their way.
const BYTES: usize = 256 << 20;

/// The answers of one service.
pub struct Answers(Budget);

impl Default for Answers {
    fn default() -> Answers {
        Answers(Budget::new(BYTES))
    }
}

impl Answers {
    /// The answer as a response, which counts until its client has taken it, or has gone.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when there is no room.
    pub fn keep<T: Message>(&self, answer: T) -> Result<Response<T>, Status> {
        let share = Share::new(&self.0);
        if !share.take(answer.encoded_len().min(BYTES)) {
            bail!(resource_exhausted, "too much that clients asked for is still on its way to them: ask for less, or again");
        }
        let mut response = Response::new(answer);
        response.extensions_mut().insert(UntilSent::new(share));
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shares_together_are_bounded_and_what_ends_is_given_back() {
        let budget = Budget::new(1_000);
        let (first, second) = (Share::new(&budget), Share::new(&budget));
        assert!(first.take(999));
        assert!(!second.take(2));
        assert!(!second.take(usize::MAX));
        assert_eq!((second.own(), budget.used()), (0, 999));
        assert!(second.set(1));
        assert!(!second.set(2));
        assert!(first.set(900));
        assert!(second.set(100));
        second.add(7);
        assert_eq!(budget.used(), 1_007);
        second.give(7);
        drop(first);
        assert_eq!(budget.used(), 100);
        drop(second);
        assert_eq!(budget.used(), 0);
    }
}

#[cfg(test)]
mod answers_tests {
    use super::*;
    use crate::proto::p4rt::PacketOut;

    #[test]
    fn what_is_on_its_way_is_bounded_and_given_back() {
        let answers = Answers::default();
        let long = || PacketOut {
            payload: vec![0; BYTES / 2 + 1].into(),
            ..PacketOut::default()
        };
        let first = answers.keep(long()).unwrap();
        let status = answers.keep(long()).unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        answers.keep(PacketOut::default()).unwrap();
        drop(first);
        answers.keep(long()).unwrap();
    }
}
