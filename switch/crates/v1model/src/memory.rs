// SPDX-License-Identifier: Apache-2.0
//! Large memory of tables and registers in huge pages, where the system gives them: a look at random then waits for the memory
//! itself, and not for its page's place as well. And cache lines asked for some time before they are read.

use std::ptr;

use rustix::mm::{madvise, Advice};
use rustix::param::page_size;

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
