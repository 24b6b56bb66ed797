// SPDX-License-Identifier: Apache-2.0
//! Copies frames between two interfaces through packet sockets and does nothing else: the limit for a switch with this
//! input and output. It waits as the switch's loop does. For `bench/`; runs until it is stopped.

use netio::clock::{monotonic_now, sleep_until, ClockPair};
use netio::interface::Interface;
use netio::poll::Poller;
use netio::socket::{RingOptions, RxRing, TxSocket};
use netio::thread::Moderation;
use netio::tx_batch::{Departure, TxBatch};
use std::error::Error;
use std::os::fd::AsFd;

const BATCH: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [left, right] = names.as_slice() else {
        return Err("usage: copy_loop INTERFACE INTERFACE".into());
    };
    netio::thread::no_timer_slack();
    let interfaces = [Interface::find(left)?, Interface::find(right)?];
    let mut poller = Poller::new()?;
    let mut tx = TxBatch::new(vec![TxSocket::open()?], 2);
    let mut rings = Vec::new();
    for (number, interface) in interfaces.iter().enumerate() {
        let ring = RxRing::open(interface, RingOptions::default())?;
        poller.add(ring.as_fd(), number as u64)?;
        tx.bind(number, interface.index);
        rings.push(ring);
    }
    println!("ready");
    let mut moderation = Moderation::default();
    loop {
        let clock = ClockPair::read();
        let mut received = 0;
        for (ring, interface) in rings.iter_mut().zip([1, 0]) {
            let departure = Departure { interface, wire: 0 };
            received += ring.receive(&clock, BATCH, |frame| {
                tx.push(departure, frame.bytes);
            });
        }
        tx.flush();
        tx.take_failures(|_, _| {});
        moderation.received(received);
        if received > 0 {
            continue;
        }
        match moderation.pause_until(monotonic_now()) {
            Some(until) => sleep_until(until),
            None => drop(poller.wait(None)?),
        }
    }
}
