// SPDX-License-Identifier: Apache-2.0
//! Get: one notification for each path, in which JSON is a tree and PROTO one update a leaf (gNMI 0.10 §3.3).

use std::collections::HashMap;

use p4rt::bail;
use p4rt::proto::gnmi::get_request::DataType;
use p4rt::proto::gnmi::{
    Encoding, GetRequest, GetResponse, ModelData, Notification, Path, TypedValue, Update,
};
use serde_json::Value as Json;
use tonic::Status;

use crate::path::{format, Node, Part, Pattern, MODELS};
use crate::select::{Found, Selection};
use crate::value::{insert, json_value, supported};
use crate::view::{View, Viewer, Wants};

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
        bail!(
            invalid_argument,
            "{} paths; at most {PATHS_MAX} are allowed in one request",
            paths.len()
        );
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
        selection.check_there(&view)?;
        let found = selection.read(&view, usize::MAX).unwrap_or_default();
        notification.push(Notification {
            timestamp: view.timestamp_ns,
            prefix: target_of(prefix),
            update: match tree_depth(selection, encoding) {
                Some(depth) => trees(found, depth, &view, encoding),
                None => found
                    .iter()
                    .map(|leaf| leaf_update(leaf, &view, encoding))
                    .collect(),
            },
            ..Notification::default()
        });
    }
    Ok(GetResponse {
        notification,
        ..GetResponse::default()
    })
}

/// Elements above the trees of the answer to a path; None: each leaf has a path of its own.
fn tree_depth(selection: &Selection, encoding: Encoding) -> Option<usize> {
    let depth = selection.pattern.depth();
    depth.filter(|_| encoding != Encoding::Proto)
}

/// Nothing is made of what is too long.
///
/// # Errors
/// RESOURCE_EXHAUSTED.
fn check_size(selections: &[Selection], view: &View, encoding: Encoding) -> Result<(), Status> {
    let mut counted: HashMap<String, usize> = HashMap::new();
    let mut left = ANSWER_BYTES;
    for selection in selections {
        let leaf_bytes = match tree_depth(selection, encoding) {
            Some(_) => TREE_LEAF_BYTES,
            None => UPDATE_BYTES,
        };
        let max = left / leaf_bytes;
        let count = counted.entry(selection.pattern.text());
        let leaves = *count.or_insert_with(|| selection.count(view, max));
        if leaves > max {
            bail!(resource_exhausted, "{}: with the paths before it these are too many leaves for one answer; ask for fewer",
                selection.pattern.text());
        }
        left -= leaves * leaf_bytes;
    }
    Ok(())
}

/// One tree for each subtree that lies `depth` elements below the root, in the order in which they were found.
fn trees(found: Vec<Found>, depth: usize, view: &View, encoding: Encoding) -> Vec<Update> {
    let mut indices: HashMap<String, usize> = HashMap::new();
    let mut trees: Vec<(Path, Json)> = Vec::new();
    for leaf in found {
        let path = leaf.at.path(view, depth);
        let index = *indices.entry(format(&path.elem)).or_insert_with(|| {
            trees.push((path, Json::Null));
            trees.len() - 1
        });
        insert(&mut trees[index].1, &leaf, view, depth, encoding);
    }
    let trees = trees.into_iter();
    trees
        .map(|(path, tree)| update(path, json_value(&tree, encoding)))
        .collect()
}

/// A leaf with its whole path.
pub fn leaf_update(leaf: &Found, view: &View, encoding: Encoding) -> Update {
    update(leaf.at.path(view, usize::MAX), leaf.encode(encoding))
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
    let served = MODELS.map(|(name, ..)| name);
    match models.iter().find(|m| !served.contains(&m.name.as_str())) {
        None => Ok(()),
        Some(model) => bail!(
            unimplemented,
            "model \"{}\" is not served; {} are",
            model.name,
            served.join(", ")
        ),
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

#[cfg(test)]
mod tests;
