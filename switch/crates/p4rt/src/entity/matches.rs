// SPDX-License-Identifier: Apache-2.0
//! Match keys: `FieldMatch` messages to the pipeline's key and back (P4Runtime 1.5 §9.1.1).

use v1model::{Bits, EntryKey, KeyMatch, MatchKind};

use crate::binding::{list_known, FieldBinding, TableBinding};
use crate::bytestring;
use crate::error::{refusal, refuse, At, Refusal};
use crate::proto::p4rt::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};
use crate::proto::p4rt::{FieldMatch, TableEntry};

/// # Errors
/// INVALID_ARGUMENT for a default entry with a key.
pub fn no_key(entry: &TableEntry) -> Result<(), Refusal> {
    if !entry.r#match.is_empty() || entry.priority != 0 {
        refuse!(
            invalid,
            "the default entry takes neither match fields nor a priority"
        );
    }
    Ok(())
}

/// The key of a table entry; fields that are left out match anything.
///
/// # Errors
/// INVALID_ARGUMENT for unknown, doubled or missing fields, for another match kind, for a don't-care that is spelled
/// out and for a wrong priority; OUT_OF_RANGE for a value that does not fit.
pub fn decode_key(
    table: &TableBinding,
    matches: &[FieldMatch],
    priority: i32,
) -> Result<EntryKey, Refusal> {
    let matches = decode_fields(&table.fields, matches)?;
    if table.needs_priority && priority <= 0 {
        refuse!(invalid, "priority {priority} is not allowed: a table with a ternary, range or optional field needs 1 or more");
    }
    if !table.needs_priority && priority != 0 {
        refuse!(invalid, "priority {priority} is not allowed: without a ternary, range or optional field it must be 0");
    }
    Ok(EntryKey { matches, priority })
}

/// One match for each field, in the fields' order.
///
/// # Errors
/// As [`decode_key`], but for the priority.
pub fn decode_fields(
    fields: &[FieldBinding],
    matches: &[FieldMatch],
) -> Result<Vec<KeyMatch>, Refusal> {
    let mut given: Vec<Option<KeyMatch>> = vec![None; fields.len()];
    for (i, m) in matches.iter().enumerate() {
        // Clients mostly send the fields in order: look there first.
        let position = match fields.get(i) {
            Some(f) if f.id == m.field_id => Some(i),
            _ => fields.iter().position(|f| f.id == m.field_id),
        };
        let Some(position) = position else {
            let known = list_known(fields.iter().map(|f| (f.id, f.name.as_str())));
            refuse!(invalid, "match field id {} is unknown; {known}", m.field_id);
        };
        let field = &fields[position];
        if given[position].is_some() {
            refuse!(invalid, "match field {} is given twice", field.name);
        }
        given[position] = Some(
            decode(field, m.field_match_type.as_ref())
                .at(format_args!("match field {}", field.name))?,
        );
    }
    given
        .into_iter()
        .zip(fields)
        .map(|(m, field)| m.map_or_else(|| any(field), Ok))
        .collect()
}

fn decode(field: &FieldBinding, given: Option<&FieldMatchType>) -> Result<KeyMatch, Refusal> {
    let width = field.width;
    match (field.kind, given) {
        (_, None) => Err(Refusal::invalid("no value is set")),
        (MatchKind::Exact, Some(FieldMatchType::Exact(m))) => {
            Ok(KeyMatch::Exact(bytestring::decode(&m.value, width)?))
        }
        (MatchKind::Lpm, Some(FieldMatchType::Lpm(m))) => {
            let value = bytestring::decode(&m.value, width)?;
            let prefix_len = m.prefix_len;
            if prefix_len == 0 {
                refuse!(
                    invalid,
                    "prefix length 0 is a don't-care: leave the field out"
                );
            }
            if prefix_len < 0 || prefix_len as u32 > width {
                refuse!(
                    invalid,
                    "prefix length {prefix_len} is not within 1 to {width}"
                );
            }
            if trailing_zeros(&value) < width - prefix_len as u32 {
                refuse!(
                    invalid,
                    "the value {value} has bits set behind its prefix of {prefix_len} bits"
                );
            }
            Ok(KeyMatch::Lpm {
                value,
                prefix_len: prefix_len as u32,
            })
        }
        (MatchKind::Ternary, Some(FieldMatchType::Ternary(m))) => {
            let value = bytestring::decode(&m.value, width)?;
            let mask = bytestring::decode(&m.mask, width)?;
            if mask.is_zero() {
                refuse!(invalid, "a mask of 0 is a don't-care: leave the field out");
            }
            if value
                .as_be_bytes()
                .iter()
                .zip(mask.as_be_bytes())
                .any(|(v, m)| v & !m != 0)
            {
                refuse!(
                    invalid,
                    "the value {value} has bits set where the mask {mask} has none"
                );
            }
            Ok(KeyMatch::Ternary { value, mask })
        }
        (MatchKind::Range, Some(FieldMatchType::Range(m))) => {
            let low = bytestring::decode(&m.low, width)?;
            let high = bytestring::decode(&m.high, width)?;
            if low > high {
                refuse!(
                    invalid,
                    "the low bound {low} is above the high bound {high}"
                );
            }
            if low.is_zero() && high == Bits::ones(width) {
                refuse!(
                    invalid,
                    "the range of all values is a don't-care: leave the field out"
                );
            }
            Ok(KeyMatch::Range { low, high })
        }
        (MatchKind::Optional, Some(FieldMatchType::Optional(m))) => {
            let value = bytestring::decode(&m.value, width)?;
            Ok(match field.optional_as_ternary {
                true => KeyMatch::Ternary {
                    value,
                    mask: Bits::ones(width),
                },
                false => KeyMatch::Optional(Some(value)),
            })
        }
        (kind, Some(other)) => Err(refusal!(
            invalid,
            "it is matched as {}, not as {}",
            kind.name(),
            given_name(other)
        )),
    }
}

fn any(field: &FieldBinding) -> Result<KeyMatch, Refusal> {
    let width = field.width;
    match field.kind {
        MatchKind::Exact => Err(refusal!(
            invalid,
            "match field {} (id {}) is missing: an exact field has no don't-care",
            field.name,
            field.id
        )),
        MatchKind::Lpm => Ok(KeyMatch::Lpm {
            value: Bits::zero(width),
            prefix_len: 0,
        }),
        MatchKind::Optional if !field.optional_as_ternary => Ok(KeyMatch::Optional(None)),
        MatchKind::Ternary | MatchKind::Optional => Ok(KeyMatch::Ternary {
            value: Bits::zero(width),
            mask: Bits::zero(width),
        }),
        MatchKind::Range => Ok(KeyMatch::Range {
            low: Bits::zero(width),
            high: Bits::ones(width),
        }),
    }
}

/// The messages of a key, don't-cares left out.
pub fn encode_key(table: &TableBinding, key: &EntryKey) -> Vec<FieldMatch> {
    let pairs = table.fields.iter().zip(&key.matches);
    pairs
        .filter_map(|(f, m)| {
            Some(FieldMatch {
                field_id: f.id,
                field_match_type: Some(encode(f, m)?),
            })
        })
        .collect()
}

fn encode(field: &FieldBinding, key: &KeyMatch) -> Option<FieldMatchType> {
    match key {
        KeyMatch::Exact(value) => Some(FieldMatchType::Exact(Exact {
            value: bytestring::encode(value),
        })),
        KeyMatch::Lpm { prefix_len: 0, .. } | KeyMatch::Optional(None) => None,
        KeyMatch::Lpm { value, prefix_len } => Some(FieldMatchType::Lpm(Lpm {
            value: bytestring::encode(value),
            prefix_len: *prefix_len as i32,
        })),
        KeyMatch::Ternary { mask, .. } if mask.is_zero() => None,
        KeyMatch::Ternary { value, .. } if field.optional_as_ternary => {
            Some(FieldMatchType::Optional(Optional {
                value: bytestring::encode(value),
            }))
        }
        KeyMatch::Ternary { value, mask } => Some(FieldMatchType::Ternary(Ternary {
            value: bytestring::encode(value),
            mask: bytestring::encode(mask),
        })),
        KeyMatch::Range { low, high } if low.is_zero() && *high == Bits::ones(high.width()) => None,
        KeyMatch::Range { low, high } => Some(FieldMatchType::Range(Range {
            low: bytestring::encode(low),
            high: bytestring::encode(high),
        })),
        KeyMatch::Optional(Some(value)) => Some(FieldMatchType::Optional(Optional {
            value: bytestring::encode(value),
        })),
    }
}

/// Zero bits at the low end; the width for the value 0.
fn trailing_zeros(value: &Bits) -> u32 {
    let bytes = value.as_be_bytes();
    let zeros = bytes.iter().rev().take_while(|b| **b == 0).count();
    match bytes.iter().rev().nth(zeros) {
        Some(byte) => zeros as u32 * 8 + byte.trailing_zeros(),
        None => value.width(),
    }
}

fn given_name(given: &FieldMatchType) -> &'static str {
    match given {
        FieldMatchType::Exact(_) => "exact",
        FieldMatchType::Lpm(_) => "lpm",
        FieldMatchType::Ternary(_) => "ternary",
        FieldMatchType::Range(_) => "range",
        FieldMatchType::Optional(_) => "optional",
        FieldMatchType::Other(_) => "other",
    }
}
