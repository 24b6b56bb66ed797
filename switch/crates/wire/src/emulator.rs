// SPDX-License-Identifier: Apache-2.0
//! All links of a topology and the frames on them: no I/O, the clock is an argument.
//!
//! Port `2i` is end a of link `i`, port `2i + 1` its end b. What comes in at port `p` goes on direction `p`
//! (`2i`: a_to_b, `2i + 1`: b_to_a) and out at port `p ^ 1`.

use crate::config::LinkConfig;
use crate::lateness::Lateness;
use crate::pool::{FrameId, FramePool};
use traffic::calendar::{Calendar, EntityId, Moves};
use traffic::link::{Link, LinkOptionError, LinkOptions, LinkStreams, Refused, SpikeBlocks};
use traffic::Nanos;

/// Names of the directions, as in `links.json` and on the control socket.
pub const DIRECTIONS: [&str; 2] = ["a_to_b", "b_to_a"];

/// Frames that a direction can hold before its lists grow.
const FRAMES_AT_START: usize = 1024;

/// A frame to be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Where it leaves.
    pub port: usize,
    pub frame: FrameId,
}

/// One direction as the emulator keeps it.
#[derive(Debug)]
pub struct DirectionState {
    pub link: Link<FrameId>,
    /// Frames that found no free slot, or were longer than one.
    pub dropped_no_memory: u64,
    /// Frames that were due and could not be sent.
    pub dropped_unsent: u64,
    pub lateness: Lateness,
}

/// The links of a topology.
#[derive(Debug)]
pub struct Emulator {
    names: Vec<String>,
    directions: Vec<DirectionState>,
    /// When each direction has something to do next; its number is its entity.
    calendar: Calendar,
    pool: FramePool,
    /// Directions that `collect` has looked at.
    #[cfg(test)]
    looks: u64,
}

impl Emulator {
    /// Links from a checked configuration; all chance comes from `seed` and the links' names.
    ///
    /// # Errors
    /// An option out of range, which a checked configuration does not have.
    pub fn new(links: &[LinkConfig], seed: u64, pool: FramePool) -> Result<Self, LinkOptionError> {
        let mut directions = Vec::with_capacity(links.len() * 2);
        let mut calendar = Calendar::default();
        for config in links {
            for (options, direction) in config.options.iter().zip(DIRECTIONS) {
                let streams = LinkStreams::new(seed, &format!("{}/{direction}", config.name));
                calendar.add_entity(Moves::Often);
                directions.push(DirectionState {
                    link: Link::new(options.clone(), streams, FRAMES_AT_START)?,
                    dropped_no_memory: 0,
                    dropped_unsent: 0,
                    lateness: Lateness::default(),
                });
            }
        }
        Ok(Self {
            names: links.iter().map(|link| link.name.clone()).collect(),
            directions,
            calendar,
            pool,
            #[cfg(test)]
            looks: 0,
        })
    }

    /// The links begin at `now`: so do their traces.
    pub fn begin(&mut self, now: Nanos) {
        for direction in &mut self.directions {
            direction.link.begin(now);
        }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn direction(&self, direction: usize) -> &DirectionState {
        &self.directions[direction]
    }

    pub fn pool(&self) -> &FramePool {
        &self.pool
    }

    fn refresh(&mut self, direction: usize) {
        let next = self.directions[direction].link.next_event();
        self.calendar.set(direction as EntityId, next);
    }

    /// A frame has come in at `port` at the instant `arrival`.
    pub fn offer(&mut self, port: usize, arrival: Nanos, frame: &[u8]) {
        let direction = &mut self.directions[port];
        let Some(id) = self.pool.store(frame) else {
            direction.dropped_no_memory += 1;
            return;
        };
        let bytes = self.pool.frame_mut(id);
        if let Err(Refused(id)) = direction.link.transmit(arrival, bytes, id) {
            self.pool.release(id);
        }
        self.refresh(port);
    }

    /// Fills `out` (up to its capacity) with the frames that are due by `now`, the direction that is due first first;
    /// returns whether there may be more. The caller gives each back by [`Emulator::sent`] or [`Emulator::unsent`].
    pub fn collect(&mut self, now: Nanos, out: &mut Vec<Departure>) -> bool {
        while let Some((_, entity)) = self.calendar.peek().filter(|(at, _)| *at <= now) {
            if out.len() == out.capacity() {
                return true;
            }
            #[cfg(test)]
            {
                self.looks += 1;
            }
            let direction = entity as usize;
            let state = &mut self.directions[direction];
            while out.len() < out.capacity() {
                let Some(exit) = state.link.poll(now) else {
                    break;
                };
                if exit.dropped.is_some() {
                    self.pool.release(exit.item);
                    continue;
                }
                state.lateness.add(now - exit.at);
                out.push(Departure {
                    port: direction ^ 1,
                    frame: exit.item,
                });
            }
            // What is still due comes behind the others of that instant: no direction can keep them waiting.
            let next = state.link.next_event();
            self.calendar.set_after_action(entity, next);
        }
        false
    }

    /// The bytes of a collected frame.
    pub fn frame(&self, departure: Departure) -> &[u8] {
        self.pool.frame(departure.frame)
    }

    /// Takes the memory of a collected frame back.
    pub fn sent(&mut self, departure: Departure) {
        self.pool.release(departure.frame);
    }

    /// Counts a collected frame that could not be sent; [`Emulator::sent`] still has to be called.
    pub fn unsent(&mut self, departure: Departure) {
        self.directions[departure.port ^ 1].dropped_unsent += 1;
    }

    /// The next instant at which something is due.
    pub fn next_event(&self) -> Option<Nanos> {
        self.calendar.peek().map(|(at, _)| at)
    }

    /// Changes settings of a direction from `now` on.
    ///
    /// # Errors
    /// The first option that is out of range; then nothing has changed.
    pub fn set(
        &mut self,
        now: Nanos,
        direction: usize,
        options: LinkOptions,
    ) -> Result<(), LinkOptionError> {
        self.directions[direction].link.set(now, options)?;
        self.refresh(direction);
        Ok(())
    }

    /// Holds a direction's deliveries for `duration`, or blocks its line.
    pub fn spike(&mut self, now: Nanos, direction: usize, duration: Nanos, blocks: SpikeBlocks) {
        self.directions[direction].link.spike(now, duration, blocks);
        self.refresh(direction);
    }

    /// Drops all that enters a direction for `duration`.
    pub fn outage(&mut self, now: Nanos, direction: usize, duration: Nanos) {
        self.directions[direction].link.outage(now, duration);
        self.refresh(direction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_link_does_not_cost_a_look_at_the_others() {
        const LINKS: usize = 1000;
        const FRAMES: u64 = 100;
        let link = |i| LinkConfig {
            name: format!("l{i}"),
            interfaces: [format!("w{i}a"), format!("w{i}b")],
            options: [(); 2].map(|()| LinkOptions::default()),
        };
        let links: Vec<LinkConfig> = (0..LINKS).map(link).collect();
        let mut emulator = Emulator::new(&links, 1, FramePool::new(8, 64)).unwrap();
        let mut out = Vec::with_capacity(8);
        for frame in 0..FRAMES {
            let now = frame * 1_000;
            emulator.offer(2 * (LINKS / 2), now, &[0; 60]);
            while emulator.next_event().is_some_and(|at| at <= now) {
                emulator.collect(now, &mut out);
            }
            out.drain(..).for_each(|departure| emulator.sent(departure));
        }
        assert_eq!(emulator.looks, FRAMES);
    }
}
