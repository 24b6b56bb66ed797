// SPDX-License-Identifier: Apache-2.0
//! Values of leaves: JSON, null where there is none; what a leaf takes, and the encodings in which it travels.
//!
//! Trees of JSON: made of leaves (RFC 7951), and taken apart into them.

use std::borrow::Cow;

use device::{LinkLayer, SchedulerKind};
use p4rt::proto::gnmi::typed_value::Value as Wire;
use p4rt::proto::gnmi::{Encoding, Path, PathElem, TypedValue};
use serde::Serialize;
use serde_json::Value as Json;
use tonic::Status;

use crate::path::{bare, format, one_of, Node, Pattern, Step};
use crate::select::{Found, Selection};
use crate::view::View;

/// What a leaf takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// One of a few words.
    Word(&'static [&'static str]),
    Bool,
    U32,
    U64,
}

/// What a leaf's value is made of.
pub trait Scalar: Serialize {
    const KIND: Kind;
}

macro_rules! scalars {
    ($($type:ty: $kind:expr;)*) => {$(
        impl Scalar for $type {
            const KIND: Kind = $kind;
        }
    )*};
}

scalars! {
    String: Kind::Text;
    &'static str: Kind::Text;
    bool: Kind::Bool;
    u32: Kind::U32;
    u64: Kind::U64;
    LinkLayer: Kind::Word(LinkLayer::NAMES);
    SchedulerKind: Kind::Word(SchedulerKind::NAMES);
}

impl<T: Scalar> Scalar for Option<T> {
    const KIND: Kind = T::KIND;
}

impl Kind {
    /// For people.
    fn describe(self) -> String {
        match self {
            Kind::Text => "a string".to_owned(),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Bool => "a boolean".to_owned(),
            Kind::U32 => format!("a whole number from 0 to {}", u32::MAX),
            Kind::U64 => format!("a whole number from 0 to {}", u64::MAX),
        }
    }

    /// Reads what a client sent for a leaf of this kind.
    ///
    /// # Errors
    /// A sentence with what was given and what is allowed.
    pub fn decode(self, wire: &TypedValue) -> Result<Json, String> {
        let given = match &wire.value {
            Some(Wire::JsonVal(bytes) | Wire::JsonIetfVal(bytes)) => parse(bytes)?,
            Some(Wire::StringVal(text) | Wire::AsciiVal(text)) => match self {
                // Only JSON has numbers in strings.
                Kind::U64 => return Err(self.wrong(&Json::from(text.as_str()))),
                _ => Json::from(text.as_str()),
            },
            Some(Wire::BoolVal(flag)) => Json::from(*flag),
            Some(Wire::UintVal(number)) => Json::from(*number),
            Some(Wire::IntVal(number)) => Json::from(*number),
            Some(Wire::DoubleVal(number)) => Json::from(*number),
            other => {
                let what = match other {
                    Some(_) => "the value's encoding is not one for a scalar",
                    None => "no value",
                };
                return Err(format!("{what}; {} is allowed", self.describe()));
            }
        };
        self.read(&given)
    }

    fn wrong(self, json: &Json) -> String {
        format!("{json} is not allowed; {} is", self.describe())
    }

    /// Reads a scalar of JSON; 64-bit numbers may be strings (RFC 7951 §6.1).
    ///
    /// # Errors
    /// A sentence with what was given and what is allowed.
    pub fn read(self, json: &Json) -> Result<Json, String> {
        let is_text = |text: &str| match self {
            Kind::Word(words) => words.contains(&text),
            other => other == Kind::Text,
        };
        let value = match (self, json) {
            (Kind::U64, Json::String(text)) => text.parse::<u64>().ok().map(Json::from),
            (Kind::U64, _) => json.as_u64().map(Json::from),
            (Kind::U32, _) => json
                .as_u64()
                .and_then(|n| u32::try_from(n).ok())
                .map(Json::from),
            (Kind::Bool, Json::Bool(_)) => Some(json.clone()),
            (_, Json::String(text)) if is_text(text) => Some(json.clone()),
            _ => None,
        };
        value.ok_or_else(|| self.wrong(json))
    }

    /// A leaf's value, in an encoding of [`supported`].
    pub fn encode(self, value: &Json, encoding: Encoding) -> TypedValue {
        let value = match (encoding, value) {
            (Encoding::Json | Encoding::JsonIetf, _) => {
                return json_value(&self.json(value, encoding), encoding)
            }
            (_, Json::String(text)) => Wire::StringVal(text.clone()),
            (_, Json::Bool(flag)) => Wire::BoolVal(*flag),
            (_, number) => Wire::UintVal(number.as_u64().unwrap_or_default()),
        };
        TypedValue { value: Some(value) }
    }

    /// A leaf's value as it stands in JSON; in JSON_IETF 64-bit numbers are strings (RFC 7951 §6.1).
    pub fn json(self, value: &Json, encoding: Encoding) -> Json {
        match (self, encoding) {
            (Kind::U64, Encoding::JsonIetf) => value.to_string().into(),
            _ => value.clone(),
        }
    }
}

/// # Errors
/// A sentence.
pub fn parse(bytes: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(bytes).map_err(|e| format!("not JSON: {e}"))
}

pub fn json_value(json: &Json, encoding: Encoding) -> TypedValue {
    let bytes = json.to_string().into_bytes();
    let value = match encoding {
        Encoding::JsonIetf => Wire::JsonIetfVal(bytes),
        _ => Wire::JsonVal(bytes),
    };
    TypedValue { value: Some(value) }
}

/// The encodings that are served.
pub const ENCODINGS: [Encoding; 3] = [Encoding::JsonIetf, Encoding::Json, Encoding::Proto];

/// The encoding of that number, when it is served.
pub fn supported(number: i32) -> Option<Encoding> {
    let encoding = Encoding::try_from(number).ok()?;
    ENCODINGS.contains(&encoding).then_some(encoding)
}

/// Adds a leaf to the tree that lies `depth` elements below the root; null is a tree without leaves. In JSON_IETF names have
/// their module where it changes, and at the top.
pub fn insert(tree: &mut Json, leaf: &Found, view: &View, depth: usize, encoding: Encoding) {
    let (mut at, mut module) = (tree, "");
    let node = leaf.at.node();
    for step in &node.steps[depth..] {
        let name = match encoding == Encoding::JsonIetf && step.module != module {
            true => format!("{}:{}", step.module, step.name),
            false => step.name.to_owned(),
        };
        module = step.module;
        at = &mut at[name];
        let Some((name, of)) = step.key else {
            continue;
        };
        let key = leaf.at.key(view, of).unwrap_or_default();
        let is_its = |entry: &Json| text_of(&entry[name]) == key;
        if at.is_null() {
            *at = Json::Array(Vec::new());
        }
        let Json::Array(entries) = at else { return };
        // Leaves of an entry come one after another, its key first.
        if !entries.last().is_some_and(is_its) {
            entries.push(Json::Null);
        }
        let last = entries.len() - 1;
        at = &mut entries[last];
    }
    *at = node.leaf.kind.json(&leaf.value, encoding);
}

/// A key as it stands in a path.
fn text_of(key: &Json) -> Cow<'_, str> {
    match key {
        Json::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Calls `each` for every leaf in a JSON value at a path: its path, its row, its JSON.
///
/// # Errors
/// What `each` gives, and a sentence naming the path and what is there.
pub fn leaves(
    at: &[PathElem],
    json: &Json,
    each: &mut impl FnMut(Pattern, &'static Node, &Json) -> Result<(), Status>,
) -> Result<(), Status> {
    let wrong = |e: String| {
        let path = format(at);
        let root = if path.is_empty() { "/" } else { "" };
        Status::invalid_argument(format!("{root}{path}: {e}"))
    };
    let path = Path {
        elem: at.to_vec(),
        ..Path::default()
    };
    let here = Selection::new(Pattern::parse(None, &path)?, |_| true);
    let leaf = here.nodes().find(|node| node.steps.len() == at.len());
    if let Some(node) = leaf {
        return each(here.pattern, node, json);
    }
    let Json::Object(members) = json else {
        return Err(wrong(format!("{json} is no object")));
    };
    let steps: Vec<&Step> = here.nodes().map(|node| &node.steps[at.len()]).collect();
    for (name, value) in members {
        let step = steps.iter().find(|step| step.is_named(name));
        let step = step.ok_or_else(|| wrong(format!("{name} {}", one_of(&steps))))?;
        let mut below = |key: Option<(&str, &str)>, value: &Json| {
            let key = key.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let elem = PathElem {
                name: step.name.to_owned(),
                key: key.into_iter().collect(),
            };
            leaves(&[at, &[elem]].concat(), value, each)
        };
        let Some((key, _)) = step.key else {
            below(None, value)?;
            continue;
        };
        let Json::Array(entries) = value else {
            return Err(wrong(format!("{name} is a list: an array is allowed")));
        };
        for entry in entries {
            let mut members = entry.as_object().into_iter().flatten();
            let given = members.find(|(name, _)| bare(name) == key);
            let given = given.ok_or_else(|| wrong(format!("an entry of {name} without {key}")))?;
            below(Some((key, &text_of(given.1))), entry)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_type_in_each_encoding() {
        let rate = Json::from(2_000_000);
        let wire = |encoding| Kind::U64.encode(&rate, encoding).value.unwrap();
        assert_eq!(wire(Encoding::Proto), Wire::UintVal(2_000_000));
        assert_eq!(
            wire(Encoding::JsonIetf),
            Wire::JsonIetfVal(b"\"2000000\"".to_vec())
        );
        assert_eq!(wire(Encoding::Json), Wire::JsonVal(b"2000000".to_vec()));
        for encoding in ENCODINGS {
            let sent = Kind::U64.encode(&rate, encoding);
            assert_eq!(Kind::U64.decode(&sent), Ok(rate.clone()));
        }
        let seven = Json::from(7);
        assert_eq!(Kind::U32.json(&seven, Encoding::JsonIetf), seven);
    }

    #[test]
    fn what_does_not_fit_is_told_with_what_does() {
        let of = |value| TypedValue { value: Some(value) };
        for (kind, value, text) in [
            (
                Kind::U32,
                Wire::IntVal(-1),
                "-1 is not allowed; a whole number from 0 to 4294967295 is",
            ),
            (
                Kind::U32,
                Wire::UintVal(1 << 32),
                "4294967296 is not allowed; a whole number from 0 to 4294967295 is",
            ),
            (
                Kind::Word(&["strict", "drr"]),
                Wire::StringVal("fq".to_owned()),
                "\"fq\" is not allowed; one of strict, drr is",
            ),
            (
                Kind::Bool,
                Wire::JsonIetfVal(b"\"true\"".to_vec()),
                "\"true\" is not allowed; a boolean is",
            ),
            (
                Kind::U64,
                Wire::DoubleVal(1.5),
                "1.5 is not allowed; a whole number from 0 to 18446744073709551615 is",
            ),
        ] {
            assert_eq!(kind.decode(&of(value)), Err(text.to_owned()));
        }
        let error = Kind::Bool.decode(&of(Wire::JsonVal(b"{".to_vec())));
        assert!(error.unwrap_err().starts_with("not JSON: "));
    }
}

#[cfg(test)]
mod json_tests {
    use super::*;
    use crate::path::parse;
    use serde_json::json;

    fn texts(at: &str, json: &Json) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        leaves(&parse(at).elem, json, &mut |path, _, value| {
            found.push(format!("{}={value}", path.text()));
            Ok(())
        })
        .map_err(|e| e.message().to_owned())?;
        Ok(found)
    }

    #[test]
    fn a_tree_is_its_leaves() {
        let value = json!({"openconfig-interfaces:interface": [
            {"name": "s1-eth1", "config": {"enabled": false}},
            {"name": "s1-eth2", "fairlane-port:port": {"config": {"queue-cells": "7"}}},
        ]});
        assert_eq!(
            texts("/interfaces", &value).unwrap(),
            [
                "/interfaces/interface[name=s1-eth1]/name=\"s1-eth1\"",
                "/interfaces/interface[name=s1-eth1]/config/enabled=false",
                "/interfaces/interface[name=s1-eth2]/name=\"s1-eth2\"",
                "/interfaces/interface[name=s1-eth2]/port/config/queue-cells=\"7\"",
            ]
        );
        let leaf = "/interfaces/interface[name=a]/config/enabled";
        assert_eq!(texts(leaf, &json!(true)).unwrap(), [format!("{leaf}=true")]);
    }

    #[test]
    fn what_is_no_leaf_is_told() {
        for (at, value, text) in [
            (
                "/interfaces/interface[name=a]/config",
                json!({"enable": true}),
                "/interfaces/interface[name=a]/config: enable is unknown; known: name, type, enabled, forwarding-viable",
            ),
            (
                "/interfaces",
                json!({"interface": {"name": "a"}}),
                "/interfaces: interface is a list: an array is allowed",
            ),
            (
                "/interfaces",
                json!({"interface": [{"config": {}}]}),
                "/interfaces: an entry of interface without name",
            ),
            ("/interfaces", json!(5), "/interfaces: 5 is no object"),
        ] {
            assert_eq!(texts(at, &value).unwrap_err(), text);
        }
    }
}
