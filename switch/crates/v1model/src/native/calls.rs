// SPDX-License-Identifier: Apache-2.0
//! The functions that compiled code calls: what the interpreter does on memory, and lookups.

use checksum::csum16;
use cranelift_codegen::ir::{types, AbiParam, Signature};
use cranelift_codegen::isa::CallConv;

use super::context::Context;
use crate::table::{Lookup, Table, Target};

/// `Found::code` of an action after a miss: this and the action; a hit is less.
pub(super) const MISS: u64 = 1 << 32;
/// No action, after a hit or, with `MISS`, after a miss.
const NO_ACTION: u64 = u32::MAX as u64;

/// What a lookup found.
#[repr(C)]
pub(super) struct Found {
    /// The arguments' limbs, which stay where they are while the packet is at work.
    args: *const u64,
    /// The action; from `MISS` on, of the default entry.
    code: u64,
}

/// A function that compiled code may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Callee {
    /// (index): an operation; 1 when the code goes on behind it.
    Interpret,
    /// (select): the case that the key matches.
    Select,
    /// (calculation): its value.
    Calculate,
    /// (calculation, address of its input, bytes): its value.
    Hash,
    /// The complement of the payload's Internet checksum.
    PayloadSum,
    /// (table): a lookup by the interpreter, key and arguments in memory.
    Apply,
    /// (table, address of the key's limbs, their number): a lookup.
    Find,
    /// (table, key): a lookup of a prefix, the only field, in one limb.
    FindPrefix,
    /// (table, words of the packed key): a lookup in an exact table.
    FindPacked(u8),
    /// The same, to come: the place in the index comes into the cache.
    WarmIndex(u8),
    /// The same: the entry, whose place in the index is there.
    WarmEntry(u8),
}

impl Callee {
    /// Arguments behind the context, and results.
    fn shape(self) -> (usize, usize) {
        match self {
            Callee::PayloadSum => (0, 1),
            Callee::Interpret | Callee::Select | Callee::Calculate | Callee::Apply => (1, 1),
            Callee::Hash => (3, 1),
            Callee::Find => (3, 2),
            Callee::FindPrefix => (2, 2),
            Callee::FindPacked(words) => (1 + usize::from(words), 2),
            Callee::WarmIndex(words) | Callee::WarmEntry(words) => (1 + usize::from(words), 0),
        }
    }

    pub fn signature(self, call_conv: CallConv) -> Signature {
        let (args, results) = self.shape();
        let mut signature = Signature::new(call_conv);
        let number = AbiParam::new(types::I64);
        signature.params.resize(args + 1, number);
        signature.returns.resize(results, number);
        signature
    }

    pub fn address(self) -> usize {
        match self {
            Callee::Interpret => interpret as *const () as usize,
            Callee::Select => select as *const () as usize,
            Callee::Calculate => calculate as *const () as usize,
            Callee::Hash => hash as *const () as usize,
            Callee::PayloadSum => payload_sum as *const () as usize,
            Callee::Apply => apply as *const () as usize,
            Callee::Find => find as *const () as usize,
            Callee::FindPrefix => find_prefix as *const () as usize,
            Callee::FindPacked(1) => find_1 as *const () as usize,
            Callee::FindPacked(2) => find_2 as *const () as usize,
            Callee::FindPacked(_) => find_3 as *const () as usize,
            Callee::WarmIndex(1) => warm_index_1 as *const () as usize,
            Callee::WarmIndex(2) => warm_index_2 as *const () as usize,
            Callee::WarmIndex(_) => warm_index_3 as *const () as usize,
            Callee::WarmEntry(1) => warm_entry_1 as *const () as usize,
            Callee::WarmEntry(2) => warm_entry_2 as *const () as usize,
            Callee::WarmEntry(_) => warm_entry_3 as *const () as usize,
        }
    }
}

impl Callee {
    /// Words that `FindPacked` takes at most.
    pub const WORDS: usize = 3;
}

unsafe extern "C" fn interpret(context: *mut Context<'_, '_>, index: u64) -> u64 {
    // SAFETY: compiled code passes its own context on, and waits.
    let context = unsafe { &mut *context };
    context.contained(0, |context| {
        let program = context.machine.program;
        // SAFETY: `context::run` has them of the packet, as many as the template has, and nobody else uses them.
        let slots =
            unsafe { std::slice::from_raw_parts_mut(context.slots, program.template.len()) };
        // SAFETY: `context::run` has the packet of a mutable reference, which nothing uses while this runs.
        let packet = unsafe { &mut *context.packet };
        let op = &program.fallback[index as usize];
        u64::from(context.machine.step(packet, slots, op))
    })
}

unsafe extern "C" fn select(context: *mut Context<'_, '_>, select: u64) -> u64 {
    // SAFETY: as in `interpret`.
    let context = unsafe { &mut *context };
    context.contained(0, |context| {
        let program = context.machine.program;
        // SAFETY: as in `interpret`.
        let slots = unsafe { std::slice::from_raw_parts(context.slots, program.template.len()) };
        let select = &program.selects[select as usize];
        context.machine.select(slots, select) as u64
    })
}

unsafe extern "C" fn calculate(context: *mut Context<'_, '_>, calculation: u64) -> u64 {
    // SAFETY: as in `interpret`.
    let context = unsafe { &mut *context };
    context.contained(0, |context| {
        let program = context.machine.program;
        // SAFETY: as in `interpret`.
        let slots = unsafe { std::slice::from_raw_parts(context.slots, program.template.len()) };
        // SAFETY: as in `interpret`.
        let packet = unsafe { &*context.packet };
        let payload = packet.payload();
        context
            .machine
            .calculate(slots, payload, calculation as usize)
    })
}

unsafe extern "C" fn hash(
    context: *mut Context<'_, '_>,
    calculation: u64,
    first: *const u8,
    length: u64,
) -> u64 {
    // SAFETY: as in `interpret`.
    let context = unsafe { &mut *context };
    context.contained(0, |context| {
        // SAFETY: the code has written so many bytes there.
        let bytes = unsafe { std::slice::from_raw_parts(first, length as usize) };
        context.machine.state.hashes[calculation as usize].compute(bytes)
    })
}

unsafe extern "C" fn payload_sum(context: *mut Context<'_, '_>) -> u64 {
    // SAFETY: as in `interpret`.
    let context = unsafe { &mut *context };
    context.contained(0, |context| {
        // SAFETY: as in `interpret`.
        let packet = unsafe { &*context.packet };
        u64::from(!csum16(packet.payload()))
    })
}

unsafe extern "C" fn apply(context: *mut Context<'_, '_>, table: u64) -> u64 {
    // SAFETY: as in `interpret`.
    let context = unsafe { &mut *context };
    context.contained(0, |context| {
        let words = context.machine.program.template.len();
        // SAFETY: as in `interpret`.
        let slots = unsafe { std::slice::from_raw_parts_mut(context.slots, words) };
        // SAFETY: as in `interpret`.
        let packet = unsafe { &*context.packet };
        let (hit, action) = context.machine.apply(packet, slots, table as usize);
        let action = action.map_or(NO_ACTION, |action| action.0.into());
        action + if hit { 0 } else { MISS }
    })
}

impl Found {
    const NOTHING: Found = Found {
        args: std::ptr::null(),
        code: MISS + NO_ACTION,
    };

    #[inline(always)]
    fn new(lookup: &Lookup<'_>) -> Found {
        let miss = if lookup.hit { 0 } else { MISS };
        match lookup.target {
            Target::Action(action, args) => Found {
                args: args.as_ptr(),
                code: miss + u64::from(action.0),
            },
            _ => Found {
                code: miss + NO_ACTION,
                ..Found::NOTHING
            },
        }
    }
}

unsafe extern "C" fn find(
    context: *mut Context<'_, '_>,
    table: u64,
    key: *const u64,
    limbs: u64,
) -> Found {
    // SAFETY: as in `interpret`.
    let context = unsafe { &mut *context };
    context.contained(Found::NOTHING, |context| {
        // SAFETY: the code has written as many limbs there as the table's key has.
        let key = unsafe { std::slice::from_raw_parts(key, limbs as usize) };
        let (now, bytes) = (context.machine.now, context.ingress_bytes as u32);
        let table = &mut context.machine.state.tables[table as usize];
        Found::new(&table.lookup(key, now, bytes))
    })
}

unsafe extern "C" fn find_prefix(context: *mut Context<'_, '_>, table: u64, key: u64) -> Found {
    // SAFETY: as in `interpret`.
    let context = unsafe { &mut *context };
    context.contained(Found::NOTHING, |context| {
        let (now, bytes) = (context.machine.now, context.ingress_bytes as u32);
        let table = &mut context.machine.state.tables[table as usize];
        Found::new(&table.lookup_prefix(key, now, bytes))
    })
}

#[inline(always)]
fn find_packed<const W: usize>(
    context: *mut Context<'_, '_>,
    table: u64,
    words: [u64; W],
) -> Found {
    // SAFETY: as in `interpret`.
    let context = unsafe { &mut *context };
    context.contained(Found::NOTHING, |context| {
        let (now, bytes) = (context.machine.now, context.ingress_bytes as u32);
        let table = &mut context.machine.state.tables[table as usize];
        Found::new(&table.lookup_packed(words, now, bytes))
    })
}

#[inline(always)]
fn warm(context: *mut Context<'_, '_>, table: u64, f: impl FnOnce(&Table)) {
    // SAFETY: as in `interpret`.
    let context = unsafe { &mut *context };
    context.contained((), |context| {
        f(&context.machine.state.tables[table as usize]);
    });
}

/// The functions for keys of so many words.
macro_rules! packed {
    ($find:ident, $index:ident, $entry:ident, $($word:ident),+) => {
        unsafe extern "C" fn $find(context: *mut Context<'_, '_>, at: u64, $($word: u64),+) -> Found {
            find_packed(context, at, [$($word),+])
        }

        unsafe extern "C" fn $index(context: *mut Context<'_, '_>, at: u64, $($word: u64),+) {
            warm(context, at, |table| table.warm_index([$($word),+]));
        }

        unsafe extern "C" fn $entry(context: *mut Context<'_, '_>, at: u64, $($word: u64),+) {
            warm(context, at, |table| table.warm_entry([$($word),+]));
        }
    };
}

packed!(find_1, warm_index_1, warm_entry_1, a);
packed!(find_2, warm_index_2, warm_entry_2, a, b);
packed!(find_3, warm_index_3, warm_entry_3, a, b, c);
