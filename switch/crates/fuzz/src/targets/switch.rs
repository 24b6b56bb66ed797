// SPDX-License-Identifier: Apache-2.0
//! A switch in virtual time with P4Runtime and gNMI, and steps of one: requests of both, frames, pauses. Every answer is
//! well-formed, what is refused changes nothing; and in the end everything can be read, all entries can be deleted, and as many
//! packets left or were dropped as came in or were made.

use std::future::{poll_fn, Future};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use conformance::control::{Bed, Sent};
use device::{Calls, Device, DeviceConfig, DeviceHandle, Nanos, PortConfig};
use gnmi::{Gnmi, Interface, LinkStatus, Links};
use netio::Ethernet;
use p4rt::proto::gnmi::g_nmi_server::GNmi;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action;
use p4rt::proto::p4rt::update::Type;
use p4rt::proto::p4rt::{
    self as messages, Entity, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    ReadRequest, SetForwardingPipelineConfigRequest, Update, WriteRequest,
};
use p4rt::proto::rpc;
use p4rt::Local;
use prost::Message;
use serde_json::{json, Value};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tonic::{Code, Request, Status};
use v1model::Pipeline;

use super::{named, seeds, Base, Outcome, Target};

/// The ports that it has, beside the CPU port.
pub const PORTS: std::ops::RangeInclusive<u32> = 1..=4;
pub const CPU_PORT: u32 = 510;
/// Actions that change the program.
const COMMITS: [i32; 2] = [
    Action::VerifyAndCommit as i32,
    Action::ReconcileAndCommit as i32,
];
/// Most virtual time between two steps.
const PASS_MAX: Nanos = 10_000_000_000;
/// Most frames that are kept of what left.
const SENT_MAX: usize = 64;
/// Most steps of one document.
const STEPS_MAX: usize = 200;

/// Executes `{"program": its name, "steps": [{"write": …}, {"frame": …}, …]}`; by P4Runtime where these are `requests`.
pub fn target(bases: Vec<Base>, requests: bool) -> Target {
    let config = |(name, document): &Base| {
        let mut config = config(document["program"].as_str().unwrap_or_default());
        config.p4info = config.p4info.filter(|_| requests);
        (name.clone(), config)
    };
    let configs: Vec<_> = bases.iter().map(config).collect();
    Target::new(bases, move |document| {
        let program = document["program"].as_str().unwrap_or_default();
        let mut switch = Switch::start(named(&configs, program).clone());
        let steps = document["steps"].as_array();
        for step in steps.into_iter().flatten().take(STEPS_MAX) {
            if let Some((verb, json)) = step.as_object().and_then(|step| step.iter().next()) {
                switch.step(verb, json)?;
            }
        }
        switch.end()
    })
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

/// The config of a program, without P4Info where it has none; empty for a name that no program has.
pub fn config(program: &str) -> ForwardingPipelineConfig {
    let json = seeds::program(program).map(|json| json.to_string().into_bytes());
    ForwardingPipelineConfig {
        p4info: seeds::p4info(program),
        p4_device_config: json.unwrap_or_default().into(),
        cookie: None,
    }
}

/// Interfaces that are always up, and stay so.
struct Up;

impl Links for Up {
    fn status(&self, _interface: &str) -> LinkStatus {
        LinkStatus {
            admin_up: true,
            oper_up: true,
        }
    }

    fn ethernet(&self, _interface: &str) -> Ethernet {
        Ethernet::default()
    }

    fn set_up(&self, _interface: &str, _up: bool) -> io::Result<()> {
        Ok(())
    }
}

/// gNMI over the device of this handle.
pub fn gnmi(handle: DeviceHandle, changes: watch::Receiver<u64>) -> Gnmi {
    let port = |port| Interface {
        port,
        name: format!("p{port}"),
        cpu: port == CPU_PORT,
    };
    let interfaces = PORTS.chain([CPU_PORT]).map(port).collect();
    Gnmi::new(handle, Arc::new(Up), interfaces, changes).expect("nothing is asked of the kernel")
}

struct Switch {
    bed: Bed,
    local: Local,
    /// No config of a document was committed.
    is_ours: bool,
    /// It has a program with P4Info.
    is_configured: bool,
    /// gNMI, once it is used: what it asks of the device, and where its tasks run.
    gnmi: Option<(Gnmi, Calls, Runtime)>,
}

impl Switch {
    /// A switch that runs this program, if any; without P4Info it has no entities.
    fn start(config: ForwardingPipelineConfig) -> Switch {
        let mut switch = Switch {
            bed: bed(),
            local: Local::new(Some(CPU_PORT)),
            is_ours: true,
            is_configured: config.p4info.is_some(),
            gnmi: None,
        };
        switch.bed.now = 1_000_000_000;
        if switch.is_configured {
            let set = switch.set(Action::VerifyAndCommit.into(), config);
            set.expect("the program is good");
        } else if !config.p4_device_config.is_empty() {
            let pipeline = Pipeline::from_json(&config.p4_device_config);
            let device = &mut switch.bed.device;
            device.load(0, pipeline.expect("the program is good"));
        }
        switch
    }

    /// A call of P4Runtime, now.
    fn p4runtime<T>(&mut self, call: impl FnOnce(&mut Local, &mut Device, Nanos) -> T) -> T {
        call(&mut self.local, &mut self.bed.device, self.bed.now)
    }

    fn set(&mut self, action: i32, config: ForwardingPipelineConfig) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            action,
            config: Some(config),
            ..Default::default()
        };
        self.p4runtime(|local, device, now| local.set_pipeline(device, now, request))
    }

    /// Does a step; nothing for what is none.
    ///
    /// # Errors
    /// What does not hold.
    fn step(&mut self, verb: &str, json: &Value) -> Outcome {
        self.try_step(verb, json).unwrap_or(Ok(()))
    }

    fn try_step(&mut self, verb: &str, json: &Value) -> Option<Outcome> {
        Some(match verb {
            "write" => {
                let request: WriteRequest = seeds::message("p4.v1.WriteRequest", json)?;
                let parts = request.updates.len();
                let answer = self.p4runtime(|local, device, now| local.write(device, now, request));
                well_formed(verb, parts, answer)
            }
            "read" => {
                let request: ReadRequest = seeds::message("p4.v1.ReadRequest", json)?;
                let parts = request.entities.len();
                let answer = self.p4runtime(|local, device, now| local.read(device, now, request));
                well_formed(verb, parts, answer)
            }
            "config" => {
                let info = seeds::message("p4.config.v1.P4Info", &json["p4info"]);
                let config = ForwardingPipelineConfig {
                    p4info: Some(info?),
                    p4_device_config: json["program"].to_string().into_bytes().into(),
                    cookie: None,
                };
                self.config(json["action"].as_i64().unwrap_or(0) as i32, config)
            }
            "send" => {
                let message = seeds::message("p4.v1.StreamMessageRequest", json)?;
                let answer = self.p4runtime(|local, device, now| local.send(device, now, message));
                answer.map_err(|e| format!("a stream message: {e}"))
            }
            "get" => {
                let request = Request::new(seeds::message("gnmi.GetRequest", json)?);
                let answer = self.gnmi(async |gnmi| gnmi.get(request).await.map(drop));
                well_formed(verb, 1, answer)
            }
            "set" => {
                let request = Request::new(seeds::message("gnmi.SetRequest", json)?);
                let before = self.ports();
                let answer = self.gnmi(async |gnmi| gnmi.set(request).await.map(drop));
                if answer.is_err() && before != self.ports() {
                    return Some(Err(format!("a refused Set changed a port: {answer:?}")));
                }
                well_formed(verb, 1, answer)
            }
            "frame" => {
                let after = json["after_ns"].as_u64().unwrap_or(1_000_000);
                let frame = json["frame"].as_str().unwrap_or_default();
                self.frame(json["port"].as_u64().unwrap_or(1) as u32, frame, after);
                Ok(())
            }
            "pass" => {
                self.bed.pass(json.as_u64().unwrap_or(0).min(PASS_MAX));
                Ok(())
            }
            _ => return None,
        })
    }

    /// Gives it a config: refused, and nothing changes; or taken whole.
    fn config(&mut self, action: i32, config: ForwardingPipelineConfig) -> Outcome {
        let before = self.forwards()?;
        match self.set(action, config) {
            Ok(()) if COMMITS.contains(&action) => {
                self.is_ours = false;
                return self.everything().map(drop);
            }
            Ok(()) => {}
            Err(status) => {
                let (code, text) = (status.code(), status.message());
                let is_good = matches!(code, Code::InvalidArgument | Code::Unimplemented);
                if !is_good || text.len() > 4096 {
                    let bytes = text.len();
                    return Err(format!("refused with {code:?}, {bytes} bytes: {text}"));
                }
            }
        }
        match !self.is_ours || before == self.forwards()? {
            true => Ok(()),
            false => Err("a config that was not committed changed something".into()),
        }
    }

    /// The config that runs, and what a frame of ours brings out.
    fn forwards(&mut self) -> Result<(Option<ForwardingPipelineConfig>, Vec<Sent>), String> {
        self.bed.take();
        self.frame(1, seeds::FRAMES[2], 1_000_000);
        let get = GetForwardingPipelineConfigRequest::default();
        let now = self.p4runtime(|local, device, now| local.get_pipeline(device, now, get));
        let now = now.map_err(|e| format!("the config cannot be read: {e}"))?;
        Ok((now.config, self.bed.take()))
    }

    /// A frame of hexadecimal digits comes in at a port, and leaves in this time.
    fn frame(&mut self, port: u32, frame: &str, after: Nanos) {
        self.bed.receive(port, &seeds::bytes(frame));
        self.bed.pass(after.min(PASS_MAX));
    }

    /// Runs a call of gNMI to its end; what it asks of the device is done between two polls.
    fn gnmi<T>(&mut self, call: impl AsyncFnOnce(&Gnmi) -> T) -> T {
        let (gnmi, calls, runtime) = self.gnmi.get_or_insert_with(|| {
            let (handle, calls) = DeviceHandle::new(|| {});
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime of one thread");
            let _tasks_start_there = runtime.enter();
            (gnmi(handle, watch::channel(0).1), calls, runtime)
        });
        let mut call = pin!(call(gnmi));
        runtime.block_on(poll_fn(|context| loop {
            if let Poll::Ready(done) = call.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            if !calls.run_one(&mut self.bed.device, |_| 1_000_000_000) {
                // Another task is at work for it.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }))
    }

    fn ports(&self) -> Vec<Option<PortConfig>> {
        let device = &self.bed.device;
        PORTS.map(|port| device.port(port).copied()).collect()
    }

    /// All that P4Runtime reads by a wildcard.
    ///
    /// # Errors
    /// When it cannot be read.
    fn everything(&mut self) -> Result<Vec<Entity>, String> {
        let all = json!({"entities": [
            {"table_entry": {}}, {"action_profile_member": {}}, {"action_profile_group": {}},
            {"counter_entry": {}}, {"meter_entry": {}}, {"digest_entry": {}}, {"value_set_entry": {}},
            {"packet_replication_engine_entry": {"multicast_group_entry": {}}},
            {"packet_replication_engine_entry": {"clone_session_entry": {}}},
        ]});
        let all = seeds::message("p4.v1.ReadRequest", &all).expect("a request");
        let read = self.p4runtime(|local, device, now| local.read(device, now, all));
        let read = read.map_err(|e| format!("reading everything: {e}"))?;
        Ok(read.into_iter().flat_map(|r| r.entities).collect())
    }

    /// What must hold after all steps.
    fn end(&mut self) -> Outcome {
        let told = self.p4runtime(|local, device, now| local.messages(device, now));
        told.map_err(|e| format!("the messages: {e}"))?;
        if !self.is_ours {
            return Ok(()); // any program: it may send a packet round for ever
        }
        if self.is_configured {
            self.delete_all()?;
        }
        if self.gnmi.is_some() {
            let all = seeds::get(["interfaces", "qos"], "JSON_IETF");
            let all = Request::new(seeds::message("gnmi.GetRequest", &all).expect("a request"));
            let answer = self.gnmi(async |gnmi| gnmi.get(all).await.map(drop));
            answer.map_err(|e| format!("reading everything: {e}"))?;
        }
        self.settles()
    }

    /// Reads all entries, members and groups, and deletes them: tables first, then groups, then members.
    fn delete_all(&mut self) -> Outcome {
        let mut all = self.everything()?;
        let rank = |entity: &Entity| match &entity.entity {
            Some(Kind::TableEntry(entry)) if !entry.is_const && !entry.is_default_action => Some(0),
            Some(Kind::ActionProfileGroup(_)) => Some(1),
            Some(Kind::ActionProfileMember(_)) => Some(2),
            Some(Kind::PacketReplicationEngineEntry(_)) => Some(3),
            _ => None,
        };
        all.retain(|entity| rank(entity).is_some());
        all.sort_by_key(rank);
        for entity in all {
            let update = Update {
                r#type: Type::Delete.into(),
                entity: Some(entity),
            };
            let request = WriteRequest {
                updates: vec![update.encode_to_vec().into()],
                ..Default::default()
            };
            let deleted = self.p4runtime(|local, device, now| local.write(device, now, request));
            deleted.map_err(|e| {
                let why = e.message();
                format!("{update:?} was read, but cannot be deleted: {why}")
            })?;
        }
        Ok(())
    }

    /// Nothing waits when everything had time to leave, and no packet is lost.
    fn settles(&mut self) -> Outcome {
        for _ in 0..100 {
            self.bed.pass(1_000_000_000);
        }
        let device = &self.bed.device;
        for port in PORTS {
            let usage = device.port_usage(port).unwrap_or_default();
            if usage.packets != 0 || usage.bytes != 0 {
                return Err(format!("port {port} still has {usage:?}"));
            }
        }
        let stats = device.stats();
        let came = stats.received + stats.copied;
        let went = stats.transmitted + stats.dropped_total();
        match came == went {
            true => Ok(()),
            false => Err(format!(
                "{came} packets came or were made, {went} left or were dropped: {stats:?}"
            )),
        }
    }
}

/// Good, or refused as the specification says: UNKNOWN with one error for each of `parts`, or another code for the whole.
fn well_formed<T>(what: &str, parts: usize, answer: Result<T, Status>) -> Outcome {
    let Err(status) = answer else { return Ok(()) };
    let (code, text) = (status.code(), status.message());
    let is_good = match code {
        Code::Internal | Code::Ok => false,
        Code::Unknown => errors(&status)
            .is_some_and(|codes| codes.len() == parts && codes.iter().any(|code| *code != 0)),
        _ => text.len() <= 8192,
    };
    match is_good {
        true => Ok(()),
        false => Err(format!(
            "{what} of {parts}: {code:?}, {} bytes: {text}: {:?}",
            text.len(),
            errors(&status)
        )),
    }
}

/// The codes in a status's details; None when they are none.
fn errors(status: &Status) -> Option<Vec<i32>> {
    let details = rpc::Status::decode(status.details()).ok()?.details;
    let errors = details
        .iter()
        .map(|any| messages::Error::decode(&*any.value));
    errors
        .map(|error| Some(error.ok()?.canonical_code))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_gets_configs_forwards() {
        let (_, document) = &seeds::configs()[0];
        let mut switch = Switch::start(config("entities"));
        assert_eq!(switch.forwards().unwrap().1, []);
        let insert = &document["steps"][0]["write"];
        assert_eq!(switch.step("write", insert), Ok(()));
        let sent = switch.forwards().unwrap().1;
        assert!(matches!(sent[..], [(1, _)]), "{sent:?}");
    }
}
