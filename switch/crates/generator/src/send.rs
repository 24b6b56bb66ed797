// SPDX-License-Identifier: Apache-2.0
//! The sending end: applications of flows from one start, with samples of TCP_INFO, transfers and a summary.

use std::io;
use std::time::Duration;

use apps::{App, AppState, Chance};
use flows::socket::{self, SenderOptions};
use flows::{
    monotonic_ns, Connection, Datagrams, Ending, Event, Flows, Reactor, Source, TcpInfo, Transfer,
    Turn, World,
};
use rustix::event::epoll::EventFlags;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt;
use serde_json::{json, Map, Value};

use crate::options::{self, Tcp};
use crate::{local_name, name_of, next_sample, Writer};

const CONNECT_TIMEOUT_NS: u64 = 15_000_000_000;
/// How long nobody may listen at the other end: a receiver that was started beside takes a moment to be there.
const RECEIVER_TIMEOUT_NS: u64 = 5_000_000_000;
/// Between two attempts.
const RETRY_NS: u64 = 100_000_000;
/// Of `net.ipv4`: what a TCP sender depends on. The last one is of Linux 6.11.
const SYSCTLS: [&str; 10] = [
    "tcp_early_retrans",
    "tcp_ecn",
    "tcp_frto",
    "tcp_max_reordering",
    "tcp_no_metrics_save",
    "tcp_reordering",
    "tcp_sack",
    "tcp_slow_start_after_idle",
    "tcp_timestamps",
    "tcp_rto_min_us",
];

/// What the flows of a process do.
pub struct Plan {
    pub tcp: Tcp,
    pub app: App,
    pub chance: Option<options::Chance>,
    /// Each transfer opens its connection when it is asked for; else all are connected before the start.
    pub opens_at_start: bool,
}

impl Plan {
    /// An error is a sentence.
    pub fn check(self) -> Result<Plan, String> {
        let source = &self.tcp.source;
        if source.seconds_ns.is_none() && !matches!(self.app, App::Bytes(_)) {
            return Err("say how much: --bytes N, --seconds S or both".into());
        }
        let (names, flows) = (self.chance.as_ref().map(|c| c.names.len()), source.flows);
        match names {
            Some(names) if names != usize::from(flows) => {
                Err(format!("--names has {names} names for {flows} flows"))
            }
            _ => Ok(self),
        }
    }

    fn has_datagrams(&self) -> bool {
        matches!(self.app, App::CbrUdp(_))
    }

    /// True where each of many transfers has its own connection: then nobody wants samples of them.
    fn has_many(&self) -> bool {
        match &self.app {
            App::Bytes(app) => app.times > 1,
            app => matches!(app, App::Web(_)),
        }
    }

    /// Flow i has the i-th, round and round; None: the host's default.
    fn congestion_control(&self, flow: usize) -> Option<&str> {
        let names = &self.tcp.cc;
        Some(names.get(flow % names.len().max(1))?.as_str())
    }

    /// A socket of a flow, on its way to the sink.
    fn connect(&self, flow: usize) -> io::Result<OwnedFd> {
        let options = SenderOptions {
            congestion_control: self.congestion_control(flow),
            mss_bytes: self.tcp.mss,
        };
        let to = &self.tcp.source.to;
        let socket = socket::sender(socket::family_of(to), options)?;
        socket::connect(&socket, to).map_err(|error| self.not_connected(error))?;
        Ok(socket)
    }

    fn not_connected(&self, error: io::Error) -> io::Error {
        let to = self.tcp.source.to;
        let (address, port) = (to.ip(), to.port());
        let message = format!("cannot connect to {address} port {port}: {error}");
        io::Error::new(error.kind(), message)
    }

    /// All flows, connected; while nobody listens they try for `RECEIVER_TIMEOUT_NS`.
    fn connect_all(&self, signals: &OwnedFd) -> io::Result<Vec<OwnedFd>> {
        let patient_until = monotonic_ns() + RECEIVER_TIMEOUT_NS;
        loop {
            match self.try_connect_all(signals) {
                Err(error)
                    if error.kind() == io::ErrorKind::ConnectionRefused
                        && monotonic_ns() < patient_until =>
                {
                    wait(None, signals, RETRY_NS)?;
                }
                other => return other,
            }
        }
    }

    fn try_connect_all(&self, signals: &OwnedFd) -> io::Result<Vec<OwnedFd>> {
        let deadline = monotonic_ns() + CONNECT_TIMEOUT_NS;
        let sockets = (0..self.tcp.source.flows.into()).map(|flow| self.connect(flow));
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        for socket in &sockets {
            let left_ns = deadline.saturating_sub(monotonic_ns());
            if !wait(Some(socket), signals, left_ns)? {
                return Err(self.not_connected(Errno::TIMEDOUT.into()));
            }
            sockopt::socket_error(socket)?.map_err(|error| self.not_connected(error.into()))?;
        }
        Ok(sockets)
    }
}

/// Waits until a socket is connected or refused; false: it takes longer. An error when a signal comes.
fn wait(socket: Option<&OwnedFd>, signals: &OwnedFd, ns: u64) -> io::Result<bool> {
    let left = Timespec::try_from(Duration::from_nanos(ns)).map_err(io::Error::other)?;
    let mut both = vec![PollFd::new(signals, PollFlags::IN)];
    both.extend(socket.map(|socket| PollFd::new(socket, PollFlags::OUT)));
    poll(&mut both, Some(&left))?;
    match both[0].revents().is_empty() {
        true => Ok(both[1..].iter().any(|socket| !socket.revents().is_empty())),
        false => Err(io::Error::other("a signal came before it was connected")),
    }
}

/// This host, and what is written down of its flows.
struct Host<'a> {
    plan: &'a Plan,
    writer: Writer,
    /// A row a connection.
    rows: Vec<Value>,
    /// Flow and address of every connection.
    peers: Vec<Value>,
    finished: u64,
    /// Transfers that found no free port.
    not_opened: usize,
    /// The first one.
    error: String,
}

impl Host<'_> {
    /// What a connection has: that which it was opened with.
    fn congestion_control(&self, connection: &Connection) -> io::Result<String> {
        let found = sockopt::tcp_congestion(&connection.socket)?;
        match self.plan.congestion_control(connection.flow) {
            Some(wanted) if wanted != found => Err(io::Error::other(format!(
                "a socket uses '{found}', not '{wanted}'"
            ))),
            _ => Ok(found),
        }
    }

    /// Writes a sample; returns it.
    fn sample(&mut self, now: u64, connection: &Connection) -> io::Result<Value> {
        let info = socket::tcp_info(&connection.socket)?;
        let sample = json!({
            "t_ns": now,
            "flow": connection.flow,
            "cwnd": info.cwnd_packets(),
            "ssthresh": info.ssthresh_packets(),
            "srtt_us": info.srtt_us(),
            "rttvar_us": info.rttvar_us(),
            "min_rtt_us": info.min_rtt_us(),
            "rto_us": info.rto_us(),
            "reordering": info.reordering(),
            "retrans": info.retransmits(),
            "timeouts": info.timeouts(),
            "segments": info.data_segments_out(),
            "lost": info.lost(),
            "unacked": info.unacked(),
            "acked_bytes": connection.acked(&info),
            "ca_state": info.ca_state(),
            "cc": self.congestion_control(connection)?,
        });
        self.writer.write(&sample)?;
        Ok(sample)
    }

    fn add_peer(&mut self, flow: usize, socket: &OwnedFd) -> io::Result<()> {
        self.peers
            .push(json!({"flow": flow, "local": local_name(socket)?}));
        Ok(())
    }
}

impl World for Host<'_> {
    fn connect(&mut self, _: u64, flow: usize, _: &AppState) -> io::Result<Option<OwnedFd>> {
        match self.plan.connect(flow) {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                self.not_opened += 1;
                Ok(None)
            }
            socket => socket.map(Some),
        }
    }

    fn connected(&mut self, connection: &Connection) -> io::Result<()> {
        self.congestion_control(connection)?;
        self.add_peer(connection.flow, &connection.socket)
    }

    fn datagram_socket(&mut self, flow: usize) -> io::Result<OwnedFd> {
        let socket = socket::udp_socket(None, Some(self.plan.tcp.source.to))?;
        self.add_peer(flow, &socket)?;
        Ok(socket)
    }

    fn transferred(&mut self, transfer: &Transfer, info: &TcpInfo<Vec<u8>>) -> io::Result<()> {
        let mut record = json!({
            "flow": transfer.flow,
            "start_ns": transfer.start_ns,
            "end_ns": transfer.end_ns,
            "bytes": transfer.bytes,
            "retransmits": transfer.retransmits,
            "srtt_us": info.srtt_us(),
        });
        match self.plan.app {
            App::Interactive(_) | App::Video(_) => {}
            _ if !self.plan.opens_at_start => return Ok(()),
            _ => {
                record["first_ns"] = transfer.first_sent_ns.into();
                record["packets"] = transfer.segments.into();
                record["timeouts"] = info.timeouts().into();
            }
        }
        self.finished += u64::from(transfer.is_finished);
        self.writer.write(&match transfer.is_finished {
            true => json!({ "transfer": record }),
            false => json!({ "unfinished": record }),
        })
    }

    fn closed(&mut self, now: u64, connection: &Connection, ending: Ending) -> io::Result<()> {
        let (error, is_over) = match &ending {
            Ending::Finished => (String::new(), true),
            Ending::Stopped => (String::new(), false),
            Ending::ClosedByPeer => ("the sink closed the connection".into(), true),
            Ending::Broken(error) => (error.to_string(), true),
        };
        if self.error.is_empty() {
            self.error.clone_from(&error);
        }
        if self.plan.has_many() {
            return Ok(());
        }
        let mut row = self.sample(now, connection)?;
        row["local"] = local_name(&connection.socket)?.into();
        row["start_ns"] = connection.asked_ns.into();
        row["finished_ns"] = is_over.then_some(now).into();
        row["elapsed_s"] = (now.saturating_sub(connection.asked_ns) as f64 / 1e9).into();
        row["written_bytes"] = connection.written.into();
        row["complete"] = matches!(ending, Ending::Finished).into();
        row["error"] = error.into();
        self.rows.push(row);
        Ok(())
    }
}

/// Runs the sending end; false: a flow broke in mid-run. An error is a sentence.
pub fn run(plan: &Plan) -> Result<bool, String> {
    let writer = Writer::new(&plan.tcp.source.out)?;
    let host = Host {
        plan,
        writer,
        rows: Vec::new(),
        peers: Vec::new(),
        finished: 0,
        not_opened: 0,
        error: String::new(),
    };
    send(plan, host).map_err(|error| error.to_string())
}

fn send(plan: &Plan, mut host: Host<'_>) -> io::Result<bool> {
    let source = &plan.tcp.source;
    let signals = socket::stop_signals()?;
    let is_connected_first = !plan.opens_at_start && !plan.has_datagrams();
    let sockets = match is_connected_first {
        true => plan.connect_all(&signals)?,
        false => Vec::new(),
    };
    let now = monotonic_ns();
    let start_ns = source.start_at_ns.unwrap_or(now).max(now);
    let end_ns = source.seconds_ns.map(|seconds| start_ns + seconds);
    let apps = (0..source.flows.into()).map(|flow: usize| {
        let chance = plan.chance.as_ref();
        let (seed, name) = chance.map_or((0, ""), |c| (c.seed, c.names[flow].as_str()));
        (plan.app.clone(), start_ns, Chance::of_flow(seed, name).0)
    });
    let mut flows = Flows::new(Reactor::new(0)?, apps);
    flows
        .reactor
        .watch(&signals, Source::Signal, EventFlags::IN)?;
    for (flow, socket) in sockets.into_iter().enumerate() {
        flows.adopt(start_ns, flow, socket)?;
    }
    flows.reactor.at(start_ns, Event::Sample);
    if let Some(end_ns) = end_ns {
        flows.reactor.at(end_ns, Event::End);
    }
    let mut is_stopped = false;
    while !is_stopped
        && (flows.connections().next().is_some() || !is_connected_first && flows.has_steps())
    {
        match flows.reactor.wait()? {
            Turn::Due(_, Event::End) => break,
            Turn::Due(at, Event::Step(_)) if end_ns.is_some_and(|end| at >= end) => {}
            Turn::Due(at, Event::Step(flow)) => flows.step(&mut host, at, flow)?,
            Turn::Due(at, _) => {
                let now = monotonic_ns();
                let open = flows.connections().filter(|each| each.is_connected);
                for connection in open.filter(|_| !plan.has_many()) {
                    host.sample(now, connection)?;
                }
                let next = next_sample(at, now, source.sample_ms);
                flows.reactor.at(next, Event::Sample);
            }
            Turn::Ready(ready) => {
                for (source, flags) in ready {
                    match source {
                        Source::Signal => is_stopped = true,
                        Source::Sender(id) => flows.serve(&mut host, monotonic_ns(), id, flags)?,
                        _ => {}
                    }
                }
            }
        }
    }
    let end_ns = monotonic_ns();
    let unfinished = flows.connections().filter(|_| plan.opens_at_start).count();
    flows.report_unfinished(&mut host, end_ns)?;
    flows.stop_all(&mut host, end_ns)?;
    host.rows.sort_by_key(|row| row["flow"].as_u64());
    let count = |of: fn(&Datagrams) -> u64| flows.datagrams().map(of).sum::<u64>();
    host.writer.summary(json!({
        "to": name_of(source.to),
        "start_ns": start_ns,
        "end_ns": end_ns,
        "late_ns": source.start_at_ns.map_or(0, |asked| start_ns.saturating_sub(asked)),
        "stopped_by_signal": is_stopped,
        "sysctls": sysctls(),
        "finished": host.finished,
        "unfinished": unfinished + host.not_opened,
        "sent": count(|datagrams| datagrams.sent),
        "refused": count(|datagrams| datagrams.refused),
        "error": host.error,
        "peers": host.peers,
        "flows": host.rows,
    }))?;
    Ok(host.error.is_empty())
}

/// Those that this kernel has.
fn sysctls() -> Map<String, Value> {
    let value = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
        text.split_whitespace().next()?.parse::<i64>().ok()
    };
    let found = SYSCTLS.iter();
    found
        .filter_map(|name| Some((name.to_string(), value(name)?.into())))
        .collect()
}
