// SPDX-License-Identifier: Apache-2.0
//! P4Runtime writes, reads and stream messages, and frames between them, to one switch. Every answer is well-formed, and in
//! the end everything can be read, and all that is there can be deleted.

use p4rt::proto::p4info::match_field::{Match, MatchType};
use p4rt::proto::p4info::{Action, P4Info, Preamble};
use p4rt::proto::p4rt::{
    entity::Entity as Kind, update::Type, Entity, ForwardingPipelineConfig, ReadRequest,
    ReadResponse, StreamMessageRequest, TableEntry, Update, WriteRequest,
};
use p4rt::proto::{p4rt as messages_of, rpc};
use prost::Message;
use serde_json::{json, Value};
use tonic::{Code, Status};

use super::messages::Messages;
use super::switch::{self, Switch};
use super::{seeds, Outcome, Target};

/// Most steps of one document.
const STEPS_MAX: usize = 200;

pub struct Requests {
    bases: Vec<(String, Value)>,
    messages: Messages,
    configs: Vec<(String, ForwardingPipelineConfig)>,
}

impl Requests {
    pub fn new() -> Requests {
        let messages = Messages::new();
        let programs = seeds::programs();
        let (mut bases, mut configs) = (Vec::new(), Vec::new());
        for name in ["entities", "qthresh"] {
            let info = seeds::p4info(name);
            let program = &programs
                .iter()
                .find(|(n, _)| n == name)
                .expect("a program")
                .1;
            bases.push((
                name.to_string(),
                json!({"program": name, "steps": steps(&info)}),
            ));
            configs.push((name.to_string(), switch::config(program, info)));
        }
        Requests {
            bases,
            messages,
            configs,
        }
    }
}

impl Target for Requests {
    fn name(&self) -> &'static str {
        "requests"
    }

    fn bases(&self) -> &[(String, Value)] {
        &self.bases
    }

    fn run(&mut self, document: Value) -> Outcome {
        let name = document["program"].as_str().unwrap_or_default();
        let config = self.configs.iter().find(|(known, _)| known == name);
        let config = &config.unwrap_or(&self.configs[0]).1;
        let mut switch = Switch::start(config.clone());
        let steps = document["steps"].as_array();
        for step in steps.into_iter().flatten().take(STEPS_MAX) {
            self.step(&mut switch, step)?;
        }
        let messages = switch.local.messages(&mut switch.device, switch.now);
        messages.map_err(|e| format!("the messages: {e}"))?;
        delete_all(&mut switch)
    }
}

impl Requests {
    fn step(&self, switch: &mut Switch, step: &Value) -> Outcome {
        let Some((verb, json)) = step.as_object().and_then(|step| step.iter().next()) else {
            return Ok(());
        };
        let (device, now) = (&mut switch.device, switch.now);
        match verb.as_str() {
            "write" => {
                let request = self
                    .messages
                    .read::<WriteRequest>("p4.v1.WriteRequest", json);
                let Some(request) = request else {
                    return Ok(());
                };
                let updates = request.updates.len();
                well_formed("write", updates, switch.local.write(device, now, request))
            }
            "read" => {
                let request = self.messages.read::<ReadRequest>("p4.v1.ReadRequest", json);
                let Some(request) = request else {
                    return Ok(());
                };
                let entities = request.entities.len();
                let answer = switch.local.read(device, now, request);
                well_formed("read", entities, answer.map(drop))
            }
            "send" => {
                let name = "p4.v1.StreamMessageRequest";
                let request = self.messages.read::<StreamMessageRequest>(name, json);
                let Some(request) = request else {
                    return Ok(());
                };
                let answer = switch.local.send(device, now, request);
                answer.map_err(|e| format!("a stream message: {e}"))
            }
            "frame" => {
                switch.frame(
                    json["port"].as_u64().unwrap_or(1) as u32,
                    &seeds::bytes(json["frame"].as_str().unwrap_or_default()),
                );
                Ok(())
            }
            "pass" => {
                switch.pass(json.as_u64().unwrap_or(0));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Good, or refused as the specification says: UNKNOWN with one error for each of `parts`, or another code for the whole.
fn well_formed(what: &str, parts: usize, answer: Result<(), Status>) -> Outcome {
    let Err(status) = answer else { return Ok(()) };
    let told = || {
        format!(
            "{what} of {parts}: {:?}: {}",
            status.code(),
            status.message()
        )
    };
    match status.code() {
        Code::Internal | Code::Ok => Err(told()),
        Code::Unknown => {
            let details = rpc::Status::decode(status.details());
            let details = details.map_err(|e| format!("{}: {e}", told()))?.details;
            let errors = details
                .iter()
                .map(|any| messages_of::Error::decode(any.value.as_slice()));
            let errors: Result<Vec<_>, _> = errors.collect();
            let errors = errors.map_err(|e| format!("{}: {e}", told()))?;
            match errors.len() == parts && errors.iter().any(|e| e.canonical_code != 0) {
                true => Ok(()),
                false => Err(format!("{}: {} details", told(), errors.len())),
            }
        }
        _ => Ok(()),
    }
}

/// Everything that a wildcard reads.
pub fn everything() -> Vec<Entity> {
    use messages_of::packet_replication_engine_entry::Type as Pre;
    let pre = |kind| {
        Kind::PacketReplicationEngineEntry(messages_of::PacketReplicationEngineEntry {
            r#type: Some(kind),
        })
    };
    let all = [
        Kind::TableEntry(TableEntry::default()),
        Kind::ActionProfileMember(Default::default()),
        Kind::ActionProfileGroup(Default::default()),
        Kind::CounterEntry(Default::default()),
        Kind::MeterEntry(Default::default()),
        Kind::DigestEntry(Default::default()),
        Kind::ValueSetEntry(Default::default()),
        pre(Pre::MulticastGroupEntry(Default::default())),
        pre(Pre::CloneSessionEntry(Default::default())),
    ];
    all.map(|entity| Entity {
        entity: Some(entity),
    })
    .into()
}

/// Reads all entries, members and groups, and deletes them: tables first, then groups, then members.
fn delete_all(switch: &mut Switch) -> Outcome {
    let request = ReadRequest {
        entities: everything(),
        ..Default::default()
    };
    let read = switch.local.read(&mut switch.device, switch.now, request);
    let read: Vec<ReadResponse> = read.map_err(|e| format!("reading everything: {e}"))?;
    let mut all: Vec<Entity> = read.into_iter().flat_map(|r| r.entities).collect();
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
        let shown = format!("{update:?}");
        let request = WriteRequest {
            updates: vec![update.encode_to_vec().into()],
            ..Default::default()
        };
        let deleted = switch.local.write(&mut switch.device, switch.now, request);
        deleted.map_err(|e| format!("{shown} was read, but cannot be deleted: {}", e.message()))?;
    }
    Ok(())
}

fn update(verb: &str, kind: &str, entity: Value) -> Value {
    json!({"type": verb, "entity": {kind: entity}})
}

fn id(preamble: &Option<Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |p| p.id)
}

/// One of everything that this program has.
fn steps(info: &P4Info) -> Vec<Value> {
    let mut steps = Vec::new();
    let mut write = |updates: Vec<Value>| steps.push(json!({"write": {"updates": updates}}));
    let action = |id: u32| info.actions.iter().find(|a| self::id(&a.preamble) == id);
    let one = json!({"$hex": "01"});
    for profile in &info.action_profiles {
        let table = info
            .tables
            .iter()
            .find(|t| profile.table_ids.contains(&id(&t.preamble)));
        let call = table
            .and_then(|t| t.action_refs.first())
            .and_then(|a| action(a.id));
        let profile = id(&profile.preamble);
        for member in [1, 2] {
            write(vec![update(
                "INSERT",
                "action_profile_member",
                json!({"action_profile_id": profile, "member_id": member, "action": call.map(call_of)}),
            )]);
        }
        write(vec![update(
            "INSERT",
            "action_profile_group",
            json!({"action_profile_id": profile, "group_id": 1, "max_size": 4, "members": [
            {"member_id": 1, "weight": 1}, {"member_id": 2, "weight": 2, "watch_port": one}]}),
        )]);
    }
    for table in info.tables.iter().filter(|t| !t.is_const_table) {
        let Some(first) = table.action_refs.first().and_then(|a| action(a.id)) else {
            continue;
        };
        let act = match table.implementation_id {
            0 => json!({"action": call_of(first)}),
            _ => json!({"action_profile_member_id": 1}),
        };
        let base = json!({"table_id": id(&table.preamble), "match": key(table, "01"), "priority": i32::from(ranked(table)), "action": act});
        let with = |more: &[(&str, Value)]| {
            let mut entry = base.clone();
            more.iter()
                .for_each(|(name, value)| entry[*name] = value.clone());
            entry
        };
        if !table.match_fields.is_empty() {
            write(vec![update(
                "INSERT",
                "table_entry",
                with(&[("metadata", one.clone())]),
            )]);
            write(vec![update(
                "MODIFY",
                "table_entry",
                with(&[("idle_timeout_ns", json!("1000000"))]),
            )]);
            write(vec![
                update("DELETE", "table_entry", base.clone()),
                update("INSERT", "table_entry", base.clone()),
            ]);
            if table.implementation_id == 0 {
                let counter = json!({"table_entry": base, "data": {"packet_count": "5", "byte_count": "700"}});
                write(vec![update("MODIFY", "direct_counter_entry", counter)]);
                let meter = json!({"table_entry": base, "config": {"cir": "100", "cburst": "10", "pir": "200", "pburst": "20"}});
                write(vec![update("MODIFY", "direct_meter_entry", meter)]);
            } else {
                let sets = json!({"action_profile_action_set": {"action_profile_actions": [{"action": call_of(first), "weight": 1}, {"action": call_of(first), "weight": 2, "watch_port": one}]}});
                let other = json!({"table_id": id(&table.preamble), "match": key(table, "02"), "priority": i32::from(ranked(table)), "action": sets});
                write(vec![update("INSERT", "table_entry", other)]);
            }
        }
        let default = json!({"table_id": id(&table.preamble), "is_default_action": true, "action": {"action": call_of(first)}});
        write(vec![update("MODIFY", "table_entry", default.clone())]);
        write(vec![update(
            "MODIFY",
            "table_entry",
            json!({"table_id": id(&table.preamble), "is_default_action": true}),
        )]);
    }
    for counter in &info.counters {
        let data = json!({"packet_count": "5", "byte_count": "700"});
        write(vec![update(
            "MODIFY",
            "counter_entry",
            json!({"counter_id": id(&counter.preamble), "index": {"index": "1"}, "data": data}),
        )]);
    }
    for meter in &info.meters {
        let config = json!({"cir": "100", "cburst": "10", "pir": "200", "pburst": "20"});
        write(vec![update(
            "MODIFY",
            "meter_entry",
            json!({"meter_id": id(&meter.preamble), "index": {"index": "1"}, "config": config}),
        )]);
    }
    for register in &info.registers {
        write(vec![update(
            "MODIFY",
            "register_entry",
            json!({"register_id": id(&register.preamble), "index": {"index": "1"}, "data": {"bitstring": one}}),
        )]);
    }
    for digest in &info.digests {
        let config =
            json!({"max_timeout_ns": "1000000", "max_list_size": 2, "ack_timeout_ns": "1000000"});
        write(vec![update(
            "INSERT",
            "digest_entry",
            json!({"digest_id": id(&digest.preamble), "config": config}),
        )]);
    }
    for set in &info.value_sets {
        let fields = set
            .r#match
            .iter()
            .map(|f| json!({"field_id": f.id, "exact": {"value": one}}));
        let fields: Vec<Value> = fields.collect();
        write(vec![update(
            "MODIFY",
            "value_set_entry",
            json!({"value_set_id": id(&set.preamble), "members": [{"match": fields}]}),
        )]);
    }
    let replicas = json!([{"port": one, "instance": 1}, {"port": {"$hex": "02"}, "instance": 2}]);
    let group = json!({"multicast_group_entry": {"multicast_group_id": 1, "replicas": replicas}});
    write(vec![update(
        "INSERT",
        "packet_replication_engine_entry",
        group,
    )]);
    let session = json!({"clone_session_entry": {"session_id": 1, "replicas": replicas, "packet_length_bytes": 64}});
    write(vec![update(
        "INSERT",
        "packet_replication_engine_entry",
        session,
    )]);
    for metadata in &info.controller_packet_metadata {
        if metadata
            .preamble
            .as_ref()
            .is_some_and(|p| p.name == "packet_out")
        {
            let fields: Vec<Value> = metadata
                .metadata
                .iter()
                .map(|m| json!({"metadata_id": m.id, "value": one}))
                .collect();
            steps.push(json!({"send": {"packet": {"payload": {"$hex": seeds::FRAMES[2]}, "metadata": fields}}}));
        }
    }
    for frame in seeds::FRAMES {
        steps.push(json!({"frame": {"port": 1, "frame": frame}}));
    }
    steps.push(json!({"pass": 2_000_000_000u64}));
    let wild = [
        "table_entry",
        "action_profile_member",
        "action_profile_group",
        "counter_entry",
        "meter_entry",
        "digest_entry",
        "value_set_entry",
        "register_entry",
        "direct_counter_entry",
        "direct_meter_entry",
        "packet_replication_engine_entry",
    ];
    for kind in wild {
        steps.push(json!({"read": {"entities": [{kind: {}}]}}));
    }
    for register in &info.registers {
        steps.push(json!({"read": {"entities": [{"register_entry": {"register_id": id(&register.preamble)}}]}}));
    }
    steps
}

/// A call with 1 for every parameter.
fn call_of(action: &Action) -> Value {
    let params: Vec<Value> = action
        .params
        .iter()
        .map(|p| json!({"param_id": p.id, "value": {"$hex": "01"}}))
        .collect();
    json!({"action_id": id(&action.preamble), "params": params})
}

fn kind(field: &p4rt::proto::p4info::MatchField) -> Option<MatchType> {
    match field.r#match {
        Some(Match::MatchType(kind)) => MatchType::try_from(kind).ok(),
        _ => None,
    }
}

fn ranked(table: &p4rt::proto::p4info::Table) -> bool {
    let kinds = [MatchType::Ternary, MatchType::Range, MatchType::Optional];
    let mut fields = table.match_fields.iter();
    fields.any(|f| kind(f).is_some_and(|kind| kinds.contains(&kind)))
}

fn key(table: &p4rt::proto::p4info::Table, hex: &str) -> Vec<Value> {
    let value = json!({"$hex": hex});
    let field = |f: &p4rt::proto::p4info::MatchField| match kind(f) {
        Some(MatchType::Lpm) => {
            json!({"field_id": f.id, "lpm": {"value": value, "prefix_len": f.bitwidth}})
        }
        Some(MatchType::Ternary) => {
            json!({"field_id": f.id, "ternary": {"value": value, "mask": value}})
        }
        Some(MatchType::Range) => {
            json!({"field_id": f.id, "range": {"low": {"$hex": "00"}, "high": value}})
        }
        Some(MatchType::Optional) => json!({"field_id": f.id, "optional": {"value": value}}),
        _ => json!({"field_id": f.id, "exact": {"value": value}}),
    };
    table.match_fields.iter().map(field).collect()
}

/// An entry of an exact table with one field that matches this value, and whose action has 1 for every parameter.
pub fn entry_to(info: &P4Info, messages: &Messages, table: &str, hex: &str) -> TableEntry {
    let named = |p: &Option<Preamble>| p.as_ref().is_some_and(|p| p.name == table);
    let table = info
        .tables
        .iter()
        .find(|t| named(&t.preamble))
        .expect("a table");
    let first = table.action_refs.first().expect("an action").id;
    let action = info
        .actions
        .iter()
        .find(|a| id(&a.preamble) == first)
        .expect("it is there");
    let entry = json!({"table_id": id(&table.preamble), "match": key(table, hex), "action": {"action": call_of(action)}});
    messages.read("p4.v1.TableEntry", &entry).expect("an entry")
}
