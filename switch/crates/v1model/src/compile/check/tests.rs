// SPDX-License-Identifier: Apache-2.0
//! The check against programs that a mistake of the compiler could make: each is refused, and none of the right ones.

use crate::compile::code::{Op, Program};
use crate::compile::recent::{compile, Compiled};
use crate::compile::{program, program_as_written, program_with_notes};

const PROGRAMS: [&[u8]; 6] = [
    include_bytes!("../../../tests/p4/compiled/headers.json"),
    include_bytes!("../../../tests/p4/compiled/meters.json"),
    include_bytes!("../../../tests/p4/compiled/profiles.json"),
    include_bytes!("../../../tests/p4/compiled/state.json"),
    include_bytes!("../../../tests/p4/compiled/value_sets.json"),
    include_bytes!("../../../../../../p4src/compiled/qthresh.json"),
];

/// All programs in all forms.
fn all() -> Vec<Compiled> {
    let of = |json: &&[u8]| {
        let forms = [program, program_as_written, program_with_notes];
        forms.map(|form| compile(json, u64::MAX, form).unwrap())
    };
    PROGRAMS.iter().flat_map(of).collect()
}

/// What `change` makes of the operations that it changes is refused, one at a time; there is at least one.
fn refused(what: &str, change: impl Fn(&mut Op, &Program) -> bool) {
    let mut found = 0;
    for Compiled {
        program, schema, ..
    } in all()
    {
        for pc in 0..program.ops.len() {
            let mut op = program.ops[pc];
            if !change(&mut op, &program) {
                continue;
            }
            found += 1;
            let mut wrong = program.clone();
            wrong.ops[pc] = op;
            assert!(wrong.check(&schema).is_err(), "{what}: {op:?} at {pc}");
            if found % 50 == 0 {
                break; // of this program
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
        Op::Alu { b, .. } | Op::Branch { b, .. } | Op::Push { n: b, .. } => {
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
        Op::Extract { header } | Op::SetValid { header } | Op::CopyHeader { d: header, .. } => {
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
    refused("a table", |op, program| match op {
        Op::Call { table, .. } | Op::Apply { table } => {
            *table = program.tables.len() as u16;
            true
        }
        _ => false,
    });
    refused("exits", |op, program| match op {
        Op::Call { exits, .. } => {
            *exits = program.exits.len() as u16;
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
fn jumps_end_in_the_code() {
    refused("a jump", |op, program| match op {
        Op::Jump { to } | Op::Branch { to, .. } => {
            *to = program.ops.len() as u32;
            true
        }
        _ => false,
    });
}

#[test]
fn code_that_comes_back_needs_a_step() {
    let compiled = compile(PROGRAMS[0], u64::MAX, program).unwrap();
    let mut wrong = compiled.program.clone();
    let steps = wrong.ops.iter().filter(|op| **op == Op::Step).count();
    assert!(steps > 0, "the parser of headers.p4 goes round a stack");
    for op in wrong.ops.iter_mut().filter(|op| **op == Op::Step) {
        *op = Op::CheckExit;
    }
    let error = wrong.check(&compiled.schema).unwrap_err();
    assert!(error.contains("without a step"), "{error}");
    let itself = |op: &mut Op, to: u32| *op = Op::Jump { to };
    let mut wrong = compiled.program.clone();
    itself(&mut wrong.ops[1], 1);
    assert!(wrong.check(&compiled.schema).is_err());
}

#[test]
fn side_tables_hold_what_the_machine_reads() {
    let Compiled {
        program, schema, ..
    } = compile(PROGRAMS[0], u64::MAX, program).unwrap();
    let slots = program.template.len() as u16;
    type Change = fn(&mut Program, u16);
    let changes: [(&str, Change); 10] = [
        ("an element", |p, slots| p.elements[0].base = slots - 1),
        ("a sibling", |p, _| {
            p.elements[0].siblings = [-70_000].into()
        }),
        ("a stack", |p, _| p.stacks[0].count += 1_000),
        ("a load", |p, _| first_load(p).byte += 64),
        ("a shift", |p, _| first_load(p).up = 64),
        ("a place", |p, _| p.places[0] = 60),
        ("an emitted header", |p, slots| p.deparser[0].1 = slots),
        ("a patch", |p, _| p.patches = Some(Vec::new())),
        ("a field list", |p, slots| {
            p.field_lists.push(vec![(slots, 1)])
        }),
        ("standard metadata", |p, _| p.std[0] = Some((2, 0))),
    ];
    assert_eq!(program.check(&schema), Ok(()));
    for (what, change) in changes {
        let mut wrong = program.clone();
        change(&mut wrong, slots);
        assert!(wrong.check(&schema).is_err(), "{what}");
    }
}

fn first_load(program: &mut Program) -> &mut crate::compile::code::FieldLoad {
    let mut loads = program
        .headers
        .iter_mut()
        .filter_map(|io| io.loads.as_mut());
    loads.find_map(|loads| loads.first_mut()).unwrap()
}
