// SPDX-License-Identifier: Apache-2.0
//! Frames gathered for one system call: copied into one buffer, sent when it is full or when asked.

use crate::socket::{TxError, TxSocket, TX_BATCH};
use device::Transmit;
use v1model::Nanos;

struct Frame {
    port: u32,
    index: i32,
    start: usize,
    end: usize,
}

/// Outgoing frames of all ports, in order.
pub struct TxBatch {
    socket: TxSocket,
    /// Interface index of each port; 0 where there is none.
    indices: Vec<i32>,
    frames: Vec<Frame>,
    bytes: Vec<u8>,
    /// Ports whose frames failed since the last look, one entry a frame.
    failures: Vec<u32>,
    failures_lost: u64,
}

/// Most failures remembered between two looks.
const FAILURES_MAX: usize = 4096;

impl TxBatch {
    /// An empty batch for ports up to `port_max`.
    pub fn new(socket: TxSocket, port_max: u32) -> TxBatch {
        TxBatch {
            socket,
            indices: vec![0; port_max as usize + 1],
            frames: Vec::with_capacity(TX_BATCH),
            bytes: Vec::with_capacity(TX_BATCH * 2048),
            failures: Vec::with_capacity(FAILURES_MAX),
            failures_lost: 0,
        }
    }

    /// Frames of `port` go to the interface with this index from now on.
    pub fn bind(&mut self, port: u32, index: i32) {
        self.indices[port as usize] = index;
    }

    /// Sends what is gathered.
    #[inline]
    pub fn flush(&mut self) {
        if self.frames.is_empty() {
            return;
        }
        let (frames, bytes) = (&self.frames, &self.bytes);
        let (failures, lost) = (&mut self.failures, &mut self.failures_lost);
        self.socket.send(
            frames.len(),
            |i| {
                let frame = &frames[i];
                (frame.index, &bytes[frame.start..frame.end])
            },
            |i, _: TxError| {
                if failures.len() < FAILURES_MAX {
                    failures.push(frames[i].port);
                } else {
                    *lost += 1;
                }
            },
        );
        self.frames.clear();
        self.bytes.clear();
    }

    /// Tells `each` the port of every frame that failed since the last call.
    pub fn take_failures(&mut self, each: impl FnMut(u32)) {
        self.failures.drain(..).for_each(each);
    }
}

impl Transmit for TxBatch {
    #[inline]
    fn transmit(&mut self, port: u32, frame: &[u8], _at: Nanos) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame);
        self.frames.push(Frame {
            port,
            index: self.indices.get(port as usize).copied().unwrap_or(0),
            start,
            end: self.bytes.len(),
        });
        if self.frames.len() == TX_BATCH {
            self.flush();
        }
    }
}
