// SPDX-License-Identifier: Apache-2.0
//! Frames with their instants, between the network and the machine's interfaces, in memory that both share: one log of what
//! arrives, one of what the machine sends (`hosts/kernel/frames.c`). The logs lie behind the calendar's clients.
//!
//! ```text
//!  header: lookahead u64, where each log begins u32 ×2, length of a log u32, bytes in them u32 ×2, bytes of what arrives that
//!          the machine has seen and taken u32 ×2, number of interfaces u32, of each: Ethernet address 8 bytes, rate of its line u64 (0: it has
//!          none), and `LineCounts` u64 ×6
//!  frame:  { instant u64, interface u32, length u32, bytes … } …, each at a multiple of 8
//! ```

use crate::error::MachineError;
use crate::memory::Memory;
use crate::Nanos;
use rustix::fd::AsFd;
use serde::Serialize;
use std::collections::VecDeque;

/// Of each log. What does not fit waits for the next turn; its pages are there when they are used.
const LOG_BYTES: usize = 4 << 20;

/// Offsets in the header.
mod field {
    pub(super) const LOOKAHEAD: usize = 0;
    pub(super) const IN_AT: usize = 8;
    pub(super) const OUT_AT: usize = 12;
    pub(super) const LOG_BYTES: usize = 16;
    pub(super) const IN_LEN: usize = 20;
    pub(super) const OUT_LEN: usize = 24;
    pub(super) const IN_SEEN: usize = 28;
    pub(super) const IN_TAKEN: usize = 32;
    pub(super) const INTERFACES: usize = 36;
    pub(super) const OF_INTERFACES: usize = 40;
    pub(super) const INTERFACE_BYTES: usize = 64;
    // Of an interface.
    pub(super) const RATE: usize = 8;
    pub(super) const COUNTS: usize = 16;
}
const FRAME_HEADER_BYTES: usize = 16;

/// Where the header has what belongs to an interface.
fn of_interface(interface: usize) -> usize {
    field::OF_INTERFACES + interface * field::INTERFACE_BYTES
}

fn log_start(interfaces: usize) -> usize {
    of_interface(interfaces).next_multiple_of(64)
}

/// So much memory the frames of so many interfaces take.
pub(crate) fn memory_bytes(interfaces: usize) -> usize {
    log_start(interfaces) + 2 * LOG_BYTES
}

/// A frame for which there was no room in its log.
struct Frame {
    at: Nanos,
    interface: u32,
    bytes: Vec<u8>,
}

/// What the queue at a line holds and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineCounts {
    pub waiting_packets: u64,
    pub dropped_packets: u64,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    /// Of those that were sent and are on the line: whose ECN field it has changed, and how long they waited, together.
    pub marked_packets: u64,
    pub waited_ns: Nanos,
}

/// Both logs. The machine touches them in its turn only.
pub(crate) struct Frames {
    memory: Memory,
    /// Where the header begins, and each log.
    start: usize,
    in_log: usize,
    out_log: usize,
    interfaces: usize,
    /// What arrives and had no room.
    waiting: VecDeque<Frame>,
    scratch: Vec<u8>,
}

impl Frames {
    /// In `file`, from `start` on; an interface for each address.
    pub(crate) fn new(
        file: impl AsFd,
        start: usize,
        addresses: &[[u8; 6]],
    ) -> Result<Frames, MachineError> {
        let interfaces = addresses.len();
        let first_log = log_start(interfaces);
        let frames = Frames {
            memory: Memory::map(file, start + memory_bytes(interfaces))?,
            start,
            in_log: start + first_log,
            out_log: start + first_log + LOG_BYTES,
            interfaces,
            waiting: VecDeque::new(),
            scratch: Vec::new(),
        };
        frames.set(field::IN_AT, first_log)?;
        frames.set(field::OUT_AT, first_log + LOG_BYTES)?;
        frames.set(field::LOG_BYTES, LOG_BYTES)?;
        frames.set(field::INTERFACES, interfaces)?;
        for (index, address) in addresses.iter().enumerate() {
            frames.memory.write(start + of_interface(index), address)?;
        }
        Ok(frames)
    }

    /// See `Machine::set_rate`.
    pub(crate) fn set_rate(&self, interface: usize, rate_bps: u64) -> Result<(), MachineError> {
        let at = self.start + of_interface(interface) + field::RATE;
        self.memory.publish(at, &rate_bps.to_le_bytes())
    }

    /// See `Machine::line`.
    pub(crate) fn line(&self, interface: usize) -> Result<LineCounts, MachineError> {
        let at = self.start + of_interface(interface) + field::COUNTS;
        let count = |number: usize| self.memory.u64(at + 8 * number);
        Ok(LineCounts {
            waiting_packets: count(0)?,
            dropped_packets: count(1)?,
            sent_packets: count(2)?,
            sent_bytes: count(3)?,
            marked_packets: count(4)?,
            waited_ns: count(5)?,
        })
    }

    fn set(&self, field: usize, value: usize) -> Result<(), MachineError> {
        let value = (value as u32).to_le_bytes();
        self.memory.publish(self.start + field, &value)
    }

    /// A count of bytes in a log, checked: the machine writes it.
    fn count(&self, field: usize) -> Result<usize, MachineError> {
        let count = self.memory.u32(self.start + field)? as usize;
        match count {
            0..=LOG_BYTES => Ok(count),
            _ => Err(MachineError::Protocol(format!(
                "a log of {LOG_BYTES} bytes holds {count}"
            ))),
        }
    }

    /// A frame arrives at an interface at an instant that is not before that of the last one.
    pub(crate) fn deliver(
        &mut self,
        at: Nanos,
        interface: usize,
        bytes: &[u8],
    ) -> Result<(), MachineError> {
        let interface = interface as u32;
        if !self.waiting.is_empty() || !self.append(at, interface, bytes)? {
            self.waiting.push_back(Frame {
                at,
                interface,
                bytes: bytes.to_vec(),
            });
        }
        Ok(())
    }

    /// False: there is no room.
    fn append(&self, at: Nanos, interface: u32, bytes: &[u8]) -> Result<bool, MachineError> {
        let offset = self.count(field::IN_LEN)?;
        let end = offset + size(bytes.len());
        if end > LOG_BYTES {
            return Ok(false);
        }
        let place = self.in_log + offset;
        let memory = &self.memory;
        memory.write(place, &at.to_le_bytes())?;
        memory.write(place + 8, &interface.to_le_bytes())?;
        memory.write(place + 12, &(bytes.len() as u32).to_le_bytes())?;
        memory.write(place + FRAME_HEADER_BYTES, bytes)?;
        self.set(field::IN_LEN, end)?;
        Ok(true)
    }

    /// When the first frame arrives that the machine does not know of. (What it has seen, it takes when interrupts are on again.)
    pub(crate) fn first(&self) -> Result<Option<Nanos>, MachineError> {
        let seen = self.count(field::IN_SEEN)?;
        if seen < self.count(field::IN_LEN)? {
            return self.memory.u64(self.in_log + seen).map(Some);
        }
        Ok(self.waiting.front().map(|frame| frame.at))
    }

    /// There is room for frames that arrive ahead.
    pub(crate) fn has_room(&self) -> Result<bool, MachineError> {
        Ok(self.waiting.is_empty() && self.count(field::IN_LEN)? < LOG_BYTES / 2)
    }

    /// Takes back what the turn has not come to.
    pub(crate) fn end_turn(&self) -> Result<(), MachineError> {
        self.set(field::IN_LEN, self.count(field::IN_SEEN)?)
    }

    /// Makes the logs ready for a turn; the instant of the first frame for which there is no room.
    pub(crate) fn begin_turn(&mut self, lookahead: Nanos) -> Result<Option<Nanos>, MachineError> {
        let place = self.start + field::LOOKAHEAD;
        self.memory.publish(place, &lookahead.to_le_bytes())?;
        let (taken, seen) = (self.count(field::IN_TAKEN)?, self.count(field::IN_SEEN)?);
        let len = self.count(field::IN_LEN)?;
        if taken > 0 {
            // What is left, mostly nothing, goes to the log's begin.
            let rest = &mut self.scratch;
            rest.resize(len.saturating_sub(taken), 0);
            self.memory.read(self.in_log + taken, rest)?;
            self.memory.write(self.in_log, rest)?;
            self.set(field::IN_LEN, len.saturating_sub(taken))?;
            self.set(field::IN_SEEN, seen.saturating_sub(taken))?;
            self.set(field::IN_TAKEN, 0)?;
        }
        while let Some(frame) = self.waiting.front() {
            if !self.append(frame.at, frame.interface, &frame.bytes)? {
                return Ok(Some(frame.at));
            }
            self.waiting.pop_front();
        }
        Ok(None)
    }

    /// Gives `sent` what the machine has sent, in the order in which it did.
    pub(crate) fn take(
        &mut self,
        mut sent: impl FnMut(Nanos, usize, &[u8]),
    ) -> Result<(), MachineError> {
        let len = self.count(field::OUT_LEN)?;
        let mut offset = 0;
        while offset < len {
            let place = self.out_log + offset;
            let at = self.memory.u64(place)?;
            let interface = self.memory.u32(place + 8)? as usize;
            let bytes = self.memory.u32(place + 12)? as usize;
            if interface >= self.interfaces || bytes > len - offset {
                return Err(MachineError::Protocol(format!(
                    "a frame of {bytes} bytes left interface {interface}"
                )));
            }
            self.scratch.resize(bytes, 0);
            self.memory
                .read(place + FRAME_HEADER_BYTES, &mut self.scratch)?;
            sent(at, interface, &self.scratch);
            offset += size(bytes);
        }
        if len > 0 {
            self.set(field::OUT_LEN, 0)?;
        }
        Ok(())
    }
}

/// What a frame takes in a log.
fn size(len: usize) -> usize {
    (FRAME_HEADER_BYTES + len).next_multiple_of(8)
}
