// SPDX-License-Identifier: Apache-2.0
//! Two-rate three-colour meters (RFC 2698, colour-blind), in exact integer arithmetic on nanoseconds.

use crate::bits::{MeterConfig, Nanos};
use crate::error::ControlResult;
use crate::refuse;
use crate::schema::MeterUnit;

/// Colours as v1model numbers them.
pub const GREEN: u8 = 0;
pub const YELLOW: u8 = 1;
pub const RED: u8 = 2;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Says what is wrong with these rates, if anything (RFC 2698 §3: PIR is at least CIR).
pub fn check_config(config: &MeterConfig) -> ControlResult {
    let MeterConfig { cir, pir, .. } = config;
    if pir < cir {
        refuse!("peak rate {pir} is below the committed rate {cir}; it must be at least the committed rate");
    }
    Ok(())
}

/// One token bucket. Whole tokens arrive `rate` times a second on a grid from time 0 (RFC 2698 §3: "incremented by one
/// CIR times per second"), as in BMv2: a full bucket drops whole tokens, never the part of one that is under way.
#[derive(Clone, Copy)]
struct Bucket {
    tokens: u64,
    /// The part of the next token that has arrived, in 10⁻⁹ tokens.
    part: u64,
    rate: u64,
    burst: u64,
}

impl Bucket {
    const EMPTY: Bucket = Bucket {
        tokens: 0,
        part: 0,
        rate: 0,
        burst: 0,
    };

    fn full(rate: u64, burst: u64) -> Self {
        Bucket {
            tokens: burst,
            part: 0,
            rate,
            burst,
        }
    }

    #[inline]
    fn fill(&mut self, elapsed_ns: u64) {
        // (2^64 - 1)^2 + 10^9 < 2^128, and mostly the sum fits in 64 bits.
        let gained = u128::from(self.rate) * u128::from(elapsed_ns) + u128::from(self.part);
        let whole = match u64::try_from(gained) {
            Ok(gained) => {
                self.part = gained % NANOS_PER_SECOND;
                gained / NANOS_PER_SECOND
            }
            Err(_) => {
                let second = u128::from(NANOS_PER_SECOND);
                self.part = (gained % second) as u64;
                u64::try_from(gained / second).unwrap_or(u64::MAX)
            }
        };
        self.tokens = self.tokens.saturating_add(whole).min(self.burst);
    }
}

/// One meter: unconfigured (everything is green) or with two full buckets from the moment of its configuration.
#[derive(Clone, Copy)]
pub struct Meter {
    peak: Bucket,
    committed: Bucket,
    last_ns: Nanos,
    configured: bool,
}

impl Meter {
    pub const UNCONFIGURED: Meter = Meter {
        peak: Bucket::EMPTY,
        committed: Bucket::EMPTY,
        last_ns: 0,
        configured: false,
    };

    /// A meter that starts with full buckets (RFC 2698 §3).
    pub fn new(config: &MeterConfig) -> Self {
        Meter {
            peak: Bucket::full(config.pir, config.pburst),
            committed: Bucket::full(config.cir, config.cburst),
            last_ns: 0,
            configured: true,
        }
    }

    pub fn config(&self) -> Option<MeterConfig> {
        self.configured.then_some(MeterConfig {
            cir: self.committed.rate,
            cburst: self.committed.burst,
            pir: self.peak.rate,
            pburst: self.peak.burst,
        })
    }

    /// The colour of a packet that weighs `units`, at `now` in nanoseconds (RFC 2698 §4, colour-blind). Time never
    /// runs backwards: an earlier `now` counts as the latest seen.
    #[inline]
    pub fn color(&mut self, now: Nanos, units: u32) -> u8 {
        if !self.configured {
            return GREEN;
        }
        let elapsed = now.saturating_sub(self.last_ns);
        if elapsed > 0 {
            self.last_ns = now;
            self.peak.fill(elapsed);
            self.committed.fill(elapsed);
        }
        let units = u64::from(units);
        if self.peak.tokens < units {
            return RED;
        }
        self.peak.tokens -= units;
        if self.committed.tokens < units {
            return YELLOW;
        }
        self.committed.tokens -= units;
        GREEN
    }
}

/// An array of meters of one unit. Meters take memory from the first configured index on.
#[derive(Clone)]
pub struct Meters {
    unit: MeterUnit,
    len: usize,
    /// Grown to the highest index that was ever configured; what is beyond is unconfigured.
    cells: Vec<Meter>,
}

impl Meters {
    /// Memory that an array of `len` meters takes at most.
    pub fn bytes(len: u32) -> u64 {
        u64::from(len) * size_of::<Meter>() as u64
    }

    pub fn new(len: u32, unit: MeterUnit) -> Self {
        Meters {
            unit,
            len: len as usize,
            cells: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn unit(&self) -> MeterUnit {
        self.unit
    }

    /// The colour of a packet of `packet_len` bytes at `index`, or `None` out of range, where BMv2 leaves the
    /// destination untouched.
    #[inline]
    pub fn execute(&mut self, index: u64, now: Nanos, packet_len: u32) -> Option<u8> {
        if index >= self.len as u64 {
            return None;
        }
        match self.cells.get_mut(index as usize) {
            Some(meter) => {
                let units = match self.unit {
                    MeterUnit::Packets => 1,
                    MeterUnit::Bytes => packet_len,
                };
                Some(meter.color(now, units))
            }
            None => Some(GREEN),
        }
    }

    /// The meter at `index` as it is; `None` where none was ever configured.
    pub(crate) fn cell(&self, index: u64) -> Option<Meter> {
        self.cells.get(index as usize).copied()
    }

    /// Puts back what `cell` gave.
    pub(crate) fn put(&mut self, index: u64, cell: Meter) {
        if let Some(place) = self.cells.get_mut(index as usize) {
            *place = cell;
        }
    }

    /// The configuration at `index`: `None` out of range, `Some(None)` if it has none.
    pub fn get(&self, index: u64) -> Option<Option<MeterConfig>> {
        if index >= self.len as u64 {
            return None;
        }
        Some(self.cells.get(index as usize).and_then(Meter::config))
    }

    /// Configures the meter at `index` with full buckets, or makes it unconfigured; false out of range. The caller
    /// has checked the configuration.
    pub fn set(&mut self, index: u64, config: Option<&MeterConfig>) -> bool {
        if index >= self.len as u64 {
            return false;
        }
        let index = index as usize;
        match config {
            Some(config) => {
                if index >= self.cells.len() {
                    self.cells.resize(index + 1, Meter::UNCONFIGURED);
                }
                self.cells[index] = Meter::new(config);
            }
            None => {
                if let Some(cell) = self.cells.get_mut(index) {
                    *cell = Meter::UNCONFIGURED;
                }
            }
        }
        true
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
