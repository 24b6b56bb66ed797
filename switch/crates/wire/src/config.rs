// SPDX-License-Identifier: Apache-2.0
//! `links.json`: which links there are, between which interfaces, with which settings.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use serde_path_to_error::Segment;
use std::collections::HashMap;
use std::path::Path;
use traffic::link::{LinkOptionError, LinkOptions, LinkSettings, Unit};

/// One emulated link.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    #[serde(deserialize_with = "name")]
    pub name: String,
    pub a: End,
    pub b: End,
    #[serde(default, deserialize_with = "options")]
    pub a_to_b: LinkOptions,
    #[serde(default, deserialize_with = "options")]
    pub b_to_a: LinkOptions,
}

/// Where a link ends.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
#[serde(expecting = "an end is an object with: interface, or with: switch, port")]
pub enum End {
    /// Frames go through a packet socket on this interface.
    Interface { interface: String },
    /// A port of a switch of the same process.
    Port { switch: String, port: u32 },
}

/// A file that cannot be used; one sentence with the place in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// A switch of the same process.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Its command line.
    pub arguments: Vec<String>,
}

/// The switches and links of a topology.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    #[serde(default)]
    pub switches: Vec<SwitchConfig>,
    pub links: Vec<LinkConfig>,
    /// Settings of later changes, whose files are read now, so that the change takes no time.
    #[serde(default)]
    changes: Vec<Map<String, Value>>,
}

fn name<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    let name = String::deserialize(value)?;
    match name.is_empty() {
        true => Err(D::Error::custom(
            "\"\" is not a name; allowed: a text that is not empty",
        )),
        false => Ok(name),
    }
}

/// An error goes on with the key behind the path of the object.
fn options<'de, D: Deserializer<'de>>(value: D) -> Result<LinkOptions, D::Error> {
    LinkOptions::read(&Map::deserialize(value)?, Unit::Us)
        .map_err(|e| D::Error::custom(format!("/{}: {}", e.key, e.message)))
}

/// Reads and checks a file of switches and links.
///
/// # Errors
/// [`ConfigError`] with the file and the JSON pointer of the first fault.
pub fn read(path: &Path) -> Result<NetworkConfig, ConfigError> {
    std::fs::read_to_string(path)
        .map_err(|e| format!("cannot be read: {e}"))
        .and_then(|text| parse(&text).map_err(|e| e.to_string()))
        .map_err(|message| ConfigError(format!("{}: {message}", path.display())))
}

/// Parses a file of switches and links; there is one of them at least.
///
/// # Errors
/// [`ConfigError`] with the JSON pointer (RFC 6901) of the first fault.
pub fn parse(text: &str) -> Result<NetworkConfig, ConfigError> {
    let value: Value =
        serde_json::from_str(text).map_err(|e| ConfigError(format!("not valid JSON: {e}")))?;
    let config: NetworkConfig = serde_path_to_error::deserialize(value).map_err(|error| {
        let pointer = error.path().iter().map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{key}"),
            _ => String::new(),
        });
        let (pointer, message) = (pointer.collect::<String>(), error.inner().to_string());
        match pointer.is_empty() || message.starts_with('/') {
            true => ConfigError(pointer + &message),
            false => ConfigError(format!("{pointer}: {message}")),
        }
    })?;
    check(&config).map_err(ConfigError)?;
    Ok(config)
}

/// What concerns more than one value.
fn check(config: &NetworkConfig) -> Result<(), String> {
    for (i, settings) in config.changes.iter().enumerate() {
        read_settings(settings).map_err(|e| format!("/changes/{i}/{}: {}", e.key, e.message))?;
    }
    if config.switches.is_empty() && config.links.is_empty() {
        return Err("/links: is empty; at least one link or switch is needed".to_owned());
    }
    // What was named, and where.
    let mut used: HashMap<String, String> = HashMap::new();
    let mut is_new = |named: String, at: String| match used.insert(named, at) {
        Some(other) => Err(other),
        None => Ok(()),
    };
    for (i, SwitchConfig { name, .. }) in config.switches.iter().enumerate() {
        let at = format!("/switches/{i}/name");
        is_new(format!("switch {name}"), at.clone())
            .map_err(|_| format!("{at}: \"{name}\" is the name of two switches"))?;
    }
    for (i, LinkConfig { name, a, b, .. }) in config.links.iter().enumerate() {
        let at = format!("/links/{i}/name");
        is_new(format!("link {name}"), at.clone())
            .map_err(|_| format!("{at}: \"{name}\" is the name of two links"))?;
        for (end, place) in [("a", a), ("b", b)] {
            let (key, shown) = match place {
                End::Interface { interface } => ("interface", format!("\"{interface}\"")),
                End::Port { switch, port } => ("port", format!("port {port} of \"{switch}\"")),
            };
            let at = format!("/links/{i}/{end}/{key}");
            is_new(shown.clone(), at.clone())
                .map_err(|other| format!("{at}: {shown} is used already, at {other}"))?;
        }
    }
    Ok(())
}

/// Settings as `links.json` and the control socket have them.
///
/// # Errors
/// The first key that cannot be taken.
pub fn read_settings(object: &Map<String, Value>) -> Result<LinkSettings, LinkOptionError> {
    LinkSettings::read(object, Unit::Us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use traffic::link::{ErrorsIn, JitterDistribution};

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_full_file_is_read() {
        let links = parse(
            r#"{"links": [{"name": "s1-s2", "a": {"interface": "w0a"}, "b": {"interface": "w0b"},
                "a_to_b": {"delay_us": 5000, "rate_bps": 2e6, "queue_packets": 50}}]}"#,
        )
        .unwrap()
        .links;
        assert_eq!(links.len(), 1);
        let interface = |name: &str| End::Interface {
            interface: name.to_owned(),
        };
        let LinkConfig { a, b, a_to_b, .. } = &links[0];
        assert_eq!([a, b], [&interface("w0a"), &interface("w0b")]);
        assert_eq!((a_to_b.delay_ns, a_to_b.rate_bps), (5_000_000, 2_000_000));
        assert_eq!(links[0].b_to_a, LinkOptions::default());
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        assert_eq!(
            error("{"),
            "not valid JSON: EOF while parsing an object at line 1 column 1"
        );
        assert!(error("[[]]").contains("struct NetworkConfig"));
        assert_eq!(error("{}"), "missing field `links`");
        assert_eq!(
            error(r#"{"links": []}"#),
            "/links: is empty; at least one link or switch is needed"
        );
        assert_eq!(
            error(r#"{"links": [{}]}"#),
            "/links/0: missing field `name`"
        );
        assert_eq!(
            error(r#"{"links": [{"name": ""}]}"#),
            "/links/0/name: \"\" is not a name; allowed: a text that is not empty"
        );
        assert_eq!(
            error(r#"{"links": [{"name": "x", "a": {"interface": "p", "port": 1}}]}"#),
            "/links/0/a: an end is an object with: interface, or with: switch, port"
        );
        assert_eq!(
            error(r#"{"switches": [{"name": "s", "arguments": ["-i", 1]}], "links": []}"#),
            "/switches/0/arguments/1: invalid type: integer `1`, expected a string"
        );
        let link = r#"{"name": "x", "a": {"interface": "p"}, "b": {"interface": "q"}, "a_to_b": {"loss": 2}}"#;
        assert_eq!(
            error(&format!(r#"{{"links": [{link}]}}"#)),
            "/links/0/a_to_b/loss: 2 is out of range; allowed: 0 to 1"
        );
        let link = r#"{"name": "x", "a": {"interface": "p"}, "b": {"interface": "p"}}"#;
        assert_eq!(
            error(&format!(r#"{{"links": [{link}]}}"#)),
            "/links/0/b/interface: \"p\" is used already, at /links/0/a/interface"
        );
        assert_eq!(
            error(r#"{"links": [], "changes": [{"rate_bps": {"trace": "/nowhere.trace"}}]}"#),
            "/changes/0/rate_bps: trace: /nowhere.trace: cannot be read: No such file or directory (os error 2)"
        );
        let other = r#"{"name": "x", "a": {"interface": "p"}, "b": {"interface": "q"}}"#;
        let twin = r#"{"name": "x", "a": {"interface": "r"}, "b": {"interface": "s"}}"#;
        assert_eq!(
            error(&format!(r#"{{"links": [{other}, {twin}]}}"#)),
            "/links/1/name: \"x\" is the name of two links"
        );
        assert_eq!(
            error(r#"{"links": [{"name": "x", "speed": 1}]}"#),
            "/links/0/speed: unknown field `speed`, expected one of `name`, `a`, `b`, `a_to_b`, `b_to_a`"
        );
    }

    fn setting_error(object: Value) -> String {
        let error = changed(&LinkOptions::default(), object.as_object().unwrap());
        error.unwrap_err().to_string()
    }

    fn changed(
        base: &LinkOptions,
        object: &Map<String, Value>,
    ) -> Result<LinkOptions, LinkOptionError> {
        read_settings(object)?.applied_to(base, Unit::Us)
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
            duplicate: 0.5,
            dama_frame_ns: 26_500_000,
            dama_delay_ns: 500_000_000,
            dama_cra_bps: 16_000,
            ..LinkOptions::default()
        };
        assert_eq!(
            changed(&LinkOptions::default(), &options.show(Unit::Us)),
            Ok(options)
        );
    }

    #[test]
    fn a_trace_is_read_from_its_file_and_taken_away_by_a_number() {
        let path = std::env::temp_dir().join(format!("wire-settings-{}.trace", std::process::id()));
        std::fs::write(&path, "1\n5\n").unwrap();
        let change = json!({"rate_bps": {"trace": path.to_str().unwrap()}});
        let options = changed(&LinkOptions::default(), change.as_object().unwrap());
        std::fs::write(&path, "1\n00\n").unwrap(); // of another length: its time may be the same
        let bad = setting_error(change.clone());
        std::fs::remove_file(&path).unwrap();
        let gone = setting_error(change.clone());
        let options = options.unwrap();
        assert_eq!(
            json!(options.show(Unit::Us))["rate_bps"],
            change["rate_bps"]
        );
        assert!(
            bad.ends_with("number 2: 0 ms is before 1 ms; the times of a trace never go back"),
            "{bad}"
        );
        assert!(gone.contains("cannot be read: No such file"), "{gone}");
        let none = json!({"rate_bps": 0});
        let plain = changed(&options, none.as_object().unwrap()).unwrap();
        assert_eq!(plain, LinkOptions::default());
    }

    #[test]
    fn bad_settings_name_key_value_and_range() {
        assert_eq!(
            setting_error(json!({"delay_us": -5})),
            "delay_us: -5 is out of range; allowed: 0 to 60000000 µs"
        );
        assert_eq!(
            setting_error(json!({"delay_us": "5ms"})),
            "delay_us: \"5ms\" is not a number; allowed: 0 to 60000000 µs"
        );
        assert_eq!(
            setting_error(json!({"delay_us": 10, "jitter_us": 20})),
            "jitter_us: 20 exceeds delay_us (10); allowed: 0 to 10 µs"
        );
        assert_eq!(
            setting_error(json!({"rate_bps": 10})),
            "rate_bps: 10 is out of range; allowed: 1000 to 400000000000 bit/s, or 0 (unlimited)"
        );
        assert_eq!(
            setting_error(json!({"rate_bps": -1})),
            "rate_bps: -1 is not a whole number in range; allowed: 1000 to 400000000000 bit/s, or 0 (unlimited)"
        );
        assert_eq!(
            setting_error(json!({"loss": 1.01})),
            "loss: 1.01 is out of range; allowed: 0 to 1"
        );
        assert_eq!(
            setting_error(json!({"queue_packets": 0})),
            "queue_packets: 0 is out of range; allowed: 1 to 1000000 packets"
        );
        assert_eq!(
            setting_error(json!({"jitter_distribution": "pareto"})),
            "jitter_distribution: \"pareto\" is not known; allowed: \"uniform\", \"normal\""
        );
        assert_eq!(
            setting_error(json!({"errors_in": "header"})),
            "errors_in: \"header\" is not known; allowed: \"frame\", \"payload\""
        );
        assert_eq!(
            setting_error(json!({"reorder": 1})),
            "reorder: 1 is not known; allowed: true, false"
        );
        assert_eq!(
            setting_error(json!({"latency": 1})),
            "latency: unknown key; allowed: delay_us, jitter_us, jitter_distribution, reorder, rate_bps, loss, ber, errors_in, \
             spare_retransmissions, queue_packets, \
             ge_enter, ge_leave, ge_loss, ge_ber, ge_good_us, ge_bad_us, duplicate, dama_frame_us, dama_delay_us, dama_cra_bps"
        );
        assert_eq!(
            setting_error(json!({"ge_leave": 0})),
            "ge_leave: 0 is out of range; allowed: 0.000001 to 1"
        );
    }
}
