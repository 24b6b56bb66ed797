// SPDX-License-Identifier: Apache-2.0
//! Frames gathered for one system call: copied into one buffer, sent when it is full or when asked, by this thread or by
//! threads of their own.

use std::io;

use crate::send_thread::SendThread;
use crate::socket::{TxError, TxSocket, TX_BATCH};
use device::{Packet, Transmit};
use v1model::Nanos;

struct Frame {
    port: u32,
    index: i32,
    start: usize,
    end: usize,
}

/// Frames in the order in which they are sent.
pub(crate) struct Batch {
    frames: Vec<Frame>,
    bytes: Vec<u8>,
    /// Ports of frames that failed, and their bytes.
    failed: Vec<(u32, u64)>,
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
        let mut failed = |i: usize| {
            let frame: &Frame = &frames[i];
            failures.push((frame.port, (frame.end - frame.start) as u64));
        };
        match socket {
            Some(socket) => {
                let frame = |i: usize| {
                    let frame: &Frame = &frames[i];
                    (frame.index, &bytes[frame.start..frame.end])
                };
                socket.send(frames.len(), frame, |i, _: TxError| failed(i));
            }
            None => (0..frames.len()).for_each(failed),
        }
        self.frames.clear();
        self.bytes.clear();
    }
}

/// Who sends the frames of some ports.
enum Sender {
    /// None: there is no port.
    Here(Option<TxSocket>),
    Thread(SendThread),
}

/// Ports whose frames are sent together.
struct Lane {
    batch: Batch,
    sender: Sender,
}

/// Where a port's frames go.
#[derive(Clone, Copy)]
struct Way {
    lane: u32,
    /// Of the interface; 0, which the kernel refuses, where there is none.
    index: i32,
}

const NOWHERE: Way = Way { lane: 0, index: 0 };

/// Outgoing frames of all ports, those of one port in order.
pub struct TxBatch {
    lanes: Vec<Lane>,
    /// Of each port.
    ways: Vec<Way>,
    failures: Failures,
}

/// Of each port, the frames that failed since the last query and their bytes.
struct Failures {
    of: Vec<(u64, u64)>,
    any: bool,
}

impl Failures {
    #[inline]
    fn gather(&mut self, batch: &mut Batch) {
        for (port, length) in batch.failed.drain(..) {
            if let Some((packets, bytes)) = self.of.get_mut(port as usize) {
                *packets += 1;
                *bytes += length;
                self.any = true;
            }
        }
    }
}

impl TxBatch {
    /// An empty batch for ports up to `port_max`.
    pub fn new(sockets: Vec<TxSocket>, port_max: u32) -> TxBatch {
        let mut senders: Vec<Sender> = sockets.into_iter().map(|s| Sender::Here(Some(s))).collect();
        if senders.is_empty() {
            senders.push(Sender::Here(None));
        }
        let lane = |sender| Lane {
            batch: Batch::new(),
            sender,
        };
        TxBatch {
            lanes: senders.into_iter().map(lane).collect(),
            ways: vec![NOWHERE; port_max as usize + 1],
            failures: Failures {
                of: vec![(0, 0); port_max as usize + 1],
                any: false,
            },
        }
    }

    /// Gives each socket a thread of its own, scheduled as this one.
    ///
    /// # Errors
    /// The system's, when a thread cannot be had; that socket is lost.
    pub fn start_threads(&mut self) -> io::Result<()> {
        for lane in &mut self.lanes {
            if let Sender::Here(socket) = &mut lane.sender {
                if let Some(socket) = socket.take() {
                    lane.sender = Sender::Thread(SendThread::start(socket)?);
                }
            }
        }
        Ok(())
    }

    /// Frames of `port`, the `number`th, go to the interface with this index from now on, through the socket whose turn it is.
    pub fn bind(&mut self, number: usize, port: u32, index: i32) {
        let lane = (number % self.lanes.len()) as u32;
        self.ways[port as usize] = Way { lane, index };
    }

    /// Sends what is gathered, or hands it to the threads that do.
    #[inline]
    pub fn flush(&mut self) {
        for lane in 0..self.lanes.len() {
            self.flush_lane(lane);
        }
    }

    #[inline]
    fn flush_lane(&mut self, lane: usize) {
        let Lane { batch, sender } = &mut self.lanes[lane];
        if batch.frames.is_empty() {
            return;
        }
        match sender {
            Sender::Here(socket) => {
                batch.send(socket.as_mut());
                self.failures.gather(batch);
            }
            Sender::Thread(thread) => thread.exchange(batch, |sent| self.failures.gather(sent)),
        }
    }

    /// Waits until threads have sent all that they were handed.
    pub fn settle(&mut self) {
        for lane in &mut self.lanes {
            if let Sender::Thread(thread) = &mut lane.sender {
                thread.settle(|sent| self.failures.gather(sent));
            }
        }
    }

    /// Tells `each` every port with frames that failed since the last call: how many, and their bytes. Of what threads
    /// send, all is known after `settle`.
    pub fn take_failures(&mut self, mut each: impl FnMut(u32, u64, u64)) {
        if !std::mem::take(&mut self.failures.any) {
            return;
        }
        for (port, failed) in (0u32..).zip(&mut self.failures.of) {
            let (packets, bytes) = std::mem::take(failed);
            if packets > 0 {
                each(port, packets, bytes);
            }
        }
    }

    /// Adds a copy of a frame that leaves at `port`; a full batch is sent at once.
    #[inline]
    pub fn push(&mut self, port: u32, frame: &[u8]) {
        let way = self.ways.get(port as usize).copied();
        let way = way.unwrap_or(NOWHERE);
        let batch = &mut self.lanes[way.lane as usize].batch;
        let start = batch.bytes.len();
        batch.bytes.extend_from_slice(frame);
        batch.frames.push(Frame {
            port,
            index: way.index,
            start,
            end: batch.bytes.len(),
        });
        if batch.frames.len() == TX_BATCH {
            self.flush_lane(way.lane as usize);
        }
    }
}

impl Transmit for TxBatch {
    #[inline]
    fn transmit(&mut self, port: u32, packet: &mut Packet, _at: Nanos) {
        self.push(port, packet.frame());
    }
}
