// SPDX-License-Identifier: Apache-2.0
//! The receiving end: accepts, discards, and counts the bytes of every connection, or datagrams of every sender, over time.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use flows::socket::{self, ListenerOptions};
use flows::{monotonic_ns, Event, Reactor, Source, Turn};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, sockopt, RecvFlags};
use serde_json::{json, Value};

use crate::options::{Ack, Sink};
use crate::{name_of, next_sample, Writer};

const BUFFER_BYTES: usize = 256 * 1024;

struct Connection {
    socket: OwnedFd,
    peer: String,
    bytes: u64,
}

/// What one sender's datagrams have come to.
#[derive(Default)]
struct Datagrams {
    bytes: u64,
    packets: u64,
}

struct Receiver<'a> {
    options: &'a Sink,
    reactor: Reactor,
    writer: Writer,
    socket: OwnedFd,
    open: BTreeMap<u64, Connection>,
    accepted: u64,
    /// Rows of the summary.
    ended: Vec<Value>,
    datagrams: BTreeMap<SocketAddr, Datagrams>,
    buffer: Vec<u8>,
}

/// Runs the receiving end. An error is a sentence.
pub fn run(options: &Sink) -> Result<(), String> {
    let signals = socket::stop_signals().map_err(|error| format!("signals: {error}"))?;
    let writer = Writer::new(&options.out)?;
    let at = SocketAddr::new(options.bind, options.port);
    let opened = match options.udp {
        true => socket::udp_socket(Some(at), None),
        false => socket::listen(
            at,
            ListenerOptions {
                congestion_control: None,
                mss_bytes: options.mss,
                window_bytes: options.window,
                reads_late: options.read_after_ms > 0.0,
            },
        ),
    };
    let opened = opened.map_err(|error| {
        let (address, port) = (options.bind, options.port);
        format!("cannot listen at {address} port {port}: {error}")
    })?;
    receive(options, writer, opened, &signals).map_err(|error| error.to_string())
}

fn receive(options: &Sink, writer: Writer, socket: OwnedFd, signals: &OwnedFd) -> io::Result<()> {
    let port = SocketAddr::try_from(net::getsockname(&socket)?)?.port();
    if let Some(file) = &options.ready_file {
        let partial = format!("{file}.{}", std::process::id());
        std::fs::write(&partial, format!("{port}\n"))?;
        std::fs::rename(partial, file)?; // whole from its first instant on
    }
    let mut reactor = Reactor::new(0)?;
    let source = match options.udp {
        true => Source::Datagrams(0),
        false => Source::Listener(0),
    };
    reactor.watch(&socket, source, EventFlags::IN)?;
    reactor.watch(signals, Source::Signal, EventFlags::IN)?;
    let start_ns = monotonic_ns();
    reactor.at(start_ns + options.sample_ms * 1_000_000, Event::Sample);
    let mut receiver = Receiver {
        options,
        reactor,
        writer,
        socket,
        open: BTreeMap::new(),
        accepted: 0,
        ended: Vec::new(),
        datagrams: BTreeMap::new(),
        buffer: vec![0; BUFFER_BYTES],
    };
    let is_stopped = receiver.run()?;
    receiver.sample_all(monotonic_ns())?;
    while let Some((&id, _)) = receiver.open.first_key_value() {
        receiver.end(id, "open")?;
    }
    let datagrams = receiver.datagrams.iter().map(|(peer, datagrams)| {
        json!({"peer": name_of(*peer), "bytes": datagrams.bytes, "packets": datagrams.packets})
    });
    receiver.ended.extend(datagrams);
    receiver.writer.summary(json!({
        "port": port,
        "start_ns": start_ns,
        "end_ns": monotonic_ns(),
        "stopped_by_signal": is_stopped,
        "connections": receiver.ended,
    }))
}

impl Receiver<'_> {
    /// Until enough connections have ended, or a signal came (true).
    fn run(&mut self) -> io::Result<bool> {
        let enough = self.options.connections.unwrap_or(u64::MAX);
        while (self.ended.len() as u64) < enough {
            match self.reactor.wait()? {
                Turn::Due(_, Event::Read(id)) => self.read_late(id)?,
                Turn::Due(at, _) => {
                    let now = monotonic_ns();
                    self.sample_all(now)?;
                    let next = next_sample(at, now, self.options.sample_ms);
                    self.reactor.at(next, Event::Sample);
                }
                Turn::Ready(ready) => {
                    for (source, flags) in ready {
                        match source {
                            Source::Signal => return Ok(true),
                            Source::Listener(_) => self.accept()?,
                            Source::Receiver(id) => self.serve(id, flags)?,
                            Source::Datagrams(_) => self.read_datagrams()?,
                            Source::Timer | Source::Sender(_) => {}
                        }
                    }
                }
            }
        }
        Ok(false)
    }

    /// What a connection is watched for: level-triggered.
    fn flags(&self) -> EventFlags {
        match self.options.read_after_ms > 0.0 {
            true => EventFlags::IN | EventFlags::RDHUP,
            false => EventFlags::IN,
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Some((accepted, peer)) = socket::accept(&self.socket)? {
            self.set_quickack(&accepted)?;
            if let Some(window_bytes) = self.held_window() {
                socket::hold_window(&accepted, window_bytes)?;
            }
            self.accepted += 1;
            let (id, flags) = (self.accepted, self.flags());
            self.reactor.watch(&accepted, Source::Receiver(id), flags)?;
            let connection = Connection {
                socket: accepted,
                peer: name_of(peer),
                bytes: 0,
            };
            sample(&mut self.writer, monotonic_ns(), &connection.peer, 0)?;
            self.open.insert(id, connection);
        }
        Ok(())
    }

    /// The kernel forgets it after a while: it is set anew with each read.
    fn set_quickack(&self, socket: &OwnedFd) -> io::Result<()> {
        match self.options.ack {
            Ack::Kernel => {}
            Ack::Delayed => sockopt::set_tcp_quickack(socket, false)?,
            Ack::Every => sockopt::set_tcp_quickack(socket, true)?,
        }
        Ok(())
    }

    /// The window of a receiver that lets data wait.
    fn held_window(&self) -> Option<u32> {
        let window = self.options.window;
        window.filter(|_| self.options.read_after_ms > 0.0)
    }

    /// What has come when the sender closes is read at once.
    fn serve(&mut self, id: u64, flags: EventFlags) -> io::Result<()> {
        let Some(connection) = self.open.get(&id) else {
            return Ok(());
        };
        if self.options.read_after_ms == 0.0 || flags.contains(EventFlags::RDHUP) {
            return self.read(id);
        }
        if let Some(window_bytes) = self.held_window() {
            socket::fit_buffer(&connection.socket, window_bytes)?;
        }
        let wait_ns = (self.options.read_after_ms * 1e6) as u64;
        self.reactor.at(monotonic_ns() + wait_ns, Event::Read(id));
        let source = Source::Receiver(id);
        self.reactor
            .rewatch(&connection.socket, source, EventFlags::RDHUP)
    }

    fn read_late(&mut self, id: u64) -> io::Result<()> {
        if let Some(connection) = self.open.get(&id) {
            let source = Source::Receiver(id);
            let flags = self.flags();
            self.reactor.rewatch(&connection.socket, source, flags)?;
        }
        self.read(id)
    }

    fn read(&mut self, id: u64) -> io::Result<()> {
        let Some(connection) = self.open.get_mut(&id) else {
            return Ok(());
        };
        // TCP discards what MSG_TRUNC reads.
        let count = match net::recv(&connection.socket, &mut self.buffer[..], RecvFlags::TRUNC) {
            Ok((0, _)) => return self.end(id, "eof"),
            Ok((count, _)) => count as u64,
            Err(Errno::AGAIN) => return Ok(()),
            Err(_) => return self.end(id, "reset"),
        };
        connection.bytes += count;
        let connection = &self.open[&id];
        self.set_quickack(&connection.socket)
    }

    fn read_datagrams(&mut self) -> io::Result<()> {
        while let Some((bytes, peer)) = socket::next_datagram(&self.socket, &mut self.buffer)? {
            if !self.datagrams.contains_key(&peer) {
                sample(&mut self.writer, monotonic_ns(), &name_of(peer), 0)?;
            }
            let datagrams = self.datagrams.entry(peer).or_default();
            datagrams.bytes += bytes as u64;
            datagrams.packets += 1;
        }
        Ok(())
    }

    fn sample_all(&mut self, now: u64) -> io::Result<()> {
        for connection in self.open.values() {
            sample(&mut self.writer, now, &connection.peer, connection.bytes)?;
        }
        for (peer, datagrams) in &self.datagrams {
            sample(&mut self.writer, now, &name_of(*peer), datagrams.bytes)?;
        }
        Ok(())
    }

    fn end(&mut self, id: u64, how: &str) -> io::Result<()> {
        let Some(connection) = self.open.remove(&id) else {
            return Ok(());
        };
        let info = socket::tcp_info(&connection.socket)?;
        let peer = &connection.peer;
        sample(&mut self.writer, monotonic_ns(), peer, connection.bytes)?;
        self.ended.push(json!({
            "peer": peer,
            "bytes": connection.bytes,
            "ended": how,
            "data_segments": info.data_segments_in(),
            "segments_sent": info.segments_out(),
        }));
        Ok(())
    }
}

fn sample(writer: &mut Writer, now: u64, peer: &str, bytes: u64) -> io::Result<()> {
    writer.write(&json!({"t_ns": now, "peer": peer, "bytes": bytes}))
}
