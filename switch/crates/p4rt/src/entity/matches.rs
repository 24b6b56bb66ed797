// SPDX-License-Identifier: Apache-2.0
//! Match keys: `FieldMatch` messages to the pipeline's key and back (P4Runtime 1.5 §9.1.1).
//!
//! Actions with their parameters: `Action` messages to the pipeline's calls and back (P4Runtime 1.5 §9.1.2).

use v1model::bits::limbs_for;
use v1model::{ActionCall, Bits, EntryKey, Key, KeyMatch, KeySchema, MatchKind};

use crate::binding::{self, in_order, MatchKey, Table};
use crate::bytestring;
use crate::error::{in_range, refuse, At, Checked};
use crate::proto::p4info::action_ref::Scope;
use crate::proto::p4rt::action::Param;
use crate::proto::p4rt::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};
use crate::proto::p4rt::{Action, FieldMatch};

/// The key of a table entry; fields that are left out match anything.
///
/// # Errors
/// INVALID_ARGUMENT for unknown, doubled or missing fields, for another match kind, for a don't-care that is spelled
/// out and for a wrong priority; OUT_OF_RANGE for a value that does not fit.
pub fn decode_key(table: &Table, matches: &[FieldMatch], priority: i32) -> Checked<Key> {
    decode_fields(&table.key, matches)?.with_priority(table.needs_priority, priority)
}

/// A key without a priority.
///
/// # Errors
/// As [`decode_key`], but for the priority.
pub fn decode_fields(own: &MatchKey, matches: &[FieldMatch]) -> Checked<Key> {
    let ids = own.fields.iter().map(|(id, _)| *id);
    let named = ids.zip(own.keys.iter().map(|key| &*key.name));
    let given = in_order("match field", matches, |m| m.field_id, named)?;
    let mut key = Key::new(&own.keys);
    for (((id, kind), schema), given) in own.fields.iter().zip(&own.keys).zip(given) {
        let name = &schema.name;
        match given {
            Some(given) => push(&mut key, *kind, schema, given.field_match_type.as_ref())
                .at(format_args!("match field {name}"))?,
            None if schema.kind == MatchKind::Exact => {
                refuse!("match field {name} (id {id}) is missing: an exact field has no don't-care")
            }
            None => key.push_any(schema),
        }
    }
    Ok(key)
}

fn push(
    key: &mut Key,
    kind: MatchKind,
    schema: &KeySchema,
    given: Option<&FieldMatchType>,
) -> Checked {
    let number = |value| bytestring::number(value, schema.width);
    let given = match given {
        None | Some(FieldMatchType::Other(_)) => {
            refuse!("no value is set; it is matched as {}", kind.name())
        }
        Some(FieldMatchType::Exact(m)) => KeyMatch::Exact(number(&m.value)?),
        Some(FieldMatchType::Optional(m)) => KeyMatch::Optional(Some(number(&m.value)?)),
        Some(FieldMatchType::Lpm(m)) => KeyMatch::Lpm {
            value: number(&m.value)?,
            prefix_len: in_range("prefix length", m.prefix_len, 0..=schema.width)?,
        },
        Some(FieldMatchType::Ternary(m)) => KeyMatch::Ternary {
            value: number(&m.value)?,
            mask: number(&m.mask)?,
        },
        Some(FieldMatchType::Range(m)) => KeyMatch::Range {
            low: number(&m.low)?,
            high: number(&m.high)?,
        },
    };
    // An optional field may be ternary in the pipeline: p4c has no other form for it.
    if given.kind() != kind {
        refuse!(
            "it is matched as {}, not as {}",
            kind.name(),
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
    refuse!("{any} is a don't-care: leave the field out")
}

/// The messages of a key, don't-cares left out.
pub fn encode_key(own: &MatchKey, key: &EntryKey) -> Vec<FieldMatch> {
    let pairs = own.fields.iter().zip(&key.matches);
    let message = |((field_id, kind), given): (&(u32, MatchKind), &KeyMatch)| {
        Some(FieldMatch {
            field_id: *field_id,
            field_match_type: Some(encode(*kind, given)?),
        })
    };
    pairs.filter_map(message).collect()
}

fn encode(kind: MatchKind, given: &KeyMatch) -> Option<FieldMatchType> {
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
        KeyMatch::Lpm { value, prefix_len } => FieldMatchType::Lpm(Lpm {
            value: number(value),
            prefix_len: *prefix_len as i32,
        }),
        KeyMatch::Ternary { value, mask } if kind == MatchKind::Ternary => {
            FieldMatchType::Ternary(Ternary {
                value: number(value),
                mask: number(mask),
            })
        }
        KeyMatch::Optional(Some(value)) | KeyMatch::Ternary { value, .. } => {
            FieldMatchType::Optional(Optional {
                value: number(value),
            })
        }
        KeyMatch::Range { low, high } => FieldMatchType::Range(Range {
            low: number(low),
            high: number(high),
        }),
    })
}

/// Decodes the action of an entry, or of a default entry.
///
/// # Errors
/// INVALID_ARGUMENT for an action that the table has not and for unknown, doubled or missing parameters,
/// PERMISSION_DENIED for an action that may not stand there, OUT_OF_RANGE for a value that does not fit.
pub fn decode_call(table: &Table, action: &Action, is_default: bool) -> Checked<ActionCall> {
    let bound = table.action(action.action_id)?;
    let name = &bound.name;
    match (bound.scope, is_default) {
        (Scope::TableOnly, true) => {
            refuse!(
                PermissionDenied,
                "action {name} is @tableonly: it cannot be the default action"
            )
        }
        (Scope::DefaultOnly, false) => {
            refuse!(
                PermissionDenied,
                "action {name} is @defaultonly: no entry can call it"
            )
        }
        _ => args(bound, &action.params).at(format_args!("action {name}")),
    }
}

fn args(action: &binding::Action, given: &[Param]) -> Checked<ActionCall> {
    let params = &action.params;
    let own = params.iter().map(|p| (p.id, &*p.name));
    let given = in_order("parameter", given, |p| p.param_id, own)?;
    let mut args = Vec::with_capacity(params.len());
    for (own, given) in params.iter().zip(given) {
        let Some(given) = given else {
            refuse!("parameter {} (id {}) is missing", own.name, own.id);
        };
        bytestring::push(&given.value, own.width, &mut args)
            .at(format_args!("parameter {}", own.name))?;
    }
    let action = action.action;
    Ok(ActionCall { action, args })
}

/// None for an action that P4Info does not show.
pub fn encode_call(table: &Table, call: &ActionCall) -> Option<Action> {
    let bound = table.actions.iter().find(|a| a.action == call.action)?;
    let mut args = &call.args[..];
    let params = bound.params.iter().map(|p| {
        let (own, rest) = args.split_at(limbs_for(p.width).min(args.len()));
        args = rest;
        Param {
            param_id: p.id,
            value: bytestring::encode_limbs(own),
        }
    });
    Some(Action {
        action_id: bound.id,
        params: params.collect(),
    })
}
