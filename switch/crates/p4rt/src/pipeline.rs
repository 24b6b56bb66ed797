// SPDX-License-Identifier: Apache-2.0
//! SetForwardingPipelineConfig and GetForwardingPipelineConfig (P4Runtime 1.5 §14, §15).
//!
//! Forwarding pipeline configs: what is saved, what runs, and how one is made from a client's message (§11, §15).

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use device::{Next, Replication};
use prost::Message;
use tokio::sync::OwnedRwLockWriteGuard;
use tonic::Status;
use v1model::trace::Traced;
use v1model::{error, Pipeline, Schema, Takeover};

use crate::binding::Binding;
use crate::entity::profile;
use crate::error::{bail, status, NO_PIPELINE};
use crate::proto::p4rt::get_forwarding_pipeline_config_request::ResponseType;
use crate::proto::p4rt::set_forwarding_pipeline_config_request::Action;
use crate::proto::p4rt::*;
use crate::shared::{discard, gone, Shared};
use crate::soft::Soft;
use crate::write::check_sender;

/// Entries of the old program that are read between two packets: less than 100 µs of work.
const SLICE_ENTRIES: usize = 128;

/// # Errors
/// NOT_FOUND, PERMISSION_DENIED, then what the action asks for: INVALID_ARGUMENT, NOT_FOUND.
pub async fn set(
    shared: Arc<Shared>,
    mut request: SetForwardingPipelineConfigRequest,
) -> Result<SetForwardingPipelineConfigResponse, Status> {
    let sender = WriteRequest {
        device_id: request.device_id,
        role: std::mem::take(&mut request.role),
        election_id: request.election_id.take(),
        ..WriteRequest::default()
    };
    check_sender(&shared, &sender)?;
    let action = request.action();
    let name = action.as_str_name();
    let refused = |why: &str| bail!(invalid_argument, "action {name} {why}");
    let loaded = match (action, request.config.take()) {
        (Action::Unspecified, _) => return refused("is none that can be asked for"),
        (Action::Commit, None) => None,
        (Action::Commit, Some(_)) => return refused("takes no config: it realizes the saved one"),
        (_, None) => return refused("needs a config"),
        (_, Some(config)) => {
            let (cpu_port, bytes) = (shared.cpu_port, shared.program_bytes);
            // One at a time, as each may take much memory; also when its client hangs up.
            let turn = shared.loading.clone().lock_owned().await;
            let load = move || {
                let _turn = turn;
                load(config, cpu_port, bytes)
            };
            Some(shared.aside("loading the config", load).await??)
        }
    };
    let owner = shared.clone();
    let realized = async move {
        let state = shared.state.clone().write_owned().await;
        check_sender(&shared, &sender)?;
        realize(&shared, state, action, loaded).await
    };
    owner.finish("setting the config", realized).await?;
    Ok(SetForwardingPipelineConfigResponse {})
}

async fn realize(
    shared: &Arc<Shared>,
    mut state: OwnedRwLockWriteGuard<State>,
    action: Action,
    loaded: Option<(Arc<Loaded>, Pipeline)>,
) -> Result<(), Status> {
    match (action, loaded) {
        (Action::VerifyAndSave, Some(new)) => {
            state.saved = Some(Context::new(new));
            Ok(())
        }
        (Action::VerifyAndCommit, Some(new)) => commit(shared, state, Context::new(new)).await,
        (Action::ReconcileAndCommit, Some((loaded, pipeline))) => {
            reconcile(shared, state, loaded, pipeline).await
        }
        (Action::Commit, _) => match state.saved.take() {
            Some(saved) => commit(shared, state, saved).await,
            None => bail!(
                not_found,
                "no config is saved: VERIFY_AND_SAVE must come before COMMIT"
            ),
        },
        _ => Ok(()), // VERIFY: the config is good, nothing changes
    }
}

/// Sets a config at start, before any client.
///
/// # Errors
/// As `VERIFY_AND_COMMIT`.
pub async fn preload(shared: &Arc<Shared>, config: ForwardingPipelineConfig) -> Result<(), Status> {
    let new = load(config, shared.cpu_port, shared.program_bytes)?;
    let state = shared.state.clone().write_owned().await;
    commit(shared, state, Context::new(new)).await
}

/// Everything is made ready before, and what is replaced is dropped after, so that packets wait for neither.
async fn commit(
    shared: &Arc<Shared>,
    state: OwnedRwLockWriteGuard<State>,
    config: Context,
) -> Result<(), Status> {
    let Context {
        loaded,
        mut soft,
        pipeline: Some(pipeline),
    } = config
    else {
        bail!(internal, "the config to commit has no pipeline");
    };
    let pipeline = pipeline.into_inner();
    let (mut pipeline, replication) = pipeline.unwrap_or_else(PoisonError::into_inner);
    let call = shared.handle.call(|device, now| {
        let down = device
            .ports()
            .filter(|p| device.port_is_up(*p) == Some(false));
        (down.collect(), now)
    });
    let now;
    (soft.ports_down, now) = call.await.map_err(gone)?;
    pipeline.begin_ageing(now);
    let next = Next::new(pipeline).with_replication(replication);
    exchange(shared, state, loaded, next, soft, None).await
}

/// The state of the running program is carried over into the new one where an object has the same name and shape: in
/// pieces, while the old one forwards.
async fn reconcile(
    shared: &Arc<Shared>,
    mut state: OwnedRwLockWriteGuard<State>,
    loaded: Arc<Loaded>,
    pipeline: Pipeline,
) -> Result<(), Status> {
    let Some(running) = &state.running else {
        return commit(shared, state, Context::new((loaded, pipeline))).await;
    };
    let lost =
        |error| Status::invalid_argument(format!("the forwarding state cannot be kept: {error}"));
    let takeover = pipeline.takeover(&running.loaded.schema);
    let call = shared.handle.call(move |device, now| {
        let mut takeover = takeover;
        if let Some(old) = device.pipeline() {
            pipeline.begin(&mut takeover, old);
        }
        (takeover, pipeline, now)
    });
    let (mut takeover, mut pipeline, now) = call.await.map_err(gone)?;
    let kept = takeover.kept();
    pipeline.begin_ageing(now);
    loop {
        let call = shared.handle.call(move |device, _| {
            let piece = device
                .pipeline()
                .and_then(|old| takeover.read(old, SLICE_ENTRIES));
            (piece, takeover)
        });
        let piece;
        (piece, takeover) = call.await.map_err(gone)?;
        let Some(piece) = piece else { break };
        let taken = contained("taking over the forwarding state", || pipeline.take(piece));
        taken?.map_err(lost)?;
    }
    let Some(running) = state.running.as_mut() else {
        bail!(internal, "the running config is gone");
    };
    let (soft, old) = (std::mem::take(&mut running.soft), &running.loaded);
    let soft = soft.taken_over(&old.binding, &loaded.binding, &kept, &mut pipeline);
    let next = Next::new(pipeline);
    exchange(shared, state, loaded, next, soft, Some(takeover)).await
}

/// The new program instead of the old one, between two packets.
async fn exchange(
    shared: &Arc<Shared>,
    mut state: OwnedRwLockWriteGuard<State>,
    loaded: Arc<Loaded>,
    mut next: Next,
    soft: Soft,
    takeover: Option<Takeover>,
) -> Result<(), Status> {
    let groups = profile::live_groups(&soft, |port| soft.ports_down.contains(&port));
    profile::follow(&loaded.binding, next.pipeline_mut(), groups);
    let digests = shared.digests_arc();
    let owner = shared.clone();
    let call = shared.handle.call(move |device, now| {
        if takeover.is_some() {
            // Before the counts are carried over: what waits is counted out by the program that counted it in.
            device.flush(now);
        }
        if let (Some(takeover), Some(old)) = (&takeover, device.pipeline_mut()) {
            next.pipeline_mut().take_arrays(takeover, old);
        }
        let before = device.replace(now, next);
        digests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .reset(soft.digests.iter().map(|(id, c)| (*id, c)));
        owner.set_running(loaded.clone());
        let context = Context {
            loaded,
            soft,
            pipeline: None,
        };
        let old = (state.running.replace(context), state.saved.take());
        (before, old, takeover)
    });
    discard(call.await.map_err(gone)?);
    Ok(())
}

/// # Errors
/// NOT_FOUND for another device.
pub async fn get(
    shared: &Shared,
    request: GetForwardingPipelineConfigRequest,
) -> Result<GetForwardingPipelineConfigResponse, Status> {
    shared.check_device(request.device_id)?;
    let state = shared.state.read().await;
    let Ok(context) = state.current() else {
        return Ok(GetForwardingPipelineConfigResponse { config: None });
    };
    let config = &context.loaded.config;
    let kind = request.response_type();
    let mut config = config.clone();
    if matches!(
        kind,
        ResponseType::DeviceConfigAndCookie | ResponseType::CookieOnly
    ) {
        config.p4info = None;
    }
    if matches!(
        kind,
        ResponseType::P4infoAndCookie | ResponseType::CookieOnly
    ) {
        config.p4_device_config.clear();
    }
    let config = Some(config);
    Ok(GetForwardingPipelineConfigResponse { config })
}

/// A config that has been checked.
pub struct Loaded {
    pub config: ForwardingPipelineConfig,
    pub binding: Binding,
    /// The program's objects, for what can be said of them without it.
    pub schema: Arc<Schema>,
    /// For traces of it.
    pub traced: Traced,
}

/// A config with the state that clients wrote into it.
pub struct Context {
    pub loaded: Arc<Loaded>,
    pub soft: Soft,
    /// Some: saved, not committed, so the pipeline is still here. None: it runs on the device.
    pub pipeline: Option<Mutex<(Pipeline, Replication)>>,
}

impl Context {
    /// A config into which nobody has written yet.
    fn new((loaded, pipeline): (Arc<Loaded>, Pipeline)) -> Context {
        Context {
            loaded,
            soft: Soft::default(),
            pipeline: Some(Mutex::new((pipeline, Replication::default()))),
        }
    }
}

/// The configs of the device.
#[derive(Default)]
pub struct State {
    pub running: Option<Context>,
    pub saved: Option<Context>,
    /// How many Writes were applied: a read in several pieces looks whether one came between them.
    pub writes: u64,
}

impl State {
    /// The config that reads and writes refer to: the saved one, when there is one.
    ///
    /// # Errors
    /// FAILED_PRECONDITION when no config was ever set.
    pub fn current(&self) -> Result<&Context, Status> {
        self.saved
            .as_ref()
            .or(self.running.as_ref())
            .ok_or_else(|| Status::failed_precondition(NO_PIPELINE))
    }
}

/// The wrapper around the JSON that older tools put into `p4_device_config` (p4.tmp.P4DeviceConfig).
#[derive(Clone, PartialEq, Message)]
struct WrappedConfig {
    #[prost(bool, tag = "1")]
    reassign: bool,
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// Makes a pipeline out of a client's config and binds its P4Info to it; the program may take `program_bytes` of memory.
///
/// # Errors
/// INVALID_ARGUMENT when a part is missing, is malformed, too large, or does not fit the other; INTERNAL for a fault of
/// ours.
pub fn load(
    config: ForwardingPipelineConfig,
    cpu_port: Option<u32>,
    program_bytes: u64,
) -> Result<(Arc<Loaded>, Pipeline), Status> {
    contained("loading the program", || {
        load_here(config, cpu_port, program_bytes)
    })?
}

/// Runs `f`, a step on the way to a new program. A fault in it is logged, and is an error for the client: the program that
/// runs is not touched.
///
/// # Errors
/// INTERNAL after a panic.
pub fn contained<R>(what: &str, f: impl FnOnce() -> R) -> Result<R, Status> {
    error::contained(f).map_err(|fault| {
        let text =
            format!("{what} failed by a fault of the switch, and nothing was changed: {fault}");
        tracing::error!("{text}");
        Status::internal(text)
    })
}

fn load_here(
    config: ForwardingPipelineConfig,
    cpu_port: Option<u32>,
    program_bytes: u64,
) -> Result<(Arc<Loaded>, Pipeline), Status> {
    let Some(info) = &config.p4info else {
        bail!(invalid_argument, "the config has no p4info");
    };
    if config.p4_device_config.is_empty() {
        bail!(
            invalid_argument,
            "the config has no p4_device_config; it takes the BMv2 JSON that p4c makes"
        );
    }
    let mut pipeline = Pipeline::from_json_within(&json(&config.p4_device_config), program_bytes)
        .map_err(|e| Status::invalid_argument(format!("p4_device_config: {e}")))?;
    if let Some(why) = pipeline.not_native() {
        tracing::warn!(
            "the interpreter runs this program, as there is no machine code of it: {why}"
        );
    }
    let binding = Binding::new(info, &pipeline, cpu_port).map_err(status)?;
    for table in binding.tables.items.iter().filter(|t| !t.is_const) {
        if pipeline.table(table.table).is_const() {
            let allowed = pipeline.table_allow_changes(table.table, table.size);
            allowed.map_err(|e| Status::invalid_argument(format!("P4Info: {e}")))?;
        }
    }
    let (schema, traced) = (pipeline.schema().clone(), pipeline.traced());
    let loaded = Loaded {
        config,
        binding,
        schema,
        traced,
    };
    Ok((Arc::new(loaded), pipeline))
}

/// The BMv2 JSON in a device config.
fn json(device_config: &[u8]) -> Cow<'_, [u8]> {
    let first = device_config.iter().find(|b| !b.is_ascii_whitespace());
    let unwrapped = match first {
        Some(b'{') => None,
        _ => WrappedConfig::decode(device_config)
            .ok()
            .map(|w| w.device_data)
            .filter(|d| !d.is_empty()),
    };
    unwrapped.map_or(Cow::Borrowed(device_config), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_in_loading_is_an_error_of_that_client() {
        let result: Result<(), Status> =
            contained("loading the program", || panic!("no one thought of that"));
        let status = result.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Internal);
        assert_eq!(
            status.message(),
            "loading the program failed by a fault of the switch, and nothing was changed: no one thought of that"
        );
    }
}
