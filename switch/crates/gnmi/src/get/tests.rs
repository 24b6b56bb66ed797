// SPDX-License-Identifier: Apache-2.0
//! Gets on ports in memory: limits, who is meant by a wildcard, what the kernel reports of the interfaces.

use super::*;
use crate::path::parse;
use crate::tests::{bench, Bench, Told};
use device::{Device, DropReason};
use netio::Ethernet;
use p4rt::proto::gnmi::typed_value::Value as Wire;

/// The leaves that a path names, with their values.
fn get(bench: &Bench, path: &str) -> Result<Vec<(String, Wire)>, Status> {
    let request = GetRequest {
        path: vec![parse(path)],
        encoding: Encoding::Proto.into(),
        ..GetRequest::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut answer = runtime.block_on(super::get(&bench.viewer, request))?;
    let leaves = answer.notification.remove(0).update.into_iter();
    let leaf = |update: Update| {
        let value = update.val.and_then(|val| val.value).unwrap();
        (crate::path::format(&update.path.unwrap().elem), value)
    };
    Ok(leaves.map(leaf).collect())
}

fn paths(bench: &Bench, path: &str) -> Vec<String> {
    let leaves = get(bench, path).unwrap().into_iter();
    leaves.map(|(path, _)| path).collect()
}

#[test]
fn a_request_of_too_many_paths_is_refused() {
    let bench = bench(Told::default());
    let request = GetRequest {
        path: vec![Path::default(); PATHS_MAX + 1],
        encoding: Encoding::Proto.into(),
        ..GetRequest::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let error = runtime
        .block_on(super::get(&bench.viewer, request))
        .unwrap_err();
    assert_eq!(error.code(), tonic::Code::InvalidArgument);
    assert_eq!(
        error.message(),
        "1001 paths; at most 1000 are allowed in one request"
    );
}

#[test]
fn the_cpu_port_is_there_for_those_who_give_its_name() {
    let bench = bench(Told::default());
    let of = |name: &str| format!("/interfaces/interface[name={name}]/state/ifindex");
    for wild in [
        "/interfaces/interface[name=*]/state/ifindex",
        "/interfaces/interface/state/ifindex",
        "/interfaces/*/state/ifindex",
        ".../ifindex",
    ] {
        assert_eq!(paths(&bench, wild), [of("a"), of("b")], "{wild}");
    }
    for named in [of("cpu"), ".../interface[name=cpu]/.../ifindex".to_owned()] {
        let value = Wire::UintVal(crate::tests::CPU_PORT.into());
        assert_eq!(get(&bench, &named).unwrap(), [(of("cpu"), value)]);
    }
    for all in ["/", "...", "/interfaces", "/qos"] {
        let found = paths(&bench, all);
        assert!(!found.is_empty());
        assert!(found.iter().all(|path| !path.contains("=cpu]")), "{all}");
    }
    let cpu = paths(&bench, "/qos/interfaces/interface[interface-id=cpu]/output");
    assert!(cpu.len() > 2 && cpu.iter().all(|path| path.contains("=cpu]")));
}

#[test]
fn an_interface_is_described_as_the_kernel_does() {
    let of = |ethernet: Ethernet| {
        let bench = bench(Told {
            ethernet,
            ..Told::default()
        });
        let mut found = get(&bench, "/interfaces/interface[name=a]/ethernet").unwrap();
        found.extend(get(&bench, ".../interface[name=a]/.../in-fcs-errors").unwrap());
        assert!(paths(&bench, "/interfaces/interface[name=cpu]/ethernet").is_empty());
        let shorten = |(path, value): (String, Wire)| match value {
            Wire::StringVal(text) => (short(&path), text),
            Wire::BoolVal(flag) => (short(&path), flag.to_string()),
            Wire::UintVal(number) => (short(&path), number.to_string()),
            other => panic!("{other:?}"),
        };
        fn short(path: &str) -> String {
            path.rsplitn(3, '/').take(2).collect::<Vec<_>>().join(" ")
        }
        found.into_iter().map(shorten).collect::<Vec<_>>()
    };
    let texts = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let own = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
        pairs.iter().map(own).collect()
    };
    let fixed = Ethernet {
        mac: Some([0x0a, 0, 0, 0xff, 0, 1]),
        speed_mbps: Some(10_000),
        full_duplex: Some(true),
        auto_negotiate: Some(false),
        fcs_errors: Some(3),
    };
    assert_eq!(
        of(fixed),
        texts(&[
            ("auto-negotiate config", "false"),
            ("auto-negotiate state", "false"),
            ("port-speed config", "SPEED_10GB"),
            ("duplex-mode config", "FULL"),
            ("port-speed state", "SPEED_10GB"),
            ("duplex-mode state", "FULL"),
            ("mac-address state", "0A:00:00:FF:00:01"),
            ("hw-mac-address state", "0A:00:00:FF:00:01"),
            ("in-fcs-errors counters", "3"),
        ])
    );
    // What two ends agree on nobody has configured.
    let negotiated = Ethernet {
        mac: None,
        speed_mbps: Some(2_500),
        full_duplex: Some(false),
        auto_negotiate: Some(true),
        fcs_errors: None,
    };
    assert_eq!(
        of(negotiated),
        texts(&[
            ("auto-negotiate config", "true"),
            ("auto-negotiate state", "true"),
            ("port-speed state", "SPEED_2500MB"),
            ("duplex-mode state", "HALF"),
            ("negotiated-port-speed state", "SPEED_2500MB"),
            ("negotiated-duplex-mode state", "HALF"),
        ])
    );
    assert_eq!(of(Ethernet::default()), []);
}

#[test]
fn frames_that_go_no_further_are_discards_or_errors() {
    let bench = bench(Told {
        ethernet: Ethernet {
            fcs_errors: Some(5),
            ..Ethernet::default()
        },
        ..Told::default()
    });
    let happen = |device: &mut Device, now| {
        device.count_reception_losses(1, DropReason::RingFull, 3);
        device.receive(now, 1, &[2; 60]); // there is no program
        device.receive(now, 1, &vec![2; 70_000]); // too long
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let done = runtime.block_on(bench.viewer.handle().call(happen));
    assert!(done.is_ok());
    for (name, leaf, count) in [
        ("a", "in-discards", 4),
        ("a", "in-errors", 6),
        ("a", "in-fcs-errors", 5),
        ("a", "in-unknown-protos", 0),
        ("a", "out-discards", 0),
        ("a", "out-errors", 0),
        ("b", "in-discards", 0),
        ("b", "in-errors", 5),
    ] {
        let found = get(&bench, &format!(".../interface[name={name}]/.../{leaf}")).unwrap();
        assert_eq!(found.len(), 1, "{leaf}");
        assert_eq!(found[0].1, Wire::UintVal(count), "{name}: {leaf}");
    }
    let viable = get(
        &bench,
        "/interfaces/interface[name=a]/state/forwarding-viable",
    );
    assert_eq!(viable.unwrap()[0].1, Wire::BoolVal(true));
}

#[test]
fn the_accounts_of_packets_are_whole_and_have_no_key() {
    let bench = bench(Told::default());
    let found = get(&bench, "/fairlane-port:switch/packets").unwrap();
    let names: Vec<_> = found
        .iter()
        .filter_map(|(path, _)| path.rsplit('/').next())
        .collect();
    assert_eq!(
        names,
        [
            "received",
            "copied",
            "transmitted",
            "packet-ins",
            "dropped",
            "waiting",
            "on-line"
        ]
    );
    assert!(found.iter().all(|(_, value)| *value == Wire::UintVal(0)));
    // Once each, however many ports there are.
    let all = paths(&bench, "/");
    let received = all
        .iter()
        .filter(|path| path.ends_with("packets/state/received"));
    assert_eq!(received.count(), 1);
    assert_eq!(
        paths(&bench, "/fairlane-port:switch/packets/state/waiting").len(),
        1
    );
}
