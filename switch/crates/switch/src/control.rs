// SPDX-License-Identifier: Apache-2.0
//! The control socket: what P4Runtime has no words for, while the switch runs. One JSON object a line, each answered by one.
//!
//! `{"op": "set_port", "port": 3, "rate_bps": 1000000}` changes what it names of a port and keeps the rest (the keys
//! are those of [`PortChange`]); `{"op": "spike", "port": 3, "duration_us": 5000000}` lets nothing start on a port's line for so
//! long (packets wait in its queues); `{"op": "ports"}` reads options, counts and what waits. Answers: `{"ok": true, …}` or `{"ok": false, "error": "…"}`.

use crate::port_report::{PortReport, SwitchReport};
use device::config::PORT_MAX;
use device::{Device, DeviceHandle, Nanos, PortChange};
use netio::own_socket::{reply, OwnSocket, Removal};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io;
use traffic::link::Range;
use v1model::ControlError;
use wire::request::{self, missing, nothing_left, take_number, DURATION_US};

const OPERATIONS: [&str; 3] = ["set_port", "spike", "ports"];
const PORTS: Range = Range::new(0.0, PORT_MAX as f64, "", true);

/// What is done on the switch's thread, between two packets.
type Request = Box<dyn FnOnce(&mut Device, Nanos) -> Result<Report, String> + Send>;

/// What is answered; made JSON after the device was asked, not while packets wait for it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Report {
    Port { port: Box<Option<PortReport>> },
    Switch(Box<SwitchReport>),
}

/// Serves the socket, on threads of its own, until the value returned is dropped; it is removed then.
///
/// # Errors
/// The system's error when a thread cannot be started.
pub fn serve(socket: OwnSocket, handle: DeviceHandle) -> io::Result<Removal> {
    socket.serve(move |line| {
        reply(parse(line).and_then(|request| {
            let report = handle.call_blocking(request);
            report.unwrap_or_else(|gone| Err(gone.to_string()))
        }))
    })
}

fn parse(line: &str) -> Result<Request, String> {
    let (op, mut keys) = request::read(line, &OPERATIONS)?;
    if op == "ports" {
        nothing_left(&keys, "op")?;
        return Ok(Box::new(|device, _| {
            Ok(Report::Switch(Box::new(SwitchReport::new(device))))
        }));
    }
    let port = take_number(&mut keys, "port", PORTS)?;
    let port = port.ok_or_else(|| missing("port"))? as u32;
    let of_port = |e: String| format!("port {port}: {e}");
    if op == "set_port" {
        let change = change_of(keys).map_err(of_port)?;
        return Ok(change_port(port, move |device, now| {
            device.change_port(now, port, &change)
        }));
    }
    let us = take_number(&mut keys, "duration_us", DURATION_US).map_err(of_port)?;
    let us = us.ok_or_else(|| of_port(missing("duration_us")))?;
    nothing_left(&keys, "op, port, duration_us").map_err(of_port)?;
    Ok(change_port(port, move |device, now| {
        device.spike(now, port, (us * 1e3).round() as Nanos)
    }))
}

/// The options by name; an error names the key.
pub fn change_of(keys: Map<String, Value>) -> Result<PortChange, String> {
    // One by one, since the error of a whole object does not say which value is wrong.
    for (key, value) in &keys {
        let one = Value::Object(Map::from_iter([(key.clone(), value.clone())]));
        serde_json::from_value::<PortChange>(one).map_err(|e| format!("{key}: {e}"))?;
    }
    serde_json::from_value(Value::Object(keys)).map_err(|e| e.to_string())
}

fn change_port(
    port: u32,
    change: impl FnOnce(&mut Device, Nanos) -> Result<(), ControlError> + Send + 'static,
) -> Request {
    Box::new(move |device, now| {
        device.port(port).ok_or_else(|| {
            let there: Vec<String> = device.ports().map(|p| p.to_string()).collect();
            let there = there.join(", ");
            format!("there is no port {port}; there are {there}")
        })?;
        change(device, now).map_err(|e| e.message)?;
        let port = Box::new(PortReport::new(device, port));
        Ok(Report::Port { port })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{DeviceConfig, PortConfig};
    use netio::own_socket;
    use serde_json::json;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;

    fn device() -> Device {
        let mut device = Device::new(DeviceConfig::default());
        device.add_port(3, PortConfig::default()).unwrap();
        device
    }

    fn say(device: &mut Device, line: &str) -> Value {
        reply(parse(line).and_then(|request| request(device, 0)))
    }

    #[test]
    fn what_is_not_named_stays() {
        let mut device = device();
        let line = r#"{"op": "set_port", "port": 3, "rate_bps": 1000000}"#;
        let reply = say(&mut device, line);
        assert_eq!(reply["port"]["rate_bps"], 1_000_000);
        assert_eq!(reply["port"]["queue_packets"], 1_000);
        say(
            &mut device,
            r#"{"op": "set_port", "port": 3, "queue_packets": 7}"#,
        );
        let config = device.port(3).unwrap();
        assert_eq!(
            (config.rate_bps, config.queue_limits.packets),
            (1_000_000, 7)
        );
        let ports = say(&mut device, r#"{"op": "ports"}"#);
        assert_eq!(ports["ok"], true);
        assert_eq!(ports["ports"][0]["tx_bytes"], 0);
        assert_eq!(ports["ports"][0]["port_cells"], Value::Null);
        assert_eq!(ports["ports"][0]["queues_waiting"], json!([]));
    }

    #[test]
    fn every_option_is_a_key() {
        let mut device = device();
        let line = r#"{"op": "set_port", "port": 3, "scheduler": "wrr", "link_layer": "atm", "queues": 16,
            "queue_packets": 1, "queue_bytes": 2, "queue_cells": 3, "port_packets": 4, "port_bytes": 5, "port_cells": 6,
            "rate_bps": 7}"#;
        let reply = say(&mut device, line);
        for (key, value) in [
            ("scheduler", json!("wrr")),
            ("link_layer", json!("atm")),
            ("queues", json!(16)),
            ("queue_packets", json!(1)),
            ("queue_bytes", json!(2)),
            ("queue_cells", json!(3)),
            ("port_packets", json!(4)),
            ("port_bytes", json!(5)),
            ("port_cells", json!(6)),
            ("rate_bps", json!(7)),
        ] {
            assert_eq!(reply["port"][key], value, "{key}: {reply}");
        }
    }

    #[test]
    fn what_is_refused_says_why_and_changes_nothing() {
        let mut device = device();
        for (line, part) in [
            (
                r#"{"op": "set_port", "port": 9}"#,
                "there is no port 9; there are 3",
            ),
            (
                r#"{"op": "set_port", "port": 3, "rate": 1}"#,
                "rate: unknown field `rate`, expected one of `rate_bps`, `link_layer`, ",
            ),
            (
                r#"{"op": "set_port", "port": 3, "queue_packets": 0}"#,
                "at least 1",
            ),
            (
                r#"{"op": "set_port", "port": 3, "rate_bps": -1}"#,
                "port 3: rate_bps: invalid value: integer `-1`",
            ),
            (
                r#"{"op": "set_port", "port": 3, "rate_bps": 5, "scheduler": "fifo"}"#,
                "port 3: scheduler: scheduler \"fifo\" is unknown; allowed: strict, wrr, drr, calendar, fq",
            ),
            (
                r#"{"op": "set_port", "port": 3, "queues": 7}"#,
                "port 3: 7 queues are fewer than its 8",
            ),
            (
                r#"{"op": "set_port", "port": 3, "queues": 4097}"#,
                "port 3: 4097 queues; 1 to 4096 are allowed",
            ),
            (
                r#"{"op": "set_port", "port": "3"}"#,
                "port: \"3\" is not a whole number; allowed: 0 to 510",
            ),
            (
                r#"{"op": "spike", "port": 9, "duration_us": 1}"#,
                "there is no port 9; there are 3",
            ),
            (
                r#"{"op": "spike", "port": 3, "duration_us": 0}"#,
                "port 3: duration_us: 0 is out of range; allowed: 1 to 600000000 µs",
            ),
            (
                r#"{"op": "spike", "port": 3, "duration_us": 1, "blocks": "line"}"#,
                "port 3: blocks: unknown key; allowed: op, port, duration_us",
            ),
            (r#"{"op": "ports", "port": 3}"#, "port: unknown key; allowed: op"),
            (r#"{"op": "stop"}"#, "op: \"stop\" is not known; allowed: set_port, spike, ports"),
            ("{", "not valid JSON"),
        ] {
            let reply = say(&mut device, line);
            assert_eq!(reply["ok"], false, "{line}");
            assert!(
                reply["error"].as_str().unwrap().contains(part),
                "{line}: {reply}"
            );
        }
        assert_eq!(*device.port(3).unwrap(), PortConfig::default());
    }

    #[test]
    fn a_client_is_answered_line_by_line_and_the_socket_is_removed() {
        let path = std::env::temp_dir().join(format!("fairlane-control-{}", std::process::id()));
        let control = own_socket::bind(&path).unwrap();
        let (handle, mut calls) = DeviceHandle::new(|| {});
        let removal = serve(control, handle).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        client
            .set_read_timeout(Some(std::time::Duration::from_secs(10)))
            .unwrap();
        let answers = std::thread::spawn(move || {
            client.write_all(b"oops\n{\"op\": \"ports\"}\n").unwrap();
            let mut lines = BufReader::new(client).lines();
            (
                lines.next().unwrap().unwrap(),
                lines.next().unwrap().unwrap(),
            )
        });
        let mut device = device();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !calls.run_one(&mut device, |_| 0) {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        let (refused, ports) = answers.join().unwrap();
        assert!(refused.starts_with(r#"{"error""#) || refused.starts_with(r#"{"ok":false"#));
        assert!(ports.contains(r#""ok":true"#));
        drop(removal);
        assert!(!path.exists());
    }
}
