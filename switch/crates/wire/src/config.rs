// SPDX-License-Identifier: Apache-2.0
//! `links.json`: which links there are, between which interfaces, with which settings.

use crate::settings::{self, SettingError};
use crate::traces;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::Path;
use traffic::link::LinkOptions;

/// One emulated link.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkConfig {
    pub name: String,
    /// Interfaces of the ends a and b.
    pub interfaces: [String; 2],
    /// Settings of a_to_b and of b_to_a.
    pub options: [LinkOptions; 2],
}

/// A file that cannot be used; one sentence with the place in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// Reads and checks the whole file.
///
/// # Errors
/// [`ConfigError`] with the file and the JSON pointer of the first fault.
pub fn read(path: &Path) -> Result<Vec<LinkConfig>, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| ConfigError(format!("{}: cannot be read: {e}", path.display())))?;
    parse(&text)
        .map_err(|ConfigError(message)| ConfigError(format!("{}: {message}", path.display())))
}

/// Parses the file's text.
///
/// # Errors
/// [`ConfigError`] with the JSON pointer of the first fault.
pub fn parse(text: &str) -> Result<Vec<LinkConfig>, ConfigError> {
    let root: Value =
        serde_json::from_str(text).map_err(|e| ConfigError(format!("not valid JSON: {e}")))?;
    let root = object(&root, "", &["links", "traces"])?;
    read_traces(root.get("traces"))?;
    let links = member(root, "", "links")?
        .as_array()
        .ok_or_else(|| fault("/links", "must be a list of links"))?;
    if links.is_empty() {
        return Err(fault("/links", "is empty; at least one link is needed"));
    }
    let mut parsed: Vec<LinkConfig> = Vec::with_capacity(links.len());
    let mut used: HashMap<String, String> = HashMap::new();
    for (i, link) in links.iter().enumerate() {
        let here = format!("/links/{i}");
        let link = parse_link(link, &here)?;
        if parsed.iter().any(|other| other.name == link.name) {
            return Err(fault(
                &format!("{here}/name"),
                &format!("\"{}\" is the name of two links", link.name),
            ));
        }
        for (end, interface) in ["a", "b"].iter().zip(&link.interfaces) {
            let place = format!("{here}/{end}/interface");
            if let Some(other) = used.insert(interface.clone(), place.clone()) {
                return Err(fault(
                    &place,
                    &format!("\"{interface}\" is used already, at {other}"),
                ));
            }
        }
        parsed.push(link);
    }
    Ok(parsed)
}

/// Reads the traces that are not in force from the start, so that a later change to one of them takes no time.
fn read_traces(names: Option<&Value>) -> Result<(), ConfigError> {
    let Some(names) = names else {
        return Ok(());
    };
    let names = names
        .as_array()
        .ok_or_else(|| fault("/traces", "must be a list of files"))?;
    for (i, name) in names.iter().enumerate() {
        let here = format!("/traces/{i}");
        traces::trace(&text(name, &here)?).map_err(|message| fault(&here, &message))?;
    }
    Ok(())
}

fn parse_link(value: &Value, here: &str) -> Result<LinkConfig, ConfigError> {
    let link = object(value, here, &["name", "a", "b", "a_to_b", "b_to_a"])?;
    let name = text(member(link, here, "name")?, &format!("{here}/name"))?;
    let interface = |end: &str| {
        let here = format!("{here}/{end}");
        let end = object(
            member(link, here.trim_end_matches(&format!("/{end}")), end)?,
            &here,
            &["interface"],
        )?;
        text(
            member(end, &here, "interface")?,
            &format!("{here}/interface"),
        )
    };
    let options = |direction: &str| {
        let here = format!("{here}/{direction}");
        let Some(value) = link.get(direction) else {
            return Ok(LinkOptions::default());
        };
        let settings = value
            .as_object()
            .ok_or_else(|| fault(&here, "must be an object of settings"))?;
        settings::changed(&LinkOptions::default(), settings)
            .map_err(|SettingError { key, message }| fault(&format!("{here}/{key}"), &message))
    };
    Ok(LinkConfig {
        name,
        interfaces: [interface("a")?, interface("b")?],
        options: [options("a_to_b")?, options("b_to_a")?],
    })
}

fn fault(place: &str, message: &str) -> ConfigError {
    match place {
        "" => ConfigError(message.to_owned()),
        _ => ConfigError(format!("{place}: {message}")),
    }
}

fn object<'a>(
    value: &'a Value,
    here: &str,
    keys: &[&str],
) -> Result<&'a Map<String, Value>, ConfigError> {
    let keys_text = keys.join(", ");
    let object = value
        .as_object()
        .ok_or_else(|| fault(here, &format!("must be an object with: {keys_text}")))?;
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(fault(
            &format!("{here}/{key}"),
            &format!("unknown key; allowed: {keys_text}"),
        )),
        None => Ok(object),
    }
}

fn member<'a>(
    object: &'a Map<String, Value>,
    here: &str,
    key: &str,
) -> Result<&'a Value, ConfigError> {
    object
        .get(key)
        .ok_or_else(|| fault(here, &format!("the key \"{key}\" is missing")))
}

fn text(value: &Value, here: &str) -> Result<String, ConfigError> {
    match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(fault(
            here,
            &format!("{value} is not a name; allowed: a text that is not empty"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_full_file_is_read() {
        let links = parse(
            r#"{"links": [{"name": "s1-s2", "a": {"interface": "w0a"}, "b": {"interface": "w0b"},
                "a_to_b": {"delay_us": 5000, "rate_bps": 2e6, "queue_packets": 50}}]}"#,
        )
        .unwrap();
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].interfaces, ["w0a", "w0b"]);
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
        assert_eq!(error("[]"), "must be an object with: links, traces");
        assert_eq!(error("{}"), "the key \"links\" is missing");
        assert_eq!(
            error(r#"{"links": []}"#),
            "/links: is empty; at least one link is needed"
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
}
