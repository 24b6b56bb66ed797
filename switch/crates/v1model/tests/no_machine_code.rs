// SPDX-License-Identifier: Apache-2.0
//! A process that may not have executable memory: the interpreter runs its programs, and what could not become machine
//! code leaves no memory behind. A binary of its own, as the process cannot get the right back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use v1model::{Engine, Pipeline};

/// Counts the bytes of whole pages, as memory for machine code is.
struct Pages;

static BYTES: AtomicUsize = AtomicUsize::new(0);

fn pages(layout: Layout) -> usize {
    match layout.align() {
        4096.. => layout.size(),
        _ => 0,
    }
}

// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Pages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(pages(layout), Relaxed);
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(pages(layout), Relaxed);
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Pages = Pages;

/// Bytes of whole pages that are left of a pipeline that is dropped, and whether it had machine code.
fn left_by(note: &str) -> (usize, bool) {
    let text = include_str!("p4/compiled/headers.json");
    let text = text.replacen(
        "\"program\" : ",
        &format!("\"{note}\": 1, \"program\" : "),
        1,
    );
    let before = BYTES.load(Relaxed);
    let pipeline = Pipeline::from_json(text.as_bytes()).unwrap();
    let has_code = pipeline.not_native().is_none() && pipeline.engine() == Engine::Native;
    drop(pipeline);
    (BYTES.load(Relaxed) - before, has_code)
}

#[test]
fn code_that_cannot_be_made_leaves_no_memory() {
    if Engine::chosen() == Ok(Engine::Interpreter) {
        return;
    }
    let (kept, has_code) = left_by("allowed");
    assert!(has_code);
    assert!(
        kept > 0,
        "the program is kept for the next of its kind, and its code is seen here"
    );
    let refuse = libc::c_ulong::from(libc::PR_MDWE_REFUSE_EXEC_GAIN);
    // SAFETY: numbers only; what it takes is the right to make memory executable.
    if unsafe { libc::prctl(libc::PR_SET_MDWE, refuse, 0, 0, 0) } != 0 {
        eprintln!("skipped: this kernel has no PR_SET_MDWE (Linux 6.3)");
        return;
    }
    for note in ["first", "second"] {
        assert_eq!(left_by(note), (0, false));
    }
}
