// SPDX-License-Identifier: Apache-2.0
//! What compiled code and the functions that it calls share while they run on one packet.

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use crate::exec::Machine;
use crate::packet::{Packet, TAILROOM};

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
