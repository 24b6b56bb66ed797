// SPDX-License-Identifier: Apache-2.0
//! Tests of compilation: what an expression computes, against integers of any size.

use num_bigint::{BigInt, Sign};
use proptest::prelude::*;

use super::code::{Alu, Op, Test};
use super::emit::Emitter;
use super::expr::{Cond, Expr};
use super::layout::{Field, Layout, ONE};
use super::lower::Place;
use super::optimise::optimise;
use crate::bits::limbs_for;
use crate::exec::{Machine, Scratch};
use crate::json::integer;
use crate::native;
use crate::packet::Packet;
use crate::pipeline::Engine;
use crate::schema::Schema;

/// Widths of the test's fields; every second one is signed.
const WIDTHS: [u32; 8] = [1, 7, 8, 31, 48, 64, 65, 130];
/// First slot of the fields.
const FIRST: u16 = 2;

fn fields() -> Vec<Field> {
    let mut slot = FIRST;
    let mut out = Vec::new();
    for (i, &width) in WIDTHS.iter().enumerate() {
        out.push(Field {
            slot,
            width,
            signed: i % 2 == 1,
            valid: ONE,
            varbit_bits: None,
        });
        slot += limbs_for(width) as u16;
    }
    out
}

fn big(limbs: &[u64]) -> BigInt {
    let bytes: Vec<u8> = limbs.iter().flat_map(|l| l.to_le_bytes()).collect();
    BigInt::from_bytes_le(Sign::Plus, &bytes)
}

fn power(bits: u32) -> BigInt {
    BigInt::from(1) << bits
}

/// The value modulo 2^bits, not negative.
fn cut(value: &BigInt, bits: u32) -> BigInt {
    let m = power(bits);
    ((value % &m) + &m) % &m
}

fn signed(value: &BigInt, bits: u32) -> BigInt {
    let low = cut(value, bits);
    if low >= power(bits - 1) {
        low - power(bits)
    } else {
        low
    }
}

/// BMv2's arithmetic (data.h), on the values of `fields`. What is here, `arb_expr` generates: a new operation goes to
/// both.
fn reference(expr: &Expr, values: &[BigInt]) -> BigInt {
    let eval = |e: &Expr| reference(e, values);
    match expr {
        Expr::Const(value) => value.clone(),
        Expr::Field(field) => {
            let index = fields().iter().position(|f| f == field).unwrap();
            if field.signed {
                signed(&values[index], field.width)
            } else {
                values[index].clone()
            }
        }
        Expr::Arith(op, a, b) => {
            let (a, b) = (eval(a), eval(b));
            match op {
                Alu::Add => a + b,
                Alu::Sub => a - b,
                Alu::Mul => a * b,
                Alu::DivU if b == BigInt::ZERO => b,
                Alu::ModU if b == BigInt::ZERO => b,
                Alu::DivU => a / b,
                Alu::ModU => a % b,
                Alu::And => a & b,
                Alu::Or => a | b,
                Alu::Xor => a ^ b,
                Alu::Shl => a << u64::try_from(b).unwrap(),
                Alu::ShrU => a >> u64::try_from(b).unwrap(),
                // Of other expressions, or made by lowering: no name in the JSON gives them.
                Alu::Move
                | Alu::Not
                | Alu::SignExtend(_)
                | Alu::SatU(_)
                | Alu::SatSU(_)
                | Alu::SatS(_)
                | Alu::ShrS => unreachable!("{op:?}"),
            }
        }
        Expr::Not(a) => !eval(a),
        Expr::TwoCompMod(a, width) => signed(&eval(a), *width),
        Expr::USatCast(a, width) => eval(a).clamp(BigInt::ZERO, power(*width) - 1),
        Expr::SatCast(a, width) => eval(a).clamp(-power(width - 1), power(width - 1) - 1),
        Expr::If(cond, a, b) => {
            if holds(cond, values) {
                eval(a)
            } else {
                eval(b)
            }
        }
        Expr::FromBool(cond) => BigInt::from(u8::from(holds(cond, values))),
        Expr::Local { .. }
        | Expr::Element { .. }
        | Expr::Register { .. }
        | Expr::StackSize(_)
        | Expr::LastIndex(_) => unreachable!("{expr:?} is not generated"),
    }
}

fn holds(cond: &Cond, values: &[BigInt]) -> bool {
    match cond {
        Cond::Const(value) => *value,
        Cond::Compare(op, a, b) => {
            let (a, b) = (reference(a, values), reference(b, values));
            match op {
                Test::Eq => a == b,
                Test::Ne => a != b,
                Test::LtU => a < b,
                Test::LeU => a <= b,
                Test::LtS | Test::LeS => unreachable!("{op:?} is made by lowering"),
            }
        }
        Cond::And(a, b) => holds(a, values) && holds(b, values),
        Cond::Or(a, b) => holds(a, values) || holds(b, values),
        Cond::Not(a) => !holds(a, values),
        Cond::If(c, a, b) => holds(if holds(c, values) { a } else { b }, values),
        Cond::Valid(_) | Cond::HeadersEqual(..) => unreachable!("{cond:?} is not generated"),
    }
}

fn arb_const() -> impl Strategy<Value = Expr> {
    let digits = proptest::collection::vec(0u8..16, 1..30);
    let small = prop::sample::select(vec![
        "0x0",
        "0x1",
        "0xff",
        "0xffff",
        "0xffffffff",
        "0xffffffffffffffff",
        "-0x1",
    ]);
    prop_oneof![
        (any::<bool>(), digits).prop_map(|(negative, digits)| {
            let hex: String = digits
                .iter()
                .map(|d| char::from_digit(u32::from(*d), 16).unwrap())
                .collect();
            Expr::Const(integer(&format!("{}0x{hex}", if negative { "-" } else { "" })).unwrap())
        }),
        small.prop_map(|text| Expr::Const(integer(text).unwrap())),
    ]
}

fn arb_shift() -> impl Strategy<Value = Expr> {
    // By a constant, or by a field of 7 or 8 bits cut to 7.
    prop_oneof![
        (0u64..140).prop_map(|v| Expr::Const(BigInt::from(v))),
        Just(Expr::Arith(
            Alu::And,
            Box::new(Expr::Field(fields()[2])),
            Box::new(Expr::Const(BigInt::from(0x7f)))
        )),
    ]
}

fn arb_cond(expr: impl Strategy<Value = Expr> + Clone + 'static) -> impl Strategy<Value = Cond> {
    let op = prop::sample::select(vec![Test::Eq, Test::Ne, Test::LtU, Test::LeU]);
    let leaf = prop_oneof![
        (op, expr.clone(), expr.clone()).prop_map(|(op, a, b)| Cond::Compare(op, a, b)),
        expr.prop_map(|a| Cond::Compare(Test::Ne, a, Expr::Const(BigInt::ZERO))),
        any::<bool>().prop_map(Cond::Const),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone()
                .prop_map(|(a, b)| Cond::And(Box::new(a), Box::new(b))),
            two.clone()
                .prop_map(|(a, b)| Cond::Or(Box::new(a), Box::new(b))),
            two.clone().prop_map(|(a, b)| {
                let number = |cond| Expr::FromBool(Box::new(cond));
                Cond::Compare(Test::Eq, number(a), number(b))
            }),
            inner.clone().prop_map(|a| Cond::Not(Box::new(a))),
            (inner.clone(), two).prop_map(|(c, (a, b))| Cond::If(
                Box::new(c),
                Box::new(a),
                Box::new(b)
            )),
        ]
    })
}

fn arb_expr() -> impl Strategy<Value = Expr> {
    let field = (0..WIDTHS.len()).prop_map(|i| Expr::Field(fields()[i]));
    let leaf = prop_oneof![3 => field, 1 => arb_const()];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        let op = prop::sample::select(vec![Alu::Add, Alu::Sub, Alu::Mul, Alu::And, Alu::Or, Alu::Xor]);
        let unsigned = inner.clone().prop_map(|e| Box::new(Expr::USatCast(Box::new(e), 70)));
        let divide = prop::sample::select(vec![Alu::DivU, Alu::ModU]);
        let shift = prop::sample::select(vec![Alu::Shl, Alu::ShrU]);
        prop_oneof![
            4 => (op, two.clone()).prop_map(|(op, (a, b))| Expr::Arith(op, a, b)),
            2 => (inner.clone().prop_map(Box::new), prop::sample::select(vec!["0xff", "0xffffffff", "0xffffffffffffffff", "0x1ffffffffffffffff"]))
                .prop_map(|(a, m)| Expr::Arith(Alu::And, a, Box::new(Expr::Const(integer(m).unwrap())))),
            1 => (divide, unsigned.clone(), unsigned).prop_map(|(op, a, b)| Expr::Arith(op, a, b)),
            2 => (shift, inner.clone(), arb_shift()).prop_map(|(op, a, b)| Expr::Arith(op, Box::new(a), Box::new(b))),
            1 => inner.clone().prop_map(|a| Expr::Not(Box::new(a))),
            1 => (inner.clone(), 1u32..140).prop_map(|(a, w)| Expr::TwoCompMod(Box::new(a), w)),
            1 => (inner.clone(), 1u32..140).prop_map(|(a, w)| Expr::USatCast(Box::new(a), w)),
            1 => (inner.clone(), 1u32..140).prop_map(|(a, w)| Expr::SatCast(Box::new(a), w)),
            1 => (arb_cond(inner.clone()), two).prop_map(|(c, (a, b))| Expr::If(Box::new(c), a, b)),
            1 => arb_cond(inner).prop_map(|c| Expr::FromBool(Box::new(c))),
        ]
    })
}

/// Compiles `field[target] = expr`, has an engine run it, and gives back all fields.
fn compute(expr: &Expr, target: usize, start: &[Vec<u64>], engine: Engine) -> Vec<BigInt> {
    let fields = fields();
    let end: u32 = u32::from(FIRST) + WIDTHS.iter().map(|w| limbs_for(*w) as u32).sum::<u32>();
    let mut layout = Layout::default();
    (layout.end, layout.headers_start) = (end, end);
    let mut e = Emitter::new(&layout, 0).unwrap();
    let place = Place::Slot {
        slot: fields[target].slot,
        width: fields[target].width,
    };
    e.program.ingress_start = e.here();
    e.assign(&place, expr).unwrap();
    let (program, constants) = e.resolve();
    let mut written = super::Written {
        program,
        constants,
        schema: Schema::default(),
        layout,
    };
    let code = (engine == Engine::Native).then(|| {
        let optimised = optimise(&written).map_err(|e| e.to_string()).unwrap();
        let mut code = native::compile(optimised, &written.schema).unwrap();
        written.program.fallback = std::mem::take(&mut code.fallback);
        code
    });
    let program = &written.program;
    let mut packet = Packet::with_slots(program.template.clone(), Default::default());
    for (field, limbs) in fields.iter().zip(start) {
        let slot = usize::from(field.slot);
        packet.slots[slot..slot + limbs.len()].copy_from_slice(limbs);
    }
    let mut state = crate::state::State::new(&written.schema.clone().into(), &[], 1).unwrap();
    let mut machine = Machine {
        program,
        state: &mut state,
        scratch: &mut Scratch::new(program),
        fx: &mut crate::packet::Effects::new(),
        now: 0,
        observer: &mut (),
    };
    match code {
        Some(code) => {
            code.run(native::Part::Ingress, &mut machine, &mut packet);
        }
        None => machine.run(&mut packet, program.ingress_start),
    }
    fields
        .iter()
        .map(|f| big(&packet.slots[usize::from(f.slot)..usize::from(f.slot) + limbs_for(f.width)]))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever the widths and signs, a field gets what infinite precision gives, cut to its width; no other changes.
    #[test]
    fn expressions_are_exact(
        expr in arb_expr(),
        target in 0..WIDTHS.len(),
        random in proptest::collection::vec(prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), 0u64..3], 16),
    ) {
        let mut random = random.into_iter();
        let start: Vec<Vec<u64>> = WIDTHS.iter().map(|&width| {
            let mut limbs: Vec<u64> = random.by_ref().take(limbs_for(width)).collect();
            crate::bits::cut(&mut limbs, width);
            limbs
        }).collect();
        let values: Vec<BigInt> = start.iter().map(|l| big(l)).collect();
        let mut expected = values.clone();
        expected[target] = cut(&reference(&expr, &values), WIDTHS[target]);
        for engine in [Engine::Interpreter, Engine::Native] {
            prop_assert_eq!(&compute(&expr, target, &start, engine), &expected, "{:?}", engine);
        }
    }
}

#[test]
fn common_shapes_are_one_operation() {
    let mut layout = Layout::default();
    (layout.end, layout.headers_start) = (40, 40);
    let mut e = Emitter::new(&layout, 0).unwrap();
    let [a, b, ..] = fields()[..] else {
        unreachable!()
    };
    let sum = Expr::Arith(
        Alu::Add,
        Box::new(Expr::Field(fields()[2])),
        Box::new(Expr::Const(BigInt::from(1))),
    );
    let masked = Expr::Arith(
        Alu::And,
        Box::new(sum),
        Box::new(Expr::Const(BigInt::from(0xff))),
    );
    e.assign(
        &Place::Slot {
            slot: fields()[2].slot,
            width: 8,
        },
        &masked,
    )
    .unwrap();
    e.assign(
        &Place::Slot {
            slot: b.slot,
            width: b.width,
        },
        &Expr::Field(a),
    )
    .unwrap();
    let ops = &e.resolve().0.blocks[1].ops;
    assert!(
        matches!(
            ops[0],
            Op::Alu {
                alu: Alu::Add,
                w: 8,
                ..
            }
        ),
        "{ops:?}"
    );
    assert!(matches!(ops[1], Op::Alu { alu: Alu::Move, .. }), "{ops:?}");
    assert_eq!(ops.len(), 2);
}

/// `PROGRAM=x.json cargo test -p v1model dump -- --ignored --nocapture` prints a program's operations.
#[test]
#[ignore = "prints; for people"]
fn dump() {
    let path = std::env::var("PROGRAM").expect("PROGRAM names a BMv2 JSON");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let budget = crate::json::Budget::new(u64::MAX);
    let super::Written { program, .. } =
        super::program(&crate::json::Json::root(&json, &budget)).unwrap();
    for (id, block) in program.blocks.iter().enumerate() {
        println!("{id:5} {block:?}");
    }
    println!(
        "parser {}, ingress {}, egress {}; {} slots, {} of state",
        program.parser_start,
        program.ingress_start,
        program.egress_start,
        program.template.len(),
        program.state_end
    );
}

/// An operation is named in the table, the front end, the interpreter, machine code, and at most in one place more.
/// Arithmetic is one operation here: the compiler names the places of an `Alu`.
#[test]
fn an_operation_is_named_in_five_files() {
    fn sources(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if !path.to_string_lossy().contains("test") {
                found.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut texts = Vec::new();
    sources(folder.as_ref(), &mut texts);
    let table = include_str!("op.rs")
        .split_once("operations! {{")
        .unwrap()
        .1;
    let rows = table.split_once("\n}}\n").unwrap().0.lines();
    let mut names = 0;
    for row in rows.filter_map(|row| row.strip_prefix("    ")) {
        let name: String = row.chars().take_while(char::is_ascii_alphabetic).collect();
        if name.is_empty() {
            continue;
        }
        names += 1;
        let op = format!("Op::{name}");
        let is_named = |text: &&String| {
            let mut rest = text.split(&op).skip(1);
            rest.any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        };
        let files = 1 + texts
            .iter()
            .filter(is_named)
            .filter(|t| !t.contains("operations! {{"))
            .count();
        assert!(files <= 5, "{op} is in {files} files");
    }
    assert!(names > 30, "{names} operations");
}
