// SPDX-License-Identifier: Apache-2.0
//! What the receivers have read, and what is written down: `events`, `samples`, `transfers`, `counters`.

use crate::network::Namespace;
use crate::programs::Programs;
use flows::socket::{tcp_info, tcp_option, throw_away};
use flows::{Connection, Flows, Transfer};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use uml::plan::{Host, Plan, SAMPLE_NUMBERS};

/// Which host programs a host has, bits, and what they have counted (hosts/kernel/programs.c).
const PROGRAMS: &str = "net.ipv4.fairlane_programs";
const COUNTERS: &str = "net.ipv4.fairlane_counters";

/// The receiver's end of a connection.
struct Receiver {
    flow: usize,
    socket: OwnedFd,
    /// The kernel throws away what comes.
    is_sink: bool,
    read: u64,
}

impl Receiver {
    /// What a sink has read is what has come.
    fn count(&mut self) -> io::Result<()> {
        if self.is_sink {
            self.read = tcp_info(&self.socket)?.bytes_received();
        }
        Ok(())
    }
}

/// The files, and what goes into them.
pub struct Records<'a> {
    plan: &'a Plan,
    namespaces: &'a [Namespace],
    pub programs: Programs,
    receivers: BTreeMap<u64, Receiver>,
    /// By flow: read on connections that are closed, and datagrams that were sent.
    read: Vec<u64>,
    sent_datagrams: Vec<u64>,
    /// As `uml::plan::SAMPLE_NUMBERS` says; a sample is in the file when the instant that it is for comes.
    samples: BufWriter<File>,
    transfers: BufWriter<File>,
    /// A line an event: instant, flow, what, value.
    events: BufWriter<File>,
}

impl<'a> Records<'a> {
    pub fn new(plan: &'a Plan, namespaces: &'a [Namespace]) -> io::Result<Records<'a>> {
        let file = |path: &str| File::create(path).map(BufWriter::new);
        Ok(Records {
            plan,
            namespaces,
            programs: Programs::new(plan, namespaces)?,
            receivers: BTreeMap::new(),
            read: vec![0; plan.flows.len()],
            sent_datagrams: vec![0; plan.flows.len()],
            samples: file("/samples")?,
            transfers: file("/transfers")?,
            events: file("/events")?,
        })
    }

    pub fn accept(
        &mut self,
        id: u64,
        flow: usize,
        socket: OwnedFd,
        is_sink: bool,
    ) -> io::Result<()> {
        if is_sink {
            throw_away(&socket)?;
        }
        let receiver = Receiver {
            flow,
            socket,
            is_sink,
            read: 0,
        };
        self.receivers.insert(id, receiver);
        Ok(())
    }

    /// Whose it is, and whether the kernel throws away what comes.
    pub fn receiver(&self, id: u64) -> Option<(usize, bool, &OwnedFd)> {
        let receiver = self.receivers.get(&id)?;
        Some((receiver.flow, receiver.is_sink, &receiver.socket))
    }

    /// Reads what has come.
    pub fn read(&mut self, now: u64, id: u64, buffer: &mut [u8]) -> io::Result<()> {
        let Some(receiver) = self.receivers.get_mut(&id) else {
            return Ok(());
        };
        let is_at_end = loop {
            match rustix::io::read(&receiver.socket, &mut *buffer) {
                Ok(0) | Err(Errno::CONNRESET) => break true,
                Ok(read) => receiver.read += read as u64,
                Err(Errno::AGAIN) => break false,
                Err(error) => return Err(error.into()),
            }
        };
        receiver.count()?;
        if !is_at_end {
            return Ok(());
        }
        let (flow, read) = (receiver.flow, receiver.read);
        self.receivers.remove(&id);
        self.add_read(flow, read);
        self.log(now, flow, "received", self.read[flow])
    }

    pub fn add_read(&mut self, flow: usize, bytes: u64) {
        self.read[flow] += bytes;
    }

    /// What a flow's receiver has read.
    fn read_of(&self, flow: usize) -> u64 {
        let open = self.receivers.values();
        let open = open.filter(|receiver| receiver.flow == flow);
        self.read[flow] + open.map(|receiver| receiver.read).sum::<u64>()
    }

    pub fn log(&mut self, at: u64, index: usize, what: &str, value: u64) -> io::Result<()> {
        let name = &self.plan.flows[index].name;
        writeln!(self.events, "{at} {name} {what} {value}")
    }

    pub fn transfer(&mut self, transfer: &Transfer) -> io::Result<()> {
        serde_json::to_writer(&mut self.transfers, transfer)?;
        self.transfers.write_all(b"\n")
    }

    /// Programs that have ended.
    fn log_ended(&mut self, now: u64) -> io::Result<()> {
        let ended = self.programs.take_ended();
        ended
            .into_iter()
            .try_for_each(|(index, code)| self.log(now, index, "exit", code))
    }

    /// Nothing of what was written stays in memory.
    pub fn flush_all(&mut self, now: u64) -> io::Result<()> {
        self.log_ended(now)?;
        self.samples.flush()?;
        self.transfers.flush()?;
        self.events.flush()
    }

    pub fn sample_all(&mut self, now: u64, flows: &Flows) -> io::Result<()> {
        self.receivers.values_mut().try_for_each(Receiver::count)?;
        for connection in flows.connections() {
            self.sample(now, connection, false)?;
        }
        for (index, datagrams) in flows.datagrams().enumerate() {
            if datagrams.socket.is_some() {
                self.sent_datagrams[index] = datagrams.sent + datagrams.refused;
                self.write_sample(now, (index, 0), false, [0; 2], &[])?;
            }
        }
        for (index, bytes) in self.programs.received()? {
            self.read[index] = bytes;
            self.write_sample(now, (index, 0), false, [0; 2], &[])?;
        }
        for sample in self.programs.sample(self.plan, self.namespaces)? {
            let whose = (sample.flow, sample.connection);
            self.write_sample(now, whose, sample.is_last, [0; 2], &sample.tcp_info)?;
        }
        self.flush_all(now)?;
        self.write_counters()
    }

    pub fn sample(&mut self, now: u64, connection: &Connection, is_last: bool) -> io::Result<()> {
        let info = tcp_info(&connection.socket)?;
        let undone = undone(&connection.socket)?;
        let whose = (connection.flow, connection.number);
        self.write_sample(now, whose, is_last, undone, info.as_bytes())
    }

    /// `whose`: flow and connection. `undone`: timeouts, and bandwidths, as `undone` gives them.
    fn write_sample(
        &mut self,
        now: u64,
        whose: (usize, u64),
        is_last: bool,
        undone: [u32; 2],
        info: &[u8],
    ) -> io::Result<()> {
        let numbers: [u64; SAMPLE_NUMBERS] = [
            now,
            whose.0 as u64,
            whose.1,
            self.read_of(whose.0),
            self.sent_datagrams[whose.0],
            is_last.into(),
            undone[0].into(),
            undone[1].into(),
            info.len() as u64,
        ];
        for number in numbers {
            self.samples.write_all(&number.to_ne_bytes())?;
        }
        self.samples.write_all(info)
    }

    pub fn finish(mut self, at: u64) -> io::Result<()> {
        self.receivers.values_mut().try_for_each(Receiver::count)?;
        let open = self.receivers.values().map(|receiver| receiver.flow);
        let open: BTreeSet<usize> = open.collect();
        for flow in open {
            self.log(at, flow, "received", self.read_of(flow))?;
        }
        self.flush_all(at)
    }

    /// What the host programs have counted (hosts/kernel/programs.c): a line a host that has some: its name, the bits, the numbers.
    fn write_counters(&self) -> io::Result<()> {
        let mut lines = String::new();
        let hosts = self.plan.hosts.iter().zip(self.namespaces);
        for (host, namespace) in hosts.filter(|(host, _)| has_programs(host)) {
            namespace.enter()?;
            let (programs, counters) = (read_sysctl(PROGRAMS)?, read_sysctl(COUNTERS)?);
            lines += &format!(
                "{} {} {}\n",
                host.name,
                programs.trim_end(),
                counters.trim_end()
            );
        }
        match lines.is_empty() {
            true => Ok(()),
            false => std::fs::write("/counters", lines),
        }
    }
}

/// Timeouts that a connection's sender has undone, and the bandwidth (packets/s) that it had estimated at each, summed: struct
/// fl_undone of hosts/bpf/tcp_core.bpf.h. 0: the sender is not one of hosts/cc that estimates a bandwidth.
fn undone(socket: &OwnedFd) -> io::Result<[u32; 2]> {
    const TCP_CC_INFO: libc::c_int = 26;
    const CC_INFO_BYTES_MAX: usize = 64;
    let info = tcp_option(socket, TCP_CC_INFO, CC_INFO_BYTES_MAX)?;
    // Those of Linux's own senders are longer.
    Ok(match <[u8; 8]>::try_from(info) {
        Ok([a, b, c, d, e, f, g, h]) => [
            u32::from_ne_bytes([a, b, c, d]),
            u32::from_ne_bytes([e, f, g, h]),
        ],
        Err(_) => [0; 2],
    })
}

/// In one read: what gives several numbers has nothing for a second one.
fn read_sysctl(key: &str) -> io::Result<String> {
    let mut text = vec![0; 4096];
    let len = File::open(format!("/proc/sys/{}", key.replace('.', "/")))?.read(&mut text)?;
    text.truncate(len);
    String::from_utf8(text).map_err(io::Error::other)
}

fn has_programs(host: &Host) -> bool {
    host.sysctls.iter().any(|(name, _)| name == PROGRAMS)
}
