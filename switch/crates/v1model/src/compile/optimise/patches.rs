// SPDX-License-Identifier: Apache-2.0
//! Which bytes of each header a program can change: where a packet's headers are those that came, nothing else need be
//! written when it leaves.

use super::effects::{Effects, Touch};
use super::flow::Flow;
use super::slots::SlotSet;
use crate::compile::code::{Op, Piece};

/// `Optimised::patches`; None when a header has fields that only the slow path writes.
pub(super) fn patches(flow: &Flow, effects: &Effects) -> Option<Vec<Vec<Piece>>> {
    let written = written(flow, effects);
    let of = |&(_, base, ty): &(u16, u16, u16)| {
        let io = &effects.program.headers[usize::from(ty)];
        // A header with a varbit field is never extracted in place.
        if io.varbit.is_some() {
            return Some(Vec::new());
        }
        let is_written = |piece: &&Piece| {
            let mut fields = piece.fields.iter();
            fields.any(|(offset, _)| written.contains(usize::from(base + offset)))
        };
        let pieces = io.pieces.as_ref()?;
        Some(pieces.iter().filter(is_written).cloned().collect())
    };
    effects.program.deparser.iter().map(of).collect()
}

/// Slots that anything but extraction from the frame may write.
fn written(flow: &Flow, effects: &Effects) -> SlotSet {
    let mut written = SlotSet::new(effects.most.len());
    let mut add = |touch: Touch, range: std::ops::Range<usize>| {
        if touch != Touch::Reads {
            range.for_each(|slot| written.add(slot));
        }
    };
    for block in &flow.blocks {
        for op in &block.ops {
            match op {
                // What is extracted is what the frame says; what becomes invalid is not emitted.
                Op::Extract { bits: None, .. } | Op::SetInvalid { .. } => {}
                op => effects.visit(op, &mut add),
            }
        }
        block.exit.touches(&effects.program, &mut add);
    }
    written
}
