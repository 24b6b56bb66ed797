// SPDX-License-Identifier: Apache-2.0
//! Trees of JSON: made of leaves (RFC 7951), and taken apart into them.

use crate::path::{bare, format, one_of, Pattern};
use crate::schema::{nodes, Node, Step};
use crate::select::Found;
use crate::view::View;
use p4rt::proto::gnmi::{Path, PathElem};
use serde_json::Value as Json;
use tonic::Status;

/// Adds a leaf to the tree that lies `depth` elements below the root; null is a tree without leaves. With `ietf` names have
/// their module where it changes, and at the top.
pub fn insert(tree: &mut Json, leaf: &Found, view: &View, depth: usize, ietf: bool) {
    let (mut at, mut module) = (tree, "");
    for step in &leaf.at.node().steps[depth..] {
        let name = match ietf && step.module != module {
            true => format!("{}:{}", step.module, step.name),
            false => step.name.to_owned(),
        };
        module = step.module;
        at = &mut at[name];
        let Some((name, of)) = step.key else {
            continue;
        };
        let key = leaf.at.key(view, of).unwrap_or_default();
        let is_its = |entry: &Json| match &entry[name] {
            Json::String(text) => *text == key,
            other => other.to_string() == key,
        };
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
    *at = leaf.value.json(ietf);
}

/// Calls `each` for every leaf in a JSON value at a path: its path, its row, its JSON.
///
/// # Errors
/// What `each` gives, and a sentence naming the path and what is there.
pub fn leaves(
    at: &Path,
    json: &Json,
    each: &mut impl FnMut(&Path, &'static Node, &Json) -> Result<(), Status>,
) -> Result<(), Status> {
    let depth = at.elem.len();
    let wrong = |e: String| {
        let path = format(at);
        let root = if path.is_empty() { "/" } else { "" };
        Status::invalid_argument(format!("{root}{path}: {e}"))
    };
    let pattern = Pattern::parse(None, at)?;
    let here: Vec<&'static Node> = nodes().iter().filter(|n| pattern.may_match(n)).collect();
    if let Some(node) = here.iter().find(|node| node.steps.len() == depth) {
        return each(at, node, json);
    }
    let Json::Object(members) = json else {
        return Err(wrong(format!("{json} is no object")));
    };
    let steps: Vec<&Step> = here.iter().map(|node| &node.steps[depth]).collect();
    for (name, value) in members {
        let step = steps.iter().find(|step| step.is_named(name));
        let step = step.ok_or_else(|| wrong(format!("{name} {}", one_of(&steps))))?;
        let mut below = |key: Option<(&str, String)>, value: &Json| {
            let mut path = at.clone();
            path.elem.push(PathElem {
                name: step.name.to_owned(),
                key: key.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
            });
            leaves(&path, value, each)
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
            let text = given.1.as_str().map(str::to_owned);
            below(
                Some((key, text.unwrap_or_else(|| given.1.to_string()))),
                entry,
            )?;
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
        leaves(&parse(at), json, &mut |path, _, value| {
            found.push(format!("{}={value}", format(path)));
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
