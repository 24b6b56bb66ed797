// SPDX-License-Identifier: Apache-2.0
//! The flows: one loop for all hosts, since a socket stays in the namespace in which it was made. CPU takes no virtual time.

use crate::connection::{Connection, Pending, GREEDY};
use crate::network::Namespace;
use crate::programs::Programs;
use crate::sockets::{
    listen, next_acknowledged, report_acknowledgments, reset_on_close, set_tcp_option, tcp_info,
    tcp_socket, throw_away, udp_socket, undone, Undone, TCP_NOTSENT_LOWAT,
};
use apps::{App, AppState, Chance, Close, LaterPorts, Step, Work};
use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, sockopt, SocketFlags};
use rustix::time::{
    timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags,
    Timespec,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use uml::plan::{Flow, Host, Plan, Transfer, SAMPLE_EARLY_NS, SAMPLE_NUMBERS};
use uml::tcp_info::TcpInfo;

/// Written and read at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// What a sender's socket holds that was not sent yet, as of `fairlane-traffic`.
const UNSENT_BYTES: u32 = 128 * 1024;
/// Which host programs a host has, bits, and what they have counted (hosts/kernel/programs.c).
const PROGRAMS: &str = "net.ipv4.fairlane_programs";
const COUNTERS: &str = "net.ipv4.fairlane_counters";
const NS_PER_S: u64 = 1_000_000_000;

/// What happens at an instant, in this order among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The application of a flow is due.
    Step(usize),
    Stop(usize),
    /// A receiver reads what has waited.
    Read(u64),
    Sample,
    /// What is under way is written down.
    Unfinished,
    End,
}

/// What epoll reports of.
#[derive(Clone, Copy)]
enum Source {
    Timer,
    Listener(u64),
    Sender(u64),
    Receiver(u64),
    Datagrams(u64),
}

impl Source {
    const KINDS: [fn(u64) -> Source; 5] = [
        |_| Source::Timer,
        Source::Listener,
        Source::Sender,
        Source::Receiver,
        Source::Datagrams,
    ];

    fn data(self) -> epoll::EventData {
        let (kind, id) = match self {
            Source::Timer => (0, 0),
            Source::Listener(id) => (1, id),
            Source::Sender(id) => (2, id),
            Source::Receiver(id) => (3, id),
            Source::Datagrams(id) => (4, id),
        };
        epoll::EventData::new_u64(id * Source::KINDS.len() as u64 + kind)
    }

    fn new(data: epoll::EventData) -> Source {
        let kinds = Source::KINDS.len() as u64;
        Source::KINDS[(data.u64() % kinds) as usize](data.u64() / kinds)
    }
}

/// A flow's application, and what it has done.
struct State {
    app: AppState,
    chance: Chance,
    later_ports: LaterPorts,
    /// The connection in use (the latest one, where each transfer has its own).
    current: Option<u64>,
    connections: u64,
    /// A sender of datagrams.
    datagrams: Option<OwnedFd>,
    sent_datagrams: u64,
    read: u64,
}

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
            let info = tcp_info(&self.socket)?;
            let info = TcpInfo::new(&info).ok_or(Errno::INVAL)?;
            self.read = info.bytes_received();
        }
        Ok(())
    }
}

/// All flows of a plan.
pub struct Traffic<'a> {
    plan: &'a Plan,
    namespaces: &'a [Namespace],
    epoll: OwnedFd,
    timer: OwnedFd,
    calendar: BTreeSet<(u64, Event)>,
    states: Vec<State>,
    programs: Programs,
    listeners: Vec<OwnedFd>,
    datagram_sinks: Vec<OwnedFd>,
    /// By a number that none has twice: an event of one that is closed finds nothing.
    connections: BTreeMap<u64, Connection>,
    receivers: BTreeMap<u64, Receiver>,
    next_id: u64,
    /// Whose a sending end is.
    flows: BTreeMap<SocketAddrV4, usize>,
    buffer: Vec<u8>,
    /// As `uml::plan::SAMPLE_NUMBERS` says; a sample is in the file when the instant that it is for comes.
    samples: BufWriter<File>,
    transfers: BufWriter<File>,
    /// A line an event: instant, flow, what, value.
    events: BufWriter<File>,
}

impl<'a> Traffic<'a> {
    /// Listens for every flow.
    pub fn new(plan: &'a Plan, namespaces: &'a [Namespace]) -> io::Result<Traffic<'a>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let state = |flow: &Flow| State {
            app: AppState::new(flow.app.clone(), flow.start_ns),
            chance: Chance::of_flow(plan.seed, &flow.name).0,
            later_ports: LaterPorts::new(flow.place),
            current: None,
            connections: 0,
            datagrams: None,
            sent_datagrams: 0,
            read: 0,
        };
        let file = |path: &str| File::create(path).map(BufWriter::new);
        let mut traffic = Traffic {
            plan,
            namespaces,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            calendar: BTreeSet::new(),
            states: plan.flows.iter().map(state).collect(),
            programs: Programs::new(plan, namespaces)?,
            listeners: Vec::new(),
            datagram_sinks: Vec::new(),
            connections: BTreeMap::new(),
            receivers: BTreeMap::new(),
            next_id: 0,
            flows: BTreeMap::new(),
            buffer: vec![0; BUFFER_BYTES],
            samples: file("/samples")?,
            transfers: file("/transfers")?,
            events: file("/events")?,
        };
        traffic.watch(&traffic.timer, Source::Timer, epoll::EventFlags::IN)?;
        for (index, flow) in plan.flows.iter().enumerate() {
            traffic.calendar.insert((flow.start_ns, Event::Step(index)));
            if let Some(stop) = flow.stop_ns {
                traffic.calendar.insert((stop, Event::Stop(index)));
            }
            traffic.add_sink(index)?;
        }
        if let Some(period) = plan.sample_ns {
            let first = period.saturating_sub(SAMPLE_EARLY_NS);
            traffic.calendar.insert((first, Event::Sample));
        }
        let last = plan.end_ns.saturating_sub(SAMPLE_EARLY_NS);
        traffic.calendar.insert((last, Event::Unfinished));
        traffic.calendar.insert((plan.end_ns, Event::End));
        Ok(traffic)
    }

    /// What takes a flow's connections or datagrams. Flows to one port of a host share it, and so its options.
    fn add_sink(&mut self, index: usize) -> io::Result<()> {
        let plan = self.plan;
        let flow = &plan.flows[index];
        if matches!(flow.app, App::Command(_)) {
            return Ok(()); // its own program
        }
        let is_udp = self.states[index].app.is_udp();
        let others = plan.flows[..index].iter().enumerate();
        let mut at_its_port = others.filter(|(place, other)| {
            (other.to, other.to_port) == (flow.to, flow.to_port)
                && !matches!(other.app, App::Command(_))
                && self.states[*place].app.is_udp() == is_udp
        });
        if let Some((_, other)) = at_its_port.next() {
            if listener_options(other) != listener_options(flow) {
                return Err(io::Error::other(format!(
                    "flows {} and {} want different options of one listener; give one another port",
                    other.name, flow.name
                )));
            }
            return Ok(());
        }
        self.namespaces[flow.to].enter()?;
        if is_udp {
            let sink = udp_socket(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, flow.to_port))?;
            let id = self.datagram_sinks.len() as u64;
            self.watch(&sink, Source::Datagrams(id), epoll::EventFlags::IN)?;
            self.datagram_sinks.push(sink);
            return Ok(());
        }
        let listener = listen(flow.to_port, |listener| {
            if let Some(name) = &flow.congestion_control {
                sockopt::set_tcp_congestion(listener, name)?; // a receiver has its half of DCTCP
            }
            if let Some(bytes) = flow.mss_bytes {
                set_tcp_option(listener, libc::TCP_MAXSEG, bytes)?;
            }
            if let Some(bytes) = flow.receive_window_bytes {
                set_tcp_option(listener, libc::TCP_WINDOW_CLAMP, bytes)?;
                if flow.read_interval_ns > 0 {
                    // else what waits would not shut the window: the buffer is larger than the clamp
                    sockopt::set_socket_recv_buffer_size(listener, bytes as usize)?;
                }
            }
            Ok(())
        })?;
        let id = self.listeners.len() as u64;
        self.watch(&listener, Source::Listener(id), epoll::EventFlags::IN)?;
        self.listeners.push(listener);
        Ok(())
    }

    /// Until the end of the plan.
    pub fn run(mut self) -> io::Result<()> {
        while let Some(&(at, event)) = self.calendar.first() {
            if !self.wait_until(at)? {
                continue;
            }
            self.calendar.pop_first();
            match event {
                Event::Step(flow) => self.step(at, flow)?,
                Event::Stop(flow) => self.stop(at, flow)?,
                Event::Read(id) => self.read_late(at, id)?,
                Event::Sample => {
                    self.sample_all(at)?;
                    let next = at + self.plan.sample_ns.unwrap_or(u64::MAX);
                    self.calendar.insert((next, Event::Sample));
                }
                Event::Unfinished => self.write_unfinished(at)?,
                Event::End => return self.finish(at),
            }
        }
        Ok(())
    }

    /// Serves the sockets until an instant of the experiment; false: until an earlier one has come into the calendar.
    fn wait_until(&mut self, at: u64) -> io::Result<bool> {
        let instant = self.plan.start_ns + at;
        let value = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: (instant / NS_PER_S) as i64,
                tv_nsec: (instant % NS_PER_S) as i64,
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value)?;
        loop {
            let mut ready = Vec::with_capacity(64);
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut ready),
                None,
            ) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let mut is_due = false;
            for event in ready {
                let source = Source::new(event.data);
                let now = match source {
                    Source::Timer => at,
                    _ => self.now(),
                };
                match source {
                    Source::Timer => is_due = true, // what sets it anew clears it
                    Source::Listener(id) => self.accept(id)?,
                    Source::Sender(id) => self.serve_sender(now, id, event.flags)?,
                    Source::Receiver(id) => self.serve_receiver(now, id, event.flags)?,
                    Source::Datagrams(id) => self.read_datagrams(id)?,
                }
            }
            if is_due || self.calendar.first().is_some_and(|(first, _)| *first < at) {
                return Ok(is_due);
            }
        }
    }

    fn watch(&self, socket: impl AsFd, source: Source, flags: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, source.data(), flags)?)
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    // ---- applications -------------------------------------------------------------------------------------

    fn step(&mut self, now: u64, index: usize) -> io::Result<()> {
        let flow = &self.plan.flows[index];
        if flow.stop_ns.is_some_and(|stop| stop <= now) {
            return Ok(());
        }
        let state = &mut self.states[index];
        let (step, next) = state.app.step(now, &mut state.chance);
        if let Some(next) = next {
            self.calendar.insert((next, Event::Step(index)));
        }
        let current = self.states[index].current;
        match step {
            Step::Nothing => Ok(()),
            Step::Run => {
                self.log(now, index, "start", 0)?;
                self.programs.run(self.plan, index, self.namespaces)
            }
            Step::Datagram(bytes) => self.send_datagram(index, bytes),
            Step::Open { work, then_close } => self.open(now, index, work, then_close),
            Step::Write(work) => match current {
                Some(id) => self.write(now, id, Some(work)),
                None => Ok(()),
            },
            Step::Quiet => {
                let connection = current.and_then(|id| self.connections.get_mut(&id));
                if let Some(connection) = connection {
                    connection.left = 0;
                }
                Ok(())
            }
        }
    }

    /// Its connection ends with a reset, as `fairlane-traffic` ends; transfers that run go on.
    fn stop(&mut self, now: u64, index: usize) -> io::Result<()> {
        self.programs.stop(index);
        let current = self.states[index].current;
        match current.and_then(|id| self.connections.get(&id)) {
            Some(connection) if !connection.closes => {
                reset_on_close(&connection.socket)?;
                self.close(now, current.unwrap_or_default())
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, now: u64, index: usize, work: Work, then_close: Close) -> io::Result<()> {
        let flow = &self.plan.flows[index];
        self.namespaces[flow.from].enter()?;
        let socket = tcp_socket()?;
        if let Some(name) = &flow.congestion_control {
            sockopt::set_tcp_congestion(&socket, name)
                .map_err(|error| io::Error::other(format!("{name}: {error}")))?;
        }
        if let Some(bytes) = flow.mss_bytes {
            set_tcp_option(&socket, libc::TCP_MAXSEG, bytes)?;
        }
        set_tcp_option(&socket, TCP_NOTSENT_LOWAT, UNSENT_BYTES)?;
        let closes = then_close != Close::Never;
        let is_interactive = !closes && matches!(work, Work::Transfer(_));
        if is_interactive || then_close == Close::Sent {
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        let Some(local) = self.bind(index, &socket)? else {
            return self.log(now, index, "no-port", 0);
        };
        let to = SocketAddrV4::new(self.plan.hosts[flow.to].ip, flow.to_port);
        match net::connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        if is_interactive {
            report_acknowledgments(&socket)?;
        }
        self.flows.insert(local, index);
        let says_undone = undone(&socket)?.is_some();
        let id = self.new_id();
        let flags = epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        self.watch(&socket, Source::Sender(id), flags)?;
        let state = &mut self.states[index];
        let mut connection = Connection::new(index, state.connections, socket, closes);
        connection.is_interactive = is_interactive;
        connection.says_undone = says_undone;
        state.connections += 1;
        state.current = Some(id);
        self.connections.insert(id, connection);
        self.log(now, index, "start", 0)?;
        self.write(now, id, Some(work))
    }

    /// To its port, or to the first free one; None: there is none.
    fn bind(&mut self, index: usize, socket: &OwnedFd) -> io::Result<Option<SocketAddrV4>> {
        let flow = &self.plan.flows[index];
        let ip = self.plan.hosts[flow.from].ip;
        let state = &mut self.states[index];
        let tries = if state.app.is_web() {
            LaterPorts::COUNT
        } else {
            1
        };
        for _ in 0..tries {
            let port = match state.app.is_web() {
                true => state.later_ports.take(),
                false => flow.from_port,
            };
            let local = SocketAddrV4::new(ip, port);
            match net::bind(socket, &local) {
                Ok(()) => return Ok(Some(local)),
                Err(Errno::ADDRINUSE) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// More work for a connection, and as much of it as the socket takes.
    fn write(&mut self, now: u64, id: u64, work: Option<Work>) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        match work {
            Some(Work::Greedy) => connection.left = GREEDY,
            Some(Work::Transfer(bytes)) => connection.ask(now, bytes)?,
            None => {}
        }
        match connection.write(now, &self.buffer) {
            Ok(()) => Ok(()),
            Err(error) => self.fail(now, id, &error),
        }
    }

    fn send_datagram(&mut self, index: usize, bytes: usize) -> io::Result<()> {
        let flow = &self.plan.flows[index];
        if self.states[index].datagrams.is_none() {
            self.namespaces[flow.from].enter()?;
            let local = SocketAddrV4::new(self.plan.hosts[flow.from].ip, flow.from_port);
            let socket = udp_socket(local)?;
            let to = SocketAddrV4::new(self.plan.hosts[flow.to].ip, flow.to_port);
            net::connect(&socket, &to)?;
            self.flows.insert(local, index);
            self.states[index].datagrams = Some(socket);
        }
        let state = &mut self.states[index];
        if let Some(socket) = &state.datagrams {
            // Refused by a full queue: lost, as on the way.
            let _ = net::send(socket, &self.buffer[..bytes], net::SendFlags::NOSIGNAL);
            state.sent_datagrams += 1;
        }
        Ok(())
    }

    // ---- senders ------------------------------------------------------------------------------------------

    fn serve_sender(&mut self, now: u64, id: u64, flags: epoll::EventFlags) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        if let Err(error) = sockopt::socket_error(&connection.socket)? {
            return self.fail(now, id, &error.into());
        }
        if flags.contains(epoll::EventFlags::ERR) {
            self.take_acknowledged(now, id)?;
        }
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        if flags.contains(epoll::EventFlags::RDHUP) {
            // The receiver closes once it has read everything.
            if let (0, Some(pending)) = (connection.left, connection.pending.front()) {
                let info = tcp_info(&connection.socket)?;
                let info = TcpInfo::new(&info).ok_or(Errno::INVAL)?;
                let transfer = connection.transfer(pending, now, info, true);
                self.write_transfer(&transfer)?;
            }
            return self.close(now, id);
        }
        if flags.contains(epoll::EventFlags::OUT) {
            connection.is_connected = true;
            return self.write(now, id, None);
        }
        Ok(())
    }

    /// Messages whose last byte was acknowledged.
    fn take_acknowledged(&mut self, now: u64, id: u64) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        let flow = connection.flow;
        let mut done = Vec::new();
        while let Some(acked) = next_acknowledged(&connection.socket) {
            // The kernel counts to 2^32, then from 0 again.
            let is_done = |message: &Pending| acked.wrapping_sub(message.until as u32) < 1 << 31;
            while connection.pending.front().is_some_and(is_done) {
                let Some(message) = connection.pending.pop_front() else {
                    break;
                };
                let info = tcp_info(&connection.socket)?;
                let info = TcpInfo::new(&info).ok_or(Errno::INVAL)?;
                done.push(connection.transfer(&message, now, info, true));
            }
        }
        for transfer in done {
            self.write_transfer(&transfer)?;
            if let Some(next) = self.states[flow].app.on_finished(now) {
                self.calendar.insert((next, Event::Step(flow)));
            }
        }
        Ok(())
    }

    /// A connection broke.
    fn fail(&mut self, now: u64, id: u64, error: &io::Error) -> io::Result<()> {
        if let Some(connection) = self.connections.get(&id) {
            let code = error.raw_os_error().unwrap_or_default() as u64;
            self.log(now, connection.flow, "error", code)?;
        }
        self.close(now, id)
    }

    fn close(&mut self, now: u64, id: u64) -> io::Result<()> {
        let Some(connection) = self.connections.remove(&id) else {
            return Ok(());
        };
        let state = &mut self.states[connection.flow];
        if state.current == Some(id) {
            state.current = None;
        }
        self.sample(now, &connection, true)
    }

    // ---- receivers ----------------------------------------------------------------------------------------

    fn accept(&mut self, id: u64) -> io::Result<()> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (accepted, peer) = match net::acceptfrom_with(&self.listeners[id as usize], flags) {
            Ok(accepted) => accepted,
            Err(Errno::AGAIN | Errno::CONNABORTED) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let peer = peer.and_then(|peer| SocketAddrV4::try_from(peer).ok());
        let Some(&flow) = peer.and_then(|peer| self.flows.get(&peer)) else {
            return Ok(()); // of nobody's
        };
        let id = self.new_id();
        let is_sink = self.plan.flows[flow].read_interval_ns == 0;
        if is_sink {
            throw_away(&accepted)?;
        }
        let wakes = if is_sink {
            epoll::EventFlags::RDHUP
        } else {
            RECEIVES
        };
        self.watch(&accepted, Source::Receiver(id), wakes)?;
        let receiver = Receiver {
            flow,
            socket: accepted,
            is_sink,
            read: 0,
        };
        self.receivers.insert(id, receiver);
        Ok(())
    }

    fn serve_receiver(&mut self, now: u64, id: u64, flags: epoll::EventFlags) -> io::Result<()> {
        let Some(receiver) = self.receivers.get(&id) else {
            return Ok(());
        };
        // What has come when the sender closes it reads at once.
        if receiver.is_sink || flags.contains(epoll::EventFlags::RDHUP) {
            return self.read(now, id);
        }
        let read_interval_ns = self.plan.flows[receiver.flow].read_interval_ns;
        let only_the_end = epoll::EventFlags::RDHUP;
        epoll::modify(
            &self.epoll,
            &receiver.socket,
            Source::Receiver(id).data(),
            only_the_end,
        )?;
        self.calendar
            .insert((now + read_interval_ns, Event::Read(id)));
        Ok(())
    }

    fn read_late(&mut self, now: u64, id: u64) -> io::Result<()> {
        if let Some(receiver) = self.receivers.get(&id) {
            epoll::modify(
                &self.epoll,
                &receiver.socket,
                Source::Receiver(id).data(),
                RECEIVES,
            )?;
        }
        self.read(now, id)
    }

    fn read(&mut self, now: u64, id: u64) -> io::Result<()> {
        let Some(receiver) = self.receivers.get_mut(&id) else {
            return Ok(());
        };
        let is_at_end = loop {
            match rustix::io::read(&receiver.socket, &mut self.buffer) {
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
        self.states[flow].read += read;
        let read = self.states[flow].read;
        self.log(now, flow, "received", read)
    }

    fn read_datagrams(&mut self, id: u64) -> io::Result<()> {
        loop {
            let sink = &self.datagram_sinks[id as usize];
            let (bytes, _, peer) =
                match net::recvfrom(sink, &mut self.buffer[..], net::RecvFlags::empty()) {
                    Ok(datagram) => datagram,
                    Err(Errno::AGAIN) => return Ok(()),
                    Err(error) => return Err(error.into()),
                };
            let peer = peer.and_then(|peer| SocketAddrV4::try_from(peer).ok());
            if let Some(&flow) = peer.and_then(|peer| self.flows.get(&peer)) {
                self.states[flow].read += bytes as u64;
            }
        }
    }

    // ---- what is written down -----------------------------------------------------------------------------

    /// The experiment's present.
    fn now(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64;
        now.saturating_sub(self.plan.start_ns)
    }

    fn log(&mut self, at: u64, index: usize, what: &str, value: u64) -> io::Result<()> {
        let name = &self.plan.flows[index].name;
        writeln!(self.events, "{at} {name} {what} {value}")
    }

    fn write_transfer(&mut self, transfer: &Transfer) -> io::Result<()> {
        serde_json::to_writer(&mut self.transfers, transfer)?;
        self.transfers.write_all(b"\n")
    }

    /// The files that are under way.
    fn write_unfinished(&mut self, now: u64) -> io::Result<()> {
        let mut found = Vec::new();
        for connection in self.connections.values() {
            if self.states[connection.flow].app.is_file() {
                let info = tcp_info(&connection.socket)?;
                let info = TcpInfo::new(&info).ok_or(Errno::INVAL)?;
                let pending = connection.pending.iter();
                found.extend(pending.map(|p| connection.transfer(p, now, info, false)));
            }
        }
        found
            .iter()
            .try_for_each(|transfer| self.write_transfer(transfer))?;
        self.log_ended(now)?;
        self.flush()
    }

    /// Programs that have ended.
    fn log_ended(&mut self, now: u64) -> io::Result<()> {
        let ended = self.programs.take_ended();
        ended
            .into_iter()
            .try_for_each(|(index, code)| self.log(now, index, "exit", code))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.samples.flush()?;
        self.transfers.flush()?;
        self.events.flush()
    }

    /// What a flow's receiver has read.
    fn read_of(&self, flow: usize) -> u64 {
        let open = self
            .receivers
            .values()
            .filter(|receiver| receiver.flow == flow);
        self.states[flow].read + open.map(|receiver| receiver.read).sum::<u64>()
    }

    fn sample_all(&mut self, now: u64) -> io::Result<()> {
        self.receivers.values_mut().try_for_each(Receiver::count)?;
        let connections = std::mem::take(&mut self.connections);
        let done = connections
            .values()
            .try_for_each(|connection| self.sample(now, connection, false));
        self.connections = connections;
        done?;
        for index in 0..self.states.len() {
            if self.states[index].datagrams.is_some() {
                self.write_sample(now, (index, 0), false, Undone::default(), &[])?;
            }
        }
        for (index, bytes) in self.programs.received()? {
            self.states[index].read = bytes;
            self.write_sample(now, (index, 0), false, Undone::default(), &[])?;
        }
        self.log_ended(now)?;
        for sample in self.programs.sample(self.plan, self.namespaces)? {
            self.write_sample(
                now,
                (sample.flow, sample.connection),
                sample.is_last,
                Undone::default(),
                &sample.tcp_info,
            )?;
        }
        self.flush()?;
        self.write_counters()
    }

    fn sample(&mut self, now: u64, connection: &Connection, is_last: bool) -> io::Result<()> {
        let info = tcp_info(&connection.socket)?;
        let undone = match connection.says_undone {
            true => undone(&connection.socket)?.unwrap_or_default(),
            false => Undone::default(),
        };
        let whose = (connection.flow, connection.number);
        self.write_sample(now, whose, is_last, undone, &info)
    }

    /// `whose`: flow and connection.
    fn write_sample(
        &mut self,
        now: u64,
        whose: (usize, u64),
        is_last: bool,
        undone: Undone,
        info: &[u8],
    ) -> io::Result<()> {
        let numbers: [u64; SAMPLE_NUMBERS] = [
            now,
            whose.0 as u64,
            whose.1,
            self.read_of(whose.0),
            self.states[whose.0].sent_datagrams,
            is_last.into(),
            undone.timeouts.into(),
            undone.bw_est_pps.into(),
            info.len() as u64,
        ];
        for number in numbers {
            self.samples.write_all(&number.to_ne_bytes())?;
        }
        self.samples.write_all(info)
    }

    fn finish(mut self, at: u64) -> io::Result<()> {
        self.receivers.values_mut().try_for_each(Receiver::count)?;
        let open = self.receivers.values().map(|receiver| receiver.flow);
        let open: BTreeSet<usize> = open.collect();
        for flow in open {
            self.log(at, flow, "received", self.read_of(flow))?;
        }
        self.flush()
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

/// In one read: what gives several numbers has nothing for a second one.
fn read_sysctl(key: &str) -> io::Result<String> {
    let mut text = vec![0; 4096];
    let len = File::open(format!("/proc/sys/{}", key.replace('.', "/")))?.read(&mut text)?;
    text.truncate(len);
    String::from_utf8(text).map_err(io::Error::other)
}

/// Of a receiver's end: level-triggered.
const RECEIVES: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP);

fn has_programs(host: &Host) -> bool {
    host.sysctls.iter().any(|(name, _)| name == PROGRAMS)
}

/// What the listener of a flow is set to.
fn listener_options(flow: &Flow) -> (Option<u32>, Option<u32>) {
    (flow.mss_bytes, flow.receive_window_bytes)
}
