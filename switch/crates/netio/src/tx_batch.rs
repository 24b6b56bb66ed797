// SPDX-License-Identifier: Apache-2.0
//! Frames gathered for one system call: copied into one buffer, sent when it is full or when asked, by this thread or by
//! threads of their own.

use std::io;

use crate::send_thread::SendThread;
use crate::socket::{TxSocket, TX_BATCH};

/// Where a frame leaves, and what its owner knows it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// By its number.
    pub interface: u32,
    /// What carried the frame to it.
    pub wire: u32,
}

struct Frame {
    departure: Departure,
    index: i32,
    start: usize,
    end: usize,
}

/// Frames in the order in which they are sent.
pub(crate) struct Batch {
    frames: Vec<Frame>,
    bytes: Vec<u8>,
    /// Frames that failed, and their bytes.
    failed: Vec<(Departure, u64)>,
}

impl Batch {
    pub(crate) fn new() -> Batch {
        Batch {
            frames: Vec::with_capacity(TX_BATCH),
            bytes: Vec::with_capacity(TX_BATCH * 2048),
            failed: Vec::with_capacity(TX_BATCH),
        }
    }

    /// Sends the frames; without a socket, all fail. What failed stays until it is taken.
    pub(crate) fn send(&mut self, socket: Option<&mut TxSocket>) {
        let (frames, bytes, failures) = (&self.frames, &self.bytes, &mut self.failed);
        let failed = |i: usize| {
            let frame: &Frame = &frames[i];
            failures.push((frame.departure, (frame.end - frame.start) as u64));
        };
        match socket {
            Some(socket) => {
                let frame = |i: usize| {
                    let frame: &Frame = &frames[i];
                    (frame.index, &bytes[frame.start..frame.end])
                };
                socket.send(frames.len(), frame, failed);
            }
            None => (0..frames.len()).for_each(failed),
        }
        self.frames.clear();
        self.bytes.clear();
    }
}

/// Interfaces whose frames are sent together.
struct Lane {
    batch: Batch,
    sender: Sender,
}

/// Who sends them.
enum Sender {
    Here(TxSocket),
    Thread(SendThread),
}

/// Outgoing frames of all interfaces, those of one in order.
pub struct TxBatch {
    lanes: Vec<Lane>,
    /// Of each interface; 0, which the kernel refuses, where there is none.
    indexes: Vec<i32>,
    failures: Vec<(Departure, u64)>,
}

impl TxBatch {
    /// An empty batch for so many interfaces, shared out among the sockets.
    pub fn new(sockets: Vec<TxSocket>, interfaces: usize) -> TxBatch {
        let lane = |socket| Lane {
            batch: Batch::new(),
            sender: Sender::Here(socket),
        };
        TxBatch {
            lanes: sockets.into_iter().map(lane).collect(),
            indexes: vec![0; interfaces],
            failures: Vec::with_capacity(TX_BATCH),
        }
    }

    /// The same, where each socket has a thread of its own, scheduled as this one.
    ///
    /// # Errors
    /// The system's, when a thread cannot be had.
    pub fn in_threads(mut self) -> io::Result<TxBatch> {
        let in_thread = |mut lane: Lane| {
            if let Sender::Here(socket) = lane.sender {
                lane.sender = Sender::Thread(SendThread::start(socket)?);
            }
            Ok(lane)
        };
        let lanes: io::Result<_> = self.lanes.into_iter().map(in_thread).collect();
        self.lanes = lanes?;
        Ok(self)
    }

    /// From now on the kernel knows an interface by this index; 0: it is gone.
    pub fn bind(&mut self, interface: usize, index: i32) {
        self.indexes[interface] = index;
    }

    /// Sends what is gathered, or hands it to the threads that do.
    #[inline]
    pub fn flush(&mut self) {
        for lane in &mut self.lanes {
            lane.flush(&mut self.failures);
        }
    }

    /// Waits until threads have sent all that they were handed.
    pub fn settle(&mut self) {
        for lane in &mut self.lanes {
            if let Sender::Thread(thread) = &mut lane.sender {
                thread.settle(|sent| self.failures.append(&mut sent.failed));
            }
        }
    }

    /// Tells `each` the frames that failed since the last call, and their bytes. Of what threads send, all is known after
    /// `settle`.
    #[inline]
    pub fn take_failures(&mut self, mut each: impl FnMut(Departure, u64)) {
        for (departure, bytes) in self.failures.drain(..) {
            each(departure, bytes);
        }
    }

    /// Adds a copy of a frame; a full batch is sent at once.
    #[inline]
    pub fn push(&mut self, departure: Departure, frame: &[u8]) {
        let number = departure.interface as usize;
        let lane = number % self.lanes.len();
        let lane = &mut self.lanes[lane];
        let batch = &mut lane.batch;
        let start = batch.bytes.len();
        batch.bytes.extend_from_slice(frame);
        batch.frames.push(Frame {
            departure,
            index: self.indexes[number],
            start,
            end: batch.bytes.len(),
        });
        if batch.frames.len() == TX_BATCH {
            lane.flush(&mut self.failures);
        }
    }
}

impl Lane {
    #[inline]
    fn flush(&mut self, failures: &mut Vec<(Departure, u64)>) {
        let Lane { batch, sender } = self;
        if batch.frames.is_empty() {
            return;
        }
        match sender {
            Sender::Here(socket) => {
                batch.send(Some(socket));
                failures.append(&mut batch.failed);
            }
            Sender::Thread(thread) => {
                thread.exchange(batch, |sent| failures.append(&mut sent.failed));
            }
        }
    }
}
