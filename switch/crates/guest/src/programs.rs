// SPDX-License-Identifier: Apache-2.0
//! Programs of the user's in the hosts' namespaces (`command` applications). Their connections are sampled by sock_diag(7).

use crate::diag::connections;
use crate::network::Namespace;
use apps::App;
use rustix::fs::{makedev, mknodat, FileType, Mode, CWD};
use rustix::mount::{mount, MountFlags};
use rustix::process::{kill_process, Pid, Signal};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use uml::plan::Plan;

/// Name, major and minor number, of what a program may expect in /dev.
const DEVICES: [(&str, u32, u32); 4] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("random", 1, 8),
    ("urandom", 1, 9),
];

/// A connection of a program's, seen from the sending host.
struct Seen {
    number: u64,
    tcp_info: Vec<u8>,
}

/// What a flow's programs have come to.
#[derive(Default)]
struct Running {
    children: Vec<Child>,
    connections: BTreeMap<u64, Seen>,
    /// Connections so far.
    count: u64,
    output: Option<Output>,
}

/// What a receiver prints.
struct Output {
    file: File,
    /// The line that has not ended.
    unread: Vec<u8>,
}

impl Output {
    /// BYTES of the last line `received BYTES` that has come since the last call.
    fn received(&mut self) -> io::Result<Option<u64>> {
        self.file.read_to_end(&mut self.unread)?;
        let Some(end) = self.unread.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let lines = self.unread.drain(..=end).collect::<Vec<u8>>();
        Ok(last_received(&String::from_utf8_lossy(&lines)))
    }
}

fn last_received(lines: &str) -> Option<u64> {
    let mut counts = lines
        .lines()
        .filter_map(|line| line.strip_prefix("received ")?.parse().ok());
    counts.next_back()
}

/// A sample of a program's connection.
pub struct Sample {
    pub flow: usize,
    pub connection: u64,
    pub is_last: bool,
    pub tcp_info: Vec<u8>,
}

/// By flow.
#[derive(Default)]
pub struct Programs(BTreeMap<usize, Running>);

impl Programs {
    /// Starts what receives, before the experiment.
    pub fn new(plan: &Plan, namespaces: &[Namespace]) -> io::Result<Programs> {
        let mut programs = Programs::default();
        for (index, flow) in plan.flows.iter().enumerate() {
            let App::Command(app) = &flow.app else {
                continue;
            };
            if programs.0.is_empty() {
                make_devices()?;
            }
            programs.0.insert(index, Running::default());
            if !app.receiver.is_empty() {
                programs.start(plan, index, &app.receiver, "receiver", &namespaces[flow.to])?;
                let file = File::open(output_path(&flow.name, "receiver"))?;
                let unread = Vec::new();
                programs.0.entry(index).or_default().output = Some(Output { file, unread });
            }
        }
        Ok(programs)
    }

    /// Starts what sends.
    pub fn run(&mut self, plan: &Plan, index: usize, namespaces: &[Namespace]) -> io::Result<()> {
        match &plan.flows[index].app {
            App::Command(app) => self.start(
                plan,
                index,
                &app.sender,
                "sender",
                &namespaces[plan.flows[index].from],
            ),
            _ => Ok(()),
        }
    }

    fn start(
        &mut self,
        plan: &Plan,
        index: usize,
        words: &[String],
        role: &str,
        at: &Namespace,
    ) -> io::Result<()> {
        at.enter()?;
        let out = File::create(output_path(&plan.flows[index].name, role))?;
        let child = Command::new(&words[0])
            .args(&words[1..])
            .env_clear()
            .env("PATH", "/")
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .map_err(|error| {
                let name = &plan.flows[index].name;
                io::Error::new(
                    error.kind(),
                    format!("flow {name}: {}: {error} (it has to be static)", words[0]),
                )
            })?;
        self.0.entry(index).or_default().children.push(child);
        Ok(())
    }

    /// The flow is over: SIGTERM.
    pub fn stop(&mut self, index: usize) {
        for child in self
            .0
            .get_mut(&index)
            .iter_mut()
            .flat_map(|running| &mut running.children)
        {
            if let (Ok(None), Some(pid)) = (child.try_wait(), Pid::from_raw(child.id() as i32)) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }

    /// Exit codes of those that have ended: flow, code (256 and more: a signal).
    pub fn take_ended(&mut self) -> Vec<(usize, u64)> {
        use std::os::unix::process::ExitStatusExt;
        let mut ended = Vec::new();
        for (index, running) in &mut self.0 {
            running.children.retain_mut(|child| match child.try_wait() {
                Ok(Some(status)) => {
                    let signal = status.signal().map(|signal| 256 + signal);
                    let code = status.code().or(signal).unwrap_or_default();
                    ended.push((*index, code as u64));
                    false
                }
                _ => true,
            });
        }
        ended
    }

    /// Flow and bytes, where a receiver has printed how many have come.
    pub fn received(&mut self) -> io::Result<Vec<(usize, u64)>> {
        let mut found = Vec::new();
        for (index, running) in &mut self.0 {
            if let Some(output) = &mut running.output {
                found.extend(output.received()?.map(|bytes| (*index, bytes)));
            }
        }
        Ok(found)
    }

    /// Connections from the sending hosts to the flows' ports.
    pub fn sample(&mut self, plan: &Plan, namespaces: &[Namespace]) -> io::Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for (index, running) in &mut self.0 {
            let flow = &plan.flows[*index];
            namespaces[flow.from].enter()?;
            let receiver = flow.ends[1];
            let mut gone = std::mem::take(&mut running.connections);
            for found in connections(receiver.is_ipv6())? {
                if found.remote != receiver {
                    continue;
                }
                let number = gone
                    .remove(&found.cookie)
                    .map_or(running.count, |seen| seen.number);
                running.count = running.count.max(number + 1);
                samples.push(Sample {
                    flow: *index,
                    connection: number,
                    is_last: false,
                    tcp_info: found.tcp_info.clone(),
                });
                let tcp_info = found.tcp_info;
                running
                    .connections
                    .insert(found.cookie, Seen { number, tcp_info });
            }
            samples.extend(gone.into_values().map(|seen| Sample {
                flow: *index,
                connection: seen.number,
                is_last: true,
                tcp_info: seen.tcp_info,
            }));
        }
        Ok(samples)
    }
}

fn output_path(flow: &str, role: &str) -> String {
    format!("/{flow}-{role}.out")
}

fn make_devices() -> io::Result<()> {
    std::fs::create_dir_all("/dev")?;
    std::fs::create_dir_all("/tmp")?;
    mount("dev", "/dev", "tmpfs", MountFlags::empty(), None)?;
    for (name, major, minor) in DEVICES {
        let path = format!("/dev/{name}");
        mknodat(
            CWD,
            path,
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o666),
            makedev(major, minor),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_counts() {
        let path = std::env::temp_dir().join(format!("fairlane-output-{}", std::process::id()));
        std::fs::write(&path, "hello\nreceived 10\nreceived 20\nreceived 3").unwrap();
        let file = File::open(&path).unwrap();
        let unread = Vec::new();
        let mut output = Output { file, unread };
        assert_eq!(output.received().unwrap(), Some(20));
        assert_eq!(output.received().unwrap(), None);
        let mut more = File::options().append(true).open(&path).unwrap();
        io::Write::write_all(&mut more, b"0\nreceived much\n").unwrap();
        assert_eq!(output.received().unwrap(), Some(30));
        std::fs::remove_file(&path).unwrap();
    }
}
