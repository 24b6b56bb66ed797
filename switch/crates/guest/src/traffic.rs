// SPDX-License-Identifier: Apache-2.0
//! The flows: one loop for all hosts, since a socket stays in the namespace in which it was made. CPU takes no virtual time.

use crate::network::Namespace;
use rustix::event::epoll;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, sockopt, AddressFamily, SocketFlags, SocketType};
use rustix::time::{
    timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags,
    Timespec,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use uml::plan::{Flow, Plan, SAMPLE_EARLY_NS, SAMPLE_NUMBERS};

/// Written and read at once.
const BUFFER_BYTES: usize = 64 * 1024;
const BACKLOG: i32 = 128;
/// More than any kernel's struct tcp_info.
const TCP_INFO_BYTES_MAX: usize = 512;
const TIMER: u64 = u64::MAX;
const TCP_NOTSENT_LOWAT: libc::c_int = 25;
/// What a sender's socket holds that was not sent yet, as of `fairlane-traffic`.
const UNSENT_BYTES: u32 = 128 * 1024;

/// What happens at an instant, in this order among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start(usize),
    Stop(usize),
    Sample,
    End,
}

/// A flow's sockets.
#[derive(Default)]
struct State {
    sender: Option<OwnedFd>,
    receiver: Option<OwnedFd>,
    is_writing: bool,
    written: u64,
    read: u64,
}

/// What epoll calls a socket: 4 kinds a flow.
#[derive(Clone, Copy)]
enum Socket {
    Listener(usize),
    Sender(usize),
    Receiver(usize),
}

impl Socket {
    fn key(self) -> u64 {
        match self {
            Socket::Listener(flow) => flow as u64 * 4,
            Socket::Sender(flow) => flow as u64 * 4 + 1,
            Socket::Receiver(flow) => flow as u64 * 4 + 2,
        }
    }

    fn of(key: u64) -> Socket {
        let flow = (key / 4) as usize;
        match key % 4 {
            0 => Socket::Listener(flow),
            1 => Socket::Sender(flow),
            _ => Socket::Receiver(flow),
        }
    }
}

/// All flows of a plan.
pub struct Traffic<'a> {
    plan: &'a Plan,
    namespaces: &'a [Namespace],
    epoll: OwnedFd,
    timer: OwnedFd,
    calendar: BTreeSet<(u64, Event)>,
    listeners: Vec<OwnedFd>,
    states: Vec<State>,
    buffer: Vec<u8>,
    /// As `uml::plan::SAMPLE_NUMBERS` says; a sample is in the file when the instant that it is for comes.
    samples: BufWriter<File>,
    /// A line an event: instant, flow, what, value.
    events: BufWriter<File>,
}

impl<'a> Traffic<'a> {
    /// Listens for every flow.
    pub fn new(plan: &'a Plan, namespaces: &'a [Namespace]) -> io::Result<Traffic<'a>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let mut traffic = Traffic {
            plan,
            namespaces,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            calendar: BTreeSet::new(),
            listeners: Vec::new(),
            states: plan.flows.iter().map(|_| State::default()).collect(),
            buffer: vec![0; BUFFER_BYTES],
            samples: BufWriter::new(File::create("/samples")?),
            events: BufWriter::new(File::create("/events")?),
        };
        let data = epoll::EventData::new_u64(TIMER);
        epoll::add(&traffic.epoll, &traffic.timer, data, epoll::EventFlags::IN)?;
        for (index, flow) in plan.flows.iter().enumerate() {
            traffic
                .calendar
                .insert((flow.start_ns, Event::Start(index)));
            if let Some(stop) = flow.stop_ns {
                traffic.calendar.insert((stop, Event::Stop(index)));
            }
            // Flows to one port of a host share its listener, and so its options.
            let is_there = |other: &&Flow| other.to == flow.to && other.to_port == flow.to_port;
            if let Some(other) = plan.flows[..index].iter().find(is_there) {
                if listener_options(other) != listener_options(flow) {
                    return Err(io::Error::other(format!(
                        "flows {} and {} want different options of one listener; give one another port",
                        other.name, flow.name
                    )));
                }
                continue;
            }
            namespaces[flow.to].enter()?;
            let listener = tcp_socket()?;
            sockopt::set_socket_reuseaddr(&listener, true)?;
            if let Some(name) = &flow.congestion_control {
                sockopt::set_tcp_congestion(&listener, name)?; // a receiver has its half of DCTCP
            }
            if let Some(bytes) = flow.mss_bytes {
                set_tcp_option(&listener, libc::TCP_MAXSEG, bytes)?;
            }
            if let Some(bytes) = flow.receive_window_bytes {
                set_tcp_option(&listener, libc::TCP_WINDOW_CLAMP, bytes)?;
                sockopt::set_socket_recv_buffer_size(&listener, bytes as usize)?;
            }
            net::bind(
                &listener,
                &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, flow.to_port),
            )?;
            net::listen(&listener, BACKLOG)?;
            let number = traffic.listeners.len();
            traffic.watch(&listener, Socket::Listener(number), epoll::EventFlags::IN)?;
            traffic.listeners.push(listener);
        }
        if let Some(period) = plan.sample_ns {
            let first = period.saturating_sub(SAMPLE_EARLY_NS);
            traffic.calendar.insert((first, Event::Sample));
        }
        traffic.calendar.insert((plan.end_ns, Event::End));
        Ok(traffic)
    }

    /// Until the end of the plan.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            let Some(&(at, event)) = self.calendar.first() else {
                return Ok(());
            };
            self.wait_until(at)?;
            self.calendar.pop_first();
            match event {
                Event::Start(flow) => self.connect(at, flow)?,
                Event::Stop(flow) => self.states[flow].is_writing = false,
                Event::Sample => {
                    self.sample(at)?;
                    let next = at + self.plan.sample_ns.unwrap_or(u64::MAX);
                    self.calendar.insert((next, Event::Sample));
                }
                Event::End => return self.finish(at),
            }
        }
    }

    /// Serves the sockets until an instant of the experiment.
    fn wait_until(&mut self, at: u64) -> io::Result<()> {
        let instant = self.plan.start_ns + at;
        let value = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: (instant / 1_000_000_000) as i64,
                tv_nsec: (instant % 1_000_000_000) as i64,
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
                match event.data.u64() {
                    TIMER => {
                        let _ = rustix::io::read(&self.timer, &mut [0u8; 8])?;
                        is_due = true;
                    }
                    key => self.serve(Socket::of(key), event.flags)?,
                }
            }
            if is_due {
                return Ok(());
            }
        }
    }

    fn watch(&self, socket: &OwnedFd, key: Socket, flags: epoll::EventFlags) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key.key());
        Ok(epoll::add(&self.epoll, socket, data, flags)?)
    }

    fn connect(&mut self, at: u64, index: usize) -> io::Result<()> {
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
        let from = self.plan.hosts[flow.from].ip;
        net::bind(&socket, &SocketAddrV4::new(from, flow.from_port))?;
        let to = SocketAddrV4::new(self.plan.hosts[flow.to].ip, flow.to_port);
        match net::connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        self.watch(
            &socket,
            Socket::Sender(index),
            epoll::EventFlags::OUT | epoll::EventFlags::ET,
        )?;
        self.states[index].sender = Some(socket);
        self.states[index].is_writing = true;
        self.log(at, index, "start", 0)
    }

    fn serve(&mut self, socket: Socket, flags: epoll::EventFlags) -> io::Result<()> {
        match socket {
            Socket::Listener(index) => {
                let (accepted, peer) = net::acceptfrom_with(
                    &self.listeners[index],
                    SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
                )?;
                let peer = peer.and_then(|peer| SocketAddrV4::try_from(peer).ok());
                let is_its = |flow: &Flow| {
                    let from = SocketAddrV4::new(self.plan.hosts[flow.from].ip, flow.from_port);
                    peer == Some(from)
                };
                let Some(index) = self.plan.flows.iter().position(is_its) else {
                    return Ok(()); // of nobody's
                };
                self.watch(&accepted, Socket::Receiver(index), epoll::EventFlags::IN)?;
                self.states[index].receiver = Some(accepted);
                Ok(())
            }
            Socket::Sender(index) => {
                if flags.contains(epoll::EventFlags::ERR) {
                    let error = match &self.states[index].sender {
                        Some(socket) => sockopt::socket_error(socket)?.err(),
                        None => None,
                    };
                    let code = error.map_or(0, |error| error.raw_os_error() as u64);
                    self.states[index].is_writing = false;
                    self.states[index].sender = None;
                    let at = self.now()?;
                    return self.log(at, index, "error", code);
                }
                self.write(index)
            }
            Socket::Receiver(index) => self.read(index),
        }
    }

    /// As much as the connection takes.
    fn write(&mut self, index: usize) -> io::Result<()> {
        let flow: &Flow = &self.plan.flows[index];
        let state = &mut self.states[index];
        let Some(socket) = &state.sender else {
            return Ok(());
        };
        while state.is_writing {
            let left = flow.bytes.map_or(u64::MAX, |bytes| bytes - state.written);
            if left == 0 {
                state.is_writing = false;
                net::shutdown(socket, net::Shutdown::Write)?;
                return Ok(());
            }
            let len = self
                .buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            match net::send(socket, &self.buffer[..len], net::SendFlags::NOSIGNAL) {
                Ok(written) => state.written += written as u64,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn read(&mut self, index: usize) -> io::Result<()> {
        let state = &mut self.states[index];
        let Some(socket) = &state.receiver else {
            return Ok(());
        };
        match rustix::io::read(socket, &mut self.buffer) {
            Ok(0) => {
                state.receiver = None;
                let (at, read) = (self.now()?, self.states[index].read);
                self.log(at, index, "received", read)
            }
            Ok(read) => {
                state.read += read as u64;
                Ok(())
            }
            Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The experiment's present.
    fn now(&self) -> io::Result<u64> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        Ok(now.saturating_sub(self.plan.start_ns))
    }

    fn log(&mut self, at: u64, index: usize, what: &str, value: u64) -> io::Result<()> {
        let name = &self.plan.flows[index].name;
        writeln!(self.events, "{at} {name} {what} {value}")
    }

    fn sample(&mut self, at: u64) -> io::Result<()> {
        for (index, state) in self.states.iter().enumerate() {
            let Some(socket) = &state.sender else {
                continue;
            };
            let mut info = [0u8; TCP_INFO_BYTES_MAX];
            let mut len = info.len() as libc::socklen_t;
            // SAFETY: the kernel writes at most `len` bytes into `info`.
            let code = unsafe {
                libc::getsockopt(
                    socket.as_fd().as_raw_fd(),
                    libc::IPPROTO_TCP,
                    libc::TCP_INFO,
                    info.as_mut_ptr().cast(),
                    &mut len,
                )
            };
            if code != 0 {
                return Err(io::Error::last_os_error());
            }
            let numbers: [u64; SAMPLE_NUMBERS] = [at, index as u64, state.read, len.into()];
            for number in numbers {
                self.samples.write_all(&number.to_ne_bytes())?;
            }
            self.samples.write_all(&info[..len as usize])?;
        }
        self.samples.flush()
    }

    fn finish(mut self, at: u64) -> io::Result<()> {
        for index in 0..self.states.len() {
            let (written, read) = (self.states[index].written, self.states[index].read);
            self.log(at, index, "written", written)?;
            if self.states[index].receiver.is_some() {
                self.log(at, index, "received", read)?;
            }
        }
        self.samples.flush()?;
        self.events.flush()
    }
}

/// What the listener of a flow is set to.
fn listener_options(flow: &Flow) -> (Option<u32>, Option<u32>) {
    (flow.mss_bytes, flow.receive_window_bytes)
}

/// An option of IPPROTO_TCP that is a number.
fn set_tcp_option(socket: &OwnedFd, option: libc::c_int, value: u32) -> io::Result<()> {
    // SAFETY: the kernel reads the four bytes of `value`.
    let code = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            std::ptr::from_ref(&value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    match code {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn tcp_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        flags,
        None,
    )?)
}
