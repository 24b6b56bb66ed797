// SPDX-License-Identifier: Apache-2.0
//! Linux hosts and a FIFO: 2 Mbit/s and 50 packets towards the last host, 2 ms to every host. Skipped without `make kernel`.

use apps::App;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use uml::plan::{Flow, Host, Plan};
use uml::{Machine, MachineError, Nanos, Options};

const RATE_BPS: u64 = 2_000_000;
const LIMIT_PACKETS: usize = 50;
const DELAY_NS: Nanos = 2_000_000;
const START_NS: Nanos = 5_000_000_000;
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

struct Frame {
    at: Nanos,
    to: usize,
    bytes: Vec<u8>,
}

/// The frames under way, in the order of their arrival.
struct Fifo {
    hosts: usize,
    /// When the last one of each has left the queue.
    leaves: VecDeque<Nanos>,
    slow: VecDeque<Frame>,
    fast: VecDeque<Frame>,
    frames: u64,
    drops: u64,
    /// Over instant, interface and bytes of every frame.
    hash: u64,
}

impl Fifo {
    fn new(hosts: usize) -> Fifo {
        Fifo {
            hosts,
            leaves: VecDeque::new(),
            slow: VecDeque::new(),
            fast: VecDeque::new(),
            frames: 0,
            drops: 0,
            hash: FNV_OFFSET,
        }
    }

    fn add_to_hash(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }

    /// The next frame that arrives before `limit`.
    fn pop(&mut self, limit: Nanos) -> Option<Frame> {
        let due = |queue: &VecDeque<Frame>| queue.front().map(|frame| frame.at);
        let queue = match (due(&self.slow), due(&self.fast)) {
            (Some(slow), Some(fast)) if slow <= fast => &mut self.slow,
            (_, Some(_)) => &mut self.fast,
            _ => &mut self.slow,
        };
        if queue.front()?.at >= limit {
            return None;
        }
        queue.pop_front()
    }
}

impl Fifo {
    fn transmit(&mut self, now: Nanos, interface: usize, frame: &[u8]) {
        self.frames += 1;
        self.add_to_hash(&now.to_le_bytes());
        self.add_to_hash(&[interface as u8]);
        self.add_to_hash(frame);
        // 02:00:00:00:00:NN is host NN; what is sent to all (the kernel's own) is not for the experiment.
        let to = usize::from(frame[5]).wrapping_sub(1);
        if frame[0] != 2 || to >= self.hosts {
            return;
        }
        let bytes = frame.to_vec();
        if to + 1 < self.hosts {
            let at = now + DELAY_NS;
            self.fast.push_back(Frame { at, to, bytes });
            return;
        }
        while self.leaves.front().is_some_and(|leaves| *leaves <= now) {
            self.leaves.pop_front();
        }
        if self.leaves.len() > LIMIT_PACKETS {
            self.drops += 1;
            return;
        }
        let begins = self.leaves.back().map_or(now, |leaves| now.max(*leaves));
        let leaves = begins + bytes.len() as u64 * 8 * 1_000_000_000 / RATE_BPS;
        self.leaves.push_back(leaves);
        let at = leaves + DELAY_NS;
        self.slow.push_back(Frame { at, to, bytes });
    }

    fn next_event(&mut self) -> Option<Nanos> {
        let due = |queue: &VecDeque<Frame>| queue.front().map(|frame| frame.at);
        match (due(&self.slow), due(&self.fast)) {
            (Some(slow), Some(fast)) => Some(slow.min(fast)),
            (slow, fast) => slow.or(fast),
        }
    }
}

/// Lets the machine and the network take turns until the machine halts. Whatever it sends arrives `DELAY_NS` later at the earliest;
/// turns are as if it were `lookahead`.
fn run(
    machine: &mut Machine,
    network: &mut Fifo,
    until: Nanos,
    lookahead: Nanos,
) -> Result<(), MachineError> {
    machine.boot(START_NS)?;
    while machine.exit().is_none() {
        let next = machine
            .next_event()?
            .into_iter()
            .chain(network.next_event());
        let Some(next) = next.min() else {
            panic!("the machine and the network wait for nothing");
        };
        assert!(next <= until, "the machine wants to go on at {next}");
        while let Some(frame) = network.pop(next + lookahead.max(1)) {
            machine.deliver(frame.at, frame.to, &frame.bytes)?;
        }
        let limit = network.next_event().map_or(until, |at| at.min(until));
        machine.run(next, limit, lookahead, |at, interface, frame| {
            network.transmit(at, interface, frame);
        })?;
    }
    Ok(())
}

fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.setup/kernel")
}

/// A plan of flows from the first hosts to the last one.
fn plan(senders: &[&str], seconds: u64) -> Plan {
    let last = senders.len();
    let ip = |host: usize| IpAddr::V4(Ipv4Addr::new(10, 0, 0, host as u8 + 1));
    let mac = |host: usize| format!("02:00:00:00:00:{:02x}", host + 1);
    let sysctls = [
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.tcp_timestamps", "0"),
        ("net.ipv4.tcp_max_reordering", "3"),
        ("net.ipv4.tcp_early_retrans", "0"),
        ("net.ipv4.tcp_frto", "0"),
        ("net.ipv4.tcp_no_metrics_save", "1"),
    ];
    let host = |host: usize| Host {
        name: format!("h{}", host + 1),
        mtu: 1500,
        addresses: vec![ip(host)],
        neighbours: (0..=last).map(|other| (ip(other), mac(other))).collect(),
        sysctls: sysctls
            .map(|(key, value)| (key.into(), value.into()))
            .into(),
        routes: Vec::new(),
    };
    let flow = |(index, sender): (usize, &&str)| Flow {
        name: (*sender).into(),
        from: index,
        to: last,
        ends: [
            (ip(index), 4000).into(),
            (ip(last), 5000 + index as u16).into(),
        ],
        congestion_control: Some((*sender).into()),
        mss_bytes: None,
        receive_window_bytes: None,
        start_ns: 0,
        stop_ns: None,
        app: App::Greedy,
        place: index,
        read_interval_ns: 0,
    };
    Plan {
        start_ns: START_NS,
        end_ns: seconds * 1_000_000_000,
        sample_ns: Some(1_000_000_000),
        marks_ns: Vec::new(),
        seed: 1,
        hosts: (0..=last).map(host).collect(),
        lines: Vec::new(),
        flows: senders.iter().enumerate().map(flow).collect(),
    }
}

/// What a run gave: the hash of its frames, received bytes of each flow, events, samples.
#[derive(PartialEq, Eq)]
struct Outcome {
    hash: u64,
    frames: u64,
    drops: u64,
    received: Vec<u64>,
    events: String,
    samples: Vec<u8>,
}

fn experiment(senders: &[&str], seconds: u64, seed: u64) -> Option<Outcome> {
    let outcome = try_experiment(senders, seconds, seed, DELAY_NS);
    outcome.map(Result::unwrap)
}

/// None: no kernel is built.
fn try_experiment(
    senders: &[&str],
    seconds: u64,
    seed: u64,
    lookahead: Nanos,
) -> Option<Result<Outcome, MachineError>> {
    let (kernel, guest) = (built().join("linux"), built().join("guest"));
    if !kernel.exists() || !guest.exists() {
        eprintln!("SKIPPED: no kernel is built (make kernel)");
        return None;
    }
    static RUN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = RUN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("fairlane-uml-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(guest, folder.join("init")).unwrap();
    std::fs::write(
        folder.join("plan.json"),
        serde_json::to_vec(&plan(senders, seconds)).unwrap(),
    )
    .unwrap();
    let hosts = senders.len() + 1;
    let options = Options {
        kernel,
        folder: folder.clone(),
        macs: (1..=hosts)
            .map(|host| [2, 0, 0, 0, 0, host as u8])
            .collect(),
        memory_mb: 64,
        seed,
        cpu: Some(number % 2),
        boot_limit: Duration::from_secs(20),
        patience: Duration::from_secs(20),
    };
    let begin = Instant::now();
    let mut machine = Machine::start(&options).unwrap();
    let mut network = Fifo::new(hosts);
    let until = START_NS + (seconds + 10) * 1_000_000_000;
    let done = run(&mut machine, &mut network, until, lookahead);
    let wall = begin.elapsed();
    let failure = std::fs::read_to_string(folder.join("failure")).unwrap_or_default();
    assert_eq!(failure, "");
    if let Err(error) = done {
        std::fs::remove_dir_all(&folder).unwrap();
        return Some(Err(error));
    }
    let events = std::fs::read_to_string(folder.join("events")).unwrap();
    let received = senders.iter().map(|sender| {
        let line = format!(" {sender} received ");
        let line = events.lines().find_map(|event| event.split_once(&line));
        line.expect("a flow that received").1.parse().unwrap()
    });
    let received: Vec<u64> = received.collect();
    let samples = std::fs::read(folder.join("samples")).unwrap();
    for (sender, bytes) in senders.iter().zip(&received) {
        println!("{sender}: {} kbit/s", bytes * 8 / seconds / 1000);
    }
    println!(
        "{} frames, {} drops, {:.2} s of wall time, {:.3} ms a frame, hash {:016x}",
        network.frames,
        network.drops,
        wall.as_secs_f64(),
        wall.as_secs_f64() * 1e3 / network.frames as f64,
        network.hash
    );
    std::fs::remove_dir_all(&folder).unwrap();
    Some(Ok(Outcome {
        hash: network.hash,
        frames: network.frames,
        drops: network.drops,
        received,
        events,
        samples,
    }))
}

/// One Reno fills the link, loses packets, and does so twice alike.
#[test]
fn reno_fills_the_link_and_twice_alike() {
    let Some(first) = experiment(&["fl_reno"], 100, 1) else {
        return;
    };
    let second = experiment(&["fl_reno"], 100, 1).unwrap();
    assert!(first == second);
    assert!(
        first.received[0] * 8 / 100 > 1_700_000,
        "{:?}",
        first.received
    );
    assert!(first.drops > 10, "{}", first.drops);
}

/// Two senders share the link, and another seed gives other bytes.
#[test]
fn reno_beside_vegas_and_another_seed() {
    let Some(first) = experiment(&["fl_reno", "fl_vegas"], 30, 1) else {
        return;
    };
    let other = experiment(&["fl_reno", "fl_vegas"], 30, 2).unwrap();
    assert!(first.hash != other.hash);
    let both: u64 = first.received.iter().sum();
    assert!(both * 8 / 30 > 1_600_000, "{:?}", first.received);
    assert!(
        first.received[0] > first.received[1],
        "{:?}",
        first.received
    );
}

/// How far the machine runs ahead changes nothing: not an instant of a frame, not a byte of it, nor what the programs wrote.
#[test]
fn lookahead_changes_nothing() {
    let senders = ["fl_reno", "bbr"]; // the second draws random numbers
    let Some(ahead) = experiment(&senders, 10, 1) else {
        return;
    };
    for lookahead in [0, DELAY_NS / 3] {
        let other = try_experiment(&senders, 10, 1, lookahead).unwrap();
        assert!(other.unwrap() == ahead, "{lookahead} ns");
    }
}

/// A lookahead that is longer than the links' delay ends the run: a frame would arrive in a host's past.
#[test]
fn a_lookahead_that_is_too_long_is_refused() {
    let Some(outcome) = try_experiment(&["fl_reno"], 2, 1, DELAY_NS + 1_000_000) else {
        return;
    };
    let error = outcome.err().unwrap();
    assert!(matches!(error, MachineError::Past { .. }), "{error}");
}

/// Every congestion control that is built in sends, ours and the kernel's own.
#[test]
fn every_sender_fills_the_link() {
    let kernel = [
        "reno",
        "cubic",
        "bbr",
        "dctcp",
        "vegas",
        "westwood",
        "bic",
        "cdg",
        "htcp",
        "hybla",
        "illinois",
        "lp",
        "nv",
        "scalable",
        "veno",
        "yeah",
        "highspeed",
    ];
    let record = std::fs::read_to_string(built().join("linux.json")).unwrap_or_default();
    let ours = record.split('"').filter(|word| word.starts_with("fl_"));
    for sender in kernel.into_iter().chain(ours) {
        let Some(outcome) = experiment(&[sender], 20, 1) else {
            return;
        };
        assert!(
            outcome.received[0] * 8 / 20 > 1_000_000,
            "{sender}: {:?}",
            outcome.received
        );
    }
}

/// A machine whose first program is none ends with what its console says; its folder has no process any more.
#[test]
fn a_machine_that_dies_says_why() {
    let kernel = built().join("linux");
    if !kernel.exists() {
        eprintln!("SKIPPED: no kernel is built (make kernel)");
        return;
    }
    let folder = std::env::temp_dir().join(format!("fairlane-uml-{}-dies", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("init"), "no program").unwrap();
    let options = Options {
        kernel,
        folder: folder.clone(),
        macs: vec![],
        memory_mb: 64,
        seed: 1,
        cpu: None,
        boot_limit: Duration::from_secs(20),
        patience: Duration::from_secs(20),
    };
    let mut machine = Machine::start(&options).unwrap();
    let error = machine.boot(START_NS).unwrap_err();
    assert!(
        error.to_string().contains("Requested init /init failed"),
        "{error}"
    );
    assert!(machine.exit().is_some());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Without a kernel the error says what builds one.
#[test]
fn no_kernel_says_make_kernel() {
    let options = Options {
        kernel: "/nowhere/linux".into(),
        folder: std::env::temp_dir(),
        macs: vec![],
        memory_mb: 64,
        seed: 1,
        cpu: None,
        boot_limit: Duration::from_secs(1),
        patience: Duration::from_secs(1),
    };
    let error = Machine::start(&options).err().unwrap();
    assert_eq!(
        error.to_string(),
        "no kernel at /nowhere/linux: `make kernel` builds it"
    );
}
