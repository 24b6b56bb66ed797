// SPDX-License-Identifier: Apache-2.0
//! What the device tells the control plane: bounded, preallocated buffers; what did not fit is counted.

use v1model::{DigestId, Entry, Nanos, TableId};

/// Something for the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A frame that left at the CPU port.
    PacketIn {
        /// The frame, `packet_in` header first where the program has one.
        frame: Vec<u8>,
    },
    /// A digest sample.
    Digest {
        /// Which digest.
        id: DigestId,
        /// Its members, each ceil(width/8) bytes big-endian, one after another.
        sample: Vec<u8>,
        /// When it was taken.
        at: Nanos,
    },
    /// An entry was not hit for its idle time-out.
    IdleTimeout {
        /// Its table.
        table: TableId,
        /// The entry.
        entry: Entry,
    },
    /// The interface of a port went up or down.
    PortStatus {
        /// The port.
        port: u32,
        /// Up.
        up: bool,
    },
    /// The options of a port, or the weight of a queue of it, were changed by management.
    PortOptions {
        /// The port.
        port: u32,
    },
}

/// Events that did not fit since the device was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissedEvents {
    /// Packet-ins.
    pub packet_ins: u64,
    /// Digest samples.
    pub digests: u64,
}

enum Record {
    PacketIn { end: usize },
    Digest { id: DigestId, end: usize, at: Nanos },
}

/// The waiting events: frames and samples in one buffer, in order; idle time-outs and what ports tell in lists.
pub(crate) struct EventBuffer {
    records: Vec<Record>,
    bytes: Vec<u8>,
    /// One of a kind for a port.
    of_ports: Vec<Event>,
    timeouts: Vec<Event>,
    records_max: usize,
    bytes_max: usize,
    pub(crate) missed: MissedEvents,
}

impl EventBuffer {
    pub(crate) fn new(records_max: usize, bytes_max: usize) -> EventBuffer {
        EventBuffer {
            records: Vec::with_capacity(records_max),
            bytes: Vec::with_capacity(bytes_max),
            of_ports: Vec::new(),
            timeouts: Vec::new(),
            records_max,
            bytes_max,
            missed: MissedEvents::default(),
        }
    }

    fn fits(&self, bytes: usize) -> bool {
        self.records.len() < self.records_max && self.bytes.len() + bytes <= self.bytes_max
    }

    /// False when there is no room: counted as missed.
    #[inline]
    pub(crate) fn packet_in(&mut self, frame: &[u8]) -> bool {
        if !self.fits(frame.len()) {
            self.missed.packet_ins += 1;
            return false;
        }
        self.bytes.extend_from_slice(frame);
        self.records.push(Record::PacketIn {
            end: self.bytes.len(),
        });
        true
    }

    #[inline]
    pub(crate) fn digest(&mut self, id: DigestId, sample: &[u8], at: Nanos) {
        if !self.fits(sample.len()) {
            self.missed.digests += 1;
            return;
        }
        self.bytes.extend_from_slice(sample);
        self.records.push(Record::Digest {
            id,
            end: self.bytes.len(),
            at,
        });
    }

    /// False when as many idle time-outs wait as may: entries stay due until these are taken.
    pub(crate) fn takes_timeouts(&self) -> bool {
        self.timeouts.len() < self.records_max
    }

    /// One call of the pipeline's tells more than one: never missed.
    pub(crate) fn timeout(&mut self, table: TableId, entry: Entry) {
        self.timeouts.push(Event::IdleTimeout { table, entry });
    }

    /// A port went up or down; until it is taken, only the last state is told.
    pub(crate) fn port_status(&mut self, port: u32, up: bool) {
        let is = |e: &Event| matches!(e, Event::PortStatus { port: other, .. } if *other == port);
        self.of_ports.retain(|event| !is(event));
        self.of_ports.push(Event::PortStatus { port, up });
    }

    /// Other options of a port; told once until it is taken.
    pub(crate) fn port_options(&mut self, port: u32) {
        let event = Event::PortOptions { port };
        if !self.of_ports.contains(&event) {
            self.of_ports.push(event);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.of_ports.is_empty() && self.timeouts.is_empty()
    }

    pub(crate) fn take(&mut self, out: &mut Vec<Event>) {
        let mut start = 0;
        for record in self.records.drain(..) {
            match record {
                Record::PacketIn { end } => {
                    let frame = self.bytes[start..end].to_vec();
                    out.push(Event::PacketIn { frame });
                    start = end;
                }
                Record::Digest { id, end, at } => {
                    let sample = self.bytes[start..end].to_vec();
                    out.push(Event::Digest { id, sample, at });
                    start = end;
                }
            }
        }
        self.bytes.clear();
        out.append(&mut self.of_ports);
        out.append(&mut self.timeouts);
    }

    /// Forgets samples and idle time-outs of a program that is no more. Its packet-ins have left, and are counted.
    pub(crate) fn clear_program(&mut self) {
        let (mut from, mut kept) = (0, 0);
        let bytes = &mut self.bytes;
        self.records.retain_mut(|record| match record {
            Record::PacketIn { end } => {
                let frame = from..*end;
                from = *end;
                let length = frame.len();
                bytes.copy_within(frame, kept);
                kept += length;
                *end = kept;
                true
            }
            Record::Digest { end, .. } => {
                from = *end;
                false
            }
        });
        bytes.truncate(kept);
        self.timeouts.clear();
    }
}
