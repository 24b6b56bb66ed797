// SPDX-License-Identifier: Apache-2.0
//! Arithmetic on numbers of any size; slow and general.

use std::cmp::Ordering;

use crate::bits::{cut, low_mask};
use crate::compile::code::{Alu, Operand, WideKind, WideOp};

/// Two operands and a result in two's complement, all of so many limbs that the sign is seen in the last one.
#[derive(Debug, Default)]
pub(crate) struct Wide {
    a: Vec<u64>,
    b: Vec<u64>,
    d: Vec<u64>,
}

impl Wide {
    /// Room for numbers of usual size.
    pub fn new() -> Wide {
        let [a, b, d] = [(); 3].map(|()| Vec::with_capacity(64));
        Wide { a, b, d }
    }

    /// Runs one operation.
    pub fn run(&mut self, slots: &mut [u64], op: &WideOp) {
        let limbs = 1 + usize::from(op.limbs.max(op.a.limbs).max(op.b.limbs));
        op.a.read(slots, limbs, &mut self.a);
        op.b.read(slots, limbs, &mut self.b);
        self.d.clear();
        self.d.resize(limbs, 0);
        match op.kind {
            WideKind::Alu(alu) => self.compute(alu),
            WideKind::Test(test) => self.d[0] = test.of(order(&self.a, &self.b)).into(),
        }
        let d = usize::from(op.d)..usize::from(op.d) + usize::from(op.limbs);
        slots[d.clone()].copy_from_slice(&self.d[..d.len()]);
        cut(&mut slots[d], op.w);
    }

    fn compute(&mut self, alu: Alu) {
        let Wide { a, b, d } = self;
        let width = d.len() as u64 * 64;
        let distance = match b[1..].iter().all(|limb| *limb == 0) {
            true => b[0].min(width) as i64,
            false => width as i64,
        };
        let fill = sign(a);
        let inside = match alu {
            Alu::SatU(bits) | Alu::SatSU(bits) => fits(a, bits),
            Alu::SatS(bits) => fits(a, bits - 1),
            _ => true,
        };
        for i in 0..d.len() {
            let below = |bits: u32| low_mask(bits.saturating_sub(64 * i as u32));
            d[i] = match alu {
                Alu::Move => a[i],
                Alu::Not => !a[i],
                Alu::And => a[i] & b[i],
                Alu::Or => a[i] | b[i],
                Alu::Xor => a[i] ^ b[i],
                Alu::Shl => window(a, 64 * i as i64 - distance),
                Alu::ShrU | Alu::ShrS => window(a, 64 * i as i64 + distance),
                Alu::SignExtend(bits) => match window(a, i64::from(bits) - 1) & 1 {
                    0 => a[i] & below(bits),
                    _ => a[i] | !below(bits),
                },
                Alu::SatU(_) | Alu::SatSU(_) if fill != 0 => 0,
                Alu::SatU(bits) | Alu::SatSU(bits) if !inside => below(bits),
                Alu::SatS(bits) if !inside => fill ^ below(bits - 1),
                Alu::SatU(_) | Alu::SatSU(_) | Alu::SatS(_) => a[i],
                Alu::Add | Alu::Sub | Alu::Mul | Alu::DivU | Alu::ModU => 0,
            };
        }
        match alu {
            Alu::Add => {
                d.copy_from_slice(a);
                add(d, b, 0);
            }
            Alu::Sub => {
                d.copy_from_slice(a);
                subtract(d, b);
            }
            Alu::Mul => {
                for (i, x) in a.iter().enumerate() {
                    let mut carry = 0;
                    for (d, y) in d[i..].iter_mut().zip(&*b) {
                        let sum = u128::from(*x) * u128::from(*y) + u128::from(*d) + carry;
                        (*d, carry) = (sum as u64, sum >> 64);
                    }
                }
            }
            // By zero gives 0. Bits go from `a` to the rest in `d`, those of the quotient take their place.
            Alu::DivU | Alu::ModU if b.iter().any(|limb| *limb != 0) => {
                let zeros = a.iter().rev().take_while(|limb| **limb == 0).count();
                a.rotate_right(zeros);
                for _ in 64 * zeros as u64..width {
                    let next = a[a.len() - 1] >> 63;
                    double(a, 0);
                    double(d, next);
                    if order(d, b).is_ge() {
                        subtract(d, b);
                        a[0] |= 1;
                    }
                }
                if alu == Alu::DivU {
                    d.copy_from_slice(a);
                }
            }
            _ => {}
        }
    }
}

impl Operand {
    /// Its value, as so many limbs.
    fn read(self, slots: &[u64], limbs: usize, to: &mut Vec<u64>) {
        let first = usize::from(self.slot);
        to.clear();
        to.extend_from_slice(&slots[first..first + usize::from(self.limbs)]);
        let fill = if self.signed { sign(to) } else { 0 };
        to.resize(limbs, fill);
    }
}

/// All ones for a negative number, else 0.
fn sign(value: &[u64]) -> u64 {
    value.last().map_or(0, |limb| ((*limb as i64) >> 63) as u64)
}

/// The 64 bits from bit `at` on; there are zeros below a number, and its sign above it.
fn window(value: &[u64], at: i64) -> u64 {
    let limb = |index: i64| match usize::try_from(index) {
        Ok(index) => value.get(index).copied().unwrap_or(sign(value)),
        Err(_) => 0,
    };
    let (index, shift) = (at.div_euclid(64), at.rem_euclid(64));
    let both = u128::from(limb(index + 1)) << 64 | u128::from(limb(index));
    (both >> shift) as u64
}

/// True when -2^bits <= value < 2^bits.
fn fits(value: &[u64], bits: u32) -> bool {
    let limbs = value.iter().enumerate();
    let fill = sign(value);
    limbs.fold(0, |other, (i, limb)| {
        other | (limb ^ fill) & !low_mask(bits.saturating_sub(64 * i as u32))
    }) == 0
}

fn order(a: &[u64], b: &[u64]) -> Ordering {
    let signs = (sign(a) as i64).cmp(&(sign(b) as i64));
    signs.then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

/// Adds `b`, each limb of it exclusive-or `flip`, and 1 where that flips.
fn add(a: &mut [u64], b: &[u64], flip: u64) {
    let mut carry = u128::from(flip & 1);
    for (x, y) in a.iter_mut().zip(b) {
        let sum = u128::from(*x) + u128::from(y ^ flip) + carry;
        (*x, carry) = (sum as u64, sum >> 64);
    }
}

fn subtract(a: &mut [u64], b: &[u64]) {
    add(a, b, u64::MAX);
}

/// 2·value + next, of which the top bit is dropped.
fn double(value: &mut [u64], mut next: u64) {
    for limb in value {
        (*limb, next) = (*limb << 1 | next, *limb >> 63);
    }
}
