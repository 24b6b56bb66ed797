// SPDX-License-Identifier: Apache-2.0
//! What a loop waits for: instants of a calendar, and sockets.

use rustix::event::epoll::{self, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    clock_gettime, timerfd_create, timerfd_settime, ClockId, Itimerspec, TimerfdClockId,
    TimerfdFlags, TimerfdTimerFlags, Timespec,
};
use std::collections::BTreeSet;
use std::io;

const NS_PER_S: u64 = 1_000_000_000;
const READY_MAX: usize = 64;

/// What happens at an instant, in this order among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The application of a flow is due.
    Step(usize),
    /// A flow ends.
    Stop(usize),
    /// A receiver reads what has waited.
    Read(u64),
    Sample,
    /// What is under way is written down.
    Unfinished,
    End,
}

/// What a socket is, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Timer,
    Signal,
    Listener(u64),
    Sender(u64),
    Receiver(u64),
    Datagrams(u64),
}

impl Source {
    const KINDS: [fn(u64) -> Source; 6] = [
        |_| Source::Timer,
        |_| Source::Signal,
        Source::Listener,
        Source::Sender,
        Source::Receiver,
        Source::Datagrams,
    ];

    fn data(self) -> epoll::EventData {
        let (kind, id) = match self {
            Source::Timer => (0, 0),
            Source::Signal => (1, 0),
            Source::Listener(id) => (2, id),
            Source::Sender(id) => (3, id),
            Source::Receiver(id) => (4, id),
            Source::Datagrams(id) => (5, id),
        };
        epoll::EventData::new_u64(id * Source::KINDS.len() as u64 + kind)
    }

    fn new(data: epoll::EventData) -> Source {
        let kinds = Source::KINDS.len() as u64;
        Source::KINDS[(data.u64() % kinds) as usize](data.u64() / kinds)
    }
}

/// What comes next.
pub enum Turn {
    /// An event, at the instant that it was due.
    Due(u64, Event),
    Ready(Vec<(Source, EventFlags)>),
}

/// Waits for both. Instants are nanoseconds since an origin on CLOCK_MONOTONIC.
pub struct Reactor {
    epoll: OwnedFd,
    timer: OwnedFd,
    calendar: BTreeSet<(u64, Event)>,
    /// What the timer is set to.
    armed: Option<u64>,
    is_due: bool,
    origin_ns: u64,
}

impl Reactor {
    /// # Errors
    /// The system's.
    pub fn new(origin_ns: u64) -> io::Result<Reactor> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let reactor = Reactor {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            calendar: BTreeSet::new(),
            armed: None,
            is_due: false,
            origin_ns,
        };
        reactor.watch(&reactor.timer, Source::Timer, EventFlags::IN)?;
        Ok(reactor)
    }

    /// The present.
    pub fn now(&self) -> u64 {
        monotonic_ns().saturating_sub(self.origin_ns)
    }

    /// Enters an event.
    pub fn at(&mut self, instant: u64, event: Event) {
        self.calendar.insert((instant, event));
    }

    /// # Errors
    /// The system's, as of the next one.
    pub fn watch(&self, socket: impl AsFd, source: Source, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, source.data(), flags)?)
    }

    /// Waits for other `flags` of a socket, or for the same ones anew.
    ///
    /// # Errors
    /// The system's.
    pub fn rewatch(&self, socket: impl AsFd, source: Source, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, source.data(), flags)?)
    }

    /// Waits for what comes next; sockets first, where both are there.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&mut self) -> io::Result<Turn> {
        loop {
            if std::mem::take(&mut self.is_due) {
                if let Some((instant, event)) = self.calendar.pop_first() {
                    return Ok(Turn::Due(instant, event));
                }
            }
            self.arm()?;
            let mut events = Vec::with_capacity(READY_MAX);
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                None,
            ) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let sources = events
                .iter()
                .map(|event| (Source::new(event.data), event.flags));
            let (timers, ready): (Vec<_>, Vec<_>) =
                sources.partition(|(source, _)| *source == Source::Timer);
            self.is_due = !timers.is_empty();
            if !ready.is_empty() {
                return Ok(Turn::Ready(ready));
            }
        }
    }

    /// Sets the timer to the first instant; that also clears it.
    fn arm(&mut self) -> io::Result<()> {
        let first = self.calendar.first().map(|(instant, _)| *instant);
        if first == self.armed && first.is_some() {
            return Ok(());
        }
        self.armed = first;
        let instant = first.map_or(0, |first| self.origin_ns + first);
        let timespec = |ns: u64| Timespec {
            tv_sec: (ns / NS_PER_S) as i64,
            tv_nsec: (ns % NS_PER_S) as i64,
        };
        let value = Itimerspec {
            it_interval: timespec(0),
            it_value: timespec(instant),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value)?;
        Ok(())
    }
}

/// CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}
