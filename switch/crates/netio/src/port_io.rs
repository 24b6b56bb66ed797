// SPDX-License-Identifier: Apache-2.0
//! An interface of a switch's port or of a link's end: its receiving ring, and whether it is there and up.

use crate::socket::{Interface, InterfaceError, RingOptions, RxCounters, RxRing};

/// Which interface is which port, as `-i 1@s1-eth1` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortBinding {
    /// Port of the device.
    pub port: u32,
    /// Name of the interface.
    pub interface: String,
}

/// What changed when an interface was looked up again.
pub enum Change {
    None,
    /// Same ring, other state.
    State,
    /// The ring was opened anew: it must be polled.
    Reopened,
}

/// An interface that may go away and come back.
pub struct PortIo {
    name: String,
    /// None: no frames are read here.
    options: Option<RingOptions>,
    /// As it was last seen; None while it is gone.
    interface: Option<Interface>,
    /// None while the interface is gone, or where no frames are read.
    pub ring: Option<RxRing>,
    /// How often it went down or away.
    down_events: u64,
    /// Counts of rings that are closed.
    past: RxCounters,
    /// Those that `take_losses` has told.
    told: RxCounters,
}

impl PortIo {
    /// An interface with a ring; `options` None: only whether it is there and up is of interest.
    ///
    /// # Errors
    /// [`InterfaceError`], as when a right is missing.
    pub fn open(
        interface: Interface,
        options: Option<RingOptions>,
    ) -> Result<PortIo, InterfaceError> {
        let ring = options.map(|options| RxRing::open(&interface, options));
        Ok(PortIo {
            name: interface.name.clone(),
            options,
            ring: ring.transpose()?,
            interface: Some(interface),
            down_events: 0,
            past: RxCounters::default(),
            told: RxCounters::default(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Index for sending; 0, which the kernel refuses, while the interface is gone.
    #[inline]
    pub fn index(&self) -> i32 {
        self.interface.as_ref().map_or(0, |one| one.index)
    }

    /// It is there, and up.
    pub fn is_up(&self) -> bool {
        self.interface.as_ref().is_some_and(|one| one.up)
    }

    /// It is there.
    pub fn is_present(&self) -> bool {
        self.interface.is_some()
    }

    /// How often it went down or away.
    pub fn down_events(&self) -> u64 {
        self.down_events
    }

    /// Looks the interface up again; a ring on one that went is closed, one on a new or larger one is opened.
    pub fn refresh(&mut self) -> Change {
        let was_up = self.is_up();
        let change = self.find_again();
        self.down_events += u64::from(was_up && !self.is_up());
        change
    }

    fn find_again(&mut self) -> Change {
        let Ok(found) = Interface::find(&self.name) else {
            self.close();
            return match self.interface.take() {
                Some(_) => Change::State,
                None => Change::None,
            };
        };
        let before = self.interface.as_ref();
        let same = before.is_some_and(|one| one.index == found.index && found.mtu <= one.mtu);
        if let (true, Some(before)) = (same, &mut self.interface) {
            let changed = found.up != before.up;
            before.up = found.up;
            return if changed { Change::State } else { Change::None };
        }
        self.close();
        let Some(options) = self.options else {
            self.interface = Some(found);
            return Change::State;
        };
        // It may go again between the two calls; then the next message brings us here.
        self.ring = RxRing::open(&found, options).ok();
        self.interface = self.ring.is_some().then_some(found);
        match self.ring {
            Some(_) => Change::Reopened,
            None => Change::State,
        }
    }

    fn close(&mut self) {
        if let Some(mut ring) = self.ring.take() {
            self.past = sum(self.past, ring.counters());
            ring.clear_error(); // a poller would tell of it until the socket is closed
                                // To close a packet socket takes the kernel tens of milliseconds. Without a thread it is closed here.
            let _ = std::thread::Builder::new().spawn(move || drop(ring));
        }
    }

    /// Frames that were lost at reception; asks the kernel.
    pub fn losses(&mut self) -> RxCounters {
        let ring = self.ring.as_mut().map(RxRing::counters).unwrap_or_default();
        sum(self.past, ring)
    }

    /// Those since the last call.
    pub fn take_losses(&mut self) -> RxCounters {
        let now = self.losses();
        let told = std::mem::replace(&mut self.told, now);
        RxCounters {
            ring_full: now.ring_full - told.ring_full,
            truncated: now.truncated - told.truncated,
            unsegmented: now.unsegmented - told.unsegmented,
        }
    }
}

fn sum(a: RxCounters, b: RxCounters) -> RxCounters {
    RxCounters {
        ring_full: a.ring_full + b.ring_full,
        truncated: a.truncated + b.truncated,
        unsegmented: a.unsegmented + b.unsegmented,
    }
}
