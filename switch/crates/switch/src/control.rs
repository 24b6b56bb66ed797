// SPDX-License-Identifier: Apache-2.0
//! The control socket: what P4Runtime has no words for, while the switch runs. One JSON object a line, each answered by one.
//!
//! `{"op": "set_port", "port": 3, "rate_bps": 1000000}` changes what it names of a port and keeps the rest;
//! `{"op": "ports"}` reads settings and counts. Answers: `{"ok": true, …}` or `{"ok": false, "error": "…"}`.

use device::{Device, DeviceHandle, Nanos};
use serde::Deserialize;
use serde_json::{json, Value};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Longest request, bytes.
const LINE_MAX: u64 = 4096;
const OPERATIONS: &str = "set_port, ports";

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    SetPort(SetPort),
    Ports {},
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetPort {
    port: u32,
    rate_bps: Option<u64>,
    queue_packets: Option<u64>,
}

/// The bound socket; only its owner may connect. It is removed with this value.
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
}

/// Removes the socket.
pub struct Removal(PathBuf);

impl Control {
    /// Binds the socket with mode 0600, before other threads run. One that a dead process left is replaced.
    ///
    /// # Errors
    /// The system's error; AddrInUse when another process listens there.
    pub fn bind(path: &Path) -> io::Result<Control> {
        match UnixStream::connect(path) {
            Ok(_) => return Err(io::Error::from(ErrorKind::AddrInUse)),
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            Err(_) => {}
        }
        // SAFETY: plain system call; the mask is put back at once.
        let listener = unsafe {
            let mask = libc::umask(0o177);
            let listener = UnixListener::bind(path);
            libc::umask(mask);
            listener?
        };
        Ok(Control {
            listener,
            path: path.to_owned(),
        })
    }

    /// Serves until the process ends, on threads of its own. The socket is removed with the value returned.
    ///
    /// # Errors
    /// The system's error when a thread cannot be started.
    pub fn serve(self, handle: DeviceHandle) -> io::Result<Removal> {
        let Control { listener, path } = self;
        std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    let handle = handle.clone();
                    // A client that cannot be served (no thread, or it went away) is closed.
                    let _ = std::thread::Builder::new()
                        .name("control-client".to_owned())
                        .spawn(move || serve_client(stream, &handle));
                }
            })?;
        Ok(Removal(path))
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn serve_client(stream: UnixStream, handle: &DeviceHandle) -> io::Result<()> {
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        (&mut input).take(LINE_MAX).read_until(b'\n', &mut line)?;
        let Some(b'\n') = line.last() else {
            if !line.is_empty() {
                let text = format!("a request is one line of at most {LINE_MAX} bytes");
                writeln!(output, "{}", refusal(&text))?;
            }
            return Ok(());
        };
        let reply = match std::str::from_utf8(&line)
            .map_err(|_| "not UTF-8".to_owned())
            .and_then(parse)
        {
            Ok(request) => {
                match handle.call_blocking(move |device, now| apply(device, now, request)) {
                    Ok(reply) => reply,
                    Err(gone) => refusal(&gone.to_string()),
                }
            }
            Err(text) => refusal(&text),
        };
        writeln!(output, "{reply}")?;
    }
}

fn refusal(error: &str) -> Value {
    json!({"ok": false, "error": error})
}

fn parse(line: &str) -> Result<Request, String> {
    serde_json::from_str(line).map_err(|e| format!("{e}; operations: {OPERATIONS}"))
}

fn apply(device: &mut Device, now: Nanos, request: Request) -> Value {
    match request {
        Request::SetPort(wanted) => set_port(device, now, &wanted),
        Request::Ports {} => json!({"ok": true, "ports": ports(device)}),
    }
}

fn set_port(device: &mut Device, now: Nanos, wanted: &SetPort) -> Value {
    let Some(mut config) = device.port(wanted.port).copied() else {
        let there: Vec<String> = device.ports().map(|p| p.to_string()).collect();
        let there = there.join(", ");
        return refusal(&format!(
            "there is no port {}; there are {there}",
            wanted.port
        ));
    };
    if let Some(rate_bps) = wanted.rate_bps {
        config.rate_bps = rate_bps;
    }
    if let Some(packets) = wanted.queue_packets {
        config.queue_limits.packets = packets;
    }
    match device.set_port(now, wanted.port, config) {
        Ok(()) => json!({"ok": true, "port": port(device, wanted.port)}),
        Err(error) => refusal(&error.message),
    }
}

fn ports(device: &Device) -> Vec<Value> {
    device.ports().map(|number| port(device, number)).collect()
}

fn port(device: &Device, number: u32) -> Value {
    let (Some(config), Some(stats)) = (device.port(number), device.port_stats(number)) else {
        return Value::Null;
    };
    json!({
        "port": number,
        "rate_bps": config.rate_bps,
        "queue_packets": config.queue_limits.packets,
        "rx_packets": stats.rx_packets,
        "rx_bytes": stats.rx_bytes,
        "tx_packets": stats.tx_packets,
        "tx_bytes": stats.tx_bytes,
        "refused_packets": stats.refused_packets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{DeviceConfig, PortConfig};

    fn device() -> Device {
        let mut device = Device::new(DeviceConfig::default());
        device.add_port(3, PortConfig::default()).unwrap();
        device
    }

    fn say(device: &mut Device, line: &str) -> Value {
        match parse(line) {
            Ok(request) => apply(device, 0, request),
            Err(text) => refusal(&text),
        }
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
                "unknown field `rate`",
            ),
            (
                r#"{"op": "set_port", "port": 3, "queue_packets": 0}"#,
                "at least 1",
            ),
            (r#"{"op": "set_port", "port": 3, "rate_bps": -1}"#, "-1"),
            (r#"{"op": "stop"}"#, "unknown variant `stop`"),
            ("{", "operations: set_port, ports"),
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
        let control = Control::bind(&path).unwrap();
        assert!(Control::bind(&path).is_err());
        let (handle, mut calls) = DeviceHandle::new(|| {});
        let removal = control.serve(handle).unwrap();
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
        while !calls.run_one(&mut device, || 0) {
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
