// SPDX-License-Identifier: Apache-2.0
//! Hashes and checksums over fields: their input as bytes, or, for the Internet checksum, summed as words at once.

use crate::compile::code::{Calculation, Input, Program};
use crate::compile::layout::Slot;
use crate::externs::Hash;
use checksum::csum16;

/// Folds a one's complement sum of 64-bit words to 16 bits.
#[inline]
fn fold(sum: u64) -> u64 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    (sum >> 16) + (sum & 0xffff)
}

#[inline]
fn word(slots: &[u64], word: &crate::compile::code::Word) -> u64 {
    word.fields
        .iter()
        .fold(word.constant, |value, &(slot, shift)| {
            let part = slots[usize::from(slot)];
            value
                | if shift >= 0 {
                    part << shift
                } else {
                    part >> -shift
                }
        })
}

/// An Internet checksum whose input is never written down: one's complement sums do not mind in which order and in
/// how large words they are added, so each field is added where it lies in its 64-bit word, and fields that lie
/// across two words are rotated (2^64 is 1 modulo 2^64 - 1).
#[derive(Debug)]
pub(crate) struct WordSum {
    /// Validity, sum of the constants, number of fields.
    pub runs: Vec<(Slot, u64, usize)>,
    /// Slot and rotation to the left, all runs one after another.
    pub fields: Vec<(Slot, u32)>,
    pub payload: bool,
}

impl WordSum {
    /// None when a run of fields has an odd number of bytes: then what follows depends on validity.
    pub fn from_calculation(calculation: &Calculation) -> Option<WordSum> {
        let mut sum = WordSum {
            runs: Vec::new(),
            fields: Vec::new(),
            payload: calculation.payload,
        };
        for run in calculation.words.as_ref()? {
            if run.words.iter().map(|w| u32::from(w.bytes)).sum::<u32>() % 2 != 0 {
                return None;
            }
            let (mut constant, first) = (0u128, sum.fields.len());
            for word in &run.words {
                constant += u128::from(word.constant);
                // A field across two words is in both: to the right here, to the left there, where it is added whole.
                let rests = word.fields.iter().filter(|(_, shift)| *shift >= 0);
                sum.fields
                    .extend(rests.map(|&(slot, shift)| (slot, shift as u32)));
            }
            sum.runs
                .push((run.valid, fold_64(constant), sum.fields.len() - first));
        }
        Some(sum)
    }

    /// The checksum.
    #[inline]
    pub fn value(&self, slots: &[u64], payload: &[u8]) -> u64 {
        let mut sum = 0u128;
        let mut fields = self.fields.as_slice();
        for &(valid, constant, count) in &self.runs {
            let (run, rest) = fields.split_at(count);
            fields = rest;
            if slots[usize::from(valid)] != 0 {
                sum += u128::from(constant);
                for &(slot, rotation) in run {
                    sum += u128::from(slots[usize::from(slot)].rotate_left(rotation));
                }
            }
        }
        if self.payload {
            sum += u128::from(!csum16(payload));
        }
        u64::from(!(fold(fold_64(sum)) as u16))
    }
}

/// A one's complement sum as 64 bits.
#[inline]
fn fold_64(sum: u128) -> u64 {
    let (low, carry) = (sum as u64).overflowing_add((sum >> 64) as u64);
    low + u64::from(carry)
}

/// The calculation's value: its input is written to `bytes`, which keeps its capacity.
pub(crate) fn calculate(
    program: &Program,
    calculation: &Calculation,
    hash: &mut Hash,
    slots: &[u64],
    payload: &[u8],
    bytes: &mut Vec<u8>,
) -> u64 {
    bytes.clear();
    match &calculation.words {
        Some(runs) => {
            for run in runs {
                if slots[usize::from(run.valid)] != 0 {
                    for part in &run.words {
                        bytes.extend_from_slice(
                            &word(slots, part).to_be_bytes()[..usize::from(part.bytes)],
                        );
                    }
                }
            }
        }
        None => write_inputs(program, calculation, slots, bytes),
    }
    if calculation.payload {
        bytes.extend_from_slice(payload);
    }
    hash.compute(bytes)
}

/// Bits one after another, padded with zeros to a byte at the end.
struct BitWriter<'b> {
    bytes: &'b mut Vec<u8>,
    bits: usize,
}

impl BitWriter<'_> {
    fn number(&mut self, limbs: &[u64], width: u32) {
        for i in (0..width.div_ceil(64)).rev() {
            let take = (width - i * 64).min(64);
            let end = self.bits + take as usize;
            self.bytes.resize(end.div_ceil(8), 0);
            super::frame::write_bits(self.bytes, self.bits, limbs[i as usize], take);
            self.bits = end;
        }
    }
}

fn write_inputs(program: &Program, calculation: &Calculation, slots: &[u64], bytes: &mut Vec<u8>) {
    let mut writer = BitWriter { bytes, bits: 0 };
    for input in &calculation.inputs {
        match input {
            Input::Field {
                slot,
                width,
                valid,
                varbit_bits,
            } => {
                if slots[usize::from(*valid)] != 0 {
                    let width = varbit_bits.map_or(*width, |bits| slots[usize::from(bits)] as u32);
                    writer.number(&slots[usize::from(*slot)..], width);
                }
            }
            Input::Constant { limbs, width } => writer.number(limbs, *width),
            Input::Header { base, valid, ty } => {
                if slots[usize::from(*valid)] != 0 {
                    let (io, base) = (&program.headers[usize::from(*ty)], usize::from(*base));
                    for field in &io.head {
                        writer.number(&slots[base + usize::from(field.offset)..], field.width);
                    }
                    if let Some((offset, _)) = io.varbit {
                        writer.number(&slots[base + usize::from(offset)..], slots[base + 1] as u32);
                    }
                    for field in &io.tail {
                        writer.number(&slots[base + usize::from(field.offset)..], field.width);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::code::{Word, WordRun};

    #[test]
    fn sums_of_rotated_fields_are_those_of_the_bytes() {
        // 40 and 48 bits, one after another: the second lies across two words; then a constant of 8 bits.
        let first = Word {
            bytes: 8,
            constant: 0,
            fields: vec![(0, 24), (1, -24)],
        };
        let second = Word {
            bytes: 4,
            constant: 0xab << 32,
            fields: vec![(1, 40)],
        };
        let run = WordRun {
            valid: 2,
            words: vec![first, second],
        };
        let calculation = Calculation {
            algorithm: "csum16".into(),
            inputs: Vec::new(),
            payload: true,
            words: Some(vec![run]),
        };
        let sum = WordSum::from_calculation(&calculation).unwrap();
        let (a, b) = (0x12_3456_789au64, 0xfedc_ba98_7654u64);
        let mut bytes = a.to_be_bytes()[3..].to_vec();
        bytes.extend_from_slice(&b.to_be_bytes()[2..]);
        bytes.push(0xab);
        bytes.extend_from_slice(&[1, 2, 3]);
        assert_eq!(sum.value(&[a, b, 1], &[1, 2, 3]), u64::from(csum16(&bytes)));
        assert_eq!(
            sum.value(&[a, b, 0], &[1, 2, 3]),
            u64::from(csum16(&[1, 2, 3]))
        );
    }
}
