// SPDX-License-Identifier: Apache-2.0
//! Selects with few cases as branches, one for each part of the key that a case asks for: what is known decides them.

use super::effects::Effects;
use super::flow::{Block, Exit, Flow, Id};
use super::pool::Pool;
use crate::bits::low_mask;
use crate::compile::code::{Case, Select, Test};
use crate::compile::layout::Slot;

/// Most cases of a select that becomes branches.
const FEW: usize = 6;

/// The flow with branches in the place of small selects.
pub(super) fn to_branches(mut flow: Flow, effects: &mut Effects, pool: &mut Pool) -> Flow {
    for id in 0..flow.blocks.len() {
        let Exit::Select { select, to } = &flow.blocks[id].exit else {
            continue;
        };
        let select = &effects.program.selects[*select];
        let Some(cases) = questions(select) else {
            continue;
        };
        let slots = cases.iter().flatten().map(|&(_, value)| value);
        let Some(constants) = slots
            .map(|value| pool.slot(value, &mut effects.most))
            .collect::<Option<Vec<Slot>>>()
        else {
            continue;
        };
        let to = to.clone();
        flow.blocks[id].exit = chain(&mut flow.blocks, &cases, &constants, &to);
    }
    flow
}

/// For each case what it asks: (slot, value); None when a case asks otherwise.
fn questions(select: &Select) -> Option<Vec<Vec<(Slot, u64)>>> {
    if select.cases.len() > FEW {
        return None;
    }
    let slots: Vec<(Slot, u64)> = select
        .parts
        .iter()
        .map(|&(slot, limbs, width)| (limbs == 1).then(|| (slot, low_mask(width))))
        .collect::<Option<_>>()?;
    let question = |values: &[u64], masks: &[u64]| {
        let mut asked = Vec::new();
        for ((&(slot, all), &value), &mask) in slots.iter().zip(values).zip(masks) {
            match mask & all {
                0 => {}
                some if some == all => asked.push((slot, value & all)),
                _ => return None,
            }
        }
        Some(asked)
    };
    let cases = select.cases.iter().map(|case| match case {
        Case::Masked { values, masks } => question(values, masks),
        Case::ValueSet(_) => None,
    });
    cases.collect()
}

/// Blocks that ask the cases' questions in order; the end that leads to the first.
fn chain(
    blocks: &mut Vec<Block>,
    cases: &[Vec<(Slot, u64)>],
    constants: &[Slot],
    to: &[Id],
) -> Exit {
    let mut next = Exit::Goto(to[cases.len()]);
    let mut constants = constants.iter().rev();
    for (case, &hit) in cases.iter().zip(to).rev() {
        let miss = block(blocks, next);
        next = Exit::Goto(hit);
        for &(a, _) in case.iter().rev() {
            let yes = block(blocks, next);
            let b = *constants.next().expect("one for each question");
            next = Exit::Branch {
                test: Test::Eq,
                a,
                b,
                yes,
                no: miss,
            };
        }
    }
    next
}

fn block(blocks: &mut Vec<Block>, exit: Exit) -> Id {
    let ops = Vec::new();
    blocks.push(Block { ops, exit });
    blocks.len() - 1
}
