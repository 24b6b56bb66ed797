// SPDX-License-Identifier: Apache-2.0
//! Set: deletes, then replaces, then updates, all of them or none (gNMI 0.10 §3.4).

use crate::json;
use crate::leaf::{Candidate, Place};
use crate::path::{format, Pattern};
use crate::schema::{nodes, Key};
use crate::select::Selection;
use crate::value::Value;
use crate::view::{now_ns, View, Viewer, Wants};
use device::{Device, PortConfig};
use p4rt::proto::gnmi::typed_value::Value as Wire;
use p4rt::proto::gnmi::update_result::Operation;
use p4rt::proto::gnmi::{Path, SetRequest, SetResponse, TypedValue, Update, UpdateResult};
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

fn path_of(update: &Update) -> Result<&Path, Status> {
    let path = update.path.as_ref();
    path.ok_or_else(|| Status::invalid_argument("an update without a path"))
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
    fn all(mut self, request: SetRequest) -> Result<(Vec<Candidate>, SetResponse), Status> {
        let prefix = request.prefix.as_ref();
        let mut response = Vec::new();
        let mut done = |path: &Path, op: Operation| {
            response.push(UpdateResult {
                path: Some(path.clone()),
                op: op.into(),
                ..UpdateResult::default()
            });
        };
        for path in &request.delete {
            self.reset(prefix, path)?;
            done(path, Operation::Delete);
        }
        for update in &request.replace {
            let path = path_of(update)?;
            self.reset(prefix, path)?;
            self.assign(prefix, path, update.val.as_ref())?;
            done(path, Operation::Replace);
        }
        for update in &request.update {
            let path = path_of(update)?;
            self.assign(prefix, path, update.val.as_ref())?;
            done(path, Operation::Update);
        }
        let after = self.whole()?;
        let response = SetResponse {
            prefix: request.prefix,
            response,
            timestamp: now_ns(),
            ..SetResponse::default()
        };
        Ok((after, response))
    }

    /// What is to be applied.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a queue that was named and that no operation adds.
    fn whole(self) -> Result<Vec<Candidate>, Status> {
        for ((port, queue), text) in &self.named {
            let queues = self.after[*port].config.queues;
            if *queue >= queues {
                return Err(Status::invalid_argument(format!(
                    "{text}: there is no queue {queue}; it has {queues}, from 0 on"
                )));
            }
        }
        Ok(self.after)
    }

    /// The places of a selection, with the queues that there are by now, or one that the pattern names.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when all operations together name too many.
    fn places(&mut self, selection: &Selection) -> Result<Vec<(usize, Place)>, Status> {
        let mut places = Vec::new();
        let queues = |port: usize| self.after[port].config.queues;
        selection.each_place_of(self.view, queues, |node, place| places.push((node, place)));
        self.leaves += places.len();
        match self.leaves <= LEAVES_MAX {
            true => Ok(places),
            false => Err(Status::resource_exhausted(format!(
                "{}: with what the operations before it name these are more than {LEAVES_MAX} leaves; send fewer at a time",
                selection.pattern().text()
            ))),
        }
    }

    fn name(&mut self, node: usize, place: Place, text: &str) {
        if nodes()[node].has_key(Key::Queue) {
            let queue = (place.port, place.member);
            let named = self.named.entry(queue);
            named.or_insert_with(|| text.to_owned());
        }
    }

    /// Gives all that can be written at or below a path its default.
    fn reset(&mut self, prefix: Option<&Path>, path: &Path) -> Result<(), Status> {
        let pattern = Pattern::parse(prefix, path)?;
        name_one(&pattern, prefix, path)?;
        let text = pattern.text().to_owned();
        let one_queue = pattern.names(Key::Queue);
        let selection = Selection::new(pattern, |node| node.writable);
        if selection.is_empty() {
            return Err(Status::invalid_argument(format!("{text}: it is read-only")));
        }
        let places = self.places(&selection)?;
        if places.is_empty() {
            crate::get::check_there(&selection, self.view)?;
        }
        for (node, place) in places {
            let port = &self.view.ports[place.port];
            let candidate = &mut self.after[place.port];
            candidate
                .assign(&nodes()[node], self.view, place, None)
                .and_then(|()| candidate.check(port))
                .map_err(|e| Status::invalid_argument(format!("{text}: {e}")))?;
            if one_queue {
                self.name(node, place, &text);
            }
        }
        Ok(())
    }

    /// Assigns a leaf, or all leaves in a tree of JSON.
    fn assign(
        &mut self,
        prefix: Option<&Path>,
        path: &Path,
        value: Option<&TypedValue>,
    ) -> Result<(), Status> {
        let whole = Path {
            elem: prefix
                .into_iter()
                .chain([path])
                .flat_map(|part| part.elem.iter().cloned())
                .collect(),
            ..Path::default()
        };
        let pattern = Pattern::parse(prefix, path)?;
        name_one(&pattern, prefix, path)?;
        let text = pattern.text().to_owned();
        let invalid = |e: String| Status::invalid_argument(format!("{text}: {e}"));
        let value = value.ok_or_else(|| invalid("an update without a value".to_owned()))?;
        let leaf = nodes()
            .iter()
            .find(|node| node.steps.len() == whole.elem.len() && pattern.may_match(node));
        if let Some(node) = leaf {
            let value = node.kind.decode(value).map_err(invalid)?;
            return self.put(&whole, value);
        }
        let (Some(Wire::JsonIetfVal(bytes)) | Some(Wire::JsonVal(bytes))) = &value.value else {
            return Err(invalid(
                "a value for more than one leaf must be JSON or JSON_IETF".to_owned(),
            ));
        };
        let tree = serde_json::from_slice(bytes).map_err(|e| invalid(format!("not JSON: {e}")))?;
        for (path, node, json) in json::leaves(&whole, &tree).map_err(Status::invalid_argument)? {
            let value = node.kind.read_json(&json);
            let value =
                value.map_err(|e| Status::invalid_argument(format!("{}: {e}", format(&path))))?;
            self.put(&path, value)?;
        }
        Ok(())
    }

    fn put(&mut self, path: &Path, value: Value) -> Result<(), Status> {
        let pattern = Pattern::parse(None, path)?;
        name_one(&pattern, None, path)?;
        let text = pattern.text().to_owned();
        let selection = Selection::new(pattern, |node| node.steps.len() == path.elem.len());
        let Some((node, place)) = self.places(&selection)?.pop() else {
            crate::get::check_there(&selection, self.view)?;
            return Err(Status::not_found(format!("{text}: there is no such place")));
        };
        let Some(candidate) = self.after.get_mut(place.port) else {
            return Err(Status::invalid_argument(format!("{text}: it is read-only")));
        };
        candidate
            .assign(&nodes()[node], self.view, place, Some(value))
            .and_then(|()| candidate.check(&self.view.ports[place.port]))
            .map_err(|e| Status::invalid_argument(format!("{text}: {e}")))?;
        self.name(node, place, &text);
        Ok(())
    }
}

/// # Errors
/// INVALID_ARGUMENT for a path that could name several places: by wildcards, or as a list's key is left out.
fn name_one(pattern: &Pattern, prefix: Option<&Path>, path: &Path) -> Result<(), Status> {
    if pattern.is_exact() {
        return Ok(());
    }
    let mut elems = prefix.into_iter().chain([path]).flat_map(|part| &part.elem);
    let wild = elems.any(|elem| {
        elem.name == "*" || elem.name == "..." || elem.key.values().any(|value| value == "*")
    });
    let what = match wild {
        true => "wildcards",
        false => "list without its key",
    };
    Err(Status::invalid_argument(format!(
        "{}: a Set takes no {what}",
        pattern.text()
    )))
}

/// Links first, as the kernel may refuse; what it did is taken back when something after it fails.
async fn apply(viewer: &Viewer, view: &View, after: Vec<Candidate>) -> Result<(), Status> {
    let mut changed_links: Vec<(String, bool)> = Vec::new();
    let mut changes = Vec::new();
    let mut failed = None;
    for (port, new) in view.ports.iter().zip(after) {
        let old = Candidate::new(port);
        if old == new {
            continue;
        }
        if old.enabled != new.enabled {
            let name = port.interface.name.clone();
            if let Err(error) = set_link(viewer, &name, new.enabled).await {
                failed = Some(refused_link(&name, new.enabled, &error));
                break;
            }
            changed_links.push((name, old.enabled));
        }
        let link = (old.enabled != new.enabled).then_some(new.enabled);
        changes.push((port.interface.port, old.config, new, link));
    }
    let result = match failed {
        Some(status) => Err(status),
        None => configure(viewer, changes).await,
    };
    if result.is_err() {
        for (name, up) in changed_links.into_iter().rev() {
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

fn refused_link(name: &str, up: bool, error: &io::Error) -> Status {
    let text = format!(
        "/interfaces/interface[name={name}]/config/enabled: the system refuses to set it to {up}: {error}"
    );
    match error.kind() {
        io::ErrorKind::PermissionDenied => Status::permission_denied(text),
        _ => Status::internal(text),
    }
}

type Change = (u32, PortConfig, Candidate, Option<bool>);

/// All ports, in short calls of the device; what others changed since the picture was taken is an ABORTED, and what was
/// changed before that was found is put back (but for queues that were added, which stay).
async fn configure(viewer: &Viewer, changes: Vec<Change>) -> Result<(), Status> {
    let gone = |e: device::DeviceGone| Status::unavailable(e.to_string());
    let seen: Vec<(u32, PortConfig)> = changes
        .iter()
        .map(|(port, old, ..)| (*port, *old))
        .collect();
    let check = move |device: &mut Device, _| {
        seen.iter()
            .try_for_each(|(p, old)| unchanged(device, *p, old))
    };
    let mut result = viewer.handle().call(check).await.map_err(gone)?;
    let mut done = 0;
    for change in &changes {
        if result.is_err() {
            break;
        }
        result = configure_port(viewer, change).await.map_err(gone)?;
        done += usize::from(result.is_ok());
    }
    if result.is_err() {
        for (port, old, ..) in changes.into_iter().take(done).rev() {
            let undo = move |device: &mut Device, now| {
                let queues = device.port(port).map_or(0, |config| config.queues);
                device.set_port(now, port, PortConfig { queues, ..old })
            };
            if let Err(error) = viewer.handle().call(undo).await.map_err(gone)? {
                tracing::error!("port {port} could not be put back as it was: {error}");
            }
        }
    }
    result.map_err(Status::aborted)
}

/// One port; a port of many queues gets them in several calls.
async fn configure_port(
    viewer: &Viewer,
    change: &Change,
) -> Result<Result<(), String>, device::DeviceGone> {
    let (port, old, new, link) = (change.0, change.1, &change.2, change.3);
    let config = new.config;
    let (mut before, mut grown) = (old, old);
    while before != config {
        grown.queues = config.queues.min(before.queues + QUEUES_A_CALL);
        let step = match grown.queues == config.queues {
            true => config,
            false => grown,
        };
        let set = move |device: &mut Device, now| {
            unchanged(device, port, &before)?;
            device.set_port(now, port, step).map_err(|e| e.message)
        };
        if let Err(error) = viewer.handle().call(set).await? {
            return Ok(Err(error));
        }
        before = step;
    }
    // A queue that one operation added and a later one did not is left out.
    let weights = new.weights.range(..config.queues);
    let weights: Vec<(usize, u32)> = weights.map(|(queue, weight)| (*queue, *weight)).collect();
    for some in weights.chunks(QUEUES_A_CALL) {
        let some = some.to_vec();
        let set = move |device: &mut Device, _| {
            some.iter()
                .try_for_each(|(queue, weight)| device.set_queue_weight(port, *queue, *weight))
                .map_err(|e| e.message)
        };
        if let Err(error) = viewer.handle().call(set).await? {
            return Ok(Err(error));
        }
    }
    if let Some(up) = link {
        viewer
            .handle()
            .call(move |device, _| device.set_port_up(port, up))
            .await?;
    }
    Ok(Ok(()))
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
