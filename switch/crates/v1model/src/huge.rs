// SPDX-License-Identifier: Apache-2.0
//! Large memory of tables and registers in huge pages, where the system gives them: a look at random then waits for the memory
//! itself, and not for its page's place as well.

use std::mem::size_of;

use rustix::mm::{madvise, Advice};
use rustix::param::page_size;

/// Less memory keeps its small pages: a huge one has 2 MiB.
const LEAST: usize = 4 << 20;

/// Asks for huge pages for all that a vector has reserved. Where the system has none, nothing changes.
pub fn ask<T>(memory: &mut Vec<T>) {
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
