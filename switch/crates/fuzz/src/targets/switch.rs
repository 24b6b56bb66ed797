// SPDX-License-Identifier: Apache-2.0
//! A switch in virtual time with P4Runtime and a program, for the targets that talk to one.

use conformance::bed::Bed;
use device::{DeviceConfig, Nanos, PortConfig};
use p4rt::proto::p4info::P4Info;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action;
use p4rt::proto::p4rt::{
    Entity, ForwardingPipelineConfig, ReadRequest, ReadResponse,
    SetForwardingPipelineConfigRequest, Update, WriteRequest,
};
use p4rt::Local;
use prost::Message;
use serde_json::Value;
use tonic::Status;

/// The ports that it has, beside the CPU port.
pub const PORTS: std::ops::RangeInclusive<u32> = 1..=4;
pub const CPU_PORT: u32 = 510;
/// Most virtual time between two calls.
const PASS_MAX: Nanos = 10_000_000_000;
/// Most frames that are kept of what left.
const SENT_MAX: usize = 64;

pub struct Switch {
    pub bed: Bed,
    pub local: Local,
}

/// A device with four ports of 1 Gbit/s.
pub fn bed() -> Bed {
    let config = DeviceConfig {
        cpu_port: Some(CPU_PORT),
        ..DeviceConfig::default()
    };
    let port = PortConfig {
        rate_bps: 1_000_000_000,
        ..PortConfig::default()
    };
    Bed::new(config, PORTS, port, SENT_MAX)
}

/// A config of these two.
pub fn config(program: &Value, info: P4Info) -> ForwardingPipelineConfig {
    ForwardingPipelineConfig {
        p4info: Some(info),
        p4_device_config: program.to_string().into_bytes().into(),
        cookie: None,
    }
}

impl Switch {
    /// A switch that runs this program.
    pub fn start(config: ForwardingPipelineConfig) -> Switch {
        let (bed, local) = (bed(), Local::new(Some(CPU_PORT)));
        let mut switch = Switch { bed, local };
        switch.bed.now = 1_000_000_000;
        let set = switch.set(Action::VerifyAndCommit, config);
        set.expect("the program is good");
        switch
    }

    pub fn set(&mut self, action: Action, config: ForwardingPipelineConfig) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            action: action.into(),
            config: Some(config),
            ..Default::default()
        };
        let Bed { device, now, .. } = &mut self.bed;
        self.local.set_pipeline(device, *now, request)
    }

    pub fn write(&mut self, request: WriteRequest) -> Result<(), Status> {
        let Bed { device, now, .. } = &mut self.bed;
        self.local.write(device, *now, request)
    }

    /// Writes this one update.
    pub fn update(&mut self, update: Update) -> Result<(), Status> {
        self.write(WriteRequest {
            updates: vec![update.encode_to_vec().into()],
            ..Default::default()
        })
    }

    pub fn read(&mut self, request: ReadRequest) -> Result<Vec<ReadResponse>, Status> {
        let Bed { device, now, .. } = &mut self.bed;
        self.local.read(device, *now, request)
    }

    /// Reads these, all of which can be read.
    ///
    /// # Errors
    /// When they cannot.
    pub fn read_all(&mut self, entities: Vec<Entity>) -> Result<Vec<Entity>, String> {
        let read = self.read(ReadRequest {
            entities,
            ..Default::default()
        });
        let read = read.map_err(|e| format!("reading everything: {e}"))?;
        Ok(read.into_iter().flat_map(|r| r.entities).collect())
    }

    /// Lets time pass; frames leave.
    pub fn pass(&mut self, time: Nanos) {
        self.bed.pass(time.min(PASS_MAX));
    }

    /// A frame comes in at a port, and what it causes goes out.
    pub fn frame(&mut self, port: u32, frame: &[u8]) {
        self.bed.receive(port, frame);
        self.pass(1_000_000);
    }
}
