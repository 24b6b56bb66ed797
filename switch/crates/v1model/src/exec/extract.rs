// SPDX-License-Identifier: Apache-2.0
//! The parser's moves: headers taken out of the frame, and what is said when it is too short for them.

use super::{frame, headers, mask, Machine};
use crate::compile::code::NOT_EMITTED;
use crate::packet::{Packet, OUT_OF_ORDER};
use crate::pipeline::Std;

impl Machine<'_> {
    #[cold]
    #[inline(never)]
    pub(super) fn parser_error(&self, slots: &mut [u64], code: u64) {
        if let Some((slot, w)) = self.program.std[Std::ParserError as usize] {
            slots[usize::from(slot)] = code & mask(w);
        }
    }

    /// Extracts a header without varbit field; false after a parser error.
    #[inline(never)]
    pub(super) fn extract(&self, packet: &mut Packet, slots: &mut [u64], element: usize) -> bool {
        let program = self.program;
        let (element, place) = (&program.elements[element], program.places[element]);
        let io = &program.headers[usize::from(element.header)];
        let at = packet.buffer.start + packet.parsed;
        if packet.buffer.end - at < io.fixed_bytes as usize {
            self.parser_error(slots, program.error_codes.packet_too_short);
            return false;
        }
        let base = usize::from(element.base);
        frame::extract(io, &packet.buffer.bytes, at, slots, base);
        headers::mark_valid(slots, base, &element.siblings);
        packet.parsed += io.fixed_bytes as usize;
        // In the deparser's order as long as each place is behind those before.
        let bit = 1 << place;
        packet.extracted = match packet.extracted < bit && place != NOT_EMITTED {
            true => packet.extracted | bit,
            false => OUT_OF_ORDER,
        };
        true
    }

    /// False after a parser error.
    #[inline(never)]
    pub(super) fn extract_varbit(
        &self,
        packet: &mut Packet,
        slots: &mut [u64],
        header: u16,
        base: usize,
        bits: u64,
    ) -> bool {
        let (program, codes) = (self.program, self.program.error_codes);
        let io = &program.headers[usize::from(header)];
        if !bits.is_multiple_of(8) {
            self.parser_error(slots, codes.parser_invalid_argument);
            return false;
        }
        let at = packet.buffer.start + packet.parsed;
        let bytes = u64::from(io.fixed_bytes) + bits / 8;
        if bytes > (packet.buffer.end - at) as u64 {
            self.parser_error(slots, codes.packet_too_short);
            return false;
        }
        let most = io.varbit.map_or(0, |(_, most)| most);
        if bits > u64::from(most) {
            self.parser_error(slots, codes.header_too_short);
            return false;
        }
        frame::extract_varbit(io, &packet.buffer.bytes, at, bits as u32, slots, base);
        packet.parsed += bytes as usize;
        packet.extracted = OUT_OF_ORDER;
        true
    }

    /// Extracts to the first free element of a stack; false after a parser error.
    #[inline(never)]
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
        let (offset, header, siblings) = &stack.members[usize::from(member)];
        let next = slots[usize::from(stack.next)];
        if next >= u64::from(stack.count) {
            self.parser_error(slots, program.error_codes.stack_out_of_bounds);
            return false;
        }
        let base = usize::from(stack.base)
            + next as usize * usize::from(stack.stride)
            + usize::from(*offset);
        match bits {
            Some(bits) => {
                if !self.extract_varbit(packet, slots, *header, base, bits) {
                    return false;
                }
            }
            None => {
                let io = &program.headers[usize::from(*header)];
                let at = packet.buffer.start + packet.parsed;
                if packet.buffer.end - at < io.fixed_bytes as usize {
                    self.parser_error(slots, program.error_codes.packet_too_short);
                    return false;
                }
                frame::extract(io, &packet.buffer.bytes, at, slots, base);
                packet.parsed += io.fixed_bytes as usize;
                packet.extracted = OUT_OF_ORDER;
            }
        }
        headers::mark_valid(slots, base, siblings);
        slots[usize::from(stack.next)] += 1;
        true
    }
}
