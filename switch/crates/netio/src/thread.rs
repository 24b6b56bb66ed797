// SPDX-License-Identifier: Apache-2.0
//! What the packet thread asks of the kernel so that it wakes in time, and when it rests or pauses by itself.

use crate::clock::{monotonic_now, sleep_until, Nanos};
use rustix::thread::{sched_getaffinity, sched_setaffinity, set_current_timer_slack, CpuSet};
use std::num::NonZeroU64;
use std::{fs, io};

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
/// much to do: the loop rests for it ([`Rest`]), and where it does not, the kernel stops the thread.
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

/// After so long there is a rest, if one is owed.
const SPAN: Nanos = 1_000_000;
/// Parts of a thousand that are rested beyond what the kernel asks for.
const BEYOND: u64 = 10;

/// Short rests of a real-time thread that would otherwise be stopped for long.
///
/// Linux lets real-time threads have 95 % of a processor (`sched_rt_runtime_us` of `sched_rt_period_us`). One that never
/// sleeps, because it spins or because it has more frames than it can carry, is stopped for 50 ms of each second then. So it
/// rests by itself, a little more than it must, a few ten microseconds at a time; the others have their share all the same.
#[derive(Debug, Default)]
pub struct Rest {
    /// To be rested, parts of a thousand; 0: none.
    share: u64,
    /// Since when it is watched, and how long it slept since.
    since: Nanos,
    slept: Nanos,
}

impl Rest {
    /// For the thread that calls: none is owed unless it is a real-time one that the kernel limits.
    pub fn for_this_thread() -> Rest {
        let number = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let limits = number("sched_rt_runtime_us").zip(number("sched_rt_period_us"));
        Rest {
            share: match limits {
                Some((runtime, period)) if is_realtime() => share(runtime, period),
                _ => 0,
            },
            since: monotonic_now(),
            slept: 0,
        }
    }

    /// Does `sleep` at `now`, which counts as rest.
    pub fn during<R>(&mut self, now: Nanos, sleep: impl FnOnce() -> R) -> R {
        let result = sleep();
        if self.share > 0 {
            self.slept += monotonic_now().saturating_sub(now);
        }
        result
    }

    /// Rests where it is owed at `now`.
    #[inline]
    pub fn take(&mut self, now: Nanos) {
        if self.share == 0 || now < self.since + SPAN {
            return;
        }
        if let Some(until) = self.owed(now) {
            sleep_until(until);
        }
        (self.since, self.slept) = (monotonic_now(), 0);
    }

    /// Until when to rest.
    fn owed(&self, now: Nanos) -> Option<Nanos> {
        // Of the whole that ends with the rest.
        let awake = (now - self.since).saturating_sub(self.slept);
        let wanted = awake * self.share / (1_000 - self.share);
        let owed = wanted.checked_sub(self.slept)?;
        (owed > 0).then_some(now + owed)
    }
}

/// What to rest of a thousand parts where so much of a period is allowed.
fn share(runtime: u64, period: u64) -> u64 {
    match period.checked_sub(runtime) {
        Some(rest) if rest > 0 && runtime > 0 => (1_000 * rest).div_ceil(period).min(490) + BEYOND,
        _ => 0,
    }
}

/// Mean gap between frames below which pausing pays.
const DENSE_GAP: Nanos = 20_000;
/// Length of a pause.
pub const PAUSE: Nanos = 30_000;
/// A gap longer than this says no more than this.
const GAP_MAX: Nanos = 1_000_000;

/// When to pause instead of waiting for the next frame: as network cards moderate interrupts.
///
/// At some hundred thousand frames a second a thread that sleeps until the next frame is woken for each one, and takes
/// the processor from who sends them. Where frames come faster than `DENSE_GAP`, the thread pauses for [`PAUSE`] and
/// finds a batch. Frames carry the kernel's stamp of arrival, so the device's time does not see the pause; what leaves
/// leaves at most `PAUSE` late, and never later than a departure that is due.
#[derive(Debug, Default)]
pub struct Moderation {
    last_sleep: Nanos,
    frames: u64,
    /// Moving mean of the gap between frames, ns; 0 before the first.
    gap: Nanos,
}

impl Moderation {
    /// Notes frames received.
    #[inline]
    pub fn received(&mut self, frames: usize) {
        self.frames += frames as u64;
    }

    /// The thread has nothing to do at `now`: until when it should pause, or None: wait for a frame.
    pub fn pause_until(&mut self, now: Nanos) -> Option<Nanos> {
        let elapsed = (now - self.last_sleep).min(GAP_MAX);
        let gap = elapsed
            .checked_div(self.frames)
            .unwrap_or_else(|| elapsed.max(PAUSE));
        self.last_sleep = now;
        self.frames = 0;
        self.gap = (self.gap * 3 + gap) / 4;
        (self.gap < DENSE_GAP).then_some(now + PAUSE)
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

    #[test]
    fn a_little_more_than_the_kernel_asks_for() {
        assert_eq!(share(950_000, 1_000_000), 60);
        assert_eq!(share(1_000_000, 1_000_000), 0);
        // No real-time threads at all: then this is none.
        assert_eq!(share(0, 1_000_000), 0);
        assert_eq!(share(1, 1_000_000), 500);
    }

    #[test]
    fn sleep_counts() {
        let rest = |slept| Rest {
            share: 60,
            since: 5_000_000,
            slept,
        };
        let now = 5_940_000;
        assert_eq!(rest(0).owed(now), Some(6_000_000));
        assert_eq!(rest(60_000).owed(6_000_000), None);
        assert_eq!(rest(30_000).owed(5_970_000), Some(6_000_000));
        assert_eq!(rest(900_000).owed(now), None);
    }

    #[test]
    fn who_is_not_real_time_owes_nothing() {
        let mut rest = Rest::for_this_thread();
        assert_eq!(rest.share, 0);
        let now = monotonic_now();
        rest.take(now + 10 * SPAN);
        assert!(monotonic_now() < now + 10 * SPAN);
    }

    /// Feeds one frame each `gap` and asks after each; the answer after a while.
    fn after(gap: Nanos) -> Option<Nanos> {
        let mut moderation = Moderation::default();
        let mut answer = None;
        for i in 1..100 {
            moderation.received(1);
            answer = moderation.pause_until(i * gap);
        }
        answer
    }

    #[test]
    fn dense_frames_are_paused_for_and_sparse_ones_waited_for() {
        assert_eq!(after(5_000), Some(99 * 5_000 + PAUSE));
        assert_eq!(after(100_000), None);
    }

    #[test]
    fn silence_ends_the_pauses() {
        let mut moderation = Moderation::default();
        moderation.received(1_000);
        assert!(moderation.pause_until(1_000_000).is_some());
        let pauses =
            (1..100).take_while(|i| moderation.pause_until(1_000_000 + i * PAUSE).is_some());
        assert!(pauses.count() < 10);
    }
}
