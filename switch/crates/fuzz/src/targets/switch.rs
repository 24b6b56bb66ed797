// SPDX-License-Identifier: Apache-2.0
//! A switch in virtual time with P4Runtime and a program, for the targets that talk to one.

use device::{Device, DeviceConfig, Nanos, Packet, PortConfig, Transmit};
use p4rt::proto::p4info::P4Info;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action;
use p4rt::proto::p4rt::{ForwardingPipelineConfig, SetForwardingPipelineConfigRequest};
use p4rt::Local;
use serde_json::Value;
use tonic::Status;

/// The ports that it has, beside the CPU port.
pub const PORTS: std::ops::RangeInclusive<u32> = 1..=4;
pub const CPU_PORT: u32 = 510;
/// Most virtual time between two calls.
const PASS_MAX: Nanos = 10_000_000_000;

pub struct Switch {
    pub device: Device,
    pub local: Local,
    pub now: Nanos,
    pub sent: Sent,
}

/// Frames that left, with their ports; only so many are kept.
#[derive(Default)]
pub struct Sent(pub Vec<(u32, Vec<u8>)>);

impl Transmit for Sent {
    fn transmit(&mut self, port: u32, packet: &mut Packet, _at: Nanos) {
        if self.0.len() < 64 {
            self.0.push((port, packet.frame().to_vec()));
        }
    }
}

/// A device with four ports of 1 Gbit/s.
pub fn device() -> Device {
    let mut device = Device::new(DeviceConfig {
        cpu_port: Some(CPU_PORT),
        ..DeviceConfig::default()
    });
    for port in PORTS {
        let config = PortConfig {
            rate_bps: 1_000_000_000,
            ..PortConfig::default()
        };
        device
            .add_port(port, config)
            .expect("a port of a device without ports");
    }
    device
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
        let mut switch = Switch {
            device: device(),
            local: Local::new(Some(CPU_PORT)),
            now: 1_000_000_000,
            sent: Sent::default(),
        };
        switch
            .set(Action::VerifyAndCommit, config)
            .expect("the program is good");
        switch
    }

    pub fn set(&mut self, action: Action, config: ForwardingPipelineConfig) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            action: action.into(),
            config: Some(config),
            ..Default::default()
        };
        self.local.set_pipeline(&mut self.device, self.now, request)
    }

    /// Lets time pass; frames leave.
    pub fn pass(&mut self, time: Nanos) {
        self.now += time.min(PASS_MAX);
        self.device.advance(self.now, &mut self.sent);
    }

    /// A frame comes in at a port, and what it causes goes out.
    pub fn frame(&mut self, port: u32, frame: &[u8]) {
        self.device.receive(self.now, port, frame);
        self.pass(1_000_000);
    }
}
