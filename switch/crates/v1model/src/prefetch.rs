// SPDX-License-Identifier: Apache-2.0
//! Cache lines asked for some time before they are read.

use std::ptr;

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
