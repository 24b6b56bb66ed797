// SPDX-License-Identifier: Apache-2.0
//! The thread that drives a device: receive a batch in order of arrival, do what is due, send, sleep.
//!
//! The device's time is the time at which frames arrived in the kernel, and the exact instants of departures
//! between them; so a late wake-up makes frames leave late but bends neither rates nor queue lengths.

use crate::clock::{monotonic_now, sleep_until, ClockPair, Nanos};
use crate::link_watch::LinkWatch;
use crate::moderation::Moderation;
use crate::poll::{Interest, Poller};
use crate::port_io::{Change, PortBinding, PortIo};
use crate::rest::Rest;
use crate::socket::{InterfaceError, RingOptions, TxSocket};
use crate::tx_batch::TxBatch;
use crate::wake::WakeFd;
use device::config::PORT_MAX;
use device::{Calls, Device, DeviceHandle, Event};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::Sender;

/// Tokens of the poller; ports have the index of their `PortIo`.
const WAKE_TOKEN: u64 = u64::MAX;
const LINK_TOKEN: u64 = u64::MAX - 1;
/// Frames received before calls, events and departures get their turn.
const RX_BATCH: usize = 128;
/// The same after a turn with frames that took too long each.
const RX_BATCH_SLOW: usize = 1;
/// Closures run before frames get their turn: so many, or fewer that take so long together.
const CALL_BATCH: usize = 64;
const CALL_TIME: Nanos = 100_000;
/// Who asks the device something finds losses at reception at most this old: each query is a system call for each port.
const LOSSES_PERIOD: Nanos = 10_000_000;
/// Retry of events that the control plane had no room for.
const EVENT_RETRY: Nanos = 1_000_000;

/// Options of the loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopOptions {
    /// Poll instead of sleep for this long before an instant and after a frame.
    pub spin_ns: Nanos,
    /// Threads that send, among which the ports are shared out; 0: the loop itself sends.
    pub send_threads: usize,
    /// Receiving ring of each interface.
    pub ring: RingOptions,
}

/// Stops the loop from another thread.
#[derive(Clone)]
pub struct StopHandle {
    stop: Arc<AtomicBool>,
    wake: Arc<WakeFd>,
}

impl StopHandle {
    /// The loop returns after what it is doing now.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake.wake();
    }
}

/// A device on interfaces.
pub struct SwitchLoop {
    device: Device,
    ports: Vec<PortIo>,
    /// In one turn: the ports whose rings hold something, by the arrival of the first frame.
    waiting: BinaryHeap<Reverse<(Nanos, usize)>>,
    tx: TxBatch,
    poller: Poller,
    links: LinkWatch,
    wake: Arc<WakeFd>,
    stop: Arc<AtomicBool>,
    calls: Calls,
    events: Sender<Vec<Event>>,
    options: LoopOptions,
    moderation: Moderation,
    rest: Rest,
    /// When losses at reception were reported to the device.
    losses_reported: Nanos,
}

const NO_SOCKET: &str =
    "opening a packet socket (interfaces need root, or a user and network namespace: unshare -rn)";

/// Why the loop cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    #[error("{0} failed: {1}")]
    System(&'static str, io::Error),
}

impl SwitchLoop {
    /// Opens the interfaces of a device whose ports are there. Events go to `events` as long as it has room.
    ///
    /// # Errors
    /// [`OpenError`]: an interface that is missing, or a right that is.
    pub fn open(
        mut device: Device,
        bindings: &[PortBinding],
        options: LoopOptions,
        events: Sender<Vec<Event>>,
    ) -> Result<(SwitchLoop, DeviceHandle, StopHandle), OpenError> {
        let system = |what: &'static str| move |e: io::Error| OpenError::System(what, e);
        let poller = Poller::new().map_err(system("epoll"))?;
        let wake = Arc::new(WakeFd::new().map_err(system("eventfd"))?);
        let links = LinkWatch::open().map_err(system("opening a netlink socket"))?;
        // Without an interface the switch needs no right: P4Runtime alone, as for trying a program.
        let sockets = match bindings {
            [] => 0,
            _ => options.send_threads.clamp(1, bindings.len()),
        };
        let sockets = (0..sockets).map(|_| TxSocket::open()).collect();
        let sockets = io::Result::map_err(sockets, system(NO_SOCKET))?;
        let mut tx = TxBatch::new(sockets, PORT_MAX);
        poller
            .add(wake.as_fd(), WAKE_TOKEN, Interest::Read)
            .map_err(system("epoll"))?;
        poller
            .add(links.as_fd(), LINK_TOKEN, Interest::Read)
            .map_err(system("epoll"))?;
        let mut ports = Vec::with_capacity(bindings.len());
        for (i, binding) in bindings.iter().enumerate() {
            let io = PortIo::open(binding, Some(options.ring))?;
            if let Some(ring) = &io.ring {
                poller
                    .add(ring.as_fd(), i as u64, Interest::Read)
                    .map_err(system("epoll"))?;
            }
            tx.bind(i, io.port, io.index());
            device.set_port_up(io.port, io.is_up());
            ports.push(io);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let waker = wake.clone();
        let (handle, calls) = DeviceHandle::new(move || waker.wake());
        let stop_handle = StopHandle {
            stop: stop.clone(),
            wake: wake.clone(),
        };
        let switch_loop = SwitchLoop {
            device,
            waiting: BinaryHeap::with_capacity(ports.len()),
            ports,
            tx,
            poller,
            links,
            wake,
            stop,
            calls,
            events,
            options,
            moderation: Moderation::default(),
            rest: Rest::default(),
            losses_reported: 0,
        };
        Ok((switch_loop, handle, stop_handle))
    }

    /// Runs until it is stopped; returns the device as it was then.
    ///
    /// # Errors
    /// The system's error when waiting itself fails, or a thread cannot be had.
    pub fn run(mut self) -> io::Result<Device> {
        let (mut busy_until, mut batch) = (0, RX_BATCH);
        self.rest = Rest::for_this_thread();
        if self.options.send_threads > 0 {
            self.tx.start_threads()?;
        }
        loop {
            if self.stop.load(Ordering::Acquire) {
                // What came before the stop is still handled, and counted.
                self.receive(&ClockPair::read(), batch);
                self.tx.flush();
                self.tx.settle();
                note_failures(&mut self.tx, &mut self.device);
                for io in &mut self.ports {
                    io.report_losses(&mut self.device);
                }
                return Ok(self.device);
            }
            // What arrives after this reading is for the next turn.
            let clock = ClockPair::read();
            let overruns = self.device.stats().overruns();
            let received = self.receive(&clock, batch);
            if received < batch {
                self.device.advance(clock.monotonic, &mut self.tx);
            }
            // A program that goes round for ever must not keep calls and the stop waiting.
            batch = match self.device.stats().overruns() == overruns {
                true => RX_BATCH,
                false => RX_BATCH_SLOW,
            };
            self.tx.flush();
            note_failures(&mut self.tx, &mut self.device);
            let called = self.run_calls();
            let due = self.device.next_due();
            let events_wait = self.hand_on_events();
            self.moderation.received(received);
            self.rest.take(clock.monotonic);
            if received > 0 || called {
                busy_until = clock.monotonic + self.options.spin_ns;
                continue;
            }
            self.sleep(due, events_wait, busy_until)?;
        }
    }

    /// Takes up to `batch` frames of all rings that had arrived at the reading, merged by arrival; what is due before a
    /// frame is done before.
    #[inline]
    fn receive(&mut self, clock: &ClockPair, batch: usize) -> usize {
        // One poll of every ring is enough: what comes to an empty one now arrived after the reading.
        self.waiting.clear();
        for (i, io) in self.ports.iter().enumerate() {
            let arrival = io.ring.as_ref().and_then(|ring| ring.peek(clock));
            self.waiting.extend(arrival.map(|at| Reverse((at, i))));
        }
        let (mut count, ahead) = (0, self.device.ahead_pays());
        while let Some(Reverse((arrival, i))) = self.waiting.pop() {
            let io = &mut self.ports[i];
            let Some(ring) = &mut io.ring else { continue };
            if arrival > clock.monotonic || count == batch {
                break;
            }
            let other = self.waiting.peek().map(|Reverse((at, _))| *at);
            let until = other.map_or(clock.monotonic, |at| at.min(clock.monotonic));
            let (device, tx, port) = (&mut self.device, &mut self.tx, io.port);
            count += ring.receive_until(clock, batch - count, until, |frame| {
                if ahead {
                    device.receive_ahead(frame.arrival, port, frame.bytes, tx);
                } else {
                    device.advance(frame.arrival, tx);
                    device.receive(frame.arrival, port, frame.bytes);
                }
            });
            let next = ring.peek(clock);
            self.waiting.extend(next.map(|at| Reverse((at, i))));
        }
        self.device.catch_up(&mut self.tx);
        count
    }

    #[inline]
    fn run_calls(&mut self) -> bool {
        let (mut any, until) = (false, monotonic_now() + CALL_TIME);
        let (ports, tx, losses_reported) =
            (&mut self.ports, &mut self.tx, &mut self.losses_reported);
        for _ in 0..CALL_BATCH {
            let prepare = |device: &mut Device| {
                if !any {
                    // Who reads counts finds as sent what was sent.
                    tx.settle();
                    note_failures(tx, device);
                }
                let now = monotonic_now();
                if now >= *losses_reported + LOSSES_PERIOD {
                    *losses_reported = now;
                    ports.iter_mut().for_each(|io| io.report_losses(device));
                }
                now
            };
            if !self.calls.run_one(&mut self.device, prepare) {
                break;
            }
            any = true;
            if monotonic_now() >= until {
                break;
            }
        }
        any
    }

    /// True when events wait that the control plane has no room for.
    #[inline]
    fn hand_on_events(&mut self) -> bool {
        if !self.device.has_events() {
            return false;
        }
        match self.events.try_reserve() {
            Ok(permit) => {
                let mut batch = Vec::new();
                self.device.take_events(&mut batch);
                permit.send(batch);
                false
            }
            Err(TrySendError::Full(())) => true,
            Err(TrySendError::Closed(())) => {
                // Nobody listens (any more): what is reported is lost, as it must be.
                self.device.take_events(&mut Vec::new());
                false
            }
        }
    }

    fn sleep(
        &mut self,
        due: Option<Nanos>,
        events_wait: bool,
        busy_until: Nanos,
    ) -> io::Result<()> {
        let now = monotonic_now();
        let due = match (due, events_wait) {
            (Some(due), true) => Some(due.min(now + EVENT_RETRY)),
            (None, true) => Some(now + EVENT_RETRY),
            (due, false) => due,
        };
        let spin = self.options.spin_ns;
        if spin == 0 {
            if let Some(until) = self.moderation.pause_until(now) {
                let until = due.map_or(until, |due| due.min(until));
                self.rest.during(now, || sleep_until(until));
                return Ok(());
            }
        }
        let timeout = match due {
            Some(due) if due <= now + spin => Some(0),
            _ if now < busy_until => Some(0),
            Some(due) => Some(due - now - spin),
            None => None,
        };
        if timeout == Some(0) && due.is_some_and(|due| due <= now) {
            return Ok(());
        }
        let (mut woken, mut links_changed) = (false, false);
        let poller = &mut self.poller;
        let ready = match timeout {
            // To poll is no rest.
            Some(0) => poller.wait(timeout),
            _ => self.rest.during(now, || poller.wait(timeout)),
        };
        for ready in ready? {
            match ready.token {
                WAKE_TOKEN => woken = true,
                LINK_TOKEN => links_changed = true,
                port => {
                    if ready.error {
                        links_changed = true;
                        if let Some(ring) = &self.ports[port as usize].ring {
                            ring.take_error();
                        }
                    }
                }
            }
        }
        if woken {
            self.wake.clear();
        }
        if links_changed {
            // One that fails is left as it is: the links are looked at all the same.
            let _ = self.links.drain();
            self.refresh_links()?;
        }
        Ok(())
    }

    fn refresh_links(&mut self) -> io::Result<()> {
        for (i, io) in self.ports.iter_mut().enumerate() {
            match io.refresh() {
                Change::None => continue,
                Change::State => {}
                Change::Reopened => {
                    if let Some(ring) = &io.ring {
                        self.poller.add(ring.as_fd(), i as u64, Interest::Read)?;
                    }
                }
            }
            self.tx.bind(i, io.port, io.index());
            self.device.set_port_up(io.port, io.is_up());
        }
        Ok(())
    }
}

#[inline]
fn note_failures(tx: &mut TxBatch, device: &mut Device) {
    tx.take_failures(|port, packets, bytes| {
        device.count_transmit_failures(port, packets, bytes);
    });
}
