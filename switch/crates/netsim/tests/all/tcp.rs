// SPDX-License-Identifier: Apache-2.0
//! TCP flows through qthresh.p4 on two switches: they fill the link, share it, finish their transfers, and close.

use crate::common::*;
use netsim::{FlowReport, Simulation, Transfer};
use serde_json::{json, Value};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// The tables' TCP: 1000-byte IP packets, no delayed ACK unless asked for, initial window 2.
fn tcp(cc: &str) -> Value {
    json!({"cc": cc, "recovery": "newreno", "mss_bytes": 960, "delayed_ack": false, "initial_window_packets": 2})
}

fn flow(name: &str, from: &str, to: &str, app: Value, tcp: Value) -> Value {
    json!({"name": name, "from": from, "to": to, "app": app, "tcp": tcp})
}

fn greedy(name: &str, from: &str, to: &str, cc: &str) -> Value {
    flow(name, from, to, json!({"kind": "greedy"}), tcp(cc))
}

/// Goodput in bit/s between two instants.
fn goodput(before: &FlowReport, after: &FlowReport, ns: u64) -> f64 {
    (after.acked_bytes - before.acked_bytes) as f64 * 8e9 / ns as f64
}

/// Share of the time in which s1's port 3 was busy, between the present and `until`.
fn utilisation(sim: &mut Simulation, until: u64) -> f64 {
    let tx = |sim: &Simulation| {
        let ports = sim.ports();
        let port = ports.iter().find(|p| p.switch == "s1" && p.port == 3);
        port.map(|p| (p.tx_bytes, p.rate_bps)).unwrap()
    };
    let (start, (before, rate_bps)) = (sim.now(), tx(sim));
    sim.run_until(until);
    (tx(sim).0 - before) as f64 * 8e9 / (until - start) as f64 / rate_bps as f64
}

#[test]
fn one_greedy_flow_fills_the_link() {
    let flows = json!([greedy("reno", "h1", "h3", "reno")]);
    let mut sim = routed(&dumbbell(2_000_000, 50, 2 * MS, flows));
    // Slow start overshoots; NewReno repairs one hole a round trip, for 10 s.
    sim.run_until(20 * S);
    let before = sim.flows();
    let utilisation = utilisation(&mut sim, 50 * S);
    let goodput = goodput(&before[0], &sim.flows()[0], 30 * S);
    // 960 of 1014 bytes of a frame are the application's.
    let most = 2e6 * 960.0 / 1014.0;
    assert!(
        goodput <= most * 1.001 && goodput >= 0.95 * 2e6 * 960.0 / 1014.0,
        "{goodput}"
    );
    assert!((0.98..=1.0001).contains(&utilisation), "{utilisation}");
    let reno = &sim.flows()[0];
    assert!(
        reno.fast_retransmits > 0 && reno.cwnd_packets > 1 && reno.srtt_ns > 4 * MS,
        "{reno:?}"
    );
    assert!(reno.received_bytes >= reno.acked_bytes);
    assert_conserved(&sim);
}

/// Reno's and Vegas's goodput over 60 s, and the utilisation.
fn reno_and_vegas(qthresh: Option<u64>, start_ns: u64) -> (f64, f64, f64) {
    let mut flows = json!([
        greedy("reno", "h1", "h3", "reno"),
        greedy("vegas", "h2", "h4", "vegas")
    ]);
    flows[1]["start_ns"] = json!(start_ns);
    let mut sim = routed(&dumbbell(2_000_000, 50, 4 * MS, flows));
    if let Some(qthresh) = qthresh {
        set_qthresh(sim.switch_mut("s1").unwrap(), 3, 50, qthresh);
    }
    sim.run_until(10 * S);
    let before = sim.flows();
    let utilisation = utilisation(&mut sim, 70 * S);
    let after = sim.flows();
    let of = |i: usize| goodput(&before[i], &after[i], 60 * S);
    assert_conserved(&sim);
    (of(0), of(1), utilisation)
}

/// Table 1 of the Qthresh paper: behind a drop-tail queue of 50 packets Vegas starves.
#[test]
fn drop_tail_starves_vegas() {
    for start_ns in [0, 700 * MS] {
        let (reno, vegas, utilisation) = reno_and_vegas(None, start_ns);
        assert!(utilisation > 0.97, "{utilisation}");
        assert!((0.03..0.20).contains(&(vegas / reno)), "{reno} {vegas}");
    }
}

/// Table 2: a threshold gives each flow its share without leaving the link idle.
#[test]
fn qthresh_shares_the_link() {
    for start_ns in [0, 700 * MS] {
        let (reno, vegas, utilisation) = reno_and_vegas(Some(6), start_ns);
        assert!(utilisation > 0.97, "{utilisation}");
        assert!(reno.min(vegas) / reno.max(vegas) > 0.5, "{reno} {vegas}");
    }
}

/// SYN, SYN-ACK, then data and its ACK: each way 2 ms of propagation; 54 or 58 bytes at 2 Mbit/s one way.
#[test]
fn a_byte_takes_two_round_trips() {
    let app = json!({"kind": "bytes", "bytes": 1});
    let mut flows = json!([flow("one", "h1", "h3", app, tcp("reno"))]);
    flows[0]["start_ns"] = json!(S);
    let mut sim = routed(&dumbbell(2_000_000, 50, 2 * MS, flows));
    sim.run_until(10 * S);
    let [transfer] = sim.transfers() else {
        panic!("{:?}", sim.transfers())
    };
    let (start_ns, bytes, retransmits) = (S, 1, 0);
    let flow = "one".to_owned();
    let (end_ns, first_sent_ns) = (transfer.end_ns, transfer.first_sent_ns);
    assert_eq!(
        *transfer,
        Transfer {
            flow,
            start_ns,
            end_ns,
            bytes,
            retransmits,
            first_sent_ns,
            segments: 1, // FIN is on it
        }
    );
    let took = end_ns - S;
    assert!((8 * MS..9 * MS).contains(&took), "{took}");
    let handshake = first_sent_ns - S;
    assert!((4 * MS..5 * MS).contains(&handshake), "{handshake}");
}

/// With TCP_NODELAY the FIN follows by itself, unless data still waits for the window: then it rides on the last.
#[test]
fn with_nodelay_the_fin_is_a_segment_more_where_all_data_may_go() {
    let segments = |bytes: u64, nodelay: bool| {
        let app = json!({"kind": "bytes", "bytes": bytes, "nodelay": nodelay});
        let flows = json!([flow("file", "h1", "h3", app, tcp("reno"))]);
        let mut sim = routed(&dumbbell(2_000_000, 50, 2 * MS, flows));
        sim.run_until(10 * S);
        assert_eq!(sim.transfers().len(), 1);
        sim.transfers()[0].segments
    };
    // The first window is two segments of 960 bytes.
    assert_eq!((segments(1_900, false), segments(1_900, true)), (2, 3));
    assert_eq!((segments(2_800, false), segments(2_800, true)), (3, 3));
}

/// A receiver that reads late shuts its window: a file of a byte more than the window waits for it, one of a byte less does not.
#[test]
fn a_slow_reader_holds_what_is_beyond_its_window() {
    let took = |bytes: u64, read_interval_ns: u64| {
        let app = json!({"kind": "bytes", "bytes": bytes});
        let mut options = tcp("reno");
        options["receive_window_bytes"] = json!(9_600);
        options["initial_window_packets"] = json!(10);
        let mut flows = json!([flow("file", "h1", "h3", app, options)]);
        flows[0]["read_interval_ns"] = json!(read_interval_ns);
        let mut sim = routed(&dumbbell(2_000_000, 50, 2 * MS, flows));
        sim.run_until(10 * S);
        let [file] = sim.transfers() else {
            panic!("{:?}", sim.transfers())
        };
        assert_eq!(sim.flows()[0].received_bytes, bytes);
        file.end_ns - file.first_sent_ns
    };
    assert!(took(9_600, 500 * MS) < 60 * MS);
    assert!((500 * MS..600 * MS).contains(&took(9_601, 500 * MS)));
    assert!(took(9_601, 0) < 80 * MS);
}

/// Each on a connection of its own, asked for at their interval; what is under way is told of too.
#[test]
fn files_come_at_their_interval_and_the_last_is_cut() {
    let app = json!({"kind": "bytes", "bytes": 100_000, "times": 3, "interval_ns": S});
    let flows = json!([flow("file", "h1", "h3", app, tcp("reno"))]);
    let mut sim = routed(&dumbbell(2_000_000, 50, 2 * MS, flows));
    sim.run_until(2 * S + 100 * MS);
    let starts: Vec<_> = sim.transfers().iter().map(|t| t.start_ns).collect();
    assert_eq!(starts, [0, S]);
    let [cut] = &sim.unfinished_transfers()[..] else {
        panic!("{:?}", sim.unfinished_transfers())
    };
    assert_eq!((cut.start_ns, cut.end_ns), (2 * S, 2 * S + 100 * MS));
    assert!((10_000..30_000).contains(&cut.bytes), "{cut:?}");
    assert_eq!(sim.flows()[0].connections, 3);
    sim.run_until(10 * S);
    assert_eq!(
        (sim.transfers().len(), sim.unfinished_transfers().len()),
        (3, 0)
    );
}

/// What was acknowledged is of transfers that are over and of those under way, whatever the application.
#[test]
fn the_run_s_end_cuts_transfers_of_each_application() {
    let web = json!({"kind": "web", "arrivals_per_s": 1.5, "mean_bytes": 200_000, "distribution": "fixed"});
    let interactive = json!({"kind": "interactive", "bytes": 100_000, "interval_ns": 300 * MS});
    let video = json!({
        "kind": "video", "bitrates_bps": [1_000_000, 1_500_000], "segment_ns": 4 * S,
        "buffer_ns": 20 * S, "reservoir_ns": 4 * S, "cushion_ns": 8 * S,
    });
    for (app, at_least) in [(web, 1), (interactive, 2), (video, 1)] {
        let flows = json!([flow("one", "h1", "h3", app, tcp("reno"))]);
        let mut sim = routed(&dumbbell(2_000_000, 50, 2 * MS, flows));
        sim.run_until(10 * S + 100 * MS);
        let (over, cut) = (sim.transfers(), sim.unfinished_transfers());
        assert!(
            !over.is_empty() && cut.len() >= at_least,
            "{over:?} {cut:?}"
        );
        assert!(cut.iter().all(|each| each.end_ns == 10 * S + 100 * MS));
        let bytes = |of: &[Transfer]| of.iter().map(|each| each.bytes).sum::<u64>();
        assert_eq!(bytes(over) + bytes(&cut), sim.flows()[0].acked_bytes);
    }
}

/// A file over a link that loses and flips bits arrives whole, and both ends close.
#[test]
fn a_file_survives_losses_and_bit_errors() {
    let app = json!({"kind": "bytes", "bytes": 500_000});
    let mut config = dumbbell(
        2_000_000,
        50,
        5 * MS,
        json!([flow("file", "h1", "h3", app, tcp("reno"))]),
    );
    let settings = json!({"delay_ns": 5 * MS, "loss": 0.02, "ber": 1e-6});
    config["links"][4]["a_to_b"] = settings.clone();
    config["links"][4]["b_to_a"] = settings;
    let mut sim = routed(&config);
    sim.run_until(120 * S);
    let file = &sim.flows()[0];
    assert_eq!(
        (file.completed, file.received_bytes, file.acked_bytes),
        (1, 500_000, 500_000),
        "{file:?}"
    );
    assert!(file.retransmits > 5, "{file:?}");
    assert_eq!(sim.transfers()[0].bytes, 500_000);
    let h3 = &sim.hosts()[2];
    assert!(h3.bad_transport_checksum > 0, "{h3:?}");
    assert_conserved(&sim);
    // Nothing is left that would send again.
    let sent = |sim: &Simulation| sim.hosts().iter().map(|h| h.tx_packets).sum::<u64>();
    let before = sent(&sim);
    sim.run_until(600 * S);
    assert_eq!(sent(&sim), before);
}

fn web() -> Value {
    json!({"kind": "web", "arrivals_per_s": 10, "mean_bytes": 8000, "distribution": "pareto", "shape": 1.5, "max_bytes": 200_000})
}

#[test]
fn web_transfers_come_and_go_beside_a_greedy_flow() {
    let mut flows = json!([
        greedy("reno", "h1", "h3", "reno"),
        flow("web", "h2", "h4", web(), tcp("reno"))
    ]);
    flows[1]["stop_ns"] = json!(60 * S);
    let mut sim = routed(&dumbbell(2_000_000, 50, 5 * MS, flows));
    set_qthresh(sim.switch_mut("s1").unwrap(), 3, 50, 10);
    sim.run_until(100 * S);
    let web = &sim.flows()[1];
    assert!((500..700).contains(&web.connections), "{web:?}");
    assert_eq!((web.completed, web.not_opened), (web.connections, 0));
    let bytes: u64 = sim.transfers().iter().map(|t| t.bytes).sum();
    assert_eq!((web.received_bytes, web.acked_bytes), (bytes, bytes));
    for transfer in sim.transfers() {
        assert!(
            transfer.end_ns - transfer.start_ns > 20 * MS,
            "{transfer:?}"
        ); // two round trips
    }
    assert_conserved(&sim);
}

#[test]
fn messages_are_acknowledged_one_by_one() {
    let app = json!({"kind": "interactive", "bytes": 64, "interval_ns": 200 * MS});
    let mut sim = routed(&dumbbell(
        2_000_000,
        50,
        10 * MS,
        json!([flow("telnet", "h1", "h3", app, tcp("reno"))]),
    ));
    sim.run_until(10 * S - 1);
    assert_eq!(sim.transfers().len(), 50);
    for (i, transfer) in sim.transfers().iter().enumerate() {
        assert_eq!(transfer.start_ns, i as u64 * 200 * MS);
        let took = transfer.end_ns - transfer.start_ns;
        let least = if i == 0 { 40 * MS } else { 20 * MS };
        assert!((least..least + 3 * MS).contains(&took), "{transfer:?}");
    }
    assert_eq!(sim.flows()[0].connections, 1);
}

/// Alone on 2 Mbit/s it climbs from 300 kbit/s to the highest rate that is below the line's, and to no other from then on.
#[test]
fn a_video_plays_at_the_rates_of_its_buffer() {
    let app = json!({"kind": "video", "bitrates_bps": [300_000, 600_000, 1_200_000], "segment_ns": 4 * S,
                     "buffer_ns": 20 * S, "reservoir_ns": 6 * S, "cushion_ns": 8 * S});
    let mut flows = json!([flow("video", "h1", "h3", app, tcp("reno"))]);
    flows[0]["stop_ns"] = json!(90 * S);
    let mut sim = routed(&dumbbell(2_000_000, 50, 10 * MS, flows));
    sim.run_until(200 * S);
    let rates: Vec<u64> = sim.transfers().iter().map(|t| t.bytes * 2).collect();
    assert_eq!(rates[..4], [300_000, 300_000, 300_000, 600_000]);
    let steady = rates.iter().position(|rate| *rate == 1_200_000).unwrap();
    assert!(
        rates[steady..].iter().all(|rate| *rate == 1_200_000),
        "{rates:?}"
    );
    // The next segment is asked for when the last one is there, or, with 16 s in the buffer, one each 4 s.
    let asked: Vec<u64> = sim.transfers().iter().map(|t| t.start_ns).collect();
    let came: Vec<u64> = sim.transfers().iter().map(|t| t.end_ns).collect();
    assert_eq!(asked[1..3], came[..2]);
    let gaps: Vec<u64> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[gaps.len() - 10..], [4 * S; 10]);
    assert!(
        asked.iter().all(|at| *at < 90 * S) && asked.len() < 28,
        "{asked:?}"
    );
    assert_eq!(sim.flows()[0].connections, 1);
}

#[test]
fn a_stopped_flow_sends_no_more() {
    let mut flows = json!([greedy("reno", "h1", "h3", "reno")]);
    flows[0]["stop_ns"] = json!(5 * S);
    let mut sim = routed(&dumbbell(2_000_000, 50, 2 * MS, flows));
    sim.run_until(10 * S);
    let at_10_s = sim.flows()[0].clone();
    assert_eq!(at_10_s.acked_bytes, at_10_s.received_bytes);
    assert!(at_10_s.acked_bytes > 1_000_000);
    sim.run_until(60 * S);
    assert_eq!(sim.flows()[0].sent_segments, at_10_s.sent_segments);
}

/// On for 1 s, off for 1 s: half of the link, and nothing is asked for while off.
#[test]
fn on_and_off_take_turns() {
    let app = json!({"kind": "on_off", "on_mean_ns": S, "off_mean_ns": S, "distribution": "fixed"});
    let mut sim = routed(&dumbbell(
        2_000_000,
        10,
        2 * MS,
        json!([flow("bursts", "h1", "h3", app, tcp("reno"))]),
    ));
    let mut at = Vec::new();
    for half in 1..=20 {
        sim.run_until(half * S / 2);
        at.push(sim.flows()[0].acked_bytes);
    }
    let gained: Vec<u64> = at.windows(2).map(|w| w[1] - w[0]).collect();
    // Half seconds 1 (0.5 to 1.0), then off, off, on, on …: the second half of each second off is silent.
    for (i, bytes) in gained.iter().enumerate().skip(3) {
        match (i + 1) % 4 {
            3 => assert_eq!(*bytes, 0, "{gained:?}"),
            0 | 1 => assert!(*bytes > 80_000, "{gained:?}"),
            _ => {}
        }
    }
}

/// Bytes of the series and of all reports.
fn everything(config: &Value) -> String {
    let mut sim = routed(config);
    set_qthresh(sim.switch_mut("s1").unwrap(), 3, 50, 6);
    sim.run_until(20 * S);
    let series: Vec<_> = sim.series().collect();
    serde_json::to_string(&(
        sim.flows(),
        sim.ports(),
        sim.links(),
        sim.hosts(),
        sim.transfers(),
        series,
    ))
    .unwrap()
}

fn mixed() -> Value {
    let flows = json!([
        greedy("reno", "h1", "h3", "reno"),
        greedy("vegas", "h2", "h4", "vegas"),
        flow("web", "h2", "h3", web(), tcp("reno"))
    ]);
    let mut config = dumbbell(2_000_000, 50, 5 * MS, flows);
    config["sample"] =
        json!({"period_ns": 50 * MS, "ports": [{"switch": "s1", "port": 3}], "registers": []});
    config
}

#[test]
fn a_seed_gives_the_same_bytes() {
    let mut config = mixed();
    let first = everything(&config);
    assert_eq!(first, everything(&config));
    assert!(first.contains("flow/vegas/cwnd"));
    config["seed"] = json!(2);
    assert_ne!(first, everything(&config));
}

/// When and how much the web source asks for is its own affair.
#[test]
fn another_flow_does_not_change_a_flows_chance() {
    let asked = |config: &Value| {
        let mut sim = routed(config);
        sim.run_until(60 * S);
        let transfers = sim
            .transfers()
            .iter()
            .filter(|t| t.flow == "web" && t.start_ns < 20 * S);
        let mut asked: Vec<_> = transfers.map(|t| (t.start_ns, t.bytes)).collect();
        asked.sort_unstable();
        asked
    };
    let config = mixed();
    let mut other = config.clone();
    let extra = flow("more", "h1", "h4", web(), tcp("vegas"));
    other["flows"].as_array_mut().unwrap().insert(0, extra);
    let alone = asked(&config);
    assert!(alone.len() > 150);
    assert_eq!(alone, asked(&other));
}
