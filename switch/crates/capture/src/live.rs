// SPDX-License-Identifier: Apache-2.0
//! A capture while frames come: a bounded ring from who sees them to a thread that writes. What finds the ring full is counted
//! and lost; nobody waits.

use crate::file::{CaptureFile, Frame, Interface};
use crate::Nanos;
use rtrb::{Consumer, Producer, RingBuffer};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Of the ring: 30,000 frames of the usual bytes, far more than come while the disk is written to.
const RING_BYTES: usize = 4 << 20;
/// Before a frame in the ring: when, interface, length, and how many bytes follow.
const HEADER_BYTES: usize = 20;
/// Between two looks at the ring.
const LOOK: Duration = Duration::from_millis(10);
/// How long the end waits for what is still written: a pipe may be read by nobody any more.
const PATIENCE: Duration = Duration::from_secs(1);
/// A capture of which nobody wants to know any more ends.
const LEASE: Duration = Duration::from_secs(10);

/// When a capture ends by itself; it ends too when nobody has asked for its progress for ten seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub packets: Option<u64>,
    pub duration: Option<Duration>,
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Frames seen that are in the file or will be.
    pub packets: u64,
    /// Frames that found the ring full.
    pub lost: u64,
    /// Nothing is written any more.
    pub is_done: bool,
    /// Why it ended early.
    pub error: Option<String>,
}

struct Shared {
    /// When somebody wanted to know how far it is.
    asked: Mutex<Instant>,
    packets: AtomicU64,
    lost: AtomicU64,
    /// No frame is taken any more.
    is_over: AtomicBool,
    is_done: AtomicBool,
    error: Mutex<Option<String>>,
}

impl Shared {
    fn is_wanted(&self) -> bool {
        lock(&self.asked).elapsed() < LEASE
    }
}

/// A running capture; the file is complete when it is dropped, unless nothing could be written for a second.
pub struct Live {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// Takes the frames in.
pub struct Recorder {
    shared: Arc<Shared>,
    ring: Producer<u8>,
    /// A frame with its header.
    record: Vec<u8>,
    snap_bytes: usize,
    packets_left: u64,
}

impl Live {
    /// Starts the thread, which creates the file.
    ///
    /// # Errors
    /// The system's error when no thread can be had; what is wrong with the file is in the progress.
    pub fn start(
        path: PathBuf,
        interfaces: Vec<Interface>,
        snap_bytes: u32,
        limits: Limits,
    ) -> io::Result<(Live, Recorder)> {
        let (ring, consumer) = RingBuffer::new(RING_BYTES);
        let shared = Arc::new(Shared {
            asked: Mutex::new(Instant::now()),
            packets: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            is_done: AtomicBool::new(false),
            error: Mutex::new(None),
        });
        let writing = Writing {
            shared: shared.clone(),
            ring: consumer,
            end: limits.duration.map(|duration| Instant::now() + duration),
            bytes: Vec::with_capacity(snap_bytes as usize),
        };
        let thread = thread::Builder::new().name("capture".to_owned());
        let thread = thread.spawn(move || {
            let shared = writing.shared.clone();
            let file = CaptureFile::create(&path, &interfaces, snap_bytes);
            if let Err(error) = file.and_then(|file| writing.run(file)) {
                *lock(&shared.error) = Some(format!("{}: {error}", path.display()));
            }
            shared.is_over.store(true, Ordering::Release);
            shared.is_done.store(true, Ordering::Release);
        })?;
        let live = Live {
            shared: shared.clone(),
            thread,
        };
        let recorder = Recorder {
            shared,
            ring,
            record: Vec::with_capacity(HEADER_BYTES + snap_bytes as usize),
            snap_bytes: snap_bytes as usize,
            packets_left: limits.packets.unwrap_or(u64::MAX),
        };
        Ok((live, recorder))
    }

    /// How far it is. It goes on for as long as somebody asks.
    pub fn progress(&self) -> Progress {
        *lock(&self.shared.asked) = Instant::now();
        // First: what is counted by then stays.
        let is_done = self.is_done();
        Progress {
            packets: self.shared.packets.load(Ordering::Relaxed),
            lost: self.shared.lost.load(Ordering::Relaxed),
            is_done,
            error: lock(&self.shared.error).clone(),
        }
    }

    /// It has ended, and nobody has asked for that.
    pub fn is_abandoned(&self) -> bool {
        self.is_done() && !self.shared.is_wanted()
    }

    /// Nothing is written any more.
    pub fn is_done(&self) -> bool {
        self.shared.is_done.load(Ordering::Acquire)
    }

    /// Ends it soon: what was seen until now is written.
    pub fn stop(&self) {
        self.shared.is_over.store(true, Ordering::Release);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop();
        let deadline = Instant::now() + PATIENCE;
        while !self.thread.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Recorder {
    /// Takes a frame in, if there is room for it.
    pub fn record(&mut self, interface: u32, at: Nanos, frame: &[u8]) {
        if self.shared.is_over.load(Ordering::Acquire) {
            return;
        }
        let kept = &frame[..frame.len().min(self.snap_bytes)];
        self.record.clear();
        self.record.extend(at.to_ne_bytes());
        for number in [interface, frame.len() as u32, kept.len() as u32] {
            self.record.extend(number.to_ne_bytes());
        }
        self.record.extend(kept);
        if self.ring.push_entire_slice(&self.record).is_err() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.shared.packets.fetch_add(1, Ordering::Relaxed);
        self.packets_left -= 1;
        if self.packets_left == 0 {
            self.shared.is_over.store(true, Ordering::Release);
        }
    }
}

/// The thread's side.
struct Writing {
    shared: Arc<Shared>,
    ring: Consumer<u8>,
    end: Option<Instant>,
    bytes: Vec<u8>,
}

impl Writing {
    fn run(mut self, mut file: CaptureFile) -> io::Result<()> {
        loop {
            // First: what was taken in until then is in the ring.
            let is_over = self.shared.is_over.load(Ordering::Acquire);
            self.drain(&mut file)?;
            if is_over {
                return file.flush();
            }
            let is_late = self.end.is_some_and(|end| end <= Instant::now());
            if is_late || !self.shared.is_wanted() {
                self.shared.is_over.store(true, Ordering::Release);
            } else {
                thread::sleep(LOOK);
            }
        }
    }

    fn drain(&mut self, file: &mut CaptureFile) -> io::Result<()> {
        let mut header = [0; HEADER_BYTES];
        while self.ring.pop_entire_slice(&mut header).is_ok() {
            let [a, b, c, d, e, f, g, h, rest @ ..] = header;
            let number = |at: usize| {
                u32::from_ne_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]])
            };
            self.bytes.resize(number(8) as usize, 0);
            // Who takes frames in commits both parts at once.
            let _ = self.ring.pop_entire_slice(&mut self.bytes);
            file.write(Frame {
                at: Nanos::from_ne_bytes([a, b, c, d, e, f, g, h]),
                interface: number(0),
                len_bytes: number(4),
                bytes: &self.bytes,
            })?;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
