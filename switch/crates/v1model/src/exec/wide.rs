// SPDX-License-Identifier: Apache-2.0
//! Arithmetic on numbers of several limbs, in two's complement; slow and general.

use crate::compile::code::{Alu, Operand, WideKind, WideOp};

/// Clears all bits of `value` from `bits` on.
pub(crate) fn mask(value: &mut [u64], bits: u32) {
    for (i, limb) in value.iter_mut().enumerate() {
        let low = i as u32 * 64;
        if bits <= low {
            *limb = 0;
        } else if bits - low < 64 {
            *limb &= (1 << (bits - low)) - 1;
        }
    }
}

impl Operand {
    fn negative(self, slots: &[u64]) -> bool {
        self.signed && slots[usize::from(self.slot + self.limbs - 1)] >> 63 == 1
    }

    /// Limb `index`, extended.
    fn limb(self, slots: &[u64], index: usize) -> u64 {
        if index < usize::from(self.limbs) {
            slots[usize::from(self.slot) + index]
        } else if self.negative(slots) {
            u64::MAX
        } else {
            0
        }
    }

    /// Number of significant bits of a value that is not negative.
    fn bit_len(self, slots: &[u64]) -> u32 {
        for index in (0..usize::from(self.limbs)).rev() {
            let limb = self.limb(slots, index);
            if limb != 0 {
                return index as u32 * 64 + 64 - limb.leading_zeros();
            }
        }
        0
    }

    /// As a shift distance: too large ones become `u64::MAX`, negative ones too.
    fn distance(self, slots: &[u64]) -> u64 {
        if self.negative(slots) || (1..usize::from(self.limbs)).any(|i| self.limb(slots, i) != 0) {
            u64::MAX
        } else {
            self.limb(slots, 0)
        }
    }
}

/// True when a < b.
fn less(slots: &[u64], a: Operand, b: Operand) -> bool {
    let (na, nb) = (a.negative(slots), b.negative(slots));
    if na != nb {
        return na;
    }
    for index in (0..usize::from(a.limbs.max(b.limbs))).rev() {
        let (x, y) = (a.limb(slots, index), b.limb(slots, index));
        if x != y {
            return x < y;
        }
    }
    false
}

/// True when -2^bits <= a < 2^bits.
fn fits_in(slots: &[u64], a: Operand, bits: u32) -> bool {
    let fill = if a.negative(slots) { u64::MAX } else { 0 };
    (0..usize::from(a.limbs)).all(|i| {
        let low = i as u32 * 64;
        let differing = a.limb(slots, i) ^ fill;
        bits >= low + 64 || differing >> bits.saturating_sub(low).min(63) == 0
    })
}

/// Runs one operation.
pub(crate) fn run(slots: &mut [u64], op: &WideOp) {
    let (d, limbs, a, b) = (usize::from(op.d), usize::from(op.limbs), op.a, op.b);
    match op.kind {
        WideKind::Alu(Alu::Move) => map_limbs(slots, d, limbs, |s, i| a.limb(s, i)),
        WideKind::Alu(Alu::And) => map_limbs(slots, d, limbs, |s, i| a.limb(s, i) & b.limb(s, i)),
        WideKind::Alu(Alu::Or) => map_limbs(slots, d, limbs, |s, i| a.limb(s, i) | b.limb(s, i)),
        WideKind::Alu(Alu::Xor) => map_limbs(slots, d, limbs, |s, i| a.limb(s, i) ^ b.limb(s, i)),
        WideKind::Alu(Alu::Not) => map_limbs(slots, d, limbs, |s, i| !a.limb(s, i)),
        WideKind::Alu(Alu::Add) => add(slots, d, limbs, a, b, false),
        WideKind::Alu(Alu::Sub) => add(slots, d, limbs, a, b, true),
        WideKind::Alu(Alu::Mul) => multiply(slots, d, limbs, a, b),
        WideKind::Alu(Alu::Shl) => {
            let distance = b.distance(slots);
            let (words, bits) = (distance / 64, distance % 64);
            for i in (0..limbs).rev() {
                let from = i as i64 - words.min(1 << 20) as i64;
                let high = if from >= 0 {
                    a.limb(slots, from as usize) << bits
                } else {
                    0
                };
                let low = match bits {
                    0 => 0,
                    _ if from >= 1 => a.limb(slots, from as usize - 1) >> (64 - bits),
                    _ => 0,
                };
                slots[d + i] = high | low;
            }
        }
        WideKind::Alu(Alu::ShrU | Alu::ShrS) => {
            let distance = b.distance(slots).min(1 << 20);
            let (words, bits) = ((distance / 64) as usize, distance % 64);
            map_limbs(slots, d, limbs, |s, i| {
                let low = a.limb(s, i + words) >> bits;
                let high = if bits == 0 {
                    0
                } else {
                    a.limb(s, i + words + 1) << (64 - bits)
                };
                low | high
            });
        }
        WideKind::Alu(Alu::DivU) => divide(slots, d, limbs, a, b, true),
        WideKind::Alu(Alu::ModU) => divide(slots, d, limbs, a, b, false),
        WideKind::Mask(bits) => {
            map_limbs(slots, d, limbs, |s, i| a.limb(s, i));
            mask(&mut slots[d..d + limbs], bits);
        }
        WideKind::Alu(Alu::SignExtend(bits)) => {
            let top = bits as usize - 1;
            let negative = a.limb(slots, top / 64) >> (top % 64) & 1 == 1;
            map_limbs(slots, d, limbs, |s, i| a.limb(s, i));
            mask(&mut slots[d..d + limbs], bits);
            if negative {
                fill_from(&mut slots[d..d + limbs], bits);
            }
        }
        WideKind::Alu(Alu::SatU(bits) | Alu::SatSU(bits)) => {
            if a.negative(slots) {
                slots[d..d + limbs].fill(0);
            } else if fits_in(slots, a, bits) {
                map_limbs(slots, d, limbs, |s, i| a.limb(s, i));
            } else {
                slots[d..d + limbs].fill(u64::MAX);
                mask(&mut slots[d..d + limbs], bits);
            }
        }
        WideKind::Alu(Alu::SatS(bits)) => {
            let negative = a.negative(slots);
            if fits_in(slots, a, bits - 1) {
                map_limbs(slots, d, limbs, |s, i| a.limb(s, i));
            } else if negative {
                slots[d..d + limbs].fill(0);
                fill_from(&mut slots[d..d + limbs], bits - 1);
            } else {
                slots[d..d + limbs].fill(u64::MAX);
                mask(&mut slots[d..d + limbs], bits - 1);
            }
        }
        WideKind::SetEq => {
            let equal = (0..usize::from(a.limbs.max(b.limbs)))
                .all(|i| a.limb(slots, i) == b.limb(slots, i))
                && a.negative(slots) == b.negative(slots);
            slots[d] = u64::from(equal);
        }
        WideKind::SetLt => slots[d] = u64::from(less(slots, a, b)),
    }
}

fn map_limbs(slots: &mut [u64], d: usize, limbs: usize, f: impl Fn(&[u64], usize) -> u64) {
    for i in 0..limbs {
        slots[d + i] = f(slots, i);
    }
}

/// Sets all bits from `bits` on.
fn fill_from(value: &mut [u64], bits: u32) {
    for (i, limb) in value.iter_mut().enumerate() {
        let low = i as u32 * 64;
        if bits <= low {
            *limb = u64::MAX;
        } else if bits - low < 64 {
            *limb |= u64::MAX << (bits - low);
        }
    }
}

fn add(slots: &mut [u64], d: usize, limbs: usize, a: Operand, b: Operand, subtract: bool) {
    let flip = if subtract { u64::MAX } else { 0 };
    let mut carry = subtract;
    // The result never overlaps an operand other than exactly: signs are read before they change.
    let (na, nb) = (a.negative(slots), b.negative(slots));
    let limb = |slots: &[u64], o: Operand, negative: bool, i: usize| {
        if i < usize::from(o.limbs) {
            slots[usize::from(o.slot) + i]
        } else if negative {
            u64::MAX
        } else {
            0
        }
    };
    for i in 0..limbs {
        let x = limb(slots, a, na, i);
        let y = limb(slots, b, nb, i) ^ flip;
        let (sum, over_1) = x.overflowing_add(y);
        let (sum, over_2) = sum.overflowing_add(u64::from(carry));
        slots[d + i] = sum;
        carry = over_1 || over_2;
    }
}

/// The result must not overlap an operand.
fn multiply(slots: &mut [u64], d: usize, limbs: usize, a: Operand, b: Operand) {
    slots[d..d + limbs].fill(0);
    for i in 0..limbs {
        let x = u128::from(a.limb(slots, i));
        let mut carry = 0u128;
        for j in 0..limbs - i {
            let at = d + i + j;
            let sum = x * u128::from(b.limb(slots, j)) + u128::from(slots[at]) + carry;
            slots[at] = sum as u64;
            carry = sum >> 64;
        }
    }
}

/// Bit by bit; by zero gives 0. The result must not overlap an operand.
fn divide(slots: &mut [u64], d: usize, limbs: usize, a: Operand, b: Operand, quotient: bool) {
    // One limb more than the divisor, for the remainder before it is reduced; 1025 limbs hold BITS_MAX.
    let mut rest = [0u64; 1026];
    let width = usize::from(b.limbs) + 1;
    slots[d..d + limbs].fill(0);
    if b.bit_len(slots) == 0 {
        return;
    }
    for bit in (0..a.bit_len(slots)).rev() {
        let next = a.limb(slots, bit as usize / 64) >> (bit % 64) & 1;
        let mut carry = next;
        for limb in &mut rest[..width] {
            let out = *limb >> 63;
            *limb = *limb << 1 | carry;
            carry = out;
        }
        let mut order = std::cmp::Ordering::Equal;
        for i in (0..width).rev() {
            order = rest[i].cmp(&b.limb(slots, i));
            if order.is_ne() {
                break;
            }
        }
        if order.is_ge() {
            let mut borrow = false;
            for (i, limb) in rest[..width].iter_mut().enumerate() {
                let (x, under_1) = limb.overflowing_sub(b.limb(slots, i));
                let (x, under_2) = x.overflowing_sub(u64::from(borrow));
                *limb = x;
                borrow = under_1 || under_2;
            }
            if quotient && (bit as usize / 64) < limbs {
                slots[d + bit as usize / 64] |= 1 << (bit % 64);
            }
        }
    }
    if !quotient {
        let n = limbs.min(width);
        slots[d..d + n].copy_from_slice(&rest[..n]);
    }
}
