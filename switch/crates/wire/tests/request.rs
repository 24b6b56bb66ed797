// SPDX-License-Identifier: Apache-2.0
//! The control socket's language: each operation, and for each mistake a clear word and no change.

mod outbox;
#[path = "../../capture/tests/reading/mod.rs"]
mod reading;

use fabric::Sink;
use netio::own_socket::reply;
use netio::socket::RxCounters;
use outbox::{offer, take};
use reading::{read, temporary};
use serde_json::{json, Value};
use wire::config::parse;
use wire::network::Network;
use wire::request::{self, PortReport, OPERATIONS};

const MS: u64 = 1_000_000;

fn report(port: usize) -> PortReport {
    PortReport {
        interface: format!("w{port}"),
        present: true,
        losses: RxCounters {
            ring_full: 3,
            ..RxCounters::default()
        },
        ..PortReport::default()
    }
}

fn network() -> Network {
    let links = parse(
        r#"{"links": [{"name": "s1-s2", "a": {"interface": "w0"}, "b": {"interface": "w1"}, "a_to_b": {"delay_us": 5000}},
                      {"name": "s2-h1", "a": {"interface": "w2"}, "b": {"interface": "w3"}}]}"#,
    )
    .unwrap();
    let mut network = Network::new(0, 1, 8);
    for (i, link) in (0..).zip(&links.links) {
        let ends = [2 * i, 2 * i + 1].map(Sink::Interface);
        let options = [&link.a_to_b, &link.b_to_a];
        network.add_link(&link.name, ends, options).unwrap();
    }
    network
}

fn answer(network: &mut Network, now: u64, line: &str) -> Value {
    reply(
        request::read(line, &OPERATIONS)
            .and_then(|(op, request)| request::handle(op, request, now, network, &mut report)),
    )
}

fn ask(network: &mut Network, now: u64, request: Value) -> Value {
    answer(network, now, &request.to_string())
}

fn error(network: &mut Network, request: Value) -> String {
    let answer = ask(network, 0, request);
    assert_eq!(answer["ok"], json!(false));
    answer["error"].as_str().unwrap().to_owned()
}

#[test]
fn set_changes_the_named_direction_only() {
    let mut network = network();
    let answer = ask(
        &mut network,
        0,
        json!({"op": "set", "link": "s1-s2", "direction": "a_to_b", "delay_us": 100000}),
    );
    assert_eq!(answer["ok"], json!(true));
    assert_eq!(answer["a_to_b"]["delay_us"], json!(100000));
    assert_eq!(network.direction(0).0.link.options().delay_ns, 100 * MS);
    assert_eq!(network.direction(1).0.link.options().delay_ns, 0);
    assert_eq!(network.direction(2).0.link.options().delay_ns, 0);
}

#[test]
fn set_means_both_directions_when_none_is_named() {
    let mut network = network();
    let answer = ask(
        &mut network,
        0,
        json!({"op": "set", "link": "s1-s2", "loss": 0.5}),
    );
    assert_eq!(answer["ok"], json!(true));
    for direction in 0..2 {
        assert_eq!(network.direction(direction).0.link.options().loss, 0.5);
    }
    assert_eq!(
        network.direction(0).0.link.options().delay_ns,
        5 * MS,
        "what is not named stays"
    );
}

#[test]
fn a_set_that_fits_one_direction_only_changes_neither() {
    let mut network = network();
    // a_to_b has a delay of 5000 µs, b_to_a of 0: the jitter fits the first only.
    let text = error(
        &mut network,
        json!({"op": "set", "link": "s1-s2", "direction": "both", "jitter_us": 100}),
    );
    assert_eq!(
        text,
        "jitter_us: 100 exceeds delay_us (0); allowed: 0 to 0 µs"
    );
    assert_eq!(network.direction(0).0.link.options().jitter_ns, 0);
}

#[test]
fn mistakes_are_told_with_what_is_allowed() {
    let mut network = network();
    let mut told = |request: Value| error(&mut network, request);
    assert_eq!(
        told(json!({"op": "jump"})),
        "op: \"jump\" is not known; allowed: set, spike, outage, get, stats, capture, capture_state, stop_switch, start_switch, switches"
    );
    assert_eq!(
        told(json!({"link": "s1-s2"})),
        "the key \"op\" is missing; allowed: set, spike, outage, get, stats, capture, capture_state, stop_switch, start_switch, switches"
    );
    assert_eq!(
        told(json!({"op": "set", "link": "s9"})),
        "link: \"s9\" is not known; allowed: s1-s2, s2-h1"
    );
    assert_eq!(
        told(json!({"op": "set", "loss": 0})),
        "the key \"link\" is missing"
    );
    assert_eq!(
        told(json!({"op": "set", "link": "s1-s2", "direction": "up", "loss": 0})),
        "direction: \"up\" is not known; allowed: a_to_b, b_to_a, both"
    );
    assert_eq!(
        told(json!({"op": "set", "link": "s1-s2"})),
        "nothing to set; allowed: delay_us, jitter_us, jitter_distribution, reorder, rate_bps, loss, ber, errors_in, \
         spare_retransmissions, queue_packets, \
         ge_enter, ge_leave, ge_loss, ge_ber, ge_good_us, ge_bad_us, duplicate, dama_frame_us, dama_delay_us, dama_cra_bps"
    );
    assert_eq!(
        told(json!({"op": "set", "link": "s1-s2", "loss": 0.5, "ber": 2})),
        "ber: 2 is out of range; allowed: 0 to 1"
    );
    assert_eq!(
        told(json!({"op": "spike", "link": "s1-s2"})),
        "the key \"duration_us\" is missing"
    );
    assert_eq!(
        told(json!({"op": "outage", "link": "s1-s2", "duration_us": 0})),
        "duration_us: 0 is out of range; allowed: 1 to 600000000 µs"
    );
    assert_eq!(
        told(json!({"op": "spike", "link": "s1-s2", "duration_us": 1, "delay_us": 5})),
        "delay_us: unknown key; allowed: op, link, direction, duration_us, blocks"
    );
    assert_eq!(
        told(json!({"op": "spike", "link": "s1-s2", "duration_us": 1, "blocks": "queue"})),
        "blocks: \"queue\" is not known; allowed: delivery, line"
    );
    assert_eq!(
        told(json!({"op": "outage", "link": "s1-s2", "duration_us": 1, "blocks": "line"})),
        "blocks: unknown key; allowed: op, link, direction, duration_us"
    );
    assert_eq!(
        told(json!({"op": "get", "direction": "a_to_b"})),
        "direction: unknown key; allowed: op, link"
    );
    assert_eq!(
        told(json!([1])),
        "a request is a JSON object with the key \"op\""
    );
    assert_eq!(
        network.direction(0).0.link.options().loss,
        0.0,
        "nothing was half-applied"
    );
}

#[test]
fn text_that_is_no_json_is_told_with_its_place() {
    let answer = answer(&mut network(), 0, "{\"op\"");
    assert_eq!(
        answer["error"],
        json!("not valid JSON: EOF while parsing an object at line 1 column 5")
    );
}

#[test]
fn a_spike_holds_and_an_outage_drops() {
    let mut network = network();
    let spike =
        json!({"op": "spike", "link": "s2-h1", "direction": "a_to_b", "duration_us": 20000});
    let outage =
        json!({"op": "outage", "link": "s2-h1", "direction": "b_to_a", "duration_us": 10000});
    assert_eq!(ask(&mut network, MS, spike), json!({"ok": true}));
    assert_eq!(ask(&mut network, MS, outage), json!({"ok": true}));
    offer(&mut network, 2, 2 * MS, &[0; 60]);
    offer(&mut network, 3, 2 * MS, &[0; 60]);
    assert_eq!(network.direction(3).0.link.stats().dropped_outage, 1);
    assert!(take(&mut network, 20 * MS).is_empty());
    let state = ask(&mut network, 2 * MS, json!({"op": "get", "link": "s2-h1"}));
    assert_eq!(
        state["links"][0]["a_to_b_state"]["spike_left_us"],
        json!(19000)
    );
    assert_eq!(
        state["links"][0]["b_to_a_state"]["outage_left_us"],
        json!(9000)
    );
    assert_eq!(take(&mut network, 21 * MS).len(), 1);
}

#[test]
fn a_spike_can_block_the_line_instead() {
    let mut network = network();
    let mut spike =
        json!({"op": "spike", "link": "s2-h1", "direction": "a_to_b", "duration_us": 20000});
    spike["blocks"] = json!("line");
    assert_eq!(ask(&mut network, MS, spike), json!({"ok": true}));
    offer(&mut network, 2, 2 * MS, &[0; 60]);
    let link = &network.direction(2).0;
    assert_eq!((link.link.queued(), link.link.in_flight()), (1, 0));
    assert!(take(&mut network, 20 * MS).is_empty());
    assert_eq!(take(&mut network, 30 * MS).len(), 1);
}

#[test]
fn get_gives_links_in_the_form_of_the_file() {
    let answer = ask(&mut network(), 0, json!({"op": "get"}));
    assert_eq!(answer["links"].as_array().unwrap().len(), 2);
    let first = &answer["links"][0];
    assert_eq!(first["name"], json!("s1-s2"));
    assert_eq!(first["a"], json!({"interface": "w0"}));
    assert_eq!(
        first["a_to_b"],
        json!({"delay_us": 5000, "jitter_us": 0, "jitter_distribution": "uniform", "reorder": false,
               "rate_bps": 0, "loss": 0.0, "ber": 0.0, "errors_in": "frame", "spare_retransmissions": false,
               "queue_packets": 1000, "ge_enter": 0.0, "ge_leave": 1.0, "ge_loss": 1.0, "ge_ber": 0.0, "ge_good_us": 0,
               "ge_bad_us": 0, "duplicate": 0.0, "dama_frame_us": 0, "dama_delay_us": 0, "dama_cra_bps": 0})
    );
}

#[test]
fn bursts_begin_and_end_by_command_in_one_direction() {
    let mut network = network();
    let set = json!({"op": "set", "link": "s1-s2", "direction": "a_to_b", "ge_enter": 1, "ge_leave": 1e-6});
    assert_eq!(ask(&mut network, 0, set)["ok"], json!(true));
    for _ in 0..2 {
        offer(&mut network, 0, 0, &[0; 60]);
        offer(&mut network, 1, 0, &[0; 60]);
    }
    let link = &ask(&mut network, 1, json!({"op": "stats", "link": "s1-s2"}))["links"][0];
    assert_eq!(link["a_to_b"]["bad_state_packets"], json!(2));
    assert_eq!(link["a_to_b"]["dropped_loss"], json!(2));
    assert_eq!(link["b_to_a"]["bad_state_packets"], json!(0));
    assert_eq!(link["b_to_a"]["offered_packets"], json!(2));
    let off = json!({"op": "set", "link": "s1-s2", "ge_enter": 0});
    assert_eq!(ask(&mut network, 2, off)["a_to_b"]["ge_enter"], json!(0.0));
    offer(&mut network, 0, 3, &[0; 60]);
    let link = &ask(&mut network, 4, json!({"op": "stats", "link": "s1-s2"}))["links"][0];
    assert_eq!(link["a_to_b"]["dropped_loss"], json!(2));
}

#[test]
fn stats_count_both_directions_and_the_interfaces() {
    let mut network = network();
    offer(&mut network, 0, 0, &[0; 60]);
    let answer = ask(&mut network, 1, json!({"op": "stats", "link": "s1-s2"}));
    let link = &answer["links"][0];
    assert_eq!(link["a_to_b"]["offered_packets"], json!(1));
    assert_eq!(link["a_to_b"]["in_flight_packets"], json!(1));
    assert_eq!(link["b_to_a"]["offered_packets"], json!(0));
    assert_eq!(link["a"]["dropped_ring_full"], json!(3));
    assert_eq!(answer["frames"], json!({"capacity": 8, "in_use": 1}));
}

/// Until a capture is over.
fn ended(network: &mut Network, file: &Value) -> Value {
    for _ in 0..2_000 {
        let state = ask(network, 0, json!({"op": "capture_state", "file": file}));
        if state["done"] != json!(false) {
            return state;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("the capture does not end");
}

#[test]
fn a_capture_has_what_its_end_sees() {
    let mut network = network();
    let path = temporary("request");
    let file = json!(path);
    let begin = json!({"op": "capture", "link": "s1-s2", "file": file, "packets": 3});
    assert_eq!(ask(&mut network, 7, begin.clone())["ok"], json!(true));
    assert!(error(&mut network, begin).ends_with("is the file of another capture already"));
    offer(&mut network, 0, 1_000, &[1; 60]);
    take(&mut network, 5 * MS + 1_000); // no longer than until then does it take to b
    offer(&mut network, 2, 5 * MS + 2_000, &[2; 60]); // another link
    offer(&mut network, 1, 5 * MS + 3_000, &[3; 200]); // from b, without a delay
    take(&mut network, 6 * MS);
    offer(&mut network, 0, 6 * MS, &[4; 60]);
    offer(&mut network, 0, 6 * MS, &[5; 60]);
    let state = ended(&mut network, &file);
    assert_eq!(
        state,
        json!({"ok": true, "packets": 3, "lost": 0, "done": true, "error": null})
    );
    let seen = read(&path);
    std::fs::remove_file(&path).unwrap();
    let first = seen[0].at_ns;
    let found = seen.iter().map(|one| {
        (
            &*one.interface,
            one.at_ns - first,
            one.len_bytes,
            one.bytes[0],
        )
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            ("s1-s2 a_to_b", 0, 60, 1),
            ("s1-s2 b_to_a", 5 * MS + 2_000, 200, 3),
            ("s1-s2 a_to_b", 6 * MS - 1_000, 60, 4)
        ]
    );
    assert_eq!(seen[1].bytes.len(), 128);
    // By the wall clock: some time in this decade.
    assert!(first / 1_000_000_000 > 1_700_000_000);
    let gone = error(&mut network, json!({"op": "capture_state", "file": file}));
    assert!(gone.starts_with("there is no capture into "), "{gone}");
}

#[test]
fn a_capture_is_stopped_and_its_mistakes_are_told() {
    let mut network = network();
    let mut told = |more: Value| {
        let mut request = json!({"op": "capture", "link": "s1-s2", "file": "/nowhere/x.pcapng"});
        let fields = request.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        error(&mut network, request)
    };
    assert_eq!(
        told(json!({"link": "s9"})),
        "link: \"s9\" is not known; allowed: s1-s2, s2-h1"
    );
    assert_eq!(
        told(json!({"at": "c"})),
        "at: \"c\" is not known; allowed: a, b"
    );
    assert_eq!(
        told(json!({"file": "x.pcapng"})),
        "file: \"x.pcapng\" is not a file; allowed: a whole path"
    );
    assert_eq!(
        told(json!({"packets": 0})),
        "packets: 0 is out of range; allowed: 1 to 1000000000000 packets"
    );
    assert_eq!(
        told(json!({"snap_bytes": 13})),
        "snap_bytes: 13 is out of range; allowed: 14 to 65535 bytes"
    );
    assert_eq!(
        told(json!({"seconds": 1})),
        "seconds: unknown key; allowed: op, link, direction, at, file, packets, duration_us, snap_bytes"
    );
    let begin = json!({"op": "capture", "link": "s1-s2", "file": "/nowhere/x.pcapng"});
    assert_eq!(ask(&mut network, 0, begin)["ok"], json!(true));
    let state = ended(&mut network, &json!("/nowhere/x.pcapng"));
    assert_eq!(
        state["error"],
        json!("/nowhere/x.pcapng: No such file or directory (os error 2)")
    );
    let path = temporary("stopped");
    let begin = json!({"op": "capture", "link": "s1-s2", "file": path});
    assert_eq!(ask(&mut network, 0, begin)["ok"], json!(true));
    let stop = json!({"op": "capture_state", "file": path, "stop": true});
    assert_eq!(ask(&mut network, 0, stop)["ok"], json!(true));
    assert_eq!(ended(&mut network, &json!(path))["error"], Value::Null);
    offer(&mut network, 0, 1, &[1; 60]); // nobody sees it
    assert_eq!(read(&path), []);
    std::fs::remove_file(&path).unwrap();
}
