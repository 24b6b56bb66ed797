// SPDX-License-Identifier: Apache-2.0
//! `Cells`: an array of fixed length whose place in memory compiled code may read.

use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};
use std::ptr::{slice_from_raw_parts_mut, NonNull};

use crate::huge;

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
        huge::ask(&mut cells);
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
