// SPDX-License-Identifier: Apache-2.0
//! Which bytes of each header a program can change: where a packet's headers are those that came, nothing else need be
//! written when it leaves.

use super::effects::{Effects, Touch};
use super::flow::Flow;
use super::slots::SlotSet;
use crate::compile::code::{Emitted, Op, Word};

/// `Optimised::patches`. A header with a varbit field is never extracted in place.
pub(super) fn patches(flow: &Flow, effects: &Effects) -> Vec<Vec<(usize, Word)>> {
    let written = written(flow, effects);
    let is_written = |(_, word): &(usize, Word)| {
        let mut fields = word.fields.iter();
        fields.any(|(slot, _)| written.contains((*slot).into()))
    };
    let of = |header: &Emitted| {
        let words = header.words.clone().unwrap_or_default();
        words.into_iter().enumerate().filter(is_written).collect()
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
