// SPDX-License-Identifier: Apache-2.0
//! Expressions of the JSON as typed trees.

use std::rc::Rc;

use num_bigint::BigInt;

use super::code::{Alu, Test};
use super::layout::{Field, FieldType, Layout, Stack};
use super::lower::Place;
use super::names::Names;
use crate::json::{fail, Json, Load};

/// An integer-valued expression.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Const(BigInt),
    Field(Field),
    /// Action parameter: limb offset among the args, width.
    Local {
        offset: u16,
        width: u32,
    },
    /// Field of a header chosen at run time.
    Element {
        header: HeaderRef,
        offset: u16,
        width: u32,
        signed: bool,
    },
    Register {
        register: u16,
        width: u32,
        index: Box<Expr>,
    },
    /// Of infinite precision, as BMv2 computes it: what says unsigned here is so only where the operands are.
    Arith(Alu, Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    TwoCompMod(Box<Expr>, u32),
    USatCast(Box<Expr>, u32),
    SatCast(Box<Expr>, u32),
    If(Box<Cond>, Box<Expr>, Box<Expr>),
    FromBool(Box<Cond>),
    /// Number of elements used of a stack.
    StackSize(usize),
    /// That minus one, modulo 2^64.
    LastIndex(usize),
}

/// A boolean expression.
#[derive(Clone, Debug)]
pub(crate) enum Cond {
    Const(bool),
    /// Of integers: what says unsigned here is so only where the operands are.
    Compare(Test, Expr, Expr),
    And(Box<Cond>, Box<Cond>),
    Or(Box<Cond>, Box<Cond>),
    Not(Box<Cond>),
    If(Box<Cond>, Box<Cond>, Box<Cond>),
    Valid(HeaderRef),
    HeadersEqual(HeaderRef, HeaderRef),
}

/// A header, known or chosen at run time.
#[derive(Clone, Debug)]
pub(crate) enum HeaderRef {
    Fixed(usize),
    /// Element `index` of a stack, member `member` of it.
    Element {
        stack: usize,
        member: usize,
        index: Rc<Expr>,
    },
}

/// Anything that an expression or a primitive's parameter can be.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Data(Expr),
    Bool(Cond),
    Header(HeaderRef),
    /// The members of a header union.
    Union(Vec<HeaderRef>),
    Stack(usize),
}

impl Value {
    pub fn what(&self) -> &'static str {
        match self {
            Value::Data(_) => "a number",
            Value::Bool(_) => "a boolean",
            Value::Header(_) => "a header",
            Value::Union(_) => "a header union",
            Value::Stack(_) => "a header stack",
        }
    }
}

/// Reads expressions and parameters; `params` are the widths and limb offsets of the action's runtime data.
pub(crate) struct ExprReader<'x> {
    pub layout: &'x Layout,
    pub names: &'x Names,
    pub params: &'x [(u16, u32)],
}

impl ExprReader<'_> {
    /// Any `{type, value}` object.
    pub fn value(&self, json: &Json) -> Load<Value> {
        let ty = json.get("type")?;
        let value = json.get("value")?;
        Ok(match ty.str()? {
            "expression" if value.opt("op").is_none() => self.value(&value)?,
            "expression" => self.operation(&value)?,
            "field" => Value::Data(Expr::Field(self.layout.field(&value)?)),
            "hexstr" => Value::Data(Expr::Const(value.hexstr()?)),
            "bool" => Value::Bool(Cond::Const(value.bool()?)),
            "local" | "runtime_data" => {
                let index = value.u32()? as usize;
                match self.params.get(index) {
                    Some(&(offset, width)) => Value::Data(Expr::Local { offset, width }),
                    None => {
                        let count = self.params.len();
                        fail!(
                            value,
                            "parameter {index} of an action with {count} parameters"
                        );
                    }
                }
            }
            "header" => Value::Header(HeaderRef::Fixed(self.layout.named("header", &value)?)),
            "header_stack" | "header_union_stack" => {
                Value::Stack(self.layout.named("header stack", &value)?)
            }
            "header_union" => {
                let members = &self.layout.unions[self.layout.named("header union", &value)?];
                Value::Union(members.iter().map(|&h| HeaderRef::Fixed(h)).collect())
            }
            "stack_field" => {
                let [stack, field] = value.tuple()?;
                let stack_index = self.layout.named("header stack", &stack)?;
                Value::Data(self.last_field(stack_index, 0, &field)?)
            }
            "union_stack_field" => {
                let [stack, member, field] = value.tuple()?;
                let stack_index = self.layout.named("header stack", &stack)?;
                let member_index = self.union_member(stack_index, &member)?;
                Value::Data(self.last_field(stack_index, member_index, &field)?)
            }
            "register" => {
                let [register, index] = value.tuple()?;
                let array = self.names.register(&register)?;
                let index = Box::new(self.data(&index)?);
                Value::Data(Expr::Register {
                    register: array.id,
                    width: array.width,
                    index,
                })
            }
            other => fail!(ty, "expressions of type `{other}` are not supported"),
        })
    }

    /// A number.
    pub fn data(&self, json: &Json) -> Load<Expr> {
        self.of_kind(json, "a number", |value| match value {
            Value::Data(expr) => Ok(expr),
            // p4c hands booleans to some primitives (assert, log_msg) as they are.
            Value::Bool(cond) => Ok(Expr::FromBool(Box::new(cond))),
            other => Err(other),
        })
    }

    /// A boolean.
    pub fn cond(&self, json: &Json) -> Load<Cond> {
        self.of_kind(json, "a boolean", |value| match value {
            Value::Bool(cond) => Ok(cond),
            Value::Data(expr) => Ok(non_zero(expr)),
            other => Err(other),
        })
    }

    /// A field that can be assigned to.
    pub fn place(&self, json: &Json) -> Load<Place> {
        let place = match self.value(json)? {
            Value::Data(expr) => match &expr {
                Expr::Field(field) if !self.layout.is_writable(field) => {
                    fail!(json, "cannot be assigned to: setValid and setInvalid change a validity, and metadata is always valid")
                }
                _ => Place::from_expr(expr),
            },
            other => {
                fail!(
                    json,
                    "cannot be assigned to: expected a field, found {}",
                    other.what()
                )
            }
        };
        place.ok_or_else(|| json.error("cannot be assigned to: a field is expected"))
    }

    /// Sees that two unions have equally many members; their types are compared one by one later.
    pub fn same_members(&self, json: &Json, a: &[HeaderRef], b: &[HeaderRef]) -> Load<()> {
        if a.len() == b.len() {
            return Ok(());
        }
        fail!(
            json,
            "header unions of {} and of {} members",
            a.len(),
            b.len()
        )
    }

    /// A value of one kind, which `pick` takes out of it.
    fn of_kind<T>(
        &self,
        json: &Json,
        expected: &str,
        pick: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Load<T> {
        pick(self.value(json)?)
            .map_err(|other| json.error(format!("expected {expected}, found {}", other.what())))
    }

    /// A header.
    pub fn header(&self, json: &Json) -> Load<HeaderRef> {
        self.of_kind(json, "a header", |value| match value {
            Value::Header(header) => Ok(header),
            other => Err(other),
        })
    }

    /// The members of a header union.
    pub fn union(&self, json: &Json) -> Load<Vec<HeaderRef>> {
        self.of_kind(json, "a header union", |value| match value {
            Value::Union(members) => Ok(members),
            other => Err(other),
        })
    }

    /// A header stack or stack of unions.
    pub fn stack(&self, json: &Json) -> Load<usize> {
        self.of_kind(json, "a header stack", |value| match value {
            Value::Stack(stack) => Ok(stack),
            other => Err(other),
        })
    }

    /// The member of a stack of unions that `json` names.
    pub fn union_member(&self, stack: usize, json: &Json) -> Load<usize> {
        let name = json.str()?;
        let stack = &self.layout.stacks[stack];
        match stack.members.iter().position(|m| m.name == name) {
            Some(index) => Ok(index),
            None => fail!(
                json,
                "the unions of stack `{}` have no member `{name}`",
                stack.name
            ),
        }
    }

    fn last_field(&self, stack: usize, member: usize, field: &Json) -> Load<Expr> {
        let header = HeaderRef::Element {
            stack,
            member,
            index: Rc::new(Expr::LastIndex(stack)),
        };
        let ty = &self.layout.types[self.layout.stacks[stack].members[member].ty];
        let name = field.str()?;
        match ty.field(name) {
            Some(index) => self.element(field, header, index),
            None if name == "$valid$" => Ok(Expr::FromBool(Box::new(Cond::Valid(header)))),
            None => fail!(field, "header type `{}` has no field `{name}`", ty.name),
        }
    }

    fn type_of(&self, header: &HeaderRef) -> usize {
        match header {
            HeaderRef::Fixed(index) => self.layout.headers[*index].ty,
            HeaderRef::Element { stack, member, .. } => {
                self.layout.stacks[*stack].members[*member].ty
            }
        }
    }

    fn element(&self, json: &Json, header: HeaderRef, index: usize) -> Load<Expr> {
        let ty = &self.layout.types[self.type_of(&header)];
        if index == ty.fields.len() {
            // The hidden field $valid$ comes after the others.
            return Ok(Expr::FromBool(Box::new(Cond::Valid(header))));
        }
        match ty.fields.get(index) {
            Some(field) => Ok(self.field_in(header, field)),
            None => fail!(json, "header type `{}` has no field {index}", ty.name),
        }
    }

    /// The field called `name` of a header, if its type has one.
    pub fn field_of(&self, header: &HeaderRef, name: &str) -> Option<Expr> {
        let ty = &self.layout.types[self.type_of(header)];
        let field = &ty.fields[ty.field(name)?];
        Some(self.field_in(header.clone(), field))
    }

    fn field_in(&self, header: HeaderRef, field: &FieldType) -> Expr {
        if let HeaderRef::Fixed(header) = header {
            let field = self.layout.field_of(header, &field.name);
            return Expr::Field(field.expect("field of its own type"));
        }
        Expr::Element {
            header,
            offset: field.offset,
            width: field.width,
            signed: field.signed,
        }
    }

    fn operation(&self, json: &Json) -> Load<Value> {
        let op = json.get("op")?;
        let name = op.str()?;
        let left = || json.get("left");
        let right = || json.get("right");
        let arith = |op: Alu| -> Load<Value> {
            // Unary + and - have no left side.
            let a = match json.opt("left") {
                Some(left) => self.data(&left)?,
                None => number(0),
            };
            Ok(Value::Data(fold(op, a, self.data(&right()?)?)))
        };
        // a > b is b < a, and a >= b is b <= a.
        let compare = |test: Test, exchanged: bool| -> Load<Value> {
            let (a, b) = (self.data(&left()?)?, self.data(&right()?)?);
            let (a, b) = if exchanged { (b, a) } else { (a, b) };
            Ok(Value::Bool(Cond::Compare(test, a, b)))
        };
        let width = || -> Load<u32> {
            let width = right()?;
            match self.data(&width)? {
                Expr::Const(value) => match u32::try_from(value) {
                    Ok(bits @ 1..=65535) => Ok(bits),
                    _ => fail!(width, "a width must be in 1..65535"),
                },
                _ => fail!(width, "the width of `{name}` must be a constant"),
            }
        };
        Ok(match name {
            "+" => arith(Alu::Add)?,
            "-" => arith(Alu::Sub)?,
            "*" => arith(Alu::Mul)?,
            "/" => arith(Alu::DivU)?,
            "%" => arith(Alu::ModU)?,
            "&" => arith(Alu::And)?,
            "|" => arith(Alu::Or)?,
            "^" => arith(Alu::Xor)?,
            "<<" => arith(Alu::Shl)?,
            ">>" => arith(Alu::ShrU)?,
            "<" => compare(Test::LtU, false)?,
            "<=" => compare(Test::LeU, false)?,
            ">" => compare(Test::LtU, true)?,
            ">=" => compare(Test::LeU, true)?,
            "==" | "!=" => {
                let equal = self.equal(json)?;
                Value::Bool(if name == "==" { equal } else { negate(equal) })
            }
            "and" => Value::Bool(Cond::And(
                Box::new(self.cond(&left()?)?),
                Box::new(self.cond(&right()?)?),
            )),
            "or" => Value::Bool(Cond::Or(
                Box::new(self.cond(&left()?)?),
                Box::new(self.cond(&right()?)?),
            )),
            "not" => Value::Bool(negate(self.cond(&right()?)?)),
            "~" => Value::Data(Expr::Not(Box::new(self.data(&right()?)?))),
            "d2b" => Value::Bool(non_zero(self.data(&right()?)?)),
            "b2d" => Value::Data(Expr::FromBool(Box::new(self.cond(&right()?)?))),
            "two_comp_mod" => {
                Value::Data(Expr::TwoCompMod(Box::new(self.data(&left()?)?), width()?))
            }
            "usat_cast" => Value::Data(Expr::USatCast(Box::new(self.data(&left()?)?), width()?)),
            "sat_cast" => Value::Data(Expr::SatCast(Box::new(self.data(&left()?)?), width()?)),
            "?" => self.ternary(json)?,
            "valid" => Value::Bool(Cond::Valid(self.header(&right()?)?)),
            "valid_union" => {
                let valid = self.union(&right()?)?.into_iter().map(Cond::Valid);
                Value::Bool(all(valid, Cond::Or, false))
            }
            "dereference_stack" | "dereference_header_stack" | "dereference_union_stack" => {
                let stack = self.stack(&left()?)?;
                let index = Rc::new(self.data(&right()?)?);
                let element = |member| HeaderRef::Element {
                    stack,
                    member,
                    index: index.clone(),
                };
                let Stack {
                    members, is_union, ..
                } = &self.layout.stacks[stack];
                match is_union {
                    true => Value::Union((0..members.len()).map(element).collect()),
                    false => Value::Header(element(0)),
                }
            }
            "last_stack_index" => Value::Data(Expr::LastIndex(self.stack(&right()?)?)),
            "size_stack" => Value::Data(Expr::StackSize(self.stack(&right()?)?)),
            "access_field" => {
                let header = self.header(&left()?)?;
                let index = right()?;
                Value::Data(self.element(&index, header, index.u32()? as usize)?)
            }
            "access_union_header" => {
                let members = self.union(&left()?)?;
                let index = right()?;
                match members.into_iter().nth(index.u32()? as usize) {
                    Some(header) => Value::Header(header),
                    None => fail!(index, "the header union has no such member"),
                }
            }
            other => fail!(op, "there is no operation `{other}`"),
        })
    }

    fn equal(&self, json: &Json) -> Load<Cond> {
        let right = json.get("right")?;
        Ok(
            match (self.value(&json.get("left")?)?, self.value(&right)?) {
                (Value::Data(a), Value::Data(b)) => Cond::Compare(Test::Eq, a, b),
                (Value::Bool(a), Value::Bool(b)) => {
                    let number = |cond| Expr::FromBool(Box::new(cond));
                    Cond::Compare(Test::Eq, number(a), number(b))
                }
                (Value::Header(a), Value::Header(b)) => Cond::HeadersEqual(a, b),
                (Value::Union(a), Value::Union(b)) => {
                    self.same_members(&right, &a, &b)?;
                    let pairs = a.into_iter().zip(b);
                    let equal = pairs.map(|(a, b)| Cond::HeadersEqual(a, b));
                    all(equal, Cond::And, true)
                }
                (a, b) => {
                    fail!(right, "cannot compare {} with {}", a.what(), b.what())
                }
            },
        )
    }

    fn ternary(&self, json: &Json) -> Load<Value> {
        let cond = Box::new(self.cond(&json.get("cond")?)?);
        let right = json.get("right")?;
        Ok(
            match (self.value(&json.get("left")?)?, self.value(&right)?) {
                (Value::Data(a), Value::Data(b)) => {
                    Value::Data(Expr::If(cond, Box::new(a), Box::new(b)))
                }
                (Value::Bool(a), Value::Bool(b)) => {
                    Value::Bool(Cond::If(cond, Box::new(a), Box::new(b)))
                }
                (a, b) => {
                    fail!(right, "cannot choose between {} and {}", a.what(), b.what())
                }
            },
        )
    }
}

fn number(value: u64) -> Expr {
    Expr::Const(value.into())
}

/// All conditions, joined two by two; `none` where there is none.
fn all(
    conditions: impl Iterator<Item = Cond>,
    join: fn(Box<Cond>, Box<Cond>) -> Cond,
    none: bool,
) -> Cond {
    let joined = conditions.reduce(|a, b| join(Box::new(a), Box::new(b)));
    joined.unwrap_or(Cond::Const(none))
}

/// `expr` as a boolean; the way from boolean to number and back is no way.
fn non_zero(expr: Expr) -> Cond {
    match expr {
        Expr::FromBool(cond) => *cond,
        Expr::If(cond, a, b) => match (truth(&a), truth(&b)) {
            (Some(true), Some(false)) => *cond,
            (Some(false), Some(true)) => negate(*cond),
            _ => Cond::If(cond, Box::new(non_zero(*a)), Box::new(non_zero(*b))),
        },
        Expr::Const(value) => Cond::Const(value != BigInt::ZERO),
        expr => Cond::Compare(Test::Ne, expr, number(0)),
    }
}

/// Whether a constant is not 0.
fn truth(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Const(value) => Some(*value != BigInt::ZERO),
        _ => None,
    }
}

/// `a op b` where one of them changes nothing.
fn fold(op: Alu, a: Expr, b: Expr) -> Expr {
    let zero = |e: &Expr| matches!(e, Expr::Const(value) if *value == BigInt::ZERO);
    match op {
        Alu::Add | Alu::Or | Alu::Xor if zero(&b) => a,
        Alu::Add | Alu::Or | Alu::Xor if zero(&a) => b,
        Alu::Sub | Alu::Shl | Alu::ShrU if zero(&b) => a,
        _ => Expr::Arith(op, Box::new(a), Box::new(b)),
    }
}

/// The opposite of `cond`.
pub(crate) fn negate(cond: Cond) -> Cond {
    match cond {
        Cond::Not(inner) => *inner,
        Cond::Compare(Test::Eq, a, b) => Cond::Compare(Test::Ne, a, b),
        Cond::Compare(Test::Ne, a, b) => Cond::Compare(Test::Eq, a, b),
        other => Cond::Not(Box::new(other)),
    }
}
