// SPDX-License-Identifier: Apache-2.0
//! Frames that came in one behind the other: each is parsed a few frames before it is handled, so that what its lookups
//! will read of large tables comes into the cache while those before it are handled. Nothing else differs: that is not done
//! where the parser knows of what packets change, or draws numbers (`Pipeline::warm_pays`).

use std::mem;

use v1model::{Effects, Nanos, Packet, Pipeline};

use crate::device::{Device, Transmit};
use crate::path::arrive;

/// Frames that are parsed ahead.
const FRAMES: usize = 3;

/// A parsed frame.
struct Parsed {
    arrival: Nanos,
    port: u32,
    packet: Box<Packet>,
}

/// The frames that are parsed and not handled yet, in order of arrival.
pub(crate) struct Ahead {
    /// Frame `n` is at `n % FRAMES`.
    row: [Option<Parsed>; FRAMES],
    /// What their parsers said.
    pub effects: [Effects; FRAMES],
    /// The number of the next frame to handle, and of the next to come.
    first: usize,
    end: usize,
}

impl Ahead {
    pub fn new() -> Ahead {
        Ahead {
            row: [const { None }; FRAMES],
            effects: [(); FRAMES].map(|()| Effects::new()),
            first: 0,
            end: 0,
        }
    }
}

impl Device {
    /// Frames are better parsed ahead, by `receive_ahead`: the program looks into large tables.
    #[inline]
    pub fn ahead_pays(&self) -> bool {
        self.pipeline.as_ref().is_some_and(Pipeline::warm_pays)
    }

    /// One of several frames that came in: `advance` to its arrival, then `receive`, are done for it when others came, or
    /// by [`Device::catch_up`], which is to be called before anything else is.
    pub fn receive_ahead(
        &mut self,
        arrival: Nanos,
        port: u32,
        frame: &[u8],
        tx: &mut dyn Transmit,
    ) {
        if self.ahead.end - self.ahead.first == FRAMES {
            self.handle_next(tx);
        }
        let (core, ahead) = (&mut self.core, &mut self.ahead);
        let Some(pipeline) = self.pipeline.as_mut() else {
            self.advance(arrival, tx);
            return self.receive(arrival, port, frame);
        };
        let mut packet = core.pool.get(pipeline);
        packet.load(frame);
        arrive(pipeline, &mut packet, port, arrival.max(core.now));
        let at = ahead.end % FRAMES;
        ahead.effects[at].clear();
        pipeline.parse(&mut packet, &mut ahead.effects[at]);
        ahead.row[at] = Some(Parsed {
            arrival,
            port,
            packet,
        });
        ahead.end += 1;
        // The places of the frame before are in the cache by now.
        if ahead.end - ahead.first > 1 {
            self.warm(self.ahead.end - 2);
        }
    }

    /// Handles the frames that are still to be handled.
    pub fn catch_up(&mut self, tx: &mut dyn Transmit) {
        if self.ahead.first < self.ahead.end {
            self.warm(self.ahead.end - 1);
        }
        while self.ahead.first < self.ahead.end {
            self.handle_next(tx);
        }
    }

    /// Has the entries of a frame come into the cache.
    fn warm(&mut self, number: usize) {
        let parsed = self.ahead.row[number % FRAMES].as_mut();
        if let (Some(pipeline), Some(parsed)) = (&mut self.pipeline, parsed) {
            pipeline.warm(&mut parsed.packet);
        }
    }

    fn handle_next(&mut self, tx: &mut dyn Transmit) {
        let at = self.ahead.first % FRAMES;
        self.ahead.first += 1;
        let Some(parsed) = self.ahead.row[at].take() else {
            return;
        };
        self.advance(parsed.arrival, tx);
        mem::swap(&mut self.core.effects, &mut self.ahead.effects[at]);
        match self.accept(parsed.arrival, parsed.port, parsed.packet.frame()) {
            Some((core, pipeline)) => core.receive_parsed(pipeline, parsed.packet),
            None => self.core.pool.put(parsed.packet),
        }
    }
}
