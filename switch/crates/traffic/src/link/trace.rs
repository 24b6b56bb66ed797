// SPDX-License-Identifier: Apache-2.0
//! A delivery trace in Mahimahi's format (Netravali et al., USENIX ATC 2015): the instants at which a link carries something.
//!
//! A text file, one number a line: milliseconds since the trace began, never going back. Each line is an opportunity
//! to carry [`OPPORTUNITY_BYTES`]; a trace that has ended begins anew at the time of its last line.

use super::impairments::UNTOUCHED_BYTES;
use super::Nanos;
use std::sync::Arc;

/// What one opportunity carries: bytes of the frame behind its Ethernet header, so that a full IP packet needs one.
pub const OPPORTUNITY_BYTES: u32 = 1_500;
/// Most opportunities of a trace.
pub const OPPORTUNITIES_MAX: usize = 4_000_000;

const NS_PER_MS: Nanos = 1_000_000;

/// A trace that is not one; one sentence with the place of the number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TraceError(String);

/// A checked trace, shared by the directions that follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    source: String,
    at_ms: Box<[u32]>,
}

impl Trace {
    /// A trace from its instants in ms; `source` is what it is called, such as the file's name.
    ///
    /// # Errors
    /// [`TraceError`]: none, too many, one that is not whole, going back, or all of them at 0.
    pub fn new(source: impl Into<String>, at_ms: &[f64]) -> Result<Trace, TraceError> {
        if at_ms.len() > OPPORTUNITIES_MAX {
            return Err(TraceError(format!(
                "{} opportunities are too many; allowed: 1 to {OPPORTUNITIES_MAX}",
                at_ms.len()
            )));
        }
        if let Some(i) = (1..at_ms.len()).find(|i| at_ms[*i] < at_ms[i - 1]) {
            return Err(TraceError(format!(
                "number {}: {} ms is before {} ms; the times of a trace never go back",
                i + 1,
                at_ms[i],
                at_ms[i - 1]
            )));
        }
        let is_time = |ms: &f64| (0.0..=f64::from(u32::MAX)).contains(ms) && ms.fract() == 0.0;
        if let Some(i) = at_ms.iter().position(|ms| !is_time(ms)) {
            return Err(TraceError(format!(
                "number {}: {} is not a time; allowed: 0 to {} ms, whole",
                i + 1,
                at_ms[i],
                u32::MAX
            )));
        }
        match at_ms.last() {
            None => Err(TraceError(
                "no opportunity in it; a trace has one time in ms a line".to_owned(),
            )),
            Some(0.0) => Err(TraceError(
                "its last time is 0 ms: it could not begin anew; allowed: 1 or more".to_owned(),
            )),
            Some(_) => Ok(Trace {
                source: source.into(),
                at_ms: at_ms.iter().map(|ms| *ms as u32).collect(),
            }),
        }
    }

    /// Where it came from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Opportunities until it begins anew.
    pub fn opportunities(&self) -> usize {
        self.at_ms.len()
    }

    /// Time until it begins anew.
    pub fn period_ns(&self) -> Nanos {
        Nanos::from(*self.at_ms.last().unwrap_or(&1)) * NS_PER_MS
    }

    /// What it carries on average, bit/s of what is behind the Ethernet headers.
    pub fn mean_rate_bps(&self) -> f64 {
        let bits = self.at_ms.len() as f64 * f64::from(OPPORTUNITY_BYTES) * 8.0;
        bits * 1e9 / self.period_ns() as f64
    }
}

/// A trace as it takes the place of the line. Opportunities that find nothing to carry are gone; small frames share
/// one, a long frame takes what it needs of the next ones and leaves with its last byte.
#[derive(Debug)]
pub(super) struct TraceLine {
    trace: Arc<Trace>,
    begin: Nanos,
    /// When the present pass of the trace began.
    pass_ns: Nanos,
    /// The opportunity in use or next.
    index: usize,
    /// What is left of it.
    left_bytes: u32,
    free_ns: Nanos,
}

impl TraceLine {
    /// The trace, beginning now.
    pub(super) fn new(trace: Arc<Trace>, now: Nanos) -> Self {
        Self {
            trace,
            begin: now,
            pass_ns: now,
            index: 0,
            left_bytes: OPPORTUNITY_BYTES,
            free_ns: 0,
        }
    }

    /// What it carries in each 100 ms until `until`: from when, and bit/s.
    pub(super) fn rates(&self, until: Nanos) -> Vec<(Nanos, f64)> {
        const BIN: Nanos = 100 * NS_PER_MS;
        let span = until.saturating_sub(self.begin);
        let mut bins = vec![0.0; span.div_ceil(BIN) as usize];
        for pass in (0..span).step_by(self.trace.period_ns() as usize) {
            for ms in &self.trace.at_ms {
                let bin = (pass + Nanos::from(*ms) * NS_PER_MS) / BIN;
                if let Some(rate) = bins.get_mut(bin as usize) {
                    *rate += f64::from(OPPORTUNITY_BYTES) * 8.0 * 1e9 / BIN as f64;
                }
            }
        }
        let bins = (self.begin..).step_by(BIN as usize).zip(bins);
        bins.collect()
    }

    /// When the frame that was put on last has left.
    pub(super) fn free_at(&self) -> Nanos {
        self.free_ns
    }

    /// Carries a frame from `start` on.
    pub(super) fn occupy(&mut self, start: Nanos, len_bytes: u32) {
        if self.opportunity_ns() < start {
            self.skip_to(start);
        }
        let mut bytes = len_bytes.saturating_sub(UNTOUCHED_BYTES as u32).max(1);
        loop {
            if self.left_bytes == 0 {
                self.next();
            }
            let carried = bytes.min(self.left_bytes);
            self.left_bytes -= carried;
            bytes -= carried;
            if bytes == 0 {
                break;
            }
        }
        self.free_ns = self.opportunity_ns();
    }

    fn opportunity_ns(&self) -> Nanos {
        self.pass_ns + Nanos::from(self.trace.at_ms[self.index]) * NS_PER_MS
    }

    fn next(&mut self) {
        self.index += 1;
        if self.index == self.trace.at_ms.len() {
            self.index = 0;
            self.pass_ns += self.trace.period_ns();
        }
        self.left_bytes = OPPORTUNITY_BYTES;
    }

    /// The first opportunity that is not before `t`, which lies behind the present one.
    fn skip_to(&mut self, t: Nanos) {
        let period = self.trace.period_ns();
        // A pass holds (pass_ns, pass_ns + period]: its last opportunity is at its end.
        let passes = (t - self.pass_ns - 1) / period;
        let first = if passes > 0 { 0 } else { self.index };
        self.pass_ns += passes * period;
        let ms = (t - self.pass_ns).div_ceil(NS_PER_MS);
        self.index = first + self.trace.at_ms[first..].partition_point(|at| Nanos::from(*at) < ms);
        self.left_bytes = OPPORTUNITY_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_checked_and_its_faults_told_with_their_place() {
        let trace = Trace::new("x", &[0.0, 5.0, 5.0, 20.0]).unwrap();
        assert_eq!((trace.opportunities(), trace.period_ns()), (4, 20_000_000));
        assert_eq!(trace.mean_rate_bps(), 2_400_000.0);
        let error = |at_ms: &[f64]| Trace::new("x", at_ms).unwrap_err().to_string();
        assert_eq!(
            error(&[]),
            "no opportunity in it; a trace has one time in ms a line"
        );
        assert_eq!(
            error(&[0.0, 0.0]),
            "its last time is 0 ms: it could not begin anew; allowed: 1 or more"
        );
        assert_eq!(
            error(&[3.0, 7.0, 5.0]),
            "number 3: 5 ms is before 7 ms; the times of a trace never go back"
        );
        assert_eq!(
            error(&[3.0, 4.5]),
            "number 2: 4.5 is not a time; allowed: 0 to 4294967295 ms, whole"
        );
    }

    #[test]
    fn frames_leave_at_opportunities_and_the_trace_begins_anew() {
        let trace = Arc::new(Trace::new("x", &[2.0, 2.0, 5.0, 10.0]).unwrap());
        let mut line = TraceLine::new(trace, 1_000_000);
        let mut leave = |start_ms: Nanos, len: u32| {
            line.occupy(start_ms * NS_PER_MS, len);
            line.free_at() / NS_PER_MS
        };
        // Passes begin at 1, 11, 21 … ms.
        assert_eq!(leave(1, 1514), 3, "the first opportunity");
        assert_eq!(leave(3, 1514), 3, "two at one instant");
        assert_eq!(leave(3, 714), 6);
        assert_eq!(leave(6, 714), 6, "small frames share one");
        assert_eq!(leave(6, 214), 11, "the rest of it was too small: 100 + 100");
        assert_eq!(
            leave(11, 14 + 1400 + 1500),
            13,
            "a long one takes the next as well"
        );
        assert_eq!(
            leave(100, 1514),
            101,
            "idle ones are gone; the end of a pass"
        );
        assert_eq!(leave(101, 1514), 103);
        assert_eq!(leave(103, 1514), 103);
        assert_eq!(leave(1_000_001, 1514), 1_000_001);
        assert_eq!(leave(1_000_002, 1514), 1_000_003);
    }
}
