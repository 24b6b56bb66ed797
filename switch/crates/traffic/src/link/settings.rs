// SPDX-License-Identifier: Apache-2.0
//! The settings of a direction as JSON, one row each: name and what it may be. All that reads, shows or checks settings does
//! so by these rows.

use super::options::{RATE_BPS, VARYING};
use super::series::Quantity;
use super::{ErrorsIn, JitterDistribution, LinkOptions, Nanos, Series};
use serde_json::{json, Map, Value};
use std::fmt::Display;
use std::sync::Arc;

/// The unit of times in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Ns,
    Us,
}

impl Unit {
    fn parts(self) -> (f64, &'static str, &'static str) {
        match self {
            Unit::Ns => (1.0, "_ns", " ns"),
            Unit::Us => (1e3, "_us", " µs"),
        }
    }

    /// A time as JSON: a whole number where it is one.
    pub fn show(self, ns: Nanos) -> Value {
        match (self, ns % 1_000) {
            (Unit::Ns, _) => json!(ns),
            (Unit::Us, 0) => json!(ns / 1_000),
            (Unit::Us, _) => json!(ns as f64 / 1e3),
        }
    }
}

/// Numbers from `min` to `max`.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub min: f64,
    pub max: f64,
    pub unit: &'static str,
    /// Whole numbers.
    pub whole: bool,
    /// 0 is allowed too, and means this.
    pub zero: Option<&'static str>,
}

impl Range {
    pub const fn new(min: f64, max: f64, unit: &'static str, whole: bool) -> Range {
        Range {
            min,
            max,
            unit,
            whole,
            zero: None,
        }
    }

    /// # Errors
    /// A sentence with what was given and the range (NaN is out of every range).
    pub(super) fn check(&self, x: f64, shown: impl Display) -> Result<f64, String> {
        let wrong = match x {
            0.0 if self.zero.is_some() => return Ok(x),
            x if self.whole && (x < 0.0 || x.fract() != 0.0) => "not a whole number in range",
            x if !(self.min..=self.max).contains(&x) => "out of range",
            x => return Ok(x),
        };
        Err(format!("{shown} is {wrong}; allowed: {self}"))
    }

    /// # Errors
    /// A sentence with what was given and the range.
    pub fn read(&self, value: &Value) -> Result<f64, String> {
        let kind = ["a number", "a whole number"][usize::from(self.whole)];
        let number = value.as_f64();
        let number = number.ok_or_else(|| format!("{value} is not {kind}; allowed: {self}"))?;
        self.check(number, value)
    }
}

impl Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to {}{}", self.min, self.max, self.unit)?;
        match self.zero {
            Some(zero) => write!(f, ", or 0 ({zero})"),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    /// Its name is followed by the unit.
    Time,
    Number(Range),
    Flag,
    Word(&'static [&'static str]),
}

const CHANCE: Kind = number(0.0, 1.0, "", false);

const fn number(min: f64, max: f64, unit: &'static str, whole: bool) -> Kind {
    Kind::Number(Range::new(min, max, unit, whole))
}

/// A rate; 0 is allowed too, and means `zero`.
const fn rate(zero: &'static str) -> Kind {
    Kind::Number(Range {
        zero: Some(zero),
        ..Range::new(1e3, 400e9, " bit/s", true)
    })
}

/// A setting.
#[derive(Clone, Copy)]
struct Row {
    /// Of a time: without its unit.
    name: &'static str,
    kind: Kind,
    about: &'static str,
}

const fn row(name: &'static str, kind: Kind, about: &'static str) -> Row {
    Row { name, kind, about }
}

const RATE: Kind = rate("unlimited");
// A stay of a million frames on average is the longest: from 0 there is no way back.
const LEAVE: Kind = number(1e-6, 1.0, "", false);
/// Of the states of a burst in time, and of a frame of grants: a link that nothing comes to for an hour catches up in a moment.
const PERIOD_NS_MIN: Nanos = 1_000_000;
const GRANTED: Kind = rate("none");
const DISTRIBUTION: Kind = Kind::Word(JitterDistribution::NAMES);

/// The place of a setting that may be a function of time in [`VARYING`].
fn varies(row: Row) -> Option<usize> {
    VARYING.iter().position(|name| *name == row.name)
}

/// What a series of a setting is made of: times in ms.
fn read_series(row: Row, given: &Value) -> Result<Series, String> {
    let (range, factor) = match row.kind {
        Kind::Number(range) => (range, 1.0),
        _ => (Range::new(0.0, 60e3, " ms", false), 1e6),
    };
    let is_rate = row.name == "rate_bps";
    let zero = is_rate.then_some("nothing leaves");
    let range = Range {
        whole: false,
        zero,
        ..range
    };
    Series::read(
        given,
        Quantity {
            range,
            factor,
            is_rate,
        },
    )
}

fn find(key_of: impl Fn(Row) -> bool) -> Option<Row> {
    ROWS.into_iter().find(|row| key_of(*row))
}

/// Reads what the rate of a port follows.
///
/// # Errors
/// What is wrong, and what is allowed.
pub(super) fn read_rate(given: &Value) -> Result<Arc<Series>, String> {
    let row = find(|row| row.name == "rate_bps").ok_or("a rate is a number")?;
    read_series(row, given).map(Arc::new)
}

/// The number that stands for a series of a setting (named by its key): the least delay, the largest jitter, the mean of
/// others.
///
/// # Errors
/// What is wrong with the series, and what is allowed.
pub fn number_of(setting: &str, form: &Value, unit: Unit) -> Result<f64, String> {
    let row = find(|row| key(row, unit) == setting && varies(row).is_some());
    let row = row.ok_or_else(|| format!("{setting} is no setting that may vary"))?;
    Ok(stands_for(row, &read_series(row, form)?) / unit_of(row, unit))
}

fn stands_for(row: Row, series: &Series) -> f64 {
    match row.name {
        "delay" => libm::round(series.least),
        "jitter" => libm::round(series.largest),
        "rate_bps" => libm::round(series.mean).max(1e3),
        _ => series.mean,
    }
}

/// A value that holds of one of [`VARYING`], by its key.
pub(super) fn present(setting: usize, value: f64, unit: Unit) -> (String, Value) {
    let row = find(|row| row.name == VARYING[setting]).unwrap_or(ROWS[0]);
    (key(row, unit), json!(value / unit_of(row, unit)))
}

fn unit_of(row: Row, unit: Unit) -> f64 {
    match row.kind {
        Kind::Time => unit.parts().0,
        _ => 1.0,
    }
}

/// In the order in which they are shown.
const ROWS: [Row; 20] = [
    row("delay", Kind::Time, "Propagation delay."),
    row("jitter", Kind::Time, "Half width (uniform) or standard deviation (normal) of the delay; not above the delay."),
    row("jitter_distribution", DISTRIBUTION, "How the delay deviates from its mean."),
    row("reorder", Kind::Flag, "Lets a frame with a small delay overtake; otherwise it waits for the one before it."),
    row("rate_bps", RATE, "Rate of the line in bit/s of Ethernet frame (no preamble, no FCS); 0 is unlimited."),
    row("loss", CHANCE, "Probability that a frame is lost."),
    row("ber", CHANCE, "Probability that a bit of those that `errors_in` names is flipped."),
    row(
        "errors_in",
        Kind::Word(ErrorsIn::NAMES),
        "Where `ber` and `ge_ber` flip bits: behind the Ethernet header, or behind the TCP or UDP header alone, so that pure ACKs are never hit.",
    ),
    row("spare_retransmissions", Kind::Flag, "Data that a TCP flow sends again on this link is not hit."),
    row(
        "queue_packets",
        number(1.0, 1e6, " packets", true),
        "Frames that may wait for the line, the one on it not counted. With neither rate nor trace they wait only while a spike blocks the line.",
    ),
    row("ge_enter", CHANCE, "Gilbert-Elliott: probability per frame of entering the bad state; 0: there is none. `loss` and `ber` hold in the good one."),
    row("ge_leave", LEAVE, "Probability per frame of leaving it: bursts last 1 / `ge_leave` frames on average."),
    row("ge_loss", CHANCE, "Probability that a frame is lost in the bad state."),
    row("ge_ber", CHANCE, "Probability that a bit is flipped in it."),
    row("ge_good", Kind::Time, "Instead of `ge_enter`, with `ge_bad`: the mean time in the good state, frames or none; at least 1 ms."),
    row("ge_bad", Kind::Time, "The mean time in the bad state: a burst meets all frames that come to the link meanwhile."),
    row("duplicate", CHANCE, "Probability that a frame comes to the link twice; all else happens to the copy, right behind it, by itself."),
    row("dama_frame", Kind::Time, "DAMA: the line sends what is granted for each frame of so long, at most `rate_bps`; at least 1 ms, 0: it sends by itself."),
    row("dama_delay", Kind::Time, "From a request, at the start of a frame and by volume (VBDC), to its grant."),
    row("dama_cra_bps", GRANTED, "Granted without a request (CRA)."),
];

fn key(row: Row, unit: Unit) -> String {
    match row.kind {
        Kind::Time => format!("{}{}", row.name, unit.parts().1),
        _ => row.name.to_owned(),
    }
}

/// The keys of a document.
pub fn keys(unit: Unit) -> Vec<String> {
    ROWS.map(|row| key(row, unit)).into()
}

/// The settings of a direction as a JSON Schema: the model of a link of all that is not Rust.
pub fn schema(unit: Unit) -> Value {
    let defaults = LinkOptions::default().show(unit);
    let property = |row: Row| {
        let mut property = row.kind.schema(unit);
        if varies(row).is_some() {
            property["varies"] = json!(true);
        }
        property["default"] = defaults[&key(row, unit)].clone();
        property["description"] = json!(row.about);
        (key(row, unit), property)
    };
    let properties: Map<String, Value> = ROWS.map(property).into_iter().collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of one direction of a link. The default is a perfect line.",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

impl Kind {
    fn schema(self, unit: Unit) -> Value {
        if let Some(range) = self.range(unit) {
            let kind = ["number", "integer"][usize::from(range.whole)];
            let bound = |x: f64| match x.fract() {
                0.0 => json!(x as u64),
                _ => json!(x),
            };
            let numbers =
                json!({"type": kind, "minimum": bound(range.min), "maximum": bound(range.max)});
            return match range.zero {
                None => numbers,
                Some(_) => json!({"anyOf": [{"const": 0}, numbers]}),
            };
        }
        match self {
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Word(names) => json!({"type": "string", "enum": names}),
            _ => json!({}),
        }
    }

    fn range(self, unit: Unit) -> Option<Range> {
        let whole = unit == Unit::Ns;
        let (ns, _, unit) = unit.parts();
        match self {
            Kind::Number(range) => Some(range),
            Kind::Time => number(0.0, 60e9 / ns, unit, whole).range(Unit::Ns),
            _ => None,
        }
    }

    /// Checks a value; times become those in ns.
    fn read(self, value: &Value, unit: Unit) -> Result<Value, String> {
        let known = |known: bool, allowed: String| match known {
            true => Ok(value.clone()),
            false => Err(format!("{value} is not known; allowed: {allowed}")),
        };
        if let Some(range) = self.range(unit) {
            let number = range.read(value)?;
            return Ok(match self {
                Kind::Time => json!((number * unit.parts().0).round() as Nanos),
                _ if range.whole => json!(number as u64),
                _ => json!(number),
            });
        }
        match self {
            Kind::Flag => known(value.is_boolean(), "true, false".to_owned()),
            Kind::Word(names) => {
                let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                known(names.iter().any(|name| value == name), quoted.join(", "))
            }
            _ => Ok(value.clone()),
        }
    }
}

/// A setting that cannot be taken; `message` has the value and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct LinkOptionError {
    pub key: String,
    pub message: String,
}

impl LinkOptionError {
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> LinkOptionError {
        LinkOptionError {
            key: key.into(),
            message: message.into(),
        }
    }
}

/// Some settings with their values; what is not named stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSettings {
    /// With times in ns.
    values: Map<String, Value>,
    /// Of those of [`VARYING`] that are named; None: it is a number.
    series: [Option<Option<Arc<Series>>>; 4],
}

impl LinkSettings {
    /// Reads the members of a JSON object, and the files that they name.
    ///
    /// # Errors
    /// The first key that is unknown, or whose value is of another type or out of its range.
    pub fn read(object: &Map<String, Value>, unit: Unit) -> Result<LinkSettings, LinkOptionError> {
        let mut settings = LinkSettings::default();
        for (name, value) in object {
            let wrong = |message: String| LinkOptionError::new(name, message);
            let row = find(|row| key(row, unit) == *name)
                .ok_or_else(|| wrong(format!("unknown key; allowed: {}", keys(unit).join(", "))))?;
            let place = varies(row);
            let (number, series) = match (value, place) {
                (Value::Object(_), Some(_)) => {
                    let series = read_series(row, value).map_err(wrong)?;
                    let number = stands_for(row, &series);
                    let whole = row.name != "loss";
                    let number = if whole {
                        json!(number as u64)
                    } else {
                        json!(number)
                    };
                    (number, Some(Arc::new(series)))
                }
                _ => (row.kind.read(value, unit).map_err(wrong)?, None),
            };
            settings.values.insert(key(row, Unit::Ns), number);
            if let Some(place) = place {
                settings.series[place] = Some(series);
            }
        }
        Ok(settings)
    }

    /// `options` with these settings.
    ///
    /// # Errors
    /// Settings that do not fit each other, in the unit of the document.
    pub fn applied_to(
        &self,
        options: &LinkOptions,
        unit: Unit,
    ) -> Result<LinkOptions, LinkOptionError> {
        let mut values = json!(options);
        for (key, value) in &self.values {
            values[key] = value.clone();
        }
        let read = serde_json::from_value::<LinkOptions>(values);
        let mut changed = read.map_err(|e| LinkOptionError::new("settings", e.to_string()))?;
        for ((changed, new), old) in changed
            .series
            .iter_mut()
            .zip(&self.series)
            .zip(&options.series)
        {
            changed.clone_from(new.as_ref().unwrap_or(old));
        }
        changed.check_in(unit)?;
        Ok(changed)
    }
}

impl LinkOptions {
    /// The options of a JSON object, as [`LinkSettings::read`] reads it; what it leaves out is at its default.
    ///
    /// # Errors
    /// Of [`LinkSettings::read`], and settings that do not fit each other.
    pub fn read(object: &Map<String, Value>, unit: Unit) -> Result<LinkOptions, LinkOptionError> {
        LinkSettings::read(object, unit)?.applied_to(&LinkOptions::default(), unit)
    }

    /// As JSON, in the form that [`LinkSettings::read`] reads.
    pub fn show(&self, unit: Unit) -> Map<String, Value> {
        let values = json!(self);
        let show = |row: Row| {
            let value = &values[key(row, Unit::Ns)];
            if let Some(series) = varies(row).and_then(|place| self.series[place].as_ref()) {
                return series.form().clone();
            }
            match row.kind {
                Kind::Time => unit.show(value.as_u64().unwrap_or_default()),
                _ => value.clone(),
            }
        };
        ROWS.map(|row| (key(row, unit), show(row)))
            .into_iter()
            .collect()
    }

    /// Checks all ranges, and settings that do not fit each other.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), LinkOptionError> {
        self.check_in(Unit::Ns)
    }

    fn check_in(&self, unit: Unit) -> Result<(), LinkOptionError> {
        let values = json!(self);
        for row in ROWS {
            if let Some(range) = row.kind.range(Unit::Ns) {
                // JSON has no NaN.
                let x = values[key(row, Unit::Ns)].as_f64().unwrap_or(f64::NAN);
                let checked = range.check(x, x);
                checked.map_err(|message| LinkOptionError::new(key(row, unit), message))?;
            }
        }
        let (_, suffix, unit_name) = unit.parts();
        let least = format!("{}{unit_name}", unit.show(PERIOD_NS_MIN));
        if self.jitter_ns > self.delay_ns {
            let (jitter, max) = (unit.show(self.jitter_ns), unit.show(self.delay_ns));
            let message =
                format!("{jitter} exceeds delay{suffix} ({max}); allowed: 0 to {max}{unit_name}");
            return Err(LinkOptionError::new(format!("jitter{suffix}"), message));
        }
        let (good, bad) = (self.ge_good_ns, self.ge_bad_ns);
        if good.max(bad) > 0 {
            let message = match (self.ge_enter > 0.0, good.min(bad) < PERIOD_NS_MIN) {
                (true, _) => format!(
                    "{} stands beside ge_enter ({}); allowed: one of them, the other 0",
                    unit.show(good),
                    self.ge_enter
                ),
                (_, true) => format!(
                    "{} with ge_bad{suffix} {}; allowed: both at least {least}, or both 0",
                    unit.show(good),
                    unit.show(bad)
                ),
                _ => String::new(),
            };
            if !message.is_empty() {
                return Err(LinkOptionError::new(format!("ge_good{suffix}"), message));
            }
        }
        let frame = self.dama_frame_ns;
        let problem = match self.rate_bps {
            _ if frame == 0 => None,
            _ if frame < PERIOD_NS_MIN => Some(format!("at least {least}, or 0")),
            rate if rate == 0 || self.series[RATE_BPS].is_some() => {
                Some("beside a rate_bps that is a number".to_owned())
            }
            rate if self.dama_cra_bps > rate => Some(format!(
                "with dama_cra_bps ({}) of at most rate_bps ({rate})",
                self.dama_cra_bps
            )),
            _ => None,
        };
        if let Some(allowed) = problem {
            let message = format!("{} cannot be; allowed: {allowed}", unit.show(frame));
            return Err(LinkOptionError::new(format!("dama_frame{suffix}"), message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_current() {
        let committed = include_str!("../../../../fairlane_switch/link.schema.json");
        let message =
            "run: cargo run -p traffic --example link_schema > fairlane_switch/link.schema.json";
        assert_eq!(
            committed.trim(),
            format!("{:#}", schema(Unit::Us)),
            "{message}"
        );
    }

    #[test]
    fn every_range_is_checked() {
        let bad = |change: fn(&mut LinkOptions)| {
            let mut options = LinkOptions::default();
            change(&mut options);
            options.check().unwrap_err().to_string()
        };
        assert_eq!(
            bad(|o| o.delay_ns = 60_000_000_001),
            "delay_ns: 60000000001 is out of range; allowed: 0 to 60000000000 ns"
        );
        assert_eq!(
            bad(|o| o.jitter_ns = 1),
            "jitter_ns: 1 exceeds delay_ns (0); allowed: 0 to 0 ns"
        );
        assert_eq!(
            bad(|o| o.rate_bps = 999),
            "rate_bps: 999 is out of range; allowed: 1000 to 400000000000 bit/s, or 0 (unlimited)"
        );
        assert_eq!(
            bad(|o| o.loss = 1.5),
            "loss: 1.5 is out of range; allowed: 0 to 1"
        );
        assert_eq!(
            bad(|o| o.loss = f64::NAN),
            "loss: NaN is out of range; allowed: 0 to 1"
        );
        assert_eq!(
            bad(|o| o.ber = -0.1),
            "ber: -0.1 is out of range; allowed: 0 to 1"
        );
        assert_eq!(
            bad(|o| o.ge_enter = 2.0),
            "ge_enter: 2 is out of range; allowed: 0 to 1"
        );
        assert_eq!(
            bad(|o| o.ge_leave = 0.0),
            "ge_leave: 0 is out of range; allowed: 0.000001 to 1"
        );
        assert_eq!(
            bad(|o| o.queue_packets = 0),
            "queue_packets: 0 is out of range; allowed: 1 to 1000000 packets"
        );
    }
}
