// SPDX-License-Identifier: Apache-2.0
//! Entry keys in limbs: value, mask and ranges of all fields side by side, with the errors a client sees.
//!
//! Action calls as words: which action (or member, or group) an entry names.
//!
//! Parser value sets: the values that a parser's select takes for a set, changed at run time.

use std::borrow::Cow;

use crate::bits::{limbs_for, low_mask, push_number, ActionCall, Bits, EntryKey, KeyMatch};
use crate::error::{At, ControlResult};
use crate::schema::{ActionId, ActionSchema, KeySchema, MatchKind, ParamSchema, TableSchema};
use crate::{refusal, refuse};

/// A checked key in limbs. `value` and `mask` lie like a lookup key; both are zero at range fields, whose bounds are
/// in `ranges`: low limbs, then high limbs, field after field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    pub(crate) value: Vec<u64>,
    pub(crate) mask: Vec<u64>,
    pub(crate) ranges: Vec<u64>,
    pub(crate) priority: i32,
}

/// What names an entry of a table: a checked key, or one that is checked now.
pub trait AsKey {
    /// # Errors
    /// INVALID_ARGUMENT and OUT_OF_RANGE for a key that is none of this table.
    fn as_key(&self, schema: &TableSchema) -> ControlResult<Cow<'_, Key>>;
}

impl AsKey for Key {
    fn as_key(&self, _: &TableSchema) -> ControlResult<Cow<'_, Key>> {
        Ok(Cow::Borrowed(self))
    }
}

impl AsKey for EntryKey {
    fn as_key(&self, schema: &TableSchema) -> ControlResult<Cow<'_, Key>> {
        let (keys, given) = (&schema.keys, self.matches.len());
        let key = if keys.len() == given {
            let mut fields = keys.iter().zip(&self.matches);
            let mut key = Key::new(keys);
            let pushed = fields.try_for_each(|(field, given)| {
                let done = key.push(field, &given.as_bytes());
                done.at(format_args!("key {}", field.name))
            });
            pushed.and_then(|()| key.with_priority(schema.needs_priority(), self.priority))
        } else {
            let names: Vec<&str> = keys.iter().map(|k| k.name.as_str()).collect();
            Err(refusal!(
                "the key has {} fields, {given} were given; its fields are: {}",
                keys.len(),
                names.join(", ")
            ))
        };
        let key = key.at(format_args!("table {}", schema.name));
        key.map(Cow::Owned)
    }
}

/// Appends a mask of `width` bits, the high `prefix_len` of them set.
pub(crate) fn push_prefix(width: u32, prefix_len: u32, out: &mut Vec<u64>) {
    let low = width - prefix_len.min(width);
    for at in (0..width).step_by(64) {
        let all = low_mask(width - at);
        out.push(all & !low_mask(low.saturating_sub(at)));
    }
}

impl Key {
    /// A key without its fields: one after another is to be pushed, in their order.
    pub fn new(fields: &[KeySchema]) -> Key {
        let limbs = fields.iter().map(|k| limbs_for(k.width)).sum();
        Key {
            value: Vec::with_capacity(limbs),
            mask: Vec::with_capacity(limbs),
            ..Key::default()
        }
    }

    /// # Errors
    /// INVALID_ARGUMENT when the priority is not one that the table's entries have.
    pub fn with_priority(mut self, is_needed: bool, priority: i32) -> ControlResult<Key> {
        let rule = match is_needed {
            true if priority <= 0 => {
                "a table with a ternary, range or optional field needs 1 or more"
            }
            false if priority != 0 => "without a ternary, range or optional field it must be 0",
            _ => {
                self.priority = priority;
                return Ok(self);
            }
        };
        refuse!("priority {priority} is not allowed: {rule}")
    }

    /// Checks what the next field is to match, and adds it.
    ///
    /// # Errors
    /// OUT_OF_RANGE for a number that the field cannot have, INVALID_ARGUMENT for another match kind, a prefix beyond
    /// the field, bits where the mask has none, and bounds in the wrong order.
    pub fn push(&mut self, field: &KeySchema, given: &KeyMatch<&[u8]>) -> ControlResult {
        let (width, at) = (field.width, self.value.len());
        match (field.kind, given) {
            (MatchKind::Exact, KeyMatch::Exact(value))
            | (MatchKind::Optional | MatchKind::Ternary, KeyMatch::Optional(Some(value))) => {
                push_number(width, value, &mut self.value)?;
                push_prefix(width, width, &mut self.mask);
            }
            (MatchKind::Lpm, KeyMatch::Lpm { value, prefix_len }) => {
                if *prefix_len > width {
                    refuse!("prefix length {prefix_len} is not within 1 to {width}");
                }
                push_number(width, value, &mut self.value)?;
                push_prefix(width, *prefix_len, &mut self.mask);
                if !self.is_masked(at) {
                    refuse!(
                        "the value {} has bits set behind its prefix of {prefix_len} bits",
                        shown(width, &self.value[at..])
                    );
                }
            }
            (MatchKind::Ternary, KeyMatch::Ternary { value, mask }) => {
                push_number(width, value, &mut self.value)?;
                push_number(width, mask, &mut self.mask)?;
                if !self.is_masked(at) {
                    refuse!(
                        "the value {} has bits set where the mask {} has none",
                        shown(width, &self.value[at..]),
                        shown(width, &self.mask[at..])
                    );
                }
            }
            // p4c writes an optional field as ternary into BMv2 JSON; P4Info knows it as optional.
            (MatchKind::Optional | MatchKind::Ternary, KeyMatch::Optional(None)) => {
                self.push_masked(width);
            }
            (MatchKind::Range, KeyMatch::Range { low, high }) => {
                let from = self.ranges.len();
                push_number(width, low, &mut self.ranges)?;
                push_number(width, high, &mut self.ranges)?;
                let (low, high) = self.ranges[from..].split_at(limbs_for(width));
                if low.iter().rev().gt(high.iter().rev()) {
                    refuse!(
                        "the low bound {} is above the high bound {}",
                        shown(width, low),
                        shown(width, high)
                    );
                }
                self.push_masked(width);
            }
            (kind, given) => {
                refuse!(
                    "it is matched as {}, not as {}",
                    kind.name(),
                    given.kind().name()
                )
            }
        }
        Ok(())
    }

    /// The next field may be anything.
    pub fn push_any(&mut self, field: &KeySchema) {
        self.push_masked(field.width);
        if field.kind == MatchKind::Range {
            let low = self.ranges.len();
            self.ranges.resize(low + limbs_for(field.width), 0);
            push_prefix(field.width, field.width, &mut self.ranges);
        }
    }

    /// Are the bounds of the last field, a range, those of all values?
    pub fn ends_with_full_range(&self, field: &KeySchema) -> bool {
        let mut any = Key::default();
        any.push_any(field);
        self.ranges.ends_with(&any.ranges)
    }

    fn push_masked(&mut self, width: u32) {
        let limbs = self.value.len() + limbs_for(width);
        self.value.resize(limbs, 0);
        self.mask.resize(limbs, 0);
    }

    /// Has the value no bits, from a limb on, where the mask has none?
    fn is_masked(&self, at: usize) -> bool {
        let pairs = self.value.iter().zip(&self.mask).skip(at);
        pairs.fold(0, |other, (value, mask)| other | (value & !mask)) == 0
    }

    /// As people see it.
    pub fn describe(&self, keys: &[KeySchema]) -> EntryKey {
        let (mut at, mut range_at) = (0, 0);
        let matches = keys.iter().map(|field| {
            let (width, n) = (field.width, limbs_for(field.width));
            let value = Bits::from_limbs(width, &self.value[at..at + n]);
            let mask = &self.mask[at..at + n];
            at += n;
            match field.kind {
                MatchKind::Exact => KeyMatch::Exact(value),
                MatchKind::Lpm => KeyMatch::Lpm {
                    value,
                    prefix_len: mask.iter().map(|l| l.count_ones()).sum(),
                },
                MatchKind::Ternary => KeyMatch::Ternary {
                    value,
                    mask: Bits::from_limbs(width, mask),
                },
                MatchKind::Optional => {
                    KeyMatch::Optional(mask.iter().any(|&l| l != 0).then_some(value))
                }
                MatchKind::Range => {
                    let (low, high) = self.ranges[range_at..range_at + 2 * n].split_at(n);
                    range_at += 2 * n;
                    KeyMatch::Range {
                        low: Bits::from_limbs(width, low),
                        high: Bits::from_limbs(width, high),
                    }
                }
            }
        });
        EntryKey {
            matches: matches.collect(),
            priority: self.priority,
        }
    }
}

fn shown(width: u32, limbs: &[u64]) -> Bits {
    Bits::from_limbs(width, limbs)
}

/// A key in the form that errors show: `hdr.ipv4.dst_addr=0x0a000101/32, …`.
pub fn show(keys: &[KeySchema], key: &EntryKey) -> String {
    let mut parts: Vec<String> = keys
        .iter()
        .zip(&key.matches)
        .map(|(field, given)| match given {
            KeyMatch::Exact(v) | KeyMatch::Optional(Some(v)) => format!("{}={v}", field.name),
            KeyMatch::Lpm { value, prefix_len } => format!("{}={value}/{prefix_len}", field.name),
            KeyMatch::Ternary { value, mask } => format!("{}={value}&&&{mask}", field.name),
            KeyMatch::Range { low, high } => format!("{}={low}..{high}", field.name),
            KeyMatch::Optional(None) => format!("{}=any", field.name),
        })
        .collect();
    if key.priority != 0 {
        parts.push(format!("priority={}", key.priority));
    }
    parts.join(", ")
}

const KIND: u32 = 3 << 30;
const MEMBER: u32 = 1 << 30;
const GROUP: u32 = 2 << 30;

/// What an entry does, in 32 bits: an action, or a place in an action profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionWord(pub u32);

/// An [`ActionWord`] taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// An action of the table.
    Action(ActionId),
    /// A place of a member in the profile.
    Member(u32),
    /// A place of a group in the profile.
    Group(u32),
}

impl ActionWord {
    pub fn action(action: ActionId) -> Self {
        debug_assert!(action.0 & KIND == 0);
        ActionWord(action.0)
    }

    pub fn member(place: u32) -> Self {
        debug_assert!(place & KIND == 0);
        ActionWord(place | MEMBER)
    }

    pub fn group(place: u32) -> Self {
        debug_assert!(place & KIND == 0);
        ActionWord(place | GROUP)
    }

    #[inline(always)]
    pub fn callee(self) -> Callee {
        match self.0 & KIND {
            MEMBER => Callee::Member(self.0 & !KIND),
            GROUP => Callee::Group(self.0 & !KIND),
            _ => Callee::Action(ActionId(self.0)),
        }
    }
}

/// Checks a call against the actions that `allowed` names. `place` says whose call it is, for the error.
pub fn check_call(
    allowed: &[ActionId],
    actions: &[ActionSchema],
    call: &ActionCall,
) -> ControlResult<ActionWord> {
    let Some(action) = actions.get(call.action.index()) else {
        refuse!("there is no action with id {}", call.action.0);
    };
    let (name, limbs, given) = (&action.name, action.arg_limbs(), call.args.len());
    if !allowed.contains(&call.action) {
        let names = allowed.iter().map(|a| actions[a.index()].name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        refuse!("action {name} is not one of its actions: {names}");
    }
    if given != limbs {
        refuse!("action {name} takes {limbs} limbs of arguments, {given} were given");
    }
    let mut end = 0;
    for ParamSchema { name: param, width } in &action.params {
        end += limbs_for(*width);
        let unused = !low_mask((width + 63) % 64 + 1);
        if *width > 0 && call.args[end - 1] & unused != 0 {
            refuse!("action {name}: parameter {param} is {width} bits wide, the argument wider");
        }
    }
    Ok(ActionWord::action(call.action))
}

/// How one member takes a value: `low ≤ (value & mask) ≤ high` for each of its parts.
#[derive(Clone)]
struct Part {
    mask: Vec<u64>,
    low: Vec<u64>,
    high: Vec<u64>,
}

/// The members of one value set. They are few: each is compared in turn.
#[derive(Clone, Default)]
pub struct ValueSet {
    members: Vec<Vec<Part>>,
}

impl ValueSet {
    /// A set of these members; the widths of its fields together are the set's.
    pub fn new(fields: &[KeySchema], members: &[Key]) -> ValueSet {
        let width: u32 = fields.iter().map(|f| f.width).sum();
        let parts = |key: &Key| {
            let (mut below, mut at, mut range_at) = (width, 0, 0);
            let parts = fields.iter().map(|field| {
                let n = limbs_for(field.width);
                below -= field.width;
                let shifted = |limbs: &[u64]| shift_left(limbs, below, limbs_for(width));
                let (value, mask) = (&key.value[at..at + n], &key.mask[at..at + n]);
                at += n;
                if field.kind != MatchKind::Range {
                    let value = shifted(value);
                    return Part {
                        mask: shifted(mask),
                        low: value.clone(),
                        high: value,
                    };
                }
                let (low, high) = key.ranges[range_at..range_at + 2 * n].split_at(n);
                range_at += 2 * n;
                let mut ones = Vec::with_capacity(n);
                push_prefix(field.width, field.width, &mut ones);
                Part {
                    mask: shifted(&ones),
                    low: shifted(low),
                    high: shifted(high),
                }
            });
            parts.collect()
        };
        ValueSet {
            members: members.iter().map(parts).collect(),
        }
    }

    /// True if a member takes `value`: one number of the set's width in limbs, least significant first, whose most
    /// significant bits are the set's first field.
    pub fn contains(&self, value: &[u64]) -> bool {
        let takes = |parts: &Vec<Part>| parts.iter().all(|part| part.takes(value));
        self.members.iter().any(takes)
    }
}

impl Part {
    fn takes(&self, value: &[u64]) -> bool {
        let masked = |i: usize| value.get(i).copied().unwrap_or(0) & self.mask[i];
        let n = self.mask.len();
        let above = (0..n).rev().map(masked).ge(self.low.iter().rev().copied());
        above && (0..n).rev().map(masked).le(self.high.iter().rev().copied())
    }
}

/// `value << bits` in `limbs` limbs.
fn shift_left(value: &[u64], bits: u32, limbs: usize) -> Vec<u64> {
    let (whole, part) = (bits as usize / 64, bits % 64);
    let mut out = vec![0u64; limbs];
    for (i, &limb) in value.iter().enumerate() {
        if let Some(o) = out.get_mut(i + whole) {
            *o |= limb << part;
        }
        if part > 0 {
            if let Some(o) = out.get_mut(i + whole + 1) {
                *o |= limb >> (64 - part);
            }
        }
    }
    out
}
