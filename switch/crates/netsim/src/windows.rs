// SPDX-License-Identifier: Apache-2.0
//! Time in a network of many regions (module `partition`): they act at the same time, on as many threads as there are.
//!
//! ```text
//!  from the next event on, for the least delay between regions     ┐ all regions, side by side
//!  frames that have left a region go to the next one               ┘ and then all stand
//! ```
//!
//! What a region sends in such a window arrives behind it, so no region misses anything. Changes, samples and the caller find
//! all regions at one instant. The windows follow from the network alone: the same bytes with any number of threads.

use crate::region::exchange;
use crate::simulation::Simulation;
use device::Nanos;
use rayon::prelude::*;

/// With fewer events in the window before, other threads would cost more than they do.
const EVENTS_MIN: u64 = 256;

impl Simulation {
    /// Lets everything happen that is due until `t`; true: it ended before, as a switch has a message or time does not go on.
    pub(crate) fn run_windows(&mut self, t: Nanos, stop_on_messages: bool) -> bool {
        match self.pool.clone() {
            Some(pool) => pool.install(|| self.windows(t, stop_on_messages)),
            None => self.windows(t, stop_on_messages),
        }
    }

    fn windows(&mut self, t: Nanos, stop_on_messages: bool) -> bool {
        let mut lookahead = self.lookahead();
        while let Some(next) = self.next_in_any(lookahead).filter(|next| *next <= t) {
            let global = self.next_global();
            if let Some((at, entity)) = global.filter(|(at, _)| *at <= next) {
                self.settle(at.max(self.now));
                self.act(entity);
                lookahead = self.lookahead();
                continue;
            }
            // Without any delay, which only a caller can set: instant by instant, again as long as anything happens at it.
            let last = next.saturating_add(lookahead.saturating_sub(1)).min(t);
            let last = global.map_or(last, |(at, _)| last.min(at - 1));
            let busy = self.regions.iter().map(|region| region.busy).sum::<u64>();
            if self.pool.is_some() && busy >= EVENTS_MIN {
                let regions = self.regions.par_iter_mut().with_max_len(1);
                regions.for_each(|region| region.window(next, last));
            } else {
                let regions = self.regions.iter_mut();
                regions.for_each(|region| region.window(next, last));
            }
            self.now = last;
            exchange(&mut self.regions);
            // What is on its way between regions was sent in this window.
            self.captures
                .iter()
                .for_each(|capture| capture.settle(next));
            if self.endless().is_some() || stop_on_messages && self.has_messages() {
                self.settle(last);
                return true;
            }
        }
        self.settle(t.max(self.now));
        false
    }

    /// All regions stand at `now`, and what was sent between them is on its wire.
    fn settle(&mut self, now: Nanos) {
        self.now = now;
        for region in &mut self.regions {
            region.take_in();
            region.now = now;
        }
    }

    /// The least time from a frame's way out of a region until it arrives in another.
    fn lookahead(&self) -> Nanos {
        let wires = self.borders.iter();
        let wires = wires.map(|wire| &self.regions[wire.region].fabric.wires[wire.index]);
        let delays = wires.map(|wire| wire.link.least_delay());
        delays.min().unwrap_or(Nanos::MAX)
    }

    /// Before this instant nothing happens; what was sent arrives `lookahead` later at the earliest.
    fn next_in_any(&self, lookahead: Nanos) -> Option<Nanos> {
        let next = self.regions.iter().filter_map(|region| {
            let first = region.inbox.first();
            let first = first.map(|at| at.saturating_add(lookahead));
            let due = region.fabric.calendar.peek().map(|(at, _)| at);
            first.into_iter().chain(due).min()
        });
        next.min().map(|at| at.max(self.now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use serde_json::json;
    use std::panic::{catch_unwind, AssertUnwindSafe};

    #[test]
    fn a_panic_beside_reaches_the_caller() {
        let host = |n: u32| json!({"name": format!("h{n}"), "ip": format!("10.0.0.{n}"), "mac": "08:00:00:00:00:01", "gateway_mac": "08:00:00:00:00:02"});
        let switch = |n: u32| json!({"name": format!("s{n}"), "program": null, "ports": [{"port": 1}, {"port": 2}]});
        let plug = |n: u32, port: u32| json!({"node": format!("s{n}"), "port": port});
        let delay = json!({"delay_ns": 1_000_000});
        let mut config = Config::from_json(&json!({
            "threads": 2, "switches": [switch(1), switch(2)], "hosts": [host(1), host(2)],
            "links": [{"name": "a1", "a": {"node": "h1"}, "b": plug(1, 1)}, {"name": "a2", "a": {"node": "h2"}, "b": plug(2, 1)},
                      {"name": "between", "a": plug(1, 2), "b": plug(2, 2), "a_to_b": delay, "b_to_a": delay}],
            "flows": [{"name": "f", "from": "h2", "to": "h1", "app": {"kind": "greedy"}}]
        }).to_string()).unwrap();
        config.regions = Some(2);
        let mut sim = Simulation::new(&config).unwrap();
        assert_eq!(sim.borders.len(), 2);
        sim.regions[1].hosts.hosts.clear();
        sim.regions[0].busy = EVENTS_MIN;
        let panic = catch_unwind(AssertUnwindSafe(|| sim.run_until(1_000_000_000)));
        let words = panic.unwrap_err().downcast::<String>().unwrap();
        assert!(words.contains("out of bounds"), "{words}");
    }
}
