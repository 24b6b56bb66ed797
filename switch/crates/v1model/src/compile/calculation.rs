// SPDX-License-Identifier: Apache-2.0
//! Hash and checksum inputs: `calculations` and `checksums`.

use super::code::{Calculation, Input, Op, Test, Word, WordRun};
use super::emit::{index16, Emitter};
use super::expr::ExprReader;
use super::layout::{Field, Layout, Slot, ONE, ZERO};
use super::range::BITS_MAX;
use crate::externs::{Hash, Random};
use crate::json::{Json, Load};
use crate::pipeline::Std;

/// The inputs in `json` (an array of `{type, value}`), and whether the payload belongs to them.
pub(crate) fn inputs(layout: &Layout, json: &Json) -> Load<(Vec<Input>, bool)> {
    let (mut inputs, mut payload) = (Vec::new(), false);
    for item in json.items()? {
        let ty = item.get("type")?;
        if payload && ty.str()? != "payload" {
            return item.fail("nothing may follow the payload");
        }
        match ty.str()? {
            "payload" => payload = true,
            "field" => {
                let field = layout.field(&item.get("value")?)?;
                item.charge(input_bytes(field.width), || "an input of a hash".into())?;
                inputs.push(Input::Field {
                    slot: field.slot,
                    width: field.width,
                    valid: field.valid,
                    varbit_bits: field.varbit_bits,
                });
            }
            "hexstr" => {
                let width_json = item.get("bitwidth")?;
                let width = width_json.u32()?;
                if width > BITS_MAX {
                    return width_json.fail(format!("a constant is at most {BITS_MAX} bits wide"));
                }
                item.charge(u64::from(width.div_ceil(64)) * 8, || "a constant".into())?;
                let value = item.get("value")?.hexstr_of(width)?;
                let limbs = crate::bits::limbs_for(width);
                let mut limbs = value.to_limbs(limbs);
                crate::exec::wide::mask(&mut limbs, width);
                inputs.push(Input::Constant {
                    limbs: limbs.into(),
                    width,
                });
            }
            "header" => {
                let header = &layout.headers[layout.header(&item.get("value")?)?];
                let bits = u32::from(layout.types[header.ty].slots) * 64;
                item.charge(input_bytes(bits), || "an input of a hash".into())?;
                let (base, valid) = (header.base, header.valid);
                inputs.push(Input::Header {
                    base,
                    valid,
                    ty: header.ty as u16,
                });
            }
            other => {
                return ty.fail(format!(
                    "`{other}` cannot be hashed: field, hexstr, header or payload can"
                ))
            }
        }
    }
    Ok((inputs, payload))
}

/// What an input of so many bits takes when its words are known in advance.
fn input_bytes(bits: u32) -> u64 {
    u64::from(bits.div_ceil(64) + 1) * size_of::<Word>() as u64
}

/// Adds a calculation to `calculations`, and returns its index there.
pub(crate) fn add(layout: &Layout, json: &Json, calculations: &mut Vec<Calculation>) -> Load<u16> {
    let index = index16(calculations.len(), "calculations").map_err(|m| json.error(m))?;
    calculations.push(calculation(layout, json)?);
    Ok(index)
}

/// A calculation; checks that its algorithm is known.
fn calculation(layout: &Layout, json: &Json) -> Load<Calculation> {
    let algo = json.get("algo")?;
    let algorithm = algo.str()?.to_string();
    if Hash::from_name(&algorithm, Random::new(0)).is_none() {
        return algo.fail(format!(
            "there is no hash algorithm `{algorithm}`; known: {}",
            Hash::NAMES.join(", ")
        ));
    }
    let (inputs, payload) = inputs(layout, &json.get("input")?)?;
    let words = words(layout, &inputs);
    Ok(Calculation {
        algorithm,
        inputs,
        payload,
        words,
    })
}

/// All inputs as runs of words, when every run is whole bytes and nothing has a length of its own.
fn words(layout: &Layout, inputs: &[Input]) -> Option<Vec<WordRun>> {
    let mut runs: Vec<(Slot, u32, Vec<Word>)> = Vec::new();
    let mut limb = |valid: Slot, part: Part, width: u32| {
        if runs.last().is_none_or(|(v, _, _)| *v != valid) {
            runs.push((valid, 0, Vec::new()));
        }
        let (_, bits, words) = runs.last_mut().expect("just pushed");
        append(words, *bits, part, width);
        *bits += width;
    };
    for input in inputs {
        match input {
            Input::Field {
                varbit_bits: Some(_),
                ..
            } => return None,
            Input::Field {
                slot, width, valid, ..
            } => {
                for (slot, width) in slot_limbs(*slot, *width) {
                    limb(*valid, Part::Slot(slot), width);
                }
            }
            Input::Constant { limbs, width } => {
                for (index, width) in slot_limbs(0, *width) {
                    limb(ONE, Part::Constant(limbs[usize::from(index)]), width);
                }
            }
            Input::Header { base, valid, ty } => {
                let ty = &layout.types[usize::from(*ty)];
                if ty.varbit.is_some() {
                    return None;
                }
                for field in &ty.fields {
                    for (slot, width) in slot_limbs(base + field.offset, field.width) {
                        limb(*valid, Part::Slot(slot), width);
                    }
                }
            }
        }
    }
    let whole = |(valid, bits, words): (Slot, u32, Vec<Word>)| {
        (bits % 8 == 0).then_some(WordRun { valid, words })
    };
    runs.into_iter().map(whole).collect()
}

enum Part {
    Slot(Slot),
    Constant(u64),
}

/// Limbs from the most significant: (slot, width ≤ 64).
fn slot_limbs(slot: Slot, width: u32) -> impl Iterator<Item = (Slot, u32)> {
    (0..width.div_ceil(64))
        .rev()
        .map(move |i| (slot + i as Slot, (width - i * 64).min(64)))
}

fn append(words: &mut Vec<Word>, bits: u32, part: Part, width: u32) {
    let used = bits % 64;
    if used == 0 {
        words.push(Word {
            bytes: 0,
            constant: 0,
            fields: Vec::new(),
        });
    }
    // Left shift of the part in the word; negative when its end lies in the next word.
    let shift = 64 - used as i32 - width as i32;
    let add = |word: &mut Word, shift: i32, bits: u32| {
        match part {
            Part::Slot(slot) => word.fields.push((slot, shift as i8)),
            Part::Constant(value) if shift >= 0 => word.constant |= value << shift,
            Part::Constant(value) => word.constant |= value >> -shift,
        }
        word.bytes = bits.div_ceil(8) as u8;
    };
    let word = words.last_mut().expect("there is a word");
    add(word, shift, (used + width).min(64));
    if shift < 0 {
        let mut next = Word {
            bytes: 0,
            constant: 0,
            fields: Vec::new(),
        };
        add(&mut next, 64 + shift, (-shift) as u32);
        words.push(next);
    }
}

/// Code that verifies or updates the program's checksums; their calculations must be known by name already.
pub(crate) fn checksums(
    e: &mut Emitter,
    reader: &ExprReader,
    root: &Json,
    verify: bool,
) -> Load<()> {
    for json in root.list("checksums")? {
        let ty = json.get("type")?;
        if ty.str()? != "generic" {
            return ty.fail(format!(
                "checksums are of type `generic`, not `{}`",
                ty.str()?
            ));
        }
        let target_json = json.get("target")?;
        let Field {
            slot, width, valid, ..
        } = reader.layout.target(&target_json)?;
        if width > 64 {
            return target_json.fail("a checksum is at most 64 bits wide");
        }
        let calculation = reader.names.calculation(&json.get("calculation")?)?;
        let wanted = json.bool_or(if verify { "verify" } else { "update" }, true)?;
        if !wanted || width == 0 {
            continue;
        }
        let (after, before) = (e.label(), e.operations());
        if verify {
            e.branch_if(Test::Eq, valid, ZERO, after);
        }
        if let Some(condition) = json.opt("if_cond") {
            let branched = e.branch(&reader.cond(&condition)?, false, after);
            branched.map_err(|m| condition.error(m))?;
        }
        let (d, w) = match verify {
            true => (e.temp(1).map_err(|m| json.error(m))?, 64),
            false => (slot, width as u8),
        };
        e.calculate(calculation, d, w);
        if let (true, Some((error, _))) = (verify, e.program.std[Std::ChecksumError as usize]) {
            e.branch_if(Test::Eq, d, slot, after);
            e.op(Op::copy(error, ONE));
        }
        e.place(after);
        e.end_statement();
        super::action::charge(e, &json, before)?;
    }
    Ok(())
}
