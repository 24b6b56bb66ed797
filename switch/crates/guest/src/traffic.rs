// SPDX-License-Identifier: Apache-2.0
//! The flows: one loop for all hosts, since a socket stays in the namespace in which it was made. CPU takes no virtual time.

use crate::network::Namespace;
use crate::records::Records;
use apps::{App, AppState, Chance, LaterPorts};
use flows::socket::{self, ListenerOptions, SenderOptions};
use flows::{Connection, Ending, Event, Flows, Reactor, Source, TcpInfo, Transfer, Turn, World};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use uml::plan::{Flow, Plan, SAMPLE_EARLY_NS};

const BUFFER_BYTES: usize = 64 * 1024;
/// Of a receiver's end: level-triggered.
const RECEIVES: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

/// All flows of a plan.
pub struct Traffic<'a> {
    flows: Flows,
    hosts: Hosts<'a>,
    listeners: Vec<OwnedFd>,
    datagram_sinks: Vec<OwnedFd>,
    buffer: Vec<u8>,
}

/// Where the flows run.
struct Hosts<'a> {
    plan: &'a Plan,
    namespaces: &'a [Namespace],
    later_ports: Vec<LaterPorts>,
    /// Whose a sending end is.
    senders: BTreeMap<SocketAddr, usize>,
    records: Records<'a>,
}

impl Hosts<'_> {
    /// Binds to a flow's port, or to the first free one; None: there is none.
    fn bind(&mut self, index: usize, socket: &OwnedFd, is_web: bool) -> io::Result<Option<()>> {
        let flow = &self.plan.flows[index];
        let tries = if is_web { LaterPorts::COUNT } else { 1 };
        for _ in 0..tries {
            let port = match is_web {
                true => self.later_ports[index].take(),
                false => flow.ends[0].port(),
            };
            let local = SocketAddr::new(flow.ends[0].ip(), port);
            match net::bind(socket, &local) {
                Ok(()) => {
                    self.senders.insert(local, index);
                    return Ok(Some(()));
                }
                Err(Errno::ADDRINUSE) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

impl World for Hosts<'_> {
    fn connect(&mut self, now: u64, index: usize, app: &AppState) -> io::Result<Option<OwnedFd>> {
        let flow = &self.plan.flows[index];
        self.namespaces[flow.from].enter()?;
        let options = SenderOptions {
            congestion_control: flow.congestion_control.as_deref(),
            mss_bytes: flow.mss_bytes,
        };
        let socket = socket::sender(socket::family_of(&flow.ends[1]), options)?;
        if self.bind(index, &socket, app.is_web())?.is_none() {
            self.records.log(now, index, "no-port", 0)?;
            return Ok(None);
        }
        socket::connect(&socket, &flow.ends[1])?;
        self.records.log(now, index, "start", 0)?;
        Ok(Some(socket))
    }

    fn datagram_socket(&mut self, index: usize) -> io::Result<OwnedFd> {
        let flow = &self.plan.flows[index];
        self.namespaces[flow.from].enter()?;
        let [local, receiver] = flow.ends;
        let socket = socket::udp_socket(Some(local), Some(receiver))?;
        self.senders.insert(local, index);
        Ok(socket)
    }

    fn transferred(&mut self, transfer: &Transfer, _: &TcpInfo<Vec<u8>>) -> io::Result<()> {
        self.records.transfer(transfer)
    }

    fn closed(&mut self, now: u64, connection: &Connection, ending: Ending) -> io::Result<()> {
        if let Ending::Broken(error) = ending {
            let code = error.raw_os_error().unwrap_or_default() as u64;
            self.records.log(now, connection.flow, "error", code)?;
        }
        self.records.sample(now, connection, true)
    }

    fn run(&mut self, now: u64, index: usize) -> io::Result<()> {
        self.records.log(now, index, "start", 0)?;
        self.records.programs.run(self.plan, index, self.namespaces)
    }
}

impl<'a> Traffic<'a> {
    /// Listens for every flow.
    pub fn new(plan: &'a Plan, namespaces: &'a [Namespace]) -> io::Result<Traffic<'a>> {
        let app = |flow: &Flow| {
            let (chance, _) = Chance::of_flow(plan.seed, &flow.name);
            (flow.app.clone(), flow.start_ns, chance)
        };
        let later_ports = plan.flows.iter().map(|flow| LaterPorts::new(flow.place));
        let mut traffic = Traffic {
            flows: Flows::new(Reactor::new(plan.start_ns)?, plan.flows.iter().map(app)),
            hosts: Hosts {
                plan,
                namespaces,
                later_ports: later_ports.collect(),
                senders: BTreeMap::new(),
                records: Records::new(plan, namespaces)?,
            },
            listeners: Vec::new(),
            datagram_sinks: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
        };
        for (index, flow) in plan.flows.iter().enumerate() {
            if let Some(stop) = flow.stop_ns {
                traffic.flows.reactor.at(stop, Event::Stop(index));
            }
            traffic.add_sink(index)?;
        }
        traffic.sample_after(0);
        let reactor = &mut traffic.flows.reactor;
        let last = plan.end_ns.saturating_sub(SAMPLE_EARLY_NS);
        reactor.at(last, Event::Unfinished);
        reactor.at(plan.end_ns, Event::End);
        Ok(traffic)
    }

    /// What takes a flow's connections or datagrams. Flows to one port of a host share it, and so its options.
    fn add_sink(&mut self, index: usize) -> io::Result<()> {
        let plan = self.hosts.plan;
        let flow = &plan.flows[index];
        if matches!(flow.app, App::Command(_)) {
            return Ok(()); // its own program
        }
        let is_udp = self.flows.app(index).is_udp();
        let others = plan.flows[..index].iter().enumerate();
        let mut at_its_port = others.filter(|(place, other)| {
            other.ends[1] == flow.ends[1]
                && !matches!(other.app, App::Command(_))
                && self.flows.app(*place).is_udp() == is_udp
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
        self.hosts.namespaces[flow.to].enter()?;
        let at = flow.ends[1];
        let (sinks, new, source): (_, _, fn(u64) -> Source) = match is_udp {
            true => (
                &mut self.datagram_sinks,
                socket::udp_socket(Some(at), None)?,
                Source::Datagrams,
            ),
            false => {
                let options = ListenerOptions {
                    congestion_control: flow.congestion_control.as_deref(),
                    mss_bytes: flow.mss_bytes,
                    window_bytes: flow.receive_window_bytes,
                    reads_late: flow.read_interval_ns > 0,
                };
                let listener = socket::listen(at, options)?;
                (&mut self.listeners, listener, Source::Listener)
            }
        };
        let source = source(sinks.len() as u64);
        self.flows.reactor.watch(&new, source, EventFlags::IN)?;
        sinks.push(new);
        Ok(())
    }

    /// Until the end of the plan.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            match self.flows.reactor.wait()? {
                Turn::Ready(ready) => {
                    for (source, flags) in ready {
                        self.serve(source, flags)?;
                    }
                }
                Turn::Due(at, Event::End) => return self.hosts.records.finish(at),
                Turn::Due(at, event) => self.take(at, event)?,
            }
        }
    }

    fn take(&mut self, at: u64, event: Event) -> io::Result<()> {
        let plan = self.hosts.plan;
        match event {
            Event::Step(index) if plan.flows[index].stop_ns.is_some_and(|stop| stop <= at) => {}
            Event::Step(index) => self.flows.step(&mut self.hosts, at, index)?,
            Event::Stop(index) => {
                self.hosts.records.programs.stop(index);
                self.flows.stop(&mut self.hosts, at, index)?;
            }
            Event::Read(id) => self.read_late(at, id)?,
            Event::Sample => {
                self.hosts.records.sample_all(at, &self.flows)?;
                self.sample_after(at + SAMPLE_EARLY_NS);
            }
            Event::Unfinished => {
                self.flows.report_unfinished(&mut self.hosts, at)?;
                self.hosts.records.flush_all(at)?;
            }
            Event::End => {}
        }
        Ok(())
    }

    /// Enters the first sample behind an instant.
    fn sample_after(&mut self, instant: u64) {
        if let Some(next) = self.hosts.plan.next_sample(instant) {
            let early = next.saturating_sub(SAMPLE_EARLY_NS);
            self.flows.reactor.at(early, Event::Sample);
        }
    }

    fn serve(&mut self, source: Source, flags: EventFlags) -> io::Result<()> {
        let now = self.flows.reactor.now();
        match source {
            Source::Listener(id) => self.accept(id),
            Source::Sender(id) => self.flows.serve(&mut self.hosts, now, id, flags),
            Source::Receiver(id) => self.serve_receiver(now, id, flags),
            Source::Datagrams(id) => self.read_datagrams(id),
            Source::Timer | Source::Signal => Ok(()),
        }
    }

    // ---- receivers ----------------------------------------------------------------------------------------

    fn accept(&mut self, id: u64) -> io::Result<()> {
        let Some((accepted, peer)) = socket::accept(&self.listeners[id as usize])? else {
            return Ok(());
        };
        let Some(&flow) = self.hosts.senders.get(&peer) else {
            return Ok(()); // of nobody's
        };
        let id = self.flows.new_id();
        let plan = &self.hosts.plan.flows[flow];
        let is_sink = plan.read_interval_ns == 0;
        if let Some(window_bytes) = plan.receive_window_bytes.filter(|_| !is_sink) {
            socket::hold_window(&accepted, window_bytes)?;
        }
        let wakes = if is_sink { EventFlags::RDHUP } else { RECEIVES };
        let source = Source::Receiver(id);
        self.flows.reactor.watch(&accepted, source, wakes)?;
        self.hosts.records.accept(id, flow, accepted, is_sink)
    }

    fn serve_receiver(&mut self, now: u64, id: u64, flags: EventFlags) -> io::Result<()> {
        let Some((flow, is_sink, socket)) = self.hosts.records.receiver(id) else {
            return Ok(());
        };
        // What has come when the sender closes it reads at once.
        if is_sink || flags.contains(EventFlags::RDHUP) {
            return self.read(now, id);
        }
        let plan = &self.hosts.plan.flows[flow];
        if let Some(window_bytes) = plan.receive_window_bytes {
            socket::fit_buffer(socket, window_bytes)?;
        }
        let later = now + plan.read_interval_ns;
        let reactor = &mut self.flows.reactor;
        reactor.rewatch(socket, Source::Receiver(id), EventFlags::RDHUP)?;
        reactor.at(later, Event::Read(id));
        Ok(())
    }

    fn read_late(&mut self, now: u64, id: u64) -> io::Result<()> {
        if let Some((_, _, socket)) = self.hosts.records.receiver(id) {
            let reactor = &self.flows.reactor;
            reactor.rewatch(socket, Source::Receiver(id), RECEIVES)?;
        }
        self.read(now, id)
    }

    fn read(&mut self, now: u64, id: u64) -> io::Result<()> {
        self.hosts.records.read(now, id, &mut self.buffer)
    }

    fn read_datagrams(&mut self, id: u64) -> io::Result<()> {
        let sink = &self.datagram_sinks[id as usize];
        while let Some((bytes, peer)) = socket::next_datagram(sink, &mut self.buffer)? {
            if let Some(&flow) = self.hosts.senders.get(&peer) {
                self.hosts.records.add_read(flow, bytes as u64);
            }
        }
        Ok(())
    }
}

/// What the listener of a flow is set to.
fn listener_options(flow: &Flow) -> (Option<u32>, Option<u32>) {
    (flow.mss_bytes, flow.receive_window_bytes)
}
