// SPDX-License-Identifier: Apache-2.0
//! Sends numbered frames into one interface and takes them from another: delay by kernel stamps, and frames per second.
//! Prints one JSON object. For `bench/wire.py`.

use clap::Parser;
use netio::clock::{monotonic_now, ClockPair, Nanos};
use netio::interface::Interface;
use netio::poll::Poller;
use netio::socket::{RingOptions, RxRing, TxSocket, TX_BATCH};
use netio::thread;
use serde_json::json;
use std::error::Error;
use std::os::fd::AsFd;

/// IEEE 802 local experimental EtherType 1.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const HEADER_LEN: usize = 14;
/// Stop this long after the last frame could have come.
const PATIENCE: Nanos = 300_000_000;

#[derive(Parser)]
struct Options {
    /// Interface to send into.
    #[arg(long)]
    from: String,
    /// Interface to take from.
    #[arg(long)]
    to: String,
    /// Frames per second; 0 is as many as go.
    #[arg(long, default_value_t = 0)]
    rate_pps: u64,
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Length of a frame, bytes.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(64..=1514))]
    length: u64,
    /// Delay of the link, µs: what the results are compared with.
    #[arg(long, default_value_t = 0)]
    delay_us: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let (from, to) = (
        Interface::find(&options.from)?,
        Interface::find(&options.to)?,
    );
    let mut ring = RxRing::open(&to, RingOptions { frames: 16_384 })?;
    let mut tx = TxSocket::open()?;
    let mut poller = Poller::new()?;
    poller.add(ring.as_fd(), 0)?;
    thread::no_timer_slack();
    // A probe that is not scheduled between its clock and its send would blame the link.
    thread::schedule_realtime()?;

    let length = options.length as usize;
    let mut frames = vec![vec![0u8; length]; TX_BATCH];
    for frame in &mut frames {
        frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        frame[12..HEADER_LEN].copy_from_slice(&ETHERTYPE);
    }
    let batch = if options.rate_pps == 0 { TX_BATCH } else { 1 };
    let interval = 1_000_000_000u64.checked_div(options.rate_pps).unwrap_or(0);
    let delay = options.delay_us * 1000;
    let start = monotonic_now();
    let end = start + (options.seconds * 1e9) as Nanos;
    let (mut sent, mut received) = (0u64, 0u64);
    let (mut first_arrival, mut last_arrival) = (Nanos::MAX, 0);
    let mut delays: Vec<Nanos> = Vec::with_capacity(1 << 22);
    let mut next_send = start;
    loop {
        let now = monotonic_now();
        if now >= end + delay + PATIENCE || (now >= end && received == sent) {
            break;
        }
        if now < end && now >= next_send {
            next_send += interval;
            for frame in &mut frames[..batch] {
                frame[HEADER_LEN..HEADER_LEN + 8].copy_from_slice(&monotonic_now().to_be_bytes());
            }
            sent += tx.send(batch, |i| (from.index, &frames[i]), |_| {}) as u64;
        }
        let wait = match interval {
            0 if now < end => 0,
            0 => 1_000_000,
            _ if now < end => next_send.saturating_sub(monotonic_now()),
            _ => 1_000_000,
        };
        let ready = poller.wait(Some(wait))?.count();
        if ready == 0 {
            continue;
        }
        let clock = ClockPair::read();
        ring.receive(&clock, 1024, |frame| {
            if frame.bytes.len() < HEADER_LEN + 8 || frame.bytes[12..HEADER_LEN] != ETHERTYPE {
                return;
            }
            let stamp = frame.bytes[HEADER_LEN..HEADER_LEN + 8]
                .try_into()
                .map(u64::from_be_bytes);
            received += 1;
            first_arrival = first_arrival.min(frame.arrival);
            last_arrival = last_arrival.max(frame.arrival);
            if let Ok(stamp) = stamp {
                if delays.len() < delays.capacity() {
                    delays.push(frame.arrival.saturating_sub(stamp));
                }
            }
        });
    }
    delays.sort_unstable();
    let error_us = |q: f64| {
        let index = ((delays.len() as f64 - 1.0) * q).round() as usize;
        delays.get(index).map(|d| (*d as f64 - delay as f64) / 1e3)
    };
    let span = last_arrival.saturating_sub(first_arrival) as f64 / 1e9;
    println!(
        "{}",
        json!({
            "sent": sent, "received": received, "received_pps": received as f64 / span,
            "delay_error_us_min": error_us(0.0), "delay_error_us_p50": error_us(0.5),
            "delay_error_us_p99": error_us(0.99), "delay_error_us_max": error_us(1.0),
            "ring_full": ring.take_counters().ring_full,
        })
    );
    Ok(())
}
