// SPDX-License-Identifier: Apache-2.0
//! Measures nanoseconds of wall time a data segment: both endpoints, with and without bytes on a wire.
//!
//! `cargo run --release -p tcp --example speed [megasegments]`. One window of 100 packets goes to and fro; of the loss row, each
//! thousandth data segment is dropped.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;
use tcp::{Connection, Nanos, Recovery, Segment, TcpConfig};

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 10_000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5001);
const DELAY_NS: Nanos = 5_000_000;
const WINDOW_PACKETS: u32 = 100;

struct Case {
    name: &'static str,
    recovery: Recovery,
    drop_every: u64,
    on_the_wire: bool,
}

fn across(segment: &Segment, on_the_wire: bool, buffer: &mut [u8]) -> Segment {
    if !on_the_wire {
        return *segment;
    }
    segment.encode(CLIENT.ip(), SERVER.ip(), buffer);
    Segment::parse(CLIENT.ip(), SERVER.ip(), &buffer[..segment.wire_len()]).expect("it was encoded")
}

/// Nanoseconds a data segment of the sender's and of the receiver's side.
fn measure(case: &Case, segments: u64) -> (f64, f64) {
    let config = TcpConfig {
        recovery: case.recovery,
        delayed_ack: false,
        initial_window_packets: WINDOW_PACKETS,
        cwnd_clamp_packets: WINDOW_PACKETS,
        ..TcpConfig::default()
    };
    let mut now = 0;
    let mut client = Connection::connect(&config, CLIENT, SERVER, 1, now);
    client.write(now, u64::MAX);
    let syn = client.poll_transmit(now).expect("a SYN");
    let mut server = Connection::accept(&config, SERVER, CLIENT, 1, now, &syn);
    client.on_segment(now, &server.poll_transmit(now).expect("a SYN-ACK"));
    let (mut data, mut acks) = (Vec::with_capacity(1024), Vec::with_capacity(1024));
    let (mut sending, mut receiving, mut count) = (0, 0, 0u64);
    let mut buffer = vec![0; 2048];
    while count < segments {
        let begin = Instant::now();
        for ack in acks.drain(..) {
            client.on_segment(now, &across(&ack, case.on_the_wire, &mut buffer));
            while let Some(segment) = client.poll_transmit(now) {
                count += 1;
                if case.drop_every == 0 || count % case.drop_every != 0 {
                    data.push(segment);
                }
            }
        }
        client.on_timer(now);
        while let Some(segment) = client.poll_transmit(now) {
            count += 1;
            data.push(segment);
        }
        sending += begin.elapsed().as_nanos();
        now += DELAY_NS;
        let begin = Instant::now();
        for segment in data.drain(..) {
            server.on_segment(now, &across(&segment, case.on_the_wire, &mut buffer));
            while let Some(ack) = server.poll_transmit(now) {
                acks.push(ack);
            }
        }
        receiving += begin.elapsed().as_nanos();
        now += DELAY_NS;
        if acks.is_empty() {
            now = client.next_timer().unwrap_or(now).max(now);
        }
    }
    (
        sending as f64 / count as f64,
        receiving as f64 / count as f64,
    )
}

fn main() {
    let megasegments: u64 = std::env::args().nth(1).map_or(2, |text| {
        text.parse().expect("megasegments: a whole number")
    });
    let cases = [
        Case {
            name: "no loss",
            recovery: Recovery::Newreno,
            drop_every: 0,
            on_the_wire: false,
        },
        Case {
            name: "no loss, 1500-byte frames encoded and parsed",
            recovery: Recovery::Newreno,
            drop_every: 0,
            on_the_wire: true,
        },
        Case {
            name: "loss 0.1 %, NewReno",
            recovery: Recovery::Newreno,
            drop_every: 1000,
            on_the_wire: false,
        },
        Case {
            name: "loss 0.1 %, SACK",
            recovery: Recovery::Sack,
            drop_every: 1000,
            on_the_wire: false,
        },
        Case {
            name: "loss 2 %, SACK",
            recovery: Recovery::Sack,
            drop_every: 50,
            on_the_wire: false,
        },
    ];
    for case in &cases {
        let (sending, receiving) = measure(case, megasegments * 1_000_000);
        println!(
            "{:<46} sender {sending:6.1} ns, receiver {receiving:6.1} ns a data segment",
            case.name
        );
    }
}
