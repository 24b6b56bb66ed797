// SPDX-License-Identifier: Apache-2.0
//! Expressions of the JSON as typed trees, and the range of values that each can take.

use super::layout::{Field, FieldType, Layout};
use super::lower::Place;
use super::names::Names;
use crate::json::{Integer, Json, Load};

/// Arithmetic of infinite precision, as BMv2 computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// An integer-valued expression.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Const(Integer),
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
    Arith(Arith, Box<Expr>, Box<Expr>),
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
    Compare(Compare, Expr, Expr),
    And(Box<Cond>, Box<Cond>),
    Or(Box<Cond>, Box<Cond>),
    Not(Box<Cond>),
    Equal(Box<Cond>, Box<Cond>),
    If(Box<Cond>, Box<Cond>, Box<Cond>),
    NonZero(Expr),
    Valid(HeaderRef),
    /// Any of these headers is valid.
    AnyValid(Vec<HeaderRef>),
    HeadersEqual(HeaderRef, HeaderRef),
    /// Pairwise equal members.
    UnionsEqual(Vec<(HeaderRef, HeaderRef)>),
}

/// A header, known or chosen at run time.
#[derive(Clone, Debug)]
pub(crate) enum HeaderRef {
    Fixed(usize),
    /// Element `index` of a stack, member `member` of it.
    Element {
        stack: usize,
        member: usize,
        index: Box<Expr>,
    },
}

/// A header union, known or chosen at run time.
#[derive(Clone, Debug)]
pub(crate) enum UnionRef {
    Fixed(usize),
    Element { stack: usize, index: Box<Expr> },
}

/// Anything that an expression or a primitive's parameter can be.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Data(Expr),
    Bool(Cond),
    Header(HeaderRef),
    Union(UnionRef),
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

/// Bounds of a value: 0 ≤ v < 2^bits, or -2^bits ≤ v < 2^bits when signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub signed: bool,
    pub bits: u32,
}

impl Range {
    pub const fn unsigned(bits: u32) -> Range {
        Range {
            signed: false,
            bits,
        }
    }

    pub const fn signed(bits: u32) -> Range {
        Range { signed: true, bits }
    }

    /// Limbs of a two's complement (or unsigned) representation.
    pub fn limbs(self) -> usize {
        let bits = self.bits.saturating_add(self.signed.into());
        bits.div_ceil(64).max(1) as usize
    }

    fn join(self, other: Range) -> Range {
        Range {
            signed: self.signed || other.signed,
            bits: self.bits.max(other.bits),
        }
    }
}

/// Widest intermediate value, bits.
pub(crate) const BITS_MAX: u32 = 1 << 16;

impl Expr {
    /// Where the value lies, whatever the packet.
    pub fn range(&self) -> Range {
        match self {
            Expr::Const(value) if value.is_negative() => Range::signed(value.bits()),
            Expr::Const(value) => Range::unsigned(value.bits()),
            Expr::Field(Field {
                width,
                signed: true,
                ..
            })
            | Expr::Element {
                width,
                signed: true,
                ..
            } => Range::signed(width.saturating_sub(1)),
            Expr::Field(Field { width, .. })
            | Expr::Element { width, .. }
            | Expr::Local { width, .. }
            | Expr::Register { width, .. } => Range::unsigned(*width),
            Expr::Arith(op, a, b) => arith_range(*op, a, b),
            Expr::Not(a) => Range::signed(a.range().bits),
            Expr::TwoCompMod(_, width) | Expr::SatCast(_, width) => {
                Range::signed(width.saturating_sub(1))
            }
            Expr::USatCast(_, width) => Range::unsigned(*width),
            Expr::If(_, a, b) => a.range().join(b.range()),
            Expr::FromBool(_) => Range::unsigned(1),
            Expr::StackSize(_) | Expr::LastIndex(_) => Range::unsigned(64),
        }
    }
}

impl Expr {
    /// Number of expressions that it consists of.
    fn nodes(&self) -> u64 {
        1 + match self {
            Expr::Const(_)
            | Expr::Field(_)
            | Expr::Local { .. }
            | Expr::StackSize(_)
            | Expr::LastIndex(_) => 0,
            Expr::Element { header, .. } => header.nodes(),
            Expr::Register { index, .. } => index.nodes(),
            Expr::Arith(_, a, b) => a.nodes() + b.nodes(),
            Expr::Not(a) | Expr::TwoCompMod(a, _) | Expr::USatCast(a, _) | Expr::SatCast(a, _) => {
                a.nodes()
            }
            Expr::If(cond, a, b) => cond.nodes() + a.nodes() + b.nodes(),
            Expr::FromBool(cond) => cond.nodes(),
        }
    }
}

impl Cond {
    fn nodes(&self) -> u64 {
        1 + match self {
            Cond::Const(_) => 0,
            Cond::Compare(_, a, b) => a.nodes() + b.nodes(),
            Cond::And(a, b) | Cond::Or(a, b) | Cond::Equal(a, b) => a.nodes() + b.nodes(),
            Cond::Not(a) => a.nodes(),
            Cond::If(c, a, b) => c.nodes() + a.nodes() + b.nodes(),
            Cond::NonZero(a) => a.nodes(),
            Cond::Valid(header) => header.nodes(),
            Cond::AnyValid(headers) => headers.iter().map(HeaderRef::nodes).sum(),
            Cond::HeadersEqual(a, b) => a.nodes() + b.nodes(),
            Cond::UnionsEqual(pairs) => pairs.iter().map(|(a, b)| a.nodes() + b.nodes()).sum(),
        }
    }
}

impl HeaderRef {
    fn nodes(&self) -> u64 {
        match self {
            HeaderRef::Fixed(_) => 0,
            HeaderRef::Element { index, .. } => index.nodes(),
        }
    }
}

fn arith_range(op: Arith, a: &Expr, b: &Expr) -> Range {
    let (ra, rb) = (a.range(), b.range());
    let signed = ra.signed || rb.signed;
    let most = ra.bits.max(rb.bits);
    match op {
        Arith::Add => Range {
            signed,
            bits: most.saturating_add(1),
        },
        Arith::Sub if signed => Range::signed(most.saturating_add(1)),
        Arith::Sub => Range::signed(most),
        Arith::Mul => Range {
            signed,
            bits: (ra.bits.saturating_add(rb.bits))
                .saturating_add(u32::from(ra.signed && rb.signed)),
        },
        Arith::Div => Range {
            signed,
            bits: ra.bits.saturating_add(u32::from(signed)),
        },
        Arith::Mod => Range {
            signed: ra.signed,
            bits: ra.bits,
        },
        Arith::And if ra.signed && rb.signed => Range::signed(most),
        Arith::And if ra.signed => rb,
        Arith::And if rb.signed => ra,
        Arith::And => Range::unsigned(ra.bits.min(rb.bits)),
        Arith::Or | Arith::Xor => Range { signed, bits: most },
        Arith::Shl => {
            let shift = match b {
                Expr::Const(value) => value.to_u64().unwrap_or(u64::MAX),
                _ => 1u64.checked_shl(rb.bits.min(64)).unwrap_or(u64::MAX),
            };
            let bits = u64::from(ra.bits)
                .saturating_add(shift)
                .min(u64::from(u32::MAX / 2));
            Range {
                signed: ra.signed,
                bits: bits as u32,
            }
        }
        Arith::Shr => match b {
            Expr::Const(value) => {
                let shift = value.to_u64().unwrap_or(u64::MAX).min(u64::from(ra.bits));
                Range {
                    signed: ra.signed,
                    bits: ra.bits - shift as u32,
                }
            }
            _ => ra,
        },
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
                        return value.fail(format!(
                            "parameter {index} of an action with {count} parameters"
                        ));
                    }
                }
            }
            "header" => Value::Header(HeaderRef::Fixed(self.layout.header(&value)?)),
            "header_stack" | "header_union_stack" => Value::Stack(self.layout.stack(&value)?),
            "header_union" => Value::Union(UnionRef::Fixed(self.layout.union(&value)?)),
            "stack_field" => {
                let [stack, field] = value.tuple()?;
                let stack_index = self.layout.stack(&stack)?;
                Value::Data(self.last_field(stack_index, 0, &field)?)
            }
            "union_stack_field" => {
                let [stack, member, field] = value.tuple()?;
                let stack_index = self.layout.stack(&stack)?;
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
            other => return ty.fail(format!("expressions of type `{other}` are not supported")),
        })
    }

    /// A number.
    pub fn data(&self, json: &Json) -> Load<Expr> {
        match self.value(json)? {
            Value::Data(expr) => Ok(expr),
            // p4c hands booleans to some primitives (assert, log_msg) as they are.
            Value::Bool(cond) => Ok(Expr::FromBool(Box::new(cond))),
            other => json.fail(format!("expected a number, found {}", other.what())),
        }
    }

    /// A boolean.
    pub fn cond(&self, json: &Json) -> Load<Cond> {
        match self.value(json)? {
            Value::Bool(cond) => Ok(cond),
            Value::Data(expr) => Ok(non_zero(expr)),
            other => json.fail(format!("expected a boolean, found {}", other.what())),
        }
    }

    /// A field that can be assigned to.
    pub fn place(&self, json: &Json) -> Load<Place> {
        let place = match self.value(json)? {
            Value::Data(expr) => match &expr {
                Expr::Field(field) if !self.layout.is_writable(field) => {
                    return json.fail("cannot be assigned to: setValid and setInvalid change a validity, and metadata is always valid")
                }
                _ => Place::from_expr(expr),
            },
            other => {
                return json.fail(format!(
                    "cannot be assigned to: expected a field, found {}",
                    other.what()
                ))
            }
        };
        place.ok_or_else(|| json.error("cannot be assigned to: a field is expected"))
    }

    /// Sees that two unions have equally many members; their types are compared one by one later.
    pub fn same_members(&self, json: &Json, a: &[HeaderRef], b: &[HeaderRef]) -> Load<()> {
        if a.len() == b.len() {
            return Ok(());
        }
        json.fail(format!(
            "header unions of {} and of {} members",
            a.len(),
            b.len()
        ))
    }

    /// A header.
    pub fn header(&self, json: &Json) -> Load<HeaderRef> {
        match self.value(json)? {
            Value::Header(header) => Ok(header),
            other => json.fail(format!("expected a header, found {}", other.what())),
        }
    }

    /// A header union.
    pub fn union(&self, json: &Json) -> Load<UnionRef> {
        match self.value(json)? {
            Value::Union(union) => Ok(union),
            other => json.fail(format!("expected a header union, found {}", other.what())),
        }
    }

    /// A header stack or stack of unions.
    pub fn stack(&self, json: &Json) -> Load<usize> {
        match self.value(json)? {
            Value::Stack(stack) => Ok(stack),
            other => json.fail(format!("expected a header stack, found {}", other.what())),
        }
    }

    /// The member of a stack of unions that `json` names.
    pub fn union_member(&self, stack: usize, json: &Json) -> Load<usize> {
        let name = json.str()?;
        let stack = &self.layout.stacks[stack];
        match stack.members.iter().position(|m| m.name == name) {
            Some(index) => Ok(index),
            None => json.fail(format!(
                "the unions of stack `{}` have no member `{name}`",
                stack.name
            )),
        }
    }

    fn last_field(&self, stack: usize, member: usize, field: &Json) -> Load<Expr> {
        let header = HeaderRef::Element {
            stack,
            member,
            index: Box::new(Expr::LastIndex(stack)),
        };
        let ty = &self.layout.types[self.layout.stacks[stack].members[member].ty];
        let name = field.str()?;
        match ty.field(name) {
            Some(index) => self.element(field, header, index),
            None if name == "$valid$" => Ok(Expr::FromBool(Box::new(Cond::Valid(header)))),
            None => field.fail(format!("header type `{}` has no field `{name}`", ty.name)),
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
            None => json.fail(format!("header type `{}` has no field {index}", ty.name)),
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
        let arith = |op: Arith| -> Load<Value> {
            // Unary + and - have no left side.
            let a = match json.opt("left") {
                Some(left) => self.data(&left)?,
                None => Expr::Const(Integer::default()),
            };
            Ok(Value::Data(fold(op, a, self.data(&right()?)?)))
        };
        let compare = |op: Compare| -> Load<Value> {
            Ok(Value::Bool(Cond::Compare(
                op,
                self.data(&left()?)?,
                self.data(&right()?)?,
            )))
        };
        let width = || -> Load<u32> {
            let width = right()?;
            match self.data(&width)? {
                Expr::Const(value) => match value.to_u64() {
                    Some(bits @ 1..=65535) => Ok(bits as u32),
                    _ => width.fail("a width must be in 1..65535"),
                },
                _ => width.fail(format!("the width of `{name}` must be a constant")),
            }
        };
        Ok(match name {
            "+" => arith(Arith::Add)?,
            "-" => arith(Arith::Sub)?,
            "*" => arith(Arith::Mul)?,
            "/" => arith(Arith::Div)?,
            "%" => arith(Arith::Mod)?,
            "&" => arith(Arith::And)?,
            "|" => arith(Arith::Or)?,
            "^" => arith(Arith::Xor)?,
            "<<" => arith(Arith::Shl)?,
            ">>" => arith(Arith::Shr)?,
            "<" => compare(Compare::Lt)?,
            "<=" => compare(Compare::Le)?,
            ">" => compare(Compare::Gt)?,
            ">=" => compare(Compare::Ge)?,
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
                let right = right()?;
                Value::Bool(Cond::AnyValid(self.members(&right, &self.union(&right)?)?))
            }
            "dereference_stack" | "dereference_header_stack" | "dereference_union_stack" => {
                let stack = self.stack(&left()?)?;
                let index = Box::new(self.data(&right()?)?);
                if self.layout.stacks[stack].is_union {
                    Value::Union(UnionRef::Element { stack, index })
                } else {
                    Value::Header(HeaderRef::Element {
                        stack,
                        member: 0,
                        index,
                    })
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
                let union = self.union(&left()?)?;
                let index = right()?;
                let members = self.members(&index, &union)?;
                match members.into_iter().nth(index.u32()? as usize) {
                    Some(header) => Value::Header(header),
                    None => return index.fail("the header union has no such member"),
                }
            }
            other => return op.fail(format!("there is no operation `{other}`")),
        })
    }

    fn equal(&self, json: &Json) -> Load<Cond> {
        let right = json.get("right")?;
        Ok(
            match (self.value(&json.get("left")?)?, self.value(&right)?) {
                (Value::Data(a), Value::Data(b)) => Cond::Compare(Compare::Eq, a, b),
                (Value::Bool(a), Value::Bool(b)) => Cond::Equal(Box::new(a), Box::new(b)),
                (Value::Header(a), Value::Header(b)) => Cond::HeadersEqual(a, b),
                (Value::Union(a), Value::Union(b)) => {
                    let (a, b) = (self.members(&right, &a)?, self.members(&right, &b)?);
                    self.same_members(&right, &a, &b)?;
                    Cond::UnionsEqual(a.into_iter().zip(b).collect())
                }
                (a, b) => {
                    return right.fail(format!("cannot compare {} with {}", a.what(), b.what()))
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
                    return right.fail(format!(
                        "cannot choose between {} and {}",
                        a.what(),
                        b.what()
                    ))
                }
            },
        )
    }

    /// The headers that a union consists of.
    pub fn members(&self, json: &Json, union: &UnionRef) -> Load<Vec<HeaderRef>> {
        match union {
            UnionRef::Fixed(index) => Ok(self.layout.unions[*index]
                .headers
                .iter()
                .map(|&h| HeaderRef::Fixed(h))
                .collect()),
            UnionRef::Element { stack, index } => {
                // Every member has the index for itself: indexes with unions in them with indexes … grow fast.
                let members = self.layout.stacks[*stack].members.len();
                let nodes = index.nodes() * members as u64;
                json.charge(nodes * size_of::<Expr>() as u64, || "its index".into())?;
                let element = |member| HeaderRef::Element {
                    stack: *stack,
                    member,
                    index: index.clone(),
                };
                Ok((0..members).map(element).collect())
            }
        }
    }
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
        Expr::Const(value) => Cond::Const(value.bits() != 0),
        expr => Cond::NonZero(expr),
    }
}

/// Whether a constant is not 0.
fn truth(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Const(value) => Some(value.bits() != 0),
        _ => None,
    }
}

/// `a op b` where one of them changes nothing.
fn fold(op: Arith, a: Expr, b: Expr) -> Expr {
    let zero = |e: &Expr| matches!(e, Expr::Const(value) if value.bits() == 0);
    match op {
        Arith::Add | Arith::Or | Arith::Xor if zero(&b) => a,
        Arith::Add | Arith::Or | Arith::Xor if zero(&a) => b,
        Arith::Sub | Arith::Shl | Arith::Shr if zero(&b) => a,
        Arith::And => match (&a, &b) {
            (x, Expr::Const(mask)) if covers(mask, x) => a,
            (Expr::Const(mask), x) if covers(mask, x) => b,
            _ => Expr::Arith(op, Box::new(a), Box::new(b)),
        },
        _ => Expr::Arith(op, Box::new(a), Box::new(b)),
    }
}

/// True when `x & mask` is x, whatever x is.
fn covers(mask: &Integer, x: &Expr) -> bool {
    let range = x.range();
    let ones = Integer::from_hexstr(&format!(
        "{}{}",
        ["0", "1", "3", "7"][mask.bits() as usize % 4],
        "f".repeat(mask.bits() as usize / 4)
    ));
    !range.signed && !mask.is_negative() && range.bits <= mask.bits() && ones.as_ref() == Some(mask)
}

/// The opposite of `cond`.
pub(crate) fn negate(cond: Cond) -> Cond {
    match cond {
        Cond::Not(inner) => *inner,
        Cond::Compare(Compare::Eq, a, b) => Cond::Compare(Compare::Ne, a, b),
        Cond::Compare(Compare::Ne, a, b) => Cond::Compare(Compare::Eq, a, b),
        other => Cond::Not(Box::new(other)),
    }
}
