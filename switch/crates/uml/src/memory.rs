// SPDX-License-Identifier: Apache-2.0
//! Memory that is shared with the guest: numbers and bytes at checked offsets.

use crate::error::{system, MachineError};
use rustix::fd::AsFd;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::ptr::{copy_nonoverlapping, null_mut};
use std::sync::atomic::{fence, Ordering};

/// A mapped file.
pub(crate) struct Memory {
    start: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone, and every access goes through `&self` or `&mut self`.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps the first `len` bytes of a file.
    pub(crate) fn map(file: impl AsFd, len: usize) -> Result<Memory, MachineError> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel likes; nothing else points there.
        let start = unsafe { mmap(null_mut(), len, protection, MapFlags::SHARED, file, 0) };
        let start = start.map_err(system("mapping memory of the kernel"))?;
        Ok(Memory {
            start: start.cast(),
            len,
        })
    }

    fn pointer_at(&self, offset: usize, len: usize) -> Result<*mut u8, MachineError> {
        match offset.checked_add(len) {
            // SAFETY: the sum lies within the mapping.
            Some(end) if end <= self.len => Ok(unsafe { self.start.add(offset) }),
            _ => Err(MachineError::Protocol(format!(
                "{len} bytes at {offset:#x} are outside of its memory of {:#x}",
                self.len
            ))),
        }
    }

    /// Copies bytes out.
    pub(crate) fn read(&self, offset: usize, out: &mut [u8]) -> Result<(), MachineError> {
        let from = self.pointer_at(offset, out.len())?;
        // SAFETY: `from` is good for out.len() bytes; the guest waits while we read.
        unsafe { copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Copies bytes in.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), MachineError> {
        let to = self.pointer_at(offset, bytes.len())?;
        // SAFETY: `to` is good for bytes.len() bytes; the guest waits while we write.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// A number, as new as the last message from the guest.
    pub(crate) fn number<const N: usize>(&self, offset: usize) -> Result<[u8; N], MachineError> {
        let mut out = [0; N];
        fence(Ordering::Acquire);
        self.read(offset, &mut out)?;
        Ok(out)
    }

    pub(crate) fn u32(&self, offset: usize) -> Result<u32, MachineError> {
        self.number(offset).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&self, offset: usize) -> Result<u64, MachineError> {
        self.number(offset).map(u64::from_le_bytes)
    }

    /// Writes a number behind all that was written before.
    pub(crate) fn publish(&self, offset: usize, bytes: &[u8]) -> Result<(), MachineError> {
        fence(Ordering::Release);
        self.write(offset, bytes)?;
        fence(Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nobody can point there any more. An error would mean that it is not mapped.
        let _ = unsafe { munmap(self.start.cast(), self.len) };
    }
}
