// SPDX-License-Identifier: Apache-2.0
//! Hash and checksum inputs: `calculations` and `checksums`.

use super::alu::BITS_MAX;
use super::code::{Calculation, Input, Op, Test, Word, WordRun};
use super::emit::{index16, Emitter};
use super::expr::ExprReader;
use super::layout::{slot_limbs, Field, Layout, Slot, ONE, ZERO};
use crate::bits::{cut, limbs_for, shifted};
use crate::externs::{Hash, Random};
use crate::json::{fail, to_limbs, At, Json, Load};
use crate::pipeline::Std;

/// The inputs in `json` (an array of `{type, value}`), and whether the payload belongs to them.
pub(crate) fn inputs(layout: &Layout, json: &Json) -> Load<(Vec<Input>, bool)> {
    let (mut inputs, mut payload) = (Vec::new(), false);
    for item in json.items()? {
        let ty = item.get("type")?;
        if payload && ty.str()? != "payload" {
            fail!(item, "nothing may follow the payload");
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
                    fail!(width_json, "a constant is at most {BITS_MAX} bits wide");
                }
                item.charge(input_bytes(width), || "a constant".into())?;
                let value = item.get("value")?.hexstr_of(width)?;
                let mut limbs = to_limbs(&value, limbs_for(width));
                cut(&mut limbs, width);
                inputs.push(Input::Constant {
                    limbs: limbs.into(),
                    width,
                });
            }
            "header" => {
                let header = &layout.headers[layout.named("header", &item.get("value")?)?];
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
                fail!(
                    ty,
                    "`{other}` cannot be hashed: field, hexstr, header or payload can"
                )
            }
        }
    }
    Ok((inputs, payload))
}

/// What an input of so many bits takes when its words are known in advance: each with a limb of a constant, and a copy of
/// all for machine code.
fn input_bytes(bits: u32) -> u64 {
    u64::from(bits.div_ceil(64) + 1) * 2 * size_of::<(Word, u64)>() as u64
}

/// Adds a calculation to `calculations`, and returns its index there.
pub(crate) fn add(layout: &Layout, json: &Json, calculations: &mut Vec<Calculation>) -> Load<u16> {
    let index = index16(calculations.len(), "calculations").at(json)?;
    calculations.push(calculation(layout, json)?);
    Ok(index)
}

/// A calculation; checks that its algorithm is known.
fn calculation(layout: &Layout, json: &Json) -> Load<Calculation> {
    let algo = json.get("algo")?;
    let algorithm = algo.str()?.to_string();
    if Hash::from_name(&algorithm, Random::new(0)).is_none() {
        fail!(
            algo,
            "there is no hash algorithm `{algorithm}`; known: {}",
            Hash::NAMES.join(", ")
        );
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
pub(super) fn words(layout: &Layout, inputs: &[Input]) -> Option<Vec<WordRun>> {
    let mut runs: Vec<(u32, WordRun)> = Vec::new();
    let mut add = |valid: Slot, part: Part, width: u32| {
        if runs.last().is_none_or(|(_, run)| run.valid != valid) {
            let words = Vec::new();
            runs.push((0, WordRun { valid, words }));
        }
        let (bits, run) = runs.last_mut().expect("just pushed");
        append(&mut run.words, *bits, part, width);
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
                    add(*valid, Part::Slot(slot), width);
                }
            }
            Input::Constant { limbs, width } => {
                for (index, width) in slot_limbs(0, *width) {
                    add(ONE, Part::Constant(limbs[usize::from(index)]), width);
                }
            }
            Input::Header { base, valid, ty } => {
                let ty = &layout.types[usize::from(*ty)];
                if ty.varbit.is_some() {
                    return None;
                }
                for field in &ty.fields {
                    for (slot, width) in slot_limbs(base + field.offset, field.width) {
                        add(*valid, Part::Slot(slot), width);
                    }
                }
            }
        }
    }
    let whole = |(bits, run): (u32, WordRun)| (bits % 8 == 0).then_some(run);
    runs.into_iter().map(whole).collect()
}

#[derive(Clone, Copy)]
enum Part {
    Slot(Slot),
    Constant(u64),
}

/// Puts a part of so many bits behind the first `bits` of the words; one that does not fit is in two of them.
fn append(words: &mut Vec<Word>, bits: u32, part: Part, width: u32) {
    // Left shift of the part in the word; negative when its end lies in the next word.
    let mut shift = 64 - (bits % 64) as i32 - width as i32;
    let mut end = bits % 64 + width;
    if bits.is_multiple_of(64) {
        words.push(Word::default());
    }
    loop {
        let word = words.last_mut().expect("there is a word");
        match part {
            Part::Slot(slot) => word.fields.push((slot, shift as i8)),
            Part::Constant(value) => word.constant |= shifted(value, shift as i8),
        }
        word.bytes = end.min(64).div_ceil(8) as u8;
        if shift >= 0 {
            return;
        }
        (shift, end) = (64 + shift, end - 64);
        words.push(Word::default());
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
            fail!(ty, "checksums are of type `generic`, not `{}`", ty.str()?);
        }
        let target_json = json.get("target")?;
        let Field {
            slot, width, valid, ..
        } = reader.layout.target(&target_json)?;
        if width > 64 {
            fail!(target_json, "a checksum is at most 64 bits wide");
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
            branched.at(&condition)?;
        }
        let (d, w) = match verify {
            true => (e.temp(1).at(&json)?, 64),
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
