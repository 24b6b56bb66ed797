// SPDX-License-Identifier: Apache-2.0
//! Frames gathered for one system call: copied into one buffer, sent when it is full or when asked.

use crate::socket::{TxError, TxSocket, TX_BATCH};
use device::{Packet, Transmit};
use v1model::Nanos;

struct Frame {
    port: u32,
    index: i32,
    start: usize,
    end: usize,
}

/// Outgoing frames of all ports, in order.
pub struct TxBatch {
    /// None: there is no port.
    socket: Option<TxSocket>,
    /// Interface index of each port; 0 where there is none.
    indices: Vec<i32>,
    frames: Vec<Frame>,
    bytes: Vec<u8>,
    /// Of each port, the frames that failed since the last look and their bytes.
    failures: Vec<(u64, u64)>,
    any_failed: bool,
}

impl TxBatch {
    /// An empty batch for ports up to `port_max`.
    pub fn new(socket: Option<TxSocket>, port_max: u32) -> TxBatch {
        TxBatch {
            socket,
            indices: vec![0; port_max as usize + 1],
            frames: Vec::with_capacity(TX_BATCH),
            bytes: Vec::with_capacity(TX_BATCH * 2048),
            failures: vec![(0, 0); port_max as usize + 1],
            any_failed: false,
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
        let (failures, any_failed) = (&mut self.failures, &mut self.any_failed);
        let mut failed = |i: usize| {
            let frame: &Frame = &frames[i];
            if let Some((packets, bytes)) = failures.get_mut(frame.port as usize) {
                *packets += 1;
                *bytes += (frame.end - frame.start) as u64;
                *any_failed = true;
            }
        };
        if let Some(socket) = &mut self.socket {
            socket.send(
                frames.len(),
                |i| {
                    let frame = &frames[i];
                    (frame.index, &bytes[frame.start..frame.end])
                },
                |i, _: TxError| failed(i),
            );
        } else {
            (0..frames.len()).for_each(failed);
        }
        self.frames.clear();
        self.bytes.clear();
    }

    /// Tells `each` every port with frames that failed since the last call: how many, and their bytes.
    pub fn take_failures(&mut self, mut each: impl FnMut(u32, u64, u64)) {
        if !std::mem::take(&mut self.any_failed) {
            return;
        }
        for (port, failed) in (0u32..).zip(&mut self.failures) {
            let (packets, bytes) = std::mem::take(failed);
            if packets > 0 {
                each(port, packets, bytes);
            }
        }
    }

    /// Adds a copy of a frame that leaves at `port`; a full batch is sent at once.
    #[inline]
    pub fn push(&mut self, port: u32, frame: &[u8]) {
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

impl Transmit for TxBatch {
    #[inline]
    fn transmit(&mut self, port: u32, packet: &mut Packet, _at: Nanos) {
        self.push(port, packet.frame());
    }
}
