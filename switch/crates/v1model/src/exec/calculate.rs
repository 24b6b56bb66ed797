// SPDX-License-Identifier: Apache-2.0
//! Hashes and checksums over fields: their input as bytes, or, for the Internet checksum, summed as words at once.

use crate::compile::code::{Calculation, Input, Program, WordRun};
use crate::externs::checksum::csum16;
use crate::externs::Hash;

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

/// True when every run of words has an even number of bytes, so that sums of words do not depend on validity.
pub(crate) fn sums_directly(calculation: &Calculation) -> bool {
    let even = |run: &WordRun| run.words.iter().map(|w| u32::from(w.bytes)).sum::<u32>() % 2 == 0;
    calculation
        .words
        .as_ref()
        .is_some_and(|runs| runs.iter().all(even))
}

/// The Internet checksum of the calculation's input, without writing it down.
#[inline]
pub(crate) fn csum16_of_words(calculation: &Calculation, slots: &[u64], payload: &[u8]) -> u64 {
    let mut sum = 0u64;
    for run in calculation.words.iter().flatten() {
        if slots[usize::from(run.valid)] != 0 {
            for part in &run.words {
                let (next, carry) = sum.overflowing_add(word(slots, part));
                sum = next + u64::from(carry);
            }
        }
    }
    if calculation.payload {
        let (next, carry) = sum.overflowing_add(u64::from(!csum16(payload)));
        sum = next + u64::from(carry);
    }
    u64::from(!(fold(sum) as u16))
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
