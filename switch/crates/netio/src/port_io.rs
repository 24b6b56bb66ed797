// SPDX-License-Identifier: Apache-2.0
//! An interface of a switch's port or of a link's end: its receiving ring, and whether it is there and up.

use crate::clock::ClockPair;
use crate::interface::{Interface, InterfaceError};
use crate::socket::{RingOptions, RxCounters, RxRing};

/// Which interface is which port, as `-i 1@s1-eth1` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortBinding {
    /// Port of the device.
    pub port: u32,
    /// Name of the interface.
    pub interface: String,
}

/// Most frames of a ring.
const RING_FRAMES_MAX: usize = 1 << 16;

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
    /// Frames that were lost at reception, and those of them that `take_losses` has not told.
    lost: RxCounters,
    untold: RxCounters,
}

impl PortIo {
    /// An interface of which is known whether it is there and up.
    ///
    /// # Errors
    /// [`InterfaceError`], as when there is no such interface.
    pub fn find(name: &str) -> Result<PortIo, InterfaceError> {
        Ok(PortIo {
            name: name.to_owned(),
            options: None,
            ring: None,
            interface: Some(Interface::find(name)?),
            down_events: 0,
            lost: RxCounters::default(),
            untold: RxCounters::default(),
        })
    }

    /// Frames are read here from now on.
    ///
    /// # Errors
    /// [`InterfaceError`], as when a right is missing.
    pub fn open(&mut self, options: RingOptions) -> Result<(), InterfaceError> {
        self.options = Some(options);
        let ring = self
            .interface
            .as_ref()
            .map(|one| RxRing::open(one, options));
        self.ring = ring.transpose()?;
        Ok(())
    }

    /// Largest packet behind the Ethernet header, bytes; 0 while the interface is gone.
    pub fn mtu(&self) -> u32 {
        self.interface.as_ref().map_or(0, |one| one.mtu)
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
            // What nobody reads any more is lost, as what finds no room.
            let mut unread = 0;
            ring.receive(&ClockPair::read(), RING_FRAMES_MAX, |_| unread += 1);
            let mut sums = [&mut self.lost, &mut self.untold];
            sums.iter_mut().for_each(|sum| sum.ring_full += unread);
            count(&mut ring, sums);
            ring.clear_error(); // a poller would tell of it until the socket is closed

            // To close a packet socket takes the kernel tens of milliseconds. Without a thread it is closed here.
            let _ = std::thread::Builder::new().spawn(move || drop(ring));
        }
    }

    /// Frames that were lost at reception; asks the kernel.
    pub fn losses(&mut self) -> RxCounters {
        if let Some(ring) = &mut self.ring {
            count(ring, [&mut self.lost, &mut self.untold]);
        }
        self.lost
    }

    /// Those since the last call.
    pub fn take_losses(&mut self) -> RxCounters {
        self.losses();
        std::mem::take(&mut self.untold)
    }
}

fn count(ring: &mut RxRing, to: [&mut RxCounters; 2]) {
    let more = ring.take_counters();
    for sum in to {
        sum.ring_full += more.ring_full;
        sum.truncated += more.truncated;
        sum.unsegmented += more.unsegmented;
    }
}
