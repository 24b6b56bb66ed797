// SPDX-License-Identifier: Apache-2.0
//! What the network's control socket understands: one JSON object in, one JSON object out. A request that is refused has
//! changed nothing.

use crate::capture::Captures;
use crate::config::read_settings;
use crate::network::{Network, DIRECTIONS};
use netio::socket::RxCounters;
use serde::Serialize;
use serde_json::{json, Map, Value};
use traffic::link::{keys, LinkOptionError, Range, SpikeBlocks, Unit};
use traffic::Nanos;

/// All of the network's control socket; the last three are those of the process, about its switches.
pub const OPERATIONS: [&str; 10] = [
    "set",
    "spike",
    "outage",
    "get",
    "stats",
    "capture",
    "capture_state",
    "stop_switch",
    "start_switch",
    "switches",
];
/// Of a spike or outage.
pub const DURATION_US: Range = Range {
    min: 1.0,
    max: 600e6,
    unit: " µs",
    whole: false,
    zero: None,
};

/// What is known of an end's interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PortReport {
    pub interface: String,
    pub present: bool,
    /// How often the interface went down or away.
    pub down_events: u64,
    /// Frames lost before they reached the link.
    #[serde(flatten)]
    pub losses: RxCounters,
}

/// Tells what is at an end of a link: `2 * link`, plus 1 for end b.
pub type Ports<'a> = &'a mut dyn FnMut(usize) -> PortReport;

/// The keys of a request that were not read yet, or of an answer.
pub type Fields = Map<String, Value>;

/// Answers a request about links, as [`read`] has read it.
///
/// # Errors
/// Why it is refused.
pub fn handle(
    op: &str,
    mut request: Fields,
    now: Nanos,
    network: &mut Network,
    ports: Ports<'_>,
) -> Result<Fields, String> {
    if op == "capture_state" {
        return Captures::state(network, request);
    }
    let link = take_word(&mut request, "link", network.names())?;
    let mut fields = Fields::new();
    if let "get" | "stats" = op {
        nothing_left(&request, "op, link")?;
        let links = link.map_or(0..network.names().len(), |link| link..link + 1);
        let report = |link| report(now, network, link, ports, op == "stats");
        fields.insert("links".to_owned(), links.map(report).collect());
        if op == "stats" {
            let (in_use, capacity) = network.frames();
            let frames = json!({"capacity": capacity, "in_use": in_use});
            fields.insert("frames".to_owned(), frames);
            fields.insert("now_ns".to_owned(), json!(now));
        }
        return Ok(fields);
    }
    let link = link.ok_or_else(|| missing("link"))?;
    let directions = match take_word(&mut request, "direction", &["a_to_b", "b_to_a", "both"])? {
        Some(direction @ 0..2) => direction..direction + 1,
        _ => 0..2,
    };
    if op == "capture" {
        Captures::tidy(network);
        return Captures::begin(network, link, directions, request, now);
    }
    let directions = directions.map(|direction| 2 * link + direction);
    if op == "set" {
        if request.is_empty() {
            let allowed = keys(Unit::Us).join(", ");
            return Err(format!("nothing to set; allowed: {allowed}"));
        }
        let settings = read_settings(&request).map_err(|e| e.to_string())?;
        // All directions are checked before one is changed.
        let changed = directions.map(|direction| {
            let before = network.direction(direction).0.link.options();
            Ok((direction, settings.applied_to(before, Unit::Us)?))
        });
        let changed: Result<Vec<_>, _> = changed.collect();
        for (direction, options) in changed.map_err(|e: LinkOptionError| e.to_string())? {
            let shown = Value::Object(options.show(Unit::Us));
            let set = network.change(direction, |link| link.set(now, options));
            set.map_err(|e| e.to_string())?;
            fields.insert(DIRECTIONS[direction % 2].to_owned(), shown);
        }
        return Ok(fields);
    }
    let us = take_number(&mut request, "duration_us", DURATION_US)?;
    let duration = (us.ok_or_else(|| missing("duration_us"))? * 1e3).round() as Nanos;
    let (blocks, allowed) = match op {
        "spike" => {
            let blocks = match take_word(&mut request, "blocks", &["delivery", "line"])? {
                Some(1) => SpikeBlocks::Line,
                _ => SpikeBlocks::Delivery,
            };
            (Some(blocks), ", blocks")
        }
        _ => (None, ""),
    };
    nothing_left(
        &request,
        &format!("op, link, direction, duration_us{allowed}"),
    )?;
    directions.for_each(|direction| {
        network.change(direction, |link| match blocks {
            Some(blocks) => link.spike(now, duration, blocks),
            None => link.outage(now, duration),
        });
    });
    Ok(fields)
}

/// Reads what is to be done, and the other keys of the request.
///
/// # Errors
/// What is wrong with the line, or the operations that there are.
pub fn read(line: &str, operations: &[&'static str]) -> Result<(&'static str, Fields), String> {
    let request: Value = serde_json::from_str(line).map_err(|e| format!("not valid JSON: {e}"))?;
    let Value::Object(mut request) = request else {
        return Err("a request is a JSON object with the key \"op\"".to_owned());
    };
    let op = take_word(&mut request, "op", operations)?;
    let op = op.ok_or_else(|| missing("op") + "; allowed: " + &operations.join(", "))?;
    Ok((operations[op], request))
}

/// The error of a key that must be there.
pub fn missing(key: &str) -> String {
    format!("the key \"{key}\" is missing")
}

/// The index in `names` of what a key names, if it is there.
///
/// # Errors
/// It is another word.
pub fn take_word<T: AsRef<str>>(
    request: &mut Fields,
    key: &str,
    names: &[T],
) -> Result<Option<usize>, String> {
    let Some(value) = request.shift_remove(key) else {
        return Ok(None);
    };
    let found = names.iter().position(|name| value == name.as_ref());
    found.map(Some).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        format!("{key}: {value} is not known; allowed: {}", names.join(", "))
    })
}

/// The number of a key, if it is there and not null.
///
/// # Errors
/// It is out of range, or no number.
pub fn take_number(request: &mut Fields, key: &str, range: Range) -> Result<Option<f64>, String> {
    let value = request.shift_remove(key).filter(|value| !value.is_null());
    let number = value.map(|value| range.read(&value)).transpose();
    number.map_err(|e| format!("{key}: {e}"))
}

/// # Errors
/// A key that nobody has read.
pub fn nothing_left(request: &Fields, allowed: &str) -> Result<(), String> {
    match request.keys().next() {
        Some(key) => Err(format!("{key}: unknown key; allowed: {allowed}")),
        None => Ok(()),
    }
}

/// What was counted at a link; or its settings in the form of `links.json`, and what is under way.
fn report(now: Nanos, network: &Network, link: usize, ports: Ports<'_>, counts: bool) -> Value {
    let mut fields = Fields::new();
    fields.insert("name".to_owned(), json!(network.names()[link]));
    for (i, end) in ["a", "b"].into_iter().enumerate() {
        let report = ports(2 * link + i);
        let shown = match counts {
            true => json!(report),
            false => json!({"interface": report.interface}),
        };
        fields.insert(end.to_owned(), shown);
    }
    for (i, name) in DIRECTIONS.into_iter().enumerate() {
        let (wire, state) = network.direction(2 * link + i);
        let direction = &wire.link;
        let us = |ns| Unit::Us.show(ns);
        if !counts {
            let options = Value::Object(direction.options().show(Unit::Us));
            fields.insert(name.to_owned(), options);
            let left = |until: Option<Nanos>| us(until.map_or(0, |until| until - now));
            let under_way = json!({
                "spike_left_us": left(direction.spike_until(now)),
                "outage_left_us": left(direction.outage_until(now)),
                "present": direction.present(now, Unit::Us),
            });
            fields.insert(format!("{name}_state"), under_way);
            continue;
        }
        let mut counts = json!(direction.stats());
        counts["dropped_no_memory"] = json!(wire.dropped_no_memory);
        counts["dropped_unsent"] = json!(state.dropped_unsent);
        counts["queued_packets"] = json!(direction.queued());
        counts["in_flight_packets"] = json!(direction.in_flight());
        counts["late_us_p50"] = us(state.lateness.quantile(0.5));
        counts["late_us_p99"] = us(state.lateness.quantile(0.99));
        counts["late_us_max"] = us(state.lateness.max());
        fields.insert(name.to_owned(), counts);
    }
    Value::Object(fields)
}
