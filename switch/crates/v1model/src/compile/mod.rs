// SPDX-License-Identifier: Apache-2.0
//! From BMv2 JSON to a `Program`: a program is compiled once, into flat code over 64-bit slots.
//!
//! | file | idea |
//! |---|---|
//! | `layout` | where headers and fields lie among a packet's slots |
//! | `names` | names and ids of the JSON to dense ids |
//! | `expr` | expressions as typed trees |
//! | `op` | the table of operations, and the slots that each reads and writes |
//! | `alu` | arithmetic, which is one of them, and the values that its results can take |
//! | `flow` | basic blocks and their exits: the form of all code |
//! | `code`, `emit` | the program around the blocks, and what a trace shows of them; what fills them |
//! | `lower` | expressions and conditions to operations |
//! | `optimise` | the same in fewer operations |
//! | `action`, `parser`, `control`, `table`, `calculation` | the parts of a program |
//!
//! The programs that are in use, and small ones that were lately: networks of many switches, and run after run of an
//! experiment, load the same one again.

mod action;
mod alu;
mod calculation;
#[cfg(test)]
mod check_tests;
pub(crate) mod code;
mod control;
mod emit;
mod expr;
pub(crate) mod flow;
pub(crate) mod layout;
mod lower;
mod names;
pub(crate) mod op;
pub(crate) mod optimise;
mod parser;
mod table;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use code::{Emitted, ErrorCodes, Input, Op, Program};
use emit::Emitter;
use expr::ExprReader;
use layout::{Field, Layout, Slot, ZERO};
use names::Names;
use optimise::optimise;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{contained, LoadError};
use crate::json::{fail, At, Budget, Json, Load, Unique};
use crate::native;
use crate::pipeline::{Engine, Std, ENGINE_VARIABLE};
use crate::schema::{ActionId, DigestId, DigestSchema, Schema};

/// egress_spec that means drop.
const DROP_PORT: u64 = 511;

/// Bits of one sample of a digest at most.
const DIGEST_BITS_MAX: u64 = 1 << 20;

/// Bytes of all headers that a deparser emits at most.
const HEADERS_BYTES_MAX: u64 = 1 << 20;

/// Packets that a switch keeps ready.
const PACKETS: u64 = 256;

/// Newest minor version of the format 2.x that is understood.
const MINOR_MAX: u64 = 24;

/// A program as it is written.
pub(crate) struct Written {
    pub program: Program,
    /// The constants among its slots.
    pub constants: HashMap<Slot, u64>,
    /// The shapes of its objects.
    pub schema: Schema,
    /// Where its fields are.
    pub layout: Layout,
}

/// Compiles a program as it is written.
pub(crate) fn program(root: &Json) -> Load<Written> {
    check_shape(root)?;
    check_version(root)?;
    let layout = Layout::from_json(root)?;
    let mut schema = Schema::default();
    let mut names = Names::default();
    names.read_externs(root, &layout, &mut schema)?;
    let action_list = root.list("actions")?;
    let mut params = Vec::new();
    let mut actions_named: HashMap<&str, Vec<ActionId>> = HashMap::new();
    let mut unique = Unique::new("action id");
    for json in &action_list {
        let id = ActionId(schema.actions.len() as u32);
        let copies = actions_named.entry(json.str_at("name")?).or_default();
        copies.push(id);
        let (action, places) = control::action_schema(json, id)?;
        names.actions.insert(unique.numbered(json)?, id.0);
        schema.actions.push(action);
        params.push(places);
    }
    let arg_limbs = schema
        .actions
        .iter()
        .map(|a| a.arg_limbs())
        .max()
        .unwrap_or(0);
    let mut e = Emitter::new(&layout, arg_limbs).at(root)?;
    let mut unique = Unique::new("calculation");
    for json in root.list("calculations")? {
        let name = unique.add_name_of(&json)?.to_string();
        let id = calculation::add(&layout, &json, &mut e.program.calculations)?;
        names.calculations.insert(name, id);
    }
    learn_lists(root, &layout, &mut names, &mut schema, &mut e.program)?;
    field_lists(root, &layout, &mut names, &mut e.program)?;
    e.program.headers = layout.types.clone();
    e.program.stacks = layout.stacks.clone();
    e.program.error_codes = error_codes(root)?;
    e.program.drop_port = DROP_PORT;
    for (field, ..) in Std::ALL {
        let found = layout.std(field).filter(|f| f.width > 0);
        e.program.std[field as usize] = found.map(|f| (f.slot, f.width.min(64) as u8));
    }
    for needed in [Std::IngressPort, Std::EgressSpec] {
        if e.program.std[needed as usize].is_none() {
            fail!(root.get("headers")?, "there is no standard_metadata.{}: v1model programs have a header `standard_metadata` with it",
                Std::ALL[needed as usize].2);
        }
    }
    let shared = control::Controls {
        layout: &layout,
        names: &names,
        actions: &action_list,
        actions_named: &actions_named,
        params: &params,
    };
    let reader = ExprReader {
        layout: &layout,
        names: &names,
        params: &[],
    };
    e.program.parser_start = parser::parser(&mut e, &reader, root)?;
    e.program.ingress_start = control::control(&mut e, &shared, root, "ingress", &mut schema)?;
    e.program.egress_start = control::control(&mut e, &shared, root, "egress", &mut schema)?;
    shared.emit_actions(&mut e)?;
    e.program.verify_start = e.here();
    if let Some((error, _)) = e.program.std[Std::ChecksumError as usize] {
        e.op(Op::copy(error, ZERO));
    }
    calculation::checksums(&mut e, &reader, root, true)?;
    e.end();
    deparser(&mut e, &reader, root)?;
    let (mut program, constants) = e.resolve();
    program.places = program
        .elements
        .iter()
        .map(|e| place(&program, e))
        .collect();
    let words = program.template.len() as u64;
    root.charge(words * 8 * PACKETS, || {
        format!("{PACKETS} packets of {words} words")
    })?;
    Ok(Written {
        program,
        constants,
        schema,
        layout,
    })
}

/// Sees that the document has what every v1model program has, so that not just any JSON is one that drops everything.
fn check_shape(root: &Json) -> Load<()> {
    root.members()?;
    let mut unique = Unique::new("pipeline");
    for json in root.get("pipelines")?.items()? {
        unique.add_name_of(&json)?;
    }
    for (list, one) in [("parsers", "parser"), ("deparsers", "deparser")] {
        let json = root.get(list)?;
        let found = json.items()?.len();
        if found != 1 {
            fail!(json, "v1model has one {one}, found {found}");
        }
    }
    Ok(())
}

fn check_version(root: &Json) -> Load<()> {
    let Some(meta) = root.opt("__meta__") else {
        return Ok(());
    };
    let Some(version) = meta.opt("version") else {
        return Ok(());
    };
    let [major, minor] = version.tuple()?;
    match (major.u64()?, minor.u64()?) {
        (2, 0..=MINOR_MAX) => Ok(()),
        (major, minor) => fail!(
            version,
            "format {major}.{minor} is not understood; 2.0 to 2.{MINOR_MAX} are"
        ),
    }
}

/// Numbers of the core errors: as the JSON gives them, the others behind its largest (as BMv2 does).
fn error_codes(root: &Json) -> Load<ErrorCodes> {
    let mut known = HashMap::new();
    let mut next = 0;
    let (mut unique, mut unique_values) = (Unique::new("error"), Unique::new("error number"));
    for error in root.list("errors")? {
        let [name, value_json] = error.tuple()?;
        let value = value_json.u32()?;
        unique.add(name.str()?, &name)?;
        unique_values.add(value, &value_json)?;
        known.insert(name.str()?, u64::from(value));
        next = next.max(u64::from(value) + 1);
    }
    let mut code = |name: &'static str| {
        *known.entry(name).or_insert_with(|| {
            next += 1;
            next - 1
        })
    };
    let (no_error, packet_too_short) = (code("NoError"), code("PacketTooShort"));
    code("NoMatch");
    let stack_out_of_bounds = code("StackOutOfBounds");
    let header_too_short = code("HeaderTooShort");
    let parser_timeout = code("ParserTimeout");
    let parser_invalid_argument = code("ParserInvalidArgument");
    Ok(ErrorCodes {
        no_error,
        packet_too_short,
        stack_out_of_bounds,
        header_too_short,
        parser_invalid_argument,
        parser_timeout,
    })
}

/// The fields that a list of the kind `what` consists of.
fn listed_fields<'a>(layout: &Layout, json: &Json<'a>, what: &str) -> Load<Vec<(Field, Json<'a>)>> {
    let mut fields = Vec::new();
    for element in json.list("elements")? {
        let ty = element.get("type")?;
        if ty.str()? != "field" {
            fail!(ty, "a {what} consists of fields, not of `{}`", ty.str()?);
        }
        fields.push((layout.field(&element.get("value")?)?, element));
    }
    Ok(fields)
}

fn learn_lists(
    root: &Json,
    layout: &Layout,
    names: &mut Names,
    schema: &mut Schema,
    program: &mut Program,
) -> Load<()> {
    let mut unique = Unique::new("learn list id");
    for json in root.list("learn_lists")? {
        let id = DigestId(schema.digests.len() as u32);
        names.digests.insert(unique.counted(&json)?, id.0);
        let (mut members, mut bits) = (Vec::new(), 0);
        for (field, element) in listed_fields(layout, &json, "digest")? {
            members.push((field.slot, field.width));
            bits += u64::from(field.width);
            if bits > DIGEST_BITS_MAX {
                fail!(element, "a digest has at most {DIGEST_BITS_MAX} bits");
            }
        }
        schema.digests.push(DigestSchema {
            id,
            name: json.str_at("name")?.to_string(),
            widths: members.iter().map(|m| m.1).collect(),
        });
        program.digests.push(members);
    }
    Ok(())
}

fn field_lists(root: &Json, layout: &Layout, names: &mut Names, program: &mut Program) -> Load<()> {
    let mut unique = Unique::new("field list id");
    for json in root.list("field_lists")? {
        names
            .field_lists
            .insert(unique.counted(&json)?, program.field_lists.len() as u32);
        let (mut fields, mut all) = (Vec::new(), 0);
        for (field, element) in listed_fields(layout, &json, "field list")? {
            let slots = crate::bits::limbs_for(field.width);
            fields.push((field.slot, slots as u16));
            all += slots;
            if all > usize::from(u16::MAX) {
                fail!(element, "a field list has at most {} words", u16::MAX);
            }
        }
        program.field_lists.push(fields);
    }
    Ok(())
}

/// Where the deparser emits a header.
fn place(program: &Program, element: &code::Element) -> u8 {
    let fixed = element.stride == 0 && !element.metadata;
    let mut emitted = program.deparser.iter();
    let place = emitted.position(|emitted| fixed && emitted.base == element.base);
    place.map_or(code::NOT_EMITTED, |p| p.min(code::NOT_EMITTED.into()) as u8)
}

fn deparser(e: &mut Emitter, reader: &ExprReader, root: &Json) -> Load<()> {
    let json = root.get("deparsers")?.item(0)?;
    let mut bytes = 0;
    for header_json in json.get("order")?.items()? {
        let index = reader.layout.named("header", &header_json)?;
        let header = &reader.layout.headers[index];
        if header.metadata {
            fail!(header_json, "`{}` is metadata, not a header", header.name);
        }
        let ty = &reader.layout.types[header.ty];
        if ty.fields.iter().map(|f| f.width).sum::<u32>() % 8 != 0 {
            fail!(
                header_json,
                "header `{}` is not a whole number of bytes",
                header.name
            );
        }
        bytes += u64::from(ty.slots) * 8;
        if bytes > HEADERS_BYTES_MAX {
            fail!(
                header_json,
                "the headers of a packet take at most {HEADERS_BYTES_MAX} bytes"
            );
        }
        let (valid, base, ty) = (header.valid, header.base, header.ty as u16);
        let words = calculation::words(reader.layout, &[Input::Header { base, valid, ty }]);
        e.program.deparser.push(Emitted {
            valid,
            base,
            ty,
            words: words.map(|runs| runs.into_iter().flat_map(|run| run.words).collect()),
        });
    }
    let before = e.operations();
    let start = e.here();
    calculation::checksums(e, reader, root, false)?;
    let primitives = json.list("primitives")?;
    if !primitives.is_empty() {
        action::primitives(e, reader, &primitives)?;
    }
    if e.operations() > before || !primitives.is_empty() {
        e.program.deparser_start = start;
    }
    e.end();
    Ok(())
}

/// Tells compiled programs apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProgramId(u64);

impl ProgramId {
    fn next() -> ProgramId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        ProgramId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// What becomes of a JSON; immutable.
pub(crate) struct Compiled {
    pub id: ProgramId,
    /// As it is written.
    pub program: Program,
    pub schema: Schema,
    pub layout: Layout,
    /// Its machine code, or why there is none; None where the interpreter was chosen.
    pub native: Option<Result<native::Compiled, String>>,
    /// Memory that it takes with its state, at most.
    pub bytes: u64,
}

/// So many small programs are kept that nobody uses.
const MOST: usize = 4;
/// Bytes of the JSON of a small program.
const SMALL: usize = 2 << 20;

/// Length and hash of a JSON, by a key that nobody outside of this process knows: nobody can write two of the same.
type Name = (usize, u64);

struct Known {
    name: Name,
    program: Weak<Compiled>,
    /// Of the last small ones.
    kept: Option<Arc<Compiled>>,
}

/// The last used last.
struct Recent {
    hasher: RandomState,
    known: Mutex<Vec<Known>>,
}

static RECENT: LazyLock<Recent> = LazyLock::new(Recent::new);

/// The program of a JSON, which may take `budget_bytes`: compiled now, or taken from those that were.
///
/// # Errors
/// Anything unsupported, with its JSON path.
pub(crate) fn compiled(json: &[u8], budget_bytes: u64) -> Result<Arc<Compiled>, LoadError> {
    RECENT.get(json, budget_bytes)
}

/// Brackets of a JSON that may stand in one another: p4c writes two for each operator around an operand.
const DEPTH_MAX: usize = 1_000;
/// Stack for a program of that depth, which is read and compiled by recursion.
const STACK_BYTES: usize = 64 << 20;

/// Compiles on a thread of its own, which has the stack that it takes.
fn compile(json: &[u8], budget_bytes: u64) -> Result<Compiled, LoadError> {
    let not_compiled = |why: String| LoadError::new("/", why);
    let depth = depth(json);
    if depth > DEPTH_MAX {
        return Err(not_compiled(format!(
            "the JSON has {depth} brackets in one another; a program may have {DEPTH_MAX}"
        )));
    }
    std::thread::scope(|scope| {
        let compile = || contained(|| compile_here(json, budget_bytes));
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, compile);
        let thread = thread.map_err(|e| not_compiled(format!("no thread compiles it: {e}")))?;
        let compiled = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        // A fault is the caller's, who may be contained as well.
        compiled.unwrap_or_else(|fault| panic!("{fault}"))
    })
}

/// The most brackets of a JSON that stand in one another.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let (mut in_text, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

fn parse(json: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.disable_recursion_limit(); // `DEPTH_MAX` is ours
    let value = Value::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

fn compile_here(json: &[u8], budget_bytes: u64) -> Result<Compiled, LoadError> {
    let value = parse(json).map_err(|e| LoadError::new("/", format!("not JSON: {e}")))?;
    let budget = Budget::new(budget_bytes);
    let written = program(&Json::root(&value, &budget))?;
    let engine = Engine::chosen().map_err(|error| LoadError::new(ENGINE_VARIABLE, error))?;
    let mut native = (engine == Engine::Native).then(|| {
        // A fault of ours in it is none of the program's.
        let compiled = contained(|| native::compile(optimise(&written)?, &written.schema));
        compiled
            .map_err(|fault| fault.to_string())?
            .map_err(|error| error.to_string())
    });
    let Written {
        mut program,
        schema,
        layout,
        ..
    } = written;
    if let Some(Ok(code)) = &mut native {
        program.fallback = std::mem::take(&mut code.fallback);
    }
    Ok(Compiled {
        id: ProgramId::next(),
        program,
        schema,
        layout,
        native,
        bytes: budget.taken(),
    })
}

impl Recent {
    fn new() -> Recent {
        Recent {
            hasher: RandomState::new(),
            known: Mutex::new(Vec::new()),
        }
    }

    fn get(&self, json: &[u8], budget_bytes: u64) -> Result<Arc<Compiled>, LoadError> {
        let name = (json.len(), self.hasher.hash_one(json));
        let known = self.take(name).filter(|known| known.bytes <= budget_bytes);
        let program = match known {
            Some(program) => program,
            // Without the lock: others need not wait.
            None => Arc::new(compile(json, budget_bytes)?),
        };
        self.put(name, &program);
        Ok(program)
    }

    fn take(&self, name: Name) -> Option<Arc<Compiled>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|k| k.name == name)?.program.upgrade()
    }

    fn put(&self, name: Name, program: &Arc<Compiled>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have compiled the same meanwhile.
        known.retain(|k| k.name != name && k.program.strong_count() > 0);
        known.push(Known {
            name,
            program: Arc::downgrade(program),
            kept: (name.0 <= SMALL).then(|| program.clone()),
        });
        let kept = known.iter_mut().rev().filter(|k| k.kept.is_some());
        kept.skip(MOST).for_each(|k| k.kept = None);
    }
}

#[cfg(test)]
mod recent_tests {
    use super::*;

    const BUDGET: u64 = 1 << 30;

    fn json(n: usize) -> Vec<u8> {
        let text = include_str!("../../tests/p4/compiled/headers.json");
        assert!(text.contains("\"program\" : "));
        text.replacen(
            "\"program\" : ",
            &format!("\"recent\": {n}, \"program\" : "),
            1,
        )
        .into_bytes()
    }

    #[test]
    fn the_same_json_is_compiled_once() {
        let recent = Recent::new();
        let get = |n| recent.get(&json(n), BUDGET).unwrap();
        let first = get(0);
        assert!(Arc::ptr_eq(&first, &get(0)));
        for n in 1..MOST {
            assert!(!Arc::ptr_eq(&first, &get(n)));
        }
        assert!(Arc::ptr_eq(&first, &get(0)));
        for n in 1..=MOST {
            get(n);
        }
        assert!(Arc::ptr_eq(&first, &get(0)), "it is in use");
    }

    /// Programs that are alive.
    fn alive(recent: &Recent) -> usize {
        let known = recent.known.lock().unwrap();
        known
            .iter()
            .filter(|k| k.program.strong_count() > 0)
            .count()
    }

    #[test]
    fn only_a_few_small_programs_stay_when_nobody_uses_them() {
        let recent = Recent::new();
        for n in 0..2 * MOST {
            recent.get(&json(n), BUDGET).unwrap();
        }
        assert_eq!(alive(&recent), MOST);
        let large = |n: usize| [json(n), vec![b' '; SMALL]].concat();
        let used: Vec<_> = (0..MOST + 1)
            .map(|n| recent.get(&large(n), BUDGET).unwrap())
            .collect();
        for (n, program) in used.iter().enumerate() {
            assert!(Arc::ptr_eq(
                program,
                &recent.get(&large(n), BUDGET).unwrap()
            ));
        }
        assert_eq!(alive(&recent), MOST + used.len());
        drop(used);
        assert_eq!(alive(&recent), MOST);
        recent.get(&json(0), BUDGET).unwrap();
        assert_eq!(recent.known.lock().unwrap().len(), MOST + 1);
    }

    #[test]
    fn a_known_program_must_fit_in_the_budget_too() {
        let recent = Recent::new();
        let bytes = recent.get(&json(0), BUDGET).unwrap().bytes;
        assert!(recent.get(&json(0), bytes).is_ok());
        assert!(recent.get(&json(0), bytes - 1).is_err());
    }

    #[test]
    fn an_error_is_an_error_again() {
        let recent = Recent::new();
        for _ in 0..2 {
            let error = recent.get(b"{\"header_types\": 1}", BUDGET).map(|_| ());
            assert_eq!(error.unwrap_err().path, "/");
        }
        assert!(recent.get(b"{", BUDGET).is_err());
    }
}
