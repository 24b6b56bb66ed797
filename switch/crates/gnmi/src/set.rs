// SPDX-License-Identifier: Apache-2.0
//! Set: deletes, then replaces, then updates, all of them or none (gNMI 0.10 §3.4).

use crate::json;
use crate::leaf::{Candidate, Place};
use crate::path::{format, Pattern};
use crate::schema::nodes;
use crate::select::Selection;
use crate::view::{now_ns, View, Viewer};
use p4rt::proto::gnmi::typed_value::Value as Wire;
use p4rt::proto::gnmi::update_result::Operation;
use p4rt::proto::gnmi::{Path, SetRequest, SetResponse, TypedValue, Update, UpdateResult};
use std::io;
use std::sync::Arc;
use tokio::sync::Mutex;
use tonic::Status;

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
        let view = viewer.view(true).await?;
        let before: Vec<Candidate> = view.ports.iter().map(Candidate::of).collect();
        let mut after = before.clone();
        let prefix = request.prefix.as_ref();
        let mut response = Vec::with_capacity(count);
        let mut done = |path: &Path, op: Operation| {
            response.push(UpdateResult {
                path: Some(path.clone()),
                op: op.into(),
                ..UpdateResult::default()
            });
        };
        for path in &request.delete {
            reset(&view, &mut after, prefix, path)?;
            done(path, Operation::Delete);
        }
        for update in &request.replace {
            let path = path_of(update)?;
            reset(&view, &mut after, prefix, path)?;
            assign(&view, &mut after, prefix, path, update.val.as_ref())?;
            done(path, Operation::Replace);
        }
        for update in &request.update {
            let path = path_of(update)?;
            assign(&view, &mut after, prefix, path, update.val.as_ref())?;
            done(path, Operation::Update);
        }
        apply(viewer, &view, &before, after).await?;
        Ok(SetResponse {
            prefix: request.prefix,
            response,
            timestamp: now_ns(),
            ..SetResponse::default()
        })
    }
}

fn path_of(update: &Update) -> Result<&Path, Status> {
    let path = update.path.as_ref();
    path.ok_or_else(|| Status::invalid_argument("an update without a path"))
}

/// Gives all that can be written at or below a path its default.
fn reset(
    view: &View,
    after: &mut [Candidate],
    prefix: Option<&Path>,
    path: &Path,
) -> Result<(), Status> {
    let pattern = Pattern::parse(prefix, path)?;
    name_one(&pattern, prefix, path)?;
    let text = pattern.text().to_owned();
    let selection = Selection::new(pattern, |node| node.writable);
    if selection.is_empty() {
        return Err(Status::invalid_argument(format!("{text}: it is read-only")));
    }
    crate::get::check_there(&selection, view)?;
    let mut result = Ok(());
    selection.each_place(view, |node, place| {
        if result.is_ok() {
            let candidate = &mut after[place.port];
            result = candidate
                .assign(&nodes()[node], view, place, None)
                .and_then(|()| candidate.check(&view.ports[place.port]));
        }
    });
    result.map_err(|e| Status::invalid_argument(format!("{text}: {e}")))
}

/// Assigns a leaf, or all leaves in a tree of JSON.
fn assign(
    view: &View,
    after: &mut [Candidate],
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
        return put(view, after, &whole, value);
    }
    let (Some(Wire::JsonIetfVal(bytes)) | Some(Wire::JsonVal(bytes))) = &value.value else {
        return Err(invalid(
            "a value for more than one leaf must be JSON or JSON_IETF".to_owned(),
        ));
    };
    let tree = serde_json::from_slice(bytes).map_err(|e| invalid(format!("not JSON: {e}")))?;
    for (path, node, json) in json::leaves(&whole, &tree).map_err(Status::invalid_argument)? {
        let at = format(&path);
        let value = node.kind.read_json(&json);
        let value = value.map_err(|e| Status::invalid_argument(format!("{at}: {e}")))?;
        put(view, after, &path, value)?;
    }
    Ok(())
}

fn put(
    view: &View,
    after: &mut [Candidate],
    path: &Path,
    value: crate::value::Value,
) -> Result<(), Status> {
    let text = format(path);
    let pattern = Pattern::parse(None, path)?;
    name_one(&pattern, None, path)?;
    let selection = Selection::new(pattern, |node| node.steps.len() == path.elem.len());
    let mut at: Option<(usize, Place)> = None;
    selection.each_place(view, |node, place| at = Some((node, place)));
    let Some((node, place)) = at else {
        crate::get::check_there(&selection, view)?;
        return Err(Status::not_found(format!("{text}: there is no such place")));
    };
    let Some(candidate) = after.get_mut(place.port) else {
        return Err(Status::invalid_argument(format!("{text}: it is read-only")));
    };
    candidate
        .assign(&nodes()[node], view, place, Some(value))
        .and_then(|()| candidate.check(&view.ports[place.port]))
        .map_err(|e| Status::invalid_argument(format!("{text}: {e}")))
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
async fn apply(
    viewer: &Viewer,
    view: &View,
    before: &[Candidate],
    after: Vec<Candidate>,
) -> Result<(), Status> {
    let mut changed_links: Vec<(String, bool)> = Vec::new();
    let mut changes = Vec::new();
    let mut failed = None;
    for ((port, old), new) in view.ports.iter().zip(before).zip(after) {
        if old == &new {
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

type Change = (u32, device::PortConfig, Candidate, Option<bool>);

/// All ports in one call of the device; what others changed since the picture was taken is an ABORTED.
async fn configure(viewer: &Viewer, changes: Vec<Change>) -> Result<(), Status> {
    if changes.is_empty() {
        return Ok(());
    }
    let apply = move |device: &mut device::Device, now| {
        for (port, old, ..) in &changes {
            if device.port(*port) != Some(old) {
                return Err(format!(
                    "port {port} was changed by another client at the same time; nothing was changed"
                ));
            }
        }
        for (port, old, new, link) in &changes {
            if old != &new.config {
                device
                    .set_port(now, *port, new.config)
                    .map_err(|e| e.message)?;
            }
            for (queue, weight) in &new.weights {
                device
                    .set_queue_weight(*port, *queue, *weight)
                    .map_err(|e| e.message)?;
            }
            if let Some(up) = link {
                device.set_port_up(*port, *up);
            }
        }
        Ok(())
    };
    viewer
        .handle()
        .call(apply)
        .await
        .map_err(|e| Status::unavailable(e.to_string()))?
        .map_err(Status::aborted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::{LinkStatus, Links};
    use crate::path::of_text;
    use crate::view::Interface;
    use device::{Device, DeviceConfig, DeviceHandle, PortConfig};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{mpsc, Mutex as StdMutex};
    use std::time::Duration;

    /// Links in memory; those named here cannot be changed.
    #[derive(Default)]
    struct Told {
        down: StdMutex<Vec<String>>,
        refused: Vec<String>,
        gate: Option<Gate>,
    }

    /// Says that a link is about to change, and waits until it may.
    struct Gate {
        began: mpsc::Sender<()>,
        go_on: StdMutex<mpsc::Receiver<()>>,
    }

    const WAIT: Duration = Duration::from_secs(20);

    impl Links for Told {
        fn status(&self, interface: &str) -> LinkStatus {
            let up = !self.down.lock().unwrap().iter().any(|n| n == interface);
            LinkStatus {
                admin_up: up,
                oper_up: up,
            }
        }

        fn set_up(&self, interface: &str, up: bool) -> io::Result<()> {
            if self.refused.iter().any(|n| n == interface) {
                return Err(io::Error::from(io::ErrorKind::PermissionDenied));
            }
            if let Some(gate) = &self.gate {
                gate.began.send(()).unwrap();
                gate.go_on.lock().unwrap().recv_timeout(WAIT).unwrap();
            }
            let mut down = self.down.lock().unwrap();
            down.retain(|name| name != interface);
            if !up {
                down.push(interface.to_owned());
            }
            Ok(())
        }
    }

    struct Bench {
        viewer: Arc<Viewer>,
        stop: Arc<AtomicBool>,
        thread: Option<std::thread::JoinHandle<()>>,
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Release);
            let ended = self.thread.take().map(|thread| thread.join());
            assert!(matches!(ended, Some(Ok(()))));
        }
    }

    /// Ports 1 and 2, `a` and `b`, with a device that answers on a thread of its own.
    fn bench(links: Told) -> Bench {
        let stop = Arc::new(AtomicBool::new(false));
        let (handle, mut calls) = DeviceHandle::new(|| {});
        let ended = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut device = Device::new(DeviceConfig::default());
            for port in [1, 2] {
                device.add_port(port, PortConfig::default()).unwrap();
            }
            while !ended.load(Ordering::Acquire) {
                if !calls.run_one(&mut device, || 0) {
                    std::thread::yield_now();
                }
            }
        });
        let named = |port, name: &str| Interface {
            port,
            name: name.to_owned(),
            cpu: false,
        };
        let interfaces = vec![named(1, "a"), named(2, "b")];
        Bench {
            viewer: Arc::new(Viewer::new(handle, Arc::new(links), interfaces)),
            stop,
            thread: Some(thread),
        }
    }

    fn run(bench: &Bench, request: SetRequest) -> Result<SetResponse, Status> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        runtime.block_on(Arc::new(Setter::default()).set(&bench.viewer, request))
    }

    fn ports(bench: &Bench) -> Vec<(PortConfig, LinkStatus)> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let view = runtime.block_on(bench.viewer.view(false)).unwrap();
        view.ports.iter().map(|p| (p.config, p.link)).collect()
    }

    fn put(path: &str, json: &str) -> Update {
        Update {
            path: Some(of_text(path)),
            val: Some(TypedValue {
                value: Some(Wire::JsonIetfVal(json.as_bytes().to_vec())),
            }),
            ..Update::default()
        }
    }

    const CIR: &str =
        "/qos/scheduler-policies/scheduler-policy[name=a]/schedulers/scheduler[sequence=1]\
                       /one-rate-two-color/config/cir";

    #[test]
    fn what_the_system_refuses_takes_all_back() {
        let bench = bench(Told {
            refused: vec!["b".to_owned()],
            ..Told::default()
        });
        let before = ports(&bench);
        let error = run(
            &bench,
            SetRequest {
                update: vec![
                    put(CIR, "\"1000000\""),
                    put("/interfaces/interface[name=a]/config/enabled", "false"),
                    put("/interfaces/interface[name=b]/config/enabled", "false"),
                ],
                ..SetRequest::default()
            },
        )
        .unwrap_err();
        assert_eq!(error.code(), tonic::Code::PermissionDenied);
        assert!(
            error
                .message()
                .starts_with("/interfaces/interface[name=b]/config/enabled: "),
            "{error}"
        );
        assert_eq!(ports(&bench), before);
    }

    #[test]
    fn a_client_that_goes_away_leaves_nothing_half_applied() {
        let ((began, begun), (go_in, go_on)) = (mpsc::channel(), mpsc::channel());
        let go_on = StdMutex::new(go_on);
        let bench = bench(Told {
            gate: Some(Gate { began, go_on }),
            ..Told::default()
        });
        let request = SetRequest {
            update: vec![
                put(CIR, "\"1000000\""),
                put("/interfaces/interface[name=a]/config/enabled", "false"),
            ],
            ..SetRequest::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let viewer = bench.viewer.clone();
        let client = runtime.spawn(async move {
            let setter = Arc::new(Setter::default());
            setter.set(&viewer, request).await
        });
        begun.recv_timeout(WAIT).unwrap();
        client.abort();
        assert!(runtime.block_on(client).unwrap_err().is_cancelled());
        go_in.send(()).unwrap();
        let whole = async {
            loop {
                let view = bench.viewer.view(false).await.unwrap();
                let port = &view.ports[0];
                if (port.config.rate_bps, port.link.admin_up) == (1_000_000, false) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        runtime
            .block_on(async { tokio::time::timeout(WAIT, whole).await })
            .unwrap();
    }

    #[test]
    fn deletes_come_before_replaces_before_updates() {
        let bench = bench(Told::default());
        let shaper = CIR.trim_end_matches("/cir");
        let response = run(
            &bench,
            SetRequest {
                update: vec![put(CIR, "\"7000\"")],
                replace: vec![put(
                    shaper,
                    r#"{"cir": "5000", "max-queue-depth-packets": 9}"#,
                )],
                delete: vec![of_text(shaper)],
                ..SetRequest::default()
            },
        )
        .unwrap();
        let ops: Vec<Operation> = response.response.iter().map(|r| r.op()).collect();
        assert_eq!(
            ops,
            [Operation::Delete, Operation::Replace, Operation::Update]
        );
        let (config, _) = ports(&bench)[0];
        assert_eq!((config.rate_bps, config.queue_limits.packets), (7_000, 9));
    }

    #[test]
    fn a_replaced_tree_resets_what_it_does_not_name_and_no_other_port() {
        let bench = bench(Told::default());
        let tree = r#"{"openconfig-interfaces:interface": [
            {"name": "a", "fairlane-port:port": {"config": {"scheduler": "drr", "queues": 16}}},
            {"name": "b", "config": {"name": "b", "enabled": false}}]}"#;
        let request = |update| SetRequest {
            update: vec![update],
            ..SetRequest::default()
        };
        run(&bench, request(put("/interfaces", tree))).unwrap();
        let [(a, up), (b, down)] = ports(&bench)[..] else {
            panic!("two ports")
        };
        assert_eq!((a.scheduler.name(), a.queues), ("drr", 16));
        assert_eq!((up.admin_up, down.admin_up), (true, false));
        assert_eq!(b, PortConfig::default());
        let replace = put("/interfaces/interface[name=a]", r#"{"name": "a"}"#);
        run(
            &bench,
            SetRequest {
                replace: vec![replace],
                ..SetRequest::default()
            },
        )
        .unwrap();
        let (a, _) = ports(&bench)[0];
        assert_eq!((a.scheduler.name(), a.queues), ("strict", 16));
        assert!(!ports(&bench)[1].1.admin_up);
    }

    #[test]
    fn what_cannot_be_set_names_its_path() {
        let bench = bench(Told::default());
        for (path, json, text) in [
            (
                "/interfaces/interface[name=a]",
                r#"{"name": "b"}"#,
                "/interfaces/interface[name=a]/name: it is read-only, and not \"b\"",
            ),
            (
                "/interfaces/interface[name=a]/config/enabled",
                "1",
                "/interfaces/interface[name=a]/config/enabled: 1 is not allowed; a boolean is",
            ),
            (
                "/interfaces",
                r#"{"interface": [{"name": "*"}]}"#,
                "/interfaces/interface[name=*]/name: a Set takes no wildcards",
            ),
            (
                "/interfaces/interface/config/enabled",
                "false",
                "/interfaces/interface/config/enabled: a Set takes no list without its key",
            ),
            (
                "/interfaces/interface",
                r#"{"config": {"enabled": false}}"#,
                "/interfaces/interface: a Set takes no list without its key",
            ),
        ] {
            let request = SetRequest {
                update: vec![put(path, json)],
                ..SetRequest::default()
            };
            assert_eq!(run(&bench, request).unwrap_err().message(), text);
        }
        let request = SetRequest {
            delete: vec![of_text("/interfaces/interface/port")],
            ..SetRequest::default()
        };
        assert_eq!(
            run(&bench, request).unwrap_err().message(),
            "/interfaces/interface/port: a Set takes no list without its key"
        );
    }
}
