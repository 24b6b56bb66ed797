// SPDX-License-Identifier: Apache-2.0
//! What the packet thread asks of the kernel so that it wakes in time.

use rustix::thread::{sched_getaffinity, sched_setaffinity, set_current_timer_slack, CpuSet};
use std::io;
use std::num::NonZeroU64;

/// How the kernel schedules the packet thread.
#[derive(clap::Args, Debug, Clone, Copy)]
pub struct Scheduling {
    /// Real-time scheduling of the packet thread
    #[arg(long, value_enum, default_value_t = Realtime::Auto)]
    pub realtime: Realtime,
    /// Processor on which alone the packet thread runs; without it the kernel chooses one from moment to moment
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
}

/// Whether to ask for real-time scheduling.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Realtime {
    /// If it is permitted.
    Auto,
    /// Or do not start.
    On,
    /// Never.
    Off,
}

impl Scheduling {
    /// Schedules the thread that calls so; returns what it has now: `realtime` or `ordinary`.
    ///
    /// # Errors
    /// A sentence, where a wanted processor or real-time scheduling is not to be had.
    pub fn apply(self) -> Result<&'static str, String> {
        no_timer_slack();
        if let Some(cpu) = self.cpu {
            pin(cpu)?;
        }
        match (self.realtime, schedule_realtime) {
            (Realtime::Off, _) => Ok("ordinary"),
            (wanted, schedule) => match schedule() {
                Ok(()) => Ok("realtime"),
                Err(e) if wanted == Realtime::On => Err(format!(
                    "--realtime on: real-time scheduling is not permitted here: {e}"
                )),
                Err(_) => Ok("ordinary"),
            },
        }
    }
}

/// This thread runs on one processor only.
fn pin(cpu: usize) -> Result<(), String> {
    let allowed = sched_getaffinity(None).map_err(|e| format!("--cpu {cpu}: {e}"))?;
    let numbers: Vec<_> = (0..CpuSet::MAX_CPU)
        .filter(|one| allowed.is_set(*one))
        .collect();
    if !numbers.contains(&cpu) {
        return Err(format!("--cpu {cpu}: this process may use {numbers:?}"));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|e| format!("--cpu {cpu}: {e}"))
}

/// This thread runs where the process may, but not where the one that started it is pinned.
pub(crate) fn run_elsewhere() {
    // The first thread is never pinned. What is refused leaves this one where it is.
    let allowed = sched_getaffinity(Some(rustix::process::getpid()));
    if let (Ok(mut allowed), Ok(pinned)) = (allowed, sched_getaffinity(None)) {
        let is_others = |cpu: &usize| allowed.is_set(*cpu) && !pinned.is_set(*cpu);
        if (0..CpuSet::MAX_CPU).any(|cpu| is_others(&cpu)) {
            (0..CpuSet::MAX_CPU)
                .filter(|cpu| pinned.is_set(*cpu))
                .for_each(|cpu| allowed.unset(cpu));
            let _ = sched_setaffinity(None, &allowed);
        }
    }
}

/// Timers of this thread fire at their instant, not up to 50 µs later.
pub fn no_timer_slack() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn on(cpu: usize) -> Scheduling {
        Scheduling {
            realtime: Realtime::Off,
            cpu: Some(cpu),
        }
    }

    #[test]
    fn a_thread_runs_on_the_processor_that_is_asked_for() {
        let allowed = sched_getaffinity(None).unwrap();
        let last = (0..CpuSet::MAX_CPU)
            .rfind(|cpu| allowed.is_set(*cpu))
            .unwrap();
        let pinned = std::thread::spawn(move || {
            on(last).apply().unwrap();
            sched_getaffinity(None).unwrap()
        });
        let pinned = pinned.join().unwrap();
        assert_eq!((pinned.count(), pinned.is_set(last)), (1, true));
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused_with_those_that_are() {
        for cpu in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            let error = on(cpu).apply().unwrap_err();
            assert!(
                error.starts_with(&format!("--cpu {cpu}: this process may use [0")),
                "{error}"
            );
        }
    }
}
