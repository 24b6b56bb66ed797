// SPDX-License-Identifier: Apache-2.0
//! Hashes and checksums over fields: their input as bytes.

use crate::compile::code::{Calculation, Input, Program};
use crate::externs::Hash;

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
