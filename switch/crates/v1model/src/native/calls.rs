// SPDX-License-Identifier: Apache-2.0
//! The functions that compiled code calls: what the interpreter does on memory, and lookups.

use checksum::csum16;
use cranelift_codegen::ir::{types, AbiParam, Signature};
use cranelift_codegen::isa::CallConv;

use super::context::Context;
use crate::entry::Nanos;
use crate::exec::Machine;
use crate::packet::Packet;
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

/// What a function has of the packet at work.
struct Call<'c, 'm> {
    machine: &'c mut Machine<'m>,
    packet: &'c mut Packet,
    slots: &'c mut [u64],
    /// Length of the frame as it came in.
    bytes: u32,
}

/// Does `f` for compiled code: see `Context::contained`.
///
/// # Safety
/// `context` is that of compiled code, which passes its own on, and waits.
#[inline(always)]
unsafe fn enter<R>(
    context: *mut Context<'_, '_>,
    otherwise: R,
    f: impl FnOnce(Call<'_, '_>) -> R,
) -> R {
    // SAFETY: as the caller says.
    let context = unsafe { &mut *context };
    context.contained(otherwise, |context| {
        let words = context.machine.program.template.len();
        f(Call {
            machine: context.machine,
            // SAFETY: `context::run` has the packet of a mutable reference, which nothing uses while this runs.
            packet: unsafe { &mut *context.packet },
            // SAFETY: `context::run` has them of the packet, as many as the template has, and nobody else uses them.
            slots: unsafe { std::slice::from_raw_parts_mut(context.slots, words) },
            bytes: context.ingress_bytes as u32,
        })
    })
}

unsafe extern "C" fn interpret(context: *mut Context<'_, '_>, index: u64) -> u64 {
    let step = |call: Call<'_, '_>| {
        let op = &call.machine.program.fallback[index as usize];
        u64::from(call.machine.step(call.packet, call.slots, op))
    };
    // SAFETY: compiled code calls it.
    unsafe { enter(context, 0, step) }
}

unsafe extern "C" fn select(context: *mut Context<'_, '_>, select: u64) -> u64 {
    let case = |call: Call<'_, '_>| {
        let select = &call.machine.program.selects[select as usize];
        call.machine.select(call.slots, select) as u64
    };
    // SAFETY: compiled code calls it.
    unsafe { enter(context, 0, case) }
}

unsafe extern "C" fn calculate(context: *mut Context<'_, '_>, calculation: u64) -> u64 {
    let value = |call: Call<'_, '_>| {
        let payload = call.packet.payload();
        let index = calculation as usize;
        call.machine.calculate(call.slots, payload, index)
    };
    // SAFETY: compiled code calls it.
    unsafe { enter(context, 0, value) }
}

unsafe extern "C" fn hash(
    context: *mut Context<'_, '_>,
    calculation: u64,
    first: *const u8,
    length: u64,
) -> u64 {
    let value = |call: Call<'_, '_>| {
        // SAFETY: the code has written so many bytes there.
        let bytes = unsafe { std::slice::from_raw_parts(first, length as usize) };
        call.machine.state.hashes[calculation as usize].compute(bytes)
    };
    // SAFETY: compiled code calls it.
    unsafe { enter(context, 0, value) }
}

unsafe extern "C" fn payload_sum(context: *mut Context<'_, '_>) -> u64 {
    let sum = |call: Call<'_, '_>| u64::from(!csum16(call.packet.payload()));
    // SAFETY: compiled code calls it.
    unsafe { enter(context, 0, sum) }
}

unsafe extern "C" fn apply(context: *mut Context<'_, '_>, table: u64) -> u64 {
    let lookup = |call: Call<'_, '_>| {
        let (hit, action) = call.machine.apply(call.packet, call.slots, table as usize);
        let action = action.map_or(NO_ACTION, |action| action.0.into());
        action + if hit { 0 } else { MISS }
    };
    // SAFETY: compiled code calls it.
    unsafe { enter(context, 0, lookup) }
}

/// Looks a packet up in a table.
///
/// # Safety
/// As `enter`.
#[inline(always)]
unsafe fn find_in(
    context: *mut Context<'_, '_>,
    table: u64,
    lookup: impl for<'t> FnOnce(&'t mut Table, Nanos, u32) -> Lookup<'t>,
) -> Found {
    let find = |call: Call<'_, '_>| {
        let table = &mut call.machine.state.tables[table as usize];
        Found::new(&lookup(table, call.machine.now, call.bytes))
    };
    // SAFETY: as the caller says.
    unsafe { enter(context, Found::NOTHING, find) }
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
    // SAFETY: the code has written as many limbs there as the table's key has.
    let key = unsafe { std::slice::from_raw_parts(key, limbs as usize) };
    // SAFETY: compiled code calls it.
    unsafe { find_in(context, table, |t, now, bytes| t.lookup(key, now, bytes)) }
}

unsafe extern "C" fn find_prefix(context: *mut Context<'_, '_>, table: u64, key: u64) -> Found {
    // SAFETY: compiled code calls it.
    unsafe {
        find_in(context, table, |t, now, bytes| {
            t.lookup_prefix(key, now, bytes)
        })
    }
}

/// # Safety
/// As `enter`.
#[inline(always)]
unsafe fn warm(context: *mut Context<'_, '_>, table: u64, f: impl FnOnce(&Table)) {
    let warm = |call: Call<'_, '_>| f(&call.machine.state.tables[table as usize]);
    // SAFETY: as the caller says.
    unsafe { enter(context, (), warm) }
}

/// The functions for keys of so many words.
macro_rules! packed {
    ($find:ident, $index:ident, $entry:ident, $($word:ident),+) => {
        unsafe extern "C" fn $find(context: *mut Context<'_, '_>, at: u64, $($word: u64),+) -> Found {
            // SAFETY: compiled code calls it.
            unsafe { find_in(context, at, |t, now, bytes| t.lookup_packed([$($word),+], now, bytes)) }
        }

        unsafe extern "C" fn $index(context: *mut Context<'_, '_>, at: u64, $($word: u64),+) {
            // SAFETY: compiled code calls it.
            unsafe { warm(context, at, |table| table.warm_index([$($word),+])) }
        }

        unsafe extern "C" fn $entry(context: *mut Context<'_, '_>, at: u64, $($word: u64),+) {
            // SAFETY: compiled code calls it.
            unsafe { warm(context, at, |table| table.warm_entry([$($word),+])) }
        }
    };
}

packed!(find_1, warm_index_1, warm_entry_1, a);
packed!(find_2, warm_index_2, warm_entry_2, a, b);
packed!(find_3, warm_index_3, warm_entry_3, a, b, c);
