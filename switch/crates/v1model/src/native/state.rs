// SPDX-License-Identifier: Apache-2.0
//! Registers, counters, tables and calculations.

use std::mem::{offset_of, size_of};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, BlockArg, InstBuilder, Value};
use cranelift_codegen::ir::{StackSlot, StackSlotData, StackSlotKind};

use super::calls::{self, ByWords, Context};
use super::lower::{trusted, Known, Lower};
use crate::bits::{limbs_for, low_mask};
use crate::compile::code::{Op, WordRun};
use crate::compile::layout::Slot;
use crate::compile::op::{inputs, lookup, SlotSet, Visit};
use crate::externs::cells::NARROW_BITS;
use crate::externs::{Cells, Counters, Registers};
use crate::schema::MatchKind;
use crate::state::State;
use crate::table::Table;

/// Words of a call's input that are written to the stack; a longer one the interpreter reads.
const INPUT_WORDS: usize = 1024;

impl Lower<'_, '_> {
    /// False when it is none of these.
    pub fn stateful(&mut self, op: &Op) -> bool {
        match *op {
            Op::RegisterRead {
                register,
                index,
                d,
                limbs: 1,
                w,
            } => self.register_read(register, index, d, w as u8),
            Op::RegisterWrite {
                register,
                index,
                a,
                limbs: 1,
            } => self.register_write(register, index, a),
            Op::Count { counter, index } => {
                self.count(counter, index);
                true
            }
            Op::Calculate { calculation, d, w } => {
                let value = self.calculation(usize::from(calculation));
                self.set(d, value, w);
                true
            }
            _ => false,
        }
    }

    /// The value of a calculation.
    pub fn calculation(&mut self, index: usize) -> Value {
        let value = self.word_sum(index).or_else(|| self.hash_of_words(index));
        if let Some(value) = value {
            return value;
        }
        let slots = self.native.program.template.len();
        let mut read = SlotSet::new(slots);
        inputs(self.native.program, index as u16, &mut |range| {
            range.for_each(|slot| read.add(slot));
        });
        self.flush(|slot| slot >= slots || read.contains(slot));
        let number = self.number(index as u64);
        self.call(calls::calculate(), &[number])[0]
    }

    /// Does `f` with the address of the cell at `index` of `cells`, where there is one; the result is that of `f`, or
    /// `otherwise`.
    fn in_cell(
        &mut self,
        cells: &CellsOf,
        index: Slot,
        otherwise: Option<Slot>,
        f: impl FnOnce(&mut Self, Value) -> Option<Value>,
    ) -> Option<Value> {
        let index = self.value(index);
        let arrays = self.first_of(cells.arrays);
        let address = |lower: &mut Self| {
            let first = lower.load(types::I64, arrays, cells.first as i32);
            let offset = match cells.size {
                4 | 8 | 16 => {
                    let shift = cells.size.trailing_zeros();
                    lower.b.ins().ishl_imm(index, i64::from(shift))
                }
                size => lower.b.ins().imul_imm(index, size as i64),
            };
            lower.b.ins().iadd(first, offset)
        };
        if self.bound(index) < cells.count {
            let address = address(self);
            return f(self, address);
        }
        let otherwise = otherwise.map(|slot| self.value(slot));
        let test = IntCC::UnsignedLessThan;
        let inside = self.b.ins().icmp_imm(test, index, cells.count as i64);
        let (yes, after) = (self.b.create_block(), self.b.create_block());
        let args: Vec<BlockArg> = otherwise.into_iter().map(BlockArg::Value).collect();
        self.b.ins().brif(inside, yes, &[], after, &args);
        self.b.switch_to_block(yes);
        let address = address(self);
        let value = f(self, address);
        let args: Vec<BlockArg> = value.into_iter().map(BlockArg::Value).collect();
        self.b.ins().jump(after, &args);
        self.b.switch_to_block(after);
        let bound = |value: Option<Value>| value.map_or(0, |value| self.bound(value));
        let bound = bound(value).max(bound(otherwise));
        otherwise.map(|_| {
            let joined = self.b.append_block_param(after, types::I64);
            self.set_bound(joined, bound);
            joined
        })
    }

    /// None where a register has several limbs.
    fn registers(&self, register: u16) -> Option<CellsOf> {
        let schema = &self.native.schema.registers[usize::from(register)];
        let (cells, first, size) = match limbs_for(schema.width) {
            1 if schema.width <= NARROW_BITS => {
                let cells = offset_of!(Registers, narrow);
                (cells, Cells::<u32>::FIRST, size_of::<u32>())
            }
            1 => {
                let cells = offset_of!(Registers, wide);
                (cells, Cells::<u64>::FIRST, size_of::<u64>())
            }
            _ => return None,
        };
        Some(CellsOf {
            arrays: offset_of!(State, registers) + Cells::<Registers>::FIRST,
            first: size_of::<Registers>() * usize::from(register) + cells + first,
            size,
            count: schema.size.into(),
        })
    }

    fn register_read(&mut self, register: u16, index: Slot, d: Slot, w: u8) -> bool {
        let Some(cells) = self.registers(register) else {
            return false;
        };
        let width = self.native.schema.registers[usize::from(register)].width;
        let value = self.in_cell(&cells, index, Some(d), |lower, address| {
            let value = match cells.size {
                4 => lower.b.ins().uload32(trusted(), address, 0),
                _ => lower.load(types::I64, address, 0),
            };
            lower.set_bound(value, low_mask(width));
            Some(lower.cut(value, w))
        });
        let value = value.expect("reading has a result");
        self.put(d.into(), Known::Value(value));
        true
    }

    fn register_write(&mut self, register: u16, index: Slot, a: Slot) -> bool {
        let Some(cells) = self.registers(register) else {
            return false;
        };
        let width = self.native.schema.registers[usize::from(register)].width;
        let value = self.value(a);
        let value = self.cut(value, width as u8);
        self.in_cell(&cells, index, None, |lower, address| {
            match cells.size {
                4 => lower.b.ins().istore32(trusted(), value, address, 0),
                _ => lower.b.ins().store(trusted(), value, address, 0),
            };
            None
        });
        true
    }

    fn count(&mut self, counter: u16, index: Slot) {
        let cells = CellsOf {
            arrays: offset_of!(State, counters) + Cells::<Counters>::FIRST,
            first: size_of::<Counters>() * usize::from(counter)
                + offset_of!(Counters, cells)
                + Cells::<[u64; 2]>::FIRST,
            size: size_of::<[u64; 2]>(),
            count: self.native.schema.counters[usize::from(counter)]
                .size
                .into(),
        };
        let bytes = self.context(offset_of!(Context<'_, '_>, ingress_bytes));
        self.in_cell(&cells, index, None, |lower, address| {
            let packets = lower.load(types::I64, address, 0);
            let packets = lower.b.ins().iadd_imm(packets, 1);
            lower.b.ins().store(trusted(), packets, address, 0);
            let sum = lower.load(types::I64, address, 8);
            let sum = lower.b.ins().iadd(sum, bytes);
            lower.b.ins().store(trusted(), sum, address, 8);
            None
        });
    }

    /// A lookup: where the arguments are (None: in memory already), and `Found::code`.
    pub fn lookup(&mut self, table: u16) -> (Option<Value>, Value) {
        let code = &self.native.program.tables[usize::from(table)];
        let number = self.number(table.into());
        if code.profile.is_some() || code.meter.is_some() || code.key.len() > INPUT_WORDS {
            let program = self.native.program;
            let touched = |f: &mut Visit| lookup(program, &program.tables[usize::from(table)], f);
            let code = self.with_memory(touched, |l| l.call(calls::apply(), &[number])[0]);
            return (None, code);
        }
        if let Some(words) = self.packed_key(table) {
            let mut args = vec![number];
            args.extend(&words);
            let found = self.call(calls::FIND[words.len() - 1](), &args);
            return (Some(found[0]), found[1]);
        }
        let limbs = self.key(table);
        let keys = &self.native.schema.tables[usize::from(table)].keys;
        if let ([key], [limb]) = (&keys[..], &limbs[..]) {
            if key.kind == MatchKind::Lpm {
                let found = self.call(calls::find_prefix(), &[number, *limb]);
                return (Some(found[0]), found[1]);
            }
        }
        let place = self.input(limbs.len());
        for (i, &limb) in limbs.iter().enumerate() {
            self.b.ins().stack_store(limb, place, i as i32 * 8);
        }
        let key = self.b.ins().stack_addr(types::I64, place, 0);
        let limbs = self.number(limbs.len() as u64);
        let found = self.call(calls::find(), &[number, key, limbs]);
        (Some(found[0]), found[1])
    }

    /// So many words of the stack for the input of the next call.
    fn input(&mut self, words: usize) -> StackSlot {
        let bytes = words as u32 * 8;
        let b = &mut self.b;
        let place = *self.input.get_or_insert_with(|| {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
            b.create_sized_stack_slot(data)
        });
        let size = &mut b.func.sized_stack_slots[place].size;
        *size = bytes.max(*size);
        place
    }

    /// The limbs of a table's key.
    fn key(&mut self, table: u16) -> Vec<Value> {
        let code = &self.native.program.tables[usize::from(table)];
        let mut limbs = Vec::new();
        for &(slot, mask) in &code.key {
            let value = self.value(slot);
            limbs.push(match self.bound(value) & !mask {
                0 => value,
                _ => self.b.ins().band_imm(value, mask as i64),
            });
        }
        limbs
    }

    /// The key of an exact table as it stands in records; None where it has more words than a call takes.
    fn packed_key(&mut self, table: u16) -> Option<Vec<Value>> {
        let words = self.native.packing(table)?;
        let mut limbs = self.key(table).into_iter();
        let mut packed = Vec::new();
        for word in &words {
            let mut value: Option<Value> = None;
            for (place, limb) in word.iter().zip(&mut limbs) {
                let part = match place.shift {
                    0 => limb,
                    shift => self.b.ins().ishl_imm(limb, i64::from(shift)),
                };
                value = Some(match value {
                    Some(value) => self.b.ins().bor(value, part),
                    None => part,
                });
            }
            packed.push(value.expect("a word has a limb"));
        }
        Some(packed)
    }

    /// Has what lookups in large tables will read come into the cache: `callee` for each that has many entries.
    pub fn warm(&mut self, tables: &[u16], callee: ByWords) {
        for &table in tables {
            let (warm, on) = (self.b.create_block(), self.b.create_block());
            let tables = self.first_of(offset_of!(State, tables) + Cells::<Table>::FIRST);
            let is_large = size_of::<Table>() * usize::from(table) + Table::IS_LARGE;
            let flags = trusted();
            let is_large = self
                .b
                .ins()
                .uload8(types::I64, flags, tables, is_large as i32);
            self.b.ins().brif(is_large, warm, &[], on, &[]);
            self.b.switch_to_block(warm);
            let state = self.state.clone();
            let mut args = vec![self.number(table.into())];
            args.extend(self.packed_key(table).unwrap_or_default());
            self.call(callee[args.len() - 2](), &args);
            // What was found on the way holds there only.
            self.state = state;
            self.b.ins().jump(on, &[]);
            self.b.switch_to_block(on);
        }
    }

    /// A hash of fields, which are written one behind the other on the stack; None for other calculations.
    fn hash_of_words(&mut self, index: usize) -> Option<Value> {
        let calculation = &self.native.program.calculations[index];
        let words = calculation
            .words
            .as_ref()
            .filter(|_| !calculation.payload)?;
        let mut present = Vec::new();
        for run in words {
            match self.known(run.valid) {
                Known::Const(0) => {}
                Known::Const(_) => present.extend(&run.words),
                _ => return None,
            }
        }
        if present.len() > INPUT_WORDS {
            return None;
        }
        // A word that is shorter than 64 bits is stored whole; the next one covers what is too much.
        let place = self.input(present.len() + 1);
        let mut at = 0;
        for word in present {
            assert!(word.bytes <= 8);
            let value = self.word(word);
            let value = self.b.ins().bswap(value);
            self.b.ins().stack_store(value, place, at);
            at += i32::from(word.bytes);
        }
        let first = self.b.ins().stack_addr(types::I64, place, 0);
        let (number, length) = (self.number(index as u64), self.number(at as u64));
        Some(self.call(calls::hash(), &[number, first, length])[0])
    }

    /// An Internet checksum of fields, and of the payload behind them; None for other calculations. Its input is never written
    /// down: one's complement sums do not mind in which order and in how large words they are added, so each field is added where
    /// it lies in its 64-bit word, and fields across two words are rotated (2^64 is 1 modulo 2^64 - 1).
    fn word_sum(&mut self, index: usize) -> Option<Value> {
        let calculation = &self.native.program.calculations[index];
        let runs = calculation.words.as_ref()?;
        // Behind an odd number of bytes, where a field lies depends on validity.
        let is_even = |run: &WordRun| run.words.iter().all(|word| word.bytes % 2 == 0);
        let is_sum = matches!(calculation.algorithm.as_str(), "csum16" | "cksum16");
        if !is_sum || !runs.iter().all(is_even) {
            return None;
        }
        let mut total = self.number(0);
        if calculation.payload {
            let slots = self.native.program.template.len();
            self.flush(|slot| slot >= slots);
            total = self.call(calls::payload_sum(), &[])[0];
        }
        for run in runs {
            let constants = run.words.iter().map(|word| u128::from(word.constant));
            // Modulo 2^16 - 1; only zero itself becomes zero.
            let constant = constants.sum::<u128>().checked_sub(1);
            let mut part = self.number(constant.map_or(0, |c| (c % 0xffff) as u64 + 1));
            for &(slot, shift) in run.words.iter().flat_map(|word| &word.fields) {
                // A field across two words is added whole where it ends.
                if let Ok(rotation) = u32::try_from(shift) {
                    let value = self.value(slot);
                    let rotated = self.rotated(value, rotation % 16);
                    part = self.b.ins().iadd(part, rotated);
                }
            }
            part = match self.known(run.valid) {
                Known::Const(0) => continue,
                Known::Const(_) => part,
                _ => {
                    let (valid, zero) = (self.value(run.valid), self.number(0));
                    self.b.ins().select(valid, part, zero)
                }
            };
            total = self.b.ins().iadd(total, part);
        }
        Some(self.folded(total))
    }

    /// A number below 2^49 that is `value` times 2^`rotation` modulo 2^16 - 1, and 0 only where `value` is.
    fn rotated(&mut self, value: Value, rotation: u32) -> Value {
        let small = self.bound(value) >> (48 - rotation) == 0;
        let value = if small {
            value
        } else {
            let low = self.cut(value, 32);
            let high = self.b.ins().ushr_imm(value, 32);
            self.b.ins().iadd(low, high)
        };
        match rotation {
            0 => value,
            _ => self.b.ins().ishl_imm(value, i64::from(rotation)),
        }
    }

    /// The complement of a one's complement sum, folded to 16 bits.
    fn folded(&mut self, mut sum: Value) -> Value {
        for bits in [32, 16, 16, 16] {
            let low = self.cut(sum, bits);
            let high = self.b.ins().ushr_imm(sum, i64::from(bits));
            sum = self.b.ins().iadd(low, high);
        }
        let sum = self.b.ins().bnot(sum);
        self.cut(sum, 16)
    }
}

/// The cells of one array of registers or counters.
struct CellsOf {
    /// Where the state has the arrays.
    arrays: usize,
    /// Where the arrays have the address of its first cell.
    first: usize,
    /// Bytes of a cell.
    size: usize,
    count: u64,
}
