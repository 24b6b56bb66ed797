// SPDX-License-Identifier: Apache-2.0
//! Set: deletes, then replaces, then updates, all of them or none (gNMI 0.10 §3.4).

use crate::get::check_there;
use crate::json;
use crate::leaf::Candidate;
use crate::path::{format, Pattern};
use crate::schema::{Key, Node};
use crate::select::{Instance, Selection};
use crate::value::Value;
use crate::view::{now_ns, View, Viewer, Wants};
use device::{Device, Nanos, PortConfig};
use p4rt::proto::gnmi::typed_value::Value as Wire;
use p4rt::proto::gnmi::update_result::Operation;
use p4rt::proto::gnmi::{Path, SetRequest, SetResponse, TypedValue, UpdateResult};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tokio::sync::Mutex;
use tonic::Status;

/// Most leaves that all operations of a request name.
const LEAVES_MAX: usize = 4_000_000;
/// Queues that are added, or get a weight, between two packets: less than 100 µs of work.
const QUEUES_A_CALL: usize = 256;

/// Most operations in one request.
const OPERATIONS_MAX: usize = 10_000;

/// Applies Sets one after another.
#[derive(Default)]
pub struct Setter {
    one_at_a_time: Mutex<()>,
}

impl Setter {
    /// Runs in a task of its own: a client that goes away in the middle leaves nothing half applied.
    ///
    /// # Errors
    /// INVALID_ARGUMENT, NOT_FOUND or PERMISSION_DENIED with the path; then nothing was changed.
    pub async fn set(
        self: &Arc<Self>,
        viewer: &Arc<Viewer>,
        request: SetRequest,
    ) -> Result<SetResponse, Status> {
        let (setter, viewer) = (self.clone(), viewer.clone());
        tokio::spawn(async move { setter.all_or_none(&viewer, request).await })
            .await
            .map_err(|e| Status::internal(format!("the Set failed: {e}")))?
    }

    async fn all_or_none(
        &self,
        viewer: &Viewer,
        request: SetRequest,
    ) -> Result<SetResponse, Status> {
        let _turn = self.one_at_a_time.lock().await;
        if let Some(update) = request.union_replace.first() {
            let path = update.path.as_ref().map(format).unwrap_or_default();
            return Err(Status::unimplemented(format!(
                "{path}: union_replace is not served; replace and update are"
            )));
        }
        let count = request.delete.len() + request.replace.len() + request.update.len();
        if count > OPERATIONS_MAX {
            return Err(Status::invalid_argument(format!(
                "{count} operations; at most {OPERATIONS_MAX} are allowed in one request"
            )));
        }
        let view = viewer.view(Wants::ALL).await?;
        let drafted = view.clone();
        // It may take a while, and others are served meanwhile.
        let draft = move || Draft::new(&drafted).all(request);
        let drafted = tokio::task::spawn_blocking(draft).await;
        let drafted = drafted.map_err(|e| Status::internal(format!("the Set failed: {e}")))?;
        let (after, response) = drafted?;
        apply(viewer, &view, after).await?;
        Ok(response)
    }
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
        let prefix = request.prefix.as_ref();
        let mut response = Vec::new();
        let deletes = request.delete.iter();
        let deletes = deletes.map(|path| (Operation::Delete, Some(path), None));
        let replaces = request.replace.iter().map(|u| (Operation::Replace, u));
        let updates = request.update.iter().map(|u| (Operation::Update, u));
        let updates = replaces.chain(updates);
        let updates = updates.map(|(op, u)| (op, u.path.as_ref(), u.val.as_ref()));
        for (op, path, value) in deletes.chain(updates) {
            let path = path.ok_or_else(|| invalid("an update without a path".to_owned()))?;
            if op != Operation::Update {
                self.reset(prefix, path)?;
            }
            if op != Operation::Delete {
                self.assign(prefix, path, value)?;
            }
            response.push(UpdateResult {
                path: Some(path.clone()),
                op: op.into(),
                ..UpdateResult::default()
            });
        }
        for ((port, queue), text) in &self.named {
            let queues = self.after[*port].config.queues;
            if *queue >= queues {
                return Err(invalid(format!(
                    "{text}: there is no queue {queue}; it has {queues}, from 0 on"
                )));
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
        match self.leaves <= LEAVES_MAX {
            true if instances.is_empty() => check_there(selection, self.view).map(|()| instances),
            true => Ok(instances),
            false => Err(Status::resource_exhausted(format!(
                "{}: with what the operations before it name these are more than {LEAVES_MAX} leaves; send fewer at a time",
                selection.pattern.text()
            ))),
        }
    }

    /// Gives one instance a value, or its default; `names` it is by a path of its own.
    fn put(
        &mut self,
        at: Instance,
        value: Option<Value>,
        text: &str,
        names: bool,
    ) -> Result<(), Status> {
        let Some(candidate) = self.after.get_mut(at.port) else {
            return Err(invalid(format!("{text}: it is read-only")));
        };
        let assigned = candidate.assign(self.view, at, value);
        assigned.map_err(|e| invalid(format!("{text}: {e}")))?;
        if names && at.node().is_of_queue() {
            let named = self.named.entry((at.port, at.member));
            named.or_insert_with(|| text.to_owned());
        }
        Ok(())
    }

    /// Gives all that can be written at or below a path its default.
    fn reset(&mut self, prefix: Option<&Path>, path: &Path) -> Result<(), Status> {
        let pattern = exact(prefix, path)?;
        let text = pattern.text().to_owned();
        let one_queue = pattern.names(Key::Queue);
        let selection = Selection::new(pattern, Node::is_writable);
        if selection.is_empty() {
            return Err(invalid(format!("{text}: it is read-only")));
        }
        let instances = self.instances(&selection)?;
        let mut all = instances.into_iter();
        all.try_for_each(|at| self.put(at, None, &text, one_queue))
    }

    /// Assigns a leaf, or all leaves in a tree of JSON.
    fn assign(
        &mut self,
        prefix: Option<&Path>,
        path: &Path,
        value: Option<&TypedValue>,
    ) -> Result<(), Status> {
        let elem = prefix.into_iter().chain([path]);
        let whole = Path {
            elem: elem.flat_map(|part| part.elem.iter().cloned()).collect(),
            ..Path::default()
        };
        let pattern = exact(prefix, path)?;
        let wrong = |e: String| invalid(format!("{}: {e}", pattern.text()));
        let value = value.ok_or_else(|| wrong("an update without a value".to_owned()))?;
        let is_leaf = |node: &Node| node.steps.len() == whole.elem.len();
        if let Some(node) = Selection::new(pattern.clone(), is_leaf).nodes().next() {
            let value = node.leaf.kind.decode(value).map_err(wrong)?;
            return self.put_at(&whole, value);
        }
        let (Some(Wire::JsonIetfVal(bytes)) | Some(Wire::JsonVal(bytes))) = &value.value else {
            let text = "a value for more than one leaf must be JSON or JSON_IETF";
            return Err(wrong(text.to_owned()));
        };
        let tree = serde_json::from_slice(bytes).map_err(|e| wrong(format!("not JSON: {e}")))?;
        json::leaves(&whole, &tree, &mut |path, node, json| {
            let value = node.leaf.kind.read_json(json);
            let value = value.map_err(|e| invalid(format!("{}: {e}", format(path))))?;
            self.put_at(path, value)
        })
    }

    fn put_at(&mut self, path: &Path, value: Value) -> Result<(), Status> {
        let pattern = exact(None, path)?;
        let text = pattern.text().to_owned();
        let selection = Selection::new(pattern, |node| node.steps.len() == path.elem.len());
        let at = self.instances(&selection)?.pop();
        let at = at.ok_or_else(|| Status::not_found(format!("{text}: there is no such place")))?;
        self.put(at, Some(value), &text, true)
    }
}

fn invalid(text: String) -> Status {
    Status::invalid_argument(text)
}

/// # Errors
/// INVALID_ARGUMENT for a path that could name several instances.
fn exact(prefix: Option<&Path>, path: &Path) -> Result<Pattern, Status> {
    let pattern = Pattern::parse(prefix, path)?;
    if pattern.is_exact() {
        return Ok(pattern);
    }
    let text = pattern.text();
    Err(invalid(format!(
        "{text}: a Set takes no wildcards, and lists with their keys alone"
    )))
}

/// What a Set changes of a port.
struct Change {
    port: u32,
    name: String,
    old: Candidate,
    new: Candidate,
}

/// Links first, as the kernel may refuse; what it did is undone when something after it fails.
async fn apply(viewer: &Viewer, view: &View, after: Vec<Candidate>) -> Result<(), Status> {
    let changes = view.ports.iter().zip(after).map(|(port, new)| Change {
        port: port.interface.port,
        name: port.interface.name.clone(),
        old: Candidate::new(port),
        new,
    });
    let changes: Vec<Change> = changes.filter(|c| c.old != c.new).collect();
    let (mut result, mut set) = (Ok(()), Vec::new());
    for change in changes.iter().filter(|c| c.old.enabled != c.new.enabled) {
        let (name, up) = (change.name.clone(), change.new.enabled);
        if let Err(error) = set_link(viewer, &name, up).await {
            let text = format!(
                "/interfaces/interface[name={name}]/config/enabled: the system refuses to set it to {up}: {error}"
            );
            result = Err(match error.kind() {
                io::ErrorKind::PermissionDenied => Status::permission_denied(text),
                _ => Status::internal(text),
            });
            break;
        }
        set.push((name, !up));
    }
    if result.is_ok() {
        result = configure(viewer, changes).await;
    }
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
    for change in &changes {
        let (port, new, mut before) = (change.port, change.new.config, change.old.config);
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
    let weights = changes.iter().flat_map(|Change { port, new, .. }| {
        let weights = new.weights.range(..new.config.queues);
        weights.map(|(queue, weight)| (*port, *queue, *weight))
    });
    let weights: Vec<(u32, usize, u32)> = weights.collect();
    let all = move |device: &mut Device, now| {
        for (change, seen) in changes.iter().zip(&grown) {
            unchanged(device, change.port, seen)?;
        }
        for Change { port, old, new, .. } in &changes {
            let set = device.set_port(now, *port, new.config);
            set.map_err(|e| e.message)?;
            if old.enabled != new.enabled {
                device.set_port_up(*port, new.enabled);
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
