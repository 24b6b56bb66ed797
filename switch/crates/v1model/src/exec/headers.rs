// SPDX-License-Identifier: Apache-2.0
//! Validity, copies and stacks of headers among a packet's slots.

use super::frame::header_bytes;
use crate::compile::code::{Element, Program};
use crate::compile::layout::Stack;

/// First slot of a header's block; None when the index is beyond the stack.
#[inline]
pub(crate) fn block(element: &Element, slots: &[u64]) -> Option<usize> {
    if element.stride == 0 {
        return Some(usize::from(element.base));
    }
    let index = slots[usize::from(element.index)];
    (index < u64::from(element.count))
        .then(|| usize::from(element.base) + index as usize * usize::from(element.stride))
}

fn clear_siblings(slots: &mut [u64], base: usize, siblings: &[i32]) {
    for &offset in siblings {
        slots[(base as i64 + i64::from(offset)) as usize] = 0;
    }
}

/// Marks the header in the block at `base` valid, after extraction.
#[inline]
pub(crate) fn mark_valid(slots: &mut [u64], base: usize, siblings: &[i32]) {
    slots[base] = 1;
    clear_siblings(slots, base, siblings);
}

/// `setValid`: the fields of a header that was invalid become 0.
pub(crate) fn set_valid(
    program: &Program,
    slots: &mut [u64],
    length_bytes: &mut u32,
    element: &Element,
) {
    let Some(base) = block(element, slots) else {
        return;
    };
    if element.metadata || slots[base] != 0 {
        return;
    }
    let ty = &program.headers[usize::from(element.header)];
    slots[base..base + usize::from(ty.slots)].fill(0);
    mark_valid(slots, base, &element.siblings);
    *length_bytes = length_bytes.wrapping_add(ty.fixed_bytes());
}

/// `setInvalid`.
pub(crate) fn set_invalid(
    program: &Program,
    slots: &mut [u64],
    length_bytes: &mut u32,
    element: &Element,
) {
    let Some(base) = block(element, slots) else {
        return;
    };
    if element.metadata || slots[base] == 0 {
        return;
    }
    let ty = &program.headers[usize::from(element.header)];
    slots[base] = 0;
    let bytes = header_bytes(ty, slots, base);
    *length_bytes = length_bytes.wrapping_sub(bytes);
}

/// Assigns a header: its validity and, when it is valid, its fields.
pub(crate) fn copy(program: &Program, slots: &mut [u64], to: &Element, from: &Element) {
    let (Some(d), Some(a)) = (block(to, slots), block(from, slots)) else {
        return;
    };
    let ty = &program.headers[usize::from(from.header)];
    if from.metadata || to.metadata {
        slots.copy_within(a + 1..a + usize::from(ty.slots), d + 1);
        if !to.metadata {
            mark_valid(slots, d, &to.siblings);
        }
    } else if slots[a] == 0 {
        slots[d] = 0;
    } else {
        slots.copy_within(a..a + usize::from(ty.slots), d);
        clear_siblings(slots, d, &to.siblings);
    }
}

/// Equality as P4_16 defines it: both invalid, or both valid with equal fields.
pub(crate) fn equal(program: &Program, slots: &[u64], x: &Element, y: &Element) -> bool {
    let (Some(a), Some(b)) = (block(x, slots), block(y, slots)) else {
        return false;
    };
    let valid = |element: &Element, base: usize| element.metadata || slots[base] != 0;
    match (valid(x, a), valid(y, b)) {
        (true, true) => {
            let n = usize::from(program.headers[usize::from(x.header)].slots);
            slots[a + 1..a + n] == slots[b + 1..b + n]
        }
        (valid_a, valid_b) => valid_a == valid_b,
    }
}

fn stack_range(stack: &Stack) -> std::ops::Range<usize> {
    let base = usize::from(stack.base);
    base..base + usize::from(stack.stride) * usize::from(stack.count)
}

/// `push_front(n)`: P4_16, the new elements are invalid.
pub(crate) fn push(stack: &Stack, slots: &mut [u64], n: u64) {
    let n = n.min(u64::from(stack.count)) as usize;
    let next = &mut slots[usize::from(stack.next)];
    *next = (*next + n as u64).min(u64::from(stack.count));
    let all = stack_range(stack);
    let shift = n * usize::from(stack.stride);
    slots.copy_within(all.start..all.end - shift, all.start + shift);
    slots[all.start..all.start + shift].fill(0);
}

/// `pop_front(n)`.
pub(crate) fn pop(stack: &Stack, slots: &mut [u64], n: u64) {
    let next = &mut slots[usize::from(stack.next)];
    *next = next.saturating_sub(n);
    let n = n.min(u64::from(stack.count)) as usize;
    let all = stack_range(stack);
    let shift = n * usize::from(stack.stride);
    slots.copy_within(all.start + shift..all.end, all.start);
    slots[all.end - shift..all.end].fill(0);
}
