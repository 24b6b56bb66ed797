// SPDX-License-Identifier: Apache-2.0
//! Trees of JSON: made of leaves (RFC 7951), and taken apart into them.

use crate::path::{bare, format, one_of, Pattern};
use crate::schema::{Node, Step};
use crate::select::{Found, Selection};
use crate::view::View;
use p4rt::proto::gnmi::{Encoding, Path, PathElem};
use serde_json::Value as Json;
use std::borrow::Cow;
use tonic::Status;

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
