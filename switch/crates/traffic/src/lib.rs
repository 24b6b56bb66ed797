// SPDX-License-Identifier: Apache-2.0
//! Queues, schedulers, shared buffer and link models: no I/O, the clock is an argument.
//!
//! | module | idea |
//! |---|---|
//! | `line` | when a line of a given bit rate is free again, exact to the nanosecond over any run; what a frame takes on it: bytes, Ethernet, ATM cells |
//! | `limits` | how much may wait: packets, bytes, cells; the buffer that ports share |
//! | `scheduler` | which of a port's queues is served next |
//! | `round_robin` | WRR and DRR: shares by weight, and the calendar of their rounds |
//! | `fq` | the scheduler of FQ-CoDel: new and old queues |
//! | `bit_set` | a set of small numbers: queues that hold something, rounds that are used |
//! | `ring` | the slab that all queues of a port live in |
//! | `names` | options that are one of a few words |
//! | `link` | one direction of an emulated link: delay, jitter, rate, loss, bit errors, spike, outage |
//! | `calendar` | which of many entities acts next |
//! | `port_queues` | one port: queues, scheduler, limits and line together |

#![forbid(unsafe_code)]

mod bit_set;
pub mod calendar;
mod fq;
pub mod limits;
pub mod line;
pub mod link;
mod names;
pub mod port_queues;
mod ring;
mod round_robin;
pub mod scheduler;

pub use limits::{cells_of, QueueLimits, SharedBuffer, Usage, UNLIMITED};
pub use line::{Line, LinkLayer, Nanos};
pub use names::UnknownName;
pub use port_queues::{Dequeued, DropReason, PortQueues, QueueStats, QUEUES_MAX};
pub use scheduler::SchedulerKind;

/// The seed of what is called `name` (such as `s1-s2/a_to_b`, `flow/f1`, `switch/s1`) in the run of `seed`: it depends on
/// these two only, so that a thing that is added changes nothing for the others.
pub fn derived_seed(seed: u64, name: &str) -> u64 {
    // Over the seed and the name; a generator's own seeding spreads the result over its whole state.
    fnv1a(seed.to_le_bytes().into_iter().chain(name.bytes()))
}

/// A hash that is the same in every run and on every machine.
pub(crate) fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::derived_seed;

    #[test]
    fn seed_and_name_fix_it() {
        // FNV-1a of the eight bytes of the seed and of the name.
        assert_eq!(derived_seed(1, "switch/s1"), 0xb1a9_769c_c4a6_2711);
        assert_ne!(derived_seed(1, "switch/s1"), derived_seed(2, "switch/s1"));
        assert_ne!(derived_seed(1, "switch/s1"), derived_seed(1, "switch/s2"));
    }
}
