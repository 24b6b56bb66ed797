// SPDX-License-Identifier: Apache-2.0
//! ENA where segments are corrupted and dropped, and ACKs lost: each recovery is judged against what the network did.

use super::pipe::corrupted;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tcp::cc::CaState;
use tcp::{Connection, Naming, Nanos, Recovery, Segment, TcpConfig};

const MS: Nanos = 1_000_000;
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 10_000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5001);
const DELAY_NS: Nanos = 50 * MS;
/// A segment's time on the line.
const SERVICE_NS: Nanos = MS;
const BYTES: u64 = 600_000;

/// Probabilities of a data segment (SYN and FIN are spared), and of an ACK to be lost.
#[derive(Clone, Copy, Debug)]
struct Chances {
    corruption: f64,
    drop: f64,
    ack_loss: f64,
}

/// A base sender of ENA, and how the kernel recovers with it.
type Sender = (&'static str, Recovery);

/// What became of a run's recoveries.
#[derive(Clone, Copy, Debug, Default)]
struct Verdict {
    recoveries: u64,
    /// Reductions while nothing that was dropped was missing.
    needless: u64,
    /// Drops that were repaired without a reduction, though none was going on.
    missed: u64,
}

/// A drop that was not repaired yet: its end, and the reductions before it.
struct Drop {
    end_seq: u32,
    reductions: u64,
    /// The sender was reducing already.
    within_recovery: bool,
}

struct World {
    random: SmallRng,
    chances: Chances,
    now: Nanos,
    line_free_at: Nanos,
    to_server: VecDeque<(Nanos, Segment, bool)>,
    to_client: VecDeque<(Nanos, Segment)>,
    client: Connection,
    server: Option<Connection>,
    drops: Vec<Drop>,
    reductions: u64,
    verdict: Verdict,
}

impl World {
    fn flush(&mut self) {
        while let Some(segment) = self.client.poll_transmit(self.now) {
            self.line_free_at = self.line_free_at.max(self.now) + SERVICE_NS;
            let data = segment.payload_len > 0;
            if data && self.random.random_bool(self.chances.drop) {
                let state = self.client.sender().ca_state;
                self.drops.push(Drop {
                    end_seq: segment.seq.wrapping_add(segment.payload_len),
                    reductions: self.client.stats().window_reductions,
                    within_recovery: state > CaState::Disorder,
                });
                continue;
            }
            let is_corrupted = data && self.random.random_bool(self.chances.corruption);
            let at = self.line_free_at + DELAY_NS;
            self.to_server.push_back((at, segment, is_corrupted));
        }
        let Some(server) = &mut self.server else {
            return;
        };
        while let Some(segment) = server.poll_transmit(self.now) {
            let plain = segment.seq_len() == 0;
            if !(plain && self.random.random_bool(self.chances.ack_loss)) {
                self.to_client.push_back((self.now + DELAY_NS, segment));
            }
        }
    }

    /// Looks at what the client has just done.
    fn judge(&mut self) {
        let reductions = self.client.stats().window_reductions;
        if reductions > self.reductions && self.drops.is_empty() {
            self.verdict.needless += reductions - self.reductions;
        }
        self.reductions = reductions;
        // The client's stream begins with 2 (its SYN has 1).
        let una = 2u32.wrapping_add(self.client.acked_bytes() as u32);
        let verdict = &mut self.verdict;
        self.drops.retain(|drop| {
            let missing = (drop.end_seq.wrapping_sub(una) as i32) > 0;
            if !missing && !drop.within_recovery && drop.reductions == reductions {
                verdict.missed += 1;
            }
            missing
        });
    }

    fn step(&mut self, config: &TcpConfig) {
        let server_timer = self.server.as_ref().and_then(Connection::next_timer);
        let at = [
            self.to_server.front().map(|&(at, ..)| at),
            self.to_client.front().map(|&(at, _)| at),
            self.client.next_timer(),
            server_timer,
        ];
        self.now = at.into_iter().flatten().min().expect("something happens");
        let now = self.now;
        if self.to_server.front().is_some_and(|&(at, ..)| at <= now) {
            let (_, segment, is_corrupted) = self.to_server.pop_front().expect("it is there");
            match &mut self.server {
                Some(server) if is_corrupted => server.on_corrupted(now, &corrupted(&segment)),
                Some(server) => server.on_segment(now, &segment),
                None => {
                    self.server = Some(Connection::accept(config, SERVER, CLIENT, 1, now, &segment))
                }
            }
        }
        if self.to_client.front().is_some_and(|&(at, _)| at <= now) {
            let (_, segment) = self.to_client.pop_front().expect("it is there");
            self.client.on_segment(now, &segment);
        }
        self.client.on_timer(now);
        if let Some(server) = &mut self.server {
            server.on_timer(now);
        }
        self.judge();
        self.flush();
    }
}

fn run((base, recovery): Sender, plus: bool, chances: Chances, seed: u64) -> Verdict {
    let cc = format!("ena_{base}{}", if plus { "_plus" } else { "" });
    let config = TcpConfig {
        cc: cc.parse().expect("a control"),
        recovery,
        rack: recovery == Recovery::Sack,
        ena: true,
        ena_naming: if plus { Naming::Lowest } else { Naming::Own },
        repairs_named: !plus,
        mss_bytes: 512,
        delayed_ack: false,
        initial_ssthresh_packets: 60,
        cwnd_clamp_packets: 60,
        ..TcpConfig::default()
    };
    config.validate().expect("a valid configuration");
    let mut client = Connection::connect(&config, CLIENT, SERVER, 1, 0);
    client.write(0, BYTES);
    let mut world = World {
        random: SmallRng::seed_from_u64(seed),
        chances,
        now: 0,
        line_free_at: 0,
        to_server: VecDeque::new(),
        to_client: VecDeque::new(),
        client,
        server: None,
        drops: Vec::new(),
        reductions: 0,
        verdict: Verdict::default(),
    };
    world.flush();
    while world.client.acked_bytes() < BYTES {
        assert!(
            world.now < 1_000_000 * MS,
            "hangs: {:?}",
            world.client.sender()
        );
        world.step(&config);
    }
    let server = world.server.as_ref().expect("it accepted");
    assert_eq!(server.received_bytes(), BYTES);
    let stats = world.client.stats();
    world.verdict.recoveries = stats.ena_kept + stats.ena_reduced;
    world.verdict
}

fn total(plus: bool, mixtures: &[(f64, f64)]) -> Vec<(Sender, Verdict)> {
    let senders: [Sender; 3] = [
        ("tahoe", Recovery::Newreno),
        ("reno_recovery", Recovery::Newreno),
        ("rfc6675", Recovery::Sack),
    ];
    senders
        .map(|sender| {
            let mut sum = Verdict::default();
            for &(corruption, drop) in mixtures {
                for seed in 0..6 {
                    let chances = Chances {
                        corruption,
                        drop,
                        ack_loss: if plus { 0.005 } else { 0.0 },
                    };
                    let verdict = run(sender, plus, chances, seed);
                    sum.recoveries += verdict.recoveries;
                    sum.needless += verdict.needless;
                    sum.missed += verdict.missed;
                }
            }
            (sender, sum)
        })
        .to_vec()
}

/// At least 99 % of all recoveries are told apart.
fn assert_told_apart(of: &str, verdict: &Verdict, recoveries_min: u64) {
    assert!(verdict.recoveries >= recoveries_min, "{of}: {verdict:?}");
    let wrong = verdict.needless + verdict.missed;
    assert!(100 * wrong <= verdict.recoveries, "{of}: {verdict:?}");
}

#[test]
fn corruption_and_drops_are_told_apart() {
    let mixtures = [(0.04, 0.001), (0.02, 0.005), (0.01, 0.01), (0.005, 0.02)];
    for plus in [false, true] {
        for (sender, verdict) in total(plus, &mixtures) {
            assert_told_apart(&format!("{sender:?}, plus {plus}"), &verdict, 300);
        }
    }
}

#[test]
fn corruption_alone_reduces_next_to_nothing() {
    for plus in [false, true] {
        for (sender, verdict) in total(plus, &[(0.04, 0.0), (0.01, 0.0)]) {
            assert_told_apart(&format!("{sender:?}, plus {plus}"), &verdict, 80);
            assert_eq!(verdict.missed, 0);
        }
    }
}
