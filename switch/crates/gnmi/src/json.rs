// SPDX-License-Identifier: Apache-2.0
//! Trees of JSON: made of leaves (RFC 7951), and taken apart into them.

use crate::leaf::key_at;
use crate::path::{bare, nearest};
use crate::schema::{nodes, Key, Node, Step};
use crate::select::Found;
use crate::view::View;
use p4rt::proto::gnmi::{Path, PathElem};
use serde_json::{Map, Value as Json};

/// One tree of the leaves that lie `depth` elements below the root; the value itself for a leaf at that depth.
/// With `ietf` names have their module where it changes, and at the top.
pub fn tree<'a>(
    found: impl IntoIterator<Item = &'a Found>,
    view: &View,
    depth: usize,
    ietf: bool,
) -> Json {
    let mut root = Json::Object(Map::new());
    for leaf in found {
        let steps = &leaf.node().steps[depth..];
        let value = leaf.value.json(ietf);
        if steps.is_empty() {
            return value;
        }
        insert(&mut root, steps, "", ietf, value, &|key| {
            key_at(view, leaf.place, key)
                .unwrap_or_default()
                .into_owned()
        });
    }
    finish(&mut root);
    root
}

fn insert(
    at: &mut Json,
    steps: &[Step],
    module: &str,
    ietf: bool,
    value: Json,
    key: &dyn Fn(Key) -> String,
) {
    let (Some((step, rest)), Json::Object(object)) = (steps.split_first(), at) else {
        return;
    };
    let name = match ietf && step.module != module {
        true => format!("{}:{}", step.module, step.name),
        false => step.name.to_owned(),
    };
    if rest.is_empty() {
        object.insert(name, value);
        return;
    }
    let child = object.entry(name).or_insert_with(|| match step.key {
        Some(_) => Json::Array(Vec::new()),
        None => Json::Object(Map::new()),
    });
    let child = match (child, step.key) {
        (Json::Array(entries), Some((_, of))) => {
            // Leaves of an entry come one after another; its key leaf is one of them.
            let wanted = key(of);
            let named = |entry: &Json| entry[KEY] == wanted.as_str();
            if !entries.last().is_some_and(named) {
                let mut entry = Map::new();
                entry.insert(KEY.to_owned(), Json::from(wanted));
                entries.push(Json::Object(entry));
            }
            entries.last_mut()
        }
        (child, _) => Some(child),
    };
    if let Some(child) = child {
        insert(child, rest, step.module, ietf, value, key);
    }
}

/// Marks an entry of a list while the tree is made.
const KEY: &str = "\u{0}key";

/// Takes the marks out again.
fn finish(json: &mut Json) {
    match json {
        Json::Object(object) => {
            object.shift_remove(KEY);
            object.values_mut().for_each(finish);
        }
        Json::Array(entries) => entries.iter_mut().for_each(finish),
        _ => {}
    }
}

/// The leaves in a JSON value at a path: the path of each, the leaf's row, its JSON.
///
/// # Errors
/// A sentence naming the path and what is there.
pub fn leaves(at: &Path, json: &Json) -> Result<Vec<(Path, &'static Node, Json)>, String> {
    let mut out = Vec::new();
    flatten(at.clone(), json, &mut out)?;
    Ok(out)
}

fn flatten(
    at: Path,
    json: &Json,
    out: &mut Vec<(Path, &'static Node, Json)>,
) -> Result<(), String> {
    let depth = at.elem.len();
    let text = || match crate::path::format(&at) {
        text if text.is_empty() => "/".to_owned(),
        text => text,
    };
    let here: Vec<&'static Node> = nodes().iter().filter(|node| is_at(node, &at)).collect();
    if let Some(node) = here.iter().find(|node| node.steps.len() == depth) {
        out.push((at, node, json.clone()));
        return Ok(());
    }
    let Json::Object(members) = json else {
        return Err(format!("{}: {json} is no object", text()));
    };
    for (name, value) in members {
        let step = here.iter().find_map(|node| {
            let step = &node.steps[depth];
            let fits = match name.split_once(':') {
                Some((module, name)) => step.name == name && step.module == module,
                None => step.name == name,
            };
            fits.then_some(step)
        });
        let Some(step) = step else {
            let mut there: Vec<&str> = here.iter().map(|node| node.steps[depth].name).collect();
            there.dedup();
            let near = nearest(bare(name), there.iter().copied())
                .map(|near| format!("; did you mean {near}?"))
                .unwrap_or_default();
            let there = there.join(", ");
            return Err(format!(
                "{}: there is no \"{name}\" there, but {there}{near}",
                text()
            ));
        };
        let below = |key: Option<(&str, String)>| {
            let mut path = at.clone();
            path.elem.push(PathElem {
                name: step.name.to_owned(),
                key: key.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
            });
            path
        };
        let Some((key, _)) = step.key else {
            flatten(below(None), value, out)?;
            continue;
        };
        let Json::Array(entries) = value else {
            return Err(format!("{}: {name} is a list: an array is allowed", text()));
        };
        for entry in entries {
            let given = entry
                .as_object()
                .and_then(|entry| entry.iter().find(|(name, _)| bare(name) == key))
                .map(|(_, value)| match value {
                    Json::String(text) => text.clone(),
                    other => other.to_string(),
                });
            let given =
                given.ok_or_else(|| format!("{}: an entry of {name} without {key}", text()))?;
            flatten(below(Some((key, given))), entry, out)?;
        }
    }
    Ok(())
}

/// Whether a leaf lies at or below a path without wildcards.
fn is_at(node: &Node, path: &Path) -> bool {
    path.elem.len() <= node.steps.len()
        && path
            .elem
            .iter()
            .zip(&node.steps)
            .all(|(elem, step)| bare(&elem.name) == step.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{format, parse};
    use serde_json::json;

    fn texts(at: &str, json: &Json) -> Result<Vec<String>, String> {
        let found = leaves(&parse(at), json)?;
        Ok(found
            .iter()
            .map(|(path, _, value)| format!("{}={value}", format(path)))
            .collect())
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
                "/interfaces/interface[name=a]/config: there is no \"enable\" there, but name, type, enabled, forwarding-viable; did you mean enabled?",
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
