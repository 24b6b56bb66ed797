// SPDX-License-Identifier: Apache-2.0
//! Sets on a device in memory: whole or not at all, in the order of the specification, refused with their path.

use super::*;
use crate::links::LinkStatus;
use crate::path::parse;
use crate::tests::{bench, Bench, Gate, Told, WAIT};
use device::PortConfig;
use p4rt::proto::gnmi::Update;
use std::sync::atomic::Ordering;
use std::sync::{mpsc, Mutex as StdMutex};
use std::time::Duration;

fn run(bench: &Bench, request: SetRequest) -> Result<SetResponse, Status> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    runtime.block_on(set(&Arc::default(), &bench.viewer, request))
}

fn ports(bench: &Bench) -> Vec<(PortConfig, LinkStatus)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let view = runtime
        .block_on(bench.viewer.view(Wants::default()))
        .unwrap();
    view.ports.iter().map(|p| (p.config, p.link)).collect()
}

fn put(path: &str, json: &str) -> Update {
    Update {
        path: Some(parse(path)),
        val: Some(TypedValue {
            value: Some(Wire::JsonIetfVal(json.as_bytes().to_vec())),
        }),
        ..Update::default()
    }
}

const CIR: &str =
    "/qos/scheduler-policies/scheduler-policy[name=a]/schedulers/scheduler[sequence=1]\
                   /one-rate-two-color/config/cir";

#[test]
fn what_the_system_refuses_takes_all_back() {
    let bench = bench(Told {
        refused: vec!["b".to_owned()],
        ..Told::default()
    });
    let before = ports(&bench);
    let error = run(
        &bench,
        SetRequest {
            update: vec![
                put(CIR, "\"1000000\""),
                put("/interfaces/interface[name=a]/config/enabled", "false"),
                put("/interfaces/interface[name=b]/config/enabled", "false"),
            ],
            ..SetRequest::default()
        },
    )
    .unwrap_err();
    assert_eq!(error.code(), tonic::Code::PermissionDenied);
    assert!(
        error
            .message()
            .starts_with("/interfaces/interface[name=b]/config/enabled: "),
        "{error}"
    );
    assert_eq!(ports(&bench), before);
}

#[test]
fn a_client_that_goes_away_leaves_nothing_half_applied() {
    let ((began, begun), (go_in, go_on)) = (mpsc::channel(), mpsc::channel());
    let go_on = StdMutex::new(go_on);
    let bench = bench(Told {
        gate: Some(Gate { began, go_on }),
        ..Told::default()
    });
    let request = SetRequest {
        update: vec![
            put(CIR, "\"1000000\""),
            put("/interfaces/interface[name=a]/config/enabled", "false"),
        ],
        ..SetRequest::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let viewer = bench.viewer.clone();
    let client = runtime.spawn(async move { set(&Arc::default(), &viewer, request).await });
    begun.recv_timeout(WAIT).unwrap();
    client.abort();
    assert!(runtime.block_on(client).unwrap_err().is_cancelled());
    go_in.send(()).unwrap();
    let whole = async {
        loop {
            let view = bench.viewer.view(Wants::default()).await.unwrap();
            let port = &view.ports[0];
            if (port.config.rate_bps, port.link.admin_up) == (1_000_000, false) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    runtime
        .block_on(async { tokio::time::timeout(WAIT, whole).await })
        .unwrap();
}

#[test]
fn deletes_come_before_replaces_before_updates() {
    let bench = bench(Told::default());
    let shaper = CIR.trim_end_matches("/cir");
    let response = run(
        &bench,
        SetRequest {
            update: vec![put(CIR, "\"7000\"")],
            replace: vec![put(
                shaper,
                r#"{"cir": "5000", "max-queue-depth-packets": 9}"#,
            )],
            delete: vec![parse(shaper)],
            ..SetRequest::default()
        },
    )
    .unwrap();
    let ops: Vec<Operation> = response.response.iter().map(|r| r.op()).collect();
    assert_eq!(
        ops,
        [Operation::Delete, Operation::Replace, Operation::Update]
    );
    let (config, _) = ports(&bench)[0];
    assert_eq!((config.rate_bps, config.queue_limits.packets), (7_000, 9));
}

#[test]
fn a_replaced_tree_resets_what_it_does_not_name_and_no_other_port() {
    let bench = bench(Told::default());
    let tree = r#"{"openconfig-interfaces:interface": [
        {"name": "a", "fairlane-port:port": {"config": {"scheduler": "drr", "queues": 16}}},
        {"name": "b", "config": {"name": "b", "enabled": false}}]}"#;
    let request = |update| SetRequest {
        update: vec![update],
        ..SetRequest::default()
    };
    run(&bench, request(put("/interfaces", tree))).unwrap();
    let [(a, up), (b, down), _] = ports(&bench)[..] else {
        panic!("two ports and the CPU's")
    };
    assert_eq!((a.scheduler.name(), a.queues), ("drr", 16));
    assert_eq!((up.admin_up, down.admin_up), (true, false));
    assert_eq!(b, PortConfig::default());
    let replace = put("/interfaces/interface[name=a]", r#"{"name": "a"}"#);
    run(
        &bench,
        SetRequest {
            replace: vec![replace],
            ..SetRequest::default()
        },
    )
    .unwrap();
    let (a, _) = ports(&bench)[0];
    assert_eq!((a.scheduler.name(), a.queues), ("strict", 16));
    assert!(!ports(&bench)[1].1.admin_up);
}

#[test]
fn what_cannot_be_set_names_its_path() {
    let bench = bench(Told::default());
    for (path, json, text) in [
        (
            "/interfaces/interface[name=a]",
            r#"{"name": "b"}"#,
            "/interfaces/interface[name=a]/name: it is read-only, and not \"b\"",
        ),
        (
            "/interfaces/interface[name=a]/config/enabled",
            "1",
            "/interfaces/interface[name=a]/config/enabled: 1 is not allowed; a boolean is",
        ),
        (
            "/interfaces",
            r#"{"interface": [{"name": "*"}]}"#,
            "/interfaces/interface[name=*]/name: a Set takes no wildcards, and lists with their keys alone",
        ),
        (
            "/interfaces/interface/config/enabled",
            "false",
            "/interfaces/interface/config/enabled: a Set takes no wildcards, and lists with their keys alone",
        ),
        (
            "/interfaces/interface",
            r#"{"config": {"enabled": false}}"#,
            "/interfaces/interface: a Set takes no wildcards, and lists with their keys alone",
        ),
    ] {
        let request = SetRequest {
            update: vec![put(path, json)],
            ..SetRequest::default()
        };
        assert_eq!(run(&bench, request).unwrap_err().message(), text);
    }
    let request = SetRequest {
        delete: vec![parse("/interfaces/interface/port")],
        ..SetRequest::default()
    };
    assert_eq!(
        run(&bench, request).unwrap_err().message(),
        "/interfaces/interface/port: a Set takes no wildcards, and lists with their keys alone"
    );
}

/// The weight of a queue of port `a`.
fn weight(queue: usize) -> String {
    let scheduler = CIR.trim_end_matches("/one-rate-two-color/config/cir");
    format!("{scheduler}/inputs/input[id={queue}]/config/weight")
}

const QUEUES: &str = "/interfaces/interface[name=a]/port/config/queues";

fn weights(bench: &Bench) -> Vec<u32> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let view = runtime.block_on(bench.viewer.view(Wants::ALL)).unwrap();
    view.ports[0].queues.iter().map(|q| q.weight).collect()
}

#[test]
fn queues_and_their_weights_come_with_one_set_in_any_order() {
    let bench = bench(Told::default());
    let updates = |update| SetRequest {
        update,
        ..SetRequest::default()
    };
    let set = vec![put(&weight(9), "\"3\""), put(QUEUES, "10")];
    run(&bench, updates(set)).unwrap();
    assert_eq!(weights(&bench), [1, 1, 1, 1, 1, 1, 1, 1, 1, 3]);
    let input = weight(11).replace("/config/weight", "");
    let tree = r#"{"id": "11", "config": {"id": "11", "queue": "11", "weight": "7"}}"#;
    let replace = vec![put(&input, tree), put(QUEUES, "12")];
    let request = SetRequest {
        replace,
        ..SetRequest::default()
    };
    run(&bench, request).unwrap();
    assert_eq!(weights(&bench)[9..], [3, 1, 7]);
}

#[test]
fn a_replaced_scheduler_resets_the_weights_of_queues_that_this_set_adds() {
    let bench = bench(Told::default());
    let shaper = CIR.trim_end_matches("/cir");
    let scheduler = shaper.trim_end_matches("/one-rate-two-color/config");
    let request = SetRequest {
        replace: vec![
            put(QUEUES, "10"),
            put(&weight(9), "\"3\""),
            put(&weight(2), "\"3\""),
            put(
                scheduler,
                r#"{"inputs": {"input": [{"id": "8", "config": {"weight": "5"}}]}}"#,
            ),
        ],
        ..SetRequest::default()
    };
    run(&bench, request).unwrap();
    assert_eq!(weights(&bench), [1, 1, 1, 1, 1, 1, 1, 1, 5, 1]);
}

#[test]
fn a_queue_that_no_operation_adds_is_refused_by_its_path() {
    let bench = bench(Told::default());
    let input = |queue| weight(queue).replace("/config/weight", "");
    let (all, nine) = (input(0).replace("/input[id=0]", ""), input(9));
    let (name, config) = (format!("{nine}/id"), format!("{nine}/config/id"));
    for (path, json, refused) in [
        (weight(9), "\"3\"".to_owned(), weight(9)),
        (config.clone(), "\"9\"".to_owned(), config),
        (nine, r#"{"id": "9"}"#.to_owned(), name.clone()),
        (all, r#"{"input": [{"id": "9"}]}"#.to_owned(), name),
    ] {
        let updates = vec![put(CIR, "\"1000000\""), put(&path, &json)];
        let request = SetRequest {
            update: updates,
            ..SetRequest::default()
        };
        let error = run(&bench, request).unwrap_err();
        let text = format!("{refused}: there is no queue 9; it has 8, from 0 on");
        assert_eq!(error.message(), text);
        assert_eq!(error.code(), tonic::Code::InvalidArgument);
    }
    let request = SetRequest {
        delete: vec![parse(&weight(9))],
        ..SetRequest::default()
    };
    let error = run(&bench, request).unwrap_err();
    let text = format!("{}: there is no queue 9; it has 8, from 0 on", weight(9));
    assert_eq!(error.message(), text);
    assert_eq!(ports(&bench)[0].0, PortConfig::default());
}

#[test]
fn a_tree_of_every_queue_is_set_whole_or_refused_by_the_path_of_a_leaf() {
    let bench = bench(Told::default());
    let queues = 4096;
    let tree = |last: &str| {
        let inputs: Vec<String> = (0..queues)
            .map(|queue| {
                let weight = match queue == queues - 1 {
                    true => last.to_owned(),
                    false => format!("\"{}\"", queue + 1),
                };
                format!(r#"{{"id":"{queue}","config":{{"id":"{queue}","queue":"{queue}","weight":{weight}}}}}"#)
            })
            .collect();
        format!(
            r#"{{"openconfig-qos:qos": {{"scheduler-policies": {{"scheduler-policy": [{{"name": "a", "schedulers":
            {{"scheduler": [{{"sequence": 1, "inputs": {{"input": [{}]}}}}]}}}}]}}}},
            "interfaces": {{"interface": [{{"name": "a", "port": {{"config": {{"queues": {queues}}}}}}}]}}}}"#,
            inputs.join(",")
        )
    };
    let set = |json: &str| {
        let update = vec![put("/", json)];
        run(
            &bench,
            SetRequest {
                update,
                ..SetRequest::default()
            },
        )
    };
    let error = set(&tree("0")).unwrap_err();
    let text = format!("{}: a weight is from 1 to 4294967295", weight(queues - 1));
    assert_eq!(error.message(), text);
    assert_eq!(ports(&bench)[0].0, PortConfig::default());
    let began = std::time::Instant::now();
    set(&tree("4096")).unwrap();
    println!("{} leaves in {:?}", 5 * queues, began.elapsed());
    assert!(weights(&bench).into_iter().eq(1..=4096));
}

#[test]
fn what_names_no_port_leaves_the_cpu_port_as_it_is() {
    let bench = bench(Told::default());
    let limit = |port: &str| format!("/interfaces/interface[name={port}]/port/config/port-packets");
    let request = SetRequest {
        update: vec![put(&limit("a"), "\"7\""), put(&limit("cpu"), "\"8\"")],
        ..SetRequest::default()
    };
    run(&bench, request).unwrap();
    let limits = || -> Vec<u64> {
        let now = ports(&bench).into_iter();
        now.map(|(config, _)| config.port_limits.packets).collect()
    };
    assert_eq!(limits(), [7, device::UNLIMITED, 8]);
    let delete = |path: &str| SetRequest {
        delete: vec![parse(path)],
        ..SetRequest::default()
    };
    run(&bench, delete("/interfaces")).unwrap();
    assert_eq!(limits(), [device::UNLIMITED, device::UNLIMITED, 8]);
    run(&bench, delete(&limit("cpu"))).unwrap();
    assert_eq!(limits()[2], device::UNLIMITED);
}

#[test]
fn a_set_of_many_deletes_is_bounded_and_done_in_short_calls() {
    let bench = bench(Told::default());
    let delete = |path: &str, count: usize| SetRequest {
        delete: vec![parse(path); count],
        ..SetRequest::default()
    };
    let port = "/interfaces/interface[name=a]/fairlane-port:port";
    let queues = format!("{port}/config/queues");
    run(
        &bench,
        SetRequest {
            update: vec![put(CIR, "\"1000000\""), put(&queues, "4096")],
            ..SetRequest::default()
        },
    )
    .unwrap();
    assert_eq!(ports(&bench)[0].0.queues, 4_096);
    assert_eq!(ports(&bench)[0].0.rate_bps, 1_000_000);
    let longest = bench.queues_a_call.load(Ordering::Relaxed);
    assert_eq!(longest, QUEUES_A_CALL, "packets wait for more of them");
    // A leaf 10,000 times is as good as once.
    let done = run(&bench, delete(CIR, OPERATIONS_MAX)).unwrap();
    assert_eq!(done.response.len(), OPERATIONS_MAX);
    assert_eq!(ports(&bench)[0].0.rate_bps, 0);
    // All of a port of many queues is not.
    let scheduler = "/qos/scheduler-policies/scheduler-policy[name=a]";
    let error = run(&bench, delete(scheduler, OPERATIONS_MAX)).unwrap_err();
    assert_eq!(error.code(), tonic::Code::ResourceExhausted, "{error}");
    assert!(
        error
            .message()
            .ends_with("more than 4000000 leaves; send fewer at a time"),
        "{error}"
    );
}
