// SPDX-License-Identifier: Apache-2.0
//! Actions: their primitives as operations.

use std::rc::Rc;

use super::code::{Alu, Message, Note, Op, Operand, Spot};
use super::emit::{index16, Emit, Emitter, Label};
use super::expr::{Cond, Expr, ExprReader, HeaderRef, Value};
use super::layout::Slot;
use super::lower::{narrow, Place};
use super::names::Array;
use crate::bits::limbs_for;
use crate::json::{fail, At, Json, Load};
use crate::pipeline::Std;
use crate::schema::{DigestId, FieldListId};

/// What a list of primitives contains that its caller must know.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    pub exits: bool,
}

/// What an operation takes, with all that is made of it on the way.
const OP_BYTES: u64 = 256;

/// Compiles primitives from `json` (an array) in order.
pub(crate) fn primitives(e: &mut Emitter, reader: &ExprReader, json: &[Json]) -> Load<Traits> {
    let mut traits = Traits::default();
    let labels: Vec<Label> = (0..=json.len()).map(|_| e.label()).collect();
    for (index, primitive) in json.iter().enumerate() {
        e.place(labels[index]);
        e.note(Note::Primitive(Spot::new(primitive, "op")));
        let compiler = Compiler {
            reader,
            primitive,
            index,
            labels: &labels,
        };
        let before = e.operations();
        compiler.compile(e, &mut traits)?;
        e.end_statement();
        charge(e, primitive, before)?;
    }
    e.place(labels[json.len()]);
    e.note(Note::Done);
    Ok(traits)
}

/// Charges the code of `json`, in front of which there were so many operations.
pub(crate) fn charge(e: &Emitter, json: &Json, before: usize) -> Load<()> {
    let ops = e.operations() - before;
    json.charge(ops as u64 * OP_BYTES, || "its code".into())
}

struct Compiler<'c> {
    reader: &'c ExprReader<'c>,
    primitive: &'c Json<'c>,
    /// Its place in the list.
    index: usize,
    labels: &'c [Label],
}

impl Compiler<'_> {
    fn compile(&self, e: &mut Emitter, traits: &mut Traits) -> Load<()> {
        let op_json = self.primitive.get("op")?;
        let op = op_json.str()?;
        let parameters = self.primitive.list("parameters")?;
        let count = |n: usize| -> Load<()> {
            if parameters.len() != n {
                let found = parameters.len();
                fail!(self.primitive, "`{op}` takes {n} parameters, found {found}");
            }
            Ok(())
        };
        let (p, names) = (&parameters, self.reader.names);
        match op {
            "assign" | "modify_field" => {
                count(2)?;
                let place = self.reader.place(&p[0])?;
                let value = self.reader.data(&p[1])?;
                e.assign(&place, &value).at(self.primitive)?;
            }
            "add_to_field" | "subtract_from_field" => {
                count(2)?;
                let (place, old) = (self.reader.place(&p[0])?, self.reader.data(&p[0])?);
                let operation = if op == "add_to_field" {
                    Alu::Add
                } else {
                    Alu::Sub
                };
                let value =
                    Expr::Arith(operation, Box::new(old), Box::new(self.reader.data(&p[1])?));
                e.assign(&place, &value).at(self.primitive)?;
            }
            "assign_VL" => {
                count(2)?;
                self.assign_varbit(e, &p[0], &p[1])?;
            }
            "assign_header" | "copy_header" => {
                count(2)?;
                let (d, a) = (self.reader.header(&p[0])?, self.reader.header(&p[1])?);
                copy_header(e, &d, &a).at(self.primitive)?;
            }
            "assign_union" => {
                count(2)?;
                let d = self.reader.union(&p[0])?;
                let a = self.reader.union(&p[1])?;
                self.reader.same_members(&p[1], &d, &a)?;
                copy_union(e, &d, &a).at(self.primitive)?;
            }
            "assign_header_stack" | "assign_union_stack" => {
                count(2)?;
                let (d, a) = (self.reader.stack(&p[0])?, self.reader.stack(&p[1])?);
                self.copy_stack(e, d, a)?;
            }
            "add_header" | "add_header_fast" | "remove_header" => {
                count(1)?;
                let header = self.reader.header(&p[0])?;
                let header = e.element(&header).at(self.primitive)?;
                e.op(match op {
                    "remove_header" => Op::SetInvalid { header },
                    _ => Op::SetValid { header },
                });
            }
            "push" | "pop" => {
                count(2)?;
                let stack = self.reader.stack(&p[0])? as u16;
                let n = self.slot(e, &p[1])?;
                e.op(if op == "push" {
                    Op::Push { stack, n }
                } else {
                    Op::Pop { stack, n }
                });
            }
            "count" => {
                count(2)?;
                let array = names.counter(&typed_value(&p[0], "counter_array")?)?;
                let (counter, index) = (array.id, self.slot(e, &p[1])?);
                e.op(Op::Count { counter, index });
            }
            "execute_meter" => {
                count(3)?;
                let array = names.meter(&typed_value(&p[0], "meter_array")?)?;
                let (meter, index) = (array.id, self.slot(e, &p[1])?);
                let op = |d, limbs, w| Op::Meter {
                    meter,
                    index,
                    d,
                    limbs,
                    w,
                };
                e.result(&self.reader.place(&p[2])?, op).at(&p[2])?;
            }
            "register_read" => {
                count(3)?;
                let register = names.register(&typed_value(&p[1], "register_array")?)?.id;
                let index = self.slot(e, &p[2])?;
                let read = e.read_register(&self.reader.place(&p[0])?, register, index);
                read.at(self.primitive)?;
            }
            "register_write" => {
                count(3)?;
                let Array {
                    id: register,
                    width,
                    ..
                } = names.register(&typed_value(&p[0], "register_array")?)?;
                let (index, value) = (self.slot(e, &p[1])?, self.reader.data(&p[2])?);
                let limbs = limbs_for(width);
                let temp = e.temp(limbs).at(self.primitive)?;
                let a = e
                    .modular(&value, limbs, Some((temp, width)))
                    .at(self.primitive)?;
                e.op(Op::RegisterWrite {
                    register,
                    index,
                    a,
                    limbs: limbs as u16,
                });
            }
            "modify_field_with_hash_based_offset" => {
                count(4)?;
                let base = self.slot(e, &p[1])?;
                let calculation = names.calculation(&typed_value(&p[2], "calculation")?)?;
                let size = self.slot(e, &p[3])?;
                let value = e.temp(1).at(self.primitive)?;
                e.calculate(calculation, value, 64);
                e.op(Op::alu(Alu::ModU, value, value, size, 64));
                let (value, base) = (narrow(value), narrow(base));
                let place = self.reader.place(&p[0])?;
                e.put(&place, |e, (d, limbs, w)| {
                    e.compute(Alu::Add, limbs, value, base, Some((d, w)))
                })
                .at(&p[0])?;
            }
            "modify_field_rng_uniform" => {
                count(3)?;
                let (low, high) = (self.slot(e, &p[1])?, self.slot(e, &p[2])?);
                let op = |d, limbs, w| Op::Random {
                    d,
                    low,
                    high,
                    limbs,
                    w,
                };
                e.result(&self.reader.place(&p[0])?, op).at(&p[0])?;
            }
            "generate_digest" => {
                count(2)?;
                let id = self.constant(&p[1])?;
                let Some(&digest) = self.reader.names.digests.get(&id) else {
                    fail!(p[1], "there is no learn list with id {id}");
                };
                e.op(Op::Digest {
                    digest: DigestId(digest),
                });
            }
            "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => {
                count(2)?;
                let session = self.slot(e, &p[0])?;
                let list = self.field_list(&p[1])?;
                e.op(Op::Clone { session, list });
            }
            "resubmit" | "recirculate" => {
                count(1)?;
                let list = self.field_list(&p[0])?;
                e.op(if op == "resubmit" {
                    Op::Resubmit { list }
                } else {
                    Op::Recirculate { list }
                });
            }
            "truncate" => {
                count(1)?;
                let a = self.slot(e, &p[0])?;
                e.op(Op::Truncate { a });
            }
            "drop" => {
                count(0)?;
                let layout = self.reader.layout;
                let field = |std: Std| layout.std(std).map(Expr::Field);
                let fields = [Std::EgressSpec, Std::McastGrp].map(field);
                mark_to_drop(e, fields).at(self.primitive)?;
            }
            "mark_to_drop" => {
                count(1)?;
                let header = self.reader.header(&p[0])?;
                let field = |name| self.reader.field_of(&header, name);
                let fields = ["egress_spec", "mcast_grp"].map(field);
                if fields[0].is_none() {
                    fail!(
                        p[0],
                        "`mark_to_drop` takes a header with a field `egress_spec`"
                    );
                }
                mark_to_drop(e, fields).at(self.primitive)?;
            }
            "no_op" => {}
            "exit" => {
                traits.exits = true;
                e.op(Op::Exit);
            }
            "_jump" => {
                count(1)?;
                let to = self.target(e, &p[0])?;
                e.jump(to);
            }
            "_jump_if_zero" => {
                count(2)?;
                let cond = self.reader.cond(&p[0])?;
                let to = self.target(e, &p[1])?;
                e.branch(&cond, false, to).at(self.primitive)?;
            }
            "assert" | "assume" => {
                count(1)?;
                let cond = self.reader.cond(&p[0])?;
                let a = e.boolean(&cond, None).at(self.primitive)?;
                let source = self
                    .primitive
                    .opt("source_info")
                    .and_then(|s| s.str_at("source_fragment").ok());
                let text = format!("{op} failed: {}", source.unwrap_or("(no source)"));
                let message = self.message(
                    e,
                    Message {
                        texts: vec![text],
                        values: Vec::new(),
                    },
                )?;
                e.op(Op::Assert { a, message });
            }
            "log_msg" => {
                count(2)?;
                let message = self.log_message(e, &p[0], &p[1])?;
                e.op(Op::Log { message });
            }
            other => fail!(op_json, "there is no primitive `{other}` in v1model"),
        }
        Ok(())
    }

    /// The low 64 bits of a number (indexes, sizes, counts).
    fn slot(&self, e: &mut Emitter, json: &Json) -> Load<Slot> {
        let expr = self.reader.data(json)?;
        e.modular(&expr, 1, None).at(json)
    }

    fn constant(&self, json: &Json) -> Load<u64> {
        match self.reader.data(json)? {
            Expr::Const(value) => {
                u64::try_from(value).or_else(|_| fail!(json, "expected a constant below 2^64"))
            }
            _ => fail!(json, "expected a constant"),
        }
    }

    fn field_list(&self, json: &Json) -> Load<Option<FieldListId>> {
        let id = self.constant(json)?;
        if id == 0 {
            return Ok(None);
        }
        match self.reader.names.field_lists.get(&id) {
            Some(&list) => Ok(Some(FieldListId(list))),
            None => fail!(json, "there is no field list with id {id}"),
        }
    }

    /// Where a jump leads; a step is counted where that is back.
    fn target(&self, e: &mut Emitter, json: &Json) -> Load<Label> {
        let index = self.constant(json)? as usize;
        if index <= self.index {
            e.step();
        }
        match self.labels.get(index) {
            Some(&label) => Ok(label),
            None => fail!(
                json,
                "jumps to primitive {index}, the action has {}",
                self.labels.len() - 1
            ),
        }
    }

    fn assign_varbit(&self, e: &mut Emitter, d: &Json, a: &Json) -> Load<()> {
        let parts = |json: &Json| -> Load<(Slot, u16, Slot)> {
            let Value::Data(Expr::Field(field)) = self.reader.value(json)? else {
                fail!(json, "expected a varbit field");
            };
            match field.varbit_bits {
                Some(bits) => Ok((field.slot, limbs_for(field.width) as u16, bits)),
                None => fail!(json, "expected a varbit field"),
            }
        };
        let (to, to_limbs, to_bits) = parts(d)?;
        let (from, from_limbs, from_bits) = parts(a)?;
        if to_limbs < from_limbs {
            fail!(a, "the varbit field is wider than what it is assigned to");
        }
        e.copy(to, from, from_limbs.into());
        e.op(Op::copy(to_bits, from_bits));
        Ok(())
    }

    fn copy_stack(&self, e: &mut Emitter, d: usize, a: usize) -> Load<()> {
        let layout = e.layout;
        let (to, from) = (&layout.stacks[d], &layout.stacks[a]);
        if to.count != from.count {
            fail!(self.primitive, "the stacks have different sizes");
        }
        e.op(Op::copy(to.next, from.next));
        for index in 0..to.count {
            let member = |stack: usize, member: usize| HeaderRef::Element {
                stack,
                member,
                index: Rc::new(Expr::Const(index.into())),
            };
            let all = |stack: usize| {
                (0..layout.stacks[stack].members.len())
                    .map(|m| member(stack, m))
                    .collect::<Vec<_>>()
            };
            let (d, a) = (all(d), all(a));
            self.reader.same_members(self.primitive, &d, &a)?;
            copy_union(e, &d, &a).at(self.primitive)?;
        }
        Ok(())
    }

    fn message(&self, e: &mut Emitter, message: Message) -> Load<u16> {
        let index = index16(e.program.messages.len(), "messages").at(self.primitive)?;
        e.program.messages.push(message);
        Ok(index)
    }

    fn log_message(&self, e: &mut Emitter, format: &Json, values: &Json) -> Load<u16> {
        let mut message = Message {
            texts: split_format(format.str_at("value")?),
            values: Vec::new(),
        };
        let values = values.get("value")?.items()?;
        for json in &values {
            let expr = self.reader.data(json)?;
            let operand: Operand = e.exact(&expr).at(json)?;
            message.values.push(operand);
        }
        if message.texts.len() != values.len() + 1 {
            let (holes, found) = (message.texts.len() - 1, values.len());
            fail!(
                format,
                "the format has {holes} places for values, found {found} values"
            );
        }
        self.message(e, message)
    }
}

/// The text between `{}`s.
fn split_format(format: &str) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if matches!(chars.peek(), Some('{' | '}')) => {
                let brace = chars.next().expect("peeked");
                texts.last_mut().expect("never empty").push(brace);
            }
            '{' => {
                for inner in chars.by_ref() {
                    if inner == '}' {
                        break;
                    }
                }
                texts.push(String::new());
            }
            _ => texts.last_mut().expect("never empty").push(c),
        }
    }
    texts
}

/// The name in a parameter `{type: what, value: name}`.
fn typed_value<'a>(json: &Json<'a>, what: &str) -> Load<Json<'a>> {
    let ty = json.get("type")?;
    if ty.str()? != what {
        fail!(ty, "expected `{what}`, found `{}`", ty.str()?);
    }
    json.get("value")
}

/// As BMv2: the drop port to `egress_spec` and no group to `mcast_grp`, of whatever header they are.
fn mark_to_drop(e: &mut Emitter, [egress_spec, mcast_grp]: [Option<Expr>; 2]) -> Emit<()> {
    if let (Some(Expr::Field(given)), Some(real)) = (&egress_spec, e.layout.std(Std::EgressSpec)) {
        if given.slot == real.slot {
            e.note(Note::MarkToDrop);
        }
    }
    for (field, value) in [(egress_spec, e.program.drop_port), (mcast_grp, 0)] {
        if let Some(place) = field.and_then(Place::from_expr) {
            e.assign(&place, &Expr::Const(value.into()))?;
        }
    }
    Ok(())
}

pub(crate) fn copy_header(e: &mut Emitter, d: &HeaderRef, a: &HeaderRef) -> Emit<()> {
    let (d, a) = e.two_elements(d, a)?;
    e.op(Op::CopyHeader { d, a });
    Ok(())
}

/// Members one by one: first those that become invalid, for a member that becomes valid invalidates the others.
fn copy_union(e: &mut Emitter, d: &[HeaderRef], a: &[HeaderRef]) -> Emit<()> {
    for (d, a) in d.iter().zip(a) {
        let end = e.label();
        e.branch(&Cond::Valid(a.clone()), true, end)?;
        let header = e.element(d)?;
        e.op(Op::SetInvalid { header });
        e.place(end);
    }
    for (d, a) in d.iter().zip(a) {
        let end = e.label();
        e.branch(&Cond::Valid(a.clone()), false, end)?;
        copy_header(e, d, a)?;
        e.place(end);
    }
    Ok(())
}
