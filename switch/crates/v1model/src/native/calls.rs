// SPDX-License-Identifier: Apache-2.0
//! The functions that compiled code calls: what the interpreter does on memory, and lookups.
//!
//! What compiled code and the functions that it calls share while they run on one packet.

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use checksum::csum16;
use cranelift_codegen::ir::{types, AbiParam, Signature};
use cranelift_codegen::isa::CallConv;

use crate::bits::Nanos;
use crate::exec::Machine;
use crate::packet::{Packet, TAILROOM};
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

/// A function that compiled code may call: its address, and how many numbers it gets behind the context and gives.
#[derive(Clone, Copy)]
pub(super) struct Callee {
    pub address: usize,
    args: usize,
    results: usize,
}

impl Callee {
    /// Words that a packed key has at most.
    pub const WORDS: usize = 3;

    pub fn signature(self, call_conv: CallConv) -> Signature {
        let mut signature = Signature::new(call_conv);
        let number = AbiParam::new(types::I64);
        signature.params.resize(self.args + 1, number);
        signature.returns.resize(self.results, number);
        signature
    }
}

/// What a function has of the packet at work.
struct Call<'c, 'm> {
    machine: &'c mut Machine<'m>,
    packet: &'c mut Packet,
    slots: &'c mut [u64],
    /// Length of the frame as it came in.
    bytes: u32,
}

/// `name(call, arguments) -> Result, otherwise, body;`: numbers in, numbers out; see `Context::contained`.
macro_rules! callees {
    ($($(#[$doc:meta])* $name:ident($call:ident $(, $arg:ident)*) -> $result:ty, $otherwise:expr, $body:expr;)*) => {$(
        $(#[$doc])*
        pub(super) fn $name() -> Callee {
            unsafe extern "C" fn code(context: *mut Context<'_, '_>, $($arg: u64),*) -> $result {
                // SAFETY: compiled code passes its own context on, and waits.
                let context = unsafe { &mut *context };
                context.contained($otherwise, |context| {
                    let words = context.machine.program.template.len();
                    #[allow(unused_mut)]
                    let mut $call = Call {
                        machine: context.machine,
                        // SAFETY: `context::run` has the packet of a mutable reference, which nothing uses while this runs.
                        packet: unsafe { &mut *context.packet },
                        // SAFETY: `context::run` has them of the packet, as many as the template has, and nobody else uses them.
                        slots: unsafe { std::slice::from_raw_parts_mut(context.slots, words) },
                        bytes: context.ingress_bytes as u32,
                    };
                    $body
                })
            }
            Callee {
                address: code as *const () as usize,
                args: <[&str]>::len(&[$(stringify!($arg)),*]),
                results: size_of::<$result>() / size_of::<u64>(),
            }
        }
    )*};
}

callees! {
    /// An operation, by its index; 1 when the code goes on behind it.
    interpret(call, index) -> u64, 0, {
        let op = &call.machine.program.fallback[index as usize];
        call.machine.step(call.packet, call.slots, op).into()
    };
    /// The case of a select that the key matches.
    select(call, select) -> u64, 0, {
        let select = &call.machine.program.selects[select as usize];
        call.machine.select(call.slots, select) as u64
    };
    /// The value of a calculation.
    calculate(call, calculation) -> u64, 0, {
        call.machine.calculate(call.slots, call.packet.payload(), calculation as usize)
    };
    /// The same for an input of so many bytes.
    hash(call, calculation, first, length) -> u64, 0, {
        // SAFETY: the code has written so many bytes there.
        let bytes = unsafe { std::slice::from_raw_parts(first as *const u8, length as usize) };
        call.machine.state.hashes[calculation as usize].compute(bytes)
    };
    /// The complement of the payload's Internet checksum.
    payload_sum(call) -> u64, 0, u64::from(!csum16(call.packet.payload()));
    /// A lookup by the interpreter, key and arguments in memory: `Found::code`.
    apply(call, table) -> u64, 0, {
        let (hit, action) = call.machine.apply(call.packet, call.slots, table as usize);
        let action = action.map_or(NO_ACTION, |action| action.0.into());
        action + if hit { 0 } else { MISS }
    };
    /// A lookup of a key of so many limbs.
    find(call, table, key, limbs) -> Found, Found::NOTHING, {
        // SAFETY: the code has written as many limbs there as the table's key has.
        let key = unsafe { std::slice::from_raw_parts(key as *const u64, limbs as usize) };
        call.find(table, |t, now, bytes| t.lookup(key, now, bytes))
    };
    /// A lookup of a prefix, the only field, in one limb.
    find_prefix(call, table, key) -> Found, Found::NOTHING, {
        call.find(table, |t, now, bytes| t.lookup_prefix(key, now, bytes))
    };
}

/// For packed keys of so many words: a lookup in an exact table; the same to come, when the place in the index comes into the
/// cache; and when the entry does, whose place in the index is there.
macro_rules! packed {
    ($find:ident, $index:ident, $entry:ident, $($word:ident),+) => {
        callees! {
            $find(call, table, $($word),+) -> Found, Found::NOTHING, {
                call.find(table, |t, now, bytes| t.lookup_packed([$($word),+], now, bytes))
            };
            $index(call, table, $($word),+) -> (), (), call.table(table).warm_index([$($word),+]);
            $entry(call, table, $($word),+) -> (), (), call.table(table).warm_entry([$($word),+]);
        }
    };
}

packed!(find_1, warm_index_1, warm_entry_1, a);
packed!(find_2, warm_index_2, warm_entry_2, a, b);
packed!(find_3, warm_index_3, warm_entry_3, a, b, c);

/// By the words of a packed key, less one.
pub(super) type ByWords = [fn() -> Callee; Callee::WORDS];
pub(super) const FIND: ByWords = [find_1, find_2, find_3];
pub(super) const WARM_INDEX: ByWords = [warm_index_1, warm_index_2, warm_index_3];
pub(super) const WARM_ENTRY: ByWords = [warm_entry_1, warm_entry_2, warm_entry_3];

impl Call<'_, '_> {
    #[inline(always)]
    fn table(&mut self, table: u64) -> &mut Table {
        &mut self.machine.state.tables[table as usize]
    }

    #[inline(always)]
    fn find(
        &mut self,
        table: u64,
        lookup: impl for<'t> FnOnce(&'t mut Table, Nanos, u32) -> Lookup<'t>,
    ) -> Found {
        let (now, bytes) = (self.machine.now, self.bytes);
        let lookup = lookup(self.table(table), now, bytes);
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

impl Found {
    const NOTHING: Found = Found {
        args: std::ptr::null(),
        code: MISS + NO_ACTION,
    };
}

/// The argument of all compiled code. What it reads itself is in front.
#[repr(C)]
pub(super) struct Context<'c, 'm> {
    pub slots: *mut u64,
    /// First byte of the frame.
    pub frame: *mut u8,
    /// Bytes of the frame.
    pub length: u64,
    pub packet: *mut Packet,
    pub ingress_bytes: u64,
    /// `exit` was called.
    pub exited: u64,
    /// 1 when a function that the code called has panicked: the code ends there.
    pub panicked: u64,
    pub machine: &'c mut Machine<'m>,
    /// That panic, which goes on when the code has ended.
    panic: Option<Box<dyn Any + Send>>,
}

/// Compiled code.
pub(super) type Code = unsafe extern "C" fn(*mut Context<'_, '_>) -> u64;

/// Runs `code`, which was compiled from the machine's program, on a packet of it, which has so many slots.
///
/// # Panics
/// When the packet was made by another pipeline.
#[inline(always)]
pub(super) fn run(code: Code, slots: usize, machine: &mut Machine<'_>, packet: &mut Packet) -> u64 {
    assert!(
        packet.slots.len() == slots,
        "the packet is of another pipeline"
    );
    assert!(
        packet.buffer.start <= packet.buffer.end
            && packet.buffer.end + TAILROOM <= packet.buffer.bytes.len(),
        "the frame lies in its buffer"
    );
    let mut context = Context {
        // Functions that the code calls get them apart from the packet, whose own they leave alone.
        slots: packet.slots.as_mut_ptr(),
        frame: packet.buffer.bytes[packet.buffer.start..].as_mut_ptr(),
        length: (packet.buffer.end - packet.buffer.start) as u64,
        ingress_bytes: packet.ingress_bytes.into(),
        packet: &raw mut *packet,
        exited: 0,
        panicked: 0,
        machine,
        panic: None,
    };
    // SAFETY: the code is that of the machine's program, whose slots the packet has; the pointers are to what lives
    // longer than the call and is not used otherwise meanwhile.
    let result = unsafe { code(&raw mut context) };
    if let Some(panic) = context.panic.take() {
        resume_unwind(panic);
    }
    result
}

impl Context<'_, '_> {
    /// Calls `f` for compiled code, through which no panic may go; after one, the result is `otherwise`, which nobody uses.
    #[inline(always)]
    pub fn contained<R>(&mut self, otherwise: R, f: impl FnOnce(&mut Self) -> R) -> R {
        match catch_unwind(AssertUnwindSafe(|| f(self))) {
            Ok(value) => value,
            Err(panic) => {
                self.panic = Some(panic);
                self.panicked = 1;
                otherwise
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, AssertUnwindSafe};

    use serde_json::json;

    use crate::minimal::*;
    use crate::{Effects, Engine, Pipeline};

    /// A fault of ours in a function that machine code calls: nothing happens behind it, as in the interpreter.
    #[test]
    fn after_a_panic_the_code_does_nothing_more() {
        let write = |register: &str, index: u64| {
            let register = json!({"type": "register_array", "value": register});
            op(
                "register_write",
                json!([register, number(index), number(1)]),
            )
        };
        let hash = op(
            "modify_field_with_hash_based_offset",
            json!([field("h", "n"), number(0), {"type": "calculation", "value": "c"}, number(8)]),
        );
        let mut program = minimal(
            &[write("r32", 0), hash, write("r32", 1), write("r100", 1)],
            &[],
        );
        let input = json!([field("h", "n")]);
        program["calculations"] = json!([{"name": "c", "id": 0, "algo": "crc32", "input": input}]);
        for engine in [Engine::Interpreter, Engine::Native] {
            let mut pipeline = Pipeline::from_json(&bytes(&program)).unwrap();
            if !pipeline.set_engine(engine) {
                continue; // Tests may be for the interpreter alone.
            }
            pipeline.state.hashes.clear();
            let (mut packet, mut effects) = (pipeline.new_packet(), Effects::new());
            packet.load(&frame(1, 2, 3));
            pipeline.reset(&mut packet);
            pipeline.parse(&mut packet, &mut effects);
            let ingress = || pipeline.ingress(&mut packet, 0, &mut effects);
            assert!(catch_unwind(AssertUnwindSafe(ingress)).is_err());
            let written = |register: &str, index| {
                let register = pipeline.find_register(register).unwrap();
                pipeline.register_get(register, index).unwrap().to_u64()
            };
            let all = [("r32", 0), ("r32", 1), ("r100", 1)].map(|(r, i)| written(r, i));
            assert_eq!(all, [Some(1), Some(0), Some(0)], "{engine:?}");
        }
    }
}
