// SPDX-License-Identifier: Apache-2.0
//! `Machine`: the kernel's process, and whose turn it is.
//!
//! The machine and the network around it are two parts of one simulation that take turns, and neither goes back in time. A turn is
//! as long as nothing can arrive in it that is not known when it begins: conservative synchronisation with lookahead (Chandy and
//! Misra 1979, "Distributed simulation"; here one of the two waits, so no null messages are sent). Who gives the turn says
//!
//! 1. `until`: no frame arrives before that instant but those that were delivered, and those that answer what the machine sends in
//!    this turn;
//! 2. `lookahead`: an answer to a frame that the machine sends at t arrives at t + lookahead at the earliest.
//!
//! The kernel itself ends the turn at the first of these two, so whatever it does in its turn, it does with all frames that it would
//! have got, each at its instant; and what it sends has the instant at which it was sent. So turns change nothing in what happens when.
//! A lookahead of 0 ends the turn with the instant of the first frame. [`Machine::deliver`] refuses a frame that comes too late.

use crate::calendar::{Asked, Calendar, CLIENTS_END};
use crate::error::{system, MachineError};
use crate::frames::{self, Frames, LineCounts};
use crate::Nanos;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::fs::{statvfs, StatVfsMountFlags};
use rustix::process::{kill_process_group, pidfd_open, Pid, PidfdFlags, Signal};
use rustix::thread::{sched_setaffinity, CpuSet};
use std::fs::File;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Lines of the console that an error shows.
const CONSOLE_LINES: usize = 12;
const TIME_SOCKET: &str = "time";
const CONSOLE: &str = "console";
/// So often a wait for the kernel asks whether it is to end.
const MOMENT: Duration = Duration::from_millis(50);
/// So long a kernel that is halted, or dead, may take to end its process.
const LAST_MOMENTS: Duration = Duration::from_secs(5);

/// Whether a signal asks this process to stop. One a process, as its signals are.
static INTERRUPTED: OnceLock<fn() -> bool> = OnceLock::new();

/// Waits for a kernel ask `is_interrupted` each moment; true ends them with [`MachineError::Interrupted`].
pub fn interrupt_waits(is_interrupted: fn() -> bool) {
    let _ = INTERRUPTED.set(is_interrupted);
}

/// What a machine is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// File of the kernel (`make kernel`).
    pub kernel: PathBuf,
    /// Its root directory, one of its own: `init` is in it, and what the run writes. All paths are relative to it, so that
    /// the kernel's command line, which it mixes into its random numbers, is the same wherever it lies.
    pub folder: PathBuf,
    /// An interface for each.
    pub macs: Vec<[u8; 6]>,
    pub memory_mb: u32,
    /// Decides all random numbers of the kernel.
    pub seed: u64,
    /// The core that this thread and the kernel share; None: where the system puts them, which is many times slower.
    pub cpu: Option<usize>,
    /// So long, by the wall clock, the kernel may take to boot.
    pub boot_limit: Duration,
    /// So long, by the wall clock, it may be silent while it runs.
    pub patience: Duration,
}

/// A running User-mode Linux; dropped, it is ended.
pub struct Machine {
    process: Process,
    folder: PathBuf,
    calendar: Calendar,
    frames: Frames,
    boot_limit: Duration,
    /// While it boots: when it has to be done.
    boot_end: Option<Instant>,
    patience: Duration,
    /// All that the kernel does before, it has done.
    reached: Nanos,
}

impl Machine {
    /// Starts the kernel; it has run nothing yet, and wants to at instant 0.
    ///
    /// # Errors
    /// [`MachineError`]: no kernel, or it ended at once.
    pub fn start(options: &Options) -> Result<Machine, MachineError> {
        let kernel = options.kernel.canonicalize();
        let kernel = kernel.map_err(|_| MachineError::NoKernel(options.kernel.clone()))?;
        if let Some(cpu) = options.cpu {
            let mut set = CpuSet::new();
            set.set(cpu);
            sched_setaffinity(None, &set).map_err(system("choosing a core"))?;
        }
        let folder = options.folder.clone();
        let time = listen(&folder, TIME_SOCKET)?;
        let console = File::create(folder.join(CONSOLE)).map_err(system("making the console"))?;
        let errors = console.try_clone().map_err(system("making the console"))?;
        // It ends with this thread, however that ends, and its processes with it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        // Without randomised addresses: they change the size of its memory by a page.
        command.args(["setarch", "x86_64", "-R"]);
        command.arg(kernel).args([
            &format!("mem={}M", options.memory_mb),
            "root=fairlane",
            "rootfstype=hostfs",
            "hostfs=/proc/self/cwd",
            "rw",
            "init=/init",
            "ipv6.disable_ipv6=1", // where a host has no address of it, nothing is sent
            "umid=fairlane",
            "uml_dir=.",
            "con=null",
            "con0=null,fd:2",
            &format!("time-travel=ext:1:{TIME_SOCKET}"),
        ]);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("FAIRLANE_SEED", options.seed.to_string())
            .env("TMPDIR", memory_folder(options.memory_mb))
            .current_dir(&folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(errors);
        let mut process = Process::start(&mut command)?;
        let boot_end = Instant::now() + options.boot_limit;
        let mut events = [
            PollFd::new(&time, PollFlags::IN),
            PollFd::new(&process.ended, PollFlags::IN),
        ];
        let ready = wait(&mut events, boot_end)?;
        if ready != Some(0) {
            let console = console_tail(&folder);
            return Err(match ready {
                None => MachineError::no_boot(options.boot_limit, console),
                Some(_) => MachineError::stopped(0, process.end()?, console),
            });
        }
        let (socket, _) = time.accept().map_err(system("accepting the kernel"))?;
        let bytes = frames::memory_bytes(options.macs.len());
        let calendar = Calendar::new(socket.into(), bytes)?;
        let machine = Machine {
            process,
            folder,
            frames: Frames::new(&calendar.file, CLIENTS_END, &options.macs)?,
            calendar,
            boot_limit: options.boot_limit,
            boot_end: Some(boot_end),
            patience: options.patience,
            reached: 0,
        };
        Ok(machine)
    }

    /// When the kernel wants to run; None: never again by itself.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn next_event(&self) -> Result<Option<Nanos>, MachineError> {
        if self.exit().is_some() {
            return Ok(None);
        }
        let wants = self.calendar.wants()?;
        Ok(wants.into_iter().chain(self.frames.first()?).min())
    }

    /// From now on the interface is a line of this rate (at least 1 bit/s) behind a queue, as the kernel's qdisc has it: what is delivered
    /// there is sent there.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn set_rate(&self, interface: usize, rate_bps: u64) -> Result<(), MachineError> {
        self.frames.set_rate(interface, rate_bps)
    }

    /// What the queue of a line has counted until the end of the last turn.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn line(&self, interface: usize) -> Result<LineCounts, MachineError> {
        self.frames.line(interface)
    }

    /// How the kernel ended, when it has.
    pub fn exit(&self) -> Option<ExitStatus> {
        self.process.exit
    }

    /// Lets the kernel boot: it runs from instant 0 until it has nothing to do before `until`. What it sends goes nowhere.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn boot(&mut self, until: Nanos) -> Result<(), MachineError> {
        self.calendar.limit(until)?;
        self.serve()?;
        while let Some(at) = self.next_event()?.filter(|at| *at < until) {
            if self.boot_end.is_some_and(|end| Instant::now() >= end) {
                return Err(self.silent());
            }
            self.run(at, until, until, |_, _, _| {})?;
        }
        self.boot_end = None;
        Ok(())
    }

    /// A turn of the kernel: from `now` on, before `until`, and at most until `lookahead` (at least 1 ns) has passed since the first
    /// frame that it sends. `sent` gets each frame: instant, interface, bytes. See the module for what the caller promises.
    ///
    /// Returns the turn's end: what was delivered to arrive then or later, the kernel has not got, and is to be delivered again.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn run(
        &mut self,
        now: Nanos,
        until: Nanos,
        lookahead: Nanos,
        sent: impl FnMut(Nanos, usize, &[u8]),
    ) -> Result<Nanos, MachineError> {
        let no_room = self.frames.begin_turn(lookahead)?;
        let until = no_room.map_or(until, |at| until.min(at));
        self.calendar.give_turn(now, until)?;
        self.serve()?;
        self.frames.end_turn()?;
        self.frames.take(sent)?;
        Ok(self.reached)
    }

    /// A frame arrives at an interface at `at`, not before the frame that was delivered last. It may lie ahead of the next turn's
    /// begin when there `has_room`.
    ///
    /// # Errors
    /// [`MachineError`]; `Past` when the kernel has done already what comes behind it.
    pub fn deliver(
        &mut self,
        at: Nanos,
        interface: usize,
        frame: &[u8],
    ) -> Result<(), MachineError> {
        if self.process.exit.is_some() {
            return Ok(());
        }
        // A frame may arrive at the very instant with which the turn has ended.
        if at + 1 < self.reached {
            let reached_ns = self.reached;
            return Err(MachineError::Past {
                at_ns: at,
                reached_ns,
            });
        }
        self.frames.deliver(at, interface, frame)
    }

    /// Another frame may be delivered ahead.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn has_room(&self) -> Result<bool, MachineError> {
        self.frames.has_room()
    }

    /// Answers the kernel, whose turn it is, until it waits or ends.
    fn serve(&mut self) -> Result<(), MachineError> {
        loop {
            match self.calendar.serve()? {
                Asked::Waits => {
                    self.reached = self.calendar.reached()?;
                    return Ok(());
                }
                Asked::Ended => return self.ended(),
                Asked::Nothing => {}
            }
            let end = self.boot_end;
            let end = end.unwrap_or_else(|| Instant::now() + self.patience);
            let mut events = [PollFd::new(&self.calendar.socket, PollFlags::IN)];
            if wait(&mut events, end)?.is_none() {
                return Err(self.silent());
            }
        }
    }

    /// The kernel has closed the time socket: it was halted, or died.
    fn ended(&mut self) -> Result<(), MachineError> {
        let mut events = [PollFd::new(&self.process.ended, PollFlags::IN)];
        wait(&mut events, Instant::now() + LAST_MOMENTS)?;
        let status = self.process.end()?;
        match status.success() {
            true => Ok(()),
            false => Err(MachineError::stopped(
                self.calendar.now()?,
                status,
                console_tail(&self.folder),
            )),
        }
    }

    /// What was awaited has not come in time.
    fn silent(&mut self) -> MachineError {
        let _ = self.process.end();
        let console = console_tail(&self.folder);
        match self.boot_end {
            Some(_) => MachineError::no_boot(self.boot_limit, console),
            None => MachineError::Hangs {
                waited_s: self.patience.as_secs(),
                at_s: self.calendar.now().unwrap_or_default() as f64 / 1e9,
                console,
            },
        }
    }
}

/// The kernel's process and those that it makes, in a group of their own; dropped, they are ended.
struct Process {
    child: Child,
    /// Readable when it has ended.
    ended: OwnedFd,
    exit: Option<ExitStatus>,
}

impl Process {
    fn start(command: &mut Command) -> Result<Process, MachineError> {
        let mut child = command.spawn().map_err(system("starting setpriv"))?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(ended) => Ok(Process {
                child,
                ended,
                exit: None,
            }),
            Err(error) => {
                kill(&mut child)?;
                Err(system("watching the kernel")(error))
            }
        }
    }

    /// Ends what still runs; the status of the kernel.
    fn end(&mut self) -> Result<ExitStatus, MachineError> {
        match self.exit {
            Some(status) => Ok(status),
            None => Ok(*self.exit.insert(kill(&mut self.child)?)),
        }
    }
}

fn kill(child: &mut Child) -> Result<ExitStatus, MachineError> {
    // An error means that they have ended.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait().map_err(system("waiting for the kernel"))
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Waits until one of these is readable, and says which: the last, should there be more. None: `end` has come.
fn wait(events: &mut [PollFd<'_>], end: Instant) -> Result<Option<usize>, MachineError> {
    loop {
        match poll(events, Some(&timespec(MOMENT))) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(events.iter().rposition(|event| !event.revents().is_empty())),
            Err(error) => return Err(system("poll")(error)),
        }
        if INTERRUPTED
            .get()
            .is_some_and(|is_interrupted| is_interrupted())
        {
            return Err(MachineError::Interrupted);
        }
        if Instant::now() >= end {
            return Ok(None);
        }
    }
}

/// Where the kernel makes the file that is its memory: in memory, unless that is too small or runs no code, as in a container.
fn memory_folder(memory_mb: u32) -> &'static str {
    const SHARED_MEMORY: &str = "/dev/shm";
    let fits = statvfs(SHARED_MEMORY).is_ok_and(|shared| {
        let free = shared.f_bavail.saturating_mul(shared.f_frsize);
        free >= u64::from(memory_mb) << 20 && !shared.f_flag.contains(StatVfsMountFlags::NOEXEC)
    });
    if fits {
        SHARED_MEMORY
    } else {
        "."
    }
}

/// A socket in the folder, however long the folder's path is.
fn listen(folder: &Path, name: &str) -> Result<UnixListener, MachineError> {
    let open = File::open(folder).map_err(system("opening the machine's folder"))?;
    let path = PathBuf::from(format!(
        "/proc/self/fd/{}/{name}",
        std::os::fd::AsRawFd::as_raw_fd(&open)
    ));
    UnixListener::bind(path).map_err(system("making a socket in the machine's folder"))
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

fn console_tail(folder: &Path) -> String {
    let text = std::fs::read(folder.join(CONSOLE)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}
