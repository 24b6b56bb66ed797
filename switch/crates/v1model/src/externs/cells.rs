// SPDX-License-Identifier: Apache-2.0
//! `Cells`: an array of fixed length whose place in memory compiled code may read; and indirect counter arrays: packets and
//! bytes per index, both always kept, as in BMv2.

use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};
use std::ptr::{slice_from_raw_parts_mut, NonNull};

use crate::memory::ask_for_huge_pages;

/// An array that never grows: the address of its first cell lies at a known place of this struct.
pub struct Cells<T> {
    first: NonNull<T>,
    len: usize,
    owned: PhantomData<T>,
}

// SAFETY: it owns its cells, like a `Box<[T]>`.
unsafe impl<T: Send> Send for Cells<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Cells<T> {}

impl<T> Cells<T> {
    /// Where the address of the first cell lies in this struct.
    pub const FIRST: usize = offset_of!(Cells<T>, first);
}

impl<T: Clone> Cells<T> {
    /// `len` cells of this value; zeros take no memory until they are written.
    pub fn new(value: T, len: usize) -> Self {
        let mut cells = vec![value; len];
        ask_for_huge_pages(&mut cells);
        cells.into_boxed_slice().into()
    }
}

impl<T> From<Box<[T]>> for Cells<T> {
    fn from(cells: Box<[T]>) -> Self {
        let len = cells.len();
        let first = NonNull::from(Box::leak(cells)).cast();
        Cells {
            first,
            len,
            owned: PhantomData,
        }
    }
}

impl<T> Deref for Cells<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the cells are those of a boxed slice of this length, which is given back in `drop` only.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Cells<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T: Clone> Clone for Cells<T> {
    fn clone(&self) -> Self {
        self.to_vec().into_boxed_slice().into()
    }
}

impl<T> Drop for Cells<T> {
    fn drop(&mut self) {
        let cells = slice_from_raw_parts_mut(self.first.as_ptr(), self.len);
        // SAFETY: `from` leaked a box of exactly these cells, and nothing uses them afterwards.
        drop(unsafe { Box::from_raw(cells) });
    }
}

/// One counter array. Its memory is zero pages until an index is first counted.
#[derive(Clone)]
pub struct Counters {
    /// Packets and bytes.
    pub(crate) cells: Cells<[u64; 2]>,
}

impl Counters {
    /// Memory that an array of `len` counters takes.
    pub fn bytes(len: u32) -> u64 {
        u64::from(len) * size_of::<[u64; 2]>() as u64
    }

    /// An array of `len` counters, all zero.
    pub fn new(len: u32) -> Self {
        Counters {
            cells: Cells::new([0; 2], len as usize),
        }
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Counts one packet of `packet_len` bytes at `index`. An index out of range counts nothing, as in BMv2; the
    /// result says whether it was in range.
    #[inline]
    pub fn count(&mut self, index: u64, packet_len: u32) -> bool {
        match self.cells.get_mut(index as usize) {
            Some(cell) => {
                cell[0] = cell[0].wrapping_add(1);
                cell[1] = cell[1].wrapping_add(u64::from(packet_len));
                true
            }
            None => false,
        }
    }

    /// `(packets, bytes)` at `index`, or `None` out of range.
    pub fn get(&self, index: u64) -> Option<(u64, u64)> {
        self.cells.get(index as usize).map(|c| (c[0], c[1]))
    }

    /// Sets the value at `index`; false out of range.
    pub fn set(&mut self, index: u64, packets: u64, bytes: u64) -> bool {
        match self.cells.get_mut(index as usize) {
            Some(cell) => {
                *cell = [packets, bytes];
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_packets_and_bytes_per_index() {
        let mut c = Counters::new(4);
        assert!(c.count(1, 100));
        assert!(c.count(1, 50));
        assert!(c.count(3, 1500));
        assert_eq!(c.get(0), Some((0, 0)));
        assert_eq!(c.get(1), Some((2, 150)));
        assert_eq!(c.get(3), Some((1, 1500)));
    }

    #[test]
    fn out_of_range_counts_nothing() {
        let mut c = Counters::new(4);
        assert!(!c.count(4, 100));
        assert!(!c.count(u64::MAX, 100));
        assert!(!c.set(4, 1, 1));
        assert_eq!(c.get(4), None);
        assert!((0..4).all(|i| c.get(i) == Some((0, 0))));
    }

    #[test]
    fn set_then_count_goes_on_from_there() {
        let mut c = Counters::new(1);
        assert!(c.set(0, 10, 1000));
        c.count(0, 64);
        assert_eq!(c.get(0), Some((11, 1064)));
    }
}
