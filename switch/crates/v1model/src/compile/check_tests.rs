// SPDX-License-Identifier: Apache-2.0
//! The check against programs that a mistake of the compiler could make: each is refused, and none of the right ones.

use serde_json::Value;

use super::code::{FieldIo, Op, Program};
use super::flow::Exit;
use super::optimise::{optimise, Optimised};
use crate::json::{Budget, Json};
use crate::schema::Schema;

const PROGRAMS: [&[u8]; 6] = [
    include_bytes!("../../tests/p4/compiled/headers.json"),
    include_bytes!("../../tests/p4/compiled/meters.json"),
    include_bytes!("../../tests/p4/compiled/profiles.json"),
    include_bytes!("../../tests/p4/compiled/state.json"),
    include_bytes!("../../tests/p4/compiled/value_sets.json"),
    include_bytes!("../../../../../p4src/compiled/qthresh.json"),
];

fn compiled(json: &[u8]) -> (Optimised, Schema) {
    let value: Value = serde_json::from_slice(json).unwrap();
    let written = super::program(&Json::root(&value, &Budget::new(u64::MAX))).unwrap();
    (optimise(&written).ok().unwrap(), written.schema)
}

/// What `change` makes of the operations that it changes is refused, one at a time; there is at least one.
fn refused(what: &str, change: impl Fn(&mut Op, &Program) -> bool) {
    let mut found = 0;
    for (mut optimised, schema) in PROGRAMS.map(compiled) {
        for block in 0..optimised.flow.blocks.len() {
            for at in 0..optimised.flow.blocks[block].ops.len() {
                let right = optimised.flow.blocks[block].ops[at];
                let mut op = right;
                if found >= 100 || !change(&mut op, &optimised.effects.program) {
                    continue;
                }
                found += 1;
                optimised.flow.blocks[block].ops[at] = op;
                assert!(optimised.check(&schema).is_err(), "{what}: {op:?}");
                optimised.flow.blocks[block].ops[at] = right;
            }
        }
    }
    assert!(found > 0, "{what}: no program has such an operation");
}

#[test]
fn slots_beyond_a_packet_are_refused() {
    refused("a move", |op, program| match op {
        Op::Alu { d, .. } => {
            *d = program.template.len() as u16;
            true
        }
        _ => false,
    });
    refused("an operand", |op, program| match op {
        Op::Alu { b, .. } | Op::Push { n: b, .. } => {
            *b = program.template.len() as u16;
            true
        }
        _ => false,
    });
    refused("several limbs", |op, program| match op {
        Op::MoveWide { d, limbs, .. } => {
            *d = program.template.len() as u16 + 1 - *limbs;
            true
        }
        _ => false,
    });
    refused("limbs of a lookahead", |op, program| match op {
        Op::Lookahead { d, width, .. } => {
            *d = program.template.len() as u16 - 1;
            *width = 65;
            true
        }
        _ => false,
    });
}

#[test]
fn constants_are_not_written() {
    refused("a constant", |op, _| match op {
        Op::Alu { d, .. } => {
            *d = 1;
            true
        }
        _ => false,
    });
}

#[test]
fn widths_that_shift_too_far_are_refused() {
    for wrong in [0, 65] {
        refused("a width", |op, _| match op {
            Op::Alu { w, .. } | Op::Random { w, .. } => {
                *w = wrong;
                true
            }
            _ => false,
        });
    }
}

#[test]
fn what_is_not_there_is_not_named() {
    refused("an element", |op, program| match op {
        Op::Extract { header, .. } | Op::SetValid { header } | Op::CopyHeader { d: header, .. } => {
            *header = program.elements.len() as u16;
            true
        }
        _ => false,
    });
    refused("an array", |op, _| match op {
        Op::Count { counter: array, .. }
        | Op::Meter { meter: array, .. }
        | Op::RegisterRead {
            register: array, ..
        }
        | Op::RegisterWrite {
            register: array, ..
        } => {
            *array = 1_000;
            true
        }
        _ => false,
    });
    refused("a stack's member", |op, _| match op {
        Op::ExtractNext { member, .. } => {
            *member = 9;
            true
        }
        _ => false,
    });
}

#[test]
fn tables_and_selects_are_there() {
    let mut found = [false; 2];
    for (mut optimised, schema) in PROGRAMS.map(compiled) {
        for id in 0..optimised.flow.blocks.len() {
            let right = optimised.flow.blocks[id].exit.clone();
            match &mut optimised.flow.blocks[id].exit {
                Exit::Lookup { table, .. } => *table = 1_000,
                Exit::Select { select, .. } => *select = 1_000,
                _ => continue,
            }
            found[usize::from(matches!(right, Exit::Select { .. }))] = true;
            assert!(optimised.check(&schema).is_err(), "{right:?}");
            optimised.flow.blocks[id].exit = right;
        }
    }
    assert_eq!(found, [true; 2]);
}

#[test]
fn code_that_comes_back_needs_a_step() {
    let (mut optimised, schema) = compiled(PROGRAMS[0]);
    let mut steps = 0;
    for op in optimised.flow.blocks.iter_mut().flat_map(|b| &mut b.ops) {
        if *op == Op::Step {
            *op = Op::CheckExit;
            steps += 1;
        }
    }
    assert!(steps > 0, "the parser of headers.p4 goes round a stack");
    let error = optimised.check(&schema).unwrap_err();
    assert!(error.contains("without a step"), "{error}");
    let (mut optimised, schema) = compiled(PROGRAMS[0]);
    optimised.flow.blocks[1].exit = Exit::Goto(1);
    assert!(optimised.check(&schema).is_err());
}

#[test]
fn what_stands_beside_the_operations_is_what_machine_code_reads() {
    type Change = fn(&mut Optimised, u16);
    let changes: [(&str, Change); 8] = [
        ("an element", |o, slots| {
            program(o).elements[0].base = slots - 1
        }),
        ("a sibling", |o, _| {
            program(o).elements[0].siblings = [-70_000].into()
        }),
        ("a field", |o, _| first_field(program(o)).bit += 640),
        ("a field's slot", |o, _| {
            first_field(program(o)).offset = 640
        }),
        ("a place", |o, _| program(o).places[0] = 60),
        ("an emitted header", |o, slots| {
            program(o).deparser[0].1 = slots
        }),
        ("a patch", |o, _| o.patches = Some(Vec::new())),
        ("standard metadata", |o, _| program(o).std[0] = Some((2, 0))),
    ];
    let (optimised, schema) = compiled(PROGRAMS[0]);
    assert_eq!(optimised.check(&schema), Ok(()));
    for (what, change) in changes {
        let (mut wrong, _) = compiled(PROGRAMS[0]);
        let slots = wrong.effects.program.template.len() as u16;
        change(&mut wrong, slots);
        assert!(wrong.check(&schema).is_err(), "{what}");
    }
}

fn program(optimised: &mut Optimised) -> &mut Program {
    &mut optimised.effects.program
}

fn first_field(program: &mut Program) -> &mut FieldIo {
    let mut heads = program.headers.iter_mut().map(|io| &mut io.head);
    heads.find_map(|head| head.first_mut()).unwrap()
}
