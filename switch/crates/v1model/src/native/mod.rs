// SPDX-License-Identifier: Apache-2.0
//! A program as machine code: its operations as they are optimised, with constants and offsets in the code and values in
//! registers.
//!
//! | file | idea |
//! |---|---|
//! | `flow` | blocks in order: copies of them, and how one leads to the next |
//! | `lower` | a block's operations to a function: values, memory, calls |
//! | `arithmetic`, `state`, `frames` | operations to instructions |
//! | `calls` | functions of ours that the code calls, and what these share with it |
//!
//! What is not translated, the interpreter does on the packet's slots in memory, an operation at a time.

mod arithmetic;
mod calls;
mod flow;
mod frames;
mod lower;
mod state;

use std::mem::ManuallyDrop;
use std::ops::Range;

use cranelift_codegen::ir::{types, AbiParam, Function, Signature, UserFuncName};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::Context as CodegenContext;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{default_libcall_names, FuncId, Linkage, Module};

use self::calls::{run, Callee, Code};
use self::flow::MORE_COPIES;
use self::lower::{Lower, Pseudo};
use crate::compile::code::{Op, Program};
use crate::compile::flow::Exit;
use crate::compile::op::{touches, SlotSet, Touch};
use crate::compile::optimise::dead::live_throughout;
use crate::compile::optimise::{Optimised, MOST_OPS};
use crate::exec::{Machine, STEPS_MAX};
use crate::packet::Packet;
use crate::schema::Schema;
use crate::table::{packing, Place, Table, LARGE};

pub(crate) use self::frames::EMITTED;
pub(crate) use self::lower::TIMED_OUT;

/// What is known of places where blocks begin may take so many bytes: blocks and fields can be many, but not both.
const STATES_BYTES: usize = 256 << 20;

/// The machine code of a program.
pub(crate) struct Compiled {
    /// Operations that it has the interpreter do, for `Program::fallback`.
    pub fallback: Vec<Op>,
    /// See `Optimised::resets`.
    pub resets: Vec<(usize, usize)>,
    /// By `Part`.
    codes: [Code; 5],
    /// Slots of a packet.
    slots: usize,
    /// Tables that `warm` is for; none where packets may not be parsed ahead.
    warmed: Box<[u16]>,
    _memory: Memory,
}

// SAFETY: the code is only read once it is there; the module is used by nobody until `drop`, which owns it.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

/// The memory that code lies in, which a module alone would keep for ever: given back with the code, and when it cannot
/// be made.
struct Memory(ManuallyDrop<JITModule>);

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nobody uses the module afterwards.
        let module = unsafe { ManuallyDrop::take(&mut self.0) };
        // SAFETY: the code is called through the `Compiled` that owns this only, by callers that borrow it.
        unsafe { module.free_memory() }
    }
}

/// What is one function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Parser and verification of checksums; `TIMED_OUT` when the parser did not come to its end, and nothing is verified.
    Parse,
    /// Has the entries that ingress will find in large tables come into the cache, some time after `Parse`, which has their
    /// places in the index come.
    Warm,
    Ingress,
    Egress,
    /// Update of checksums, deparser; `EMITTED` when the headers are written where they were in the frame.
    Deparse,
}

impl Compiled {
    /// Runs a part; what its code returns.
    #[inline(always)]
    pub fn run(&self, part: Part, machine: &mut Machine<'_>, packet: &mut Packet) -> u64 {
        machine.scratch.steps_left = STEPS_MAX;
        let result = run(self.codes[part as usize], self.slots, machine, packet);
        machine.fx.timed_out |= result == TIMED_OUT;
        machine.sample_digests(packet);
        result
    }

    /// Ingress looks into tables that are large.
    #[inline]
    pub fn warms(&self, tables: &[Table]) -> bool {
        let mut warmed = self.warmed.iter();
        warmed.any(|&table| tables[usize::from(table)].is_large())
    }
}

/// A program while it is compiled.
struct Native<'p> {
    optimised: &'p Optimised,
    program: &'p Program,
    schema: &'p Schema,
    /// By block, the slots whose values count where it begins.
    live: &'p [SlotSet],
    /// Operations that the interpreter does.
    alone: Vec<Op>,
    /// See `warm_tables`.
    warm: Vec<u16>,
    call_conv: CallConv,
}

impl Native<'_> {
    /// Slots, and what is kept like them.
    fn places(&self) -> usize {
        self.program.template.len() + 3
    }

    /// Blocks of a function with their copies, at most.
    fn blocks(&self) -> usize {
        let flow = &self.optimised.flow;
        let written = flow.roots.iter().map(|&root| flow.order(root).len());
        written.max().unwrap_or(0) + MORE_COPIES
    }

    fn parsed(&self) -> usize {
        self.program.template.len()
    }

    fn extracted(&self) -> usize {
        self.program.template.len() + 1
    }

    fn exited(&self) -> usize {
        self.program.template.len() + 2
    }

    fn pseudo(&self, place: usize) -> Option<Pseudo> {
        Some(match place.checked_sub(self.program.template.len())? {
            0 => Pseudo::Parsed,
            1 => Pseudo::Extracted,
            _ => Pseudo::Exited,
        })
    }

    /// True for what counts when code ends.
    fn is_kept(&self, place: usize) -> bool {
        match self.pseudo(place) {
            Some(pseudo) => pseudo != Pseudo::Exited,
            None => self.optimised.kept.contains(place),
        }
    }

    /// The value of a constant's slot.
    fn constant(&self, slot: usize) -> Option<u64> {
        // Constants are all that is not 0 in a fresh packet, and the 0 in front.
        let value = self.program.template[slot];
        (slot == 0 || value != 0).then_some(value)
    }

    fn assert_changes(&self, slot: usize) {
        assert!(self.constant(slot).is_none(), "slot {slot} is a constant");
    }

    /// The largest value that a slot has.
    fn most(&self, slot: usize) -> u64 {
        self.optimised
            .effects
            .most
            .get(slot)
            .copied()
            .unwrap_or(u64::MAX)
    }

    /// Where the limbs of an exact table's key go in its words; None where these are more than a call takes.
    fn packing(&self, table: u16) -> Option<Vec<Vec<Place>>> {
        let schema = &self.schema.tables[usize::from(table)];
        packing(&schema.keys).filter(|words| words.len() <= Callee::WORDS)
    }

    /// The parser, or what verifies checksums behind it, reads or changes what other packets do too: then no frame may be
    /// parsed before those in front of it are handled.
    fn parser_has_state(&self) -> bool {
        let flow = &self.optimised.flow;
        let roots = [flow.roots[0], flow.roots[4]];
        let blocks = roots.into_iter().flat_map(|root| flow.order(root));
        let mut ops = blocks.flat_map(|id| &flow.blocks[id].ops);
        ops.any(|op| op.has_state(self.program))
    }

    /// Tables that may be large whose key is known before ingress, which looks it up.
    fn warm_tables(&self) -> Vec<u16> {
        let flow = &self.optimised.flow;
        let (mut written, mut tables) = (SlotSet::new(self.program.template.len()), Vec::new());
        let mut write = |touch: Touch, range: Range<usize>| {
            if touch != Touch::Reads {
                range.for_each(|slot| written.add(slot));
            }
        };
        for block in flow
            .order(flow.roots[1])
            .into_iter()
            .map(|id| &flow.blocks[id])
        {
            for op in &block.ops {
                touches(self.program, op, &mut write);
            }
            block.exit.touches(self.program, &mut write);
            if let Exit::Lookup { table, .. } = block.exit {
                tables.push(table);
            }
        }
        tables.sort_unstable();
        tables.dedup();
        tables.retain(|&table| {
            let code = &self.program.tables[usize::from(table)];
            let mut slots = code.key.iter();
            self.schema.tables[usize::from(table)].max_size as usize >= LARGE
                && code.profile.is_none()
                && code.meter.is_none()
                && self.packing(table).is_some()
                && slots.all(|&(slot, _)| !written.contains(slot.into()))
        });
        tables
    }

    fn argument_limbs(&self, action: usize) -> usize {
        self.schema.actions[action].arg_limbs()
    }

    /// Index of an operation among those that the interpreter does.
    fn alone(&mut self, op: &Op) -> u64 {
        let known = self.alone.iter().position(|known| known == op);
        known.unwrap_or_else(|| {
            self.alone.push(*op);
            self.alone.len() - 1
        }) as u64
    }
}

/// What cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotCompiled {
    #[error("with a copy of each action where it is called, the program has at least {0} operations, more than {MOST_OPS}")]
    TooLarge(usize),
    #[error("of {blocks} blocks and {places} words of fields, more than {STATES_BYTES} bytes would have to be known")]
    States { blocks: usize, places: usize },
    #[error("a fault in the compiler: the code comes back without a step")]
    Endless,
    #[error("this processor is not known: {0}")]
    Processor(String),
    #[error("{0}")]
    Code(String),
}

/// Compiles a program.
pub(crate) fn compile(optimised: Optimised, schema: &Schema) -> Result<Compiled, NotCompiled> {
    optimised.flow.check_end()?;
    let mut memory = Memory(ManuallyDrop::new(module()?));
    let module = &mut *memory.0;
    let program = &optimised.effects.program;
    let (live, _) = live_throughout(&optimised.flow, &optimised.effects, &optimised.kept);
    let mut native = Native {
        optimised: &optimised,
        program,
        schema,
        live: &live,
        alone: Vec::new(),
        warm: Vec::new(),
        call_conv: module.target_config().default_call_conv,
    };
    let blocks = native.blocks();
    let places = native.places();
    if blocks * places * size_of::<lower::Place>() > STATES_BYTES {
        return Err(NotCompiled::States { blocks, places });
    }
    if !native.parser_has_state() {
        native.warm = native.warm_tables();
    }
    let [parse, warm, ingress, egress, deparse] = [
        Part::Parse,
        Part::Warm,
        Part::Ingress,
        Part::Egress,
        Part::Deparse,
    ]
    .map(|part| function(module, &mut native, part));
    let ids = [parse?, warm?, ingress?, egress?, deparse?];
    let (alone, warmed) = (native.alone, native.warm);
    let finalized = module.finalize_definitions();
    finalized.map_err(|error| NotCompiled::Code(error.to_string()))?;
    let code = |id: FuncId| {
        let address = module.get_finalized_function(id);
        // SAFETY: the function was compiled with this signature.
        unsafe { std::mem::transmute::<*const u8, Code>(address) }
    };
    let codes = ids.map(code);
    let slots = program.template.len();
    Ok(Compiled {
        fallback: alone,
        resets: optimised.resets,
        codes,
        slots,
        warmed: warmed.into(),
        _memory: memory,
    })
}

fn module() -> Result<JITModule, NotCompiled> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("opt_level", "speed"),
        // In release builds too: what is wrong in the code of a client's program is an error, not a write to anywhere.
        ("enable_verifier", "true"),
        ("unwind_info", "false"),
        // A frame that does not fit on the stack ends the process; without, it would write to what lies behind.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ] {
        let set = flags.set(name, value);
        set.map_err(|error| NotCompiled::Code(error.to_string()))?;
    }
    let builder = cranelift_native::builder();
    let builder = builder.map_err(|error| NotCompiled::Processor(error.to_string()))?;
    let isa = builder.finish(settings::Flags::new(flags));
    let isa = isa.map_err(|error| NotCompiled::Processor(error.to_string()))?;
    Ok(JITModule::new(JITBuilder::with_isa(
        isa,
        default_libcall_names(),
    )))
}

/// Compiles one part.
fn function(
    module: &mut JITModule,
    native: &mut Native<'_>,
    part: Part,
) -> Result<FuncId, NotCompiled> {
    let error = |error: cranelift_module::ModuleError| NotCompiled::Code(format!("{error:?}"));
    let mut signature = Signature::new(native.call_conv);
    signature.params.push(AbiParam::new(types::I64));
    signature.returns.push(AbiParam::new(types::I64));
    let name = format!("{part:?}");
    let id = module
        .declare_function(&name, Linkage::Local, &signature)
        .map_err(error)?;
    let mut codegen = CodegenContext::for_function(Function::with_name_signature(
        UserFuncName::user(0, id.as_u32()),
        signature,
    ));
    let mut frontend = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut codegen.func, &mut frontend);
    let mut lower = Lower::new(native, builder);
    lower.part(part);
    lower.b.seal_all_blocks();
    lower.b.finalize();
    module.define_function(id, &mut codegen).map_err(error)?;
    Ok(id)
}

impl Lower<'_, '_> {
    fn part(&mut self, part: Part) {
        let roots = &self.native.optimised.flow.roots;
        match part {
            Part::Warm => {
                let warm = self.native.warm.clone();
                self.warm(&warm, calls::WARM_ENTRY);
                self.finish(lower::DONE);
            }
            Part::Ingress => self.code(roots[1]),
            Part::Egress => self.code(roots[2]),
            Part::Parse => {
                // `Pipeline::parse` begins at the frame's start.
                let (parsed, extracted) = (self.native.parsed(), self.native.extracted());
                for place in [parsed, extracted] {
                    self.state.places[place].known = lower::Known::Const(0);
                }
                let tail = self.b.create_block();
                self.tail = Some(tail);
                self.code(roots[0]);
                self.b.switch_to_block(tail);
                self.tail = None;
                self.state = lower::State::new(self.native.places());
                let warm = self.native.warm.clone();
                self.warm(&warm, calls::WARM_INDEX);
                self.code(roots[4]);
            }
            Part::Deparse => {
                let tail = self.b.create_block();
                self.tail = Some(tail);
                self.code(roots[3]);
                self.b.switch_to_block(tail);
                self.state = lower::State::new(self.native.places());
                self.emit();
            }
        }
    }
}
