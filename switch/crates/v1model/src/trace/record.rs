// SPDX-License-Identifier: Apache-2.0
//! `Recorder`: what the interpreter does becomes steps, and can be undone.

use std::fmt::Write;
use std::sync::Arc;

use super::{Change, Extracted, Kind, Line, Observer, Scene, Step, Use, Value, STEPS_MAX};
use crate::bits::limbs_for;
use crate::compile::code::{Note, Op, Spot};
use crate::compile::layout::{Layout, Slot};
use crate::compile::op::run;
use crate::externs::{Hash, Meter, Random};
use crate::schema::Schema;
use crate::state::State;
use crate::table::Touched;

/// A field as it is shown.
struct Shown {
    name: String,
    slot: usize,
    limbs: usize,
    width: u32,
    /// Validity of its header; None for metadata.
    valid: Option<usize>,
}

/// A header's validity.
struct ShownHeader {
    name: String,
    valid: usize,
    /// Its fields in `Recorder::fields`.
    fields: std::ops::Range<usize>,
}

/// One thing as it was before.
enum Undo {
    Counter(usize, u64, (u64, u64)),
    Meter(usize, u64, Meter),
    Register(usize, u64, Vec<u64>),
    Table(usize, Touched),
    Hash(usize, Box<Hash>),
    Random(Random),
}

impl Undo {
    fn apply(self, state: &mut State) {
        match self {
            Undo::Counter(counter, index, (packets, bytes)) => {
                state.counters[counter].set(index, packets, bytes);
            }
            Undo::Meter(meter, index, cell) => state.meters[meter].put(index, cell),
            Undo::Register(register, index, limbs) => {
                state.registers[register].write(index, &limbs);
            }
            Undo::Table(table, before) => state.tables[table].untouch(&before),
            Undo::Hash(calculation, hash) => state.hashes[calculation] = *hash,
            Undo::Random(random) => state.random = random,
        }
    }
}

/// The steps of one control at a time, and all that must be undone.
pub(crate) struct Recorder {
    schema: Arc<Schema>,
    fields: Vec<Shown>,
    headers: Vec<ShownHeader>,
    steps: Vec<Step>,
    /// Steps beyond `STEPS_MAX`.
    left_out: u64,
    /// The slots at the last stop.
    last: Vec<u64>,
    /// Lines of the current step belong to an action, state or deparser that is still going on.
    in_line: bool,
    /// A meter whose answer is in this slot at the next stop.
    meter: Option<usize>,
    undo: Vec<Undo>,
}

impl Recorder {
    pub fn new(layout: &Layout, schema: Arc<Schema>) -> Recorder {
        let (mut fields, mut headers) = (Vec::new(), Vec::new());
        for header in &layout.headers {
            let first = fields.len();
            for field in &layout.types[header.ty].fields {
                if header.name == "scalars" && is_temporary(&field.name) {
                    continue;
                }
                fields.push(Shown {
                    name: match header.name.as_str() {
                        "scalars" => field.name.clone(),
                        name => format!("{name}.{}", field.name),
                    },
                    slot: usize::from(header.base + field.offset),
                    limbs: limbs_for(field.width),
                    width: field.width,
                    valid: (!header.metadata).then_some(usize::from(header.valid)),
                });
            }
            if !header.metadata {
                headers.push(ShownHeader {
                    name: header.name.clone(),
                    valid: usize::from(header.valid),
                    fields: first..fields.len(),
                });
            }
        }
        Recorder {
            schema,
            fields,
            headers,
            steps: Vec::new(),
            left_out: 0,
            last: Vec::new(),
            in_line: false,
            meter: None,
            undo: Vec::new(),
        }
    }

    /// The steps since the last call, and how many more there were.
    pub fn take(&mut self) -> (Vec<Step>, u64) {
        (
            std::mem::take(&mut self.steps),
            std::mem::take(&mut self.left_out),
        )
    }

    /// Puts back what traced packets changed, the last change first.
    pub fn undo(&mut self, state: &mut State) {
        while let Some(one) = self.undo.pop() {
            one.apply(state);
        }
    }

    fn step(&mut self, spot: &Spot, kind: Kind) {
        self.in_line = false;
        if self.steps.len() >= STEPS_MAX {
            self.steps.pop();
            self.left_out += 1;
        }
        self.steps.push(Step {
            name: spot.name.clone(),
            source: spot.source.clone(),
            kind,
            changes: Vec::new(),
            uses: Vec::new(),
            lines: Vec::new(),
        });
    }

    fn lookup(&mut self, scene: Scene<'_>, index: usize, spot: &Spot) {
        let state = scene.state;
        let (code, schema) = (&scene.program.tables[index], &self.schema.tables[index]);
        let limbs = code.key.iter();
        let limbs = limbs.map(|&(slot, mask)| scene.slots[usize::from(slot)] & mask);
        let key: Vec<u64> = limbs.collect();
        let table = &state.tables[index];
        let found = table.peek(&key);
        let profile = schema.profile.map(|id| &state.profiles[id.index()]);
        let entry = found.and_then(|at| table.get_at(at, profile));
        let mut at = 0;
        let mut shown = Vec::new();
        for field in &schema.keys {
            shown.push(value(&field.name, field.width, &key, at));
            at += limbs_for(field.width);
        }
        let packets = match (&schema.direct_counter, &entry) {
            (Some(_), Some((_, stats))) => Some(stats.packets),
            _ => None,
        };
        let entry = entry.map(|(e, _)| crate::table::show_key(&schema.keys, &e.key));
        self.undo.push(Undo::Table(index, table.touched(found)));
        if let Some(selector) = scene.program.selector(code) {
            self.save_hash(scene, usize::from(selector));
        }
        let kind = Kind::Table {
            key: shown,
            hit: found.is_some(),
            entry,
            action: None,
            args: Vec::new(),
            packets,
        };
        self.step(spot, kind);
    }

    fn action(&mut self, scene: Scene<'_>, index: usize) {
        let schema = &self.schema.actions[index];
        let mut at = usize::from(scene.program.args);
        let mut values = Vec::new();
        for param in &schema.params {
            values.push(value(&param.name, param.width, scene.slots, at));
            at += limbs_for(param.width);
        }
        if let Some(Step {
            kind: Kind::Table { action, args, .. },
            ..
        }) = self.steps.last_mut()
        {
            *action = Some(schema.name.clone());
            *args = values;
        }
    }

    fn save_hash(&mut self, scene: Scene<'_>, calculation: usize) {
        if scene.program.calculations[calculation].has_state() {
            let hash = Box::new(scene.state.hashes[calculation].clone());
            self.undo.push(Undo::Hash(calculation, hash));
        }
    }

    fn used(&mut self, used: Use) {
        let in_line = self.in_line;
        if let Some(step) = self.steps.last_mut() {
            match step.lines.last_mut() {
                Some(line) if in_line => line.uses.push(used),
                _ => step.uses.push(used),
            }
        }
    }

    fn register_write(&mut self, state: &State, register: usize, index: u64, to: &[u64]) -> Use {
        let from = state.registers[register].get(index);
        let shown = from.as_deref().map(hex);
        let saved = from.map(|limbs| Undo::Register(register, index, limbs));
        self.undo.extend(saved);
        let schema = &self.schema.registers[register];
        let mut to = to.to_vec();
        to.resize(limbs_for(schema.width), 0);
        if let (Some(last), bits @ 1..) = (to.last_mut(), schema.width % 64) {
            *last &= crate::bits::low_mask(bits);
        }
        Use::RegisterWrite {
            name: schema.name.clone(),
            index,
            from: shown,
            to: hex(&to),
        }
    }
}

impl Observer for Recorder {
    fn begin(&mut self, slots: &[u64]) {
        self.last.clear();
        self.last.extend_from_slice(slots);
        self.in_line = false;
    }

    /// What the operations since the last call changed.
    fn settle(&mut self, slots: &[u64]) {
        let color = self.meter.take().map(|slot| slots[slot]);
        if self.steps.is_empty() {
            // Before the first step nothing is done but what the machine itself prepares.
            return self.begin(slots);
        }
        let mut changes = Vec::new();
        let mut extracted = Vec::new();
        let state = matches!(self.steps.last().map(|s| &s.kind), Some(Kind::State { .. }));
        for header in &self.headers {
            let (before, after) = (self.last[header.valid], slots[header.valid]);
            if before == after {
                continue;
            }
            if state && after != 0 {
                let fields = self.fields[header.fields.clone()].iter();
                extracted.push(Extracted {
                    header: header.name.clone(),
                    fields: fields
                        .map(|f| value(&f.name, f.width, slots, f.slot))
                        .collect(),
                });
            } else {
                changes.push(Change {
                    name: format!("{}.$valid$", header.name),
                    width: 1,
                    from: format!("{before:#x}"),
                    to: format!("{after:#x}"),
                });
            }
        }
        for field in &self.fields {
            let range = field.slot..field.slot + field.limbs;
            let (before, after) = (&self.last[range.clone()], &slots[range]);
            // A header that appears is shown as a whole in the parser; one that is not there has no fields.
            let seen = field
                .valid
                .is_none_or(|v| slots[v] != 0 && !(state && self.last[v] == 0));
            if before != after && seen {
                changes.push(Change {
                    name: field.name.clone(),
                    width: field.width,
                    from: hex(before),
                    to: hex(after),
                });
            }
        }
        self.last.copy_from_slice(slots);
        let in_line = self.in_line;
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        if let Kind::State { extracted: all } = &mut step.kind {
            all.append(&mut extracted);
        }
        let (all, uses) = match step.lines.last_mut() {
            Some(line) if in_line => (&mut line.changes, &mut line.uses),
            _ => (&mut step.changes, &mut step.uses),
        };
        all.append(&mut changes);
        if let (Some(answer), Some(Use::Meter { color, .. })) = (color, uses.last_mut()) {
            *color = Some(answer);
        }
    }

    fn note(&mut self, scene: Scene<'_>, note: &Note) {
        self.settle(scene.slots);
        match note {
            Note::State(spot) => self.step(
                spot,
                Kind::State {
                    extracted: Vec::new(),
                },
            ),
            Note::Condition(spot) => self.step(spot, Kind::Condition { result: false }),
            Note::Decided(held) => {
                if let Some(Step {
                    kind: Kind::Condition { result },
                    ..
                }) = self.steps.last_mut()
                {
                    *result = *held;
                }
            }
            Note::Table(table, spot) => self.lookup(scene, usize::from(*table), spot),
            Note::Call(action, spot) => {
                let action = self.schema.actions[*action as usize].name.clone();
                self.step(spot, Kind::Action { action });
            }
            Note::Action(index) => self.action(scene, *index as usize),
            Note::Primitive(spot) => {
                if self.steps.is_empty() {
                    self.step(
                        &Spot {
                            name: "deparser".to_owned(),
                            source: None,
                        },
                        Kind::Deparser,
                    );
                }
                self.in_line = true;
                if let Some(step) = self.steps.last_mut() {
                    step.lines.push(Line {
                        op: spot.name.clone(),
                        source: spot.source.clone(),
                        changes: Vec::new(),
                        uses: Vec::new(),
                    });
                }
            }
            Note::MarkToDrop => self.used(Use::MarkToDrop),
            Note::Done => self.in_line = false,
        }
    }

    fn before(&mut self, scene: Scene<'_>, op: &Op) {
        if op.is_shown() {
            self.settle(scene.slots);
        }
        let Scene {
            program,
            state,
            slots,
        } = scene;
        let at = |slot: Slot| slots[usize::from(slot)];
        let used = match *op {
            Op::Count { counter, index } => {
                let (counter, index) = (usize::from(counter), at(index));
                let cell = state.counters[counter].get(index);
                let before = cell.map(|cell| Undo::Counter(counter, index, cell));
                self.undo.extend(before);
                Use::Counter {
                    name: self.schema.counters[counter].name.clone(),
                    index,
                    packets: cell.map(|c| c.0),
                    bytes: cell.map(|c| c.1),
                }
            }
            Op::Meter {
                meter, index, d, ..
            } => {
                let (meter, index) = (usize::from(meter), at(index));
                let cell = state.meters[meter].cell(index);
                self.undo
                    .extend(cell.map(|cell| Undo::Meter(meter, index, cell)));
                if index < state.meters[meter].len() as u64 {
                    self.meter = Some(d.into());
                }
                Use::Meter {
                    name: self.schema.meters[meter].name.clone(),
                    index,
                    color: None,
                }
            }
            Op::RegisterRead {
                register, index, ..
            } => {
                let (register, index) = (usize::from(register), at(index));
                let cell = state.registers[register].get(index);
                Use::RegisterRead {
                    name: self.schema.registers[register].name.clone(),
                    index,
                    value: cell.map(|limbs| hex(&limbs)),
                }
            }
            Op::RegisterWrite {
                register,
                index,
                a,
                limbs,
            } => {
                let to = &slots[run(a, limbs)];
                self.register_write(state, register.into(), at(index), to)
            }
            Op::Calculate { calculation, .. } => {
                self.save_hash(scene, calculation.into());
                let calculation = &program.calculations[usize::from(calculation)];
                Use::Hash {
                    algorithm: calculation.algorithm.clone(),
                }
            }
            Op::Random { .. } => {
                self.undo.push(Undo::Random(state.random.clone()));
                Use::Random
            }
            Op::Digest { digest } => Use::Digest {
                name: self.schema.digests[digest.index()].name.clone(),
            },
            Op::Clone { session, .. } => Use::Clone {
                session: at(session),
            },
            Op::Resubmit { .. } => Use::Resubmit,
            Op::Recirculate { .. } => Use::Recirculate,
            Op::Truncate { a } => Use::Truncate { bytes: at(a) },
            Op::ParserError { .. } => Use::ParserError,
            Op::Exit => Use::Exit,
            _ => return,
        };
        self.used(used);
    }
}

/// p4c's own intermediate results.
fn is_temporary(field: &str) -> bool {
    !field.contains('.') && (field.starts_with("tmp") || field.starts_with("key_"))
}

fn value(name: &str, width: u32, slots: &[u64], first: usize) -> Value {
    Value {
        name: name.to_owned(),
        width,
        value: hex(&slots[first..first + limbs_for(width)]),
    }
}

/// Limbs, the least significant first, without leading zeros.
fn hex(limbs: &[u64]) -> String {
    let highest = limbs.iter().rposition(|limb| *limb != 0).unwrap_or(0);
    let mut text = format!("{:#x}", limbs.first().map_or(0, |_| limbs[highest]));
    for limb in limbs[..highest.min(limbs.len())].iter().rev() {
        let _ = write!(text, "{limb:016x}");
    }
    text
}
