// SPDX-License-Identifier: Apache-2.0
//! Source ports of a flow whose transfers have a connection each: one after another, then from the first on again.

use std::ops::RangeInclusive;

const PORTS: RangeInclusive<u16> = 20_000..=65_535;
/// Between the first ports of two neighbours.
const STEP: usize = 100;

/// The ports of one flow.
#[derive(Clone, Debug)]
pub struct LaterPorts {
    next: u16,
}

impl LaterPorts {
    /// How many there are.
    pub const COUNT: usize = *PORTS.end() as usize - *PORTS.start() as usize + 1;

    /// `place` of the flow in the configuration.
    pub fn new(place: usize) -> LaterPorts {
        let next = PORTS.start() + (place * STEP % LaterPorts::COUNT) as u16;
        LaterPorts { next }
    }

    /// The next one; it may be in use.
    pub fn take(&mut self) -> u16 {
        let port = self.next;
        self.next = match port == *PORTS.end() {
            true => *PORTS.start(),
            false => port + 1,
        };
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_come_round() {
        let mut ports = LaterPorts::new(1);
        let first = ports.take();
        assert_eq!(first, 20_100);
        let others: Vec<u16> = (1..LaterPorts::COUNT).map(|_| ports.take()).collect();
        assert!(others.contains(&65_535) && !others.contains(&first));
        assert_eq!(ports.take(), first);
    }
}
