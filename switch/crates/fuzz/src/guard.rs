// SPDX-License-Identifier: Apache-2.0
//! One execution under watch: a panic becomes a finding, too much memory too, and one that takes too long ends the process.
//!
//! Which parts of the code an execution reached. A build with `-C instrument-coverage` (and `--cfg covered`, see
//! `covered.sh`) counts every region of our crates in one array; others count nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::targets::Outcome;

/// The process ends with this after an input that took too long.
pub const EXIT_HANG: i32 = 3;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// When the input at work began, in ms since the start of the process, plus 1; 0: none is at work.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Beyond so much memory the process gets no more, and so ends.
const MEMORY_END: usize = 4 << 30;

/// The system's allocator, with a count of what is taken.
pub struct Counting;

// SAFETY: every call is the system allocator's own; a refusal is a null pointer, as it may be.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        take(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        take(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn take(bytes: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
    let pointer = match live <= MEMORY_END {
        true => allocate(),
        false => std::ptr::null_mut(),
    };
    if pointer.is_null() {
        LIVE.fetch_sub(bytes, Ordering::Relaxed);
    }
    pointer
}

/// What an execution may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub time: Duration,
    pub memory_bytes: usize,
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on panics are kept for `run`, not printed, and an execution beyond its time ends the process.
pub fn watch(limits: Limits) {
    CLOCK.get_or_init(Instant::now);
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        PANIC.with(|kept| {
            kept.borrow_mut().get_or_insert(text);
        });
    }));
    std::thread::spawn(move || loop {
        std::thread::sleep(Duration::from_millis(100));
        let began = BEGAN.load(Ordering::Relaxed);
        if began > 0 && now_ms().saturating_sub(began) > limits.time.as_millis() as u64 {
            eprintln!("an input took more than {:?}", limits.time);
            std::process::exit(EXIT_HANG);
        }
    });
}

static CLOCK: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();

fn now_ms() -> u64 {
    CLOCK
        .get()
        .map_or(0, |clock| clock.elapsed().as_millis() as u64)
}

/// The most memory that was taken at a time during an execution, beyond what was taken before.
pub fn peak_of<R>(execution: impl FnOnce() -> R) -> (R, usize) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = execution();
    let peak = PEAK.load(Ordering::Relaxed);
    (result, peak.saturating_sub(before))
}

/// Runs one execution.
///
/// # Errors
/// The finding, in one sentence.
pub fn run(limits: Limits, execution: impl FnOnce() -> Outcome) -> Result<(), String> {
    BEGAN.store(now_ms() + 1, Ordering::Relaxed);
    let (outcome, peak) = peak_of(|| catch_unwind(AssertUnwindSafe(execution)));
    BEGAN.store(0, Ordering::Relaxed);
    let panic = PANIC.with(|kept| kept.borrow_mut().take());
    // Also one that the switch itself caught: the net is there for faults, and a fault is a finding.
    if let Some(text) = panic {
        return Err(text);
    }
    match outcome {
        Ok(outcome) => outcome?,
        Err(_) => return Err("a panic without a message".into()),
    }
    match peak > limits.memory_bytes {
        true => Err(format!(
            "it took {peak} bytes; {} are allowed",
            limits.memory_bytes
        )),
        false => Ok(()),
    }
}

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
