// SPDX-License-Identifier: Apache-2.0
//! Tests of compilation.

/// `PROGRAM=x.json cargo test -p v1model dump -- --ignored --nocapture` prints a program's operations.
#[test]
#[ignore = "prints; for people"]
fn dump() {
    let path = std::env::var("PROGRAM").expect("PROGRAM names a BMv2 JSON");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let (program, _, _) = super::program(&crate::json::Json::root(&json)).unwrap();
    for (pc, op) in program.ops.iter().enumerate() {
        println!("{pc:5} {op:?}");
    }
    println!(
        "parser {}, ingress {}, egress {}; {} slots, {} of state",
        program.parser_start,
        program.ingress_start,
        program.egress_start,
        program.template.len(),
        program.state_end
    );
}
