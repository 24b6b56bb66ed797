// SPDX-License-Identifier: Apache-2.0
//! The machine that runs a compiled program on a packet: one loop over flat operations; it allocates nothing,
//! takes no lock and parses nothing.

pub(crate) mod calculate;
mod extract;
pub(crate) mod frame;
pub(crate) mod headers;
mod lookup;
mod noted;
mod select;
mod tell;
pub(crate) mod wide;

use crate::compile::code::{Op, Pc, Program};
use crate::effects::{Again, CloneRequest, Effects};
use crate::entry::Nanos;
use crate::packet::{Packet, OUT_OF_ORDER};
use crate::state::State;

/// So often a parser, a control or a deparser may go round its loops for one packet. A parser that takes a frame byte by
/// byte needs as many as the frame has bytes; one that gets on by nothing has to end at some time.
pub(crate) const STEPS_MAX: u32 = 16_384;

/// Buffers that the machine reuses from packet to packet.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A lookup key.
    key: Vec<u64>,
    /// The input of a hash.
    bytes: Vec<u8>,
    /// Digests asked for, by id; sampled at the end of the control.
    digests: Vec<bool>,
    any_digest: bool,
    /// By calculation: the Internet checksum, summed without writing its input down.
    sums: Vec<Option<calculate::WordSum>>,
    /// Of this run of a parser or control: see `STEPS_MAX`.
    pub steps_left: u32,
    /// Where the machine stopped for a trace.
    pub pause: Option<Pause>,
}

/// A stop at a note, and how to go on from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    /// Index in `Program::notes`.
    pub note: u32,
    pub at: At,
}

/// Where the machine is in a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub pc: Pc,
    exited: bool,
    return_to: Pc,
}

impl From<Pc> for At {
    fn from(pc: Pc) -> At {
        At {
            pc,
            exited: false,
            return_to: 0,
        }
    }
}

impl Scratch {
    /// Buffers for this program.
    pub fn new(program: &Program, hashes: &[crate::externs::Hash]) -> Scratch {
        let direct = program.calculations.iter().zip(hashes);
        Scratch {
            key: Vec::with_capacity(64),
            bytes: Vec::with_capacity(2048),
            digests: vec![false; program.digests.len()],
            any_digest: false,
            sums: direct
                .map(|(c, h)| calculate::WordSum::from_calculation(c).filter(|_| h.is_csum16()))
                .collect(),
            steps_left: 0,
            pause: None,
        }
    }
}

/// A program at work on one packet.
pub(crate) struct Machine<'m> {
    pub program: &'m Program,
    pub state: &'m mut State,
    pub scratch: &'m mut Scratch,
    pub fx: &'m mut Effects,
    pub now: Nanos,
}

#[inline(always)]
fn mask(w: u8) -> u64 {
    u64::MAX >> (64 - u32::from(w))
}

impl Machine<'_> {
    /// Runs from `pc` to the end of the parser, control or condition.
    ///
    /// # Panics
    /// When the packet was made by another pipeline.
    pub fn run(&mut self, packet: &mut Packet, at: impl Into<At>) {
        // The slots apart from the packet, so that their place is known to be fixed.
        let mut slots = std::mem::take(&mut packet.slots);
        assert_eq!(
            slots.len(),
            self.program.template.len(),
            "the packet is of another pipeline"
        );
        self.execute(packet, &mut slots, at.into());
        packet.slots = slots;
    }

    /// The same with the slots apart; the result is the operation that ended it.
    pub fn execute(&mut self, packet: &mut Packet, slots: &mut [u64], at: At) -> Pc {
        let program = self.program;
        let ops = program.ops.as_slice();
        let At {
            mut pc,
            mut exited,
            mut return_to,
        } = at;
        macro_rules! s {
            ($slot:expr) => {
                // SAFETY: `Program::check` has seen that every slot of an operation is below the template's length, which
                // `run` compared with that of `slots`.
                *unsafe { slots.get_unchecked_mut(usize::from($slot)) }
            };
        }
        macro_rules! fetch {
            () => {
                // SAFETY: `Program::check` has seen that every jump, every start and what follows a run of moves are
                // operations, and that the last one is `End`, which nothing follows.
                *unsafe { ops.get_unchecked(pc as usize) }
            };
        }
        macro_rules! branch {
            ($cond:expr, $to:expr) => {
                if $cond {
                    pc = $to;
                    continue;
                }
            };
        }
        loop {
            match fetch!() {
                Op::Alu { alu, a, b, d, w } => s!(d) = alu.compute(s!(a), s!(b), w),
                Op::MoveWide { d, a, limbs } => {
                    let a = usize::from(a);
                    slots.copy_within(a..a + usize::from(limbs), usize::from(d));
                }
                Op::Wide { index } => wide::run(slots, &program.wide[usize::from(index)]),
                Op::Jump { to } => branch!(true, to),
                Op::Branch { test, a, b, to } => branch!(test.holds(s!(a), s!(b)), to),
                Op::LoadElement {
                    d,
                    element,
                    offset,
                    limbs,
                } => {
                    let (d, limbs) = (usize::from(d), usize::from(limbs));
                    match headers::block(&program.elements[usize::from(element)], slots) {
                        Some(base) => {
                            let a = base + usize::from(offset);
                            slots.copy_within(a..a + limbs, d);
                        }
                        None => slots[d..d + limbs].fill(0),
                    }
                }
                Op::StoreElement {
                    a,
                    element,
                    offset,
                    limbs,
                } => {
                    let element = &program.elements[usize::from(element)];
                    if let Some(base) = headers::block(element, slots) {
                        let (a, d) = (usize::from(a), base + usize::from(offset));
                        slots.copy_within(a..a + usize::from(limbs), d);
                    }
                }
                Op::SetValid { header } => {
                    headers::set_valid(
                        program,
                        slots,
                        &mut packet.length_bytes,
                        &program.elements[usize::from(header)],
                    );
                }
                Op::SetInvalid { header } => {
                    headers::set_invalid(
                        program,
                        slots,
                        &mut packet.length_bytes,
                        &program.elements[usize::from(header)],
                    );
                }
                Op::CopyHeader { d, a } => {
                    let (to, from) = (
                        &program.elements[usize::from(d)],
                        &program.elements[usize::from(a)],
                    );
                    headers::copy(program, slots, to, from);
                }
                Op::SetHeadersEqual { d, a, b } => {
                    let (x, y) = (
                        &program.elements[usize::from(a)],
                        &program.elements[usize::from(b)],
                    );
                    s!(d) = u64::from(headers::equal(program, slots, x, y));
                }
                Op::Push { stack, n } => {
                    let n = s!(n);
                    headers::push(&program.stacks[usize::from(stack)], slots, n);
                }
                Op::Pop { stack, n } => {
                    let n = s!(n);
                    headers::pop(&program.stacks[usize::from(stack)], slots, n);
                }
                Op::Count { counter, index } => {
                    self.state.counters[usize::from(counter)]
                        .count(s!(index), packet.ingress_bytes);
                }
                Op::Meter { meter, index, d, w } => {
                    let meter = &mut self.state.meters[usize::from(meter)];
                    if let Some(color) = meter.execute(s!(index), self.now, packet.ingress_bytes) {
                        s!(d) = u64::from(color) & mask(w);
                    }
                }
                Op::RegisterRead {
                    register,
                    index,
                    d,
                    w,
                } => {
                    if let Some(value) =
                        self.state.registers[usize::from(register)].read_u64(s!(index))
                    {
                        s!(d) = value & mask(w);
                    }
                }
                Op::RegisterReadWide {
                    register,
                    index,
                    d,
                    limbs,
                } => {
                    let (index, d) = (s!(index), usize::from(d));
                    self.state.registers[usize::from(register)]
                        .read(index, &mut slots[d..d + usize::from(limbs)]);
                }
                Op::RegisterWrite { register, index, a } => {
                    self.state.registers[usize::from(register)].write_u64(s!(index), s!(a));
                }
                Op::RegisterWriteWide {
                    register,
                    index,
                    a,
                    limbs,
                } => {
                    let a = usize::from(a);
                    let index = s!(index);
                    let value = &slots[a..a + usize::from(limbs)];
                    self.state.registers[usize::from(register)].write(index, value);
                }
                Op::Hash {
                    calculation,
                    d,
                    base,
                    size,
                    w,
                } => {
                    let hash =
                        self.calculate_slots(slots, packet.payload(), usize::from(calculation));
                    s!(d) = (hash % s!(size).max(1)).wrapping_add(s!(base)) & mask(w);
                }
                Op::Random { d, low, high, w } => {
                    if let Some(value) = self.state.random.uniform(s!(low), s!(high)) {
                        s!(d) = value & mask(w);
                    }
                }
                Op::Digest { digest } => {
                    self.scratch.digests[digest.index()] = true;
                    self.scratch.any_digest = true;
                }
                Op::Clone { session, list } => {
                    self.fx.clone = Some(CloneRequest {
                        session: s!(session) as u32,
                        field_list: list,
                    });
                }
                Op::Resubmit { list } => self.fx.resubmit = Some(Again { field_list: list }),
                Op::Recirculate { list } => self.fx.recirculate = Some(Again { field_list: list }),
                Op::Truncate { a } => {
                    packet.truncate_bytes = u32::try_from(s!(a)).unwrap_or(u32::MAX);
                }
                Op::Exit => exited = true,
                Op::Log { message } => {
                    let message = &program.messages[usize::from(message)];
                    self.fx.log.message(message, slots);
                }
                Op::Assert { a, message } => {
                    if s!(a) == 0 {
                        self.fx.assertion_failed = true;
                        let message = &program.messages[usize::from(message)];
                        self.fx.log.message(message, slots);
                    }
                }
                Op::Extract { header } => {
                    if !self.extract(packet, slots, usize::from(header)) {
                        return pc;
                    }
                }
                Op::ExtractVarbit { header, bits } => {
                    let element = &program.elements[usize::from(header)];
                    let (bits, base) = (s!(bits), usize::from(element.base));
                    if !self.extract_varbit(packet, slots, element.header, base, bits) {
                        return pc;
                    }
                    headers::mark_valid(slots, base, &element.siblings);
                }
                Op::ExtractNext { stack, member } => {
                    if !self.extract_next(packet, slots, stack, member, None) {
                        return pc;
                    }
                }
                Op::ExtractNextVarbit {
                    stack,
                    member,
                    bits,
                } => {
                    let bits = s!(bits);
                    if !self.extract_next(packet, slots, stack, member, Some(bits)) {
                        return pc;
                    }
                }
                Op::Lookahead { d, offset, width } => {
                    let at = (packet.buffer.start + packet.parsed) * 8 + offset as usize;
                    if at + usize::from(width) > packet.buffer.end * 8 {
                        self.parser_error(slots, program.error_codes.packet_too_short);
                        return pc;
                    }
                    frame::lookahead(
                        &packet.buffer.bytes,
                        at,
                        u32::from(width),
                        slots,
                        usize::from(d),
                    );
                }
                Op::Advance { bits } => {
                    let bits = s!(bits);
                    if !bits.is_multiple_of(8) {
                        self.parser_error(slots, program.error_codes.parser_invalid_argument);
                        return pc;
                    }
                    let left = packet.buffer.end - packet.buffer.start - packet.parsed;
                    if bits / 8 > left as u64 {
                        self.parser_error(slots, program.error_codes.packet_too_short);
                        return pc;
                    }
                    packet.parsed += (bits / 8) as usize;
                    packet.extracted = OUT_OF_ORDER;
                }
                Op::ParserError { code } => {
                    let code = s!(code);
                    self.parser_error(slots, code);
                    return pc;
                }
                Op::Select { select } => {
                    pc = self.select(slots, &program.selects[usize::from(select)]);
                    continue;
                }
                Op::Apply { table } => {
                    let (hit, action) = self.apply(packet, slots, usize::from(table));
                    let code = &program.tables[usize::from(table)];
                    let next = if hit { &code.next_hit } else { &code.next_miss };
                    match action {
                        Some(action) => {
                            return_to = next[action.index()];
                            pc = program.actions[action.index()];
                        }
                        None if hit => pc = code.next_hit_none,
                        None => pc = code.next_none,
                    }
                    continue;
                }
                Op::Call { table, exits } => {
                    let (hit, action) = self.apply(packet, slots, usize::from(table));
                    let exits = &program.exits[usize::from(exits)];
                    let by_action = if hit { &exits.hit } else { &exits.miss };
                    pc = match action {
                        Some(action) => by_action[action.index()],
                        None if hit => exits.hit_none,
                        None => exits.none,
                    };
                    continue;
                }
                Op::Return => {
                    pc = return_to;
                    continue;
                }
                Op::ReturnOrExit => {
                    if exited {
                        return pc;
                    }
                    pc = return_to;
                    continue;
                }
                Op::CheckExit => {
                    if exited {
                        return pc;
                    }
                }
                Op::Step => {
                    if self.scratch.steps_left == 0 {
                        self.fx.timed_out = true;
                        return pc;
                    }
                    self.scratch.steps_left -= 1;
                }
                Op::End => return pc,
                Op::Note { note } => {
                    let pc = pc + 1;
                    let at = At {
                        pc,
                        exited,
                        return_to,
                    };
                    self.scratch.pause = Some(Pause { note, at });
                    return pc;
                }
            }
            pc += 1;
        }
    }

    /// Value of a calculation.
    #[inline]
    pub fn calculate(&mut self, packet: &Packet, index: usize) -> u64 {
        self.calculate_slots(&packet.slots, packet.payload(), index)
    }

    #[inline(never)]
    pub fn calculate_slots(&mut self, slots: &[u64], payload: &[u8], index: usize) -> u64 {
        let calculation = &self.program.calculations[index];
        if let Some(sum) = &self.scratch.sums[index] {
            return sum.value(slots, payload);
        }
        let (hash, bytes) = (&mut self.state.hashes[index], &mut self.scratch.bytes);
        calculate::calculate(self.program, calculation, hash, slots, payload, bytes)
    }
}
