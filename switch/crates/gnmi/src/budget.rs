// SPDX-License-Identifier: Apache-2.0
//! What all subscribers together may ask for: leaves that are remembered as sent, and leaves that are sampled a second.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

/// Most leaves of all subscriptions together: some 0.5 GB.
const LEAVES_MAX: usize = 4_000_000;
/// Most leaves that all of them together sample a second.
const LEAVES_PER_S_MAX: usize = 1_000_000;

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

/// What is left for all subscribers.
#[derive(Debug)]
pub struct Budget {
    leaves: Arc<Semaphore>,
    leaves_per_s: Arc<Semaphore>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            leaves: Arc::new(Semaphore::new(LEAVES_MAX)),
            leaves_per_s: Arc::new(Semaphore::new(LEAVES_PER_S_MAX)),
        }
    }
}

/// One subscriber's part; returned when it is dropped.
#[derive(Debug)]
pub struct Share {
    leaves: OwnedSemaphorePermit,
    leaves_per_s: OwnedSemaphorePermit,
}

impl Share {
    pub fn new(budget: &Budget) -> Share {
        let none = |of: &Arc<Semaphore>| of.clone().try_acquire_many_owned(0).expect("open");
        Share {
            leaves: none(&budget.leaves),
            leaves_per_s: none(&budget.leaves_per_s),
        }
    }

    /// Asks for this instead of what it had; less is always granted.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED, with what there is; it then has what it had of this kind.
    pub fn set(&mut self, load: Load) -> Result<(), Status> {
        resize(&mut self.leaves_per_s, load.leaves_per_s).map_err(|left| {
            Status::resource_exhausted(format!(
                "{} leaves a second are asked for; all subscribers together get {LEAVES_PER_S_MAX}, and {} of them are \
                 given already: sample more slowly, or fewer leaves",
                load.leaves_per_s, LEAVES_PER_S_MAX - left
            ))
        })?;
        resize(&mut self.leaves, load.leaves).map_err(|left| {
            Status::resource_exhausted(format!(
                "{} leaves are subscribed to; all subscribers together get {LEAVES_MAX}, and {} of them are given \
                 already: ask for fewer",
                load.leaves, LEAVES_MAX - left
            ))
        })
    }
}

/// # Errors
/// How many there are without those of others, when this is too few.
fn resize(share: &mut OwnedSemaphorePermit, wanted: u64) -> Result<(), usize> {
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let has = share.num_permits();
    if wanted <= has {
        drop(share.split(has - wanted));
        return Ok(());
    }
    let pool = share.semaphore().clone();
    let more = u32::try_from(wanted - has).unwrap_or(u32::MAX);
    match pool.clone().try_acquire_many_owned(more) {
        Ok(more) => share.merge(more),
        Err(_) => return Err(has + pool.available_permits()),
    }
    Ok(())
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
        let budget = Budget::default();
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
            "100100 leaves a second are asked for; all subscribers together get 1000000, and 900000 of them are given \
             already: sample more slowly, or fewer leaves"
        );
        // It keeps what it had.
        let mut other = Share::new(&budget);
        other.set(load(500, 10)).unwrap();
        assert!(other.set(load(501, 10)).is_err());
        some.pop();
        last.set(load(1_001, 10)).unwrap();
        drop((some, last, other));
        assert_eq!(budget.leaves.available_permits(), LEAVES_MAX);
        assert_eq!(budget.leaves_per_s.available_permits(), LEAVES_PER_S_MAX);
    }

    #[test]
    fn what_is_remembered_is_bounded_too() {
        let budget = Budget::default();
        let (mut one, mut other) = (Share::new(&budget), Share::new(&budget));
        one.set(load(3_000_000, 10_000)).unwrap();
        let error = other.set(load(1_000_001, 10_000)).unwrap_err();
        assert_eq!(
            error.message(),
            "1000001 leaves are subscribed to; all subscribers together get 4000000, and 3000000 of them are given \
             already: ask for fewer"
        );
        one.set(load(2_999_999, 10_000)).unwrap();
        other.set(load(1_000_001, 10_000)).unwrap();
    }
}
