// SPDX-License-Identifier: Apache-2.0
//! The first program of a User-mode Linux of ours (docs/kernel-time.md): makes the hosts, runs the flows of `plan.json` at their
//! instants of virtual time, writes `events` and `samples` beside it, and halts.
//!
//! | module | idea |
//! |---|---|
//! | `network` | namespaces and interfaces |
//! | `traffic` | the hosts that the flows (crate `flows`) run on, and their receivers, in one loop |
//! | `records` | what receivers have read, and the files |
//! | `programs` | programs of the user's as applications |
//! | `diag` | TCP_INFO of their connections |

mod diag;
mod network;
mod programs;
mod records;
mod traffic;

use network::Namespace;
use rustix::mount::{mount, MountFlags};
use rustix::process::{setrlimit, Resource, Rlimit};
use rustix::system::{reboot, RebootCommand};
use std::io;
use traffic::Traffic;
use uml::plan::Plan;

/// What TCP may buffer, as a machine of 8 GiB sets it at boot (pages; then bytes: least, at first, most). The kernel goes by its
/// memory, which is little here, and would shut windows that no ordinary machine shuts.
const BUFFERS: [(&str, &str); 3] = [
    ("tcp_mem", "93000 124000 186000"),
    ("tcp_rmem", "4096 131072 6291456"),
    ("tcp_wmem", "4096 16384 4194304"),
];
/// Of its sockets: two a connection.
const OPEN_FILES_MAX: u64 = 1 << 17;

fn run() -> io::Result<()> {
    std::fs::create_dir_all("/proc")?;
    mount("proc", "/proc", "proc", MountFlags::empty(), None)?;
    let files = Some(OPEN_FILES_MAX);
    let limit = Rlimit {
        current: files,
        maximum: files,
    };
    setrlimit(Resource::Nofile, limit)?;
    for (name, value) in BUFFERS {
        std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value)?; // namespaces made later begin with them
    }
    let plan: Plan = serde_json::from_slice(&std::fs::read("/plan.json")?)
        .map_err(|error| io::Error::other(format!("plan.json: {error}")))?;
    let machine = Namespace::current()?;
    let namespaces = plan
        .hosts
        .iter()
        .enumerate()
        .map(|(index, host)| {
            network::set_up(&machine, index, host)
                .map_err(|error| io::Error::other(format!("host {}: {error}", host.name)))
        })
        .collect::<io::Result<Vec<Namespace>>>()?;
    machine.enter()?;
    for (index, line) in (plan.hosts.len()..).zip(&plan.lines) {
        network::set_up_line(index, line).map_err(|error| {
            io::Error::other(format!("port {}-p{}: {error}", line.switch, line.port))
        })?;
    }
    let traffic = Traffic::new(&plan, &namespaces)?;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    if now_ns >= plan.start_ns {
        return Err(io::Error::other(format!(
            "{} hosts were set up at {now_ns} ns; the experiment starts at {} ns",
            plan.hosts.len(),
            plan.start_ns
        )));
    }
    traffic.run()
}

fn main() {
    if std::process::id() != 1 {
        eprintln!("fairlane-guest is the first program of a User-mode Linux (docs/kernel-time.md)");
        std::process::exit(2);
    }
    if let Err(error) = run() {
        // Who started the machine reads it there; without the file all is well.
        let _ = std::fs::write("/failure", error.to_string());
    }
    rustix::fs::sync();
    let _ = reboot(RebootCommand::PowerOff);
}
