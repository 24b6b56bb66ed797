// SPDX-License-Identifier: Apache-2.0
//! Each pass alone, on code written down here.

use std::collections::HashMap;

use proptest::prelude::*;

use super::flow::{Block, Exit, Flow};
use super::specialise::Constants;
use super::Effects;
use super::{dead, specialise, Optimised};
use crate::compile::code::{Alu, Op, Program, Test};
use crate::compile::layout::{Slot, ONE, ZERO};
use crate::compile::op::SlotSet;
use crate::exec::{Machine, Scratch};
use crate::native;
use crate::packet::Packet;

/// Slots of the code under test: 8 visible fields, of which the last two have one bit, and 8 that are not visible.
const FIELDS: Slot = 2;
const BITS: Slot = 8;
const LOCALS: Slot = 10;
const TWO: Slot = 18;
const SLOTS: usize = 19;

fn world() -> (Effects, Constants) {
    let constants = HashMap::from([(ZERO, 0), (ONE, 1), (TWO, 2)]);
    let mut most = vec![u64::MAX; SLOTS];
    for (&slot, &value) in &constants {
        most[usize::from(slot)] = value;
    }
    most[8] = 1;
    most[9] = 1;
    let effects = Effects {
        program: Program::default(),
        registers: vec![(4, 32)],
        most,
    };
    (effects, constants)
}

fn visible() -> SlotSet {
    let mut set = SlotSet::new(SLOTS);
    (FIELDS..LOCALS).for_each(|slot| set.add(slot.into()));
    set
}

fn block(ops: &[Op], exit: Exit) -> Block {
    let ops = ops.to_vec();
    Block { ops, exit }
}

fn if_equal(a: Slot, b: Slot, yes: usize, no: usize) -> Exit {
    let test = Test::Eq;
    Exit::Branch {
        test,
        a,
        b,
        yes,
        no,
    }
}

/// A register read; within range where the index is a constant.
fn read(index: Slot, d: Slot) -> Op {
    let register = 0;
    Op::RegisterRead {
        register,
        index,
        d,
        limbs: 1,
        w: 32,
    }
}

/// The blocks that lead nowhere but on, from the root.
fn straight(flow: &Flow) -> Vec<Op> {
    let (mut id, mut ops) = (flow.roots[0], Vec::new());
    loop {
        ops.extend_from_slice(&flow.blocks[id].ops);
        match flow.blocks[id].exit {
            Exit::Goto(to) => id = to,
            Exit::Stop => return ops,
            ref exit => panic!("{exit:?} in {ops:?}"),
        }
    }
}

/// A condition made a number and asked for again: p4c's `verify`.
#[test]
fn a_known_branch_goes() {
    let (effects, constants) = world();
    let flow = Flow {
        blocks: vec![
            block(&[Op::copy(LOCALS, ONE)], Exit::Goto(1)),
            block(&[], if_equal(LOCALS, ONE, 2, 3)),
            block(&[Op::copy(FIELDS, TWO)], Exit::Stop),
            block(&[Op::copy(FIELDS, ZERO)], Exit::Stop),
        ],
        roots: vec![0],
    };
    let flow = specialise::specialise(&flow, &effects, &constants, 100);
    let expected = vec![Op::copy(LOCALS, ONE), Op::copy(FIELDS, TWO)];
    assert_eq!(straight(&flow), expected);
}

/// The second question is answered by the first, on either way; a write in between makes it a question again.
#[test]
fn an_answer_holds_until_the_slot_is_written() {
    let (effects, constants) = world();
    for (between, branches) in [
        (Op::copy(FIELDS, ONE), 1),
        (Op::copy(BITS, FIELDS), 2),
        (read(ONE, BITS), 2),
        (read(FIELDS, BITS), 3),
    ] {
        let flow = Flow {
            blocks: vec![
                block(&[], if_equal(BITS, ONE, 1, 1)),
                block(&[between], if_equal(BITS, ZERO, 2, 3)),
                block(&[Op::copy(FIELDS + 1, TWO)], Exit::Stop),
                block(&[Op::copy(FIELDS + 2, TWO)], Exit::Stop),
            ],
            roots: vec![0],
        };
        let flow = specialise::specialise(&flow, &effects, &constants, 100);
        let is_branch = |b: &&Block| matches!(b.exit, Exit::Branch { .. });
        let found = flow.blocks.iter().filter(is_branch).count();
        // With a write for certain both ways meet again; with one that may fail they are two still.
        assert_eq!(found, branches, "{flow:?}");
    }
}

/// Beyond the limit blocks are taken as they are: code does not grow without end.
#[test]
fn specialisation_ends() {
    let (effects, constants) = world();
    let mut blocks = Vec::new();
    for i in 0..8 {
        let id = blocks.len();
        blocks.push(block(&[], if_equal(FIELDS + i % 6, TWO, id + 1, id + 1)));
    }
    for i in 0..8 {
        let id = blocks.len();
        blocks.push(block(&[], if_equal(FIELDS + i % 6, ONE, id + 1, id + 1)));
    }
    blocks.push(block(&[], Exit::Stop));
    let flow = Flow {
        blocks,
        roots: vec![0],
    };
    let large = specialise::specialise(&flow, &effects, &constants, 1_000);
    let small = specialise::specialise(&flow, &effects, &constants, 40);
    assert!(large.size() > 120, "{}", large.size());
    assert!(small.size() < 120, "{}", small.size());
}

#[test]
fn copies_are_followed() {
    let (effects, _) = world();
    let add = |d, a, b| Op::alu(Alu::Add, d, a, b, 32);
    let mut flow = Flow {
        blocks: vec![
            block(
                &[
                    Op::copy(LOCALS, FIELDS),
                    add(LOCALS + 1, LOCALS, TWO),
                    Op::copy(FIELDS, LOCALS),
                    Op::alu(Alu::Move, LOCALS + 2, FIELDS, ZERO, 8),
                ],
                Exit::Goto(1),
            ),
            // Entered from one place only: what was known still is.
            block(
                &[
                    Op::copy(FIELDS + 3, LOCALS),
                    Op::copy(FIELDS + 4, LOCALS + 2),
                    Op::copy(FIELDS, TWO),
                    Op::copy(FIELDS + 5, LOCALS),
                ],
                Exit::Stop,
            ),
        ],
        roots: vec![0],
    };
    dead::propagate(&mut flow, &effects);
    let expected = vec![
        Op::copy(LOCALS, FIELDS),
        add(LOCALS + 1, FIELDS, TWO),
        Op::alu(Alu::Move, LOCALS + 2, FIELDS, ZERO, 8),
        Op::copy(FIELDS + 3, FIELDS),
        // Cut to eight bits it is no copy.
        Op::copy(FIELDS + 4, LOCALS + 2),
        Op::copy(FIELDS, TWO),
        // The field is another one by now: its copy holds the old value.
        Op::copy(FIELDS + 5, LOCALS),
    ];
    assert_eq!(straight(&flow), expected);
}

/// What an operation writes holds no longer what it held.
#[test]
fn a_write_by_anything_ends_a_copy() {
    for index in [ONE, FIELDS + 1] {
        let (effects, _) = world();
        let ops = [
            Op::copy(LOCALS, FIELDS),
            read(index, FIELDS),
            Op::copy(FIELDS + 2, LOCALS),
            Op::copy(FIELDS + 3, FIELDS),
        ];
        let mut flow = Flow {
            blocks: vec![block(&ops, Exit::Stop)],
            roots: vec![0],
        };
        dead::propagate(&mut flow, &effects);
        assert_eq!(flow.blocks[0].ops, ops);
    }
}

/// A read out of range leaves the slot as it was: nothing is known of it then.
#[test]
fn a_register_read_is_a_write_only_within_range() {
    let (effects, _) = world();
    for (index, live_before) in [(TWO, false), (FIELDS, true)] {
        let read = read(index, LOCALS);
        let mut flow = Flow {
            blocks: vec![block(
                &[
                    Op::copy(LOCALS, FIELDS + 1),
                    read,
                    Op::copy(FIELDS + 2, LOCALS),
                ],
                Exit::Stop,
            )],
            roots: vec![0],
        };
        dead::remove(&mut flow, &effects, &visible());
        assert_eq!(flow.blocks[0].ops.len() == 3, live_before, "{flow:?}");
    }
}

#[test]
fn what_nobody_reads_is_not_computed() {
    let (effects, _) = world();
    let write = Op::RegisterWrite {
        register: 0,
        index: LOCALS + 2,
        a: LOCALS + 3,
        limbs: 1,
    };
    let ops = [
        Op::copy(LOCALS, FIELDS),
        Op::copy(FIELDS, ONE),
        Op::copy(LOCALS + 2, ONE),
        write,
        Op::copy(FIELDS, TWO),
    ];
    let mut flow = Flow {
        blocks: vec![block(&ops, Exit::Stop)],
        roots: vec![0],
    };
    let end = dead::remove(&mut flow, &effects, &visible());
    // `FIELDS` is overwritten; the register's value is read although it was never written.
    assert_eq!(flow.blocks[0].ops, ops[2..]);
    assert!(end.contains(usize::from(LOCALS) + 3));
    assert!(!end.contains(LOCALS.into()));
}

/// What one part leaves for a later one is kept, and what must be there when a part is left half way.
#[test]
fn later_parts_and_early_ends_count() {
    let (effects, _) = world();
    let leave = Op::CheckExit;
    let first = [
        Op::copy(FIELDS, ONE),
        leave,
        Op::copy(FIELDS, TWO),
        Op::copy(LOCALS, ONE),
    ];
    let mut flow = Flow {
        blocks: vec![
            block(&first, Exit::Stop),
            block(&[Op::copy(FIELDS + 1, LOCALS)], Exit::Stop),
        ],
        roots: vec![0, 1],
    };
    dead::remove(&mut flow, &effects, &visible());
    assert_eq!(flow.blocks[0].ops, first);
}

/// These operations; the compiler names one that is missing here.
macro_rules! all_alu {
    ($($name:ident $(($bits:expr))?),*) => {{
        let _: fn(Alu) = |alu| match alu {
            $(Alu::$name { .. } => (),)*
        };
        vec![$(Alu::$name $(($bits))?),*]
    }};
}

/// An operation and the bits of its result.
fn arb_alu() -> impl Strategy<Value = (Alu, u8)> {
    let alu = (1..=64u32).prop_flat_map(|n| {
        prop::sample::select(all_alu![
            Move,
            Not,
            SignExtend(n),
            SatU(n),
            SatSU(n),
            SatS(n),
            Add,
            Sub,
            Mul,
            And,
            Or,
            Xor,
            Shl,
            ShrU,
            ShrS,
            DivU,
            ModU
        ])
    });
    (alu, 1..=64u8)
}

fn arb_value() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64u32).prop_map(|(value, shift)| value >> shift)
}

/// What the interpreter computes, or machine code for which the operands are constants or not.
fn run(op: Op, a: u64, b: u64, constant: Option<bool>) -> u64 {
    let mut kept = SlotSet::new(7);
    kept.add(FIELDS.into());
    let program = Program {
        blocks: vec![block(&[], Exit::Stop), block(&[op], Exit::Stop)],
        template: match constant {
            Some(true) => vec![0, 1, 0, a, b].into(),
            _ => vec![0, 1, 0, 0, 0].into(),
        },
        ingress_start: 1,
        ..Program::default()
    };
    let schema = crate::schema::Schema::default();
    let mut packet = Packet::with_slots(program.template.clone(), Default::default());
    packet.slots[3..].copy_from_slice(&[a, b]);
    let mut state = crate::state::State::new(&schema.clone().into(), &[], 1).unwrap();
    let mut machine = Machine {
        program: &program,
        state: &mut state,
        scratch: &mut Scratch::new(&program),
        fx: &mut crate::packet::Effects::new(),
        now: 0,
        observer: &mut (),
    };
    if constant.is_some() {
        let (mut effects, _) = world();
        effects.program = program.clone();
        effects.most = vec![u64::MAX; 5];
        let blocks = vec![block(&[], Exit::Stop), block(&[op], Exit::Stop)];
        let optimised = Optimised {
            effects,
            flow: Flow {
                blocks,
                roots: vec![0, 1, 0, 0, 0],
            },
            kept,
            patches: Vec::new(),
            resets: Vec::new(),
        };
        let code = native::compile(optimised, &schema).unwrap();
        code.run(native::Part::Ingress, &mut machine, &mut packet);
    } else {
        machine.run(&mut packet, 1);
    }
    packet.slots[usize::from(FIELDS)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_result_exceeds_its_bound((alu, w) in arb_alu(), a in arb_value(), b in arb_value(), a_less in arb_value(), b_less in arb_value()) {
        let result = alu.compute(a - a_less.min(a), b - b_less.min(b), w);
        prop_assert!(result <= alu.upper_bound(a, b, None, w));
        let result = alu.compute(a - a_less.min(a), b, w);
        prop_assert!(result <= alu.upper_bound(a, b, Some(b), w));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn machine_code_computes_what_the_interpreter_does((alu, w) in arb_alu(), a in arb_value(), b in arb_value()) {
        let expected = alu.compute(a, b, w);
        for constants in [None, Some(false), Some(true)] {
            let op = Op::alu(alu, FIELDS, FIELDS + 1, FIELDS + 2, w);
            prop_assert_eq!(run(op, a, b, constants), expected);
        }
    }
}
