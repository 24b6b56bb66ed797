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
    pub machine: &'c mut Machine<'m>,
    /// A panic of a function that the code called: it goes on when the code has ended.
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
    /// Calls `f` for compiled code, through which no panic may go; after one, the result is `otherwise`.
    #[inline(always)]
    pub fn contained<R>(&mut self, otherwise: R, f: impl FnOnce(&mut Self) -> R) -> R {
        match catch_unwind(AssertUnwindSafe(|| f(self))) {
            Ok(value) => value,
            Err(panic) => {
                self.panic.get_or_insert(panic);
                otherwise
            }
        }
    }
}
