// SPDX-License-Identifier: Apache-2.0
//! The loop: one thread that receives, does what is due, sends, and sleeps until the next instant or frame.
//!
//! The network's time is the time at which frames arrived in the kernel, and the exact instants between them: a late
//! wake-up makes frames leave late but bends neither rates nor queue lengths.

use crate::control::Control;
use crate::network::{Departure, Network, Progress};
use crate::request::{self, PortReport, Ports};
use crate::wakeup::{SpinBudget, WakeupLatency};
use device::{Calls, Device, DeviceHandle, Event};
use netio::clock::{monotonic_now, sleep_until, ClockPair, Nanos};
use netio::link_watch::LinkWatch;
use netio::moderation::Moderation;
use netio::poll::{Interest, Poller};
use netio::rest::Rest;
use netio::socket::{TxSocket, TX_BATCH};
use netio::wake::WakeFd;
use netio::{Change, PortIo};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::sync::Arc;
use tokio::sync::mpsc::error::TrySendError;

/// Event tokens; interfaces have their number.
const SIGNAL_TOKEN: u64 = u64::MAX;
const LINK_TOKEN: u64 = u64::MAX - 1;
const WAKE_TOKEN: u64 = u64::MAX - 2;
/// Of the control socket.
pub const CONTROL_TOKEN: u64 = 1 << 32;
/// Frames received before all else gets its turn; fewer after a turn in which a program took too long.
const RX_BATCH: usize = 128;
const RX_BATCH_SLOW: usize = 1;
/// Events before all else gets its turn: frames may go round for ever.
const EVENTS_A_TURN: usize = 4096;
/// Closures run for one switch before frames get their turn, and how long they may take together.
const CALL_BATCH: usize = 64;
const CALL_TIME: Nanos = 100_000;
/// Who asks a device something finds losses at reception at most this old: each query is a system call for each port.
const LOSSES_PERIOD: Nanos = 10_000_000;
/// Retry of events that a control plane had no room for.
const EVENT_RETRY: Nanos = 1_000_000;

/// SIGTERM and SIGINT as a descriptor.
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks both signals for this thread and all it starts; call it before any thread is started.
    ///
    /// # Errors
    /// The system's error.
    pub fn block() -> io::Result<Self> {
        // SAFETY: the set is initialised by sigemptyset; the new descriptor is owned by nobody else.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigaddset(&mut set, libc::SIGINT);
            if libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }
}

/// An interface, and what it is to the network.
pub struct Attached {
    pub io: PortIo,
    /// The switch's port that is up as long as it is: index of the switch, and the port.
    pub port: Option<(usize, u32)>,
}

/// What the loop is made of.
pub struct Parts {
    pub network: Network,
    /// By number.
    pub interfaces: Vec<Attached>,
    /// Which interface is at each end of the links: `2 * link`, plus 1 for end b.
    pub ends: Vec<usize>,
    pub tx: TxSocket,
    pub control: Control,
    pub poller: Poller,
    pub wakeup: WakeupLatency,
}

/// The loop.
pub struct Wire {
    parts: Parts,
    links: LinkWatch,
    switches: Vec<Option<Side>>,
    commands: Receiver<Command>,
    wake: Arc<WakeFd>,
    /// Frames that wait for the next system call.
    departures: Vec<Departure>,
    /// In one turn: the interfaces whose rings hold something, by the arrival of the first frame.
    waiting: BinaryHeap<Reverse<(Nanos, usize)>>,
    moderation: Moderation,
    losses_read: Nanos,
}

/// A running switch, from the loop's side.
struct Side {
    calls: Calls,
    events: tokio::sync::mpsc::Sender<Vec<Event>>,
}

/// What another thread asks of the loop.
enum Command {
    Start(usize, String, Box<Device>, Side),
    Stop(usize, SyncSender<Option<Box<Device>>>),
}

/// The way from other threads to the loop.
#[derive(Clone)]
pub struct NetworkHandle {
    commands: Sender<Command>,
    wake: Arc<WakeFd>,
}

impl NetworkHandle {
    /// A switch is there from now on. Its events go to `events` as long as it has room.
    ///
    /// # Errors
    /// None when the loop has ended.
    pub fn start(
        &self,
        index: usize,
        name: &str,
        device: Device,
        events: tokio::sync::mpsc::Sender<Vec<Event>>,
    ) -> Option<DeviceHandle> {
        let waker = self.wake.clone();
        let (handle, calls) = DeviceHandle::new(move || waker.wake());
        let side = Side { calls, events };
        let command = Command::Start(index, name.to_owned(), Box::new(device), side);
        self.commands.send(command).ok()?;
        self.wake.wake();
        Some(handle)
    }

    /// A switch is gone; returns it as it was then.
    pub fn stop(&self, index: usize) -> Option<Box<Device>> {
        let (reply, answer) = sync_channel(1);
        self.commands.send(Command::Stop(index, reply)).ok()?;
        self.wake.wake();
        answer.recv().ok()?
    }
}

impl Parts {
    /// Answers what the control socket was asked.
    fn answer_all(&mut self) {
        let ends = &mut Ends(&self.ends, &mut self.interfaces);
        let network = &mut self.network;
        self.control
            .answer_all(|line| request::handle(line, monotonic_now(), network, ends));
    }
}

struct Ends<'a>(&'a [usize], &'a mut [Attached]);

impl Ports for Ends<'_> {
    fn report(&mut self, end: usize) -> PortReport {
        let io = &mut self.1[self.0[end]].io;
        let losses = io.losses();
        PortReport {
            interface: io.name().to_owned(),
            present: io.is_present(),
            down_events: io.down_events(),
            ring_full: losses.ring_full,
            truncated: losses.truncated,
            unsegmented: losses.unsegmented,
        }
    }
}

impl Wire {
    /// A loop for up to `switches` switches, and the way to it.
    ///
    /// # Errors
    /// The system's error, as when there are too many open files.
    pub fn new(parts: Parts, switches: usize) -> io::Result<(Wire, NetworkHandle)> {
        let wake = Arc::new(WakeFd::new()?);
        let links = LinkWatch::open()?;
        let poller = &parts.poller;
        poller.add(wake.as_fd(), WAKE_TOKEN, Interest::Read)?;
        poller.add(links.as_fd(), LINK_TOKEN, Interest::Read)?;
        for (attached, token) in parts.interfaces.iter().zip(0..) {
            if let Some(ring) = &attached.io.ring {
                poller.add(ring.as_fd(), token, Interest::Read)?;
            }
        }
        let (sender, commands) = channel();
        let handle = NetworkHandle {
            commands: sender,
            wake: wake.clone(),
        };
        let wire = Wire {
            waiting: BinaryHeap::with_capacity(parts.interfaces.len()),
            parts,
            links,
            switches: (0..switches).map(|_| None).collect(),
            commands,
            wake,
            departures: Vec::with_capacity(TX_BATCH),
            moderation: Moderation::default(),
            losses_read: 0,
        };
        Ok((wire, handle))
    }

    /// Runs until a signal comes.
    ///
    /// # Errors
    /// The system's error when waiting itself fails.
    pub fn run(mut self, signals: &Signals) -> io::Result<()> {
        let signals = signals.0.as_fd();
        self.parts
            .poller
            .add(signals, SIGNAL_TOKEN, Interest::Read)?;
        let mut rest = Rest::for_this_thread();
        let mut budget = SpinBudget::new(monotonic_now());
        let (mut busy, mut calls_wait, mut batch) = (false, false, RX_BATCH);
        self.parts.network.begin(monotonic_now());
        loop {
            let Some(ready) = self.wait(busy, &mut budget, &mut rest)? else {
                return Ok(());
            };
            if ready.links {
                self.refresh_links()?;
            }
            // What arrives after this reading is for the next turn.
            let clock = ClockPair::read();
            let overruns = self.overruns();
            let (received, received_all) = self.receive(&clock, batch);
            // More may have come meanwhile: only who finds nothing sleeps.
            busy = !received_all || !self.advance(clock.monotonic) || received > 0;
            // A program that goes round for ever must not keep all else waiting.
            batch = match self.overruns() == overruns {
                true => RX_BATCH,
                false => RX_BATCH_SLOW,
            };
            self.flush();
            if ready.control {
                self.parts.answer_all();
            }
            if ready.woken {
                self.wake.clear();
                self.take_commands();
            }
            // A call may have more pieces than had time: nobody wakes the loop for them.
            if ready.woken || calls_wait {
                calls_wait = self.run_calls();
                busy |= calls_wait;
            }
            self.hand_on_events();
            self.moderation.received(received);
            rest.take(clock.monotonic);
        }
    }

    /// Sleeps until a frame comes, something else calls, or something is due; None: a signal has come.
    fn wait(
        &mut self,
        busy: bool,
        budget: &mut SpinBudget,
        rest: &mut Rest,
    ) -> io::Result<Option<WakeCauses>> {
        let now = monotonic_now();
        let lead = match budget.allows(now) {
            true => self.parts.wakeup.lead(),
            false => 0,
        };
        let retry = self.events_wait().then_some(now + EVENT_RETRY);
        let due = self.parts.network.next_event();
        let due = due.map(|at| at.saturating_sub(lead));
        let mut wake = due.into_iter().chain(retry).min();
        if busy {
            wake = Some(now);
        } else if let Some(until) = self.moderation.pause_until(now) {
            // Frames come densely: some more at once, instead of each by itself.
            let until = wake.map_or(until, |wake| wake.min(until));
            if until > now {
                rest.during(now, || sleep_until(until));
            }
            wake = Some(now);
        }
        let timeout = wake.map(|wake| wake.saturating_sub(now));
        let mut causes = WakeCauses::default();
        let poller = &mut self.parts.poller;
        let ready = match timeout {
            // To poll is no rest.
            Some(0) => poller.wait(timeout),
            _ => rest.during(now, || poller.wait(timeout)),
        };
        self.waiting.clear();
        let clock = ClockPair::read();
        for one in ready? {
            causes.any = true;
            match one.token {
                SIGNAL_TOKEN => return Ok(None),
                CONTROL_TOKEN => causes.control = true,
                WAKE_TOKEN => causes.woken = true,
                LINK_TOKEN => causes.links = true,
                number => {
                    let ring = self.parts.interfaces[number as usize].io.ring.as_ref();
                    if let (true, Some(ring)) = (one.error, ring) {
                        ring.take_error();
                        causes.links = true;
                    }
                    let arrival = ring.and_then(|ring| ring.peek(&clock));
                    let first = arrival.map(|at| Reverse((at, number as usize)));
                    self.waiting.extend(first);
                }
            }
        }
        match (wake, timeout) {
            _ if causes.any || busy => {}
            (_, Some(0)) => budget.spend(clock.monotonic.saturating_sub(now)),
            (Some(wake), _) => self.parts.wakeup.learn(wake, clock.monotonic),
            (None, _) => {}
        }
        Ok(Some(causes))
    }

    // ---- frames -------------------------------------------------------------------------------------------

    /// Takes up to `batch` frames of the rings that had arrived at the reading, merged by arrival; what is due before a
    /// frame is done before. Returns how many, and whether those were all.
    fn receive(&mut self, clock: &ClockPair, batch: usize) -> (usize, bool) {
        let mut count = 0;
        while let Some(Reverse((arrival, number))) = self.waiting.pop() {
            if arrival > clock.monotonic {
                break;
            }
            if count == batch {
                return (count, false);
            }
            let other = self.waiting.peek().map(|Reverse((at, _))| *at);
            let until = other.map_or(clock.monotonic, |at| at.min(clock.monotonic));
            // Taken out, so that the rest of the network can be used meanwhile.
            let Some(mut ring) = self.parts.interfaces[number].io.ring.take() else {
                continue;
            };
            let mut in_time = true;
            count += ring.receive_until(clock, batch - count, until, |frame| {
                in_time &= self.advance(frame.arrival);
                let network = &mut self.parts.network;
                network.offer(number, frame.arrival, frame.bytes);
            });
            let next = ring.peek(clock);
            self.waiting.extend(next.map(|at| Reverse((at, number))));
            self.parts.interfaces[number].io.ring = Some(ring);
            if !in_time {
                return (count, false);
            }
        }
        (count, true)
    }

    /// Does what is due until `until`, and sends full batches; false: there is more, and all else is to have its turn.
    #[inline]
    fn advance(&mut self, until: Nanos) -> bool {
        let (mut events, clock) = (EVENTS_A_TURN, monotonic_now());
        loop {
            let Parts { network, .. } = &mut self.parts;
            match network.advance(until, clock, &mut events, &mut self.departures) {
                Progress::Done => return true,
                Progress::Full => self.flush(),
                Progress::Busy => return false,
            }
        }
    }

    /// Sends what was gathered.
    fn flush(&mut self) {
        if self.departures.is_empty() {
            return;
        }
        let Parts {
            network,
            interfaces,
            tx,
            ..
        } = &mut self.parts;
        let mut failed = [false; TX_BATCH];
        tx.send(
            self.departures.len(),
            |i| {
                let departure = self.departures[i];
                let index = interfaces[departure.interface as usize].io.index();
                (index, network.frame(departure))
            },
            |i, _| failed[i] = true,
        );
        for (departure, failed) in self.departures.drain(..).zip(failed) {
            network.sent(departure, failed);
        }
    }

    // ---- switches -----------------------------------------------------------------------------------------

    /// Frames whose programs took too long, of all switches.
    fn overruns(&self) -> u64 {
        self.parts
            .network
            .devices()
            .map(|d| d.stats().overruns())
            .sum()
    }

    fn take_commands(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Start(index, name, mut device, side) => {
                    for attached in &self.parts.interfaces {
                        if let Some((of, port)) = attached.port.filter(|(of, _)| *of == index) {
                            debug_assert_eq!(of, index);
                            device.set_port_up(port, attached.io.is_up());
                        }
                    }
                    self.parts.network.start(index, &name, *device);
                    self.switches[index] = Some(side);
                }
                Command::Stop(index, reply) => {
                    self.report_losses();
                    self.switches[index] = None;
                    // Who has gone does not want it.
                    let _ = reply.send(self.parts.network.stop(index).map(Box::new));
                }
            }
        }
    }

    /// Runs closures of all switches; true when some ran: there may be more.
    fn run_calls(&mut self) -> bool {
        let (mut any, until) = (false, monotonic_now() + CALL_TIME);
        if monotonic_now() >= self.losses_read + LOSSES_PERIOD {
            self.losses_read = monotonic_now();
            self.report_losses();
        }
        for index in 0..self.switches.len() {
            let Some(side) = &mut self.switches[index] else {
                continue;
            };
            let Some(device) = self.parts.network.device(index) else {
                continue;
            };
            let mut left = CALL_BATCH;
            while left > 0 && side.calls.run_one(device, |_| monotonic_now()) {
                any = true;
                left = if monotonic_now() < until { left - 1 } else { 0 };
            }
            self.parts.network.refresh(index);
        }
        any
    }

    /// Tells the switches of frames that were lost before they could be received.
    fn report_losses(&mut self) {
        for (number, attached) in self.parts.interfaces.iter_mut().enumerate() {
            let Some((index, _)) = attached.port else {
                continue;
            };
            if !self.parts.network.is_link(number) {
                if let Some(device) = self.parts.network.device(index) {
                    attached.io.report_losses(device);
                }
            }
        }
    }

    /// Events of a switch wait for which its control plane has no room.
    fn events_wait(&self) -> bool {
        self.parts.network.devices().any(Device::has_events)
    }

    fn hand_on_events(&mut self) {
        for (index, side) in self.switches.iter_mut().enumerate() {
            let device = self.parts.network.device(index);
            let (Some(side), Some(device)) = (side, device.filter(|d| d.has_events())) else {
                continue;
            };
            let mut batch = Vec::new();
            match side.events.try_reserve() {
                Ok(permit) => {
                    device.take_events(&mut batch);
                    permit.send(batch);
                }
                Err(TrySendError::Full(())) => {}
                // Nobody listens (any more): what is reported is lost, as it must be.
                Err(TrySendError::Closed(())) => device.take_events(&mut batch),
            }
        }
    }

    // ---- interfaces ---------------------------------------------------------------------------------------

    /// Looks up the interfaces that the kernel says have changed.
    fn refresh_links(&mut self) -> io::Result<()> {
        let mut changed = Vec::new();
        // One that fails is left as it is: those that are gone are looked for all the same.
        let _ = self.links.each(|index| changed.push(index));
        for number in 0..self.parts.interfaces.len() {
            let attached = &mut self.parts.interfaces[number];
            let io = &mut attached.io;
            let is_meant = changed
                .iter()
                .any(|one| one.is_none_or(|index| index == io.index()));
            if !is_meant && io.is_present() {
                continue;
            }
            if let (Change::Reopened, Some(ring)) = (io.refresh(), &io.ring) {
                let token = number as u64;
                self.parts.poller.add(ring.as_fd(), token, Interest::Read)?;
            }
            let (is_up, port) = (io.is_up(), attached.port);
            if let Some((index, port)) = port {
                if let Some(device) = self.parts.network.device(index) {
                    device.set_port_up(port, is_up);
                    self.parts.network.refresh(index);
                }
            }
        }
        Ok(())
    }
}

/// Why the loop woke up.
#[derive(Default)]
struct WakeCauses {
    any: bool,
    control: bool,
    woken: bool,
    links: bool,
}
