// SPDX-License-Identifier: Apache-2.0
//! Forwarding pipeline configs: what is saved, what runs, and how one is made from a client's message (§11, §15).

use std::sync::{Arc, Mutex};

use prost::Message;
use tonic::Status;
use v1model::Pipeline;

use crate::binding::Binding;
use crate::error::NO_PIPELINE;
use crate::proto::p4rt::ForwardingPipelineConfig;
use crate::soft::Soft;

/// A config that has been checked.
pub struct Loaded {
    pub config: ForwardingPipelineConfig,
    pub binding: Binding,
}

/// A config with the state that clients wrote into it.
pub struct Context {
    pub loaded: Arc<Loaded>,
    pub soft: Soft,
    /// Some: saved, not committed, so the pipeline is still here. None: it runs on the device.
    pub pipeline: Option<Mutex<Pipeline>>,
}

/// The configs of the device.
#[derive(Default)]
pub struct State {
    pub running: Option<Context>,
    pub saved: Option<Context>,
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

/// Makes a pipeline out of a client's config and binds its P4Info to it.
///
/// # Errors
/// INVALID_ARGUMENT when a part is missing, is malformed or does not fit the other.
pub fn load(
    config: ForwardingPipelineConfig,
    cpu_port: Option<u32>,
) -> Result<(Arc<Loaded>, Pipeline), Status> {
    let info = config
        .p4info
        .as_ref()
        .ok_or_else(|| Status::invalid_argument("the config has no p4info"))?;
    if config.p4_device_config.is_empty() {
        return Err(Status::invalid_argument(
            "the config has no p4_device_config; it takes the BMv2 JSON that p4c makes",
        ));
    }
    let pipeline = pipeline(&config.p4_device_config)?;
    let binding =
        Binding::new(info, &pipeline, cpu_port).map_err(|e| Status::new(e.code, e.message))?;
    Ok((Arc::new(Loaded { config, binding }), pipeline))
}

fn pipeline(device_config: &[u8]) -> Result<Pipeline, Status> {
    let first = device_config.iter().find(|b| !b.is_ascii_whitespace());
    let unwrapped = match first {
        Some(b'{') => None,
        _ => WrappedConfig::decode(device_config)
            .ok()
            .map(|w| w.device_data)
            .filter(|d| !d.is_empty()),
    };
    Pipeline::from_json(unwrapped.as_deref().unwrap_or(device_config))
        .map_err(|e| Status::invalid_argument(format!("p4_device_config: {e}")))
}
