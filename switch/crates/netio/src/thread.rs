// SPDX-License-Identifier: Apache-2.0
//! What the packet thread asks of the kernel so that it wakes in time.

use std::io;
use std::num::NonZeroU64;

/// Timers of this thread fire at their instant, not up to 50 µs later.
pub fn no_timer_slack() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// This thread is a real-time one.
pub(crate) fn is_realtime() -> bool {
    // SAFETY: plain system call.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO
}

/// SCHED_FIFO at the lowest real-time priority: before all ordinary processes. They have their share even when there is too
/// much to do: the loop rests for it (`rest`), and where it does not, the kernel stops the thread.
///
/// # Errors
/// The system's error: EPERM without CAP_SYS_NICE, or in a control group that permits no real time.
pub fn schedule_realtime() -> io::Result<()> {
    let param = libc::sched_param { sched_priority: 1 };
    // SAFETY: plain system call with a valid struct.
    let rc = unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &param)
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
