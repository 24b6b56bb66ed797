// SPDX-License-Identifier: Apache-2.0
//! Frames that came in one behind the other: each is parsed a few frames before it is handled, so that what its lookups
//! will read of large tables comes into the cache while those before it are handled. Nothing else differs: that is not done
//! where the parser knows of what packets change, or draws numbers (`Pipeline::warm_pays`).

use std::mem;

use v1model::{Effects, Nanos, Packet, Pipeline};

use crate::device::Device;
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
    /// The number of the next frame to handle, of the next whose entries are to come into the cache, and of the next to come.
    first: usize,
    cold: usize,
    end: usize,
}

impl Ahead {
    pub fn new() -> Ahead {
        Ahead {
            row: [const { None }; FRAMES],
            effects: [(); FRAMES].map(|()| Effects::new()),
            first: 0,
            cold: 0,
            end: 0,
        }
    }
}

impl Device {
    /// Frames are better parsed ahead, by `parse_ahead`: the program looks into large tables.
    #[inline]
    pub fn ahead_pays(&self) -> bool {
        self.pipeline.as_ref().is_some_and(Pipeline::warm_pays)
    }

    /// Parses a frame that came in; [`Device::receive_next`] handles it, before anything but other frames reaches the device.
    /// False: there is no program, or no room until one is handled; nothing was done.
    pub fn parse_ahead(&mut self, arrival: Nanos, port: u32, frame: &[u8]) -> bool {
        let (core, ahead) = (&mut self.core, &mut self.ahead);
        let Some(pipeline) = self.pipeline.as_mut() else {
            return false;
        };
        if ahead.end - ahead.first == FRAMES {
            return false;
        }
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
        // The places of the frames before are in the cache by now.
        self.warm_ahead();
        self.ahead.end += 1;
        true
    }

    /// Has the entries of the parsed frames come into the cache; call it where no other one is parsed.
    pub fn warm_ahead(&mut self) {
        let ahead = &mut self.ahead;
        while ahead.cold < ahead.end {
            let parsed = ahead.row[ahead.cold % FRAMES].as_mut();
            if let (Some(pipeline), Some(parsed)) = (&mut self.pipeline, parsed) {
                pipeline.warm(&mut parsed.packet);
            }
            ahead.cold += 1;
        }
    }

    /// When the first frame arrived that is parsed and not handled.
    pub fn next_ahead(&self) -> Option<Nanos> {
        let parsed = self.ahead.row[self.ahead.first % FRAMES].as_ref();
        parsed.map(|parsed| parsed.arrival)
    }

    /// Handles that frame, as `receive` does; call `advance` to its arrival before.
    pub fn receive_next(&mut self) {
        let at = self.ahead.first % FRAMES;
        let Some(parsed) = self.ahead.row[at].take() else {
            return;
        };
        self.ahead.first += 1;
        mem::swap(&mut self.core.effects, &mut self.ahead.effects[at]);
        match self.accept(parsed.arrival, parsed.port, parsed.packet.frame()) {
            Some((core, pipeline)) => core.receive_parsed(pipeline, parsed.packet),
            None => self.core.pool.put(parsed.packet),
        }
    }
}
