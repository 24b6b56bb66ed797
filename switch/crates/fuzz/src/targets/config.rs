// SPDX-License-Identifier: Apache-2.0
//! BMv2 JSON and P4Info together, given to a switch that forwards: refused, and it forwards on; or taken whole.

use p4rt::proto::p4info::P4Info;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action;
use p4rt::proto::p4rt::{ForwardingPipelineConfig, GetForwardingPipelineConfigRequest};
use serde_json::{json, Value};
use tonic::Code;

use super::switch::{self, Switch};
use super::{seeds, Outcome, Target};

/// Its entry takes the frame to 02:00:00:00:00:05, whatever that carries.
const TABLE: &str = "EntitiesIngress.exact_table";
const FRAME: &str = seeds::FRAMES[2];

pub fn target() -> Target {
    let base = |name: &str| {
        let (info, program) = (seeds::p4info_json(name), seeds::program(name));
        let document = json!({"p4info": info, "program": program, "action": 3});
        (name.to_string(), document)
    };
    let bases = vec![base("entities"), base("qthresh")];
    let info = &bases[0].1["p4info"];
    let table = seeds::list(info, "tables").find(|t| t["preamble"]["name"] == TABLE);
    let entry = seeds::entry(info, table.expect("it is there"), "020000000005");
    let insert = seeds::write("INSERT", "table_entry", entry);
    let good = switch::config("entities");
    Target::new(bases, move |document| run(&good, &insert, &document))
}

fn run(good: &ForwardingPipelineConfig, insert: &Value, document: &Value) -> Outcome {
    let info = seeds::message::<P4Info>("p4.config.v1.P4Info", &document["p4info"]);
    let Some(info) = info else { return Ok(()) };
    let action = match document["action"].as_i64() {
        Some(1) => Action::Verify,
        Some(2) => Action::VerifyAndSave,
        Some(5) => Action::ReconcileAndCommit,
        _ => Action::VerifyAndCommit,
    };
    let mut switch = Switch::start(good.clone());
    switch.step("write", &insert["write"])?;
    forwards(&mut switch)?;
    let config = ForwardingPipelineConfig {
        p4info: Some(info),
        p4_device_config: document["program"].to_string().into_bytes().into(),
        cookie: None,
    };
    match switch.set(action, config) {
        Err(status) => {
            let (code, text) = (status.code(), status.message());
            if !matches!(code, Code::InvalidArgument | Code::Unimplemented) || text.len() > 4096 {
                let bytes = text.len();
                return Err(format!("refused with {code:?}, {bytes} bytes: {text}"));
            }
            let get = GetForwardingPipelineConfigRequest::default();
            let now = switch.p4runtime(|local, device, now| local.get_pipeline(device, now, get));
            let now = now.map_err(|e| format!("the config cannot be read: {e}"))?;
            match now.config.as_ref() == Some(good) {
                true => forwards(&mut switch),
                false => Err("a refused config changed the one that is read".into()),
            }
        }
        Ok(()) if matches!(action, Action::Verify | Action::VerifyAndSave) => forwards(&mut switch),
        Ok(()) => {
            for frame in seeds::FRAMES {
                switch.frame(1, frame, 1_000_000);
            }
            switch.everything().map(drop)
        }
    }
}

/// The program that ran before does so.
fn forwards(switch: &mut Switch) -> Outcome {
    switch.bed.take();
    switch.frame(1, FRAME, 1_000_000);
    let sent = switch.bed.take();
    match sent.iter().any(|(port, _)| *port == 1) {
        true => Ok(()),
        false => Err(format!(
            "the program that ran before does not forward: {sent:?}"
        )),
    }
}
