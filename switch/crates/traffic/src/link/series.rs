// SPDX-License-Identifier: Apache-2.0
//! A setting as a function of time: steps, a glide between them, values that are drawn again and again, or a delivery trace.
//!
//! The value at an instant depends on the series, its seeds and its beginning only, never on who asked before: the wire and
//! the simulator get the same, and a series takes no draw from any impairment.

use super::settings::Range;
use super::streams::{unit, unit_above_zero};
use super::trace::Trace;
use super::{files, Nanos};
use crate::derived_seed;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{json, Value};
use std::f64::consts::TAU;
use std::sync::Arc;

/// Standard deviations within which a normal draw stays.
const NORMAL_SDS: f64 = 4.0;
/// A glide of a rate, which has to change at instants, changes so often.
const GLIDE_STEP: Nanos = 1_000_000;

/// What a key holds that may be a list or a file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "must be a file or a list")]
enum Table {
    File(String),
    Numbers(Vec<f64>),
    Pairs(Vec<[f64; 2]>),
}

/// What may be written. Times are in s, values in ms (delay, jitter), bit/s (rate) or shares, whatever the unit of the setting's key.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Form {
    /// Pairs of a time and the value from then on.
    steps: Option<Table>,
    /// One after the other, each for `every_s`, over and over.
    values: Option<Table>,
    /// Drawn from these two on, each for `every_s`: least and largest, mean and standard deviation, or one of a list.
    uniform: Option<[f64; 2]>,
    normal: Option<[f64; 2]>,
    choice: Option<Vec<f64>>,
    /// Mahimahi's format.
    trace: Option<Table>,
    every_s: Option<f64>,
    repeat_s: Option<f64>,
    /// How much of the period is over at the beginning; `random`: drawn, once for all series of a run that have the period.
    phase: Option<Value>,
    /// The value goes straight to the next one.
    glide: bool,
    /// What the values are multiplied by.
    scale: Option<f64>,
}

const NO_VALUE: &str = "has no value; allowed: one or more";
const KINDS: [&str; 6] = ["steps", "values", "uniform", "normal", "choice", "trace"];

/// What a series is read for.
#[derive(Clone, Copy)]
pub(super) struct Quantity {
    /// Of its values.
    pub range: Range,
    /// From a value to that of the options.
    pub factor: f64,
    pub is_rate: bool,
}

/// A checked series, shared by the directions that follow it. Values are in the unit of [`super::LinkOptions`].
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// As it was given.
    form: Value,
    shape: Shape,
    /// After so long it begins anew, or draws anew; 0: never.
    period: Nanos,
    phase: Phase,
    glide: bool,
    /// The least value, the largest, and the mean over a period, or until the last step; of draws the expected value.
    pub least: f64,
    pub largest: f64,
    pub mean: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// From when which value holds; rising. Before the first one its value holds too.
    Steps(Box<[(Nanos, f64)]>),
    Uniform,
    /// The standard deviation.
    Normal(f64),
    Choice(Box<[f64]>),
    Trace(Arc<Trace>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    At(Nanos),
    Random,
}

/// A piece of a series: from `from` on the value goes from `value` by `slope` a nanosecond, until `until`.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from: Nanos,
    until: Nanos,
    value: f64,
    slope: f64,
}

/// A time in s.
fn time(key: &str, s: Option<f64>) -> Result<Option<Nanos>, String> {
    let range = Range::new(1e-3, 1e6, " s", false);
    let checked = s.map(|s| range.check(s, s)).transpose();
    let s = checked.map_err(|e| format!("{key}: {e}"))?;
    Ok(s.map(|s| libm::round(s * 1e9) as Nanos))
}

/// Of a table with so many columns, row by row.
fn numbers(table: Option<Table>, columns: usize) -> Result<Arc<[f64]>, String> {
    match (table.ok_or(NO_VALUE)?, columns) {
        (Table::File(path), _) if !path.is_empty() => files::numbers(&path, columns),
        (Table::Numbers(numbers), 1) => Ok(numbers.into()),
        (Table::Pairs(pairs), 2) => Ok(pairs.into_iter().flatten().collect()),
        (_, columns) => Err(format!(
            "is not {}; allowed: a file, or a list of them",
            ["numbers", "pairs of a time in s and a value"][usize::from(columns > 1)]
        )),
    }
}

/// Steps of pairs of a time in s and a value; with `each` of values, each for so long. `value` checks one.
fn steps(
    numbers: &[f64],
    each: Option<Nanos>,
    period: Nanos,
    value: impl Fn(f64) -> Result<f64, String>,
) -> Result<Shape, String> {
    let columns = if each.is_some() { 1 } else { 2 };
    let mut steps: Vec<(Nanos, f64)> = Vec::with_capacity(numbers.len() / columns);
    for (number, row) in numbers.chunks(columns).enumerate() {
        let s = each.map_or(row[0], |each| (number as u64 * each) as f64 / 1e9);
        let at = libm::round(s * 1e9) as Nanos;
        let wrong = |e: String| format!("number {}: {e}", number + 1);
        if !(0.0..=1e9).contains(&s) || steps.last().is_some_and(|last| last.0 >= at) {
            return Err(wrong(format!(
                "{s} s is not later than the one before; allowed: 0 to 1e9, rising"
            )));
        }
        steps.push((at, value(row[columns - 1]).map_err(wrong)?));
    }
    let last = steps.last().ok_or(NO_VALUE)?.0;
    if period > 0 && last >= period {
        let s = last as f64 / 1e9;
        return Err(format!("repeat_s is not behind the last step ({s} s)"));
    }
    Ok(Shape::Steps(steps.into()))
}

/// What is drawn from a list, and its least and largest value and its mean. `value` checks one.
fn drawn(
    kind: &str,
    mut list: Vec<f64>,
    scale: f64,
    of: Quantity,
    value: impl Fn(f64) -> Result<f64, String>,
) -> Result<(Shape, [f64; 3]), String> {
    if list.is_empty() {
        return Err(NO_VALUE.to_owned());
    }
    let sd = match kind {
        "normal" => list.swap_remove(1) * scale * of.factor,
        _ => 0.0,
    };
    if sd < 0.0 || kind == "uniform" && list[0] > list[1] {
        return Err(
            "is not in order; allowed: least and largest value, or mean and standard deviation"
                .to_owned(),
        );
    }
    let list = list.into_iter().map(value).collect::<Result<Vec<_>, _>>()?;
    let mean = list.iter().sum::<f64>() / list.len() as f64;
    let least = list.iter().fold(f64::MAX, |a, b| a.min(*b)) - NORMAL_SDS * sd;
    let largest = list.iter().fold(f64::MIN, |a, b| a.max(*b)) + NORMAL_SDS * sd;
    let [low, high] = [of.range.min, of.range.max].map(|bound| bound * of.factor);
    Ok(match kind {
        "uniform" => (Shape::Uniform, [least, largest, mean]),
        "normal" => (Shape::Normal(sd), [least.max(low), largest.min(high), mean]),
        _ => (Shape::Choice(list.into()), [least, largest, mean]),
    })
}

/// How much of a period is over at the beginning.
fn phase(given: Option<&Value>, is_drawn: bool, period: Nanos) -> Result<Phase, String> {
    let period_s = period as f64 / 1e9;
    match given.map(|phase| (phase.as_f64(), phase.as_str())) {
        None if !is_drawn => Ok(Phase::At(0)),
        None => Ok(Phase::Random),
        Some((_, Some("random"))) if period > 0 => Ok(Phase::Random),
        Some((Some(s), _)) if (0.0..period_s).contains(&s) => {
            Ok(Phase::At(libm::round(s * 1e9) as Nanos))
        }
        _ if period == 0 => Err("phase needs repeat_s".to_owned()),
        _ => Err(format!(
            "phase is not known; allowed: \"random\", or a time in s below {period_s}"
        )),
    }
}

impl Series {
    /// # Errors
    /// What is wrong, and what is allowed.
    pub(super) fn read(given: &Value, of: Quantity) -> Result<Series, String> {
        let object = given.as_object().ok_or("is not an object")?;
        // One by one, since the error of a whole object does not say which value is wrong.
        for (key, value) in object {
            Form::deserialize(json!({key: value})).map_err(|e| format!("{key}: {e}"))?;
        }
        let mut kinds = KINDS.into_iter().filter(|kind| object.contains_key(*kind));
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return Err(format!("is to have one of {}", KINDS.join(", ")));
        };
        let beside: &[&str] = match kind {
            "trace" => &[],
            "steps" => &["repeat_s", "phase", "glide", "scale"],
            _ => &["every_s", "phase", "glide", "scale"],
        };
        if let Some(key) = object
            .keys()
            .find(|key| *key != kind && !beside.contains(&key.as_str()))
        {
            let allowed = match beside {
                [] => "nothing".to_owned(),
                _ => beside.join(", "),
            };
            return Err(format!(
                "{key} stands beside {kind}; allowed beside it: {allowed}"
            ));
        }
        let form = Form::deserialize(given).map_err(|e| e.to_string())?;
        Self::checked(given.clone(), kind, form, of).map_err(|e| format!("{kind}: {e}"))
    }

    fn checked(given: Value, kind: &str, form: Form, of: Quantity) -> Result<Series, String> {
        let scale = form.scale.unwrap_or(1.0);
        let value = |x: f64| {
            let checked = of.range.check(x * scale, x * scale);
            checked.map(|x| x * of.factor)
        };
        let every = time("every_s", form.every_s)?;
        let mut period = time("repeat_s", form.repeat_s)?.or(every).unwrap_or(0);
        if period == 0 && kind != "steps" && kind != "trace" {
            return Err("every_s is missing".to_owned());
        }
        let [mut least, mut largest, mut mean] = [0.0; 3];
        let mut is_drawn = false;
        let shape = match kind {
            "trace" => {
                if !of.is_rate {
                    return Err("only a rate has a trace".to_owned());
                }
                let source = given["trace"].as_str().unwrap_or("times").to_owned();
                let numbers = numbers(form.trace, 1)?;
                let trace = Trace::new(source, &numbers).map_err(|e| e.to_string())?;
                mean = trace.mean_rate_bps();
                Shape::Trace(Arc::new(trace))
            }
            "steps" => steps(&numbers(form.steps, 2)?, None, period, value)?,
            "values" => {
                let numbers = numbers(form.values, 1)?;
                let each = period;
                period = period.saturating_mul(numbers.len() as u64);
                steps(&numbers, Some(each), period, value)?
            }
            _ => {
                is_drawn = true;
                let list = form.uniform.or(form.normal).map(Vec::from);
                let list = list.or(form.choice).unwrap_or_default();
                let (shape, found) = drawn(kind, list, scale, of, value)?;
                [least, largest, mean] = found;
                shape
            }
        };
        let mut series = Series {
            phase: phase(form.phase.as_ref(), is_drawn, period)?,
            form: given,
            shape,
            period,
            glide: form.glide,
            least,
            largest,
            mean,
        };
        series.measure_steps();
        Ok(series)
    }

    fn measure_steps(&mut self) {
        let Shape::Steps(steps) = &self.shape else {
            return;
        };
        let values = || steps.iter().map(|step| step.1);
        let ends = (
            values().fold(f64::MAX, f64::min),
            values().fold(f64::MIN, f64::max),
        );
        let end = self.period.max(steps[steps.len() - 1].0).max(1);
        // The first value holds from the beginning.
        let begins = (1..steps.len()).map(|number| steps[number].0);
        let begins = std::iter::once(0)
            .chain(steps.first().map(|step| step.0).filter(|at| *at > 0))
            .chain(begins);
        let mean = begins.map(|at| self.piece(0, at)).fold(0.0, |sum, piece| {
            let span = (piece.until.min(end) - piece.from) as f64;
            sum + span * (piece.value + piece.slope * span / 2.0)
        });
        (self.least, self.largest) = ends;
        self.mean = mean / end as f64;
    }

    /// Whether it is a delivery trace.
    pub fn is_trace(&self) -> bool {
        matches!(self.shape, Shape::Trace(_))
    }

    /// As it was given.
    pub fn form(&self) -> &Value {
        &self.form
    }

    /// What holds at `t` of time that begins with a period.
    fn piece(&self, seed: u64, t: Nanos) -> Piece {
        let round = t.checked_div(self.period).unwrap_or(0);
        let begin = round * self.period;
        let draw = |round: u64| {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(round));
            let (first, second) = (random.next_u64(), random.next_u64());
            let drawn = match &self.shape {
                Shape::Normal(sd) => {
                    let radius = libm::sqrt(-2.0 * libm::log(unit_above_zero(first)));
                    self.mean + sd * radius * libm::cos(TAU * unit(second))
                }
                Shape::Choice(values) => values[(unit(first) * values.len() as f64) as usize],
                _ => self.least + (self.largest - self.least) * unit(first),
            };
            drawn.clamp(self.least, self.largest)
        };
        let (from, until, value, next) = match &self.shape {
            Shape::Steps(steps) => {
                let behind = steps.partition_point(|step| step.0 <= t - begin);
                let (from, value) = steps[behind.saturating_sub(1)];
                let end = match self.period {
                    0 => (Nanos::MAX, value),
                    period => (period, steps[0].1),
                };
                let (until, next) = steps.get(behind).copied().unwrap_or(end);
                (from.min(t - begin), until, value, next)
            }
            _ => (
                0,
                self.period,
                draw(round),
                draw(round + u64::from(self.glide)),
            ),
        };
        let slope = if self.glide {
            (next - value) / (until - from) as f64
        } else {
            0.0
        };
        let until = begin.saturating_add(until);
        Piece {
            from: begin + from,
            until,
            value,
            slope,
        }
    }
}

/// Of what a series draws.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seeds {
    values: u64,
    phase: u64,
}

impl Seeds {
    /// The values of `name`, and the phase of all series of a run.
    pub fn new(run: u64, name: &str) -> Seeds {
        Seeds {
            values: derived_seed(run, name),
            phase: derived_seed(run, "phase"),
        }
    }
}

/// A series that has begun, with the piece of it that was asked for last.
#[derive(Debug, Clone)]
pub struct Playing {
    series: Arc<Series>,
    seed: u64,
    begin: Nanos,
    /// How much of a period was over then.
    gone: Nanos,
    piece: Piece,
}

impl Playing {
    /// The series from `now` on. One with a random phase is as if it had begun with the run, at `run`.
    pub fn new(series: Arc<Series>, seeds: Seeds, run: Nanos, now: Nanos) -> Playing {
        let (begin, gone) = match series.phase {
            Phase::At(gone) => (now, gone),
            Phase::Random => {
                let seed = seeds.phase.wrapping_add(series.period);
                let drawn = Xoshiro256PlusPlus::seed_from_u64(seed).next_u64();
                (run, (unit(drawn) * series.period as f64) as Nanos)
            }
        };
        let piece = series.piece(seeds.values, gone);
        Playing {
            series,
            seed: seeds.values,
            begin,
            gone,
            piece,
        }
    }

    /// The trace that the series is.
    pub(super) fn trace(&self) -> Option<&Arc<Trace>> {
        match &self.series.shape {
            Shape::Trace(trace) => Some(trace),
            _ => None,
        }
    }

    /// The value at `now`; before the beginning the first one.
    #[inline]
    pub fn at(&mut self, now: Nanos) -> f64 {
        let t = now.saturating_sub(self.begin) + self.gone;
        if !(self.piece.from..self.piece.until).contains(&t) {
            self.piece = self.series.piece(self.seed, t);
        }
        self.piece.value + self.piece.slope * (t - self.piece.from) as f64
    }

    /// The value at `now`, and when the next one holds; a glide goes by steps of 1 ms.
    pub fn step(&mut self, now: Nanos) -> (f64, Nanos) {
        self.at(now);
        let t = now.saturating_sub(self.begin) + self.gone;
        let Piece {
            from,
            until,
            value,
            slope,
        } = self.piece;
        let (since, until) = match slope {
            0.0 => (from, until),
            _ => (
                (t - t % GLIDE_STEP).max(from),
                until.min(t - t % GLIDE_STEP + GLIDE_STEP),
            ),
        };
        let until = until.saturating_add(self.begin);
        (value + slope * (since - from) as f64, until - self.gone)
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

/// A rate in bit/s, 0 for unlimited, or what it follows. It is shown as its mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    Constant(u64),
    Follows(Arc<Series>),
}

impl Rate {
    /// The number, or the mean.
    pub fn bps(&self) -> u64 {
        match self {
            Rate::Constant(rate_bps) => *rate_bps,
            Rate::Follows(series) => libm::round(series.mean).max(1.0) as u64,
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
            form @ Value::Object(_) => super::settings::read_rate(&form)
                .map(Rate::Follows)
                .map_err(D::Error::custom),
            number => u64::deserialize(number)
                .map(Rate::Constant)
                .map_err(D::Error::custom),
        }
    }
}
