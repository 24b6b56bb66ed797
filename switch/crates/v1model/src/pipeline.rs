// SPDX-License-Identifier: Apache-2.0
//! `Pipeline`: a compiled program with its state, and the packet path that the device drives.
//!
//! What runs a program: machine code or the interpreter. Both do the same.

use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

use crate::bits::{low_mask, Nanos};
use crate::compile::flow::Id;
use crate::compile::{compiled, Compiled, ProgramId};
use crate::error::LoadError;
use crate::exec::{headers, Machine, Scratch};
use crate::externs::cells::prefetch_all;
use crate::json::Budget;
use crate::native::{Part, EMITTED, TIMED_OUT};
use crate::packet::{Effects, Packet, PacketAddresses, HEADROOM, OUT_OF_ORDER, TAILROOM};
use crate::schema::{FieldListId, Schema};
use crate::state::State;
use crate::trace::{Recorder, Step, Traced};

macro_rules! standard_metadata {
    ($($name:ident = $older:ident . $field:ident $(, $unit:literal)?;)*) => {
        /// Fields of `standard_metadata` that the switch itself reads or writes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum Std {
            $(#[doc = concat!("`", stringify!($field), "`" $(, ", ", $unit)?)] $name,)*
        }

        impl Std {
            /// Every field, with the header that has it in older programs, and its name.
            pub(crate) const ALL: [(Std, &'static str, &'static str); [$(Std::$name),*].len()] =
                [$((Std::$name, stringify!($older), stringify!($field))),*];
        }
    };
}

standard_metadata! {
    IngressPort = standard_metadata.ingress_port;
    EgressSpec = standard_metadata.egress_spec;
    EgressPort = standard_metadata.egress_port;
    InstanceType = standard_metadata.instance_type;
    PacketLength = standard_metadata.packet_length;
    EnqTimestamp = queueing_metadata.enq_timestamp, "µs";
    EnqQdepth = queueing_metadata.enq_qdepth, "packets";
    DeqTimedelta = queueing_metadata.deq_timedelta, "µs";
    DeqQdepth = queueing_metadata.deq_qdepth, "packets";
    IngressGlobalTimestamp = intrinsic_metadata.ingress_global_timestamp, "µs";
    EgressGlobalTimestamp = intrinsic_metadata.egress_global_timestamp, "µs";
    McastGrp = intrinsic_metadata.mcast_grp;
    EgressRid = intrinsic_metadata.egress_rid;
    ChecksumError = standard_metadata.checksum_error;
    ParserError = standard_metadata.parser_error;
    Priority = intrinsic_metadata.priority;
    Qid = queueing_metadata.qid;
}

/// A field resolved by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRef {
    pub(crate) slot: u32,
    /// Width in bits.
    pub width: u32,
}

/// Where a field of `standard_metadata` is; one that the program has not is the constant zero.
#[derive(Clone, Copy)]
struct StdSlot {
    slot: usize,
    mask: u64,
}

/// A program, compiled, and its state.
pub struct Pipeline {
    pub(crate) schema: Arc<Schema>,
    pub(crate) state: State,
    /// Memory that the program may take beyond what its JSON asks for.
    pub(crate) budget: Budget,
    compiled: Arc<Compiled>,
    std: [StdSlot; Std::ALL.len()],
    /// Metadata and headers.
    all: [(usize, usize); 1],
    scratch: Scratch,
    /// For parts of which nobody asks what they say; None while they run.
    spare_effects: Option<Box<Effects>>,
    engine: Engine,
    /// Of a pipeline that traces; none carries packets.
    recorder: Option<Box<Recorder>>,
}

/// Memory that a program may take unless its loader says otherwise.
pub const BUDGET_BYTES: u64 = 1 << 30;

/// Seed of `random` and of random selectors until `Pipeline::seed` is called.
const SEED: u64 = 0x5eed;

impl Pipeline {
    /// Loads p4c's BMv2 JSON of a v1model program. Anything unsupported is refused here, naming the JSON path.
    pub fn from_json(json: &[u8]) -> Result<Pipeline, LoadError> {
        Pipeline::from_json_within(json, BUDGET_BYTES)
    }

    /// The same for a program that may take so much memory: for its code, and for its tables, counters, meters and
    /// registers when they are full.
    pub fn from_json_within(json: &[u8], budget_bytes: u64) -> Result<Pipeline, LoadError> {
        let compiled = compiled(json, budget_bytes)?;
        Pipeline::from_compiled(compiled, budget_bytes)
    }

    fn from_compiled(compiled: Arc<Compiled>, budget_bytes: u64) -> Result<Pipeline, LoadError> {
        let program = &compiled.program;
        let algorithms: Vec<&str> = program
            .calculations
            .iter()
            .map(|c| c.algorithm.as_str())
            .collect();
        let schema = Arc::new(compiled.schema.clone());
        let state = State::new(&schema, &algorithms, SEED)?;
        let scratch = Scratch::new(program);
        Ok(Pipeline {
            budget: Budget::new(budget_bytes - compiled.bytes),
            schema,
            state,
            engine: match compiled.native {
                Some(Ok(_)) => Engine::Native,
                _ => Engine::Interpreter,
            },
            std: program.std.map(|field| match field {
                Some((slot, width)) => StdSlot {
                    slot: slot.into(),
                    mask: low_mask(width.into()),
                },
                None => StdSlot { slot: 0, mask: 0 },
            }),
            all: [(2, program.state_end)],
            compiled,
            scratch,
            spare_effects: None,
            recorder: None,
        })
    }

    /// The same for traces: it records what packets do.
    pub(crate) fn noted(compiled: Arc<Compiled>) -> Result<Pipeline, LoadError> {
        // The program itself runs already.
        let mut pipeline = Pipeline::from_compiled(compiled, u64::MAX)?;
        pipeline.engine = Engine::Interpreter;
        let recorder = Recorder::new(&pipeline.compiled.layout, pipeline.schema.clone());
        pipeline.recorder = Some(Box::new(recorder));
        Ok(pipeline)
    }

    /// The steps since the last call, and how many more there were than are kept; none but in a trace.
    pub fn take_steps(&mut self) -> (Vec<Step>, u64) {
        self.recorder.as_mut().map(|r| r.take()).unwrap_or_default()
    }

    /// Puts back what traced packets changed.
    pub(crate) fn undo(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.undo(&mut self.state);
        }
    }

    /// The compiled program: pipelines of one program share it, and their packets.
    #[inline]
    pub fn program_id(&self) -> ProgramId {
        self.compiled.id
    }

    /// What tracers of this pipeline are made from.
    pub fn traced(&self) -> Traced {
        Traced(self.compiled.clone())
    }

    /// A packet for this pipeline, reset.
    pub fn new_packet(&self) -> Box<Packet> {
        let template = self.compiled.program.template.clone();
        Box::new(Packet::with_slots(template, self.compiled.id))
    }

    /// Metadata to zero, headers invalid; keeps capacity and the frame.
    #[inline]
    pub fn reset(&self, pkt: &mut Packet) {
        self.reset_below(pkt, usize::MAX);
    }

    /// Metadata to zero; headers stay (an E2E clone, before its field list is copied).
    pub fn reset_metadata(&self, pkt: &mut Packet) {
        self.reset_below(pkt, self.compiled.program.headers_start);
    }

    /// Slots that a reset zeroes; the others are written before they are read.
    #[inline]
    fn resets(&self) -> &[(usize, usize)] {
        match &self.compiled.native {
            Some(Ok(code)) if self.engine == Engine::Native => &code.resets,
            _ => &self.all,
        }
    }

    #[inline]
    fn reset_below(&self, pkt: &mut Packet, most: usize) {
        for &(first, end) in self.resets() {
            if first < most {
                let slots = &mut pkt.slots[first..end.min(most)];
                match slots {
                    [slot] => *slot = 0,
                    slots => slots.fill(0),
                }
            }
        }
    }

    /// What runs this pipeline's program.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Why it has no machine code, where that was wanted.
    pub fn not_native(&self) -> Option<&str> {
        self.compiled
            .native
            .as_ref()?
            .as_ref()
            .err()
            .map(String::as_str)
    }

    /// Lets `engine` run it; false when there is no machine code.
    pub fn set_engine(&mut self, engine: Engine) -> bool {
        if engine == Engine::Native && !matches!(self.compiled.native, Some(Ok(_))) {
            return false;
        }
        self.engine = engine;
        true
    }

    /// Has machine code run a part of the program; what that returns. None where the interpreter is to do it.
    #[inline(always)]
    fn run_native(
        &mut self,
        part: Part,
        pkt: &mut Packet,
        now: Nanos,
        fx: &mut Effects,
    ) -> Option<u64> {
        let code = self.compiled.native.as_ref()?.as_ref().ok()?;
        if self.engine != Engine::Native {
            return None;
        }
        let mut machine = Machine {
            program: &self.compiled.program,
            state: &mut self.state,
            scratch: &mut self.scratch,
            fx,
            now,
            observer: &mut (),
        };
        Some(code.run(part, &mut machine, pkt))
    }

    /// Has the interpreter run a part of the program; a trace sees it where it is `shown`.
    #[inline(never)]
    fn run(&mut self, pkt: &mut Packet, now: Nanos, fx: &mut Effects, start: Id, shown: bool) {
        debug_assert_eq!(pkt.program, self.compiled.id, "a packet of another program");
        let recorder = self.recorder.as_deref_mut().filter(|_| shown);
        let mut machine = Machine {
            program: &self.compiled.program,
            state: &mut self.state,
            scratch: &mut self.scratch,
            fx,
            now,
            observer: &mut (),
        };
        match recorder {
            Some(recorder) => machine.observed_by(recorder).run(pkt, start),
            None => machine.run(pkt, start),
        }
    }

    /// Parser and verification of checksums; sets `parser_error` and `checksum_error`.
    pub fn parse(&mut self, pkt: &mut Packet, fx: &mut Effects) {
        pkt.parsed = 0;
        pkt.extracted = 0;
        self.std_set(
            pkt,
            Std::ParserError,
            self.compiled.program.error_codes.no_error,
        );
        let parsed = self.run_native(Part::Parse, pkt, 0, fx);
        let program = &self.compiled.program;
        let (start, verify) = (program.parser_start, program.verify_start);
        let timeout = program.error_codes.parser_timeout;
        if parsed.is_none() {
            self.run(pkt, 0, fx, start, true);
        }
        if std::mem::take(&mut fx.timed_out) {
            fx.parser_timed_out = true;
            self.std_set(pkt, Std::ParserError, timeout);
        }
        if parsed.is_none_or(|result| result == TIMED_OUT) {
            self.run(pkt, 0, fx, verify, false);
        }
    }

    /// Ingress looks into tables that are so large that `warm` pays, and packets may be parsed before those in front of them
    /// are handled: the parser keeps no state.
    #[inline]
    pub fn warm_pays(&self) -> bool {
        let native = self.compiled.native.as_ref();
        self.engine == Engine::Native
            && native.is_some_and(|code| {
                let code = code.as_ref();
                code.is_ok_and(|code| code.warms(&self.state.tables))
            })
    }

    /// Has what ingress will read of large tables for a parsed packet come into the cache; nothing else. Best called after
    /// other packets were parsed, and before others still are handled.
    #[inline]
    pub fn warm(&mut self, pkt: &mut Packet) {
        if !self.warm_pays() {
            return;
        }
        let mut fx = self.spare_effects.take().unwrap_or_default();
        self.run_native(Part::Warm, pkt, 0, &mut fx);
        self.spare_effects = Some(fx);
    }

    /// Has a packet that waited for long come into the cache again: best called some time before egress.
    #[inline]
    pub fn prefetch(&self, at: PacketAddresses) {
        prefetch_all(at.packet, size_of::<Packet>());
        for &(first, end) in self.resets() {
            let (first, count) = (first * size_of::<u64>(), (end - first) * size_of::<u64>());
            prefetch_all(at.slots + first, count);
        }
        prefetch_all(at.frame, 1);
    }

    /// The ingress control. Digests are sampled at its end.
    pub fn ingress(&mut self, pkt: &mut Packet, now: Nanos, fx: &mut Effects) {
        if self.run_native(Part::Ingress, pkt, now, fx).is_none() {
            self.run(pkt, now, fx, self.compiled.program.ingress_start, true);
        }
    }

    /// The egress control. Sets `packet_length` to the length with the headers that ingress added or removed, and
    /// `egress_spec` to something other than drop, before it runs.
    pub fn egress(&mut self, pkt: &mut Packet, now: Nanos, fx: &mut Effects) {
        self.std_set(pkt, Std::PacketLength, u64::from(pkt.length_bytes));
        self.std_set(pkt, Std::EgressSpec, self.compiled.program.drop_port + 1);
        if self.run_native(Part::Egress, pkt, now, fx).is_none() {
            self.run(pkt, now, fx, self.compiled.program.egress_start, true);
        }
    }

    /// Updates checksums and emits headers: `pkt.frame()` is then the frame to send, truncated where asked.
    pub fn deparse(&mut self, pkt: &mut Packet) {
        let mut fx = self.spare_effects.take().unwrap_or_default();
        self.deparse_with(pkt, &mut fx);
        fx.clear();
        self.spare_effects = Some(fx);
    }

    /// The same for who wants the deparser's `log_msg` lines and failed assertions.
    pub fn deparse_with(&mut self, pkt: &mut Packet, fx: &mut Effects) {
        let emitted = self.run_native(Part::Deparse, pkt, 0, fx);
        let start = self.compiled.program.deparser_start;
        if emitted.is_none() && start != 0 {
            self.run(pkt, 0, fx, start, true);
        }
        // Headers are written in front of the payload.
        pkt.buffer.zeros_from = pkt.buffer.zeros_from.max(pkt.buffer.start + pkt.parsed);
        if emitted != Some(EMITTED) {
            self.emit_anew(pkt);
        }
        pkt.parsed = 0;
        pkt.extracted = OUT_OF_ORDER;
        pkt.buffer.end = pkt
            .buffer
            .end
            .min(pkt.buffer.start.saturating_add(pkt.truncate_bytes as usize));
    }

    /// Writes all headers in front of the payload.
    #[inline(never)]
    fn emit_anew(&mut self, pkt: &mut Packet) {
        let bytes = &mut self.scratch.bytes;
        bytes.clear();
        let mut writer = headers::Writer {
            program: &self.compiled.program,
            slots: &pkt.slots,
            bytes,
        };
        writer.headers();
        let (length, buffer) = (bytes.len(), &mut pkt.buffer);
        let payload = buffer.start + pkt.parsed;
        buffer.start = payload.checked_sub(length).unwrap_or_else(|| {
            // Longer headers than there is room in front of the payload: move it.
            let to = HEADROOM + length;
            let end = to + buffer.end - payload;
            if buffer.bytes.len() < end + TAILROOM {
                buffer.bytes.resize(end + TAILROOM, 0);
            }
            buffer.bytes.copy_within(payload..buffer.end, to);
            buffer.end = end;
            buffer.zeros_from = buffer.zeros_from.max(end);
            HEADROOM
        });
        buffer.bytes[buffer.start..buffer.start + length].copy_from_slice(bytes);
    }

    /// Reads a field of `standard_metadata`; 0 when the program has none.
    #[inline]
    pub fn std_get(&self, pkt: &Packet, field: Std) -> u64 {
        pkt.slots[self.std[field as usize].slot]
    }

    /// Writes a field of `standard_metadata`, cut to its width; nothing when the program has none.
    #[inline]
    pub fn std_set(&self, pkt: &mut Packet, field: Std, value: u64) {
        let StdSlot { slot, mask } = self.std[field as usize];
        pkt.slots[slot] = value & mask;
    }

    /// Copies the fields of a list (preserved across clone, resubmit, recirculate).
    pub fn copy_field_list(&self, from: &Packet, to: &mut Packet, list: FieldListId) {
        for &(slot, slots) in &self.compiled.program.field_lists[list.index()] {
            let range = usize::from(slot)..usize::from(slot) + usize::from(slots);
            self.header_changes(to, range.start);
            to.slots[range.clone()].copy_from_slice(&from.slots[range]);
        }
    }

    /// Resolves a field, e.g. `scalars.userMetadata.queue_id` or `ipv4.ttl`; also by the last component
    /// of a user metadata field's name, as in `queue_id`, when exactly one has it. None for p4c's own local variables.
    pub fn field_by_name(&self, name: &str) -> Option<FieldRef> {
        let field = match name.contains('.') {
            true => self.compiled.layout.field_named(name),
            false => self.compiled.layout.metadata_field_named(name),
        }
        .filter(|field| field.width > 0 && self.compiled.layout.is_writable(field))?;
        Some(FieldRef {
            slot: u32::from(field.slot),
            width: field.width,
        })
    }

    /// Low 64 bits of a field.
    #[inline]
    pub fn field_get(&self, pkt: &Packet, field: FieldRef) -> u64 {
        pkt.slots[field.slot as usize]
    }

    /// Sets the low 64 bits of a field, cut to its width.
    #[inline]
    pub fn field_set(&self, pkt: &mut Packet, field: FieldRef, value: u64) {
        self.header_changes(pkt, field.slot as usize);
        pkt.slots[field.slot as usize] = value & low_mask(field.width);
    }

    /// A slot is written from outside the program: a header is no longer what the frame says.
    #[inline]
    fn header_changes(&self, pkt: &mut Packet, slot: usize) {
        if slot >= self.compiled.program.headers_start {
            pkt.extracted = OUT_OF_ORDER;
        }
    }

    /// Slots of all that a program's user can name.
    #[cfg(test)]
    pub(crate) fn visible_slots(&self) -> Vec<usize> {
        let local = self
            .compiled
            .layout
            .slots()
            .filter(|s| s.2)
            .map(|s| usize::from(s.0));
        let local: std::collections::HashSet<usize> = local.collect();
        (2..self.compiled.program.state_end)
            .filter(|slot| !local.contains(slot))
            .collect()
    }

    /// The egress_spec that means drop; 511.
    pub fn drop_port(&self) -> u32 {
        self.compiled.program.drop_port as u32
    }

    /// Seeds the program's `random` and random selectors.
    pub fn seed(&mut self, seed: u64) {
        self.state.seed(&self.compiled.program, seed);
    }

    /// Names and shapes of everything that the control plane can reach.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }
}

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Machine code, made when the program is loaded.
    Native,
    /// The interpreter.
    Interpreter,
}

/// Names the engine of pipelines for which nothing else is chosen, for tests: `native` or `interpreter`.
pub const ENGINE_VARIABLE: &str = "FAIRLANE_ENGINE";

/// 0: not chosen yet.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Engine, String> {
        match name {
            "native" => Ok(Engine::Native),
            "interpreter" => Ok(Engine::Interpreter),
            _ => Err(format!(
                "\"{name}\" is no engine; allowed: native, interpreter"
            )),
        }
    }
}

impl Engine {
    /// Makes this the engine of programs that are loaded from now on, in the whole process.
    pub fn choose(self) {
        CHOSEN.store(self as u8 + 1, Ordering::Relaxed);
    }

    /// The engine of programs that are loaded now: the one chosen, else that of `ENGINE_VARIABLE`, else `Native`.
    ///
    /// # Errors
    /// What is wrong with the variable's value.
    pub fn chosen() -> Result<Engine, String> {
        match CHOSEN.load(Ordering::Relaxed) {
            0 => {
                let engine = match std::env::var_os(ENGINE_VARIABLE) {
                    Some(name) => name.to_string_lossy().parse()?,
                    None => Engine::Native,
                };
                engine.choose();
                Ok(engine)
            }
            1 => Ok(Engine::Native),
            _ => Ok(Engine::Interpreter),
        }
    }
}
