// SPDX-License-Identifier: Apache-2.0
//! `Machine`: the kernel's process, whose turn it is, and what passes between its interfaces and the network.

use crate::calendar::{Asked, Calendar};
use crate::error::{system, MachineError};
use crate::interface::{Interface, InterfaceCounts};
use crate::Nanos;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::thread::{sched_setaffinity, CpuSet};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Lines of the console that an error shows.
const CONSOLE_LINES: usize = 12;
const TIME_SOCKET: &str = "time";
const NETWORK_SOCKET: &str = "network";
const CONSOLE: &str = "console";

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
    /// So long, by the machine's clock, the kernel may be silent while it runs.
    pub patience: Duration,
}

/// What lies between the interfaces.
pub trait Network {
    /// A frame left an interface at `now`.
    fn transmit(&mut self, now: Nanos, interface: usize, frame: &[u8]);
    /// No event of the network comes before this instant; None: none will come.
    fn next_event(&mut self) -> Option<Nanos>;
}

/// A running User-mode Linux; dropped, it is ended.
pub struct Machine {
    child: Child,
    folder: PathBuf,
    calendar: Calendar,
    interfaces: Vec<Interface>,
    macs: Vec<[u8; 6]>,
    listener: UnixListener,
    patience: Duration,
    now: Nanos,
    /// Frames wait in the guest's rings since then.
    frames_at: Option<Nanos>,
    exit: Option<ExitStatus>,
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
        let listener = listen(&folder, NETWORK_SOCKET)?;
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
            "umid=fairlane",
            "uml_dir=.",
            "con=null",
            "con0=null,fd:2",
            "virtio_net.napi_tx=0",
            &format!("time-travel=ext:1:{TIME_SOCKET}"),
        ]);
        for _ in &options.macs {
            command.arg(format!("virtio_uml.device={NETWORK_SOCKET}:1"));
        }
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("FAIRLANE_SEED", options.seed.to_string())
            .current_dir(&folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(errors);
        let mut child = command.spawn().map_err(system("starting setpriv"))?;
        let started = Instant::now();
        while !is_readable(&time)? {
            let exit = child.try_wait().map_err(system("waiting for the kernel"))?;
            if exit.is_some() || started.elapsed() > options.patience {
                let exit = exit.or_else(|| end(&mut child));
                return Err(MachineError::Stopped {
                    at_s: 0.0,
                    how: exit.map_or_else(String::new, |status| status.to_string()),
                    console: console_tail(&folder),
                });
            }
        }
        let (socket, _) = time.accept().map_err(system("accepting the kernel"))?;
        let machine = Machine {
            child,
            folder,
            calendar: Calendar::new(socket.into())?,
            interfaces: Vec::new(),
            macs: options.macs.clone(),
            listener,
            patience: options.patience,
            now: 0,
            frames_at: None,
            exit: None,
        };
        Ok(machine)
    }

    /// The present.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// When the kernel wants to run; None: never again by itself.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn next_event(&self) -> Result<Option<Nanos>, MachineError> {
        if self.exit.is_some() {
            return Ok(None);
        }
        let wants = self.calendar.wants()?;
        Ok(wants.into_iter().chain(self.frames_at).min())
    }

    /// How the kernel ended, when it has.
    pub fn exit(&self) -> Option<ExitStatus> {
        self.exit
    }

    /// Counts of an interface, in the order of the options.
    pub fn counts(&self) -> impl Iterator<Item = InterfaceCounts> + '_ {
        self.interfaces.iter().map(|interface| interface.counts)
    }

    /// Lets the kernel boot: it runs from instant 0 until it has nothing to do before the network's next event or `until`.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn boot(&mut self, until: Nanos, network: &mut impl Network) -> Result<(), MachineError> {
        let limit = network.next_event().map_or(until, |next| next.min(until));
        self.calendar.limit(limit)?;
        self.serve(network)
    }

    /// Lets the kernel run from `now` until it has nothing to do before the network's next event or `until`.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn run(
        &mut self,
        now: Nanos,
        until: Nanos,
        network: &mut impl Network,
    ) -> Result<(), MachineError> {
        self.now = now;
        let limit = network.next_event().map_or(until, |next| next.min(until));
        let has_frames = self.frames_at.take().is_some();
        self.calendar.give_turn(now, limit, has_frames)?;
        self.serve(network)
    }

    /// A frame arrives at an interface at `now`: the kernel wants to run then.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn deliver(
        &mut self,
        now: Nanos,
        interface: usize,
        frame: &[u8],
    ) -> Result<(), MachineError> {
        let interface = self.interfaces.get_mut(interface);
        let Some(interface) = interface.filter(|_| self.exit.is_none()) else {
            return Ok(()); // not plugged in yet, or halted
        };
        self.now = now;
        if interface.deliver(frame)? {
            self.frames_at.get_or_insert(now);
        }
        Ok(())
    }

    /// Answers the kernel, whose turn it is, until it waits or ends.
    fn serve(&mut self, network: &mut impl Network) -> Result<(), MachineError> {
        loop {
            let plugging = self.interfaces.len() < self.macs.len();
            // When its interfaces are set up, they ask for nothing until it halts: the next message is that of the calendar.
            let is_set_up = !plugging && self.interfaces.iter().all(Interface::is_set_up);
            let mut asked = Asked::Nothing;
            if is_set_up {
                asked = self.calendar.serve()?;
            }
            if matches!(asked, Asked::Nothing) {
                asked = self.serve_all(plugging)?;
            }
            match asked {
                Asked::Nothing => {}
                Asked::Waits => return self.take_frames(network),
                Asked::Ended => return self.ended(),
            }
        }
    }

    /// Waits for a message from the kernel, on any socket, and answers it.
    fn serve_all(&mut self, plugging: bool) -> Result<Asked, MachineError> {
        let open = |index: &usize| self.interfaces[*index].is_open;
        let open: Vec<usize> = (0..self.interfaces.len()).filter(open).collect();
        let mut events = Vec::with_capacity(open.len() + 2);
        events.push(PollFd::new(&self.calendar.socket, PollFlags::IN));
        for index in &open {
            events.push(PollFd::new(&self.interfaces[*index].socket, PollFlags::IN));
        }
        if plugging {
            events.push(PollFd::from_borrowed_fd(
                self.listener.as_fd(),
                PollFlags::IN,
            ));
        }
        match poll(&mut events, Some(&timespec(self.patience))) {
            Err(rustix::io::Errno::INTR) => return Ok(Asked::Nothing),
            Err(error) => return Err(system("poll")(error)),
            Ok(0) => {
                self.exit = end(&mut self.child);
                return Err(MachineError::Hangs {
                    waited_s: self.patience.as_secs(),
                    at_s: self.calendar.now()? as f64 / 1e9,
                    console: console_tail(&self.folder),
                });
            }
            Ok(_) => {}
        }
        // It does one thing at a time; should there be two, its interfaces come first.
        let ready = events
            .iter()
            .rposition(|event| !event.revents().is_empty())
            .unwrap_or_default();
        drop(events);
        match ready {
            0 => return self.calendar.serve(),
            _ if ready > open.len() => {
                let (socket, _) = self
                    .listener
                    .accept()
                    .map_err(system("accepting an interface"))?;
                let mac = self.macs[self.interfaces.len()];
                self.interfaces.push(Interface::new(socket.into(), mac));
            }
            _ => self.interfaces[open[ready - 1]].serve()?,
        }
        Ok(Asked::Nothing)
    }

    /// What the guest has sent in its turn, all of it at one instant, goes into the network.
    fn take_frames(&mut self, network: &mut impl Network) -> Result<(), MachineError> {
        let now = self.calendar.now()?;
        self.now = now;
        for (index, interface) in self.interfaces.iter_mut().enumerate() {
            if interface.drain(|frame| network.transmit(now, index, frame))? {
                self.frames_at.get_or_insert(now);
            }
        }
        Ok(())
    }

    /// The kernel has closed the time socket: it was halted, or died.
    fn ended(&mut self) -> Result<(), MachineError> {
        let status = self
            .child
            .wait()
            .map_err(system("waiting for the kernel"))?;
        self.exit = Some(status);
        self.now = self.now.max(self.calendar.now()?);
        match status.success() {
            true => Ok(()),
            false => Err(MachineError::Stopped {
                at_s: self.now as f64 / 1e9,
                how: status.to_string(),
                console: console_tail(&self.folder),
            }),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.exit.is_none() {
            end(&mut self.child);
        }
    }
}

/// Whether something connects within a moment.
fn is_readable(socket: &UnixListener) -> Result<bool, MachineError> {
    let mut events = [PollFd::new(socket, PollFlags::IN)];
    let moment = timespec(Duration::from_millis(50));
    match poll(&mut events, Some(&moment)) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        other => Ok(other.map_err(system("poll"))? > 0),
    }
}

/// Ends the kernel with the processes that it made; their group is its own.
fn end(child: &mut Child) -> Option<ExitStatus> {
    if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
        // An error means that they have ended.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    child.wait().ok()
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
