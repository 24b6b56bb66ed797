// SPDX-License-Identifier: Apache-2.0
//! Over a network that loses, delays, reorders and repeats, every byte arrives, whatever the recovery and the control.

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tcp::cc::CcName;
use tcp::{Connection, Nanos, Recovery, RtoRule, SackLimit, Segment, State, TcpConfig};

const MS: Nanos = 1_000_000;
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 10_000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5001);
/// Far more than any case needs: a case that takes longer hangs.
const LIMIT: Nanos = 100_000 * 1000 * MS;

/// How bad the network is.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    pub delay_ns: Nanos,
    pub jitter_ns: Nanos,
    pub loss: f64,
    pub duplicates: f64,
    /// Of the segments with payload that arrive, so many arrive corrupted.
    pub corruption: f64,
}

/// Two endpoints and what is on its way between them; ties in time go by order of sending.
struct Pipe {
    network: Network,
    random: SmallRng,
    now: Nanos,
    on_the_way: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    segments: Vec<Segment>,
    ends: [Option<Connection>; 2],
}

impl Pipe {
    fn flush(&mut self, end: usize) {
        let Some(connection) = &mut self.ends[end] else {
            return;
        };
        while let Some(segment) = connection.poll_transmit(self.now) {
            let view = connection.sender();
            assert!(
                view.in_flight < 1 << 20,
                "in flight went below zero: {view:?}"
            );
            let mut copies = if self.random.random_bool(self.network.loss) {
                0
            } else {
                1
            };
            copies += u32::from(self.random.random_bool(self.network.duplicates));
            for _ in 0..copies {
                let at = self.now
                    + self.network.delay_ns
                    + self.random.random_range(0..=self.network.jitter_ns);
                self.on_the_way
                    .push(Reverse((at, self.segments.len() as u64, 1 - end)));
                self.segments.push(segment);
            }
        }
    }

    /// The next event: a segment that arrives or a timer. False: nothing will ever happen.
    fn step(&mut self, server: &TcpConfig) -> bool {
        let arrival = self.on_the_way.peek().map(|Reverse((at, ..))| *at);
        let timers = [0, 1].map(|end| self.ends[end].as_ref().and_then(Connection::next_timer));
        let timer = timers.iter().flatten().min().copied();
        let Some(at) = arrival.into_iter().chain(timer).min() else {
            return false;
        };
        self.now = at.max(self.now);
        if arrival == Some(at) {
            let Reverse((_, index, end)) = self.on_the_way.pop().expect("it was peeked at");
            let segment = self.segments[index as usize];
            if let Some(connection) = &mut self.ends[end] {
                if segment.payload_len > 0 && self.random.random_bool(self.network.corruption) {
                    connection.on_corrupted(self.now, &corrupted(&segment));
                } else {
                    connection.on_segment(self.now, &segment);
                }
            } else if segment.flags.syn() {
                self.ends[end] = Some(Connection::accept(
                    server,
                    SERVER,
                    CLIENT,
                    u32::MAX - 5000,
                    self.now,
                    &segment,
                ));
            }
            self.flush(end);
        } else {
            for end in [0, 1] {
                if timers[end].is_some_and(|timer| timer <= self.now) {
                    self.ends[end]
                        .as_mut()
                        .expect("it has a timer")
                        .on_timer(self.now);
                    self.flush(end);
                }
            }
        }
        true
    }
}

/// The segment's bytes with a flipped bit in its payload.
pub fn corrupted(segment: &Segment) -> Vec<u8> {
    let mut bytes = vec![0; segment.wire_len()];
    segment.encode(CLIENT.ip(), SERVER.ip(), &mut bytes);
    *bytes.last_mut().expect("a header") ^= 1;
    bytes
}

/// Sends `bytes` from the client and closes; gives both ends once both are done.
fn transfer(
    config: &TcpConfig,
    network: Network,
    seed: u64,
    bytes: u64,
) -> (Connection, Connection, Nanos) {
    config.validate().expect("a valid configuration");
    let mut client = Connection::connect(config, CLIENT, SERVER, u32::MAX - 20_000, 0);
    client.write(0, bytes);
    client.close(0);
    let mut pipe = Pipe {
        network,
        random: SmallRng::seed_from_u64(seed),
        now: 0,
        on_the_way: BinaryHeap::new(),
        segments: Vec::new(),
        ends: [Some(client), None],
    };
    pipe.flush(0);
    let mut last = 0;
    while pipe.step(config) {
        assert!(
            pipe.now < LIMIT,
            "hangs: {:?} {:?}",
            pipe.ends[0].as_ref().map(Connection::sender),
            pipe.ends[0].as_ref().map(Connection::stats)
        );
        if let Some(server) = &mut pipe.ends[1] {
            assert!(server.received_bytes() >= last, "received bytes went back");
            last = server.received_bytes();
            if server.state() == State::CloseWait {
                server.close(pipe.now);
                pipe.flush(1);
            }
        }
        if pipe.ends[1].as_ref().is_some_and(Connection::is_closed) {
            break;
        }
    }
    let [client, server] = pipe.ends;
    (
        client.expect("the client"),
        server.expect("the server accepted"),
        pipe.now,
    )
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let recoveries = [
        Recovery::Tahoe,
        Recovery::Reno,
        Recovery::Newreno,
        Recovery::Sack,
    ];
    let controls: Vec<CcName> = CcName::all().collect();
    let choices = (
        prop::sample::select(controls),
        prop::sample::select(recoveries.to_vec()),
        any::<[bool; 12]>(),
    );
    (choices, 100u32..1500, 1u32..20, 1u32..5, 0u64..60_000).prop_map(
        |((cc, recovery, flags), mss, window, threshold, buffer)| {
            let [delayed_ack, timestamps, frto, erto, prr, rack, limited_transmit, window_scale, linux, ena, repairs_named, outstanding] =
                flags;
            TcpConfig {
                cc,
                recovery,
                mss_bytes: mss,
                initial_window_packets: window,
                dupack_threshold: threshold,
                receive_window_bytes: if buffer < 3000 { 0 } else { buffer },
                delayed_ack,
                timestamps,
                frto,
                erto,
                prr,
                rack,
                limited_transmit,
                window_scale,
                ena,
                repairs_named,
                sack_limit: match outstanding {
                    true => SackLimit::Outstanding,
                    false => SackLimit::Window,
                },
                rto_rule: if linux {
                    RtoRule::Linux
                } else {
                    RtoRule::Rfc6298
                },
                ..TcpConfig::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives(
        config in config(),
        seed in any::<u64>(),
        bytes in 1u64..200_000,
        loss in 0.0f64..0.2,
        duplicates in 0.0f64..0.1,
        jitter_ms in 0u64..30,
        corruption in 0.0f64..0.1,
    ) {
        let network = Network { delay_ns: 10 * MS, jitter_ns: jitter_ms * MS, loss, duplicates, corruption };
        let (client, server, _) = transfer(&config, network, seed, bytes);
        prop_assert_eq!(server.received_bytes(), bytes);
        prop_assert_eq!(client.acked_bytes(), bytes);
        prop_assert!(server.is_closed());
    }
}

#[test]
fn a_seed_gives_the_same_run() {
    let network = Network {
        delay_ns: 10 * MS,
        jitter_ns: 20 * MS,
        loss: 0.05,
        duplicates: 0.02,
        corruption: 0.0,
    };
    let config = TcpConfig {
        recovery: Recovery::Sack,
        ..TcpConfig::default()
    };
    let runs = [7, 7, 8].map(|seed| {
        let (client, _, end) = transfer(&config, network, seed, 500_000);
        (client.stats(), end)
    });
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}
