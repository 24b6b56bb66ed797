// SPDX-License-Identifier: Apache-2.0
//! Which parts of the code an execution reached. A build with `-C instrument-coverage` (and `--cfg covered`, see
//! `covered.sh`) counts every region of our crates in one array; others count nothing.

#[cfg(covered)]
mod counters {
    extern "C" {
        // The linker makes these of the section's name.
        #[link_name = "__start___llvm_prf_cnts"]
        static mut START: u64;
        #[link_name = "__stop___llvm_prf_cnts"]
        static mut STOP: u64;
    }

    pub fn all() -> &'static mut [u64] {
        // SAFETY: the section holds nothing but 64-bit counters, from the one symbol to the other. The code adds to them
        // without synchronisation; a count that is lost or seen late does no harm, and no reference is kept.
        unsafe {
            let start = &raw mut START;
            let stop = &raw mut STOP;
            std::slice::from_raw_parts_mut(start, stop.offset_from(start) as usize)
        }
    }
}

#[cfg(not(covered))]
mod counters {
    pub fn all() -> &'static mut [u64] {
        &mut []
    }
}

/// What all executions so far reached.
pub struct Cover {
    /// For each region, the orders of magnitude in which it was counted.
    seen: Vec<u8>,
    regions: usize,
}

impl Default for Cover {
    fn default() -> Self {
        Cover {
            seen: vec![0; counters::all().len()],
            regions: 0,
        }
    }
}

impl Cover {
    /// Forgets what was counted since the last call.
    pub fn start(&self) {
        counters::all().fill(0);
    }

    /// True when the execution since `start` reached something new, or something much more often.
    pub fn is_new(&mut self) -> bool {
        let mut new = false;
        for (seen, count) in self.seen.iter_mut().zip(counters::all()) {
            if *count == 0 {
                continue;
            }
            // 1, 2 to 3, 4 to 15, 16 to 255, more.
            let order = 1
                << [0, 1, 2, 2, 3, 3, 3, 3][count.ilog2().min(7) as usize]
                << u8::from(*count > 255);
            if *seen & order == 0 {
                self.regions += usize::from(*seen == 0);
                *seen |= order;
                new = true;
            }
        }
        new
    }

    /// Regions that were reached, and all that there are; None where the build does not count.
    pub fn reached(&self) -> Option<(usize, usize)> {
        (!self.seen.is_empty()).then_some((self.regions, self.seen.len()))
    }
}
