// SPDX-License-Identifier: Apache-2.0
//! One flow through a bottleneck with a drop-tail queue: the link is full, and the window has the shape of the text book.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tcp::segment::Ecn;
use tcp::{Connection, Flags, Nanos, Recovery, Segment, TcpConfig};

use std::collections::VecDeque;

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1000 * MS;
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 10_000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5001);
const HEADERS_BYTES: u64 = 40;

/// 2 Mbit/s, 10 ms each way: 1000-byte packets leave every 4 ms, the pipe holds six.
struct Link {
    queue_packets: usize,
    /// What finds so many in the queue is marked.
    mark_at: usize,
    /// The queue's length at each packet that comes.
    lengths: Vec<usize>,
    waiting: VecDeque<Segment>,
    free_at: Nanos,
    to_server: VecDeque<(Nanos, Segment)>,
    to_client: VecDeque<(Nanos, Segment)>,
    drops: u32,
}

const RATE_BPS: u64 = 2_000_000;
const DELAY_NS: Nanos = 10 * MS;

impl Link {
    fn offer(&mut self, mut segment: Segment) {
        self.lengths.push(self.waiting.len());
        if self.waiting.len() >= self.mark_at && segment.ecn == Ecn::Ect0 {
            segment.ecn = Ecn::Ce;
        }
        if self.waiting.len() >= self.queue_packets && segment.payload_len > 0 {
            self.drops += 1;
        } else {
            self.waiting.push_back(segment);
        }
    }

    fn serve(&mut self, now: Nanos) {
        while self.free_at <= now {
            let Some(segment) = self.waiting.pop_front() else {
                break;
            };
            let bytes = u64::from(segment.payload_len) + HEADERS_BYTES;
            self.free_at = now + bytes * 8 * SECOND / RATE_BPS;
            self.to_server.push_back((self.free_at + DELAY_NS, segment));
        }
    }

    fn next(&self, now: Nanos) -> Option<Nanos> {
        let service = (!self.waiting.is_empty()).then_some(self.free_at.max(now));
        let arrivals =
            [&self.to_server, &self.to_client].map(|queue| queue.front().map(|(at, _)| *at));
        arrivals.into_iter().flatten().chain(service).min()
    }
}

struct Run {
    client: Connection,
    drops: u32,
    /// Share of the link's rate over the last two thirds.
    utilisation: f64,
    /// cwnd at each ACK over the last two thirds.
    windows: Vec<u32>,
    /// The queue's length at each packet that comes.
    lengths: Vec<usize>,
}

fn run(config: &TcpConfig, queue_packets: usize, seconds: u64) -> Run {
    run_marking(config, queue_packets, usize::MAX, seconds)
}

fn run_marking(config: &TcpConfig, queue_packets: usize, mark_at: usize, seconds: u64) -> Run {
    let mut client = Connection::connect(config, CLIENT, SERVER, 1, 0);
    client.write(0, u64::MAX);
    let mut server: Option<Connection> = None;
    let mut link = Link {
        queue_packets,
        mark_at,
        lengths: Vec::new(),
        waiting: VecDeque::new(),
        free_at: 0,
        to_server: VecDeque::new(),
        to_client: VecDeque::new(),
        drops: 0,
    };
    let (mut now, end, begin) = (0, seconds * SECOND, seconds * SECOND / 3);
    let (mut received_before, mut windows) = (0, Vec::new());
    while now < end {
        while let Some(segment) = client.poll_transmit(now) {
            link.offer(segment);
        }
        link.serve(now);
        if let Some(server) = &mut server {
            while let Some(segment) = server.poll_transmit(now) {
                link.to_client.push_back((now + DELAY_NS, segment));
            }
        }
        let timers = [
            client.next_timer(),
            server.as_ref().and_then(Connection::next_timer),
        ];
        now = timers
            .into_iter()
            .flatten()
            .chain(link.next(now))
            .min()
            .expect("something happens")
            .max(now);
        client.on_timer(now);
        if let Some(server) = &mut server {
            server.on_timer(now);
        }
        if link.to_server.front().is_some_and(|(at, _)| *at <= now) {
            let (_, segment) = link.to_server.pop_front().expect("it was peeked at");
            match &mut server {
                Some(server) => server.on_segment(now, &segment),
                None => {
                    assert!(segment.flags.contains(Flags::SYN));
                    server = Some(Connection::accept(config, SERVER, CLIENT, 1, now, &segment));
                }
            }
        }
        if link.to_client.front().is_some_and(|(at, _)| *at <= now) {
            let (_, segment) = link.to_client.pop_front().expect("it was peeked at");
            client.on_segment(now, &segment);
            if now >= begin {
                windows.push(client.sender().snd_cwnd);
            }
        }
        if now < begin {
            received_before = server.as_ref().map_or(0, Connection::received_bytes);
        }
    }
    let bytes = server.expect("it accepted").received_bytes() - received_before;
    let packets = bytes / u64::from(config.mss_bytes);
    let wire_bits = packets * (u64::from(config.mss_bytes) + HEADERS_BYTES) * 8;
    let utilisation = wire_bits as f64 / (RATE_BPS as f64 * (end - begin) as f64 / 1e9);
    Run {
        client,
        drops: link.drops,
        utilisation,
        windows,
        lengths: link.lengths,
    }
}

fn config(cc: &str, recovery: Recovery) -> TcpConfig {
    TcpConfig {
        cc: cc.parse().expect("a control"),
        recovery,
        mss_bytes: 960,
        delayed_ack: false,
        initial_window_packets: 2,
        initial_ssthresh_packets: 20,
        ..TcpConfig::default()
    }
}

/// The saw-tooth between half of what fits and what fits: six packets on the way, one in service, twenty wait.
#[test]
fn reno_saw_tooths_between_half_and_all_of_what_fits() {
    for (cc, recovery) in [
        ("reno", Recovery::Reno),
        ("reno", Recovery::Newreno),
        ("reno", Recovery::Sack),
        ("reno_recovery", Recovery::Newreno),
    ] {
        let run = run(&config(cc, recovery), 20, 60);
        let (least, most) = (
            run.windows.iter().min().copied(),
            run.windows.iter().max().copied(),
        );
        let stats = run.client.stats();
        assert!(
            run.utilisation > 0.99 && run.utilisation < 1.005,
            "{cc} {recovery:?}: {}",
            run.utilisation
        );
        assert!(
            (26..=28).contains(&most.unwrap_or(0)),
            "{cc} {recovery:?}: largest window {most:?}"
        );
        assert!(
            (12..=14).contains(&least.unwrap_or(0)),
            "{cc} {recovery:?}: smallest window {least:?}"
        );
        assert_eq!(
            (stats.timeouts, stats.retransmits),
            (0, u64::from(run.drops)),
            "{cc} {recovery:?}"
        );
        assert!(run.drops >= 10, "{cc} {recovery:?}: {} drops", run.drops);
    }
}

#[test]
fn tahoe_starts_again_from_one_packet() {
    let run = run(&config("reno", Recovery::Tahoe), 20, 60);
    assert_eq!(run.windows.iter().min(), Some(&1));
    assert!((26..=28).contains(run.windows.iter().max().expect("windows")));
    assert!(
        run.utilisation > 0.85 && run.utilisation < 0.99,
        "{}",
        run.utilisation
    );
    assert_eq!(run.client.stats().timeouts, 0);
}

/// Vegas keeps one to three packets in the queue and loses none.
#[test]
fn vegas_settles_within_its_band() {
    let run = run(&config("vegas", Recovery::Newreno), 50, 60);
    let (least, most) = (
        run.windows.iter().min().copied(),
        run.windows.iter().max().copied(),
    );
    assert_eq!((run.drops, run.client.stats().retransmits), (0, 0));
    assert!(run.utilisation > 0.99, "{}", run.utilisation);
    assert!(
        least >= Some(6) && most <= Some(9) && most.unwrap_or(0) - least.unwrap_or(0) <= 1,
        "{least:?} to {most:?}"
    );
}

/// A window of so many packets: its share of what fills the pipe (20 ms and one packet's 4 ms: six packets).
#[test]
fn a_fixed_window_fills_its_share_of_the_pipe() {
    for (packets, wanted) in [
        (1, 1.0 / 6.0),
        (2, 2.0 / 6.0),
        (3, 3.0 / 6.0),
        (6, 1.0),
        (12, 1.0),
    ] {
        let clamped = TcpConfig {
            cwnd_clamp_packets: packets,
            initial_ssthresh_packets: 0,
            ..config("reno", Recovery::Newreno)
        };
        let run = run(&clamped, 50, 30);
        assert!(
            (run.utilisation - wanted).abs() < 0.005,
            "{packets} packets: {}",
            run.utilisation
        );
        assert_eq!(run.drops, 0);
    }
}

/// RFC 8257 §4: the queue stays near the threshold, the link is full, nothing is lost.
#[test]
fn dctcp_keeps_the_queue_at_the_threshold() {
    let config = TcpConfig {
        prr: true,
        delayed_ack: true,
        initial_ssthresh_packets: 0,
        ..config("dctcp", Recovery::Sack)
    };
    let run = run_marking(&config, 100, 20, 60);
    let late = &run.lengths[run.lengths.len() / 3..];
    let mean = late.iter().sum::<usize>() as f64 / late.len() as f64;
    let stats = run.client.stats();
    assert_eq!((run.drops, stats.timeouts, stats.retransmits), (0, 0, 0));
    assert!(run.utilisation > 0.99, "{}", run.utilisation);
    assert!((10.0..21.0).contains(&mean), "{mean}");
    assert!(stats.delivered_ce > 100, "{}", stats.delivered_ce);
}

/// Beyond start-up BBR holds about a BDP (7 packets here) in flight, so the queue is short, and nothing is lost; cwnd is twice
/// that and what three bursts of two need.
#[test]
fn bbr_fills_the_link_and_leaves_the_queue_empty() {
    let config = TcpConfig {
        delayed_ack: true,
        initial_ssthresh_packets: 0,
        ..config("bbr", Recovery::Sack)
    };
    let run = run(&config, 100, 60);
    let late = &run.lengths[run.lengths.len() / 3..];
    let mean = late.iter().sum::<usize>() as f64 / late.len() as f64;
    assert_eq!((run.drops, run.client.stats().timeouts), (0, 0));
    assert!(run.utilisation > 0.95, "{}", run.utilisation);
    assert!(mean < 8.0, "{mean}");
    let largest = run.windows.iter().max().copied();
    assert!((18..=28).contains(&largest.unwrap_or(0)), "{largest:?}");
    assert!(run.windows.contains(&4), "PROBE_RTT");
}

/// The arc of RFC 9438: after a loss at W the window goes back to 0.7 W, and is at W again after K.
#[test]
fn cubic_goes_back_to_the_window_of_the_loss() {
    let config = TcpConfig {
        prr: true,
        delayed_ack: true,
        initial_ssthresh_packets: 50,
        ..config("cubic", Recovery::Sack)
    };
    let run = run(&config, 100, 120);
    let (least, most) = (
        run.windows.iter().min().copied().unwrap_or(0),
        run.windows.iter().max().copied().unwrap_or(0),
    );
    assert_eq!(run.client.stats().timeouts, 0);
    assert!(run.utilisation > 0.99, "{}", run.utilisation);
    assert!((105..=115).contains(&most), "{most}");
    let cut = f64::from(least) / f64::from(most);
    assert!((0.66..0.72).contains(&cut), "{least} of {most}");
}
