// SPDX-License-Identifier: Apache-2.0
//! What the control socket understands: one JSON object in, one JSON object out. A request that is refused has
//! changed nothing.

use crate::emulator::{Emulator, DIRECTIONS};
use crate::settings::{self, microseconds, SettingError};
use netio::own_socket::refusal;
use serde_json::{json, Map, Value};
use traffic::link::SpikeBlocks;
use traffic::Nanos;

const OPERATIONS: [&str; 5] = ["set", "spike", "outage", "get", "stats"];
/// Longest spike or outage, µs.
const DURATION_US_MAX: f64 = 600e6;

/// What is known of an end's interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortReport {
    pub interface: String,
    pub present: bool,
    /// How often the interface went down or away.
    pub down_events: u64,
    /// Frames lost before they reached the link, by reason.
    pub ring_full: u64,
    pub truncated: u64,
    pub unsegmented: u64,
}

/// The interfaces behind the emulator's ports.
pub trait Ports {
    fn report(&mut self, port: usize) -> PortReport;
}

/// Answers one line.
pub fn handle(line: &str, now: Nanos, emulator: &mut Emulator, ports: &mut dyn Ports) -> Value {
    match answer(line, now, emulator, ports) {
        Ok(mut fields) => {
            fields.shift_insert(0, "ok".to_owned(), json!(true));
            Value::Object(fields)
        }
        Err(error) => refusal(&error),
    }
}

type Fields = Map<String, Value>;

fn answer(
    line: &str,
    now: Nanos,
    emulator: &mut Emulator,
    ports: &mut dyn Ports,
) -> Result<Fields, String> {
    let request: Value = serde_json::from_str(line).map_err(|e| format!("not valid JSON: {e}"))?;
    let Value::Object(mut request) = request else {
        return Err("a request is a JSON object with the key \"op\"".to_owned());
    };
    let op = match request.shift_remove("op") {
        Some(Value::String(op)) if OPERATIONS.contains(&op.as_str()) => op,
        Some(other) => {
            return Err(format!(
                "op: {other} is not known; allowed: {}",
                OPERATIONS.join(", ")
            ))
        }
        None => {
            return Err(format!(
                "the key \"op\" is missing; allowed: {}",
                OPERATIONS.join(", ")
            ))
        }
    };
    let link = take_link(&mut request, emulator)?;
    match op.as_str() {
        "set" => set(now, emulator, need_link(link)?, request),
        "spike" | "outage" => {
            let link = need_link(link)?;
            let directions = take_directions(&mut request)?;
            let duration = take_duration(&mut request)?;
            let blocks = match op.as_str() {
                "spike" => take_blocks(&mut request)?,
                _ => SpikeBlocks::default(),
            };
            let more = if op == "spike" { ", blocks" } else { "" };
            nothing_left(&request, &format!("op, link, direction, duration_us{more}"))?;
            for direction in directions {
                let direction = 2 * link + direction;
                match op.as_str() {
                    "spike" => emulator.spike(now, direction, duration, blocks),
                    _ => emulator.outage(now, direction, duration),
                }
            }
            Ok(Map::new())
        }
        "get" => {
            nothing_left(&request, "op, link")?;
            Ok(list(emulator, link, |emulator, i| {
                link_report(now, emulator, i, ports)
            }))
        }
        _ => {
            nothing_left(&request, "op, link")?;
            let mut fields = list(emulator, link, |emulator, i| stats(emulator, i, ports));
            let pool = emulator.pool();
            let frames =
                json!({"capacity": pool.capacity(), "in_use": pool.capacity() - pool.free()});
            fields.insert("frames".to_owned(), frames);
            fields.insert("now_ns".to_owned(), json!(now));
            Ok(fields)
        }
    }
}

fn set(
    now: Nanos,
    emulator: &mut Emulator,
    link: usize,
    mut request: Fields,
) -> Result<Fields, String> {
    let directions = take_directions(&mut request)?;
    if request.is_empty() {
        return Err(format!(
            "nothing to set; allowed: {}",
            settings::KEYS.join(", ")
        ));
    }
    // All directions are checked before one is changed.
    let mut changed = Vec::with_capacity(2);
    for direction in directions {
        let direction = 2 * link + direction;
        let options = settings::changed(emulator.direction(direction).link.options(), &request)
            .map_err(|SettingError { key, message }| format!("{key}: {message}"))?;
        changed.push((direction, options));
    }
    let mut fields = Map::new();
    for (direction, options) in changed {
        let shown = Value::Object(settings::to_json(&options));
        emulator
            .set(now, direction, options)
            .map_err(|e| e.to_string())?;
        fields.insert(DIRECTIONS[direction % 2].to_owned(), shown);
    }
    Ok(fields)
}

/// The index of the link that the request names, if it names one.
fn take_link(request: &mut Fields, emulator: &Emulator) -> Result<Option<usize>, String> {
    let Some(name) = request.shift_remove("link") else {
        return Ok(None);
    };
    let found = name
        .as_str()
        .and_then(|name| emulator.names().iter().position(|other| other == name));
    match found {
        Some(index) => Ok(Some(index)),
        None => Err(format!(
            "link: {name} is not known; allowed: {}",
            emulator.names().join(", ")
        )),
    }
}

fn need_link(link: Option<usize>) -> Result<usize, String> {
    link.ok_or_else(|| "the key \"link\" is missing".to_owned())
}

/// Directions that the request means: both, unless it says which.
fn take_directions(request: &mut Fields) -> Result<std::ops::Range<usize>, String> {
    let Some(value) = request.shift_remove("direction") else {
        return Ok(0..2);
    };
    match value.as_str() {
        Some("a_to_b") => Ok(0..1),
        Some("b_to_a") => Ok(1..2),
        Some("both") => Ok(0..2),
        _ => Err(format!(
            "direction: {value} is not known; allowed: a_to_b, b_to_a, both"
        )),
    }
}

fn take_duration(request: &mut Fields) -> Result<Nanos, String> {
    let Some(value) = request.shift_remove("duration_us") else {
        return Err("the key \"duration_us\" is missing".to_owned());
    };
    let us = settings::number("duration_us", &value, 1.0, DURATION_US_MAX, " µs")
        .map_err(|e| e.to_string())?;
    Ok((us * 1e3).round() as Nanos)
}

/// What a spike blocks: deliveries, unless it says the line.
fn take_blocks(request: &mut Fields) -> Result<SpikeBlocks, String> {
    match request.shift_remove("blocks") {
        None => Ok(SpikeBlocks::default()),
        Some(value) => serde_json::from_value(value.clone())
            .map_err(|_| format!("blocks: {value} is not known; allowed: delivery, line")),
    }
}

fn nothing_left(request: &Fields, allowed: &str) -> Result<(), String> {
    match request.keys().next() {
        Some(key) => Err(format!("{key}: unknown key; allowed: {allowed}")),
        None => Ok(()),
    }
}

/// `{"links": [...]}` with one link, or with all.
fn list(
    emulator: &Emulator,
    link: Option<usize>,
    mut one: impl FnMut(&Emulator, usize) -> Fields,
) -> Fields {
    let range = match link {
        Some(i) => i..i + 1,
        None => 0..emulator.names().len(),
    };
    let links: Vec<Value> = range
        .map(|i| {
            let mut fields = one(emulator, i);
            fields.shift_insert(0, "name".to_owned(), json!(emulator.names()[i]));
            Value::Object(fields)
        })
        .collect();
    Map::from_iter([("links".to_owned(), Value::Array(links))])
}

/// A link's settings, in the form of `links.json`, and what is under way.
fn link_report(now: Nanos, emulator: &Emulator, link: usize, ports: &mut dyn Ports) -> Fields {
    let mut fields = Map::new();
    for (i, end) in ["a", "b"].into_iter().enumerate() {
        let report = ports.report(2 * link + i);
        fields.insert(end.to_owned(), json!({"interface": report.interface}));
    }
    for (i, name) in DIRECTIONS.into_iter().enumerate() {
        let direction = &emulator.direction(2 * link + i).link;
        fields.insert(
            name.to_owned(),
            Value::Object(settings::to_json(direction.options())),
        );
        let rest = |until: Option<Nanos>| microseconds(until.map_or(0, |until| until - now));
        fields.insert(
            format!("{name}_state"),
            json!({
                "spike_left_us": rest(direction.spike_until(now)),
                "outage_left_us": rest(direction.outage_until(now)),
            }),
        );
    }
    fields
}

fn stats(emulator: &Emulator, link: usize, ports: &mut dyn Ports) -> Fields {
    let mut fields = Map::new();
    for (i, end) in ["a", "b"].into_iter().enumerate() {
        let report = ports.report(2 * link + i);
        fields.insert(
            end.to_owned(),
            json!({
                "interface": report.interface,
                "present": report.present,
                "down_events": report.down_events,
                "dropped_ring_full": report.ring_full,
                "dropped_truncated": report.truncated,
                "dropped_unsegmented": report.unsegmented,
            }),
        );
    }
    for (i, name) in DIRECTIONS.into_iter().enumerate() {
        let state = emulator.direction(2 * link + i);
        let mut counts = json!(state.link.stats());
        let more = json!({
            "dropped_no_memory": state.dropped_no_memory,
            "dropped_unsent": state.dropped_unsent,
            "queued_packets": state.link.queued(),
            "in_flight_packets": state.link.in_flight(),
            "late_us_p50": microseconds(state.lateness.quantile(0.5)),
            "late_us_p99": microseconds(state.lateness.quantile(0.99)),
            "late_us_max": microseconds(state.lateness.max()),
        });
        if let (Value::Object(counts), Value::Object(more)) = (&mut counts, more) {
            counts.extend(more);
        }
        fields.insert(name.to_owned(), counts);
    }
    fields
}
