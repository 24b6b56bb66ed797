// SPDX-License-Identifier: Apache-2.0
//! BMv2 JSON and P4Info together, given to a switch that forwards: refused, and it forwards on; or taken whole.

use p4rt::proto::p4info::P4Info;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action;
use p4rt::proto::p4rt::{
    entity::Entity as Kind, update::Type, Entity, ForwardingPipelineConfig,
    GetForwardingPipelineConfigRequest, TableEntry, Update,
};
use serde_json::{json, Value};
use tonic::Code;

use super::messages::Messages;
use super::switch::{self, Switch};
use super::{requests, seeds, Outcome, Target};

struct Config {
    messages: Messages,
    /// What runs before.
    good: ForwardingPipelineConfig,
    /// An entry by which it forwards, and a frame that takes it.
    entry: TableEntry,
}

/// To 02:00:00:00:00:05, whatever it carries.
const FRAME: &str = seeds::FRAMES[2];

pub fn target() -> Target {
    let messages = Messages::new();
    let base = |name: &str| {
        let info = messages.write("p4.config.v1.P4Info", &seeds::p4info(name));
        let document = json!({"p4info": info, "program": seeds::program(name), "action": 3});
        (name.to_string(), document)
    };
    let bases = vec![base("entities"), base("qthresh")];
    let info = seeds::p4info("entities");
    let table = "EntitiesIngress.exact_table";
    let config = Config {
        entry: requests::entry_to(&info, &messages, table, "020000000005"),
        good: switch::config(&bases[0].1["program"], info),
        messages,
    };
    Target::new(bases, move |document| config.run(document))
}

impl Config {
    fn run(&self, document: Value) -> Outcome {
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
        let written = switch.update(insert);
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
                switch.read_all(requests::everything()).map(drop)
            }
        }
    }

    /// Nothing changed.
    fn still(&self, switch: &mut Switch) -> Outcome {
        let get = GetForwardingPipelineConfigRequest::default();
        let bed = &mut switch.bed;
        let config = switch.local.get_pipeline(&mut bed.device, bed.now, get);
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
    switch.bed.take();
    switch.frame(1, &seeds::bytes(FRAME));
    let sent = switch.bed.take();
    match sent.iter().any(|(port, _)| *port == 1) {
        true => Ok(()),
        false => Err(format!(
            "the program that ran before does not forward: {sent:?}"
        )),
    }
}
