// SPDX-License-Identifier: Apache-2.0
//! A split virtqueue (virtio 1.2 §2.7), the device's side. Not here: indirect descriptors, event indices, packed rings.
//!
//! ```text
//!  descriptors: { addr u64, len u32, flags u16, next u16 } …
//!  avail:       { flags u16, idx u16, ring[u16] … }       the driver's
//!  used:        { flags u16, idx u16, { id u32, len u32 } … }   the device's
//! ```

use crate::error::MachineError;
use crate::memory::Memory;

const DESCRIPTOR_BYTES: usize = 16;
const HAS_NEXT: u16 = 1;
const DEVICE_WRITES: u16 = 2;
/// Of what the driver writes into a chain: a frame has less (no offloads).
const CHAIN_BYTES_MAX: usize = 1 << 17;
/// Of avail.flags: the driver wants no interrupt.
const NO_INTERRUPT: u16 = 1;

/// Guest memory with the address at which the guest sees its start.
pub(crate) struct GuestMemory {
    pub(crate) memory: Memory,
    pub(crate) guest_start: u64,
    pub(crate) file_start: usize,
}

impl GuestMemory {
    /// Offset in the mapping of a guest's address.
    pub(crate) fn offset(&self, address: u64) -> Result<usize, MachineError> {
        let from_start = address.checked_sub(self.guest_start);
        from_start
            .map(|bytes| bytes as usize + self.file_start)
            .ok_or_else(|| {
                MachineError::Protocol(format!("address {address:#x} lies before its memory"))
            })
    }
}

/// A virtqueue.
#[derive(Default)]
pub(crate) struct Ring {
    pub(crate) size: u16,
    /// Offsets in the mapping.
    descriptors: usize,
    avail: usize,
    used: usize,
    /// Next entries to take and to give back, modulo 2^16.
    taken: u16,
    given: u16,
    pub(crate) is_enabled: bool,
}

impl Ring {
    /// Where its three parts lie, as guest addresses.
    pub(crate) fn place(
        &mut self,
        guest: &GuestMemory,
        descriptors: u64,
        used: u64,
        avail: u64,
    ) -> Result<(), MachineError> {
        self.descriptors = guest.offset(descriptors)?;
        self.used = guest.offset(used)?;
        self.avail = guest.offset(avail)?;
        Ok(())
    }

    /// The head of the next chain that the driver has made available.
    pub(crate) fn take(&mut self, guest: &GuestMemory) -> Result<Option<u16>, MachineError> {
        if !self.is_enabled || guest.memory.u16(self.avail + 2)? == self.taken {
            return Ok(None);
        }
        let entry = usize::from(self.taken % self.size);
        self.taken = self.taken.wrapping_add(1);
        guest.memory.u16(self.avail + 4 + 2 * entry).map(Some)
    }

    /// Calls `part` with offset and length of each piece of a chain that the device may write to (or may read).
    fn each_part(
        &self,
        guest: &GuestMemory,
        head: u16,
        writes: bool,
        mut part: impl FnMut(usize, usize) -> Result<bool, MachineError>,
    ) -> Result<(), MachineError> {
        let mut index = head;
        for _ in 0..self.size {
            let at = self.descriptors + usize::from(index % self.size) * DESCRIPTOR_BYTES;
            let len = guest.memory.u32(at + 8)? as usize;
            let flags = guest.memory.u16(at + 12)?;
            if (flags & DEVICE_WRITES != 0) == writes
                && !part(guest.offset(guest.memory.u64(at)?)?, len)?
            {
                return Ok(());
            }
            if flags & HAS_NEXT == 0 {
                return Ok(());
            }
            index = guest.memory.u16(at + 14)?;
        }
        Err(MachineError::Protocol(
            "a chain of descriptors has a loop".to_owned(),
        ))
    }

    /// Appends what the driver wrote into a chain to `out`.
    pub(crate) fn read(
        &self,
        guest: &GuestMemory,
        head: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), MachineError> {
        self.each_part(guest, head, false, |offset, len| {
            let start = out.len();
            if start.saturating_add(len) > CHAIN_BYTES_MAX {
                return Err(MachineError::Protocol(format!(
                    "a chain of descriptors has more than {CHAIN_BYTES_MAX} bytes"
                )));
            }
            out.resize(start + len, 0);
            guest.memory.read(offset, &mut out[start..])?;
            Ok(true)
        })
    }

    /// Writes `bytes` into a chain; true when they fit.
    pub(crate) fn write(
        &self,
        guest: &GuestMemory,
        head: u16,
        mut bytes: &[u8],
    ) -> Result<bool, MachineError> {
        self.each_part(guest, head, true, |offset, len| {
            let (now, later) = bytes.split_at(len.min(bytes.len()));
            bytes = later;
            guest.memory.write(offset, now)?;
            Ok(!later.is_empty())
        })?;
        Ok(bytes.is_empty())
    }

    /// Gives a chain back, `len` bytes written; `publish` makes it visible.
    pub(crate) fn give(
        &mut self,
        guest: &GuestMemory,
        head: u16,
        len: u32,
    ) -> Result<(), MachineError> {
        let at = self.used + 4 + 8 * usize::from(self.given % self.size);
        guest.memory.write(at, &u32::from(head).to_le_bytes())?;
        guest.memory.write(at + 4, &len.to_le_bytes())?;
        self.given = self.given.wrapping_add(1);
        Ok(())
    }

    /// Shows the driver what was given back; true when it wants an interrupt.
    pub(crate) fn publish(&self, guest: &GuestMemory) -> Result<bool, MachineError> {
        guest
            .memory
            .publish(self.used + 2, &self.given.to_le_bytes())?;
        Ok(guest.memory.u16(self.avail)? & NO_INTERRUPT == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{ftruncate, memfd_create, MemfdFlags};

    const BYTES: usize = 1 << 20;

    /// A ring of 8 in memory that begins at the guest's address 0x1000, and its one chain: address and length of each part.
    fn ring(parts: &[(u64, u32)]) -> (GuestMemory, Ring) {
        let file = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, BYTES as u64).unwrap();
        let guest = GuestMemory {
            memory: Memory::map(file, BYTES).unwrap(),
            guest_start: 0x1000,
            file_start: 0,
        };
        for (index, &(address, len)) in parts.iter().enumerate() {
            let at = index * DESCRIPTOR_BYTES;
            let last = index + 1 == parts.len();
            let write = |at, bytes: &[u8]| guest.memory.write(at, bytes).unwrap();
            write(at, &address.to_le_bytes());
            write(at + 8, &len.to_le_bytes());
            write(at + 12, &u16::from(!last).to_le_bytes());
            write(at + 14, &(index as u16 + 1).to_le_bytes());
        }
        let ring = Ring {
            size: 8,
            ..Ring::default()
        };
        (guest, ring)
    }

    #[test]
    fn what_a_chain_says_is_checked_before_memory_is_taken() {
        let (guest, ring_of_two) = ring(&[(0x1000, 2), (0x1000 + 14, 2)]);
        let mut out = Vec::new();
        ring_of_two.read(&guest, 0, &mut out).unwrap();
        assert_eq!(out, [0, 0x10, 1, 0]);

        let all = (0x1000, BYTES as u32);
        let beyond = (0x1000 + BYTES as u64 - 4, 8);
        for parts in [&[(0x1000, 1 << 28)][..], &[all; 8], &[beyond]] {
            let (guest, ring) = ring(parts);
            let mut out = Vec::new();
            let result = ring.read(&guest, 0, &mut out);
            assert!(
                matches!(result, Err(MachineError::Protocol(_))),
                "{result:?}"
            );
            assert!(out.capacity() < 1 << 18, "{} of {parts:?}", out.capacity());
        }
    }
}
