// SPDX-License-Identifier: Apache-2.0
//! Sends UDP frames of many flows into one interface and takes them from another: rate, loss and delay by kernel
//! stamps. Prints one JSON object. For `bench/` and the real-time tests.

use clap::Parser;
use netio::clock::{monotonic_now, ClockPair, Nanos};
use netio::interface::Interface;
use netio::socket::{RingOptions, RxRing, TxSocket, TX_BATCH};
use serde_json::json;
use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

const UDP_AT: usize = 14 + 20;
const STAMP_AT: usize = UDP_AT + 8;
const LENGTH_MIN: u64 = (STAMP_AT + 16) as u64;
/// First words of the payload of our frames.
const MAGIC: u32 = 0x6661_6972;

#[derive(Parser, Clone)]
struct Options {
    /// Interface to send into; without it nothing is sent.
    #[arg(long)]
    from: Option<String>,
    /// Interface to take from, frame by frame; without it nothing is taken.
    #[arg(long)]
    to: Option<String>,
    /// Frames per second; 0 is as many as go.
    #[arg(long, default_value_t = 0)]
    pps: u64,
    /// Frames to send in all; 0: no limit but the time.
    #[arg(long, default_value_t = 0)]
    count: u64,
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Go on taking for so long after the last frame was sent.
    #[arg(long, default_value_t = 0.3)]
    linger: f64,
    /// Length of a frame, bytes.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(LENGTH_MIN..=9_014))]
    length: u64,
    /// Flows, told apart by source port.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    flows: u64,
    #[arg(long, default_value = "10.0.2.2")]
    destination: Ipv4Addr,
    /// Destination MAC address of the frames, as 02:00:00:00:00:02.
    #[arg(long, default_value = "02:00:00:00:00:02")]
    mac: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let sink = options.to.as_deref().map(Sink::open).transpose()?;
    netio::thread::no_timer_slack();
    let patience = Duration::from_secs_f64(options.seconds + options.linger);
    let taking = sink.map(|sink| std::thread::spawn(move || sink.run(patience)));
    let sent = match &options.from {
        Some(from) => send(&options, &Interface::find(from)?)?,
        None => json!(null),
    };
    let received = match taking {
        Some(thread) => thread.join().map_err(|_| "the sink panicked")?,
        None => json!(null),
    };
    println!("{}", json!({"sent": sent, "received": received}));
    Ok(())
}

fn send(options: &Options, interface: &Interface) -> Result<serde_json::Value, Box<dyn Error>> {
    let mut tx = TxSocket::open()?;
    let mut frames = vec![frame(options)?; TX_BATCH];
    let start = monotonic_now();
    let end = start + (options.seconds * 1e9) as Nanos;
    let (mut sent, mut failed, mut next) = (0u64, 0u64, 0u64);
    let mut now = start;
    while now < end && (options.count == 0 || next < options.count) {
        let mut batch = TX_BATCH as u64;
        if options.count > 0 {
            batch = batch.min(options.count - next);
        }
        if options.pps > 0 {
            let due =
                (u128::from(now - start) * u128::from(options.pps) / 1_000_000_000) as u64 + 1;
            batch = batch.min(due.saturating_sub(next));
            if batch == 0 {
                let at = start
                    + (u128::from(next) * 1_000_000_000).div_ceil(u128::from(options.pps)) as u64;
                std::thread::sleep(Duration::from_nanos(at.saturating_sub(monotonic_now())));
                now = monotonic_now();
                continue;
            }
        }
        for frame in &mut frames[..batch as usize] {
            let port = (next % options.flows) as u16;
            frame[UDP_AT..UDP_AT + 2].copy_from_slice(&port.to_be_bytes());
            frame[STAMP_AT + 4..STAMP_AT + 8].copy_from_slice(&(next as u32).to_be_bytes());
            frame[STAMP_AT + 8..STAMP_AT + 16].copy_from_slice(&now.to_be_bytes());
            next += 1;
        }
        sent += tx.send(
            batch as usize,
            |i| (interface.index, frames[i].as_slice()),
            |_| failed += 1,
        ) as u64;
        now = monotonic_now();
    }
    let seconds = (now - start) as f64 / 1e9;
    Ok(json!({"frames": sent, "failed": failed, "seconds": seconds, "pps": sent as f64 / seconds}))
}

fn frame(options: &Options) -> Result<Vec<u8>, Box<dyn Error>> {
    let mac: Vec<u8> = options
        .mac
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16))
        .collect::<Result<_, _>>()?;
    if mac.len() != 6 {
        return Err(format!("\"{}\" is not a MAC address", options.mac).into());
    }
    let length = options.length as usize;
    let mut frame = vec![0u8; length];
    frame[..6].copy_from_slice(&mac);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut frame[14..34];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&((length - 14) as u16).to_be_bytes());
    ip[8] = 64;
    ip[9] = 17;
    ip[12..16].copy_from_slice(&[10, 0, 1, 1]);
    ip[16..20].copy_from_slice(&options.destination.octets());
    let sum: u32 = ip
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
    frame[UDP_AT + 2..UDP_AT + 4].copy_from_slice(&5_000u16.to_be_bytes());
    frame[UDP_AT + 4..UDP_AT + 6].copy_from_slice(&((length - UDP_AT) as u16).to_be_bytes());
    frame[STAMP_AT..STAMP_AT + 4].copy_from_slice(&MAGIC.to_be_bytes());
    Ok(frame)
}

struct Sink {
    ring: RxRing,
}

impl Sink {
    fn open(name: &str) -> Result<Sink, Box<dyn Error>> {
        let ring = RxRing::open(&Interface::find(name)?, RingOptions { frames: 16_384 })?;
        Ok(Sink { ring })
    }

    fn run(mut self, patience: Duration) -> serde_json::Value {
        let end = monotonic_now() + patience.as_nanos() as Nanos;
        let (mut frames, mut bytes, mut first, mut last) = (0u64, 0u64, 0, 0);
        let (mut first_bytes, mut out_of_order, mut highest) = (0u64, 0u64, None);
        let mut delays: Vec<u64> = Vec::with_capacity(1 << 20);
        while monotonic_now() < end {
            let clock = ClockPair::read();
            let taken = self.ring.receive(&clock, 256, |frame| {
                let b = &frame.bytes;
                if b.len() < LENGTH_MIN as usize || b[STAMP_AT..STAMP_AT + 4] != MAGIC.to_be_bytes()
                {
                    return;
                }
                let mut stamp = [0; 8];
                stamp.copy_from_slice(&b[STAMP_AT + 8..STAMP_AT + 16]);
                let mut number = [0; 4];
                number.copy_from_slice(&b[STAMP_AT + 4..STAMP_AT + 8]);
                let number = u32::from_be_bytes(number);
                out_of_order += u64::from(highest.is_some_and(|h| number <= h));
                highest = Some(number);
                if frames == 0 {
                    (first, first_bytes) = (frame.arrival, b.len() as u64);
                }
                frames += 1;
                bytes += b.len() as u64;
                last = frame.arrival;
                if delays.len() < delays.capacity() {
                    delays.push(frame.arrival.saturating_sub(u64::from_be_bytes(stamp)));
                }
            });
            if taken == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        delays.sort_unstable();
        let delay = |part: f64| {
            let at = ((delays.len() as f64 - 1.0) * part).max(0.0) as usize;
            delays.get(at).map(|ns| *ns as f64 / 1e3)
        };
        let seconds = last.saturating_sub(first) as f64 / 1e9;
        let counters = self.ring.take_counters();
        json!({"frames": frames, "bytes": bytes, "seconds": seconds, "out_of_order": out_of_order,
               "rate_bps": if seconds > 0.0 { Some((bytes - first_bytes) as f64 * 8.0 / seconds) } else { None },
               "delay_us_p50": delay(0.5), "delay_us_p99": delay(0.99), "delay_us_p999": delay(0.999), "delay_us_min": delay(0.0),
               "ring_full": counters.ring_full})
    }
}
