// SPDX-License-Identifier: Apache-2.0
//! The loop: one thread that receives, does what is due, sends, and sleeps until the next instant or frame.
//!
//! The network's time is the time at which frames arrived in the kernel, and the exact instants between them: a late
//! wake-up makes frames leave late but bends neither rates nor queue lengths.

use crate::lateness::{SpinBudget, WakeupLatency};
use crate::network::{Network, Outbox};
use crate::request::{self, Fields, PortReport};
use crate::setup::LoopOptions;
use device::{Calls, Device, DeviceHandle, DropReason, Event};
use netio::clock::{monotonic_now, sleep_until, ClockPair, Nanos};
use netio::interface::LinkWatch;
use netio::poll::{Poller, WakeFd};
use netio::thread::{Moderation, Rest};
use netio::tx_batch::{Departure, TxBatch};
use netio::{Change, PortIo};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender};
use std::sync::Arc;
use tokio::sync::mpsc::error::TrySendError;

/// Tokens of the poller; interfaces have their number.
const LINK_TOKEN: u64 = u64::MAX;
const WAKE_TOKEN: u64 = u64::MAX - 1;
/// Frames received before all else gets its turn; fewer after a turn in which a program took too long.
const RX_BATCH: usize = 128;
const RX_BATCH_SLOW: usize = 1;
/// A thread that never sleeps asks the kernel this often whether an interface has changed.
const POLL_PERIOD: Nanos = 1_000_000;
/// Closures run for one switch before frames get their turn, and how long they may take together.
const CALL_BATCH: usize = 64;
const CALL_TIME: Nanos = 100_000;
/// Who asks a device something finds losses at reception at most this old: each query is a system call for each port.
const LOSSES_PERIOD: Nanos = 10_000_000;
/// Retry of events that a control plane had no room for.
const EVENT_RETRY: Nanos = 1_000_000;

/// An interface, and what it is to the network.
pub(crate) struct Attached {
    pub io: PortIo,
    /// Frames come and go here.
    pub has_frames: bool,
    /// The switch's port that is up as long as it is: index of the switch, and the port.
    pub port: Option<(usize, u32)>,
}

/// The switches and links on their interfaces.
pub struct Loop {
    pub(crate) network: Network,
    /// By number.
    pub(crate) interfaces: Vec<Attached>,
    /// Which interface is at each end of the links: `2 * link`, plus 1 for end b.
    pub(crate) ends: Vec<usize>,
    tx: Tx,
    sends_in_threads: bool,
    switches: Vec<Option<Side>>,
    commands: Receiver<Command>,
    wake: Arc<WakeFd>,
    links: LinkWatch,
    poller: Poller,
    /// In one turn: the interfaces whose rings hold something, by the arrival of the first frame.
    waiting: BinaryHeap<Reverse<(Nanos, usize)>>,
    losses_read: Nanos,
    sleep: Sleep,
    has_ended: bool,
}

/// A running switch, from the loop's side.
struct Side {
    calls: Calls,
    events: tokio::sync::mpsc::Sender<Vec<Event>>,
}

/// What another thread asks of the loop.
type Command = Box<dyn FnOnce(&mut Loop) + Send>;

/// The way out, with the clock by which frames are late.
struct Tx(TxBatch);

impl Outbox for Tx {
    #[inline]
    fn now(&self) -> Nanos {
        monotonic_now()
    }

    #[inline]
    fn push(&mut self, departure: Departure, frame: &[u8]) {
        self.0.push(departure, frame);
    }
}

/// When the thread sleeps, and for how long.
struct Sleep {
    /// Look instead of sleep for so long before an instant and after a frame.
    spin: Nanos,
    awake_until: Nanos,
    moderation: Moderation,
    rest: Rest,
    wakeup: WakeupLatency,
    budget: SpinBudget,
    /// Since when it looks instead of sleeping because an instant is near.
    looks_since: Option<Nanos>,
    polled: Nanos,
}

/// The way from other threads to the loop.
#[derive(Clone)]
pub struct NetworkHandle {
    commands: Sender<Command>,
    wake: Arc<WakeFd>,
}

impl NetworkHandle {
    /// Does `work` in the loop, between two turns; None: the loop has ended.
    fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Loop) -> R + Send + 'static,
    ) -> Option<R> {
        let (reply, answer) = sync_channel(1);
        let command: Command = Box::new(move |it| {
            // Who has gone does not want it.
            let _ = reply.send(work(it));
        });
        self.commands.send(command).ok()?;
        self.wake.wake();
        answer.recv().ok()
    }

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
        let (name, device) = (name.to_owned(), Box::new(device));
        self.call(move |it| {
            it.network.start(index, &name, *device);
            it.switches[index] = Some(Side { calls, events });
            (0..it.interfaces.len()).for_each(|number| it.tell_port(number));
        })?;
        Some(handle)
    }

    /// A switch is gone; returns it as it was then. What had come for it was handled before, as far as one turn goes.
    pub fn stop(&self, index: usize) -> Option<Box<Device>> {
        let stopped = self.call(move |it| {
            it.carry(&ClockPair::read(), RX_BATCH);
            it.settle();
            it.report_losses();
            it.switches[index] = None;
            it.network.stop(index).map(Box::new)
        });
        stopped.flatten()
    }

    /// Answers a request of the control socket that is about links.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn answer(&self, op: &'static str, request: Fields) -> Result<Fields, String> {
        let answer = self.call(move |it| {
            it.settle();
            let (ends, interfaces) = (&it.ends, &mut it.interfaces);
            let ports = &mut |end: usize| {
                let io = &mut interfaces[ends[end]].io;
                PortReport {
                    interface: io.name().to_owned(),
                    present: io.is_present(),
                    down_events: io.down_events(),
                    losses: io.losses(),
                }
            };
            request::handle(op, request, monotonic_now(), &mut it.network, ports)
        });
        answer.unwrap_or_else(|| Err("the network has stopped".to_owned()))
    }

    /// Ends the loop.
    pub fn end(&self) {
        let _ = self.call(|it| it.has_ended = true);
    }
}

impl Loop {
    /// A loop for up to `switches` switches, and the way to it.
    ///
    /// # Errors
    /// The system's error, as when there are too many open files.
    pub(crate) fn new(
        network: Network,
        interfaces: Vec<Attached>,
        ends: Vec<usize>,
        mut tx: TxBatch,
        links: LinkWatch,
        options: &LoopOptions,
        switches: usize,
    ) -> io::Result<(Loop, NetworkHandle)> {
        let poller = Poller::new()?;
        let wake = Arc::new(WakeFd::new()?);
        poller.add(wake.as_fd(), WAKE_TOKEN)?;
        poller.add(links.as_fd(), LINK_TOKEN)?;
        for (number, Attached { io, .. }) in interfaces.iter().enumerate() {
            if let Some(ring) = &io.ring {
                poller.add(ring.as_fd(), number as u64)?;
            }
            tx.bind(number, io.index());
        }
        let (sender, commands) = channel();
        let handle = NetworkHandle {
            commands: sender,
            wake: wake.clone(),
        };
        let it = Loop {
            waiting: BinaryHeap::with_capacity(interfaces.len()),
            network,
            interfaces,
            ends,
            tx: Tx(tx),
            sends_in_threads: options.sending_threads() > 0,
            switches: (0..switches).map(|_| None).collect(),
            commands,
            wake,
            links,
            poller,
            losses_read: 0,
            sleep: Sleep {
                spin: options.spin_us * 1_000,
                awake_until: 0,
                moderation: Moderation::default(),
                rest: Rest::default(),
                wakeup: WakeupLatency::new(options.lead_us * 1_000),
                budget: SpinBudget::new(monotonic_now()),
                looks_since: None,
                polled: 0,
            },
            has_ended: false,
        };
        Ok((it, handle))
    }

    /// Runs until [`NetworkHandle::end`], on the thread that calls, as which the threads that send are scheduled.
    ///
    /// # Errors
    /// The system's error when waiting itself fails, or a thread cannot be had.
    pub fn run(mut self) -> io::Result<()> {
        if self.sends_in_threads {
            self.tx = Tx(self.tx.0.in_threads()?);
        }
        self.sleep.rest = Rest::for_this_thread();
        self.network.begin(monotonic_now());
        let (mut batch, mut calls_wait) = (RX_BATCH, false);
        while !self.has_ended {
            // What arrives after this reading is for the next turn.
            let clock = ClockPair::read();
            let overruns = self.overruns();
            let (received, in_time) = self.carry(&clock, batch);
            // A program that goes round for ever must not keep all else waiting.
            batch = match self.overruns() == overruns {
                true => RX_BATCH,
                false => RX_BATCH_SLOW,
            };
            let is_asked = self.wake.take();
            if is_asked {
                while let Ok(command) = self.commands.try_recv() {
                    command(&mut self);
                }
            }
            // A call may have more pieces than had time: nobody wakes the loop for them.
            if is_asked || calls_wait {
                calls_wait = self.run_calls();
            }
            let events_wait = self.hand_on_events();
            self.sleep.moderation.received(received);
            self.sleep.rest.take(clock.monotonic);
            // More may have come meanwhile: only who finds nothing sleeps.
            let is_busy = received > 0 || !in_time || calls_wait || self.has_ended;
            self.wait(is_busy, events_wait)?;
        }
        Ok(())
    }

    /// Sleeps, where nothing `is_busy`, until a frame comes, something else calls, or something is due.
    fn wait(&mut self, is_busy: bool, events_wait: bool) -> io::Result<()> {
        let (now, sleep) = (monotonic_now(), &mut self.sleep);
        if let Some(since) = sleep.looks_since.take() {
            sleep.budget.spend(now - since);
        }
        if is_busy {
            sleep.awake_until = now + sleep.spin;
        }
        let lead = match sleep.budget.allows(now) {
            true => sleep.wakeup.lead().max(sleep.spin),
            false => sleep.spin,
        };
        let due = self.network.next_event();
        let retry = events_wait.then_some(now + EVENT_RETRY);
        let wake = due.map(|at| at.saturating_sub(lead));
        let wake = wake.into_iter().chain(retry).min();
        let mut timeout = wake.map(|wake| wake.saturating_sub(now));
        if is_busy || now < sleep.awake_until {
            timeout = Some(0);
        } else {
            if timeout == Some(0) && due.is_some_and(|due| due > now) {
                sleep.looks_since = Some(now);
            }
            // Frames come densely: some more at once, instead of each by itself.
            let pause = sleep.moderation.pause_until(now);
            if let Some(until) = pause.filter(|_| sleep.spin == 0) {
                let until = wake.map_or(until, |wake| wake.min(until));
                if until > now {
                    sleep.rest.during(now, || sleep_until(until));
                }
                timeout = Some(0);
            }
        }
        let ready = match timeout {
            Some(0) if now < sleep.polled + POLL_PERIOD => return Ok(()),
            // To poll is no rest.
            Some(0) => self.poller.wait(timeout),
            _ => sleep.rest.during(now, || self.poller.wait(timeout)),
        };
        let (mut is_any, mut links_changed) = (false, false);
        for one in ready? {
            is_any = true;
            match one.token {
                WAKE_TOKEN => self.wake.clear(),
                LINK_TOKEN => links_changed = true,
                number if one.error => {
                    if let Some(ring) = &self.interfaces[number as usize].io.ring {
                        ring.clear_error();
                    }
                    links_changed = true;
                }
                _ => {}
            }
        }
        let came = monotonic_now();
        self.sleep.polled = came;
        if let (Some(wake), false, false) = (wake, is_any, timeout == Some(0)) {
            self.sleep.wakeup.learn(wake, came);
        }
        match links_changed {
            true => self.refresh_links(),
            false => Ok(()),
        }
    }

    // ---- frames -------------------------------------------------------------------------------------------

    /// Takes up to `batch` frames that have arrived, does what is due, sends. Returns how many frames there were, and whether
    /// nothing is left to do.
    fn carry(&mut self, clock: &ClockPair, batch: usize) -> (usize, bool) {
        let (received, received_all) = self.receive(clock, batch);
        let in_time = received_all && self.network.advance(clock.monotonic, &mut self.tx);
        self.tx.0.flush();
        self.count_failures();
        (received, in_time)
    }

    /// Takes up to `batch` frames of all rings that had arrived at the reading, merged by arrival; what is due before a frame
    /// is done before. Returns how many, and whether those were all.
    #[inline]
    fn receive(&mut self, clock: &ClockPair, batch: usize) -> (usize, bool) {
        let (network, tx) = (&mut self.network, &mut self.tx);
        // One look at every ring is enough: what comes to an empty one now arrived after the reading.
        self.waiting.clear();
        for (number, Attached { io, .. }) in self.interfaces.iter().enumerate() {
            let arrival = io.ring.as_ref().and_then(|ring| ring.peek(clock));
            self.waiting.extend(arrival.map(|at| Reverse((at, number))));
        }
        let (mut count, mut in_time) = (0, true);
        while let Some(Reverse((arrival, number))) = self.waiting.pop() {
            if arrival > clock.monotonic {
                break;
            }
            if count == batch || !in_time {
                in_time = false;
                break;
            }
            let other = self.waiting.peek().map(|Reverse((at, _))| *at);
            let until = other.map_or(clock.monotonic, |at| at.min(clock.monotonic));
            let Some(ring) = &mut self.interfaces[number].io.ring else {
                continue;
            };
            count += ring.receive_until(clock, batch - count, until, |frame| {
                in_time &= network.offer(number, frame.arrival, frame.bytes, tx);
            });
            let next = ring.peek(clock);
            self.waiting.extend(next.map(|at| Reverse((at, number))));
        }
        in_time &= network.catch_up(tx);
        (count, in_time)
    }

    /// Waits until all is sent that left, so that who reads counts finds as sent what was sent.
    fn settle(&mut self) {
        self.tx.0.settle();
        self.count_failures();
    }

    #[inline]
    fn count_failures(&mut self) {
        let network = &mut self.network;
        let each = |departure, bytes| network.count_failure(departure, bytes);
        self.tx.0.take_failures(each);
    }

    // ---- switches -----------------------------------------------------------------------------------------

    /// Frames whose programs took too long, of all switches.
    fn overruns(&self) -> u64 {
        let devices = self.network.devices();
        devices.map(|device| device.stats().overruns()).sum()
    }

    /// Runs closures of all switches; true when some ran: there may be more.
    fn run_calls(&mut self) -> bool {
        let now = monotonic_now();
        let (mut any, until) = (false, now + CALL_TIME);
        self.settle();
        if now >= self.losses_read + LOSSES_PERIOD {
            self.losses_read = now;
            self.report_losses();
        }
        for (index, side) in self.switches.iter_mut().enumerate() {
            let (Some(side), Some(device)) = (side, self.network.device(index)) else {
                continue;
            };
            let mut left = CALL_BATCH;
            while left > 0 && side.calls.run_one(device, |_| monotonic_now()) {
                any = true;
                left = if monotonic_now() < until { left - 1 } else { 0 };
            }
            self.network.refresh(index);
        }
        any
    }

    /// Tells the switches of frames that were lost before they could be received.
    fn report_losses(&mut self) {
        for (number, attached) in self.interfaces.iter_mut().enumerate() {
            let Some((index, port)) = attached.port.filter(|_| !self.network.is_link(number))
            else {
                continue;
            };
            let Some(device) = self.network.device(index) else {
                continue;
            };
            let lost = attached.io.take_losses();
            for (reason, lost) in [
                (DropReason::RingFull, lost.ring_full),
                (DropReason::Truncated, lost.truncated),
                (DropReason::Unsegmented, lost.unsegmented),
            ] {
                if lost > 0 {
                    device.count_reception_losses(port, reason, lost);
                }
            }
        }
    }

    /// True when events wait that a control plane has no room for.
    fn hand_on_events(&mut self) -> bool {
        let mut events_wait = false;
        for (index, side) in self.switches.iter_mut().enumerate() {
            let device = self.network.device(index);
            let (Some(side), Some(device)) = (side, device.filter(|d| d.has_events())) else {
                continue;
            };
            let mut batch = Vec::new();
            match side.events.try_reserve() {
                Ok(permit) => {
                    device.take_events(&mut batch);
                    permit.send(batch);
                }
                Err(TrySendError::Full(())) => events_wait = true,
                // Nobody listens (any more): what is reported is lost, as it must be.
                Err(TrySendError::Closed(())) => device.take_events(&mut batch),
            }
        }
        events_wait
    }

    // ---- interfaces ---------------------------------------------------------------------------------------

    /// Looks up the interfaces that the kernel says have changed.
    fn refresh_links(&mut self) -> io::Result<()> {
        let mut changed = Vec::new();
        // One that fails is left as it is: those that are gone are looked for all the same.
        let _ = self.links.each(|index| changed.push(index));
        for number in 0..self.interfaces.len() {
            let io = &mut self.interfaces[number].io;
            let is_meant = changed
                .iter()
                .any(|one| one.is_none_or(|index| index == io.index()));
            if !is_meant && io.is_present() {
                continue;
            }
            if let (Change::Reopened, Some(ring)) = (io.refresh(), &io.ring) {
                let token = number as u64;
                self.poller.add(ring.as_fd(), token)?;
            }
            self.tx.0.bind(number, io.index());
            self.tell_port(number);
        }
        Ok(())
    }

    /// Tells the switch's port behind an interface whether it is up.
    fn tell_port(&mut self, number: usize) {
        let Attached { io, port, .. } = &self.interfaces[number];
        let Some((index, port)) = *port else {
            return;
        };
        if let Some(device) = self.network.device(index) {
            device.set_port_up(port, io.is_up());
            self.network.refresh(index);
        }
    }
}
