// SPDX-License-Identifier: Apache-2.0
//! The memory of all frames on all links: slots of one size, made once, handed out last in first out.

/// A slot of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameId(u32);

/// The length that marks a free slot.
const FREE: u32 = u32::MAX;

/// Preallocated frames. The memory is touched, and so resident, only up to the most frames ever held at once.
#[derive(Debug)]
pub struct FramePool {
    bytes: Vec<u8>,
    lens: Vec<u32>,
    free: Vec<FrameId>,
    slot_len: usize,
}

impl FramePool {
    /// A pool of `frames` frames of at most `slot_len` bytes each.
    pub fn new(frames: usize, slot_len: usize) -> Self {
        let count = u32::try_from(frames).expect("fewer than 2^32 frames");
        Self {
            bytes: vec![0; frames * slot_len],
            lens: vec![FREE; frames],
            free: (0..count).rev().map(FrameId).collect(),
            slot_len,
        }
    }

    /// Longest frame that fits, bytes.
    pub fn slot_len(&self) -> usize {
        self.slot_len
    }

    /// Slots that are free.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Slots in all.
    pub fn capacity(&self) -> usize {
        self.lens.len()
    }

    /// Copies a frame in; None when there is no slot, or the frame is longer than one.
    pub fn store(&mut self, frame: &[u8]) -> Option<FrameId> {
        if frame.len() > self.slot_len {
            return None;
        }
        let id = self.free.pop()?;
        let start = id.0 as usize * self.slot_len;
        self.bytes[start..start + frame.len()].copy_from_slice(frame);
        self.lens[id.0 as usize] = frame.len() as u32;
        Some(id)
    }

    pub fn frame(&self, id: FrameId) -> &[u8] {
        let start = id.0 as usize * self.slot_len;
        &self.bytes[start..start + self.lens[id.0 as usize] as usize]
    }

    pub fn frame_mut(&mut self, id: FrameId) -> &mut [u8] {
        let start = id.0 as usize * self.slot_len;
        &mut self.bytes[start..start + self.lens[id.0 as usize] as usize]
    }

    /// Gives a slot back. The caller must not use `id` after.
    pub fn release(&mut self, id: FrameId) {
        debug_assert_ne!(self.lens[id.0 as usize], FREE, "released twice");
        self.lens[id.0 as usize] = FREE;
        self.free.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_kept_apart_and_reused() {
        let mut pool = FramePool::new(2, 4);
        let first = pool.store(&[1, 2, 3, 4]).unwrap();
        let second = pool.store(&[5]).unwrap();
        assert_eq!(pool.store(&[6]), None, "full");
        assert_eq!(pool.frame(first), [1, 2, 3, 4]);
        assert_eq!(pool.frame(second), [5]);
        pool.release(first);
        assert_eq!(pool.store(&[1, 2, 3, 4, 5]), None, "too long");
        assert_eq!(pool.store(&[7]), Some(first));
        assert_eq!(pool.frame(first), [7]);
    }
}
