// SPDX-License-Identifier: Apache-2.0
//! Buffers of the frames that are under way, for reuse: links and events carry a number, never bytes.

/// A frame that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId(u32);

/// Room of a new buffer, bytes; longer frames make it grow once.
const BUFFER_BYTES: usize = 2_048;

/// All frames under way.
#[derive(Default)]
pub(crate) struct Frames {
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Frames {
    /// An empty buffer.
    #[inline]
    pub(crate) fn take(&mut self) -> FrameId {
        match self.free.pop() {
            Some(number) => FrameId(number),
            None => self.grow(),
        }
    }

    #[cold]
    fn grow(&mut self) -> FrameId {
        self.buffers.push(Vec::with_capacity(BUFFER_BYTES));
        self.free.reserve(self.buffers.len());
        FrameId(self.buffers.len() as u32 - 1)
    }

    /// The bytes of a frame.
    #[inline]
    pub(crate) fn get(&self, id: FrameId) -> &[u8] {
        &self.buffers[id.0 as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: FrameId) -> &mut Vec<u8> {
        &mut self.buffers[id.0 as usize]
    }

    /// A frame with these bytes.
    #[inline]
    pub(crate) fn copy_of(&mut self, bytes: &[u8]) -> FrameId {
        let id = self.take();
        self.get_mut(id).extend_from_slice(bytes);
        id
    }

    /// The frame is no more.
    #[inline]
    pub(crate) fn release(&mut self, id: FrameId) {
        self.buffers[id.0 as usize].clear();
        self.free.push(id.0);
    }
}
