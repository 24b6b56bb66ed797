// SPDX-License-Identifier: Apache-2.0
//! An end of a link: an interface that may go away and come back while the wire runs.

use crate::request::PortReport;
use netio::poll::{Interest, Poller};
use netio::socket::{Interface, InterfaceError, RingOptions, RxCounters, RxRing};
use std::io;
use std::os::fd::AsFd;

/// An end of a link.
pub struct Port {
    name: String,
    token: u64,
    ring_options: RingOptions,
    /// None while the interface is gone.
    ring: Option<RxRing>,
    index: i32,
    down_events: u64,
    /// The interface went down and has not been seen up since.
    suspect: bool,
    /// Counts of rings that are closed.
    past: RxCounters,
}

fn sum(a: RxCounters, b: RxCounters) -> RxCounters {
    RxCounters {
        ring_full: a.ring_full + b.ring_full,
        truncated: a.truncated + b.truncated,
        unsegmented: a.unsegmented + b.unsegmented,
    }
}

impl Port {
    /// Opens the interface and watches it under `token`.
    ///
    /// # Errors
    /// [`InterfaceError`], as when there is no such interface.
    pub fn open(
        interface: &Interface,
        ring_options: RingOptions,
        token: u64,
        poller: &Poller,
    ) -> Result<Self, InterfaceError> {
        let mut port = Self {
            name: interface.name.clone(),
            token,
            ring_options,
            ring: None,
            index: 0,
            down_events: 0,
            suspect: !interface.up,
            past: RxCounters::default(),
        };
        port.attach(interface, poller)?;
        Ok(port)
    }

    fn attach(&mut self, interface: &Interface, poller: &Poller) -> Result<(), InterfaceError> {
        let ring = RxRing::open(interface, self.ring_options)?;
        poller
            .add(ring.as_fd(), self.token, Interest::Read)
            .map_err(|source: io::Error| InterfaceError::Io {
                name: self.name.clone(),
                action: "watching",
                source,
            })?;
        self.index = interface.index;
        self.ring = Some(ring);
        Ok(())
    }

    /// The ring, while the interface is there.
    pub fn ring(&mut self) -> Option<&mut RxRing> {
        self.ring.as_mut()
    }

    /// The interface's index, for sending.
    pub fn index(&self) -> i32 {
        self.index
    }

    /// The socket has told an error: the interface went down, or away.
    pub fn failed(&mut self) {
        if self.ring.as_ref().and_then(RxRing::take_error).is_some() {
            self.down_events += 1;
            self.suspect = true;
        }
    }

    /// Whether [`Port::mend`] has something to look after.
    pub fn is_suspect(&self) -> bool {
        self.suspect
    }

    /// Looks whether a suspect interface is gone, or back: then it is opened anew.
    pub fn mend(&mut self, poller: &Poller) {
        let found = Interface::find(&self.name).ok();
        let same = found
            .as_ref()
            .is_some_and(|interface| interface.index == self.index);
        if !same {
            if let Some(mut ring) = self.ring.take() {
                self.past = sum(self.past, ring.counters());
                // Closing the ring also ends the watch.
            }
        }
        if let Some(interface) = found {
            // An interface that goes away again in between is looked for again.
            if self.ring.is_some() || self.attach(&interface, poller).is_ok() {
                self.suspect = !interface.up;
            }
        }
    }

    pub fn report(&mut self) -> PortReport {
        let present = self.ring.is_some();
        let counters = match &mut self.ring {
            Some(ring) => sum(self.past, ring.counters()),
            None => self.past,
        };
        PortReport {
            interface: self.name.clone(),
            present,
            down_events: self.down_events,
            ring_full: counters.ring_full,
            truncated: counters.truncated,
            unsegmented: counters.unsegmented,
        }
    }
}
