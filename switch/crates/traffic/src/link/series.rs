// SPDX-License-Identifier: Apache-2.0
//! A setting as a function of time: steps, a glide between them, or values that are drawn again and again.
//!
//! The value at an instant depends on the series, its seed and its beginning only, never on who asked before: the wire and
//! the simulator get the same, and a series takes no draw from any impairment.

use super::streams::{unit, unit_above_zero};
use super::{Nanos, Trace};
use crate::seeds::fnv1a;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::f64::consts::TAU;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// Standard deviations within which a normal draw stays.
pub(super) const NORMAL_SDS: f64 = 4.0;
const NEVER: Nanos = Nanos::MAX;

/// A checked series, shared by the directions that follow it. Values are in the unit of [`super::LinkOptions`].
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// As it was given.
    form: Value,
    shape: Shape,
    min: f64,
    max: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Steps {
        /// From when which value holds; rising. Before the first one its value holds too.
        steps: Box<[(Nanos, f64)]>,
        /// After so long it begins anew.
        repeat: Option<Nanos>,
        /// The value goes straight to the next one.
        glide: bool,
    },
    Drawn {
        draw: Draw,
        every: Nanos,
        /// How much of the first value's time is over at the beginning; None: drawn.
        phase: Option<Nanos>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Draw {
    Uniform(f64, f64),
    /// Mean and standard deviation.
    Normal(f64, f64),
    Choice(Box<[f64]>),
}

/// A piece of a series: from `from` on the value goes from `value` by `slope` a nanosecond, until `until`.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from: Nanos,
    until: Nanos,
    value: f64,
    slope: f64,
}

impl Series {
    /// Values below `min` or above `max` are drawn as these.
    pub(super) fn new(form: Value, shape: Shape, [min, max]: [f64; 2]) -> Series {
        let bounds = |values: &mut dyn Iterator<Item = f64>| {
            values.fold([f64::MAX, f64::MIN], |[a, b], x| [a.min(x), b.max(x)])
        };
        let [low, high] = match &shape {
            Shape::Steps { steps, .. } => bounds(&mut steps.iter().map(|step| step.1)),
            Shape::Drawn { draw, .. } => match draw {
                Draw::Uniform(low, high) => [*low, *high],
                Draw::Normal(mean, sd) => [mean - NORMAL_SDS * sd, mean + NORMAL_SDS * sd],
                Draw::Choice(values) => bounds(&mut values.iter().copied()),
            },
        };
        let (min, max) = match shape {
            Shape::Drawn { .. } => (low.max(min), high.min(max)),
            Shape::Steps { .. } => (low, high),
        };
        Series {
            form,
            shape,
            min,
            max,
        }
    }

    /// As it was given.
    pub fn form(&self) -> &Value {
        &self.form
    }

    /// The least value and the largest.
    pub fn bounds(&self) -> [f64; 2] {
        [self.min, self.max]
    }

    /// Over a round, or until the last step where there is no other; of what is drawn, the expected value.
    pub fn mean(&self) -> f64 {
        match &self.shape {
            Shape::Steps { steps, repeat, .. } => {
                let end = repeat.unwrap_or(steps[steps.len() - 1].0);
                let (mut t, mut sum) = (0, 0.0);
                while t < end {
                    let piece = self.piece(Seeds::default(), t);
                    let until = piece.until.min(end);
                    let (span, middle) = ((until - t) as f64, (t + until) as f64 / 2.0);
                    sum += span * (piece.value + piece.slope * (middle - piece.from as f64));
                    t = until;
                }
                if end == 0 {
                    steps[0].1
                } else {
                    sum / end as f64
                }
            }
            Shape::Drawn { draw, .. } => match draw {
                Draw::Uniform(low, high) => (low + high) / 2.0,
                Draw::Normal(mean, _) => *mean,
                Draw::Choice(values) => values.iter().sum::<f64>() / values.len() as f64,
            },
        }
    }

    /// What holds at `t` after the beginning.
    fn piece(&self, seeds: Seeds, t: Nanos) -> Piece {
        match &self.shape {
            Shape::Steps {
                steps,
                repeat,
                glide,
            } => {
                let round = repeat.map_or(0, |repeat| t - t % repeat);
                let next = steps.partition_point(|step| step.0 <= t - round);
                let here = steps[next.saturating_sub(1)];
                let end = repeat.map(|repeat| (repeat, steps[0].1));
                let until = steps.get(next).copied().or(end);
                let slope = match until {
                    Some((at, value)) if *glide && next > 0 => {
                        (value - here.1) / (at - here.0) as f64
                    }
                    _ => 0.0,
                };
                Piece {
                    from: round + if next > 0 { here.0 } else { 0 },
                    until: until.map_or(NEVER, |(at, _)| round + at),
                    value: here.1,
                    slope,
                }
            }
            Shape::Drawn { draw, every, phase } => {
                let random = |seed: u64, number: u64| {
                    let bytes = seed.to_le_bytes().into_iter().chain(number.to_le_bytes());
                    Xoshiro256PlusPlus::seed_from_u64(fnv1a(bytes))
                };
                let drawn =
                    || (unit(random(seeds.phase, *every).next_u64()) * *every as f64) as Nanos;
                let gone = phase.unwrap_or_else(drawn);
                let number = (t + gone) / every;
                let mut random = random(seeds.values, number);
                let (first, second) = (random.next_u64(), random.next_u64());
                let value = match draw {
                    Draw::Uniform(low, high) => low + (high - low) * unit(first),
                    Draw::Normal(mean, sd) => {
                        let radius = libm::sqrt(-2.0 * libm::log(unit_above_zero(first)));
                        mean + sd * radius * libm::cos(TAU * unit(second))
                    }
                    Draw::Choice(values) => values[(unit(first) * values.len() as f64) as usize],
                };
                Piece {
                    from: (number * every).saturating_sub(gone),
                    until: (number + 1) * every - gone,
                    value: value.clamp(self.min, self.max),
                    slope: 0.0,
                }
            }
        }
    }
}

/// Of what a series draws.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seeds {
    pub values: u64,
    /// Series with the same one and the same time between draws change at the same instants.
    pub phase: u64,
}

/// A series that has begun, with the piece of it that was asked for last.
#[derive(Debug, Clone)]
pub struct Playing {
    series: Arc<Series>,
    seeds: Seeds,
    begin: Nanos,
    /// In time since the beginning.
    piece: Piece,
}

/// A glide of a rate, which has to change at instants, changes so often.
const GLIDE_STEP: Nanos = 1_000_000;

impl Playing {
    /// The series, beginning at `begin`.
    pub fn new(series: Arc<Series>, seeds: Seeds, begin: Nanos) -> Playing {
        let piece = series.piece(seeds, 0);
        Playing {
            series,
            seeds,
            begin,
            piece,
        }
    }

    /// When it began.
    pub fn begin(&self) -> Nanos {
        self.begin
    }

    /// The value at `now`; before the beginning the first one.
    #[inline]
    pub fn at(&mut self, now: Nanos) -> f64 {
        let t = now.saturating_sub(self.begin);
        if !(self.piece.from..self.piece.until).contains(&t) {
            self.piece = self.series.piece(self.seeds, t);
        }
        self.piece.value + self.piece.slope * (t - self.piece.from) as f64
    }

    /// The value at `now`, and when the next one holds; a glide goes by steps of 1 ms.
    pub fn step(&mut self, now: Nanos) -> (f64, Nanos) {
        let value = self.at(now);
        let until = match self.piece.slope {
            0.0 => self.piece.until,
            _ => {
                let t = now.saturating_sub(self.begin);
                self.piece.until.min((t / GLIDE_STEP + 1) * GLIDE_STEP)
            }
        };
        (value, until.saturating_add(self.begin))
    }

    /// From when to `until` the value is what.
    pub fn values(&self, until: Nanos) -> Vec<(Nanos, f64)> {
        let (mut playing, mut now) = (self.clone(), self.begin);
        let mut found = Vec::new();
        while now < until {
            let (value, next) = playing.step(now);
            found.push((now, value));
            now = next;
        }
        found
    }
}

/// What the rate of a line follows.
#[derive(Debug, Clone, PartialEq)]
pub enum Course {
    Series(Arc<Series>),
    Trace(Arc<Trace>),
}

impl Course {
    /// bit/s: over a round.
    pub fn mean_bps(&self) -> u64 {
        let mean = match self {
            Course::Series(series) => series.mean(),
            Course::Trace(trace) => trace.mean_rate_bps(),
        };
        libm::round(mean).max(1.0) as u64
    }

    /// As it was given.
    pub fn form(&self) -> Value {
        match self {
            Course::Series(series) => series.form().clone(),
            Course::Trace(trace) => serde_json::json!({"trace": trace.source()}),
        }
    }
}

/// A rate in bit/s, 0 for unlimited, or what it follows. The latter is read from a form, and shown as its mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    Constant(u64),
    Follows(KeptCourse),
}

/// A course that is there until the process ends, each one once: so the options of a port are plain values.
#[derive(Clone, Copy, Debug)]
pub struct KeptCourse(&'static Course);

impl KeptCourse {
    /// Keeps a course.
    pub fn new(course: Course) -> KeptCourse {
        static KEPT: Mutex<Vec<&Course>> = Mutex::new(Vec::new());
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().find(|known| ***known == course);
        KeptCourse(known.copied().unwrap_or_else(|| {
            let new = Box::leak(Box::new(course));
            kept.push(new);
            new
        }))
    }
}

impl Deref for KeptCourse {
    type Target = Course;

    fn deref(&self) -> &Course {
        self.0
    }
}

impl PartialEq for KeptCourse {
    fn eq(&self, other: &KeptCourse) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for KeptCourse {}

impl Rate {
    /// The number.
    pub fn bps(self) -> u64 {
        match self {
            Rate::Constant(rate_bps) => rate_bps,
            Rate::Follows(course) => course.mean_bps(),
        }
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_u64(self.bps())
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Rate, D::Error> {
        match Value::deserialize(reader)? {
            form @ Value::Object(_) => {
                let course = super::settings::read_course(&form).map_err(D::Error::custom)?;
                Ok(Rate::Follows(KeptCourse::new(course)))
            }
            number => u64::deserialize(number)
                .map(Rate::Constant)
                .map_err(D::Error::custom),
        }
    }
}
