// SPDX-License-Identifier: Apache-2.0
//! What all subscribers together may ask for: leaves that are remembered as sent, and leaves that are sampled a second.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tonic::Status;

/// What all subscriptions together may ask for: some 0.5 GB of leaves.
const MAX: Load = Load {
    leaves: 4_000_000,
    leaves_per_s: 1_000_000,
};

/// What subscriptions ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    pub leaves: u64,
    /// By samples and heartbeats.
    pub leaves_per_s: u64,
}

impl Load {
    /// One more of so many leaves, which are reported at these intervals.
    pub fn add(&mut self, leaves: usize, intervals: impl IntoIterator<Item = Duration>) {
        self.leaves += leaves as u64;
        for every in intervals {
            let a_second = (leaves as u128 * 1_000_000_000).div_ceil(every.as_nanos().max(1));
            self.leaves_per_s += u64::try_from(a_second).unwrap_or(u64::MAX);
        }
    }
}

/// What all subscribers have.
#[derive(Debug, Default)]
pub struct Budget(Mutex<Load>);

impl Budget {
    fn given(&self) -> MutexGuard<'_, Load> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One subscriber's part; returned when it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    has: Load,
}

impl Share {
    pub fn new(budget: &Arc<Budget>) -> Share {
        Share {
            budget: budget.clone(),
            has: Load::default(),
        }
    }

    /// Asks for this instead of what it had; less is always granted.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED, with what there is; it then has what it had.
    pub fn set(&mut self, load: Load) -> Result<(), Status> {
        let mut given = self.budget.given();
        let leaves = given.leaves - self.has.leaves;
        let leaves_per_s = given.leaves_per_s - self.has.leaves_per_s;
        for (what, wanted, others, max) in [
            (
                "leaves a second",
                load.leaves_per_s,
                leaves_per_s,
                MAX.leaves_per_s,
            ),
            ("leaves", load.leaves, leaves, MAX.leaves),
        ] {
            if wanted > max - others {
                return Err(Status::resource_exhausted(format!(
                    "{wanted} {what} are asked for; all subscribers together get {max}, and others have {others} of them"
                )));
            }
        }
        *given = Load {
            leaves: leaves + load.leaves,
            leaves_per_s: leaves_per_s + load.leaves_per_s,
        };
        self.has = load;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut given = self.budget.given();
        given.leaves -= self.has.leaves;
        given.leaves_per_s -= self.has.leaves_per_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(leaves: usize, every_ms: u64) -> Load {
        let mut load = Load::default();
        load.add(leaves, [Duration::from_millis(every_ms)]);
        load
    }

    #[test]
    fn samples_and_heartbeats_count_by_the_second() {
        let mut sum = load(100, 10);
        assert_eq!((sum.leaves, sum.leaves_per_s), (100, 10_000));
        let both = [Duration::from_secs(3), Duration::from_secs(10)];
        sum.add(10, both);
        assert_eq!((sum.leaves, sum.leaves_per_s), (110, 10_005));
        sum.add(7, None);
        assert_eq!((sum.leaves, sum.leaves_per_s), (117, 10_005));
    }

    #[test]
    fn the_sum_is_bounded_and_what_ends_is_given_back() {
        let budget: Arc<Budget> = Arc::default();
        let mut some: Vec<Share> = (0..9).map(|_| Share::new(&budget)).collect();
        for share in &mut some {
            share.set(load(1_000, 10)).unwrap();
        }
        let mut last = Share::new(&budget);
        last.set(load(1_000, 20)).unwrap();
        let error = last.set(load(1_001, 10)).unwrap_err();
        assert_eq!(error.code(), tonic::Code::ResourceExhausted);
        assert_eq!(
            error.message(),
            "100100 leaves a second are asked for; all subscribers together get 1000000, and others have 900000 of them"
        );
        // It keeps what it had.
        let mut other = Share::new(&budget);
        other.set(load(500, 10)).unwrap();
        assert!(other.set(load(501, 10)).is_err());
        some.pop();
        last.set(load(1_001, 10)).unwrap();
        drop((some, last, other));
        assert_eq!(*budget.given(), Load::default());
    }

    #[test]
    fn what_is_remembered_is_bounded_too() {
        let budget = Arc::default();
        let (mut one, mut other) = (Share::new(&budget), Share::new(&budget));
        one.set(load(3_000_000, 10_000)).unwrap();
        let error = other.set(load(1_000_001, 10_000)).unwrap_err();
        assert_eq!(
            error.message(),
            "1000001 leaves are asked for; all subscribers together get 4000000, and others have 3000000 of them"
        );
        one.set(load(2_999_999, 10_000)).unwrap();
        other.set(load(1_000_001, 10_000)).unwrap();
    }
}
