// SPDX-License-Identifier: Apache-2.0
//! The parser's moves: headers taken out of the frame, and what is said when it is too short for them.

use super::{frame, headers, mask, Machine};
use crate::compile::code::NOT_EMITTED;
use crate::compile::layout::HeaderType;
use crate::packet::{Packet, OUT_OF_ORDER};
use crate::pipeline::Std;
use crate::trace::Observer;

impl<O: Observer> Machine<'_, O> {
    /// False: the code ends with an error.
    pub(super) fn parser_error(&self, slots: &mut [u64], code: u64) -> bool {
        if let Some((slot, w)) = self.program.std[Std::ParserError as usize] {
            slots[usize::from(slot)] = code & mask(w);
        }
        false
    }

    /// Extracts a header, whose varbit field has so many bits; false after a parser error.
    pub(super) fn extract(
        &self,
        packet: &mut Packet,
        slots: &mut [u64],
        element: usize,
        bits: Option<u64>,
    ) -> bool {
        let program = self.program;
        let (element, place) = (&program.elements[element], program.places[element]);
        let ty = &program.headers[usize::from(element.header)];
        let (base, before) = (usize::from(element.base), packet.extracted);
        if !self.extract_to(packet, slots, ty, base, bits) {
            return false;
        }
        headers::mark_valid(slots, base, &element.siblings);
        // In the deparser's order as long as each place is behind those before.
        let bit = 1 << place;
        if bits.is_none() && before < bit && place != NOT_EMITTED {
            packet.extracted = before | bit;
        }
        true
    }

    /// Extracts the fields to the block at `base`; false after a parser error.
    fn extract_to(
        &self,
        packet: &mut Packet,
        slots: &mut [u64],
        ty: &HeaderType,
        base: usize,
        bits: Option<u64>,
    ) -> bool {
        let codes = self.program.error_codes;
        let varbit = bits.unwrap_or(0);
        if !varbit.is_multiple_of(8) {
            return self.parser_error(slots, codes.parser_invalid_argument);
        }
        let at = packet.buffer.start + packet.parsed;
        let bytes = u64::from(ty.fixed_bytes()) + varbit / 8;
        if bytes > (packet.buffer.end - at) as u64 {
            return self.parser_error(slots, codes.packet_too_short);
        }
        if varbit > ty.varbit.map_or(0, |field| ty.fields[field].width.into()) {
            return self.parser_error(slots, codes.header_too_short);
        }
        let frame = &packet.buffer.bytes;
        frame::extract(ty, frame, at, varbit as u32, slots, base);
        packet.parsed += bytes as usize;
        packet.extracted = OUT_OF_ORDER;
        true
    }

    /// Extracts to the first free element of a stack; false after a parser error.
    pub(super) fn extract_next(
        &self,
        packet: &mut Packet,
        slots: &mut [u64],
        stack: u16,
        member: u16,
        bits: Option<u64>,
    ) -> bool {
        let program = self.program;
        let stack = &program.stacks[usize::from(stack)];
        let member = &stack.members[usize::from(member)];
        let next = slots[usize::from(stack.next)];
        if next >= u64::from(stack.count) {
            return self.parser_error(slots, program.error_codes.stack_out_of_bounds);
        }
        let base = usize::from(stack.base)
            + next as usize * usize::from(stack.stride)
            + usize::from(member.offset);
        let ty = &program.headers[member.ty];
        if !self.extract_to(packet, slots, ty, base, bits) {
            return false;
        }
        headers::mark_valid(slots, base, &member.siblings);
        slots[usize::from(stack.next)] += 1;
        true
    }
}
