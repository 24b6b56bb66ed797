// SPDX-License-Identifier: Apache-2.0
//! The interpreter: runs a program as it is written on a packet. It is the reference for machine code, which has it do the
//! operations that are not translated; it is plain, allocates nothing and takes no lock. `Machine::step` does an operation;
//! `Alu::compute` numbers of one limb, `wide` those of several.

pub(crate) mod headers;
mod lookup;
mod wide;

use crate::bits::{cut, low_mask, Nanos};
use crate::compile::code::{Op, Program, WordRun};
use crate::compile::flow::{Exit, Id};
use crate::packet::{Again, CloneRequest, Effects, Packet, OUT_OF_ORDER};
use crate::state::State;
use crate::trace::{Observer, Scene};

/// So often a parser, a control or a deparser may go round its loops for one packet. A parser that takes a frame byte by
/// byte needs as many as the frame has bytes; one that gets on by nothing has to end at some time.
pub(crate) const STEPS_MAX: u32 = 16_384;

/// Buffers that the machine reuses from packet to packet.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A lookup key.
    key: Vec<u64>,
    /// The input of a hash, or headers to emit.
    pub bytes: Vec<u8>,
    wide: wide::Wide,
    /// Digests asked for, by id; sampled at the end of the control.
    digests: Vec<bool>,
    any_digest: bool,
    /// Of this run of a parser or control: see `STEPS_MAX`.
    pub steps_left: u32,
    /// The slots before an operation.
    #[cfg(debug_assertions)]
    before: Vec<u64>,
}

impl Scratch {
    /// Buffers for this program.
    pub fn new(program: &Program) -> Scratch {
        Scratch {
            key: Vec::with_capacity(64),
            bytes: Vec::with_capacity(2048),
            wide: wide::Wide::new(),
            digests: vec![false; program.digests.len()],
            #[cfg(debug_assertions)]
            before: Vec::with_capacity(program.template.len()),
            ..Scratch::default()
        }
    }
}

/// A program at work on one packet.
pub(crate) struct Machine<'m, O = ()> {
    pub program: &'m Program,
    pub state: &'m mut State,
    pub scratch: &'m mut Scratch,
    pub fx: &'m mut Effects,
    pub now: Nanos,
    pub observer: &'m mut O,
}

impl<'m> Machine<'m> {
    /// The same with someone who looks on.
    pub fn observed_by<O>(self, observer: &'m mut O) -> Machine<'m, O> {
        let Machine {
            program,
            state,
            scratch,
            fx,
            now,
            ..
        } = self;
        Machine {
            program,
            state,
            scratch,
            fx,
            now,
            observer,
        }
    }
}

impl<O: Observer> Machine<'_, O> {
    /// Runs from a block to the end of the parser, control or condition.
    ///
    /// # Panics
    /// When the packet was made by another pipeline.
    pub fn run(&mut self, packet: &mut Packet, mut at: Id) {
        let mut slots = std::mem::take(&mut packet.slots);
        assert_eq!(
            slots.len(),
            self.program.template.len(),
            "the packet is of another pipeline"
        );
        self.observer.begin(&slots);
        self.scratch.steps_left = STEPS_MAX;
        let (mut exited, mut return_to) = (false, 0);
        let program = self.program;
        'code: loop {
            let block = &program.blocks[at];
            for op in &block.ops {
                match op {
                    Op::Note { note } => {
                        let scene = Scene {
                            program,
                            state: self.state,
                            slots: &slots,
                        };
                        self.observer.note(scene, &program.notes[*note as usize]);
                    }
                    Op::CheckExit if exited => break 'code,
                    op => {
                        exited |= *op == Op::Exit;
                        if !self.step(packet, &mut slots, op) {
                            break 'code;
                        }
                    }
                }
            }
            at = match block.exit {
                Exit::Goto(to) => to,
                Exit::Branch {
                    test,
                    a,
                    b,
                    yes,
                    no,
                } => match test.holds(slots[usize::from(a)], slots[usize::from(b)]) {
                    true => yes,
                    false => no,
                },
                Exit::Select { select, ref to } => {
                    to[self.select(&slots, &program.selects[select])]
                }
                Exit::Apply { table } => {
                    let (hit, action) = self.apply(packet, &mut slots, usize::from(table));
                    let action = action.map(|action| action.index());
                    return_to = program.tables[usize::from(table)].next.to(hit, action);
                    action.map_or(return_to, |action| program.actions[action])
                }
                Exit::Return => return_to,
                // Only machine code has lookups without calls.
                Exit::Stop | Exit::Lookup { .. } => break,
            };
        }
        self.observer.settle(&slots);
        packet.slots = slots;
        self.sample_digests(packet);
    }

    /// Runs an operation behind which the next one follows, on slots of a packet that are apart from it; false when the
    /// code ends here.
    pub fn step(&mut self, packet: &mut Packet, slots: &mut [u64], op: &Op) -> bool {
        let scene = Scene {
            program: self.program,
            state: self.state,
            slots,
        };
        self.observer.before(scene, op);
        #[cfg(debug_assertions)]
        slots.clone_into(&mut self.scratch.before);
        let goes_on = self.execute(packet, slots, op);
        #[cfg(debug_assertions)]
        self.assert_writes(slots, op);
        goes_on
    }

    /// An operation writes what the table of operations says that it writes.
    #[cfg(debug_assertions)]
    fn assert_writes(&mut self, slots: &[u64], op: &Op) {
        use crate::compile::op::{touches, Touch};
        let before = &mut self.scratch.before;
        touches(self.program, op, &mut |touch, range| {
            if touch != Touch::Reads {
                before[range.clone()].copy_from_slice(&slots[range]);
            }
        });
        debug_assert!(before == slots, "{op:?} writes other slots");
    }

    fn execute(&mut self, packet: &mut Packet, slots: &mut [u64], op: &Op) -> bool {
        let program = self.program;
        let at = |slot: u16| usize::from(slot);
        let run = |slot: u16, limbs: u16| at(slot)..at(slot) + at(limbs);
        match *op {
            Op::Alu { alu, a, b, d, w } => {
                slots[at(d)] = alu.compute(slots[at(a)], slots[at(b)], w);
            }
            Op::Wide { ref op } => self.scratch.wide.run(slots, op),
            Op::LoadElement {
                d,
                element,
                offset,
                limbs,
            } => match headers::block(&program.elements[at(element)], slots) {
                Some(base) => {
                    let a = base + at(offset);
                    slots.copy_within(a..a + at(limbs), at(d));
                }
                None => slots[run(d, limbs)].fill(0),
            },
            Op::StoreElement {
                a,
                element,
                offset,
                limbs,
            } => {
                if let Some(base) = headers::block(&program.elements[at(element)], slots) {
                    slots.copy_within(run(a, limbs), base + at(offset));
                }
            }
            Op::SetValid { header } => {
                let element = &program.elements[at(header)];
                headers::set_valid(program, slots, &mut packet.length_bytes, element);
            }
            Op::SetInvalid { header } => {
                let element = &program.elements[at(header)];
                headers::set_invalid(program, slots, &mut packet.length_bytes, element);
            }
            Op::CopyHeader { d, a } => {
                let (to, from) = (&program.elements[at(d)], &program.elements[at(a)]);
                headers::copy(program, slots, to, from);
            }
            Op::SetHeadersEqual { d, a, b } => {
                let (x, y) = (&program.elements[at(a)], &program.elements[at(b)]);
                slots[at(d)] = u64::from(headers::equal(program, slots, x, y));
            }
            Op::Push { stack, n } => {
                let n = slots[at(n)];
                headers::push(&program.stacks[at(stack)], slots, n);
            }
            Op::Pop { stack, n } => {
                let n = slots[at(n)];
                headers::pop(&program.stacks[at(stack)], slots, n);
            }
            Op::Count { counter, index } => {
                let index = slots[at(index)];
                self.state.counters[at(counter)].count(index, packet.ingress_bytes);
            }
            Op::Meter {
                meter,
                index,
                d,
                limbs,
                w,
            } => {
                let (index, meter) = (slots[at(index)], &mut self.state.meters[at(meter)]);
                let color = meter.execute(index, self.now, packet.ingress_bytes);
                give(color.map(u64::from), &mut slots[run(d, limbs)], w);
            }
            Op::RegisterRead {
                register,
                index,
                d,
                limbs,
                w,
            } => {
                let (index, d) = (slots[at(index)], run(d, limbs));
                if self.state.registers[at(register)].read(index, &mut slots[d.clone()]) {
                    cut(&mut slots[d], w);
                }
            }
            Op::RegisterWrite {
                register,
                index,
                a,
                limbs,
            } => {
                let (index, value) = (slots[at(index)], &slots[run(a, limbs)]);
                self.state.registers[at(register)].write(index, value);
            }
            Op::Calculate { calculation, d, w } => {
                let value = self.calculate(slots, packet.payload(), at(calculation));
                slots[at(d)] = value & mask(w);
            }
            Op::Random {
                d,
                low,
                high,
                limbs,
                w,
            } => {
                let value = self.state.random.uniform(slots[at(low)], slots[at(high)]);
                give(value, &mut slots[run(d, limbs)], w);
            }
            Op::Digest { digest } => {
                self.scratch.digests[digest.index()] = true;
                self.scratch.any_digest = true;
            }
            Op::Clone { session, list } => {
                self.fx.clone = Some(CloneRequest {
                    session: slots[at(session)] as u32,
                    field_list: list,
                });
            }
            Op::Resubmit { list } => {
                self.fx.resubmit = Some(Again { field_list: list });
            }
            Op::Recirculate { list } => {
                self.fx.recirculate = Some(Again { field_list: list });
            }
            Op::Truncate { a } => {
                let bytes = slots[at(a)];
                packet.truncate_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            }
            Op::Log { message } => self.fx.log.message(&program.messages[at(message)], slots),
            Op::Assert { a, message } => {
                if slots[at(a)] == 0 {
                    self.fx.assertion_failed = true;
                    self.fx.log.message(&program.messages[at(message)], slots);
                }
            }
            Op::Extract { header, bits } => {
                let bits = bits.map(|bits| slots[at(bits)]);
                return self.extract(packet, slots, at(header), bits);
            }
            Op::ExtractNext {
                stack,
                member,
                bits,
            } => {
                let bits = bits.map(|bits| slots[at(bits)]);
                return self.extract_next(packet, slots, stack, member, bits);
            }
            Op::Lookahead { d, offset, width } => {
                let from = (packet.buffer.start + packet.parsed) * 8 + offset as usize;
                if from + usize::from(width) > packet.buffer.end * 8 {
                    return self.parser_error(slots, program.error_codes.packet_too_short);
                }
                let bytes = &packet.buffer.bytes;
                headers::read_number(bytes, from, u32::from(width), slots, at(d));
            }
            Op::Advance { bits } => {
                let bits = slots[at(bits)];
                if !bits.is_multiple_of(8) {
                    return self.parser_error(slots, program.error_codes.parser_invalid_argument);
                }
                let left = packet.buffer.end - packet.buffer.start - packet.parsed;
                if bits / 8 > left as u64 {
                    return self.parser_error(slots, program.error_codes.packet_too_short);
                }
                packet.parsed += (bits / 8) as usize;
                packet.extracted = OUT_OF_ORDER;
            }
            Op::ParserError { code } => {
                return self.parser_error(slots, slots[at(code)]);
            }
            Op::Step => {
                if self.scratch.steps_left == 0 {
                    self.fx.timed_out = true;
                    return false;
                }
                self.scratch.steps_left -= 1;
            }
            // `run` sees to these.
            Op::Exit | Op::CheckExit | Op::Note { .. } => {}
        }
        true
    }

    /// Value of a calculation.
    pub fn calculate(&mut self, slots: &[u64], payload: &[u8], index: usize) -> u64 {
        let calculation = &self.program.calculations[index];
        let bytes = &mut self.scratch.bytes;
        bytes.clear();
        let mut writer = headers::Writer {
            program: self.program,
            slots,
            bytes,
        };
        match &calculation.words {
            Some(runs) => {
                let is_valid = |run: &&WordRun| slots[usize::from(run.valid)] != 0;
                let runs = runs.iter().filter(is_valid);
                runs.for_each(|run| writer.words(&run.words));
            }
            None => writer.inputs(&calculation.inputs),
        }
        if calculation.payload {
            bytes.extend_from_slice(payload);
        }
        self.state.hashes[index].compute(bytes)
    }
}

/// Puts a result, where there is one, to slots.
fn give(value: Option<u64>, to: &mut [u64], w: u32) {
    if let (Some(value), Some((first, rest))) = (value, to.split_first_mut()) {
        *first = value & low_mask(w);
        rest.fill(0);
    }
}

fn mask(w: u8) -> u64 {
    low_mask(w.into())
}
