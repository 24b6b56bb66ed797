// SPDX-License-Identifier: Apache-2.0
//! Programs that a mistake of the compiler could make: machine code comes of none of them, and of all right ones.

use serde_json::Value;

use super::code::{Op, Program};
use super::flow::Exit;
use super::optimise::{optimise, Optimised};
use crate::error::contained;
use crate::json::{Budget, Json};
use crate::native;
use crate::pipeline::Std;
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

/// True where no machine code comes of it.
fn is_refused(optimised: Optimised, schema: &Schema) -> bool {
    !matches!(contained(|| native::compile(optimised, schema)), Ok(Ok(_)))
}

/// What `change` makes of the operations that it changes is refused, one at a time; there is at least one.
fn refused(what: &str, change: impl Fn(&mut Op, &Program) -> bool) {
    let mut found = 0;
    for json in PROGRAMS {
        let (mut right, schema) = compiled(json);
        let program = right.effects.program.clone();
        let mut changed = None;
        for id in right.flow.order(right.flow.roots[1]) {
            for op in &mut right.flow.blocks[id].ops {
                if changed.is_none() && change(op, &program) {
                    changed = Some(*op);
                }
            }
        }
        let Some(op) = changed else { continue };
        found += 1;
        assert!(is_refused(right, &schema), "{what}: {op:?}");
    }
    assert!(found > 0, "{what}: no program has such an operation");
}

#[test]
fn right_programs_are_compiled() {
    for (optimised, schema) in PROGRAMS.map(compiled) {
        assert!(!is_refused(optimised, &schema));
    }
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
        Op::RegisterWrite { a, .. } => {
            *a = program.template.len() as u16;
            true
        }
        _ => false,
    });
    refused("several limbs", |op, program| match op {
        Op::Wide { op } => {
            op.d = program.template.len() as u16 + 1 - op.limbs;
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
fn what_is_not_there_is_not_named() {
    refused("an element", |op, program| match op {
        Op::SetValid { header } | Op::CopyHeader { d: header, .. } => {
            *header = program.elements.len() as u16;
            true
        }
        _ => false,
    });
    refused("an array", |op, _| match op {
        Op::Count { counter: array, .. }
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
    for (mut optimised, schema) in PROGRAMS.map(compiled) {
        let mut exits = optimised.flow.blocks.iter_mut().map(|b| &mut b.exit);
        let found = exits.find_map(|exit| match exit {
            Exit::Lookup { table: index, .. } => {
                *index = 1_000;
                Some(())
            }
            Exit::Select { select: index, .. } => {
                *index = 1_000;
                Some(())
            }
            _ => None,
        });
        assert!(found.is_none() || is_refused(optimised, &schema));
    }
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
    let error = native::compile(optimised, &schema).err().unwrap();
    assert!(error.to_string().contains("without a step"), "{error}");
    let (mut optimised, schema) = compiled(PROGRAMS[0]);
    optimised.flow.blocks[1].exit = Exit::Goto(1);
    assert!(is_refused(optimised, &schema));
}

#[test]
fn what_stands_beside_the_operations_is_what_machine_code_reads() {
    type Change = fn(&mut Program, u16);
    let changes: [(&str, Change); 5] = [
        ("an element", |p, slots| {
            for element in &mut p.elements {
                element.base = slots - 1;
            }
        }),
        ("a sibling", |p, _| {
            for element in &mut p.elements {
                element.siblings = [-70_000].into();
            }
        }),
        ("a field", |p, _| {
            for field in p.headers.iter_mut().flat_map(|ty| &mut ty.fields) {
                field.offset = u16::MAX / 2;
            }
        }),
        ("an emitted header", |p, slots| p.deparser[0].valid = slots),
        ("standard metadata", |p, slots| {
            p.std[Std::ParserError as usize] = Some((slots, 1));
        }),
    ];
    for (what, change) in changes {
        let (mut wrong, schema) = compiled(PROGRAMS[0]);
        let slots = wrong.effects.program.template.len() as u16;
        change(&mut wrong.effects.program, slots);
        assert!(is_refused(wrong, &schema), "{what}");
    }
}
