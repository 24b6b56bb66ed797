// SPDX-License-Identifier: Apache-2.0
//! Applications at work: what each does at its instants, on connections that a runtime gives it.

use crate::connection::{Connection, Pending, Transfer};
use crate::socket::{next_acknowledged, tcp_info};
use crate::{Event, Reactor, Source, TcpInfo};
use apps::{App, AppState, Chance, Close, Step, Work};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::net::{self, sockopt};
use std::collections::BTreeMap;
use std::io;

/// Written at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// What waits to be sent in a sender's socket: enough for any window, and little at the end.
const UNSENT_BYTES: u32 = 128 * 1024;
/// Of an on/off source, also written at once: what was written when "on" ends is sent still.
const UNSENT_BYTES_ON_OFF: u32 = 4096;
const SENDS: EventFlags = EventFlags::OUT
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);

/// How a connection ended.
#[derive(Debug)]
pub enum Ending {
    /// The receiver has everything.
    Finished,
    /// The receiver closed it before that.
    ClosedByPeer,
    Broken(io::Error),
    /// The flow is over.
    Stopped,
}

/// What the flows run in: it opens their sockets and records what they do. Flows are numbered as `Flows::new` got them.
pub trait World {
    /// A socket of a flow on its way to the receiver; None: there is no free port.
    fn connect(&mut self, now: u64, flow: usize, app: &AppState) -> io::Result<Option<OwnedFd>>;
    /// The handshake of a connection is over.
    fn connected(&mut self, _connection: &Connection) -> io::Result<()> {
        Ok(())
    }
    /// A UDP socket that is connected to the receiver.
    fn datagram_socket(&mut self, flow: usize) -> io::Result<OwnedFd>;
    /// A transfer has ended, or is under way at the end.
    fn transferred(&mut self, transfer: &Transfer, info: &TcpInfo<Vec<u8>>) -> io::Result<()>;
    /// The connection is closed after this.
    fn closed(&mut self, now: u64, connection: &Connection, ending: Ending) -> io::Result<()>;
    /// Starts the program of a flow.
    fn run(&mut self, _now: u64, _flow: usize) -> io::Result<()> {
        Ok(())
    }
}

/// A flow's application, and what it has done.
struct Flow {
    app: AppState,
    chance: Chance,
    /// The connection in use (the latest one, where each transfer has its own).
    current: Option<u64>,
    connections: u64,
    datagrams: Datagrams,
    has_steps: bool,
}

impl Flow {
    fn unsent_bytes(&self) -> u32 {
        match self.app.is_on_off() {
            true => UNSENT_BYTES_ON_OFF,
            false => UNSENT_BYTES,
        }
    }
}

/// A sender of datagrams.
#[derive(Default)]
pub struct Datagrams {
    pub socket: Option<OwnedFd>,
    pub sent: u64,
    /// By the kernel: lost, as on the way.
    pub refused: u64,
}

/// All flows of a process.
pub struct Flows {
    pub reactor: Reactor,
    flows: Vec<Flow>,
    /// By a number that none has twice: an event of one that is closed finds nothing.
    connections: BTreeMap<u64, Connection>,
    next_id: u64,
    buffer: Vec<u8>,
}

impl Flows {
    /// `apps`: each with its start and its chance.
    pub fn new(reactor: Reactor, apps: impl IntoIterator<Item = (App, u64, Chance)>) -> Flows {
        let mut flows = Flows {
            reactor,
            flows: Vec::new(),
            connections: BTreeMap::new(),
            next_id: 0,
            buffer: vec![0; BUFFER_BYTES],
        };
        for (app, start_ns, chance) in apps {
            flows.reactor.at(start_ns, Event::Step(flows.flows.len()));
            flows.flows.push(Flow {
                app: AppState::new(app, start_ns),
                chance,
                current: None,
                connections: 0,
                datagrams: Datagrams::default(),
                has_steps: true,
            });
        }
        flows
    }

    /// A number for a source.
    pub fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub fn app(&self, index: usize) -> &AppState {
        &self.flows[index].app
    }

    pub fn datagrams(&self) -> impl Iterator<Item = &Datagrams> {
        self.flows.iter().map(|flow| &flow.datagrams)
    }

    /// Those that are open.
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.connections.values()
    }

    /// True while applications have instants to come.
    pub fn has_steps(&self) -> bool {
        self.flows.iter().any(|flow| flow.has_steps)
    }

    /// Does the step of a flow that is due at `now`.
    ///
    /// # Errors
    /// The world's and the system's, as of all that follow.
    pub fn step(&mut self, world: &mut impl World, now: u64, index: usize) -> io::Result<()> {
        let flow = &mut self.flows[index];
        let (step, next) = flow.app.step(now, &mut flow.chance);
        flow.has_steps = next.is_some();
        let current = flow.current;
        if let Some(next) = next {
            self.reactor.at(next, Event::Step(index));
        }
        match step {
            Step::Nothing => Ok(()),
            Step::Run => world.run(now, index),
            Step::Datagram(bytes) => self.send_datagram(world, index, bytes),
            Step::Open { work, then_close } => self.open(world, now, index, work, then_close),
            Step::Write(work) => match current {
                Some(id) => self.write(world, now, id, Some(work)),
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

    /// A flow is over: its connection ends with a reset; transfers that run go on.
    ///
    /// # Errors
    /// As `step`.
    pub fn stop(&mut self, world: &mut impl World, now: u64, index: usize) -> io::Result<()> {
        match self.flows[index].current {
            Some(id) if self.connections.get(&id).is_some_and(|c| !c.closes) => {
                self.close(world, now, id, Ending::Stopped)
            }
            _ => Ok(()),
        }
    }

    /// Everything that is open ends.
    ///
    /// # Errors
    /// As `step`.
    pub fn stop_all(&mut self, world: &mut impl World, now: u64) -> io::Result<()> {
        while let Some((&id, _)) = self.connections.first_key_value() {
            self.close(world, now, id, Ending::Stopped)?;
        }
        Ok(())
    }

    /// Takes a socket of a flow that is on its way to the receiver, or there.
    ///
    /// # Errors
    /// As `step`.
    pub fn adopt(&mut self, now: u64, index: usize, socket: OwnedFd) -> io::Result<u64> {
        let id = self.new_id();
        self.reactor.watch(&socket, Source::Sender(id), SENDS)?;
        let flow = &mut self.flows[index];
        let is_interactive = flow.app.has_messages();
        if is_interactive {
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        let connection = Connection::new(index, flow.connections, socket, now, is_interactive);
        flow.connections += 1;
        flow.current = Some(id);
        self.connections.insert(id, connection);
        Ok(id)
    }

    /// Writes on a new connection, or on one that was adopted for the purpose.
    fn open(
        &mut self,
        world: &mut impl World,
        now: u64,
        index: usize,
        work: Work,
        then_close: Close,
    ) -> io::Result<()> {
        let flow = &self.flows[index];
        let id = match flow.current.filter(|_| !flow.app.is_web()) {
            Some(id) => id,
            None => match world.connect(now, index, &flow.app)? {
                Some(socket) => self.adopt(now, index, socket)?,
                None => return Ok(()),
            },
        };
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.closes = then_close != Close::Never;
            if then_close == Close::Sent {
                sockopt::set_tcp_nodelay(&connection.socket, true)?;
            }
        }
        self.write(world, now, id, Some(work))
    }

    /// More work for a connection, and as much of it as the socket takes.
    fn write(
        &mut self,
        world: &mut impl World,
        now: u64,
        id: u64,
        work: Option<Work>,
    ) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        match work {
            Some(Work::Greedy) => connection.is_always_sending(),
            Some(Work::Transfer(bytes)) => connection.ask(now, bytes)?,
            None => {}
        }
        let most = self.flows[connection.flow].unsent_bytes() as usize;
        match connection.write(now, &self.buffer[..most.min(BUFFER_BYTES)]) {
            Ok(false) => Ok(()),
            // It is ready still: its turn comes again.
            Ok(true) => self
                .reactor
                .rewatch(&connection.socket, Source::Sender(id), SENDS),
            Err(error) => self.close(world, now, id, Ending::Broken(error)),
        }
    }

    fn send_datagram(
        &mut self,
        world: &mut impl World,
        index: usize,
        bytes: usize,
    ) -> io::Result<()> {
        let datagrams = &mut self.flows[index].datagrams;
        let socket = match &datagrams.socket {
            Some(socket) => socket,
            None => datagrams.socket.insert(world.datagram_socket(index)?),
        };
        match net::send(socket, &self.buffer[..bytes], net::SendFlags::NOSIGNAL) {
            Ok(_) => datagrams.sent += 1,
            Err(_) => datagrams.refused += 1,
        }
        Ok(())
    }

    /// Takes what epoll reports of a sender.
    ///
    /// # Errors
    /// As `step`.
    pub fn serve(
        &mut self,
        world: &mut impl World,
        now: u64,
        id: u64,
        flags: EventFlags,
    ) -> io::Result<()> {
        let Some(connection) = self.connections.get(&id) else {
            return Ok(());
        };
        if let Err(error) = sockopt::socket_error(&connection.socket)? {
            return self.close(world, now, id, Ending::Broken(error.into()));
        }
        if flags.contains(EventFlags::ERR) {
            self.take_acknowledged(world, now, id)?;
        }
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        if flags.intersects(EventFlags::RDHUP | EventFlags::HUP) {
            // The receiver closes once it has read everything.
            let ending = match connection.is_written() {
                true => Ending::Finished,
                false => Ending::ClosedByPeer,
            };
            if let (Ending::Finished, Some(pending)) = (&ending, connection.pending.front()) {
                let info = tcp_info(&connection.socket)?;
                let transfer = connection.transfer(pending, now, &info, true);
                world.transferred(&transfer, &info)?;
            }
            return self.close(world, now, id, ending);
        }
        if flags.contains(EventFlags::OUT) {
            if !connection.is_connected {
                connection.connected(self.flows[connection.flow].unsent_bytes())?;
                world.connected(connection)?;
            }
            return self.write(world, now, id, None);
        }
        Ok(())
    }

    /// Messages whose last byte was acknowledged.
    fn take_acknowledged(&mut self, world: &mut impl World, now: u64, id: u64) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        let index = connection.flow;
        while let Some(acked) = next_acknowledged(&connection.socket) {
            // The kernel counts to 2^32, then from 0 again.
            let is_done = |message: &Pending| acked.wrapping_sub(message.until as u32) < 1 << 31;
            while connection.pending.front().is_some_and(is_done) {
                let Some(message) = connection.pending.pop_front() else {
                    break;
                };
                let info = tcp_info(&connection.socket)?;
                world.transferred(&connection.transfer(&message, now, &info, true), &info)?;
                if let Some(next) = self.flows[index].app.on_finished(now) {
                    self.flows[index].has_steps = true;
                    self.reactor.at(next, Event::Step(index));
                }
            }
        }
        Ok(())
    }

    /// Reports the transfers that are under way.
    ///
    /// # Errors
    /// As `step`.
    pub fn report_unfinished(&self, world: &mut impl World, now: u64) -> io::Result<()> {
        for connection in self.connections.values() {
            let info = tcp_info(&connection.socket)?;
            for pending in &connection.pending {
                world.transferred(&connection.transfer(pending, now, &info, false), &info)?;
            }
        }
        Ok(())
    }

    fn close(
        &mut self,
        world: &mut impl World,
        now: u64,
        id: u64,
        ending: Ending,
    ) -> io::Result<()> {
        let Some(connection) = self.connections.remove(&id) else {
            return Ok(());
        };
        let flow = &mut self.flows[connection.flow];
        if flow.current == Some(id) {
            flow.current = None;
        }
        world.closed(now, &connection, ending)
    }
}
