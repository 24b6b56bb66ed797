// SPDX-License-Identifier: Apache-2.0
//! Programs that are refused: each with the place in its JSON, what is wrong there, and before any memory is taken.

use crate::common::minimal::*;
use serde_json::{json, Value};
use v1model::{LoadError, Pipeline, BUDGET_BYTES};

fn program(name: &str) -> Value {
    let path = format!(
        "{}/tests/p4/compiled/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn load(program: &Value) -> Result<Pipeline, LoadError> {
    Pipeline::from_json(program.to_string().as_bytes())
}

/// The error at `place` begins with `what`.
fn refused(program: &Value, place: &str, what: &str) {
    let error = load(program)
        .err()
        .unwrap_or_else(|| panic!("taken: {what}"));
    assert_eq!(error.path, place, "{error}");
    assert!(error.message.starts_with(what), "{error}");
}

/// A second copy of the item at `list`/`index` of the program is refused as `what`, its name or id being at `key`.
fn no_copy(name: &str, list: &str, index: usize, key: &str, what: &str) {
    let mut program = program(name);
    let items = program.pointer_mut(list).unwrap().as_array_mut().unwrap();
    let end = items.len();
    items.push(items[index].clone());
    let place = format!("{list}/{end}{key}");
    let text = format!("{what} is declared a second time; the first is {list}/{index}{key}");
    refused(&program, &place, &text);
}

#[test]
fn nothing_is_declared_twice() {
    no_copy(
        "headers",
        "/header_types",
        2,
        "/name",
        "header type start_t",
    );
    no_copy("headers", "/headers", 3, "/name", "header options");
    no_copy(
        "headers",
        "/header_stacks",
        0,
        "/name",
        "header stack labels",
    );
    no_copy("headers", "/header_unions", 0, "/name", "header union body");
    no_copy(
        "headers",
        "/parsers/0/parse_states",
        1,
        "/name",
        "parser state labels",
    );
    no_copy("headers", "/errors", 1, "/0", "error PacketTooShort");
    no_copy("headers", "/actions", 1, "/id", "action id 1");
    no_copy("headers", "/pipelines", 0, "/name", "pipeline ingress");
    let node = "table, condition or action call";
    let of = |name| format!("{node} {name}");
    no_copy(
        "headers",
        "/pipelines/0/conditionals",
        0,
        "/name",
        &of("node_2"),
    );
    no_copy(
        "state",
        "/pipelines/0/tables",
        1,
        "/name",
        &of("MyIngress.by_key"),
    );
    no_copy(
        "state",
        "/counter_arrays",
        0,
        "/name",
        "counter MyIngress.by_index",
    );
    no_copy(
        "state",
        "/register_arrays",
        1,
        "/name",
        "register MyIngress.wide",
    );
    no_copy("state", "/learn_lists", 0, "/id", "learn list id 1");
    let mut double = program("state");
    let aliases = double["field_aliases"].as_array_mut().unwrap();
    let end = aliases.len();
    aliases.push(aliases[0].clone());
    assert!(load(&double).is_ok());
    double["field_aliases"][end][1][1] = json!("egress_spec");
    let text = "an alias of this name leads to another field";
    refused(&double, &format!("/field_aliases/{end}"), text);
    no_copy(
        "meters",
        "/meter_arrays",
        0,
        "/name",
        "meter MyIngress.byte_meter",
    );
    no_copy(
        "value_sets",
        "/parse_vsets",
        0,
        "/name",
        "parser value set SetParser.kinds",
    );

    let mut double = program("state");
    double["counter_arrays"][1]["name"] = json!("first");
    let mut second = double["counter_arrays"][1].clone();
    second["name"] = json!("second");
    double["counter_arrays"]
        .as_array_mut()
        .unwrap()
        .push(second);
    let text = "direct counter of table MyIngress.by_key is declared a second time";
    refused(&double, "/counter_arrays/2/binding", text);

    let mut double = program("state");
    double["pipelines"][1]["tables"] = double["pipelines"][0]["tables"].clone();
    let text = "the other pipeline has a table `tbl_state24` too";
    refused(&double, "/pipelines/1/tables/0", text);

    let mut double = program("state");
    let actions = double
        .pointer_mut("/pipelines/0/tables/1/action_ids")
        .unwrap();
    *actions = json!([0, 0]);
    let text = "the table's action MyIngress.tag is declared a second time";
    refused(&double, "/pipelines/0/tables/1/action_ids/1", text);

    let mut double = program("headers");
    let fields = double["header_types"][2]["fields"].as_array_mut().unwrap();
    fields.push(json!(["kind", 8, false]));
    refused(
        &double,
        "/header_types/2/fields/2/0",
        "field kind is declared a second time",
    );
}

#[test]
fn not_any_json_is_a_program() {
    for json in [json!(null), json!(0), json!([]), json!("text"), json!(true)] {
        refused(&json, "/", "expected an object, found");
    }
    refused(&json!({}), "/", "`pipelines` is missing");
    for (list, what) in [
        ("parsers", "v1model has one parser"),
        ("deparsers", "v1model has one deparser"),
    ] {
        let mut none = program("headers");
        none[list] = json!([]);
        refused(&none, &format!("/{list}"), &format!("{what}, found 0"));
        none.as_object_mut().unwrap().remove(list);
        refused(&none, "/", &format!("`{list}` is missing"));
    }
    for (which, name) in ["ingress", "egress"].into_iter().enumerate() {
        let mut none = program("headers");
        none["pipelines"].as_array_mut().unwrap().remove(which);
        let text = format!("there is no pipeline `{name}`; v1model has ingress and egress");
        refused(&none, "/pipelines", &text);
    }
    let mut none = program("headers");
    none["headers"][1]["name"] = json!("other_metadata");
    let text = "there is no standard_metadata.ingress_port: v1model programs have";
    none["parsers"][0]["parse_states"] = json!([{"name": "start", "id": 0}]);
    none["field_aliases"] = json!([]);
    refused(&none, "/headers", text);
    let mut none = program("headers");
    none["parsers"][0]
        .as_object_mut()
        .unwrap()
        .remove("init_state");
    refused(&none, "/parsers/0", "`init_state` is missing");
}

#[test]
fn sizes_that_no_memory_has_are_refused_before_it_is_taken() {
    let most = u32::MAX;
    for (name, place, what) in [
        (
            "state",
            "/counter_arrays/0/size",
            "counter array of 4294967295 cells would take 64.0 GiB",
        ),
        (
            "state",
            "/register_arrays/0/size",
            "register array of 4294967295 cells would take 16.0 GiB",
        ),
        (
            "state",
            "/register_arrays/1/size",
            "register array of 4294967295 cells would take 64.0 GiB",
        ),
        (
            "meters",
            "/meter_arrays/0/size",
            "meter array of 4294967295 cells would take",
        ),
        (
            "state",
            "/pipelines/0/tables/1/max_size",
            "table `MyIngress.by_key` of 4294967295 entries would take",
        ),
        (
            "profiles",
            "/pipelines/0/action_profiles/0/max_size",
            "action profile `MyIngress.shared` of 4294967295 members would take",
        ),
    ] {
        let mut large = program(name);
        *large.pointer_mut(place).unwrap() = json!(most);
        refused(&large, place, what);
        for (size, text) in [
            (
                json!(-1),
                "expected a non-negative integer, found the number -1",
            ),
            (
                json!(i64::MAX),
                "9223372036854775807 is too large; at most 4294967295",
            ),
            (
                json!(1.5),
                "expected a non-negative integer, found the number 1.5",
            ),
            (
                json!("8"),
                "expected a non-negative integer, found the text `8`",
            ),
        ] {
            *large.pointer_mut(place).unwrap() = size;
            refused(&large, place, text);
        }
    }
    // What fits in the budget alone does not twice.
    let mut large = program("state");
    for index in 0..2 {
        large["register_arrays"][index]["bitwidth"] = json!(32);
        large["register_arrays"][index]["size"] = json!(BUDGET_BYTES / 4 * 2 / 3);
    }
    refused(
        &large,
        "/register_arrays/1/size",
        "register array of 178956970 cells would take 682.7 MiB; of the",
    );
    let small = program("state").to_string();
    let error = Pipeline::from_json_within(small.as_bytes(), 20)
        .err()
        .unwrap();
    let text = "counter array of 4 cells would take 64 bytes; a program may take 20 bytes";
    assert_eq!(error.message, text);
}

/// Each of these needs far more memory or time than its text is long.
#[test]
fn short_texts_of_huge_programs_are_refused() {
    let mut wide = program("headers");
    wide["header_types"][3]["max_length"] = json!(u32::MAX);
    refused(
        &wide,
        "/header_types/3",
        "a header with a varbit field needs `max_length`",
    );

    let mut many = program("state");
    let rows: Vec<Value> = (0..100_000)
        .map(|i| json!([format!("f{i}"), 1 << 20, false]))
        .collect();
    many["header_types"][2]["fields"] = json!(rows);
    refused(&many, "/header_types/2", "the header is too wide");

    // Transitions over a key of 1000 words.
    let mut wide = program("state");
    let key = json!({"type": "lookahead", "value": [0, 65_535]});
    let to = json!({"type": "hexstr", "value": "0x0", "mask": null, "next_state": null});
    wide["parsers"][0]["parse_states"][0]["transition_key"] = json!([key]);
    wide["parsers"][0]["parse_states"][0]["transitions"] = json!(vec![to; 70_000]);
    let error = load(&wide).err().unwrap();
    assert!(
        error
            .message
            .starts_with("a transition would take 16.0 KiB; of the"),
        "{error}"
    );

    // Where to go on after each of many actions, for each of many tables.
    let mut many = program("state");
    let action = |i: usize| json!({"id": 100 + i, "name": format!("a{i}"), "runtime_data": [], "primitives": []});
    let actions = many["actions"].as_array_mut().unwrap();
    actions.extend((0..20_000).map(action));
    let table = many["pipelines"][0]["tables"][1].clone();
    let tables: Vec<Value> = (0..10_000)
        .map(|i| {
            let mut table = table.clone();
            table["name"] = json!(format!("t{i}"));
            table["next_tables"] = json!({});
            table
        })
        .collect();
    many["pipelines"][1]["tables"] = json!(tables);
    let error = load(&many).err().unwrap();
    assert!(
        error
            .message
            .contains("of 20006 actions would take 156.3 KiB; of the"),
        "{error}"
    );

    // One field again and again, and one header.
    let mut long = program("state");
    let field = json!({"type": "field", "value": ["p", "key"]});
    long["learn_lists"][0]["elements"] = json!(vec![field.clone(); 40_000]);
    refused(
        &long,
        "/learn_lists/0/elements/32768",
        "a digest has at most 1048576 bits",
    );
    let mut long = program("state");
    long["field_lists"] = json!([{"id": 1, "name": "l", "elements": vec![field; 70_000]}]);
    refused(
        &long,
        "/field_lists/0/elements/65535",
        "a field list has at most 65535 words",
    );
    let mut long = program("state");
    long["deparsers"][0]["order"] = json!(vec!["p"; 100_000]);
    let error = load(&long).err().unwrap();
    assert!(
        error
            .message
            .starts_with("the headers of a packet take at most 1048576 bytes"),
        "{error}"
    );

    // The same long action inline at many places.
    let mut many = program("state");
    let jump = json!({"op": "exit", "parameters": []});
    many["actions"][2]["primitives"] = json!(vec![jump; 20_000]);
    let call =
        |i: usize| json!({"name": format!("c{i}"), "id": i, "action_id": 2, "next_node": null});
    many["pipelines"][1]["action_calls"] = json!((0..1_000).map(call).collect::<Vec<_>>());
    let error = load(&many).err().unwrap();
    assert!(error.message.starts_with("its code would take"), "{error}");
}

/// Operations name arrays by 16 bits: the array behind the last number is not the first one.
#[test]
fn more_arrays_than_numbers_are_refused() {
    // One of the counters and one of the meters are direct ones, which have no number here.
    for (name, list, others) in [
        ("state", "counter_arrays", 1),
        ("state", "register_arrays", 0),
        ("meters", "meter_arrays", 1),
    ] {
        let mut many = program(name);
        let arrays = many[list].as_array_mut().unwrap();
        let mut array = arrays[0].clone();
        let most = (1 << 16) + others;
        for i in arrays.len()..=most {
            (array["name"], array["size"]) = (json!(format!("a{i}")), json!(1));
            arrays.push(array.clone());
        }
        let kind = list.replace('_', " ");
        let text = format!("the program has more than 65536 {kind}");
        refused(&many, &format!("/{list}/{most}"), &text);
        many[list].as_array_mut().unwrap().pop();
        assert!(load(&many).is_ok(), "{list}");
    }
}

/// A chain of 60,000 parser states and one of as many conditions: no step of the loader is quadratic.
#[test]
fn long_chains_load_in_no_time() {
    let mut long = program("state");
    let next = |i: usize| match i {
        59_999 => json!(null),
        _ => json!(format!("n{}", i + 1)),
    };
    let state = |i: usize| {
        json!({
            "name": format!("n{i}"), "id": i, "parser_ops": [], "transition_key": [],
            "transitions": [{"type": "default", "value": null, "mask": null, "next_state": next(i)}],
        })
    };
    long["parsers"][0] = json!({"name": "parser", "id": 0, "init_state": "n0",
        "parse_states": (0..60_000).map(state).collect::<Vec<_>>()});
    let condition = |i: usize| {
        json!({
            "name": format!("n{i}"), "id": i, "true_next": next(i), "false_next": next(i),
            "expression": {"type": "bool", "value": true},
        })
    };
    long["pipelines"][1]["conditionals"] = (0..60_000).map(condition).collect();
    long["pipelines"][1]["init_table"] = json!("n0");
    assert!(load(&long).is_ok());
}

#[test]
fn unions_and_stacks_must_be_whole() {
    let mut empty = program("headers");
    empty["header_union_types"][0]["headers"] = json!([]);
    empty["header_unions"][0]["header_ids"] = json!([]);
    let stack = json!({"name": "bodies", "id": 0, "union_type": "body_t", "size": 1, "header_union_ids": [0]});
    let mut with_stack = empty.clone();
    with_stack["header_union_stacks"] = json!([stack]);
    refused(
        &with_stack,
        "/header_union_stacks/0",
        "a header union has no member",
    );
    with_stack["header_union_stacks"][0]["header_union_ids"] = json!([]);
    refused(
        &with_stack,
        "/header_union_stacks/0",
        "a header stack has no element",
    );

    // The second union of the stack has no member; the first has.
    let mut second = program("headers");
    second["header_unions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "none", "id": 1, "union_type": "body_t", "header_ids": []}));
    second["header_union_stacks"] = json!([stack]);
    second["header_union_stacks"][0]["header_union_ids"] = json!([0, 1]);
    refused(
        &second,
        "/header_union_stacks/0",
        "the elements of a header stack have different types",
    );

    let mut twice = program("headers");
    twice["header_stacks"][0]["header_ids"] = json!([6, 6]);
    refused(
        &twice,
        "/header_stacks/0/header_ids/1",
        "header `labels[0]` is in two stacks or unions",
    );
    twice["header_stacks"][0]["header_ids"] = json!([1]);
    refused(
        &twice,
        "/header_stacks/0/header_ids/0",
        "`standard_metadata` is metadata, not a header",
    );
    twice["header_stacks"][0]["header_ids"] = json!([]);
    refused(&twice, "/header_stacks/0", "a header stack has no element");
    let mut metadata = program("headers");
    metadata["deparsers"][0]["order"][0] = json!("scalars");
    refused(
        &metadata,
        "/deparsers/0/order/0",
        "`scalars` is metadata, not a header",
    );
}

#[test]
fn a_validity_is_no_field_that_is_assigned() {
    let mut wrong = program("headers");
    let valid = json!({"type": "field", "value": ["start", "$valid$"]});
    wrong["actions"][0]["primitives"] = json!([
        {"op": "assign", "parameters": [valid, {"type": "hexstr", "value": "0x01"}]}]);
    refused(
        &wrong,
        "/actions/0/primitives/0/parameters/0",
        "cannot be assigned to",
    );
}

#[test]
fn the_programs_own_entries_are_checked_where_they_are() {
    let with = |entries: Value| {
        let mut program = program("state");
        program["pipelines"][0]["tables"][1]["entries"] = entries;
        program
    };
    let entry = |key: &str, length: u32, action: u32| {
        json!({
            "match_key": [{"match_type": "lpm", "key": key, "prefix_length": length}],
            "action_entry": {"action_id": action, "action_data": ["0x1"]},
            "priority": 1,
        })
    };
    let at = "/pipelines/0/tables/1/entries/1";
    let first = entry("0x0a000000", 8, 0);
    assert!(load(&with(json!([first, entry("0x0a010000", 16, 0)]))).is_ok());
    let twice = with(json!([first, entry("0x0a990000", 8, 0)]));
    refused(
        &twice,
        at,
        "the same key as /pipelines/0/tables/1/entries/0",
    );
    refused(
        &with(json!([first, entry("0x0a010000", 33, 0)])),
        &format!("{at}/match_key/0"),
        "prefix length 33",
    );
    let other = with(json!([first, entry("0x0a010000", 16, 2)]));
    refused(
        &other,
        &format!("{at}/action_entry"),
        "the action takes 0 arguments, found 1",
    );
    let mut none = entry("0x0a010000", 16, 2);
    none["action_entry"]["action_data"] = json!([]);
    refused(&with(json!([first, none])), at, "table MyIngress.by_key");
}

#[test]
fn an_empty_list_may_be_an_object() {
    // p4c writes `log_msg("text")` so.
    let mut log = program("state");
    let message =
        json!([{"type": "string", "value": "text"}, {"type": "parameters_vector", "value": {}}]);
    log["actions"][2]["primitives"] = json!([{"op": "log_msg", "parameters": message}]);
    log["calculations"] = json!({});
    log["checksums"] = json!({});
    assert!(load(&log).is_ok());
    log["checksums"] = json!({"name": "x"});
    refused(&log, "/checksums", "expected an array, found an object");
}

#[test]
fn a_constant_of_a_hash_is_charged_with_what_it_becomes() {
    let constant = json!({"type": "hexstr", "value": "0x0", "bitwidth": 65_536});
    let mut hash = minimal(&[], &[]);
    hash["calculations"] =
        json!([{"name": "c", "id": 0, "algo": "crc32", "input": vec![constant; 20]}]);
    let error = Pipeline::from_json_within(&bytes(&hash), 1 << 20).err();
    let error = error.unwrap();
    assert!(error.path.starts_with("/calculations/0/input/"), "{error}");
    assert!(
        error.message.starts_with("a constant would take"),
        "{error}"
    );
}

#[test]
fn a_program_of_too_many_operations_is_left_to_the_interpreter() {
    let add = |_| {
        let sum = json!({"op": "+", "left": field("h", "n"), "right": number(1)});
        assign(field("h", "n"), json!({"type": "expression", "value": sum}))
    };
    let pipeline = load(&minimal(&(0..21_000).map(add).collect::<Vec<_>>(), &[])).unwrap();
    let why = pipeline.not_native().unwrap();
    assert!(why.contains("operations, more than 20000"), "{why}");
}

#[test]
fn many_fields_in_many_blocks_are_left_to_the_interpreter() {
    // Each block that several ends lead to has what is known of each field: 60 KiB of JSON, gigabytes of memory.
    let mut large = minimal(&[], &[]);
    let fields: Vec<Value> = (0..3)
        .map(|i| json!([format!("f{i}"), 1 << 20, false]))
        .collect();
    let types = large["header_types"].as_array_mut().unwrap();
    types.push(json!({"name": "large_t", "id": 2, "fields": fields}));
    let headers = large["headers"].as_array_mut().unwrap();
    headers.push(json!({"name": "large", "id": 3, "header_type": "large_t", "metadata": true}));
    let condition = |i: u64| {
        let equal = json!({"op": "==", "left": field("h", "n"), "right": number(i)});
        let next = if i == 0 {
            "ingress_call".into()
        } else {
            format!("c{}", i - 1)
        };
        json!({
            "name": format!("c{i}"), "id": i, "true_next": "ingress_call", "false_next": next,
            "expression": {"type": "expression", "value": equal},
        })
    };
    large["pipelines"][0]["conditionals"] = (0..200).map(condition).collect();
    large["pipelines"][0]["init_table"] = json!("c199");
    let pipeline = load(&large).unwrap();
    let why = pipeline.not_native().unwrap();
    assert!(
        why.contains("words of fields, more than 268435456 bytes"),
        "{why}"
    );
}
