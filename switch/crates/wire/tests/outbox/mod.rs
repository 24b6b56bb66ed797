// SPDX-License-Identifier: Apache-2.0
//! What leaves a network in virtual time: interfaces and first bytes, in order.

use netio::tx_batch::Departure;
use wire::network::{Network, Outbox};

#[derive(Default)]
pub struct Left {
    pub now: u64,
    pub frames: Vec<(u32, u8)>,
}

impl Outbox for Left {
    fn now(&self) -> u64 {
        self.now
    }

    fn push(&mut self, departure: Departure, frame: &[u8]) {
        self.frames.push((departure.interface, frame[0]));
    }
}

/// What leaves until `until`.
pub fn take(network: &mut Network, until: u64) -> Vec<(u32, u8)> {
    let mut left = Left {
        now: until,
        ..Left::default()
    };
    network.catch_up(&mut left);
    while !network.advance(until, &mut left) {}
    left.frames
}

/// A frame comes in; returns what leaves before it is on its way.
pub fn offer(network: &mut Network, interface: usize, now: u64, frame: &[u8]) -> Vec<(u32, u8)> {
    let mut left = Left {
        now,
        ..Left::default()
    };
    assert!(network.offer(interface, now, frame, &mut left));
    left.frames
}
