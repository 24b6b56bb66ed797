// SPDX-License-Identifier: Apache-2.0
//! Parser value sets: the values that a parser's select takes for a set, changed at run time.

use super::key::prefix_mask;
use crate::bits::{limbs_for, Bits};
use crate::entry::KeyMatch;
use crate::error::{ControlError, ErrorKind};
use crate::schema::ValueSetSchema;

/// How one member takes a value: `low ≤ (value & mask) ≤ high` for each of its parts.
#[derive(Clone)]
struct Part {
    mask: Vec<u64>,
    low: Vec<u64>,
    high: Vec<u64>,
}

/// The members of one value set. They are few: each is compared in turn.
#[derive(Clone)]
pub struct ValueSet {
    parts: Vec<Vec<Part>>,
    members: Vec<Vec<KeyMatch>>,
}

impl ValueSet {
    /// An empty set.
    pub fn new(_schema: &ValueSetSchema) -> Self {
        ValueSet {
            parts: Vec::new(),
            members: Vec::new(),
        }
    }

    /// True if a member takes `value`: one number of the set's width in limbs, least significant first, whose most
    /// significant bits are the set's first field.
    pub fn contains(&self, value: &[u64]) -> bool {
        self.parts
            .iter()
            .any(|parts| parts.iter().all(|part| part.takes(value)))
    }

    /// The members as they were set.
    pub fn members(&self) -> &[Vec<KeyMatch>] {
        &self.members
    }

    /// A set of these members. Each is one match over the whole width, or one for each field, in order.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED for too many, INVALID_ARGUMENT for one that does not fit, with its number.
    pub fn from_members(
        schema: &ValueSetSchema,
        members: Vec<Vec<KeyMatch>>,
    ) -> Result<ValueSet, ControlError> {
        let error = |kind, text: String| {
            ControlError::new(kind, format!("value set {}: {text}", schema.name))
        };
        if members.len() > schema.max_size as usize {
            return Err(error(
                ErrorKind::ResourceExhausted,
                format!(
                    "{} members; it holds at most {}",
                    members.len(),
                    schema.max_size
                ),
            ));
        }
        let limbs = limbs_for(schema.width);
        let mut all = Vec::with_capacity(members.len());
        for (i, member) in members.iter().enumerate() {
            let invalid = |text: String| {
                error(
                    ErrorKind::InvalidArgument,
                    format!("member {}: {text}", i + 1),
                )
            };
            let width: u32 = member.iter().map(match_width).sum();
            // An optional "any" has no width of its own, so it can only stand for the whole set.
            let any = matches!(member.as_slice(), [KeyMatch::Optional(None)]);
            if width != schema.width && !any {
                return Err(invalid(format!(
                    "its fields have {width} bits together, the set has {}",
                    schema.width
                )));
            }
            let mut parts = Vec::with_capacity(member.len());
            let mut below = schema.width;
            for field in member {
                below -= match_width(field);
                parts.extend(part(field, below, limbs).map_err(invalid)?);
            }
            all.push(parts);
        }
        Ok(ValueSet {
            parts: all,
            members,
        })
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

/// The part of a field with `below` bits behind it; none for "any".
fn part(field: &KeyMatch, below: u32, limbs: usize) -> Result<Option<Part>, String> {
    let shifted = |bits: &Bits| shift_left(&bits.to_limbs(), below, limbs);
    let ones = |bits: &Bits| shifted(&Bits::ones(bits.width()));
    let masked = |value: &Bits, mask: Vec<u64>| {
        let value = shifted(value);
        if value.iter().zip(&mask).any(|(v, m)| v & !m != 0) {
            return Err("the value has bits set where its mask or prefix is zero".to_string());
        }
        Ok(Some(Part {
            mask,
            low: value.clone(),
            high: value,
        }))
    };
    match field {
        KeyMatch::Exact(value) | KeyMatch::Optional(Some(value)) => masked(value, ones(value)),
        KeyMatch::Optional(None) => Ok(None),
        KeyMatch::Lpm { value, prefix_len } if *prefix_len > value.width() => Err(format!(
            "prefix length {prefix_len} is above the width {}",
            value.width()
        )),
        KeyMatch::Lpm { value, prefix_len } => {
            masked(value, shifted(&prefix_mask(value.width(), *prefix_len)))
        }
        KeyMatch::Ternary { value, mask } if value.width() != mask.width() => Err(format!(
            "the value is {} bits wide, the mask {}",
            value.width(),
            mask.width()
        )),
        KeyMatch::Ternary { value, mask } => masked(value, shifted(mask)),
        KeyMatch::Range { low, high } if low.width() != high.width() => Err(format!(
            "the low bound is {} bits wide, the high bound {}",
            low.width(),
            high.width()
        )),
        KeyMatch::Range { low, high } if low.as_be_bytes() > high.as_be_bytes() => {
            Err(format!("low bound {low} is above high bound {high}"))
        }
        KeyMatch::Range { low, high } => Ok(Some(Part {
            mask: ones(low),
            low: shifted(low),
            high: shifted(high),
        })),
    }
}

fn match_width(field: &KeyMatch) -> u32 {
    match field {
        KeyMatch::Exact(v) | KeyMatch::Optional(Some(v)) => v.width(),
        KeyMatch::Lpm { value, .. } | KeyMatch::Ternary { value, .. } => value.width(),
        KeyMatch::Range { low, .. } => low.width(),
        KeyMatch::Optional(None) => 0,
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
