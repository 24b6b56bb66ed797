// SPDX-License-Identifier: Apache-2.0
//! The parser: its states as operations.

use std::collections::HashMap;

use num_bigint::BigInt;

use super::action;
use super::code::{Case, Note, Op, Operand, Select, Spot};
use super::emit::{index16, Emitter, Label, END};
use super::expr::{Expr, ExprReader};
use super::flow::{loop_heads, Exit};
use super::layout::Slot;
use super::lower::Place;
use crate::bits::limbs_for;
use crate::json::{fail, to_limbs, At, Json, Load, Unique};

/// Compiles the parser; returns its start.
pub(crate) fn parser(e: &mut Emitter, reader: &ExprReader, root: &Json) -> Load<Label> {
    let json = root.get("parsers")?.item(0)?;
    let states_json = json.get("parse_states")?.items()?;
    let (mut states, mut indexes) = (HashMap::new(), HashMap::new());
    let mut unique = Unique::new("parser state");
    for (index, state) in states_json.iter().enumerate() {
        let name = unique.add_name_of(state)?;
        states.insert(name, e.label());
        indexes.insert(name, index);
    }
    let mut following = Vec::new();
    for state in &states_json {
        let mut next = Vec::new();
        for transition in state.list("transitions")? {
            let to = transition.opt("next_state").and_then(|n| n.str().ok());
            next.extend(to.and_then(|name| indexes.get(name)));
        }
        following.push(next);
    }
    let heads = loop_heads(following.len(), |at, next| next.extend(&following[at]));
    let compiler = Parser { reader, states };
    for (state, comes_back) in states_json.iter().zip(heads) {
        e.place(compiler.states[state.str_at("name")?]);
        if comes_back {
            e.step();
        }
        e.note(Note::State(Spot::new(state, "name")));
        for op in state.list("parser_ops")? {
            compiler.operation(e, &op)?;
            e.end_statement();
        }
        compiler.transition(e, state)?;
        e.end_statement();
    }
    compiler.state(&json.get("init_state")?)
}

struct Parser<'p> {
    reader: &'p ExprReader<'p>,
    states: HashMap<&'p str, Label>,
}

impl Parser<'_> {
    fn state(&self, json: &Json) -> Load<Label> {
        let name = json.str()?;
        match self.states.get(name) {
            Some(&label) => Ok(label),
            None => fail!(json, "there is no parser state `{name}`"),
        }
    }

    fn next_state(&self, transition: &Json) -> Load<Label> {
        transition
            .opt("next_state")
            .map_or(Ok(END), |next| self.state(&next))
    }

    fn operation(&self, e: &mut Emitter, json: &Json) -> Load<()> {
        let op_json = json.get("op")?;
        let p = json.list("parameters")?;
        let op = op_json.str()?;
        let need = match op {
            "extract_VL" | "set" | "verify" => 2,
            "extract" | "shift" | "advance" | "primitive" => 1,
            other => fail!(op_json, "there is no parser operation `{other}`"),
        };
        if p.len() != need {
            fail!(json, "`{op}` takes {need} parameters, found {}", p.len());
        }
        match op {
            "extract" => self.extract(e, &p[0], None)?,
            "extract_VL" => {
                let length = self.reader.data(&p[1])?;
                let bits = e.modular(&length, 1, None).at(json)?;
                self.extract(e, &p[0], Some(bits))?;
            }
            "set" => {
                let place = self.reader.place(&p[0])?;
                if p[1].str_at("type")? == "lookahead" {
                    self.set_lookahead(e, &place, &p[1])?;
                } else {
                    let value = self.reader.data(&p[1])?;
                    e.assign(&place, &value).at(json)?;
                }
            }
            "verify" => {
                let cond = self.reader.cond(&p[0])?;
                let end = e.label();
                e.branch(&cond, true, end).at(json)?;
                let error = self.reader.data(&p[1])?;
                let code = e.modular(&error, 1, None).at(json)?;
                e.op(Op::ParserError { code });
                e.end();
                e.place(end);
            }
            "shift" => {
                let bytes = u64::from(p[0].u32()?);
                let bits = e.constant(bytes * 8).at(json)?;
                e.op(Op::Advance { bits });
            }
            "advance" => {
                let amount = self.reader.data(&p[0])?;
                let bits = e.modular(&amount, 1, None).at(json)?;
                e.op(Op::Advance { bits });
            }
            "primitive" => {
                action::primitives(e, self.reader, &p)?;
            }
            _ => unreachable!("the number of its parameters is known"),
        }
        Ok(())
    }

    fn extract(&self, e: &mut Emitter, target: &Json, bits: Option<Slot>) -> Load<()> {
        let ty = target.get("type")?;
        let value = target.get("value")?;
        let layout = self.reader.layout;
        let check_varbit = |index: usize| -> Load<()> {
            let ty = &layout.types[index];
            match (ty.varbit, bits) {
                (Some(_), None) => fail!(
                    target,
                    "`{}` has a varbit field: its length is needed",
                    ty.name
                ),
                (None, Some(_)) => fail!(target, "`{}` has no varbit field", ty.name),
                _ => Ok(()),
            }
        };
        match ty.str()? {
            "regular" => {
                let index = layout.named("header", &value)?;
                check_varbit(layout.headers[index].ty)?;
                let header = e
                    .element(&super::expr::HeaderRef::Fixed(index))
                    .at(target)?;
                e.op(Op::Extract { header, bits });
            }
            kind @ ("stack" | "union_stack") => {
                let (stack, member) = if kind == "stack" {
                    (layout.named("header stack", &value)?, 0)
                } else {
                    let [stack, member] = value.tuple()?;
                    let index = layout.named("header stack", &stack)?;
                    (index, self.reader.union_member(index, &member)?)
                };
                check_varbit(layout.stacks[stack].members[member].ty)?;
                let (stack, member) = (stack as u16, member as u16);
                e.op(Op::ExtractNext {
                    stack,
                    member,
                    bits,
                });
            }
            other => {
                fail!(
                    ty,
                    "cannot extract to `{other}`: regular, stack or union_stack"
                )
            }
        }
        Ok(())
    }

    /// Offset and width in bits of a `lookahead`.
    fn lookahead(&self, json: &Json) -> Load<(u32, u16)> {
        let [offset, width] = json.get("value")?.tuple()?;
        match width.u32()? {
            bits @ 1..=65535 => Ok((offset.u32()?, bits as u16)),
            bits => fail!(width, "{bits} bits of lookahead; 1 to 65535 are possible"),
        }
    }

    fn set_lookahead(&self, e: &mut Emitter, place: &Place, json: &Json) -> Load<()> {
        let (offset, width) = self.lookahead(json)?;
        let own = limbs_for(u32::from(width));
        let d = e.temp(own).at(json)?;
        e.op(Op::Lookahead { d, offset, width });
        let a = Operand::new(d, own, false);
        e.put(place, |e, (d, limbs, w)| e.deliver(a, limbs, Some((d, w))))
            .at(json)
    }

    fn transition(&self, e: &mut Emitter, state: &Json) -> Load<()> {
        let transitions = state.list("transitions")?;
        let key = state.list("transition_key")?;
        let mut parts = Vec::new();
        for part in &key {
            parts.push(self.key_part(e, part)?);
        }
        let limbs: usize = parts.iter().map(|&(_, limbs, _)| usize::from(limbs)).sum();
        let mut select = Select {
            parts,
            cases: Vec::new(),
        };
        let (mut targets, mut default) = (Vec::new(), END);
        for transition in &transitions {
            let to = self.next_state(transition)?;
            let ty = transition.opt("type").map_or(Ok("hexstr"), |t| t.str())?;
            let value = transition.opt("value");
            let is_default = ty == "default"
                || value
                    .as_ref()
                    .is_some_and(|v| v.str().is_ok_and(|v| v == "default"));
            if is_default {
                // Nothing behind the default can match.
                default = to;
                break;
            }
            let value = transition.get("value")?;
            match ty {
                "hexstr" => {
                    transition.charge(limbs as u64 * 16, || "a transition".into())?;
                    let (values, masks) = self.case(&select.parts, transition, &value)?;
                    select.cases.push(Case::Masked { values, masks });
                }
                "parse_vset" => {
                    let (set, width) = self.reader.names.value_set(&value)?;
                    let whole: u64 = select.parts.iter().map(|p| u64::from(p.2)).sum();
                    if whole != u64::from(width) {
                        fail!(
                            value,
                            "the parser value set is {width} bits wide, the key {whole}"
                        );
                    }
                    if let Some(mask) = transition.opt("mask") {
                        let (_, full) = self.split(&select.parts, &mask)?;
                        if full != width {
                            fail!(
                                mask,
                                "a mask over a parser value set of {width} bits must be all ones"
                            );
                        }
                    }
                    select.cases.push(Case::ValueSet(set));
                }
                other => {
                    fail!(
                        transition,
                        "transitions are of type hexstr, parse_vset or default, not `{other}`"
                    )
                }
            }
            targets.push(to);
        }
        targets.push(default);
        if select.cases.is_empty() {
            e.jump(default);
            return Ok(());
        }
        let index = index16(e.program.selects.len(), "parser states").at(state)?;
        e.program.selects.push(select);
        e.exit(Exit::Select {
            select: index.into(),
            to: targets,
        });
        Ok(())
    }

    /// Code that brings a part of the key to a slot: slot, limbs, width.
    fn key_part(&self, e: &mut Emitter, json: &Json) -> Load<(Slot, u16, u32)> {
        if json.str_at("type")? == "lookahead" {
            let (offset, width) = self.lookahead(json)?;
            let limbs = limbs_for(u32::from(width));
            let d = e.temp(limbs).at(json)?;
            e.op(Op::Lookahead { d, offset, width });
            return Ok((d, limbs as u16, u32::from(width)));
        }
        let expr = self.reader.data(json)?;
        let (limbs, width, signed) = match &expr {
            Expr::Field(field) => (limbs_for(field.width), field.width, field.signed),
            Expr::Element { width, signed, .. } => (limbs_for(*width), *width, *signed),
            _ => {
                let range = expr.range();
                let width = range.bits.saturating_add(range.signed.into());
                (range.limbs(), width.max(1), range.signed)
            }
        };
        if limbs == 0 {
            fail!(json, "a key field has no bits");
        }
        // The bits as they lie in the field, whatever their sign.
        let slot = match &expr {
            Expr::Field(field) => field.slot,
            _ if signed => {
                let temp = e.temp(limbs).at(json)?;
                e.modular(&expr, limbs, Some((temp, width))).at(json)?
            }
            _ => e.modular(&expr, limbs, None).at(json)?,
        };
        Ok((slot, limbs as u16, width))
    }

    /// A value in which each part has been padded to bytes, as limbs by part; and the number of ones in it.
    fn split(&self, parts: &[(Slot, u16, u32)], json: &Json) -> Load<(Vec<u64>, u32)> {
        let bits: u32 = parts.iter().map(|p| p.2.div_ceil(8) * 8).sum();
        let mut value = json.hexstr_of(bits)?;
        if value < BigInt::ZERO {
            // p4c adds the parts up, each shifted: a negative one takes from the one in front of it.
            let [(_, _, width)] = parts else {
                let count = parts.len();
                fail!(json, "a negative value of a key of {count} parts does not say which of them are negative");
            };
            value = json.hexstr_of(*width)?;
        }
        let all = to_limbs(&value, limbs_for(bits).max(1));
        let bit = |i: u32| all[i as usize / 64] >> (i % 64) & 1;
        let (mut out, mut ones, mut end) = (Vec::new(), 0, bits);
        for &(_, limbs, width) in parts {
            let start = end - width.div_ceil(8) * 8;
            for limb in 0..u32::from(limbs) {
                let take = (width - limb * 64).min(64);
                let value = (0..take).fold(0, |v, i| v | bit(start + limb * 64 + i) << i);
                ones += value.count_ones();
                out.push(value);
            }
            end = start;
        }
        Ok((out, ones))
    }

    fn case(
        &self,
        parts: &[(Slot, u16, u32)],
        transition: &Json,
        value: &Json,
    ) -> Load<(Vec<u64>, Vec<u64>)> {
        let (mut values, _) = self.split(parts, value)?;
        let masks = match transition.opt("mask") {
            Some(mask) => self.split(parts, &mask)?.0,
            None => vec![u64::MAX; values.len()],
        };
        for (value, mask) in values.iter_mut().zip(&masks) {
            *value &= mask;
        }
        Ok((values, masks))
    }
}
