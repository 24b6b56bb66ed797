// SPDX-License-Identifier: Apache-2.0
//! `Cells`: an array of fixed length whose place in memory compiled code may read; and indirect counter arrays: packets and
//! bytes per index, both always kept, as in BMv2.
//!
//! Register arrays: `len` values of a fixed width in bits, kept as u64 limbs, least significant first.
//!
//! Large memory of tables and registers in huge pages, where the system gives them: a look at random then waits for the memory
//! itself, and not for its page's place as well. And cache lines asked for some time before they are read.

use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, slice_from_raw_parts_mut, NonNull};

use rustix::mm::{madvise, Advice};
use rustix::param::page_size;

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

/// Registers of at most so many bits are kept in 32.
pub(crate) const NARROW_BITS: u32 = 32;

/// One register array. Its memory is zero pages until an index is first written.
#[derive(Clone)]
pub struct Registers {
    /// Up to 32 bits each, which take half the cache; without cells where registers are wider.
    pub(crate) narrow: Cells<u32>,
    /// `limbs_each` limbs a register; without cells where registers are narrow.
    pub(crate) wide: Cells<u64>,
    len: usize,
    width: u32,
    limbs_each: usize,
    /// The bits of the most significant limb that belong to the width.
    top_mask: u64,
}

impl Registers {
    /// Memory that an array of `len` registers of `width` bits takes.
    pub fn bytes(len: u32, width: u32) -> u64 {
        let each = match width {
            0..=NARROW_BITS => size_of::<u32>(),
            _ => width.div_ceil(64) as usize * size_of::<u64>(),
        };
        u64::from(len) * each as u64
    }

    /// An array of `len` registers of `width` bits (at least 1), all zero.
    pub fn new(len: u32, width: u32) -> Self {
        let len = len as usize;
        let width = width.max(1);
        let limbs_each = width.div_ceil(64) as usize;
        let top_bits = width - 64 * (limbs_each as u32 - 1);
        let (narrow, wide) = match width <= NARROW_BITS {
            true => (len, 0),
            false => (0, len * limbs_each),
        };
        Registers {
            narrow: Cells::new(0, narrow),
            wide: Cells::new(0, wide),
            len,
            width,
            limbs_each,
            top_mask: u64::MAX >> (64 - top_bits),
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Width of one register in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Limbs of one register.
    pub fn limbs_each(&self) -> usize {
        self.limbs_each
    }

    /// Copies the value at `index` into `out`, least significant limb first, as many as that has; out of range `out` stays as it
    /// is, and the result is false.
    #[inline]
    pub fn read(&self, index: u64, out: &mut [u64]) -> bool {
        if index >= self.len as u64 {
            return false;
        }
        let (n, index) = (self.limbs_each, index as usize);
        let narrow = self.narrow.get(index).map(|cell| u64::from(*cell));
        let limbs = match &narrow {
            Some(cell) => std::slice::from_ref(cell),
            None => &self.wide[index * n..][..n],
        };
        let limbs = limbs.iter().copied().chain(std::iter::repeat(0));
        out.iter_mut()
            .zip(limbs)
            .for_each(|(out, limb)| *out = limb);
        true
    }

    /// The value at `index` in limbs, least significant first, at any width; `None` out of range.
    pub fn get(&self, index: u64) -> Option<Vec<u64>> {
        let mut out = vec![0; self.limbs_each];
        self.read(index, &mut out).then_some(out)
    }

    /// Writes `value` (limbs, least significant first; missing ones are zero) cut to the width. Nothing is written
    /// out of range; the result says which it was.
    #[inline]
    pub fn write(&mut self, index: u64, value: &[u64]) -> bool {
        let n = self.limbs_each;
        if n == 1 {
            return self.write_u64(index, value.first().copied().unwrap_or(0));
        }
        let Some(cell) = self
            .wide
            .chunks_exact_mut(n)
            .nth(usize::try_from(index).unwrap_or(usize::MAX))
        else {
            return false;
        };
        for (i, limb) in cell.iter_mut().enumerate() {
            *limb = value.get(i).copied().unwrap_or(0);
        }
        cell[n - 1] &= self.top_mask;
        true
    }

    /// Writes a value of at most 64 bits; upper limbs become zero.
    #[inline(always)]
    pub fn write_u64(&mut self, index: u64, value: u64) -> bool {
        if index >= self.len as u64 {
            return false;
        }
        if self.width <= NARROW_BITS {
            self.narrow[index as usize] = (value & self.top_mask) as u32;
        } else if self.limbs_each == 1 {
            self.wide[index as usize] = value & self.top_mask;
        } else {
            return self.write(index, &[value]);
        }
        true
    }
}

/// Less memory keeps its small pages: a huge one has 2 MiB.
const LEAST: usize = 4 << 20;

/// Asks for huge pages for all that a vector has reserved. Where the system has none, nothing changes.
pub fn ask_for_huge_pages<T>(memory: &mut Vec<T>) {
    let bytes = memory.capacity() * size_of::<T>();
    if bytes < LEAST {
        return;
    }
    let (first, page) = (memory.as_mut_ptr() as usize, page_size());
    let start = first.next_multiple_of(page);
    let length = (first + bytes - start) / page * page;
    // SAFETY: whole pages of the vector's own memory; the advice changes nothing that a program sees.
    let _ = unsafe { madvise(start as *mut _, length, Advice::LinuxHugepage) };
}

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Asks for the cache line of an address.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address changes nothing that a program sees.
    unsafe {
        std::arch::x86_64::_mm_prefetch(address.cast(), std::arch::x86_64::_MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for all cache lines of so many bytes from an address on.
#[inline(always)]
pub fn prefetch_all(first: usize, bytes: usize) {
    let lines = (first / LINE * LINE..first + bytes).step_by(LINE);
    lines.for_each(|line| prefetch(ptr::without_provenance::<u8>(line)));
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

#[cfg(test)]
mod register_tests {
    use super::*;

    #[test]
    fn values_are_cut_to_the_width() {
        let mut r = Registers::new(2, 12);
        assert!(r.write_u64(1, 0x1_2345));
        assert_eq!(r.get(1), Some(vec![0x345]));
        assert_eq!(r.get(0), Some(vec![0]));
        assert!(r.write(0, &[u64::MAX, 7]));
        assert_eq!(r.get(0), Some(vec![0xfff]));
        assert_eq!(r.get(2), None);
    }

    #[test]
    fn every_width_keeps_its_bits() {
        for width in 1..=64 {
            let mut r = Registers::new(3, width);
            assert!(r.write(1, &[u64::MAX]));
            let all = u64::MAX >> (64 - width);
            assert_eq!(r.get(1), Some(vec![all]), "width {width}");
            assert_eq!([r.get(0), r.get(2)], [Some(vec![0]), Some(vec![0])]);
            assert!(r.write_u64(1, 1));
            assert_eq!(r.get(1), Some(vec![1]));
        }
    }

    #[test]
    fn a_full_limb_keeps_all_bits() {
        let mut r = Registers::new(1, 64);
        r.write_u64(0, u64::MAX);
        assert_eq!(r.get(0), Some(vec![u64::MAX]));
    }

    #[test]
    fn wide_registers_have_several_limbs() {
        let mut r = Registers::new(3, 130);
        assert_eq!(r.limbs_each(), 3);
        r.write(2, &[1, 2, 0xff]);
        assert_eq!(r.get(2), Some(vec![1, 2, 3]));
        r.write_u64(2, 9);
        assert_eq!(r.get(2), Some(vec![9, 0, 0]));
        assert_eq!(r.get(1), Some(vec![0, 0, 0]));
    }

    #[test]
    fn out_of_range_is_refused() {
        let mut r = Registers::new(2, 32);
        assert!(!r.write_u64(2, 1));
        assert!(!r.write(u64::MAX, &[1]));
        assert_eq!(r.get(2), None);
        assert_eq!(r.get(u64::MAX), None);
    }
}
