// SPDX-License-Identifier: Apache-2.0
//! One switch port's interface: its receiving ring, and whether it is there and up.

use device::{Device, DropReason};

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
pub(crate) enum Change {
    None,
    /// Same ring, other state.
    State,
    /// The ring was opened anew: it must be polled.
    Reopened,
}

pub(crate) struct PortIo {
    pub(crate) port: u32,
    name: String,
    options: RingOptions,
    interface: Interface,
    /// None while the interface is gone.
    pub(crate) ring: Option<RxRing>,
    /// Counts of rings that are closed.
    past: RxCounters,
    /// What of all of them was reported.
    told: RxCounters,
}

impl PortIo {
    pub(crate) fn open(
        binding: &PortBinding,
        options: RingOptions,
    ) -> Result<PortIo, InterfaceError> {
        let interface = Interface::find(&binding.interface)?;
        let ring = RxRing::open(&interface, options)?;
        Ok(PortIo {
            port: binding.port,
            name: binding.interface.clone(),
            options,
            interface,
            ring: Some(ring),
            past: RxCounters::default(),
            told: RxCounters::default(),
        })
    }

    /// Index for sending; 0, which the kernel refuses, while the interface is gone.
    #[inline]
    pub(crate) fn index(&self) -> i32 {
        if self.ring.is_some() {
            self.interface.index
        } else {
            0
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.ring.is_some() && self.interface.up
    }

    /// Looks the interface up again; a ring on one that went is closed, one on a new or larger one is opened.
    pub(crate) fn refresh(&mut self) -> Change {
        let Ok(found) = Interface::find(&self.name) else {
            return match self.close() {
                true => Change::State,
                false => Change::None,
            };
        };
        let same = found.index == self.interface.index && found.mtu <= self.interface.mtu;
        if same && self.ring.is_some() {
            let change = if found.up == self.interface.up {
                Change::None
            } else {
                Change::State
            };
            self.interface.up = found.up;
            return change;
        }
        self.close();
        // It may go again between the two calls; then the next message brings us here.
        match RxRing::open(&found, self.options) {
            Ok(ring) => {
                self.ring = Some(ring);
                self.interface = found;
                Change::Reopened
            }
            Err(_) => Change::State,
        }
    }

    fn close(&mut self) -> bool {
        match self.ring.take() {
            Some(mut ring) => {
                self.past = sum(self.past, ring.counters());
                true
            }
            None => false,
        }
    }

    /// Tells `device` of the frames that were lost at reception since the last call; asks the kernel.
    pub(crate) fn tell_losses(&mut self, device: &mut Device) {
        let ring = self.ring.as_mut().map(RxRing::counters).unwrap_or_default();
        let (now, told) = (sum(self.past, ring), self.told);
        for (reason, lost) in [
            (DropReason::RingFull, now.ring_full - told.ring_full),
            (DropReason::Truncated, now.truncated - told.truncated),
            (DropReason::Unsegmented, now.unsegmented - told.unsegmented),
        ] {
            if lost > 0 {
                device.count_reception_losses(self.port, reason, lost);
            }
        }
        self.told = now;
    }
}

fn sum(a: RxCounters, b: RxCounters) -> RxCounters {
    RxCounters {
        ring_full: a.ring_full + b.ring_full,
        truncated: a.truncated + b.truncated,
        unsegmented: a.unsegmented + b.unsegmented,
    }
}
