// SPDX-License-Identifier: Apache-2.0
//! Buffers of the frames that are under way, for reuse: links and events carry a number, never bytes.

use device::FrameBuffer;

/// A frame that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameId(u32);

/// All frames under way.
pub struct Frames {
    buffers: Vec<FrameBuffer>,
    free: Vec<u32>,
    /// A frame beyond so many is lost where it would enter a link.
    pub max: usize,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            buffers: Vec::new(),
            free: Vec::new(),
            max: usize::MAX,
        }
    }
}

impl Frames {
    /// A buffer, whatever frame was in it.
    #[inline]
    pub fn take(&mut self) -> FrameId {
        match self.free.pop() {
            Some(number) => FrameId(number),
            None => self.grow(),
        }
    }

    /// Makes buffers for so many frames, so that nothing is allocated as long as no more are under way.
    pub fn reserve(&mut self, frames: usize) {
        let missing = frames.saturating_sub(self.free.len());
        for _ in 0..missing {
            let frame = self.grow();
            self.release(frame);
        }
    }

    /// Buffers that hold a frame.
    #[inline]
    pub fn in_use(&self) -> usize {
        self.buffers.len() - self.free.len()
    }

    #[cold]
    fn grow(&mut self) -> FrameId {
        self.buffers.push(FrameBuffer::default());
        self.free.reserve(self.buffers.len());
        FrameId(self.buffers.len() as u32 - 1)
    }

    #[inline]
    pub fn get(&self, id: FrameId) -> &FrameBuffer {
        &self.buffers[id.0 as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, id: FrameId) -> &mut FrameBuffer {
        &mut self.buffers[id.0 as usize]
    }

    /// Has the headers of a frame come into the cache.
    #[inline]
    pub fn prefetch(&self, id: FrameId) {
        let frame = self.get(id).as_ref().as_ptr();
        device::prefetch_all(frame.addr(), 64);
    }

    /// A frame with these bytes.
    #[inline]
    pub fn copy_of(&mut self, bytes: &[u8]) -> FrameId {
        let id = self.take();
        self.get_mut(id).load(bytes);
        id
    }

    /// Another frame with the same bytes.
    #[cold]
    pub fn duplicate(&mut self, id: FrameId) -> FrameId {
        let copy = self.take();
        let mut buffer = std::mem::take(self.get_mut(copy));
        buffer.load(self.get(id).as_ref());
        *self.get_mut(copy) = buffer;
        copy
    }

    /// The frame is no more.
    #[inline]
    pub fn release(&mut self, id: FrameId) {
        self.free.push(id.0);
    }
}
