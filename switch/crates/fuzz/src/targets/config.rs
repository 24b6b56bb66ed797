// SPDX-License-Identifier: Apache-2.0
//! BMv2 JSON and P4Info together, given to a switch that forwards: refused, and it forwards on; or taken whole.

use p4rt::proto::p4info::P4Info;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action;
use p4rt::proto::p4rt::{
    entity::Entity as Kind, update::Type, Entity, ForwardingPipelineConfig,
    GetForwardingPipelineConfigRequest, ReadRequest, TableEntry, Update, WriteRequest,
};
use prost::Message;
use serde_json::{json, Value};
use tonic::Code;

use super::messages::Messages;
use super::switch::{self, Switch};
use super::{requests, seeds, Outcome, Target};

pub struct Config {
    bases: Vec<(String, Value)>,
    messages: Messages,
    /// What runs before.
    good: ForwardingPipelineConfig,
    /// An entry by which it forwards, and a frame that takes it.
    entry: TableEntry,
}

/// To 02:00:00:00:00:05, whatever it carries.
const FRAME: &str = seeds::FRAMES[2];

impl Config {
    pub fn new() -> Config {
        let (messages, programs) = (Messages::new(), seeds::programs());
        let base = |name: &str| {
            let program = &programs
                .iter()
                .find(|(n, _)| n == name)
                .expect("a program")
                .1;
            let info = messages.write("p4.config.v1.P4Info", &seeds::p4info(name));
            (
                name.to_string(),
                json!({"p4info": info, "program": program, "action": 3}),
            )
        };
        let bases = vec![base("entities"), base("qthresh")];
        let info = seeds::p4info("entities");
        let entry = requests::entry_to(
            &info,
            &messages,
            "EntitiesIngress.exact_table",
            "020000000005",
        );
        let good = switch::config(&bases[0].1["program"], info);
        Config {
            bases,
            messages,
            good,
            entry,
        }
    }
}

impl Target for Config {
    fn name(&self) -> &'static str {
        "config"
    }

    fn bases(&self) -> &[(String, Value)] {
        &self.bases
    }

    fn run(&mut self, document: Value) -> Outcome {
        let read = |info: &Value| self.messages.read::<P4Info>("p4.config.v1.P4Info", info);
        let Some(info) = document.get("p4info").and_then(read) else {
            return Ok(());
        };
        let action = match document["action"].as_i64() {
            Some(1) => Action::Verify,
            Some(2) => Action::VerifyAndSave,
            Some(5) => Action::ReconcileAndCommit,
            _ => Action::VerifyAndCommit,
        };
        let mut switch = Switch::start(self.good.clone());
        let insert = Update {
            r#type: Type::Insert.into(),
            entity: Some(Entity {
                entity: Some(Kind::TableEntry(self.entry.clone())),
            }),
        };
        let write = WriteRequest {
            updates: vec![insert.encode_to_vec().into()],
            ..Default::default()
        };
        let written = switch.local.write(&mut switch.device, switch.now, write);
        written.map_err(|e| format!("the good entry is refused: {e}"))?;
        let config = switch::config(&document["program"], info);
        match switch.set(action, config) {
            Err(status) => {
                let code = status.code();
                if !matches!(code, Code::InvalidArgument | Code::Unimplemented) {
                    return Err(format!("refused with {code:?}: {}", status.message()));
                }
                if status.message().len() > 4096 {
                    return Err(format!("a refusal of {} bytes", status.message().len()));
                }
                self.still(&mut switch)
            }
            Ok(()) if matches!(action, Action::Verify | Action::VerifyAndSave) => {
                forwards(&mut switch)
            }
            Ok(()) => {
                for frame in seeds::FRAMES {
                    switch.frame(1, &seeds::bytes(frame));
                }
                let all = ReadRequest {
                    entities: requests::everything(),
                    ..Default::default()
                };
                let read = switch.local.read(&mut switch.device, switch.now, all);
                read.map(drop)
                    .map_err(|e| format!("reading everything: {e}"))
            }
        }
    }
}

impl Config {
    /// Nothing changed.
    fn still(&self, switch: &mut Switch) -> Outcome {
        let get = GetForwardingPipelineConfigRequest::default();
        let config = switch
            .local
            .get_pipeline(&mut switch.device, switch.now, get);
        let config = config
            .map_err(|e| format!("the config cannot be read: {e}"))?
            .config;
        if config.as_ref() != Some(&self.good) {
            return Err("a refused config changed the one that is read".into());
        }
        forwards(switch)
    }
}

fn forwards(switch: &mut Switch) -> Outcome {
    switch.sent.0.clear();
    switch.frame(1, &seeds::bytes(FRAME));
    match switch.sent.0.iter().any(|(port, _)| *port == 1) {
        true => Ok(()),
        false => Err(format!(
            "the program that ran before does not forward: {:?}",
            switch.sent.0
        )),
    }
}
