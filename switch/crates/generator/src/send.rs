// SPDX-License-Identifier: Apache-2.0
//! The sending end: applications of flows from one start, with samples of TCP_INFO, transfers and a summary.

use crate::records::{name_of, next_sample, Writer};
use apps::{App, AppState, Chance};
use flows::socket::{self, SenderOptions};
use flows::{
    monotonic_ns, Connection, Ending, Event, Flows, Reactor, Source, TcpInfo, Transfer, Turn, World,
};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, sockopt};
use serde_json::{json, Map, Value};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

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

/// What is reported of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    Nothing,
    /// Each on its own connection, which is opened when it is asked for.
    Files,
    /// Messages on one connection.
    Messages,
}

/// What the flows of a process do.
pub struct Plan {
    pub to: SocketAddr,
    pub seconds_ns: Option<u64>,
    pub flows: usize,
    pub sample_ns: u64,
    pub out: String,
    /// CLOCK_MONOTONIC.
    pub start_at_ns: Option<u64>,
    pub stagger_ns: u64,
    pub app: App,
    pub report: Report,
    /// Of chance, with the names of the flows.
    pub seed: u64,
    pub names: Vec<String>,
    /// Kernel names: flow i has the i-th, round and round; empty: the host's default.
    pub congestion_controls: Vec<String>,
    pub mss_bytes: Option<u32>,
    pub bind: Option<IpAddr>,
    pub connect_timeout_ns: u64,
    pub unsent_bytes: u32,
}

impl Plan {
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

    fn congestion_control(&self, flow: usize) -> Option<&str> {
        let names = &self.congestion_controls;
        Some(names.get(flow % names.len().max(1))?.as_str())
    }

    /// A socket of a flow, on its way to the sink.
    fn connect(&self, flow: usize) -> io::Result<OwnedFd> {
        let options = SenderOptions {
            congestion_control: self.congestion_control(flow),
            mss_bytes: self.mss_bytes,
            unsent_bytes: self.unsent_bytes,
        };
        let socket = socket::sender(socket::family_of(&self.to), options)?;
        if let Some(address) = self.bind {
            net::bind(&socket, &SocketAddr::new(address, 0))?;
        }
        socket::connect(&socket, &self.to).map_err(|error| self.not_connected(error))?;
        Ok(socket)
    }

    fn not_connected(&self, error: io::Error) -> io::Error {
        let (address, port) = (self.to.ip(), self.to.port());
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
        let deadline = monotonic_ns() + self.connect_timeout_ns;
        let sockets = (0..self.flows).map(|flow| self.connect(flow));
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
    /// By flow.
    rows: Vec<Value>,
    /// Flow and address of every connection.
    peers: Vec<Value>,
    finished: u64,
    /// The first one.
    error: String,
}

impl Host<'_> {
    /// A connection has what it was opened with.
    fn check(&self, connection: &Connection) -> io::Result<String> {
        let found = sockopt::tcp_congestion(&connection.socket)?;
        match self.plan.congestion_control(connection.flow) {
            Some(wanted) if wanted != found => Err(io::Error::other(format!(
                "a socket uses '{found}', not '{wanted}'"
            ))),
            _ => Ok(found),
        }
    }

    fn sample(&mut self, now: u64, connection: &Connection) -> io::Result<()> {
        let info = socket::tcp_info(&connection.socket)?;
        self.writer.write(&json!({
            "t_ns": now,
            "flow": connection.flow,
            "cwnd": info.cwnd_packets(),
            "ssthresh": info.ssthresh_packets(),
            "srtt_us": info.srtt_us(),
            "rttvar_us": info.rttvar_us(),
            "min_rtt_us": info.min_rtt_us(),
            "rto_us": info.rto_us(),
            "retrans": info.retransmits(),
            "timeouts": info.timeouts(),
            "segments": info.data_segments_out(),
            "lost": info.lost(),
            "unacked": info.unacked(),
            "delivered_bytes": u64::from(info.delivered()) * u64::from(info.mss_bytes()),
            "acked_bytes": connection.acked(&info),
            "ca_state": info.ca_state(),
            "cc": self.check(connection)?,
        }))
    }

    /// A connection's row of the summary.
    fn row(&self, now: u64, connection: &Connection, ending: &Ending) -> io::Result<Value> {
        let info = socket::tcp_info(&connection.socket)?;
        let acked = connection.acked(&info);
        let elapsed_s = (now.saturating_sub(connection.asked_ns).max(1)) as f64 / 1e9;
        let is_stopped = matches!(ending, Ending::Stopped);
        Ok(json!({
            "flow": connection.flow,
            "cc": self.check(connection)?,
            "local": self.local(connection.flow),
            "start_ns": connection.asked_ns,
            "finished_ns": (!is_stopped).then_some(now),
            "elapsed_s": elapsed_s,
            "written_bytes": connection.written,
            "acked_bytes": acked,
            "acked_bps": acked as f64 * 8.0 / elapsed_s,
            "mss": info.mss_bytes(),
            "retrans": info.retransmits(),
            "data_segs_out": info.data_segments_out(),
            "min_rtt_us": info.min_rtt_us(),
            "reordering": info.reordering(),
            "rwnd_limited_us": info.window_limited_us(),
            "complete": matches!(ending, Ending::Finished),
            "error": error_of(ending),
        }))
    }

    /// Address of a flow's last connection.
    fn local(&self, flow: usize) -> &Value {
        let mut peers = self.peers.iter().rev();
        let found = peers.find(|peer| peer["flow"] == flow);
        found.map_or(&Value::Null, |peer| &peer["local"])
    }

    fn add_peer(&mut self, flow: usize, socket: &OwnedFd) -> io::Result<()> {
        let local = SocketAddr::try_from(net::getsockname(socket)?)?;
        self.peers
            .push(json!({"flow": flow, "local": name_of(local)}));
        Ok(())
    }
}

impl World for Host<'_> {
    fn connect(&mut self, _: u64, flow: usize, _: &AppState) -> io::Result<Option<OwnedFd>> {
        self.plan.connect(flow).map(Some)
    }

    fn connected(&mut self, connection: &Connection) -> io::Result<()> {
        self.check(connection)?;
        self.add_peer(connection.flow, &connection.socket)
    }

    fn datagram_socket(&mut self, flow: usize) -> io::Result<OwnedFd> {
        let any = match self.plan.to {
            SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        };
        let socket = socket::udp_socket(any)?;
        net::connect(&socket, &self.plan.to)?;
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
        match self.plan.report {
            Report::Nothing => return Ok(()),
            Report::Messages => {}
            Report::Files => {
                record["first_ns"] = transfer.first_sent_ns.into();
                record["packets"] = transfer.segments.into();
                record["timeouts"] = info.timeouts().into();
            }
        }
        let key = match transfer.is_finished {
            true => "transfer",
            false => "unfinished",
        };
        self.finished += u64::from(transfer.is_finished);
        let record = Map::from_iter([(key.to_owned(), record)]);
        self.writer.write(&record.into())
    }

    fn closed(&mut self, now: u64, connection: &Connection, ending: Ending) -> io::Result<()> {
        let error = error_of(&ending);
        if self.error.is_empty() {
            self.error = error;
        }
        if self.plan.has_many() {
            return Ok(());
        }
        if connection.is_connected {
            self.sample(now, connection)?;
        }
        let row = self.row(now, connection, &ending)?;
        self.rows.push(row);
        Ok(())
    }

    fn run(&mut self, _: u64, _: usize) -> io::Result<()> {
        Ok(())
    }
}

fn error_of(ending: &Ending) -> String {
    match ending {
        Ending::Finished | Ending::Stopped => String::new(),
        Ending::ClosedByPeer => "the sink closed the connection".into(),
        Ending::Broken(error) => error.to_string(),
    }
}

/// Runs the sending end; false: a flow broke in mid-run. An error is a sentence.
pub fn run(plan: &Plan) -> Result<bool, String> {
    let writer = Writer::new(&plan.out)?;
    let host = Host {
        plan,
        writer,
        rows: Vec::new(),
        peers: Vec::new(),
        finished: 0,
        error: String::new(),
    };
    send(plan, host).map_err(|error| error.to_string())
}

fn send(plan: &Plan, mut host: Host<'_>) -> io::Result<bool> {
    let signals = socket::stop_signals()?;
    let connects_first = plan.report != Report::Files && !plan.has_datagrams();
    let sockets = match connects_first {
        true => plan.connect_all(&signals)?,
        false => Vec::new(),
    };
    let now = monotonic_ns();
    let start_ns = plan.start_at_ns.map_or(now, |start| start.max(now));
    let end_ns = plan.seconds_ns.map(|seconds| start_ns + seconds);
    let apps = (0..plan.flows).map(|flow| {
        let name = plan.names.get(flow).map_or("", String::as_str);
        let start_ns = start_ns + flow as u64 * plan.stagger_ns;
        let (chance, _) = Chance::of_flow(plan.seed, name);
        (plan.app.clone(), start_ns, chance)
    });
    let mut flows = Flows::new(Reactor::new(0)?, apps);
    flows.reactor.watch(
        &signals,
        Source::Signal,
        rustix::event::epoll::EventFlags::IN,
    )?;
    for (flow, socket) in sockets.into_iter().enumerate() {
        let asked_ns = start_ns + flow as u64 * plan.stagger_ns;
        flows.adopt(asked_ns, flow, socket)?;
    }
    flows.reactor.at(start_ns, Event::Sample);
    if let Some(end_ns) = end_ns {
        flows.reactor.at(end_ns, Event::End);
    }
    let is_over = |flows: &Flows| {
        flows.connections().next().is_none() && (connects_first || !flows.has_steps())
    };
    let mut is_stopped = false;
    while !is_stopped && !is_over(&flows) {
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
                let next = next_sample(at, now, plan.sample_ns);
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
    let unfinished = flows.connections().filter(|_| plan.report == Report::Files);
    let unfinished = unfinished.count();
    flows.report_unfinished(&mut host, end_ns)?;
    flows.stop_all(&mut host, end_ns)?;
    host.rows.sort_by_key(|row| row["flow"].as_u64());
    let mut summary = json!({
        "to": name_of(plan.to),
        "start_ns": start_ns,
        "end_ns": end_ns,
        "late_ns": plan.start_at_ns.map_or(0, |asked| start_ns.saturating_sub(asked)),
        "stopped_by_signal": is_stopped,
        "sysctls": sysctls(),
        "finished": host.finished,
        "unfinished": unfinished,
        "error": host.error,
        "peers": host.peers,
        "flows": host.rows,
    });
    if plan.has_datagrams() {
        summary["sent"] = flows.datagrams().map(|each| each.sent).sum::<u64>().into();
        summary["refused"] = flows
            .datagrams()
            .map(|each| each.refused)
            .sum::<u64>()
            .into();
    }
    host.writer.summary(summary)?;
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
