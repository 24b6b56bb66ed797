// SPDX-License-Identifier: Apache-2.0
//! Set: deletes, then replaces, then updates, all of them or none (gNMI 0.10 §3.4).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::sync::Arc;

use device::{Device, Nanos, PortConfig};
use p4rt::bail;
use p4rt::proto::gnmi::typed_value::Value as Wire;
use p4rt::proto::gnmi::update_result::Operation;
use p4rt::proto::gnmi::{SetRequest, SetResponse, TypedValue, UpdateResult};
use serde_json::Value as Json;
use tokio::sync::Mutex;
use tokio::task::JoinError;
use tonic::Status;

use crate::leaf::Candidate;
use crate::path::{format, Key, Node, Pattern};
use crate::select::{Instance, Selection};
use crate::value::{leaves, parse};
use crate::view::{now_ns, View, Viewer, Wants};

/// Most leaves that all operations of a request name.
const LEAVES_MAX: usize = 4_000_000;
/// Queues that are added, or get a weight, between two packets: less than 100 µs of work.
const QUEUES_A_CALL: usize = 256;

/// Most operations in one request.
const OPERATIONS_MAX: usize = 10_000;

/// Applies a Set when its turn has come. It runs in a task of its own: a client that goes away in the middle leaves nothing
/// half applied.
///
/// # Errors
/// INVALID_ARGUMENT, NOT_FOUND or PERMISSION_DENIED with the path; then nothing was changed.
pub async fn set(
    turns: &Arc<Mutex<()>>,
    viewer: &Arc<Viewer>,
    request: SetRequest,
) -> Result<SetResponse, Status> {
    let (turns, viewer) = (turns.clone(), viewer.clone());
    let whole = async move {
        let _turn = turns.lock().await;
        all_or_none(&viewer, request).await
    };
    tokio::spawn(whole).await.map_err(failed)?
}

fn failed(error: JoinError) -> Status {
    Status::internal(format!("the Set failed: {error}"))
}

async fn all_or_none(viewer: &Viewer, request: SetRequest) -> Result<SetResponse, Status> {
    if let Some(update) = request.union_replace.first() {
        let path = update.path.as_ref();
        let path = path.map_or(String::new(), |path| format(&path.elem));
        bail!(
            unimplemented,
            "{path}: union_replace is not served; replace and update are"
        );
    }
    let count = request.delete.len() + request.replace.len() + request.update.len();
    if count > OPERATIONS_MAX {
        bail!(
            invalid_argument,
            "{count} operations; at most {OPERATIONS_MAX} are allowed in one request"
        );
    }
    let view = viewer.view(Wants::ALL).await?;
    let drafted = view.clone();
    // It may take a while, and others are served meanwhile.
    let draft = move || Draft::new(&drafted).all(request);
    let drafted = tokio::task::spawn_blocking(draft).await;
    let (after, response) = drafted.map_err(failed)??;
    apply(viewer, &view, after).await?;
    Ok(response)
}

/// The ports as the operations so far would leave them.
struct Draft<'v> {
    view: &'v View,
    after: Vec<Candidate>,
    /// Queues (port, number) that an operation named, and by which path: some of them may be added by a later one.
    named: BTreeMap<(usize, usize), String>,
    /// Leaves that the operations named so far.
    leaves: usize,
}

impl Draft<'_> {
    fn new(view: &View) -> Draft<'_> {
        Draft {
            view,
            after: view.ports.iter().map(Candidate::new).collect(),
            named: BTreeMap::new(),
            leaves: 0,
        }
    }

    /// All operations: the ports as they leave them, and the answer.
    ///
    /// # Errors
    /// Of the first operation that is refused, and INVALID_ARGUMENT for a queue that one named and none adds.
    fn all(mut self, request: SetRequest) -> Result<(Vec<Candidate>, SetResponse), Status> {
        let mut response = Vec::new();
        let deletes = request.delete.into_iter();
        let deletes = deletes.map(|path| (Operation::Delete, Some(path), None));
        let replaces = request.replace.into_iter().map(|u| (Operation::Replace, u));
        let updates = request.update.into_iter().map(|u| (Operation::Update, u));
        let updates = replaces.chain(updates).map(|(op, u)| (op, u.path, u.val));
        for (op, path, value) in deletes.chain(updates) {
            let Some(path) = path else {
                bail!(invalid_argument, "an update without a path");
            };
            let whole = exact(Pattern::parse(request.prefix.as_ref(), &path)?)?;
            if op != Operation::Update {
                self.reset(whole.clone())?;
            }
            if op != Operation::Delete {
                self.assign(whole, value)?;
            }
            response.push(UpdateResult {
                path: Some(path),
                op: op.into(),
                ..UpdateResult::default()
            });
        }
        for ((port, queue), text) in &self.named {
            let queues = self.after[*port].config.queues;
            if *queue >= queues {
                bail!(
                    invalid_argument,
                    "{text}: there is no queue {queue}; it has {queues}, from 0 on"
                );
            }
        }
        let response = SetResponse {
            prefix: request.prefix,
            response,
            timestamp: now_ns(),
            ..SetResponse::default()
        };
        Ok((self.after, response))
    }

    /// The instances of a selection, with the queues that there are by now, or one that the pattern names.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when all operations together name too many.
    fn instances(&mut self, selection: &Selection) -> Result<Vec<Instance>, Status> {
        let mut instances = Vec::new();
        let queues = |port: usize| self.after[port].config.queues;
        selection.each(self.view, queues, |at| instances.push(at));
        self.leaves += instances.len();
        if instances.is_empty() {
            selection.check_there(self.view)?;
        }
        match self.leaves <= LEAVES_MAX {
            true => Ok(instances),
            false => bail!(resource_exhausted, "{}: with what the operations before it name these are more than {LEAVES_MAX} leaves; send fewer at a time",
                selection.pattern.text()),
        }
    }

    /// Gives one instance that a path names a value, or its default.
    fn put(&mut self, at: Instance, value: Option<Json>, path: &Pattern) -> Result<(), Status> {
        let Some(candidate) = self.after.get_mut(at.port) else {
            return Err(invalid(path, "it is read-only"));
        };
        let assigned = candidate.assign(self.view, at, value);
        assigned.map_err(|e| invalid(path, e))?;
        if path.key(at.node(), Key::Queue).is_some() {
            let named = self.named.entry((at.port, at.member));
            named.or_insert_with(|| path.text());
        }
        Ok(())
    }

    /// Gives all that can be written at or below a path its default.
    fn reset(&mut self, path: Pattern) -> Result<(), Status> {
        let selection = Selection::new(path, Node::is_writable);
        let path = &selection.pattern;
        if selection.is_empty() {
            return Err(invalid(path, "it is read-only"));
        }
        let mut all = self.instances(&selection)?.into_iter();
        all.try_for_each(|at| self.put(at, None, path))
    }

    /// Assigns a leaf, or all leaves in a tree of JSON.
    fn assign(&mut self, path: Pattern, value: Option<TypedValue>) -> Result<(), Status> {
        let value = value.ok_or_else(|| invalid(&path, "an update without a value"))?;
        let selection = leaf_at(path);
        let path = &selection.pattern;
        if let Some(node) = selection.nodes().next() {
            let value = node
                .leaf
                .kind
                .decode(&value)
                .map_err(|e| invalid(path, e))?;
            return self.put_at(&selection, value);
        }
        let (Some(Wire::JsonIetfVal(bytes)) | Some(Wire::JsonVal(bytes))) = &value.value else {
            let text = "a value for more than one leaf must be JSON or JSON_IETF";
            return Err(invalid(path, text));
        };
        let tree = parse(bytes).map_err(|e| invalid(path, e))?;
        leaves(path.elems(), &tree, &mut |path, node, json| {
            let value = node.leaf.kind.read(json).map_err(|e| invalid(&path, e))?;
            self.put_at(&leaf_at(exact(path)?), value)
        })
    }

    fn put_at(&mut self, leaf: &Selection, value: Json) -> Result<(), Status> {
        let path = &leaf.pattern;
        let at = self.instances(leaf)?.pop();
        let at = at
            .ok_or_else(|| Status::not_found(format!("{}: there is no such place", path.text())))?;
        self.put(at, Some(value), path)
    }
}

/// The leaf of the schema at a path, where it is one.
fn leaf_at(path: Pattern) -> Selection {
    let depth = path.elems().len();
    Selection::new(path, |node| node.steps.len() == depth)
}

fn invalid(path: &Pattern, text: impl Display) -> Status {
    Status::invalid_argument(format!("{}: {text}", path.text()))
}

/// # Errors
/// INVALID_ARGUMENT for a path that could name several instances.
fn exact(path: Pattern) -> Result<Pattern, Status> {
    match path.is_exact() {
        true => Ok(path),
        false => Err(invalid(
            &path,
            "a Set takes no wildcards, and lists with their keys alone",
        )),
    }
}

/// What a Set changes of a port: what it was, and what it is to be.
type Change = (Candidate, Candidate);

/// Links first, as the kernel may refuse; what it did is undone when something after it fails.
async fn apply(viewer: &Viewer, view: &View, after: Vec<Candidate>) -> Result<(), Status> {
    let changes = view.ports.iter().map(Candidate::new).zip(after);
    let changes: Vec<Change> = changes.filter(|(old, new)| old != new).collect();
    let mut set = Vec::new();
    let all = async {
        for (_, new) in changes
            .iter()
            .filter(|(old, new)| old.enabled != new.enabled)
        {
            let (name, up) = (&new.interface.name, new.enabled);
            set_link(viewer, name, up).await.map_err(|error| {
                let text = format!(
                    "/interfaces/interface[name={name}]/config/enabled: the system refuses to set it to {up}: {error}"
                );
                match error.kind() {
                    io::ErrorKind::PermissionDenied => Status::permission_denied(text),
                    _ => Status::internal(text),
                }
            })?;
            set.push((name.clone(), !up));
        }
        configure(viewer, changes).await
    };
    let result = all.await;
    if result.is_err() {
        for (name, up) in set.into_iter().rev() {
            if let Err(error) = set_link(viewer, &name, up).await {
                tracing::error!("{name} could not be put back as it was: {error}");
            }
        }
    }
    result
}

async fn set_link(viewer: &Viewer, name: &str, up: bool) -> io::Result<()> {
    let (links, name) = (viewer.links().clone(), name.to_owned());
    tokio::task::spawn_blocking(move || links.set_up(&name, up))
        .await
        .map_err(io::Error::other)?
}

/// All ports: first queues are added, in short calls of the device, and stay whatever comes; then all options change in
/// one call, or none, when others changed one since the picture was taken; last the weights, which cannot be refused.
async fn configure(viewer: &Viewer, changes: Vec<Change>) -> Result<(), Status> {
    let mut grown = Vec::with_capacity(changes.len());
    for (old, new) in &changes {
        let (port, new, mut before) = (new.interface.port, new.config, old.config);
        while before.queues < new.queues {
            let seen = before;
            before.queues = new.queues.min(seen.queues + QUEUES_A_CALL);
            let add = move |device: &mut Device, now| {
                unchanged(device, port, &seen)?;
                device.set_port(now, port, before).map_err(|e| e.message)
            };
            call(viewer, add).await?;
        }
        grown.push(before);
    }
    // A queue that one operation added and a later one did not is left out.
    let weights = changes.iter().flat_map(|(_, new)| {
        let weights = new.weights.range(..new.config.queues);
        weights.map(|(queue, weight)| (new.interface.port, *queue, *weight))
    });
    let weights: Vec<(u32, usize, u32)> = weights.collect();
    let all = move |device: &mut Device, now| {
        for ((_, new), seen) in changes.iter().zip(&grown) {
            unchanged(device, new.interface.port, seen)?;
        }
        for (old, new) in &changes {
            let port = new.interface.port;
            let set = device.set_port(now, port, new.config);
            set.map_err(|e| e.message)?;
            if old.enabled != new.enabled {
                device.set_port_up(port, new.enabled);
            }
        }
        Ok(())
    };
    call(viewer, all).await?;
    for some in weights.chunks(QUEUES_A_CALL) {
        let some = some.to_vec();
        let set = move |device: &mut Device, _| {
            for (port, queue, weight) in some {
                let set = device.set_queue_weight(port, queue, weight);
                set.map_err(|e| e.message)?;
            }
            Ok(())
        };
        call(viewer, set).await?;
    }
    Ok(())
}

/// One call of the device.
///
/// # Errors
/// UNAVAILABLE when the switch has stopped, ABORTED with what the call says.
async fn call(
    viewer: &Viewer,
    call: impl FnOnce(&mut Device, Nanos) -> Result<(), String> + Send + 'static,
) -> Result<(), Status> {
    let done = viewer.handle().call(call).await;
    let done = done.map_err(|e| Status::unavailable(e.to_string()))?;
    done.map_err(Status::aborted)
}

/// # Errors
/// A sentence, when a port has other options than those of the picture.
fn unchanged(device: &Device, port: u32, seen: &PortConfig) -> Result<(), String> {
    match device.port(port) == Some(seen) {
        true => Ok(()),
        false => Err(format!(
            "port {port} was changed by another client at the same time; nothing was changed"
        )),
    }
}

#[cfg(test)]
mod tests;
