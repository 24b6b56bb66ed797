// SPDX-License-Identifier: Apache-2.0
//! Forwarding pipeline configs: what is saved, what runs, and how one is made from a client's message (§11, §15).

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use device::Replication;
use prost::Message;
use tonic::Status;
use v1model::{error, Pipeline, Schema};

use crate::binding::Binding;
use crate::error::{status, NO_PIPELINE};
use crate::proto::p4rt::ForwardingPipelineConfig;
use crate::soft::Soft;

/// A config that has been checked.
pub struct Loaded {
    pub config: ForwardingPipelineConfig,
    pub binding: Binding,
    /// The program's objects, for what can be said of them without it.
    pub schema: Arc<Schema>,
}

/// A config with the state that clients wrote into it.
pub struct Context {
    pub loaded: Arc<Loaded>,
    pub soft: Soft,
    /// Some: saved, not committed, so the pipeline is still here. None: it runs on the device.
    pub pipeline: Option<Mutex<(Pipeline, Replication)>>,
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
        return Err(Status::invalid_argument("the config has no p4info"));
    };
    if config.p4_device_config.is_empty() {
        return Err(Status::invalid_argument(
            "the config has no p4_device_config; it takes the BMv2 JSON that p4c makes",
        ));
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
    let schema = pipeline.schema().clone();
    let loaded = Loaded {
        config,
        binding,
        schema,
    };
    Ok((Arc::new(loaded), pipeline))
}

/// The BMv2 JSON in a device config.
pub fn json(device_config: &[u8]) -> Cow<'_, [u8]> {
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
