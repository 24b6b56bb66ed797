// SPDX-License-Identifier: Apache-2.0
//! `Lower`: one start's blocks to one function. Within a function, slots are values in registers where they are known;
//! those that count later are written to the packet's memory at the end of the block that computes them.

use std::mem::offset_of;

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{self, types, InstBuilder, MemFlags, StackSlot, Value};
use cranelift_frontend::FunctionBuilder;

use super::calls::{self, Callee, Context};
use super::flow::{BlockCopy, MORE_COPIES};
use super::Native;
use crate::bits::low_mask;
use crate::compile::code::Op;
use crate::compile::layout::Slot;
use crate::compile::op::{touches, SlotSet, Touch, Visit};
use crate::exec::{Machine, Scratch};
use crate::packet::Packet;
use crate::pipeline::Std;

/// What a function returns when the code ran its course, and when it went round too often.
pub(super) const DONE: u64 = 0;
pub(crate) const TIMED_OUT: u64 = 1;

/// Plain memory that is there and aligned.
pub(super) fn trusted() -> MemFlags {
    MemFlags::trusted()
}

/// Bytes of a frame: at any address.
pub(super) fn unaligned() -> MemFlags {
    MemFlags::new().with_notrap()
}

/// Where the value of a slot is to be had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Known {
    /// In memory only.
    No,
    Const(u64),
    Value(Value),
    /// In the memory of a table's entry: `offset` bytes behind an address.
    Argument {
        entry: Value,
        offset: i32,
    },
}

/// One slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub known: Known,
    /// Memory has an older value.
    pub dirty: bool,
}

const UNKNOWN: Place = Place {
    known: Known::No,
    dirty: false,
};

/// All slots, and those of `Native` behind them.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub places: Vec<Place>,
    /// Slots that are dirty, perhaps with others and twice.
    pub dirty: Vec<u32>,
    /// Bytes of the frame that are known to be there.
    pub checked: u64,
}

impl State {
    /// Nothing is known.
    pub fn new(slots: usize) -> State {
        State {
            places: vec![UNKNOWN; slots],
            dirty: Vec::new(),
            checked: 0,
        }
    }

    /// A slot gets another value, which memory does not have.
    pub fn set(&mut self, slot: usize, known: Known) {
        if !self.places[slot].dirty {
            self.dirty.push(slot as u32);
        }
        self.places[slot] = Place { known, dirty: true };
    }

    /// Memory has the only value of a slot.
    pub fn forget(&mut self, slot: usize) {
        self.places[slot] = UNKNOWN;
    }

    /// What holds here and in `other`; what only one of them has in memory is in neither.
    pub fn meet(&mut self, other: &State) {
        for (place, other) in self.places.iter_mut().zip(&other.places) {
            if *place != *other || place.dirty {
                *place = UNKNOWN;
            }
        }
        self.dirty.clear();
        self.checked = self.checked.min(other.checked);
    }

    /// What is not in memory is gone.
    pub fn drop_dirty(&mut self) {
        for slot in self.dirty.drain(..) {
            let place = &mut self.places[slot as usize];
            if place.dirty {
                *place = UNKNOWN;
            }
        }
    }
}

pub(super) struct Lower<'l, 'f> {
    pub native: &'l mut Native<'f>,
    pub b: FunctionBuilder<'l>,
    pub context: Value,
    pub slots: Value,
    pub state: State,
    /// Largest value that a value can have.
    bounds: SecondaryMap<Value, u64>,
    /// Where inputs of calls are written, one after the other has been read.
    pub input: Option<StackSlot>,
    /// Where the code goes when it ends; returns when there is nothing more to do.
    pub tail: Option<ir::Block>,
    /// Where the code goes on after a panic: it returns.
    panicked: Option<ir::Block>,
    /// The copies of each block, by its index.
    pub copies: Vec<Vec<BlockCopy>>,
    /// How many more copies may be made.
    pub more: usize,
    /// The ends of the block at hand lead to copies by place.
    pub by_place: bool,
}

impl<'l, 'f> Lower<'l, 'f> {
    pub fn new(native: &'l mut Native<'f>, mut b: FunctionBuilder<'l>) -> Self {
        let start = b.create_block();
        b.append_block_params_for_function_params(start);
        b.switch_to_block(start);
        let context = b.block_params(start)[0];
        let offset = offset_of!(Context<'_, '_>, slots) as i32;
        let slots = b
            .ins()
            .load(types::I64, trusted().with_readonly(), context, offset);
        let state = State::new(native.places());
        Lower {
            native,
            b,
            context,
            slots,
            state,
            bounds: SecondaryMap::with_default(u64::MAX),
            input: None,
            tail: None,
            panicked: None,
            copies: Vec::new(),
            more: MORE_COPIES,
            by_place: false,
        }
    }

    // Values.

    pub fn bound(&self, value: Value) -> u64 {
        self.bounds[value]
    }

    pub fn set_bound(&mut self, value: Value, bound: u64) {
        self.bounds[value] = bound;
    }

    /// The value of a slot: a constant or in a register.
    pub fn known(&mut self, slot: Slot) -> Known {
        let slot = usize::from(slot);
        if let Some(constant) = self.native.constant(slot) {
            return Known::Const(constant);
        }
        let place = self.state.places[slot];
        let value = match place.known {
            Known::Const(_) | Known::Value(_) => return place.known,
            Known::No => {
                let offset = slot as i32 * 8;
                self.load(types::I64, self.slots, offset)
            }
            Known::Argument { entry, offset } => self.load(types::I64, entry, offset),
        };
        self.bounds[value] = self.native.most(slot);
        self.state.places[slot].known = Known::Value(value);
        Known::Value(value)
    }

    /// The same, in a register.
    pub fn value(&mut self, slot: Slot) -> Value {
        match self.known(slot) {
            Known::Value(value) => value,
            Known::Const(constant) => self.number(constant),
            _ => unreachable!("`known` gives a constant or a value"),
        }
    }

    pub fn number(&mut self, number: u64) -> Value {
        let value = self.b.ins().iconst(types::I64, number as i64);
        self.bounds[value] = number;
        value
    }

    /// A slot gets a value, which is cut to `w` bits.
    pub fn set(&mut self, slot: Slot, value: Value, w: u8) {
        let value = self.cut(value, w);
        self.put(slot.into(), Known::Value(value));
    }

    /// A slot gets a value.
    ///
    /// # Panics
    /// Where that is no slot, or a constant's: a mistake of the compiler.
    pub fn put(&mut self, slot: usize, known: Known) {
        self.native.assert_changes(slot);
        self.state.set(slot, known);
    }

    /// The low `w` bits.
    pub fn cut(&mut self, value: Value, w: u8) -> Value {
        let most = low_mask(w.into());
        if self.bounds[value] <= most {
            return value;
        }
        let narrow = match w {
            8 => Some(types::I8),
            16 => Some(types::I16),
            32 => Some(types::I32),
            _ => None,
        };
        let cut = match narrow {
            Some(ty) => {
                let low = self.b.ins().ireduce(ty, value);
                self.b.ins().uextend(types::I64, low)
            }
            None => self.b.ins().band_imm(value, most as i64),
        };
        self.bounds[cut] = most;
        cut
    }

    pub fn load(&mut self, ty: ir::Type, base: Value, offset: i32) -> Value {
        self.b.ins().load(ty, trusted(), base, offset)
    }

    /// A field of the context.
    pub fn context(&mut self, offset: usize) -> Value {
        self.constant(self.context, offset)
    }

    /// Memory that nothing changes while the code runs.
    pub fn constant(&mut self, base: Value, offset: usize) -> Value {
        let flags = trusted().with_readonly();
        self.b.ins().load(types::I64, flags, base, offset as i32)
    }

    /// Where the state has the first of its tables, registers or counters: `offset` is that of their `Cells`.
    pub fn first_of(&mut self, offset: usize) -> Value {
        let machine = self.context(offset_of!(Context<'_, '_>, machine));
        let state = self.constant(machine, offset_of!(Machine<'_>, state));
        self.constant(state, offset)
    }

    // Memory.

    pub fn store_place(&mut self, slot: usize) {
        let value = match self.state.places[slot].known {
            Known::Const(constant) => self.b.ins().iconst(types::I64, constant as i64),
            Known::Value(value) => value,
            Known::Argument { entry, offset } => self.load(types::I64, entry, offset),
            Known::No => return,
        };
        let (base, offset) = match self.native.pseudo(slot) {
            None => (self.slots, slot * 8),
            Some(Pseudo::Exited) => (self.context, offset_of!(Context<'_, '_>, exited)),
            Some(Pseudo::Parsed) => {
                let packet = self.context(offset_of!(Context<'_, '_>, packet));
                (packet, offset_of!(Packet, parsed))
            }
            Some(Pseudo::Extracted) => {
                let packet = self.context(offset_of!(Context<'_, '_>, packet));
                (packet, offset_of!(Packet, extracted))
            }
        };
        self.b.ins().store(trusted(), value, base, offset as i32);
    }

    /// Writes to memory what it has not, of the slots that `wanted` names.
    pub fn flush(&mut self, wanted: impl Fn(usize) -> bool) {
        let dirty = std::mem::take(&mut self.state.dirty);
        let mut left = Vec::with_capacity(dirty.len());
        for slot in dirty {
            let at = slot as usize;
            if !self.state.places[at].dirty {
                continue;
            }
            if !wanted(at) {
                left.push(slot);
                continue;
            }
            if let Known::Argument { entry, offset } = self.state.places[at].known {
                let value = self.load(types::I64, entry, offset);
                self.state.places[at].known = Known::Value(value);
            }
            self.store_place(at);
            self.state.places[at].dirty = false;
        }
        self.state.dirty = left;
    }

    /// Writes all that counts when the code ends here, and leaves the state as it is.
    pub fn store_kept(&mut self) {
        let mut dirty = self.state.dirty.clone();
        dirty.sort_unstable();
        dirty.dedup();
        for slot in dirty {
            let slot = slot as usize;
            if self.state.places[slot].dirty && self.native.is_kept(slot) {
                self.store_place(slot);
            }
        }
    }

    pub fn forget_dead(&mut self, live: &SlotSet) {
        let native = &*self.native;
        let state = &mut self.state;
        let places = &mut state.places;
        state.dirty.retain(|&slot| {
            let at = slot as usize;
            let wanted = places[at].dirty && (native.pseudo(at).is_some() || live.contains(at));
            if places[at].dirty && !wanted {
                places[at].known = Known::No;
                places[at].dirty = false;
            }
            wanted
        });
    }

    // Ends.

    /// Ends the code: what counts is in memory already.
    pub fn finish(&mut self, result: u64) {
        match self.tail {
            Some(tail) if result == DONE => {
                self.b.ins().jump(tail, &[]);
            }
            _ => {
                let result = self.number(result);
                self.b.ins().return_(&[result]);
            }
        }
    }

    /// Leaves the code unless `holds`, after `before`.
    pub fn leave_unless(&mut self, holds: Value, result: u64, before: impl FnOnce(&mut Self)) {
        let (on, out) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(out);
        self.b.ins().brif(holds, on, &[], out, &[]);
        self.b.switch_to_block(out);
        let state = self.state.clone();
        before(self);
        self.store_kept();
        self.finish(result);
        self.state = state;
        self.b.switch_to_block(on);
    }

    /// The parser's error, when the code leaves.
    pub fn parser_error(&mut self, code: Value) {
        if let Some((slot, w)) = self.native.program.std[Std::ParserError as usize] {
            self.set(slot, code, w);
        }
    }

    /// 1 where the test holds.
    pub fn compare(&mut self, test: IntCC, a: Slot, b: Slot) -> Value {
        match (self.known(a), self.known(b)) {
            (Known::Value(a), Known::Const(b)) => self.b.ins().icmp_imm(test, a, b as i64),
            (Known::Const(a), Known::Value(b)) => {
                let test = test.swap_args();
                self.b.ins().icmp_imm(test, b, a as i64)
            }
            _ => {
                let (a, b) = (self.value(a), self.value(b));
                self.b.ins().icmp(test, a, b)
            }
        }
    }

    // Operations.

    /// An operation that ends no block.
    pub fn op(&mut self, op: &Op) {
        if self.arithmetic(op) || self.stateful(op) || self.parser(op) {
            return;
        }
        match *op {
            Op::Exit => self.state.set(self.native.exited(), Known::Const(1)),
            Op::CheckExit => match self.state.places[self.native.exited()].known {
                Known::Const(_) => {
                    let holds = self.b.ins().iconst(types::I8, 0);
                    self.leave_unless(holds, DONE, |_| {});
                }
                _ => {
                    let offset = offset_of!(Context<'_, '_>, exited) as i32;
                    let exited = self.load(types::I64, self.context, offset);
                    let holds = self.b.ins().icmp_imm(IntCC::Equal, exited, 0);
                    self.leave_unless(holds, DONE, |_| {});
                }
            },
            Op::Step => {
                let machine = self.context(offset_of!(Context<'_, '_>, machine));
                let scratch = self.constant(machine, offset_of!(Machine<'_>, scratch));
                let offset = offset_of!(Scratch, steps_left) as i32;
                let left = self.load(types::I32, scratch, offset);
                self.leave_unless(left, TIMED_OUT, |_| {});
                let left = self.b.ins().iadd_imm(left, -1);
                self.b.ins().store(trusted(), left, scratch, offset);
            }
            Op::ParserError { code } => {
                let code = self.value(code);
                self.parser_error(code);
            }
            _ => {
                self.interpret(op);
            }
        }
    }

    /// Has the interpreter do an operation; 1 when the code goes on behind it.
    pub fn interpret(&mut self, op: &Op) -> Value {
        let index = self.native.alone(op);
        let (program, op) = (self.native.program, *op);
        self.with_memory(
            |f| touches(program, &op, f),
            |lower| {
                let index = lower.number(index);
                lower.call(calls::interpret(), &[index])[0]
            },
        )
    }

    /// Does `f`, which does an operation on memory that touches these slots.
    pub fn with_memory<R>(
        &mut self,
        touched: impl FnOnce(&mut Visit),
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let slots = self.native.program.template.len();
        let (mut read, mut written) = (SlotSet::new(slots), SlotSet::new(slots));
        touched(&mut |touch, range| {
            for slot in range {
                if touch != Touch::Writes {
                    read.add(slot);
                }
                if touch != Touch::Reads {
                    written.add(slot);
                }
            }
        });
        self.flush(|slot| slot >= slots || read.contains(slot));
        let result = f(self);
        for slot in (0..slots).filter(|slot| written.contains(*slot)) {
            self.native.assert_changes(slot);
            self.state.forget(slot);
        }
        result
    }

    /// Calls a function of ours; the results.
    pub fn call(&mut self, callee: Callee, args: &[Value]) -> Vec<Value> {
        let signature = callee.signature(self.native.call_conv);
        let signature = self.b.import_signature(signature);
        let address = self.b.ins().iconst(types::I64, callee.address as i64);
        let mut all = vec![self.context];
        all.extend(args);
        let call = self.b.ins().call_indirect(signature, address, &all);
        let results = self.b.inst_results(call).to_vec();
        self.leave_after_panic();
        results
    }

    /// Leaves the code, and all as it is, when the function that was called has panicked.
    fn leave_after_panic(&mut self) {
        let panicked = offset_of!(Context<'_, '_>, panicked) as i32;
        let panicked = self.load(types::I64, self.context, panicked);
        let (on, known) = (self.b.create_block(), self.panicked);
        let out = known.unwrap_or_else(|| self.b.create_block());
        self.b.ins().brif(panicked, out, &[], on, &[]);
        if known.is_none() {
            self.panicked = Some(out);
            self.b.set_cold_block(out);
            self.b.switch_to_block(out);
            let done = self.number(DONE);
            self.b.ins().return_(&[done]);
        }
        self.b.switch_to_block(on);
    }
}

/// What is kept like slots beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pseudo {
    /// `Packet::parsed`
    Parsed,
    /// `Packet::extracted`
    Extracted,
    /// `Context::exited`
    Exited,
}
