// SPDX-License-Identifier: Apache-2.0
//! The wire's loop: one thread that receives, sends what is due, and sleeps until the next instant or frame.

use crate::control::Control;
use crate::emulator::{Departure, Emulator};
use crate::port::Port;
use crate::request::{self, PortReport, Ports};
use crate::wakeup::{LookBudget, WakeupLatency};
use netio::clock::{monotonic_now, ClockPair, Nanos};
use netio::poll::{Interest, Poller, Ready};
use netio::socket::{TxSocket, TX_BATCH};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

/// Event token of the signals; ports have their number.
const SIGNAL_TOKEN: u64 = u64::MAX;
/// Event token of the control socket.
pub const CONTROL_TOKEN: u64 = 1 << 32;
/// Frames taken from a ring before others get their turn.
const RX_BATCH: usize = 64;
/// Batches sent before the rings get their turn.
const TX_ROUNDS: usize = 8;
/// How often a lost interface is looked for.
const MEND_EVERY: Nanos = 250_000_000;

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

/// Everything that the loop works with.
pub struct Wire {
    pub emulator: Emulator,
    pub ports: Vec<Port>,
    pub tx: TxSocket,
    pub control: Control,
    pub poller: Poller,
    pub wakeup: WakeupLatency,
}

struct PortList<'a>(&'a mut [Port]);

impl Ports for PortList<'_> {
    fn report(&mut self, port: usize) -> PortReport {
        self.0[port].report()
    }
}

impl Wire {
    /// Runs until a signal comes.
    ///
    /// # Errors
    /// The system's error when waiting itself fails.
    pub fn run(mut self, signals: &Signals) -> io::Result<()> {
        self.poller
            .add(signals.0.as_fd(), SIGNAL_TOKEN, Interest::Read)?;
        let mut departures: Vec<Departure> = Vec::with_capacity(TX_BATCH);
        let mut events: Vec<Ready> = Vec::with_capacity(256);
        let mut mend_at = self.next_mend();
        let mut budget = LookBudget::new(monotonic_now());
        self.emulator.begin(monotonic_now());
        loop {
            let more = self.send_due(&mut departures);
            let now = monotonic_now();
            let lead = if budget.allows(now) {
                self.wakeup.lead()
            } else {
                0
            };
            let next = if more {
                Some(now)
            } else {
                self.emulator.next_event()
            };
            let wake = match next {
                Some(next) => Some(next.saturating_sub(lead).min(mend_at)),
                None => Some(mend_at).filter(|at| *at != Nanos::MAX),
            };
            let timeout = wake.map(|wake| wake.saturating_sub(now));
            events.clear();
            events.extend(self.poller.wait(timeout)?);
            let clock = ClockPair::read();
            match (wake, timeout) {
                _ if !events.is_empty() => {}
                (_, Some(0)) => budget.spend(clock.monotonic - now),
                (Some(wake), _) => self.wakeup.learn(wake, clock.monotonic),
                (None, _) => {}
            }
            for event in &events {
                if event.token == SIGNAL_TOKEN {
                    return Ok(());
                } else if event.token == CONTROL_TOKEN {
                    let emulator = &mut self.emulator;
                    let ports = &mut PortList(&mut self.ports);
                    self.control
                        .answer_all(|line| request::handle(line, monotonic_now(), emulator, ports));
                } else {
                    self.receive(*event, &clock);
                    if event.error {
                        mend_at = mend_at.min(self.next_mend());
                    }
                }
            }
            if clock.monotonic >= mend_at {
                for port in self.ports.iter_mut().filter(|port| port.is_suspect()) {
                    port.mend(&self.poller);
                }
                mend_at = self.next_mend();
            }
        }
    }

    /// When to look for lost interfaces.
    fn next_mend(&self) -> Nanos {
        match self.ports.iter().any(Port::is_suspect) {
            true => monotonic_now() + MEND_EVERY,
            false => Nanos::MAX,
        }
    }

    fn receive(&mut self, event: Ready, clock: &ClockPair) {
        let number = event.token as usize;
        let port = &mut self.ports[number];
        if event.error {
            port.failed();
        }
        let emulator = &mut self.emulator;
        if let Some(ring) = port.ring() {
            ring.receive(clock, RX_BATCH, |frame| {
                emulator.offer(number, frame.arrival, frame.bytes);
            });
        }
    }

    /// Sends what is due, up to [`TX_ROUNDS`] batches; returns whether more is due.
    fn send_due(&mut self, departures: &mut Vec<Departure>) -> bool {
        for _ in 0..TX_ROUNDS {
            departures.clear();
            let more = self.emulator.collect(monotonic_now(), departures);
            if departures.is_empty() {
                return false;
            }
            let (emulator, ports) = (&self.emulator, &self.ports);
            let mut failed = [false; TX_BATCH];
            self.tx.send(
                departures.len(),
                |i| {
                    (
                        ports[departures[i].port].index(),
                        emulator.frame(departures[i]),
                    )
                },
                |i, _| failed[i] = true,
            );
            for (departure, failed) in departures.iter().zip(failed) {
                if failed {
                    self.emulator.unsent(*departure);
                }
                self.emulator.sent(*departure);
            }
            if !more {
                return false;
            }
        }
        true
    }
}
