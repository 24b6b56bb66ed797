// SPDX-License-Identifier: Apache-2.0
//! Each pass alone, on code written down here.

use std::collections::HashMap;

use proptest::prelude::*;

use super::effects::Effects;
use super::flow::{Block, Exit, Flow, Test};
use super::pool::Pool;
use super::slots::SlotSet;
use super::{dead, fold, selects, specialise, values};
use crate::compile::code::{Case, Op, Program, Select};
use crate::compile::layout::{Slot, ONE, ZERO};
use crate::native;

/// Slots of the code under test: 8 visible fields, of which the last two have one bit, and 8 that are not visible.
const FIELDS: Slot = 2;
const BITS: Slot = 8;
const LOCALS: Slot = 10;
const TWO: Slot = 18;
const SLOTS: usize = 19;

fn world() -> (Effects, Pool) {
    let constants = HashMap::from([(ZERO, 0), (ONE, 1), (TWO, 2)]);
    let mut template = vec![0; SLOTS];
    (template[1], template[18]) = (1, 2);
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
        copies: HashMap::new(),
    };
    (effects, Pool::new(constants, template))
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

fn copy(d: Slot, a: Slot) -> Op {
    Op::Move { d, a, w: 64 }
}

/// A register read; within range where the index is a constant.
fn read(index: Slot, d: Slot) -> Op {
    let register = 0;
    Op::RegisterRead {
        register,
        index,
        d,
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
    let (effects, pool) = world();
    let flow = Flow {
        blocks: vec![
            block(&[copy(LOCALS, ONE)], Exit::Goto(1)),
            block(&[], if_equal(LOCALS, ONE, 2, 3)),
            block(&[copy(FIELDS, TWO)], Exit::Stop),
            block(&[copy(FIELDS, ZERO)], Exit::Stop),
        ],
        roots: vec![0],
    };
    let flow = specialise::specialise(&flow, &effects, pool.values(), 100);
    let expected = vec![copy(LOCALS, ONE), copy(FIELDS, TWO)];
    assert_eq!(straight(&flow), expected);
}

/// The second question is answered by the first, on either way; a write in between makes it a question again.
#[test]
fn an_answer_holds_until_the_slot_is_written() {
    let (effects, pool) = world();
    for (between, branches) in [
        (copy(FIELDS, ONE), 1),
        (copy(BITS, FIELDS), 2),
        (read(ONE, BITS), 2),
        (read(FIELDS, BITS), 3),
    ] {
        let flow = Flow {
            blocks: vec![
                block(&[], if_equal(BITS, ONE, 1, 1)),
                block(&[between], if_equal(BITS, ZERO, 2, 3)),
                block(&[copy(FIELDS + 1, TWO)], Exit::Stop),
                block(&[copy(FIELDS + 2, TWO)], Exit::Stop),
            ],
            roots: vec![0],
        };
        let flow = specialise::specialise(&flow, &effects, pool.values(), 100);
        let is_branch = |b: &&Block| matches!(b.exit, Exit::Branch { .. });
        let found = flow.blocks.iter().filter(is_branch).count();
        // With a write for certain both ways meet again; with one that may fail they are two still.
        assert_eq!(found, branches, "{flow:?}");
    }
}

/// Beyond the limit blocks are taken as they are: code does not grow without end.
#[test]
fn specialisation_ends() {
    let (effects, pool) = world();
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
    let large = specialise::specialise(&flow, &effects, pool.values(), 1_000);
    let small = specialise::specialise(&flow, &effects, pool.values(), 40);
    assert!(large.size() > 120, "{}", large.size());
    assert!(small.size() < 120, "{}", small.size());
}

#[test]
fn copies_constants_and_common_values_are_followed() {
    let (mut effects, mut pool) = world();
    let add = |d, a, b| Op::Add { d, a, b, w: 32 };
    let mut flow = Flow {
        blocks: vec![
            block(
                &[
                    copy(LOCALS, FIELDS),
                    add(LOCALS + 1, LOCALS, TWO),
                    add(FIELDS + 1, TWO, FIELDS),
                    add(FIELDS + 2, ONE, TWO),
                ],
                Exit::Goto(1),
            ),
            // Entered from one place only: what was known still is.
            block(
                &[
                    copy(FIELDS + 3, LOCALS),
                    copy(FIELDS, TWO),
                    copy(FIELDS + 4, LOCALS),
                ],
                Exit::Stop,
            ),
        ],
        roots: vec![0],
    };
    values::propagate(&mut flow, &mut effects, &mut pool);
    let three = SLOTS as Slot;
    assert_eq!(pool.value(three), Some(3));
    let expected = vec![
        copy(LOCALS, FIELDS),
        add(LOCALS + 1, FIELDS, TWO),
        copy(FIELDS + 1, LOCALS + 1),
        copy(FIELDS + 2, three),
        copy(FIELDS + 3, FIELDS),
        copy(FIELDS, TWO),
        // The field is another one by now: its copy holds the old value.
        copy(FIELDS + 4, LOCALS),
    ];
    assert_eq!(straight(&flow), expected);
}

/// What an operation writes holds no longer what it held.
#[test]
fn a_write_by_anything_ends_a_copy() {
    for index in [ONE, FIELDS + 1] {
        let (mut effects, mut pool) = world();
        let ops = [
            copy(LOCALS, FIELDS),
            read(index, FIELDS),
            copy(FIELDS + 2, LOCALS),
            copy(FIELDS + 3, FIELDS),
        ];
        let mut flow = Flow {
            blocks: vec![block(&ops, Exit::Stop)],
            roots: vec![0],
        };
        values::propagate(&mut flow, &mut effects, &mut pool);
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
                &[copy(LOCALS, FIELDS + 1), read, copy(FIELDS + 2, LOCALS)],
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
    };
    let ops = [
        copy(LOCALS, FIELDS),
        copy(FIELDS, ONE),
        copy(LOCALS + 2, ONE),
        write,
        copy(FIELDS, TWO),
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
        copy(FIELDS, ONE),
        leave,
        copy(FIELDS, TWO),
        copy(LOCALS, ONE),
    ];
    let mut flow = Flow {
        blocks: vec![
            block(&first, Exit::Stop),
            block(&[copy(FIELDS + 1, LOCALS)], Exit::Stop),
        ],
        roots: vec![0, 1],
    };
    dead::remove(&mut flow, &effects, &visible());
    assert_eq!(flow.blocks[0].ops, first);
}

#[test]
fn small_selects_become_branches_and_masked_ones_do_not() {
    let select = |mask: u64| Select {
        parts: vec![(FIELDS, 1, 13), (FIELDS + 1, 1, 8)],
        narrow: Vec::new(),
        cases: vec![Case::Masked {
            values: vec![0, 6],
            masks: vec![u64::MAX, mask],
            to: 0,
        }],
        default: 0,
    };
    // One block for where a case leads on a miss, and one behind each question.
    for (mask, blocks) in [(0xff, 6), (0x0f, 3), (0, 5)] {
        let (mut effects, mut pool) = world();
        effects.program.selects.push(select(mask));
        let to = vec![1, 2];
        let flow = Flow {
            blocks: vec![
                block(&[], Exit::Select { select: 0, to }),
                block(&[], Exit::Stop),
                block(&[], Exit::Stop),
            ],
            roots: vec![0],
        };
        let flow = selects::to_branches(flow, &mut effects, &mut pool);
        let asks = matches!(
            flow.blocks[0].exit,
            Exit::Branch {
                a: FIELDS,
                b: ZERO,
                ..
            }
        );
        assert_eq!(asks, mask != 0x0f);
        assert_eq!(flow.blocks.len(), blocks, "mask {mask:x}");
    }
}

fn arb_op() -> impl Strategy<Value = Op> {
    let (d, a, b) = (FIELDS, FIELDS + 1, FIELDS + 2);
    (0..17u8, 1..=64u8, 1..=64u8).prop_map(move |(kind, w, bits)| match kind {
        0 => Op::Move { d, a, w },
        1 => Op::Not { d, a, w },
        2 => Op::SignExtend {
            d,
            a,
            from: bits,
            w,
        },
        3 => Op::SatU { d, a, bits, w },
        4 => Op::SatSU { d, a, bits, w },
        5 => Op::SatS { d, a, bits, w },
        6 => Op::Add { d, a, b, w },
        7 => Op::Sub { d, a, b, w },
        8 => Op::Mul { d, a, b, w },
        9 => Op::And { d, a, b, w },
        10 => Op::Or { d, a, b, w },
        11 => Op::Xor { d, a, b, w },
        12 => Op::Shl { d, a, b, w },
        13 => Op::ShrU { d, a, b, w },
        14 => Op::ShrS { d, a, b, w },
        15 => Op::DivU { d, a, b, w },
        _ => Op::ModU { d, a, b, w },
    })
}

fn arb_value() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64u32).prop_map(|(value, shift)| value >> shift)
}

/// What the interpreter computes, or machine code for which the operands are constants or not.
fn run(op: Op, a: u64, b: u64, constant: Option<bool>) -> u64 {
    let constants = constant == Some(true);
    let mut kept = SlotSet::new(7);
    kept.add(FIELDS.into());
    let mut program = Program {
        ops: vec![Op::End, op, Op::End],
        template: match constants {
            true => vec![0, 1, 0, a, b].into(),
            false => vec![0, 1, 0, 0, 0].into(),
        },
        ingress_start: 1,
        kept: Some(kept),
        ..Program::default()
    };
    let schema = crate::schema::Schema::default();
    program.check(&schema).unwrap();
    let code = constant.map(|_| native::compile(&mut program, &schema).unwrap());
    let mut packet =
        crate::packet::Packet::with_slots(program.template.clone(), Default::default());
    packet.slots[3..].copy_from_slice(&[a, b]);
    let mut state = crate::state::State::new(&schema.into(), &[], 1).unwrap();
    let mut scratch = crate::exec::Scratch::new(&program, &[]);
    let mut fx = crate::effects::Effects::new();
    let mut machine = crate::exec::Machine {
        program: &program,
        state: &mut state,
        scratch: &mut scratch,
        fx: &mut fx,
        now: 0,
    };
    match code {
        Some(code) => code.ingress(&mut machine, &mut packet),
        None => machine.run(&mut packet, 1),
    }
    packet.slots[usize::from(FIELDS)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn constants_are_what_the_machine_computes(op in arb_op(), a in arb_value(), b in arb_value()) {
        prop_assert_eq!(fold::compute(&op, a, b), Some(run(op, a, b, None)));
    }

    #[test]
    fn no_result_exceeds_its_bound(op in arb_op(), a in arb_value(), b in arb_value(), a_less in arb_value(), b_less in arb_value()) {
        let result = fold::compute(&op, a - a_less.min(a), b - b_less.min(b)).unwrap();
        prop_assert!(result <= fold::upper_bound(&op, a, b, None));
        let result = fold::compute(&op, a - a_less.min(a), b).unwrap();
        prop_assert!(result <= fold::upper_bound(&op, a, b, Some(b)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn machine_code_computes_what_the_interpreter_does(op in arb_op(), a in arb_value(), b in arb_value()) {
        let expected = run(op, a, b, None);
        for constants in [false, true] {
            prop_assert_eq!(run(op, a, b, Some(constants)), expected);
        }
    }
}
