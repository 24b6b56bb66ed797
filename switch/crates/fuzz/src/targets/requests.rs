// SPDX-License-Identifier: Apache-2.0
//! P4Runtime writes, reads and stream messages, and frames between them, to one switch. Every answer is well-formed, and in
//! the end everything can be read, and all that is there can be deleted.

use p4rt::proto::p4info::match_field::{Match, MatchType};
use p4rt::proto::p4info::{Action, MatchField, P4Info, Preamble, Table};
use p4rt::proto::p4rt::{
    entity::Entity as Kind, update::Type, Entity, ForwardingPipelineConfig, ReadRequest,
    StreamMessageRequest, TableEntry, Update, WriteRequest,
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

type Configs = Vec<(String, ForwardingPipelineConfig)>;

pub fn target() -> Target {
    let messages = Messages::new();
    let (mut bases, mut configs) = (Vec::new(), Configs::new());
    for name in ["entities", "qthresh"] {
        let info = seeds::p4info(name);
        let document = json!({"program": name, "steps": steps(&info)});
        bases.push((name.to_string(), document));
        let config = switch::config(&seeds::program(name), info);
        configs.push((name.to_string(), config));
    }
    Target::new(bases, move |document| run(&messages, &configs, &document))
}

fn run(messages: &Messages, configs: &Configs, document: &Value) -> Outcome {
    let name = document["program"].as_str().unwrap_or_default();
    let mut switch = Switch::start(seeds::named(configs, name).clone());
    let steps = document["steps"].as_array();
    for step in steps.into_iter().flatten().take(STEPS_MAX) {
        let step = step.as_object().and_then(|step| step.iter().next());
        let Some((verb, json)) = step else { continue };
        if let Some(done) = self::step(messages, &mut switch, verb, json) {
            done?;
        }
    }
    let bed = &mut switch.bed;
    let told = switch.local.messages(&mut bed.device, bed.now);
    told.map_err(|e| format!("the messages: {e}"))?;
    delete_all(&mut switch)
}

/// Does a step; None for what is no request.
fn step(messages: &Messages, switch: &mut Switch, verb: &str, json: &Value) -> Option<Outcome> {
    Some(match verb {
        "write" => {
            let request: WriteRequest = messages.read("p4.v1.WriteRequest", json)?;
            let updates = request.updates.len();
            well_formed("write", updates, switch.write(request))
        }
        "read" => {
            let request: ReadRequest = messages.read("p4.v1.ReadRequest", json)?;
            let entities = request.entities.len();
            well_formed("read", entities, switch.read(request).map(drop))
        }
        "send" => {
            let request: StreamMessageRequest =
                messages.read("p4.v1.StreamMessageRequest", json)?;
            let bed = &mut switch.bed;
            let answer = switch.local.send(&mut bed.device, bed.now, request);
            answer.map_err(|e| format!("a stream message: {e}"))
        }
        "frame" => {
            let frame = seeds::bytes(json["frame"].as_str().unwrap_or_default());
            switch.frame(json["port"].as_u64().unwrap_or(1) as u32, &frame);
            Ok(())
        }
        "pass" => {
            switch.pass(json.as_u64().unwrap_or(0));
            Ok(())
        }
        _ => return None,
    })
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
    let mut all = switch.read_all(everything())?;
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
        let deleted = switch.update(update);
        deleted.map_err(|e| format!("{shown} was read, but cannot be deleted: {}", e.message()))?;
    }
    Ok(())
}

fn id(preamble: &Option<Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |p| p.id)
}

/// One of everything that this program has.
fn steps(info: &P4Info) -> Vec<Value> {
    let mut steps = Vec::new();
    // One write of an update, or of two separated by a space.
    let mut write = |verbs: &str, kind: &str, entity: Value| {
        let update = |verb| json!({"type": verb, "entity": {kind: entity}});
        let updates: Vec<Value> = verbs.split(' ').map(update).collect();
        steps.push(json!({"write": {"updates": updates}}));
    };
    let action = |id: u32| info.actions.iter().find(|a| self::id(&a.preamble) == id);
    let first_of = |table: &Table| action(table.action_refs.first()?.id).map(call_of);
    let (one, two) = (json!({"$hex": "01"}), json!({"$hex": "02"}));
    let count = json!({"packet_count": "5", "byte_count": "700"});
    let rates = json!({"cir": "100", "cburst": "10", "pir": "200", "pburst": "20"});
    let index = json!({"index": "1"});
    for profile in &info.action_profiles {
        let mut tables = info.tables.iter();
        let table = tables.find(|t| profile.table_ids.contains(&id(&t.preamble)));
        let (profile, call) = (id(&profile.preamble), table.and_then(first_of));
        for member in [1, 2] {
            let member = json!({"action_profile_id": profile, "member_id": member, "action": call});
            write("INSERT", "action_profile_member", member);
        }
        let members = json!([{"member_id": 1, "weight": 1}, {"member_id": 2, "weight": 2, "watch_port": one}]);
        let group =
            json!({"action_profile_id": profile, "group_id": 1, "max_size": 4, "members": members});
        write("INSERT", "action_profile_group", group);
    }
    for table in info.tables.iter().filter(|t| !t.is_const_table) {
        let Some(call) = first_of(table) else {
            continue;
        };
        let (table_id, direct) = (id(&table.preamble), table.implementation_id == 0);
        let action = match direct {
            true => json!({"action": call}),
            false => json!({"action_profile_member_id": 1}),
        };
        let entry = |hex, action: &Value| json!({"table_id": table_id, "match": key(table, hex), "priority": i32::from(ranked(table)), "action": action});
        let base = entry("01", &action);
        let with = |name: &str, value: Value| {
            let mut entry = base.clone();
            entry[name] = value;
            entry
        };
        if !table.match_fields.is_empty() {
            write("INSERT", "table_entry", with("metadata", one.clone()));
            let ages = with("idle_timeout_ns", json!("1000000"));
            write("MODIFY", "table_entry", ages);
            write("DELETE INSERT", "table_entry", base.clone());
            if direct {
                let counter = json!({"table_entry": base, "data": count});
                write("MODIFY", "direct_counter_entry", counter);
                let meter = json!({"table_entry": base, "config": rates});
                write("MODIFY", "direct_meter_entry", meter);
            } else {
                let set = json!([{"action": call, "weight": 1}, {"action": call, "weight": 2, "watch_port": one}]);
                let set = json!({"action_profile_action_set": {"action_profile_actions": set}});
                write("INSERT", "table_entry", entry("02", &set));
            }
        }
        let mut default = json!({"table_id": table_id, "is_default_action": true});
        let reset = default.clone();
        default["action"] = json!({"action": call});
        write("MODIFY", "table_entry", default);
        write("MODIFY", "table_entry", reset);
    }
    for counter in &info.counters {
        let counter = json!({"counter_id": id(&counter.preamble), "index": index, "data": count});
        write("MODIFY", "counter_entry", counter);
    }
    for meter in &info.meters {
        let meter = json!({"meter_id": id(&meter.preamble), "index": index, "config": rates});
        write("MODIFY", "meter_entry", meter);
    }
    for register in &info.registers {
        let register = json!({"register_id": id(&register.preamble), "index": index, "data": {"bitstring": one}});
        write("MODIFY", "register_entry", register);
    }
    for digest in &info.digests {
        let config =
            json!({"max_timeout_ns": "1000000", "max_list_size": 2, "ack_timeout_ns": "1000000"});
        let digest = json!({"digest_id": id(&digest.preamble), "config": config});
        write("INSERT", "digest_entry", digest);
    }
    for set in &info.value_sets {
        let field = |f: &MatchField| json!({"field_id": f.id, "exact": {"value": one}});
        let fields: Vec<Value> = set.r#match.iter().map(field).collect();
        let set = json!({"value_set_id": id(&set.preamble), "members": [{"match": fields}]});
        write("MODIFY", "value_set_entry", set);
    }
    let replicas = json!([{"port": one, "instance": 1}, {"port": two, "instance": 2}]);
    for entry in [
        json!({"multicast_group_entry": {"multicast_group_id": 1, "replicas": replicas}}),
        json!({"clone_session_entry": {"session_id": 1, "replicas": replicas, "packet_length_bytes": 64}}),
    ] {
        write("INSERT", "packet_replication_engine_entry", entry);
    }
    let is_out = |p: &Option<Preamble>| p.as_ref().is_some_and(|p| p.name == "packet_out");
    let headers = info.controller_packet_metadata.iter();
    for header in headers.filter(|header| is_out(&header.preamble)) {
        let fields = header.metadata.iter();
        let fields = fields.map(|m| json!({"metadata_id": m.id, "value": one}));
        let packet =
            json!({"payload": {"$hex": seeds::FRAMES[2]}, "metadata": fields.collect::<Vec<_>>()});
        steps.push(json!({"send": {"packet": packet}}));
    }
    let frames = seeds::FRAMES.map(|frame| json!({"frame": {"port": 1, "frame": frame}}));
    steps.extend(frames);
    steps.push(json!({"pass": 2_000_000_000u64}));
    let mut read =
        |kind: &str, entity: Value| steps.push(json!({"read": {"entities": [{kind: entity}]}}));
    for kind in [
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
    ] {
        read(kind, json!({}));
    }
    for register in &info.registers {
        read(
            "register_entry",
            json!({"register_id": id(&register.preamble)}),
        );
    }
    steps
}

/// A call with 1 for every parameter.
fn call_of(action: &Action) -> Value {
    let params = action.params.iter();
    let params = params.map(|p| json!({"param_id": p.id, "value": {"$hex": "01"}}));
    let params: Vec<Value> = params.collect();
    json!({"action_id": id(&action.preamble), "params": params})
}

fn kind(field: &MatchField) -> Option<MatchType> {
    match field.r#match {
        Some(Match::MatchType(kind)) => MatchType::try_from(kind).ok(),
        _ => None,
    }
}

fn ranked(table: &Table) -> bool {
    let kinds = [MatchType::Ternary, MatchType::Range, MatchType::Optional];
    let mut fields = table.match_fields.iter();
    fields.any(|f| kind(f).is_some_and(|kind| kinds.contains(&kind)))
}

fn key(table: &Table, hex: &str) -> Vec<Value> {
    let value = json!({"$hex": hex});
    let field = |f: &MatchField| {
        let (kind, how) = match kind(f) {
            Some(MatchType::Lpm) => ("lpm", json!({"value": value, "prefix_len": f.bitwidth})),
            Some(MatchType::Ternary) => ("ternary", json!({"value": value, "mask": value})),
            Some(MatchType::Range) => ("range", json!({"low": {"$hex": "00"}, "high": value})),
            Some(MatchType::Optional) => ("optional", json!({"value": value})),
            _ => ("exact", json!({"value": value})),
        };
        json!({"field_id": f.id, kind: how})
    };
    table.match_fields.iter().map(field).collect()
}

/// An entry of an exact table with one field that matches this value, and whose action has 1 for every parameter.
pub fn entry_to(info: &P4Info, messages: &Messages, table: &str, hex: &str) -> TableEntry {
    let named = |p: &Option<Preamble>| p.as_ref().is_some_and(|p| p.name == table);
    let table = info.tables.iter().find(|t| named(&t.preamble));
    let table = table.expect("a table");
    let first = table.action_refs.first().expect("an action").id;
    let action = info.actions.iter().find(|a| id(&a.preamble) == first);
    let call = call_of(action.expect("it is there"));
    let entry = json!({"table_id": id(&table.preamble), "match": key(table, hex), "action": {"action": call}});
    messages.read("p4.v1.TableEntry", &entry).expect("an entry")
}
