// SPDX-License-Identifier: Apache-2.0
//! `links.json`: which links there are, between which interfaces, with which settings.

use crate::traces;
use device::config::PORT_MAX;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::Path;
use traffic::link::{LinkOptionError, LinkOptions, LinkSettings, Unit};

/// One emulated link.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkConfig {
    pub name: String,
    /// The ends a and b.
    pub ends: [End; 2],
    /// Settings of a_to_b and of b_to_a.
    pub options: [LinkOptions; 2],
}

/// Where a link ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Frames go through a packet socket on this interface.
    Interface(String),
    /// A port of a switch of the same process.
    Port { switch: String, port: u32 },
}

/// A file that cannot be used; one sentence with the place in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// A switch of the same process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchConfig {
    pub name: String,
    /// Its command line.
    pub arguments: Vec<String>,
}

/// The switches and links of a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkConfig {
    pub switches: Vec<SwitchConfig>,
    pub links: Vec<LinkConfig>,
}

/// Reads and checks a file of switches and links.
///
/// # Errors
/// [`ConfigError`] with the file and the JSON pointer of the first fault.
pub fn read(path: &Path) -> Result<NetworkConfig, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| ConfigError(format!("{}: cannot be read: {e}", path.display())))?;
    parse(&text)
        .map_err(|ConfigError(message)| ConfigError(format!("{}: {message}", path.display())))
}

/// Parses a file of switches and links; there is one of them at least.
///
/// # Errors
/// [`ConfigError`] with the JSON pointer of the first fault.
pub fn parse(text: &str) -> Result<NetworkConfig, ConfigError> {
    let root = json(text)?;
    let root = At::root(&root);
    root.object(&["switches", "links", "traces"])?;
    let switches = match root.get("switches") {
        Some(listed) => parse_switches(&listed)?,
        None => Vec::new(),
    };
    let links = parse_links(&root)?;
    if switches.is_empty() && links.is_empty() {
        let links = root.need("links")?;
        return Err(links.fault("is empty; at least one link or switch is needed"));
    }
    Ok(NetworkConfig { switches, links })
}

fn parse_switches(listed: &At<'_>) -> Result<Vec<SwitchConfig>, ConfigError> {
    let mut switches: Vec<SwitchConfig> = Vec::new();
    for at in listed.list("switches")? {
        at.object(&["name", "arguments"])?;
        let (here, name) = (at.need("name")?, at.need("name")?.text()?);
        if switches.iter().any(|other| other.name == name) {
            return Err(here.fault(format!("\"{name}\" is the name of two switches")));
        }
        let arguments = at.need("arguments")?;
        let arguments = arguments.list("texts")?.map(|one| one.text()).collect();
        let arguments: Result<Vec<_>, _> = arguments;
        switches.push(SwitchConfig {
            name,
            arguments: arguments?,
        });
    }
    Ok(switches)
}

fn json(text: &str) -> Result<Value, ConfigError> {
    serde_json::from_str(text).map_err(|e| ConfigError(format!("not valid JSON: {e}")))
}

fn parse_links(root: &At<'_>) -> Result<Vec<LinkConfig>, ConfigError> {
    // Those that do not act from the start too, so that a later change to one of them takes no time.
    if let Some(files) = root.get("traces") {
        for file in files.list("files")? {
            let read = traces::trace(&file.text()?);
            read.map_err(|message| file.fault(message))?;
        }
    }
    let links = root.need("links")?;
    let mut parsed: Vec<LinkConfig> = Vec::new();
    let mut used: HashMap<String, String> = HashMap::new();
    for at in links.list("links")? {
        let link = parse_link(&at)?;
        if parsed.iter().any(|other| other.name == link.name) {
            let message = format!("\"{}\" is the name of two links", link.name);
            return Err(at.below("name", at.value).fault(message));
        }
        for (end, place) in ["a", "b"].iter().zip(&link.ends) {
            let (key, name) = match place {
                End::Interface(name) => ("interface", format!("\"{name}\"")),
                End::Port { switch, port } => ("port", format!("port {port} of \"{switch}\"")),
            };
            let here = at.below(&format!("{end}/{key}"), at.value);
            if let Some(other) = used.insert(name.clone(), here.pointer.clone()) {
                return Err(here.fault(format!("{name} is used already, at {other}")));
            }
        }
        parsed.push(link);
    }
    Ok(parsed)
}

fn parse_link(at: &At) -> Result<LinkConfig, ConfigError> {
    at.object(&["name", "a", "b", "a_to_b", "b_to_a"])?;
    let name = at.need("name")?.text()?;
    let end = |end| {
        let end = at.need(end)?;
        if end.get("switch").is_none() {
            end.object(&["interface"])?;
            return Ok(End::Interface(end.need("interface")?.text()?));
        }
        end.object(&["switch", "port"])?;
        let number = end.need("port")?;
        let port = number
            .value
            .as_u64()
            .and_then(|port| u32::try_from(port).ok());
        let port = port.filter(|port| *port <= PORT_MAX);
        let allowed = format!("{} is no port; allowed: 0 to {PORT_MAX}", number.value);
        Ok(End::Port {
            switch: end.need("switch")?.text()?,
            port: port.ok_or_else(|| number.fault(allowed))?,
        })
    };
    let options = |direction| {
        let perfect = LinkOptions::default();
        let Some(at) = at.get(direction) else {
            return Ok(perfect);
        };
        let settings = at.value.as_object();
        let settings = settings.ok_or_else(|| at.fault("must be an object of settings"))?;
        read_settings(settings)
            .and_then(|settings| settings.applied_to(&perfect, Unit::Us))
            .map_err(|e| at.below(&e.key, at.value).fault(e.message))
    };
    Ok(LinkConfig {
        name,
        ends: [end("a")?, end("b")?],
        options: [options("a_to_b")?, options("b_to_a")?],
    })
}

/// Settings as `links.json` and the control socket have them.
///
/// # Errors
/// The first key that cannot be taken.
pub fn read_settings(object: &Map<String, Value>) -> Result<LinkSettings, LinkOptionError> {
    LinkSettings::read(object, Unit::Us, |file| match file {
        Value::Null => Ok(None),
        Value::String(path) if !path.is_empty() => traces::trace(path).map(Some),
        other => Err(format!(
            "{other} is not a file; allowed: a path, or null for none"
        )),
    })
}

/// A value of the file, and where it is.
struct At<'v> {
    value: &'v Value,
    /// JSON pointer (RFC 6901).
    pointer: String,
}

impl<'v> At<'v> {
    fn root(value: &'v Value) -> At<'v> {
        At {
            value,
            pointer: String::new(),
        }
    }

    fn fault(&self, message: impl std::fmt::Display) -> ConfigError {
        match &*self.pointer {
            "" => ConfigError(message.to_string()),
            pointer => ConfigError(format!("{pointer}: {message}")),
        }
    }

    fn below(&self, key: &str, value: &'v Value) -> At<'v> {
        At {
            value,
            pointer: format!("{}/{key}", self.pointer),
        }
    }

    /// An object of these keys.
    fn object(&self, keys: &[&str]) -> Result<(), ConfigError> {
        let allowed = keys.join(", ");
        let object = self.value.as_object();
        let object =
            object.ok_or_else(|| self.fault(format!("must be an object with: {allowed}")))?;
        match object.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            Some((key, value)) => {
                let message = format!("unknown key; allowed: {allowed}");
                Err(self.below(key, value).fault(message))
            }
            None => Ok(()),
        }
    }

    fn get(&self, key: &str) -> Option<At<'v>> {
        Some(self.below(key, self.value.get(key)?))
    }

    fn need(&self, key: &str) -> Result<At<'v>, ConfigError> {
        let found = self.get(key);
        found.ok_or_else(|| self.fault(format!("the key \"{key}\" is missing")))
    }

    fn list(&self, of: &str) -> Result<impl Iterator<Item = At<'v>> + '_, ConfigError> {
        let list = self.value.as_array();
        let list = list.ok_or_else(|| self.fault(format!("must be a list of {of}")))?;
        let at = |(i, value): (usize, &'v Value)| self.below(&i.to_string(), value);
        Ok(list.iter().enumerate().map(at))
    }

    fn text(&self) -> Result<String, ConfigError> {
        match self.value.as_str() {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(self.fault(format!(
                "{} is not a name; allowed: a text that is not empty",
                self.value
            ))),
        }
    }
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
        let interface = |name: &str| End::Interface(name.to_owned());
        assert_eq!(links[0].ends, ["w0a", "w0b"].map(interface));
        assert_eq!(links[0].options[0].delay_ns, 5_000_000);
        assert_eq!(links[0].options[0].rate_bps, 2_000_000);
        assert_eq!(links[0].options[1], LinkOptions::default());
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        assert_eq!(
            error("{"),
            "not valid JSON: EOF while parsing an object at line 1 column 1"
        );
        assert_eq!(
            error("[]"),
            "must be an object with: switches, links, traces"
        );
        assert_eq!(error("{}"), "the key \"links\" is missing");
        assert_eq!(
            error(r#"{"links": []}"#),
            "/links: is empty; at least one link or switch is needed"
        );
        assert_eq!(
            error(r#"{"links": [{}]}"#),
            "/links/0: the key \"name\" is missing"
        );
        assert_eq!(
            error(r#"{"links": [{"name": "x", "b": {"interface": "p"}}]}"#),
            "/links/0: the key \"a\" is missing"
        );
        assert_eq!(
            error(r#"{"links": [{"name": "x", "a": {"interface": ""}, "b": {"interface": "p"}}]}"#),
            "/links/0/a/interface: \"\" is not a name; allowed: a text that is not empty"
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
            error(r#"{"links": [], "traces": ["/nowhere.trace"]}"#),
            "/traces/0: /nowhere.trace: cannot be read: No such file or directory (os error 2)"
        );
        let other = r#"{"name": "x", "a": {"interface": "p"}, "b": {"interface": "q"}}"#;
        let twin = r#"{"name": "x", "a": {"interface": "r"}, "b": {"interface": "s"}}"#;
        assert_eq!(
            error(&format!(r#"{{"links": [{other}, {twin}]}}"#)),
            "/links/1/name: \"x\" is the name of two links"
        );
        assert_eq!(
            error(r#"{"links": [{"name": "x", "speed": 1}]}"#),
            "/links/0/speed: unknown key; allowed: name, a, b, a_to_b, b_to_a"
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
            trace: None,
        };
        assert_eq!(
            changed(&LinkOptions::default(), &options.show(Unit::Us)),
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
        let bad = setting_error(change.clone());
        std::fs::remove_file(&path).unwrap();
        let gone = setting_error(change);
        let options = options.unwrap();
        assert_eq!(options.trace.as_ref().unwrap().opportunities(), 2);
        assert_eq!(
            json!(options.show(Unit::Us))["trace"],
            path.to_str().unwrap()
        );
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
             ge_enter, ge_leave, ge_loss, ge_ber, trace"
        );
        assert_eq!(
            setting_error(json!({"ge_leave": 0})),
            "ge_leave: 0 is out of range; allowed: 0.000001 to 1"
        );
        assert_eq!(
            setting_error(json!({"trace": 5})),
            "trace: 5 is not a file; allowed: a path, or null for none"
        );
    }
}
