// SPDX-License-Identifier: Apache-2.0
//! Real hosts (a User-mode Linux) through the P4 program, alone and beside simulated ones. Skipped without `make kernel`.

use crate::common::{dumbbell, routed};
use netsim::{ConfigError, Simulation};
use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const SECOND: u64 = 1_000_000_000;

fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.setup/kernel")
}

/// A folder for a machine, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fairlane-netsim-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The dumbbell at 2 Mbit/s with the named hosts real; None, said, where no kernel is built.
fn with_machine(real: &[usize], seconds: u64, flows: Value) -> Option<(Value, Folder)> {
    let (kernel, guest) = (built().join("linux"), built().join("guest"));
    if !kernel.exists() || !guest.exists() {
        eprintln!("SKIPPED: no kernel is built (make kernel)");
        return None;
    }
    let folder = Folder::new();
    let mut config = dumbbell(2_000_000, 50, 2_000_000, flows);
    for host in real {
        config["hosts"][*host - 1]["linux"] = json!({"sysctls": [
            ["net.ipv4.tcp_sack", "0"], ["net.ipv4.tcp_timestamps", "0"], ["net.ipv4.tcp_max_reordering", "3"],
            ["net.ipv4.tcp_early_retrans", "0"], ["net.ipv4.tcp_frto", "0"], ["net.ipv4.tcp_no_metrics_save", "1"]]});
    }
    config["machine"] = json!({"kernel": kernel, "guest": guest, "folder": folder.0, "end_ns": seconds * SECOND,
        "sample_ns": SECOND, "cpu": 0, "patience_s": 20});
    Some((config, folder))
}

fn real_flow(sender: &str, from: &str, to: &str) -> Value {
    json!({"name": sender, "from": from, "to": to, "app": {"kind": "greedy"}, "linux": {"congestion_control": sender}})
}

/// Runs to the end; the bytes that each real flow received, and all that the machine wrote of its flows.
fn run(config: &Value, folder: &Folder, seconds: u64) -> (Vec<u64>, Vec<u8>, Simulation) {
    let mut sim = routed(config);
    for second in 1..=seconds + 1 {
        sim.run_until(second * SECOND);
    }
    assert_eq!(sim.machine_failure(), None);
    let events = std::fs::read_to_string(folder.0.join("events")).unwrap();
    let received = events
        .lines()
        .filter_map(|line| line.split_once(" received "));
    let received = received.map(|(_, bytes)| bytes.parse().unwrap()).collect();
    let mut wrote = std::fs::read(folder.0.join("samples")).unwrap();
    wrote.extend_from_slice(events.as_bytes());
    (received, wrote, sim)
}

/// Linux's own connections pass the P4 program and share the bottleneck, twice with the same bytes. Their links have no delay.
#[test]
fn real_hosts_share_the_bottleneck_and_twice_alike() {
    let flows = json!([
        real_flow("fl_reno", "h1", "h3"),
        real_flow("fl_vegas", "h2", "h4")
    ]);
    let Some((config, folder)) = with_machine(&[1, 2, 3, 4], 30, flows.clone()) else {
        return;
    };
    let begin = std::time::Instant::now();
    let (received, wrote, sim) = run(&config, &folder, 30);
    eprintln!(
        "received {received:?}, {:.2} s of wall time",
        begin.elapsed().as_secs_f64()
    );
    assert!(
        received.iter().sum::<u64>() * 8 / 30 > 1_600_000,
        "{received:?}"
    );
    let ports = sim.ports();
    let bottleneck = ports
        .iter()
        .find(|p| p.switch == "s1" && p.port == 3)
        .unwrap();
    assert!(bottleneck.tx_packets > 4_000, "{bottleneck:?}");
    let (config, folder) = with_machine(&[1, 2, 3, 4], 30, flows).unwrap();
    let (_, again, sim) = run(&config, &folder, 30);
    assert!(again == wrote);
    assert_eq!(sim.ports(), ports);
}

/// A machine that runs ahead of the network gets and sends every frame at the instant at which it would if it could not: steps of
/// 50 us end its turns. Delays of one link are drawn, those of another change, frames are lost, held and lost again. So do queues of
/// Linux at the bottleneck, whose rate changes.
#[test]
fn the_machine_s_lookahead_changes_nothing() {
    let outcome = |step: u64, qdisc: Value| {
        let flows = json!([
            real_flow("fl_reno", "h1", "h3"),
            real_flow("fl_vegas", "h2", "h4")
        ]);
        let (mut config, folder) = with_machine(&[1, 2, 3, 4], 4, flows)?;
        let access = [
            json!({"delay_ns": 1_000_000}),
            json!({"delay_ns": 2_000_000, "jitter_ns": 500_000, "reorder": true}),
            json!({"delay_ns": 700_000, "loss": 0.005, "rate_bps": 10_000_000}),
            json!({"delay_ns": 900_000, "jitter_ns": 100_000}),
        ];
        for (link, settings) in access.into_iter().enumerate() {
            config["links"][link]["a_to_b"] = settings.clone();
            config["links"][link]["b_to_a"] = settings;
        }
        config["switches"][0]["ports"][2]["qdisc"] = qdisc;
        config["changes"] = json!([
            {"at_ns": 3 * SECOND / 2, "switch": "s1", "port": 3, "rate_bps": 1_800_000},
            {"at_ns": SECOND, "link": "h1-s1", "set": {"delay_ns": 10_000}},
            {"at_ns": 2 * SECOND, "link": "h3-s2", "spike_ns": 40_000_000},
            {"at_ns": 3 * SECOND, "link": "h2-s1", "outage_ns": 20_000_000}]);
        config["sample"] = json!({"period_ns": 100_000_000});
        let mut sim = routed(&config);
        for instant in (0..=5 * SECOND).step_by(step as usize) {
            sim.run_until(instant);
        }
        assert_eq!(sim.machine_failure(), None);
        let mut wrote = std::fs::read(folder.0.join("samples")).unwrap();
        wrote.extend(std::fs::read(folder.0.join("events")).unwrap());
        let series: Vec<_> = sim.series().map(|(_, column)| column.to_vec()).collect();
        let sent: u64 = sim.hosts().iter().map(|host| host.tx_packets).sum();
        assert!(sent > 1000, "{sent}");
        Some((wrote, sim.links(), sim.ports(), sim.hosts(), series))
    };
    for qdisc in [Value::Null, json!({"kind": "fq_codel", "options": []})] {
        let Some(ahead) = outcome(SECOND, qdisc.clone()) else {
            return;
        };
        assert!(outcome(50_000, qdisc) == Some(ahead));
    }
}

/// Linux over IPv6, beside Linux over IPv4 and datagrams: hosts without a flow are silent, and twice the same bytes.
#[test]
fn real_hosts_speak_ipv6_too() {
    let outcome = || {
        let app = json!({"kind": "cbr_udp", "rate_bps": 100_000, "payload_bytes": 500});
        let mut flows = json!([
            real_flow("fl_reno", "h1", "h3"),
            real_flow("fl_vegas", "h1", "h3"),
            {"name": "udp", "from": "h1", "to": "h3", "ipv6": true, "app": app}
        ]);
        flows[0]["ipv6"] = json!(true);
        let (config, folder) = with_machine(&[1, 2, 3, 4], 30, flows)?;
        let (received, wrote, sim) = run(&config, &folder, 30);
        Some((received, wrote, sim.hosts()))
    };
    let Some(first) = outcome() else {
        return;
    };
    let (received, _, hosts) = &first;
    let sum = received.iter().sum::<u64>() * 8 / 30;
    assert!((1_700_000..2_000_000).contains(&sum), "{received:?}");
    assert!(
        received.iter().all(|bytes| *bytes > 100_000),
        "{received:?}"
    );
    assert_eq!([1, 3].map(|host| hosts[host].tx_packets), [0, 0]);
    for host in hosts {
        assert_eq!(host.rx_packets, host.accepted_packets, "{host:?}");
    }
    assert!(outcome().as_ref() == Some(&first));
}

/// A real sender beside a simulated one: both get something of one queue.
#[test]
fn a_real_flow_beside_a_simulated_one() {
    let simulated =
        json!({"name": "simulated", "from": "h2", "to": "h4", "app": {"kind": "greedy"}});
    let flows = json!([real_flow("fl_reno", "h1", "h3"), simulated]);
    let Some((config, folder)) = with_machine(&[1, 3], 30, flows) else {
        return;
    };
    let (received, _, sim) = run(&config, &folder, 30);
    let flows = sim.flows();
    let of_simulated = flows
        .iter()
        .find(|flow| flow.flow == "simulated")
        .unwrap()
        .received_bytes;
    eprintln!("real {received:?}, simulated {of_simulated}");
    let shares = [received[0], of_simulated].map(|bytes| bytes * 8 / 30);
    assert!(shares.iter().all(|share| *share > 300_000), "{shares:?}");
    assert!(shares.iter().sum::<u64>() > 1_600_000, "{shares:?}");
}

fn fault(change: impl FnOnce(&mut Value)) -> Option<ConfigError> {
    let flows = json!([real_flow("fl_reno", "h1", "h3")]);
    let (mut config, _folder) = with_machine(&[1, 3], 1, flows)?;
    change(&mut config);
    Some(Simulation::from_json(&config.to_string()).err().unwrap())
}

/// What is wrong with a machine is said before anything runs.
#[test]
fn faults_of_a_machine_are_named() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, &str); 6] = [
        (
            "no machine",
            |c| c["machine"] = Value::Null,
            "there is no machine",
        ),
        (
            "no kernel",
            |c| c["machine"]["kernel"] = json!("/nowhere/linux"),
            "make kernel",
        ),
        (
            "mixed ends",
            |c| c["hosts"][2]["linux"] = Value::Null,
            "two of a kind",
        ),
        (
            "a sysctl",
            |c| c["hosts"][0]["linux"]["sysctls"] = json!([["net.ipv4.tcp_nonsense", "1"]]),
            "net.ipv4.tcp_nonsense",
        ),
        (
            "a qdisc",
            |c| c["switches"][0]["ports"][2]["qdisc"] = json!({"kind": "htp", "options": []}),
            "port s1-p3: qdisc htp",
        ),
        (
            "a qdisc without a rate",
            |c| c["switches"][0]["ports"][0]["qdisc"] = json!({"kind": "codel", "options": []}),
            "switches[0].ports[0].qdisc: needs a machine (`machine`) and the port's rate_bps",
        ),
    ];
    for (name, change, text) in cases {
        let Some(error) = fault(change) else {
            return;
        };
        assert!(error.to_string().contains(text), "{name}: {error}");
    }
}
