// SPDX-License-Identifier: Apache-2.0
//! Get: one notification for each path, in which JSON is a tree and PROTO one update a leaf (gNMI 0.10 §3.3).

use crate::json;
use crate::path::{format, Pattern};
use crate::schema::{Node, Part};
use crate::select::{Found, Selection};
use crate::value::{json_value, supported};
use crate::view::{View, Viewer, Wants};
use p4rt::proto::gnmi::get_request::DataType;
use p4rt::proto::gnmi::{
    Encoding, GetRequest, GetResponse, ModelData, Notification, Path, TypedValue, Update,
};
use serde_json::Value as Json;
use std::collections::HashMap;
use tonic::Status;

/// Most paths in one request.
const PATHS_MAX: usize = 1_000;
/// Most leaves in one subscription: some 100 MB.
pub const LEAVES_MAX: usize = 1_000_000;
/// What one answer may take while it is made, and what a leaf takes of it: with a path of its own, and in a tree of JSON.
const ANSWER_BYTES: usize = 256 << 20;
const UPDATE_BYTES: usize = 2 << 10;
const TREE_LEAF_BYTES: usize = 256;

/// # Errors
/// INVALID_ARGUMENT for a path that the schema does not have and for too many, NOT_FOUND for an entry that is not
/// there, UNIMPLEMENTED for an encoding or a model, RESOURCE_EXHAUSTED for an answer that is too long, UNAVAILABLE when
/// the switch has stopped.
pub async fn get(viewer: &Viewer, request: GetRequest) -> Result<GetResponse, Status> {
    let encoding = check_encoding(request.encoding)?;
    check_models(&request.use_models)?;
    let part = match request.r#type() {
        DataType::All => None,
        DataType::Config => Some(Part::Config),
        DataType::State => Some(Part::Applied),
        DataType::Operational => Some(Part::Operational),
    };
    let prefix = request.prefix.as_ref();
    // No path but a prefix: all below the prefix.
    let root = [Path::default()];
    let paths = match request.path.is_empty() {
        true => &root[..],
        false => &request.path,
    };
    if paths.len() > PATHS_MAX {
        let text = format!(
            "{} paths; at most {PATHS_MAX} are allowed in one request",
            paths.len()
        );
        return Err(Status::invalid_argument(text));
    }
    let mut selections = Vec::with_capacity(paths.len());
    for path in paths {
        let pattern = Pattern::parse(prefix, path)?;
        selections.push(Selection::new(pattern, |node| is_in_part(node, part)));
    }
    let wants = selections.iter().map(Selection::wants);
    let view = viewer.view(wants.fold(Wants::default(), Wants::or)).await?;
    check_size(&selections, &view, encoding)?;
    let mut notification = Vec::with_capacity(selections.len());
    for selection in &selections {
        check_there(selection, &view)?;
        let found = selection.read(&view, usize::MAX).unwrap_or_default();
        notification.push(Notification {
            timestamp: view.timestamp_ns,
            prefix: target_of(prefix),
            update: updates(selection, found, &view, encoding),
            ..Notification::default()
        });
    }
    Ok(GetResponse {
        notification,
        ..GetResponse::default()
    })
}

/// Nothing is made of what is too long.
///
/// # Errors
/// RESOURCE_EXHAUSTED.
fn check_size(selections: &[Selection], view: &View, encoding: Encoding) -> Result<(), Status> {
    let mut counted: HashMap<&str, usize> = HashMap::new();
    let mut left = ANSWER_BYTES;
    for selection in selections {
        let pattern = &selection.pattern;
        let is_tree = encoding != Encoding::Proto && pattern.depth().is_some();
        let leaf_bytes = if is_tree {
            TREE_LEAF_BYTES
        } else {
            UPDATE_BYTES
        };
        let max = left / leaf_bytes;
        let count = counted.entry(pattern.text());
        let leaves = *count.or_insert_with(|| selection.count(view, max));
        if leaves > max {
            return Err(Status::resource_exhausted(format!(
                "{}: with the paths before it these are too many leaves for one answer; ask for fewer",
                pattern.text()
            )));
        }
        left -= leaves * leaf_bytes;
    }
    Ok(())
}

fn updates(
    selection: &Selection,
    found: Vec<Found>,
    view: &View,
    encoding: Encoding,
) -> Vec<Update> {
    let depth = match (encoding, selection.pattern.depth()) {
        (Encoding::Proto, _) | (_, None) => {
            let updates = found.iter().map(|leaf| leaf_update(leaf, view, encoding));
            return updates.collect();
        }
        (_, Some(depth)) => depth,
    };
    // One tree for each subtree that the pattern names, in the order in which they were found.
    let mut indices: HashMap<String, usize> = HashMap::new();
    let mut trees: Vec<(Path, Json)> = Vec::new();
    let ietf = encoding == Encoding::JsonIetf;
    for leaf in found {
        let path = leaf.at.path(view, depth);
        let index = *indices.entry(format(&path)).or_insert_with(|| {
            trees.push((path, Json::Null));
            trees.len() - 1
        });
        json::insert(&mut trees[index].1, &leaf, view, depth, ietf);
    }
    let trees = trees.into_iter();
    trees
        .map(|(path, tree)| update(path, json_value(&tree, ietf)))
        .collect()
}

/// A leaf with its whole path.
pub fn leaf_update(leaf: &Found, view: &View, encoding: Encoding) -> Update {
    update(leaf.at.path(view, usize::MAX), leaf.value.encode(encoding))
}

fn update(path: Path, value: TypedValue) -> Update {
    Update {
        path: Some(path),
        val: Some(value),
        ..Update::default()
    }
}

/// The prefix of an answer: paths in it are whole, so only the target is said again.
pub fn target_of(prefix: Option<&Path>) -> Option<Path> {
    let target = prefix?.target.clone();
    (!target.is_empty()).then(|| Path {
        target,
        ..Path::default()
    })
}

/// # Errors
/// UNIMPLEMENTED for one that is not served.
pub fn check_encoding(number: i32) -> Result<Encoding, Status> {
    supported(number).ok_or_else(|| {
        let given = Encoding::try_from(number).map_or("unknown", |e| e.as_str_name());
        Status::unimplemented(format!(
            "encoding {given} is not served; JSON_IETF, JSON and PROTO are"
        ))
    })
}

/// # Errors
/// UNIMPLEMENTED for a model that is not served.
pub fn check_models(models: &[ModelData]) -> Result<(), Status> {
    let served = crate::schema::MODELS.map(|(name, ..)| name);
    match models.iter().find(|m| !served.contains(&m.name.as_str())) {
        None => Ok(()),
        Some(model) => Err(Status::unimplemented(format!(
            "model \"{}\" is not served; {} are",
            model.name,
            served.join(", ")
        ))),
    }
}

/// Whether a leaf is of the part that a Get names.
fn is_in_part(node: &Node, part: Option<Part>) -> bool {
    match part {
        None => true,
        Some(Part::Applied) => node.part != Part::Config,
        Some(part) => node.part == part || node.part == Part::Key,
    }
}

/// # Errors
/// NOT_FOUND when a key names nothing.
pub fn check_there(selection: &Selection, view: &View) -> Result<(), Status> {
    if selection.is_there(view) || !selection.pattern.is_exact() || selection.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = view.ports.iter().map(|p| &*p.interface.name).collect();
    Err(Status::not_found(format!(
        "{}: there is nothing of this name; interfaces are {}, queues have numbers from 0 on",
        selection.pattern.text(),
        names.join(", ")
    )))
}

#[cfg(test)]
mod tests;
