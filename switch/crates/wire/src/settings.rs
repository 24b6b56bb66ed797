// SPDX-License-Identifier: Apache-2.0
//! The settings of a link direction as JSON: names, units, ranges. `links.json` and the control socket share them.

use crate::traces;
use serde_json::{json, Map, Value};
use std::sync::Arc;
use traffic::link::{ErrorsIn, JitterDistribution, LinkOptions, Trace};

/// All keys, in the order that `get` shows them.
pub const KEYS: [&str; 15] = [
    "delay_us",
    "jitter_us",
    "jitter_distribution",
    "reorder",
    "rate_bps",
    "loss",
    "ber",
    "errors_in",
    "spare_retransmissions",
    "queue_packets",
    "ge_enter",
    "ge_leave",
    "ge_loss",
    "ge_ber",
    "trace",
];

/// A setting that cannot be taken; `message` has the value and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SettingError {
    pub key: String,
    pub message: String,
}

impl SettingError {
    pub fn new(key: &str, message: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            message: message.into(),
        }
    }
}

/// Reads a number in `[min, max]`.
///
/// # Errors
/// [`SettingError`] with the value and the range.
pub fn number(
    key: &str,
    value: &Value,
    min: f64,
    max: f64,
    unit: &str,
) -> Result<f64, SettingError> {
    let allowed = format!("{min} to {max}{unit}");
    match value.as_f64() {
        None => Err(SettingError::new(
            key,
            format!("{value} is not a number; allowed: {allowed}"),
        )),
        Some(x) if !(min..=max).contains(&x) => Err(SettingError::new(
            key,
            format!("{value} is out of range; allowed: {allowed}"),
        )),
        Some(x) => Ok(x),
    }
}

/// Reads a whole number in `[min, max]`, or 0 where `zero` says what that means.
fn whole(
    key: &str,
    value: &Value,
    min: u64,
    max: u64,
    unit: &str,
    zero: Option<&str>,
) -> Result<u64, SettingError> {
    let x = value.as_u64().or_else(|| {
        // 2e6 is a float for JSON and a whole number for people.
        let float = value.as_f64()?;
        (float.fract() == 0.0 && (0.0..=9e15).contains(&float)).then_some(float as u64)
    });
    let allowed = match zero {
        Some(meaning) => format!("{min} to {max}{unit}, or 0 ({meaning})"),
        None => format!("{min} to {max}{unit}"),
    };
    match x {
        Some(0) if zero.is_some() => Ok(0),
        Some(x) if (min..=max).contains(&x) => Ok(x),
        Some(_) => Err(SettingError::new(
            key,
            format!("{value} is out of range; allowed: {allowed}"),
        )),
        None if value.is_number() => Err(SettingError::new(
            key,
            format!("{value} is not a whole number in range; allowed: {allowed}"),
        )),
        None => Err(SettingError::new(
            key,
            format!("{value} is not a whole number; allowed: {allowed}"),
        )),
    }
}

fn nanoseconds(key: &str, value: &Value) -> Result<u64, SettingError> {
    let max_us = *LinkOptions::DELAY_NS.end() as f64 / 1e3;
    Ok((number(key, value, 0.0, max_us, " µs")? * 1e3).round() as u64)
}

/// Puts one key into `options`.
///
/// # Errors
/// [`SettingError`]: unknown key (with the list of keys), wrong type, out of range.
fn put(options: &mut LinkOptions, key: &str, value: &Value) -> Result<(), SettingError> {
    match key {
        "delay_us" => options.delay_ns = nanoseconds(key, value)?,
        "jitter_us" => options.jitter_ns = nanoseconds(key, value)?,
        "jitter_distribution" => {
            options.jitter_distribution = word(key, value, JitterDistribution::ALL)?;
        }
        "reorder" => options.reorder = truth(key, value)?,
        "rate_bps" => {
            let (min, max) = LinkOptions::RATE_BPS.into_inner();
            options.rate_bps = whole(key, value, min, max, " bit/s", Some("unlimited"))?;
        }
        "loss" => options.loss = number(key, value, 0.0, *LinkOptions::LOSS.end(), "")?,
        "ber" => options.ber = number(key, value, 0.0, *LinkOptions::BER.end(), "")?,
        "errors_in" => options.errors_in = word(key, value, ErrorsIn::ALL)?,
        "spare_retransmissions" => options.spare_retransmissions = truth(key, value)?,
        "queue_packets" => {
            let (min, max) = LinkOptions::QUEUE_PACKETS.into_inner();
            let packets = whole(key, value, min as u64, max as u64, " packets", None)?;
            options.queue_packets = packets as usize;
        }
        "ge_enter" => options.ge_enter = probability(key, value)?,
        "ge_leave" => {
            let (min, max) = LinkOptions::GE_LEAVE.into_inner();
            options.ge_leave = number(key, value, min, max, "")?;
        }
        "ge_loss" => options.ge_loss = probability(key, value)?,
        "ge_ber" => options.ge_ber = number(key, value, 0.0, *LinkOptions::BER.end(), "")?,
        "trace" => options.trace = trace(key, value)?,
        _ => {
            return Err(SettingError::new(
                key,
                format!("unknown key; allowed: {}", KEYS.join(", ")),
            ))
        }
    }
    Ok(())
}

/// Reads one of a few words.
fn word<T: Copy + std::fmt::Display>(
    key: &str,
    value: &Value,
    all: &[T],
) -> Result<T, SettingError> {
    let found = all.iter().find(|each| value == &each.to_string());
    found.copied().ok_or_else(|| {
        let words: Vec<String> = all.iter().map(|each| format!("\"{each}\"")).collect();
        SettingError::new(
            key,
            format!("{value} is not known; allowed: {}", words.join(", ")),
        )
    })
}

fn truth(key: &str, value: &Value) -> Result<bool, SettingError> {
    value.as_bool().ok_or_else(|| {
        SettingError::new(key, format!("{value} is not known; allowed: true, false"))
    })
}

fn probability(key: &str, value: &Value) -> Result<f64, SettingError> {
    number(key, value, 0.0, *LinkOptions::PROBABILITY.end(), "")
}

/// Reads the trace's file; null: no trace.
fn trace(key: &str, value: &Value) -> Result<Option<Arc<Trace>>, SettingError> {
    let path = match value {
        Value::Null => return Ok(None),
        Value::String(path) if !path.is_empty() => path,
        other => {
            return Err(SettingError::new(
                key,
                format!("{other} is not a file; allowed: a path, or null for none"),
            ))
        }
    };
    match traces::trace(path) {
        Ok(trace) => Ok(Some(trace)),
        Err(message) => Err(SettingError::new(key, message)),
    }
}

/// `base` with the keys of `object` changed. The key `jitter_us` may not exceed `delay_us` afterwards.
///
/// # Errors
/// [`SettingError`] for the first key that cannot be taken.
pub fn changed(
    base: &LinkOptions,
    object: &Map<String, Value>,
) -> Result<LinkOptions, SettingError> {
    let mut options = base.clone();
    for (key, value) in object {
        put(&mut options, key, value)?;
    }
    if options.jitter_ns > options.delay_ns {
        let delay_us = options.delay_ns as f64 / 1e3;
        return Err(SettingError::new(
            "jitter_us",
            format!(
                "{} exceeds delay_us ({delay_us}); allowed: 0 to {delay_us} µs",
                options.jitter_ns as f64 / 1e3
            ),
        ));
    }
    if let (Some(trace), true) = (&options.trace, options.rate_bps != 0) {
        return Err(SettingError::new(
            "trace",
            format!(
                "{} stands beside rate_bps ({}); allowed: one of them, the other 0 or null",
                trace.source(),
                options.rate_bps
            ),
        ));
    }
    // What put has accepted, check accepts; a gap between the two must not go unseen.
    options
        .check()
        .map_err(|e| SettingError::new(e.key, e.to_string()))?;
    Ok(options)
}

/// Microseconds as JSON: a whole number where it is one.
pub fn microseconds(ns: u64) -> Value {
    if ns.is_multiple_of(1000) {
        json!(ns / 1000)
    } else {
        json!(ns as f64 / 1e3)
    }
}

/// The options as JSON; `changed(default, to_json(o)) == o`.
pub fn to_json(options: &LinkOptions) -> Map<String, Value> {
    let values = [
        microseconds(options.delay_ns),
        microseconds(options.jitter_ns),
        json!(options.jitter_distribution),
        json!(options.reorder),
        json!(options.rate_bps),
        json!(options.loss),
        json!(options.ber),
        json!(options.errors_in),
        json!(options.spare_retransmissions),
        json!(options.queue_packets),
        json!(options.ge_enter),
        json!(options.ge_leave),
        json!(options.ge_loss),
        json!(options.ge_ber),
        json!(options.trace.as_ref().map(|trace| trace.source())),
    ];
    KEYS.iter().map(ToString::to_string).zip(values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(object: Value) -> String {
        let object = object.as_object().unwrap().clone();
        changed(&LinkOptions::default(), &object)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn shown_settings_read_back_as_they_were() {
        let options = LinkOptions {
            delay_ns: 5_000_500,
            jitter_ns: 1_000,
            jitter_distribution: JitterDistribution::Normal,
            reorder: true,
            rate_bps: 2_000_000,
            loss: 0.25,
            ber: 1e-6,
            errors_in: ErrorsIn::Payload,
            spare_retransmissions: true,
            queue_packets: 50,
            ge_enter: 0.01,
            ge_leave: 0.25,
            ge_loss: 0.5,
            ge_ber: 1e-3,
            trace: None,
        };
        assert_eq!(
            changed(&LinkOptions::default(), &to_json(&options)),
            Ok(options)
        );
    }

    #[test]
    fn a_trace_is_read_from_its_file_and_taken_away_by_null() {
        let path = std::env::temp_dir().join(format!("wire-settings-{}.trace", std::process::id()));
        std::fs::write(&path, "1\n5\n").unwrap();
        let change = json!({"trace": path.to_str().unwrap()});
        let options = changed(&LinkOptions::default(), change.as_object().unwrap());
        std::fs::write(&path, "1\n00\n").unwrap(); // of another length: its time may be the same
        let bad = error(change.clone());
        std::fs::remove_file(&path).unwrap();
        let gone = error(change);
        let options = options.unwrap();
        assert_eq!(options.trace.as_ref().unwrap().opportunities(), 2);
        assert_eq!(json!(to_json(&options))["trace"], path.to_str().unwrap());
        assert!(
            bad.ends_with("line 2: 0 ms is before 1 ms; the times of a trace never go back"),
            "{bad}"
        );
        assert!(gone.contains("cannot be read: No such file"), "{gone}");
        let none = json!({"trace": null});
        let plain = changed(&options, none.as_object().unwrap()).unwrap();
        assert_eq!(plain, LinkOptions::default());
        let rate = json!({"rate_bps": 2000});
        let both = changed(&options, rate.as_object().unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            both.ends_with(
                " stands beside rate_bps (2000); allowed: one of them, the other 0 or null"
            ),
            "{both}"
        );
    }

    #[test]
    fn bad_settings_name_key_value_and_range() {
        assert_eq!(
            error(json!({"delay_us": -5})),
            "delay_us: -5 is out of range; allowed: 0 to 60000000 µs"
        );
        assert_eq!(
            error(json!({"delay_us": "5ms"})),
            "delay_us: \"5ms\" is not a number; allowed: 0 to 60000000 µs"
        );
        assert_eq!(
            error(json!({"delay_us": 10, "jitter_us": 20})),
            "jitter_us: 20 exceeds delay_us (10); allowed: 0 to 10 µs"
        );
        assert_eq!(
            error(json!({"rate_bps": 10})),
            "rate_bps: 10 is out of range; allowed: 1000 to 400000000000 bit/s, or 0 (unlimited)"
        );
        assert_eq!(
            error(json!({"rate_bps": -1})),
            "rate_bps: -1 is not a whole number in range; allowed: 1000 to 400000000000 bit/s, or 0 (unlimited)"
        );
        assert_eq!(
            error(json!({"loss": 1.01})),
            "loss: 1.01 is out of range; allowed: 0 to 1"
        );
        assert_eq!(
            error(json!({"queue_packets": 0})),
            "queue_packets: 0 is out of range; allowed: 1 to 1000000 packets"
        );
        assert_eq!(
            error(json!({"jitter_distribution": "pareto"})),
            "jitter_distribution: \"pareto\" is not known; allowed: \"uniform\", \"normal\""
        );
        assert_eq!(
            error(json!({"errors_in": "header"})),
            "errors_in: \"header\" is not known; allowed: \"frame\", \"payload\""
        );
        assert_eq!(
            error(json!({"reorder": 1})),
            "reorder: 1 is not known; allowed: true, false"
        );
        assert_eq!(
            error(json!({"latency": 1})),
            "latency: unknown key; allowed: delay_us, jitter_us, jitter_distribution, reorder, rate_bps, loss, ber, errors_in, \
             spare_retransmissions, queue_packets, \
             ge_enter, ge_leave, ge_loss, ge_ber, trace"
        );
        assert_eq!(
            error(json!({"ge_leave": 0})),
            "ge_leave: 0 is out of range; allowed: 0.000001 to 1"
        );
        assert_eq!(
            error(json!({"trace": 5})),
            "trace: 5 is not a file; allowed: a path, or null for none"
        );
    }
}
