// SPDX-License-Identifier: Apache-2.0
//! The documents that inputs begin with: the repository's own compiled programs, and steps that use all that these have. A
//! message is JSON as protobuf maps it, with bytes also as `{"$hex": "0a0b"}` and `{"$json": …}`.

use std::path::Path;
use std::sync::LazyLock;

use base64::prelude::{Engine, BASE64_STANDARD};
use p4rt::proto::p4info::P4Info;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::{json, Value};

use super::Base;

/// A program of the repository, by its path without `.json` below the folder `switch`.
const PROGRAMS: [(&str, &str); 9] = [
    ("entities", "crates/p4rt/tests/p4/entities"),
    ("state", "crates/v1model/tests/p4/compiled/state"),
    ("headers", "crates/v1model/tests/p4/compiled/headers"),
    ("meters", "crates/v1model/tests/p4/compiled/meters"),
    ("profiles", "crates/v1model/tests/p4/compiled/profiles"),
    ("value_sets", "crates/v1model/tests/p4/compiled/value_sets"),
    ("ops", "crates/device/tests/p4/ops"),
    ("queues", "crates/device/tests/p4/queues"),
    ("qthresh", "../p4src/compiled/qthresh"),
];

/// A file beside a program; None for a name that no program has, and for what a program has not.
fn read(name: &str, extension: &str) -> Option<String> {
    let (_, path) = PROGRAMS.iter().find(|(known, _)| *known == name)?;
    let switch = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(switch.join(format!("{path}.{extension}"))).ok()
}

/// One of the programs, without what only people read; None for a name that none has.
pub fn program(name: &str) -> Option<Value> {
    let mut json = serde_json::from_str(&read(name, "json")?).expect("p4c writes JSON");
    without_sources(&mut json);
    Some(json)
}

/// All programs.
pub fn programs() -> Vec<Base> {
    let program = |name| program(name).unwrap_or_else(|| panic!("{name}.json is not there"));
    PROGRAMS
        .map(|(name, _)| (name.to_string(), program(name)))
        .into()
}

/// The P4Info of a program that has one.
pub fn p4info(name: &str) -> Option<P4Info> {
    let text = read(name, "p4info.txtpb")?;
    Some(p4rt::proto::p4info_from_text(&text).unwrap_or_else(|e| panic!("{name}: {e}")))
}

fn without_sources(json: &mut Value) {
    match json {
        Value::Object(members) => {
            members.shift_remove("source_info");
            members.values_mut().for_each(without_sources);
        }
        Value::Array(items) => items.iter_mut().for_each(without_sources),
        _ => {}
    }
}

/// Frames in hexadecimal: nothing, a byte, Ethernet with IPv4 and TCP, with IPv6, and the test programs' own headers.
pub const FRAMES: [&str; 8] = [
    "",
    "00",
    "0200000000050200000000010800450000340001400040061234010203040506070804d2162e00000001000000025010200012340000deadbeef0102030405060708",
    "02000000000502000000000186dd600000000014064020010db800000000000000000000000120010db800000000000000000000000204d2162e00000001000000025010200012340000",
    "020000000005020000000001080045000014000100004011000001020304050607ff",
    "010002040608090a0b0c0d0e0f10111213141516171819",
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
];

/// Bytes of hexadecimal digits; what is none is left out.
pub fn bytes(hex: &str) -> Vec<u8> {
    let mut digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.truncate(digits.len() & !1);
    hex::decode(digits).expect("pairs of digits")
}

static MESSAGES: LazyLock<DescriptorPool> = LazyLock::new(p4rt::proto::descriptors);

fn descriptor(name: &str) -> MessageDescriptor {
    MESSAGES.get_message_by_name(name).expect("a known message")
}

/// The message `name` of this JSON; None when it is none.
pub fn message<M: Message + Default>(name: &str, json: &Value) -> Option<M> {
    let message = DynamicMessage::deserialize(descriptor(name), plain(json)).ok()?;
    M::decode(message.encode_to_vec().as_slice()).ok()
}

/// The same with bytes in base64, as protobuf's JSON has them.
fn plain(json: &Value) -> Value {
    match json {
        Value::Object(members) => {
            if let Some(Value::String(hex)) = members.get("$hex") {
                return BASE64_STANDARD.encode(bytes(hex)).into();
            }
            if let Some(value) = members.get("$json") {
                return BASE64_STANDARD.encode(value.to_string()).into();
            }
            members.iter().map(|(k, v)| (k.clone(), plain(v))).collect()
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

/// The P4Info of a program that has one, as JSON.
pub fn p4info_json(name: &str) -> Value {
    let bytes = p4info(name).expect("it has P4Info").encode_to_vec();
    let message = DynamicMessage::decode(descriptor("p4.config.v1.P4Info"), bytes.as_slice());
    let options = SerializeOptions::new().use_proto_field_name(true);
    let json = message.map(|m| m.serialize_with_options(serde_json::value::Serializer, &options));
    json.expect("its own bytes").expect("a message is JSON")
}

/// The items of a list of a message; none where there is no list.
pub fn list<'a>(message: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    message[name].as_array().into_iter().flatten()
}

fn id(object: &Value) -> Value {
    object["preamble"]["id"].clone()
}

/// One write of these updates of an entity, separated by spaces.
pub fn write(verbs: &str, kind: &str, entity: Value) -> Value {
    let update = |verb| json!({"type": verb, "entity": {kind: entity}});
    let updates: Vec<Value> = verbs.split(' ').map(update).collect();
    json!({"write": {"updates": updates}})
}

/// A call of a table's first action, with 1 for every parameter.
fn call(info: &Value, table: &Value) -> Value {
    let action = &list(table, "action_refs")
        .next()
        .expect("a table has actions")["id"];
    let schema = list(info, "actions")
        .find(|a| id(a) == *action)
        .expect("it is there");
    let params = list(schema, "params");
    let params = params.map(|p| json!({"param_id": p["id"], "value": {"$hex": "01"}}));
    json!({"action": {"action_id": action, "params": params.collect::<Vec<_>>()}})
}

/// An entry of a table whose fields match this value, and that does what `call` does, or member 1.
pub fn entry(info: &Value, table: &Value, hex: &str) -> Value {
    let (value, zero) = (json!({"$hex": hex}), json!({"$hex": "00"}));
    let mut priority = 0;
    let mut field = |field: &Value| {
        let (kind, how, ranks) = match field["match_type"].as_str() {
            Some("LPM") => {
                let how = json!({"value": value, "prefix_len": field["bitwidth"]});
                ("lpm", how, 0)
            }
            Some("TERNARY") => ("ternary", json!({"value": value, "mask": value}), 1),
            Some("RANGE") => ("range", json!({"low": zero, "high": value}), 1),
            Some("OPTIONAL") => ("optional", json!({"value": value}), 1),
            _ => ("exact", json!({"value": value}), 0),
        };
        priority = priority.max(ranks);
        json!({"field_id": field["id"], kind: how})
    };
    let key: Vec<Value> = list(table, "match_fields").map(&mut field).collect();
    let action = match table.get("implementation_id") {
        None => call(info, table),
        Some(_) => json!({"action_profile_member_id": 1}),
    };
    json!({"table_id": id(table), "match": key, "priority": priority, "action": action})
}

fn document(name: &str, steps: Vec<Value>) -> Base {
    let document = json!({"program": name, "steps": steps});
    (name.to_string(), document)
}

/// P4Runtime requests to two programs.
pub fn requests() -> Vec<Base> {
    let steps = |name| document(name, steps(&p4info_json(name)));
    ["entities", "qthresh"].map(steps).into()
}

/// Configs for a switch that forwards with another program: an entry takes FRAMES[2] to 02:00:00:00:00:05, whatever that carries.
pub fn configs() -> Vec<Base> {
    let info = p4info_json("entities");
    let is_it = |t: &&Value| t["preamble"]["name"] == "EntitiesIngress.exact_table";
    let table = list(&info, "tables").find(is_it).expect("it is there");
    let insert = write("INSERT", "table_entry", entry(&info, table, "020000000005"));
    let config = |name: &str| {
        let config = json!({"action": 3, "p4info": p4info_json(name), "program": program(name)});
        let mut steps = vec![insert.clone(), json!({ "config": config })];
        steps.extend(FRAMES.map(|frame| json!({"frame": {"port": 1, "frame": frame}})));
        let document = json!({"program": "entities", "steps": steps});
        (name.to_string(), document)
    };
    ["entities", "qthresh"].map(config).into()
}

/// Frames through each program.
pub fn frames() -> Vec<Base> {
    let frame = |hex| json!({"frame": {"port": 1, "frame": hex, "after_ns": 1000}});
    let steps = |(name, _)| document(name, FRAMES.map(frame).into());
    PROGRAMS.map(steps).into()
}

/// One of everything that this program has.
fn steps(info: &Value) -> Vec<Value> {
    let (one, two) = (json!({"$hex": "01"}), json!({"$hex": "02"}));
    let count = json!({"packet_count": "5", "byte_count": "700"});
    let rates = json!({"cir": "100", "cburst": "10", "pir": "200", "pburst": "20"});
    let mut steps = Vec::new();
    let mut add = |verbs: &str, kind: &str, entity: Value| steps.push(write(verbs, kind, entity));
    for profile in list(info, "action_profiles") {
        let uses = |t: &&Value| list(profile, "table_ids").any(|table| *table == id(t));
        let table = list(info, "tables").find(uses).expect("a table uses it");
        for member in [1, 2] {
            let mut member = json!({"action_profile_id": id(profile), "member_id": member});
            member["action"] = call(info, table)["action"].take();
            add("INSERT", "action_profile_member", member);
        }
        let members = json!([{"member_id": 1, "weight": 1}, {"member_id": 2, "weight": 2, "watch_port": one}]);
        let group = json!({"action_profile_id": id(profile), "group_id": 1, "max_size": 4, "members": members});
        add("INSERT", "action_profile_group", group);
    }
    for table in list(info, "tables").filter(|t| t["is_const_table"] != true) {
        let (base, call) = (entry(info, table, "01"), call(info, table));
        let with = |name: &str, value: Value| {
            let mut entry = base.clone();
            entry[name] = value;
            entry
        };
        if list(table, "match_fields").next().is_some() {
            add("INSERT", "table_entry", with("metadata", one.clone()));
            add(
                "MODIFY",
                "table_entry",
                with("idle_timeout_ns", json!("1000000")),
            );
            add("DELETE INSERT", "table_entry", base.clone());
            if table.get("implementation_id").is_none() {
                let counter = json!({"table_entry": base, "data": count});
                add("MODIFY", "direct_counter_entry", counter);
                let meter = json!({"table_entry": base, "config": rates});
                add("MODIFY", "direct_meter_entry", meter);
            } else {
                let call = &call["action"];
                let set = json!([{"action": call, "weight": 1}, {"action": call, "weight": 2, "watch_port": one}]);
                let mut other = entry(info, table, "02");
                other["action"] =
                    json!({"action_profile_action_set": {"action_profile_actions": set}});
                add("INSERT", "table_entry", other);
            }
        }
        let reset = json!({"table_id": id(table), "is_default_action": true});
        let mut default = reset.clone();
        default["action"] = call;
        add("MODIFY", "table_entry", default);
        add("MODIFY", "table_entry", reset);
    }
    for (objects, verb, of, part) in [
        (
            "counters",
            "MODIFY",
            "counter",
            json!({"index": {"index": "1"}, "data": count}),
        ),
        (
            "meters",
            "MODIFY",
            "meter",
            json!({"index": {"index": "1"}, "config": rates}),
        ),
        (
            "registers",
            "MODIFY",
            "register",
            json!({"index": {"index": "1"}, "data": {"bitstring": one}}),
        ),
        (
            "digests",
            "INSERT",
            "digest",
            json!({"config": {"max_timeout_ns": "1000000", "max_list_size": 2, "ack_timeout_ns": "1000000"}}),
        ),
    ] {
        for object in list(info, objects) {
            let mut entity = part.clone();
            entity[format!("{of}_id")] = id(object);
            add(verb, &format!("{of}_entry"), entity);
        }
    }
    for set in list(info, "value_sets") {
        let field = |f: &Value| json!({"field_id": f["id"], "exact": {"value": one}});
        let fields: Vec<Value> = list(set, "match").map(field).collect();
        let set = json!({"value_set_id": id(set), "members": [{"match": fields}]});
        add("MODIFY", "value_set_entry", set);
    }
    let replicas = json!([{"port": one, "instance": 1}, {"port": two, "instance": 2}]);
    for entry in [
        json!({"multicast_group_entry": {"multicast_group_id": 1, "replicas": replicas}}),
        json!({"clone_session_entry": {"session_id": 1, "replicas": replicas, "packet_length_bytes": 64}}),
    ] {
        add("INSERT", "packet_replication_engine_entry", entry);
    }
    let mut headers = list(info, "controller_packet_metadata");
    if let Some(header) = headers.find(|header| header["preamble"]["name"] == "packet_out") {
        let field = |m: &Value| json!({"metadata_id": m["id"], "value": one});
        let fields: Vec<Value> = list(header, "metadata").map(field).collect();
        let packet = json!({"payload": {"$hex": FRAMES[2]}, "metadata": fields});
        steps.push(json!({"send": {"packet": packet}}));
    }
    steps.extend(FRAMES.map(|frame| json!({"frame": {"port": 1, "frame": frame}})));
    steps.push(json!({"pass": 2_000_000_000u64}));
    let read = |kind: &str, entity: Value| json!({"read": {"entities": [{kind: entity}]}});
    let kinds = descriptor("p4.v1.Entity");
    steps.extend(kinds.fields().map(|kind| read(kind.name(), json!({}))));
    let registers = list(info, "registers").map(|r| json!({"register_id": id(r)}));
    steps.extend(registers.map(|register| read("register_entry", register)));
    steps
}

/// A path of its text: `interfaces/interface[name=p1]/config`.
fn path(text: &str) -> Value {
    let element = |part: &str| match part.split_once('[') {
        None => json!({"name": part}),
        Some((name, key)) => {
            let key = key.trim_end_matches(']').split_once('=');
            let (key, value) = key.expect("key=value");
            json!({"name": name, "key": {key: value}})
        }
    };
    let elements: Vec<Value> = text.split('/').map(element).collect();
    json!({"elem": elements})
}

/// A Get of these paths.
pub fn get<const N: usize>(paths: [&str; N], encoding: &str) -> Value {
    json!({"path": paths.map(path).to_vec(), "encoding": encoding})
}

/// gNMI calls that reach every kind of leaf.
pub fn gnmi() -> Vec<Base> {
    let port = "interfaces/interface[name=p1]";
    let scheduler =
        "qos/scheduler-policies/scheduler-policy[name=p1]/schedulers/scheduler[sequence=1]";
    let mut steps = Vec::new();
    for text in [
        "interfaces",
        "qos",
        "fairlane-port:switch",
        port,
        scheduler,
        "qos/interfaces/interface[interface-id=p1]/output/queues/queue[name=0]",
        "interfaces/interface[name=*]/state/counters",
        "interfaces/.../state",
        "interfaces/interface[name=p2]/fairlane-port:port/drops/drop[reason=*]/state/packets",
    ] {
        steps.extend(["JSON_IETF", "PROTO"].map(|as_what| json!({"get": get([text], as_what)})));
    }
    let own = format!("{port}/fairlane-port:port/config");
    let policy = format!("{scheduler}/one-rate-two-color/config");
    for (leaf, value) in [
        (format!("{port}/config/enabled"), json!(false)),
        (format!("{own}/scheduler"), json!("drr")),
        (format!("{own}/link-layer"), json!("atm")),
        (format!("{own}/queues"), json!(16)),
        (format!("{own}/port-packets"), json!("100")),
        (format!("{policy}/cir"), json!("1000000")),
        (format!("{policy}/max-queue-depth-packets"), json!(10)),
        (
            format!("{scheduler}/inputs/input[id=3]/config/weight"),
            json!("7"),
        ),
        (
            own.clone(),
            json!({"fairlane-port:scheduler": "wrr", "queues": 20}),
        ),
        (
            port.into(),
            json!({"config": {"name": "p1", "enabled": true}}),
        ),
    ] {
        let update = json!({"path": path(&leaf), "val": {"json_ietf_val": {"$json": value}}});
        steps.push(json!({"set": {"update": [update]}}));
        steps.push(json!({"set": {"replace": [update]}}));
        steps.push(json!({"set": {"delete": [path(&leaf)]}}));
    }
    let queues = path(&format!("{own}/queues"));
    let typed = [json!({"uint_val": "24"}), json!({"string_val": "x"})];
    let typed = typed.map(|value| json!({"path": queues, "val": value}));
    steps.push(json!({"set": {"update": typed}}));
    vec![document("calls", steps)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rt::proto::p4rt::TableEntry;

    #[test]
    fn bytes_are_base64_or_hexadecimal() {
        let name = "p4.v1.TableEntry";
        let entry = |metadata| json!({"table_id": 7, "metadata": metadata, "priority": 1});
        for metadata in [json!({"$hex": "0aff"}), json!("Cv8=")] {
            let entry: TableEntry = message(name, &entry(metadata)).unwrap();
            let fields = (entry.table_id, &entry.metadata[..], entry.priority);
            assert_eq!(fields, (7, &[10, 255][..], 1));
        }
        assert!(message::<TableEntry>(name, &json!({"table": 7})).is_none());
    }
}
