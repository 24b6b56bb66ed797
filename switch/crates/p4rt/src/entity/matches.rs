// SPDX-License-Identifier: Apache-2.0
//! Match keys: `FieldMatch` messages to the pipeline's key and back (P4Runtime 1.5 §9.1.1).

use v1model::{Bits, EntryKey, Key, KeyMatch, KeySchema, MatchKind};

use crate::binding::{list_known, FieldBinding, TableBinding};
use crate::bytestring;
use crate::error::{refuse, At, Refusal};
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
) -> Result<Key, Refusal> {
    let key = decode_fields(&table.fields, &table.keys, matches)?;
    Ok(key.with_priority(table.needs_priority, priority)?)
}

/// A key without a priority.
///
/// # Errors
/// As [`decode_key`], but for the priority.
pub fn decode_fields(
    fields: &[FieldBinding],
    keys: &[KeySchema],
    matches: &[FieldMatch],
) -> Result<Key, Refusal> {
    for (i, m) in matches.iter().enumerate() {
        let Some(at) = fields.iter().position(|f| f.id == m.field_id) else {
            let ids = fields.iter().map(|f| f.id);
            let known = list_known(ids.zip(keys.iter().map(|key| key.name.as_str())));
            refuse!(invalid, "match field id {} is unknown; {known}", m.field_id);
        };
        if matches[..i]
            .iter()
            .any(|other| other.field_id == m.field_id)
        {
            refuse!(invalid, "match field {} is given twice", keys[at].name);
        }
    }
    let mut key = Key::new(keys);
    for (i, (field, schema)) in fields.iter().zip(keys).enumerate() {
        // Clients mostly send the fields in order: look there first.
        let given = matches.get(i).filter(|m| m.field_id == field.id);
        let given = given.or_else(|| matches.iter().find(|m| m.field_id == field.id));
        match given {
            Some(given) => push(&mut key, field, schema, given.field_match_type.as_ref())
                .at(format_args!("match field {}", schema.name))?,
            None if schema.kind == MatchKind::Exact => refuse!(
                invalid,
                "match field {} (id {}) is missing: an exact field has no don't-care",
                schema.name,
                field.id
            ),
            None => key.push_any(schema),
        }
    }
    Ok(key)
}

fn push(
    key: &mut Key,
    field: &FieldBinding,
    schema: &KeySchema,
    given: Option<&FieldMatchType>,
) -> Result<(), Refusal> {
    let own = field.kind.name();
    let number = |value| bytestring::number(value, schema.width);
    let given = match given {
        None => refuse!(invalid, "no value is set"),
        Some(FieldMatchType::Other(_)) => refuse!(invalid, "it is matched as {own}, not as other"),
        Some(FieldMatchType::Exact(m)) => KeyMatch::Exact(number(&m.value)?),
        Some(FieldMatchType::Optional(m)) => KeyMatch::Optional(Some(number(&m.value)?)),
        Some(FieldMatchType::Lpm(m)) => {
            let (value, prefix_len) = (number(&m.value)?, m.prefix_len);
            let Ok(prefix_len) = u32::try_from(prefix_len) else {
                refuse!(
                    invalid,
                    "prefix length {prefix_len} is not within 1 to {}",
                    schema.width
                );
            };
            KeyMatch::Lpm { value, prefix_len }
        }
        Some(FieldMatchType::Ternary(m)) => {
            let (value, mask) = (number(&m.value)?, number(&m.mask)?);
            KeyMatch::Ternary { value, mask }
        }
        Some(FieldMatchType::Range(m)) => {
            let (low, high) = (number(&m.low)?, number(&m.high)?);
            KeyMatch::Range { low, high }
        }
    };
    // An optional field may be ternary in the pipeline: p4c has no other form for it.
    if given.kind() != field.kind {
        refuse!(
            invalid,
            "it is matched as {own}, not as {}",
            given.kind().name()
        );
    }
    let any = match given {
        KeyMatch::Lpm { prefix_len: 0, .. } => "prefix length 0",
        KeyMatch::Ternary { mask, .. } if mask.iter().all(|byte| *byte == 0) => "a mask of 0",
        _ => {
            key.push(schema, &given)?;
            match schema.kind == MatchKind::Range && key.ends_with_full_range(schema) {
                true => "the range of all values",
                false => return Ok(()),
            }
        }
    };
    refuse!(invalid, "{any} is a don't-care: leave the field out")
}

/// The messages of a key, don't-cares left out.
pub fn encode_key(table: &TableBinding, key: &EntryKey) -> Vec<FieldMatch> {
    let pairs = table.fields.iter().zip(&key.matches);
    let message = |(field, given): (&FieldBinding, &KeyMatch)| {
        let field_match_type = Some(encode(field, given)?);
        let field_id = field.id;
        Some(FieldMatch {
            field_id,
            field_match_type,
        })
    };
    pairs.filter_map(message).collect()
}

fn encode(field: &FieldBinding, given: &KeyMatch) -> Option<FieldMatchType> {
    let number = bytestring::encode;
    Some(match given {
        KeyMatch::Lpm { prefix_len: 0, .. } | KeyMatch::Optional(None) => return None,
        KeyMatch::Ternary { mask, .. } if mask.is_zero() => return None,
        KeyMatch::Range { low, high } if low.is_zero() && *high == Bits::ones(high.width()) => {
            return None
        }
        KeyMatch::Exact(value) => FieldMatchType::Exact(Exact {
            value: number(value),
        }),
        KeyMatch::Lpm { value, prefix_len } => {
            let (value, prefix_len) = (number(value), *prefix_len as i32);
            FieldMatchType::Lpm(Lpm { value, prefix_len })
        }
        KeyMatch::Optional(Some(value)) => optional(value),
        KeyMatch::Ternary { value, .. } if field.kind == MatchKind::Optional => optional(value),
        KeyMatch::Ternary { value, mask } => {
            let (value, mask) = (number(value), number(mask));
            FieldMatchType::Ternary(Ternary { value, mask })
        }
        KeyMatch::Range { low, high } => {
            let (low, high) = (number(low), number(high));
            FieldMatchType::Range(Range { low, high })
        }
    })
}

fn optional(value: &Bits) -> FieldMatchType {
    let value = bytestring::encode(value);
    FieldMatchType::Optional(Optional { value })
}
