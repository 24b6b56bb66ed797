// SPDX-License-Identifier: Apache-2.0
//! STF's names and values of tables, keys and actions, resolved the way p4c's driver resolves them.

use v1model::{
    ActionCall, ActionId, Bits, EntryKey, KeyMatch, KeySchema, MatchKind, Pipeline, TableId,
};

use crate::stf::Call;

/// True when an object called `full` may be written as `name`.
pub fn is_named(full: &str, name: &str) -> bool {
    full.ends_with(name)
}

/// The one object whose name is `name`, or ends with it.
fn resolve<'a, T>(
    what: &str,
    name: &str,
    all: impl Iterator<Item = (&'a str, T)> + Clone,
) -> Result<T, String> {
    if let Some((_, found)) = all.clone().find(|(n, _)| *n == name) {
        return Ok(found);
    }
    let mut found = all.filter(|(n, _)| is_named(n, name));
    match (found.next(), found.next()) {
        (Some((_, one)), None) => Ok(one),
        (Some(_), Some(_)) => Err(format!("{what} `{name}` is ambiguous")),
        (None, _) => Err(format!("there is no {what} `{name}`")),
    }
}

macro_rules! by_name {
    ($($fn:ident, $list:ident, $id:ident;)*) => { $(
        #[doc = concat!("A ", stringify!($fn), " by its full or last name.")]
        pub fn $fn(pipeline: &Pipeline, name: &str) -> Result<v1model::$id, String> {
            let all = pipeline.schema().$list.iter();
            resolve(stringify!($fn), name, all.map(|t| (t.name.as_str(), t.id)))
        }
    )* };
}

by_name! {
    table, tables, TableId;
    counter, counters, CounterId;
    meter, meters, MeterId;
    register, registers, RegisterId;
}

/// An action call with its arguments in the program's order.
pub fn call(pipeline: &Pipeline, table: TableId, call: &Call) -> Result<ActionCall, String> {
    let actions = pipeline.table_schema(table).actions.iter();
    let named = actions.map(|&a| (pipeline.action_schema(a).name.as_str(), a));
    let action: ActionId = resolve("action", &call.name, named)?;
    let schema = pipeline.action_schema(action);
    let mut args = Vec::new();
    for param in &schema.params {
        let Some((_, value)) = call.args.iter().find(|(name, _)| *name == param.name) else {
            return Err(format!(
                "argument `{}` of `{}` is missing",
                param.name, call.name
            ));
        };
        bits(param.width, value)?.push_limbs(&mut args);
    }
    if let Some((name, _)) = call
        .args
        .iter()
        .find(|(n, _)| schema.params.iter().all(|p| p.name != *n))
    {
        return Err(format!("action `{}` has no parameter `{name}`", call.name));
    }
    Ok(ActionCall { action, args })
}

/// The key of an entry; fields that are not named match 0 when exact, and anything otherwise.
pub fn key(
    pipeline: &Pipeline,
    table: TableId,
    priority: Option<i32>,
    keys: &[(String, String)],
) -> Result<EntryKey, String> {
    let schema = pipeline.table_schema(table);
    let mut matches: Vec<KeyMatch> = schema.keys.iter().map(any).collect();
    for (name, value) in keys {
        let index = key_index(&schema.keys, name)?;
        matches[index] = key_match(&schema.keys[index], value)?;
    }
    let priority = if schema.needs_priority() {
        priority.unwrap_or(0).saturating_add(1)
    } else {
        0
    };
    Ok(EntryKey { matches, priority })
}

fn any(key: &KeySchema) -> KeyMatch {
    let zero = Bits::zero(key.width);
    match key.kind {
        MatchKind::Exact => KeyMatch::Exact(zero),
        MatchKind::Lpm => KeyMatch::Lpm {
            value: zero,
            prefix_len: 0,
        },
        MatchKind::Ternary => KeyMatch::Ternary {
            value: zero.clone(),
            mask: zero,
        },
        MatchKind::Range => KeyMatch::Range {
            low: zero,
            high: Bits::ones(key.width),
        },
        MatchKind::Optional => KeyMatch::Optional(None),
    }
}

/// The rules of `TableKeyInstance.set` in p4c's driver: `a$1.b` is `a[1].b`; a trailing `$` or `.$valid$` may be
/// left out; else the end of the name decides.
fn key_index(keys: &[KeySchema], name: &str) -> Result<usize, String> {
    let mut name = name.to_string();
    if let Some(dollar) = name.rfind('$') {
        let digits: String = name[dollar + 1..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        if !digits.is_empty() {
            let rest = name[dollar + 1 + digits.len()..].to_string();
            name = format!("{}[{digits}]{rest}", &name[..dollar]);
        }
    }
    let find = |wanted: &str| keys.iter().position(|k| k.name == wanted);
    let mut found = find(&name)
        .or_else(|| find(&format!("{name}$")))
        .or_else(|| find(&format!("{name}.$valid$")));
    if let (None, Some(stem)) = (found, name.strip_suffix(".valid")) {
        found = find(&format!("{stem}.$valid$"));
    }
    if found.is_none() {
        let ends = [format!(".{name}"), format!(".{name}$")];
        found = keys.iter().rposition(|k| {
            ends.iter().any(|end| k.name.ends_with(end))
                || name == "valid" && k.name.ends_with(".$valid$")
        });
    }
    if found.is_none() && name == "valid" {
        found = find("$valid$");
    }
    found.ok_or_else(|| {
        let names: Vec<&str> = keys.iter().map(|k| k.name.as_str()).collect();
        format!(
            "there is no key field `{name}`; there are {}",
            names.join(", ")
        )
    })
}

fn radix(text: &str) -> (u32, u32, &str) {
    match text.get(..2) {
        Some("0x" | "0X") => (16, 4, &text[2..]),
        Some("0b" | "0B") => (2, 1, &text[2..]),
        Some("0o" | "0O") => (8, 3, &text[2..]),
        _ => (10, 0, text),
    }
}

/// Limbs of a number in any radix, `*` as 0.
fn number(text: &str) -> Result<Vec<u64>, String> {
    let (radix, _, digits) = radix(text);
    let mut limbs = vec![0u64];
    for c in digits.chars().filter(|c| *c != '_') {
        let digit = match c {
            '*' => 0,
            c => c
                .to_digit(radix)
                .ok_or_else(|| format!("`{text}` is no number"))?,
        };
        let mut carry = u128::from(digit);
        for limb in &mut limbs {
            let next = u128::from(*limb) * u128::from(radix) + carry;
            *limb = next as u64;
            carry = next >> 64;
        }
        if carry > 0 {
            limbs.push(carry as u64);
        }
    }
    Ok(limbs)
}

/// A number that fits in `width` bits.
pub fn bits(width: u32, text: &str) -> Result<Bits, String> {
    let limbs = number(text)?;
    let bytes: Vec<u8> = limbs.iter().rev().flat_map(|l| l.to_be_bytes()).collect();
    Bits::from_be_bytes(width, &bytes).map_err(|e| e.to_string())
}

fn key_match(key: &KeySchema, text: &str) -> Result<KeyMatch, String> {
    let width = key.width;
    Ok(match key.kind {
        MatchKind::Exact => KeyMatch::Exact(bits(width, text)?),
        MatchKind::Lpm => {
            let (value, prefix_len) = match text.split_once('/') {
                Some((value, len)) => (
                    bits(width, value)?,
                    len.parse().map_err(|_| format!("`{len}` is no length"))?,
                ),
                None => {
                    let (_, bits_per_digit, digits) = radix(text);
                    let stars = digits.matches('*').count() as u32;
                    let len = (digits.len() as u32 - stars) * bits_per_digit;
                    (
                        bits(width, text)?,
                        if bits_per_digit == 0 {
                            width
                        } else {
                            len.min(width)
                        },
                    )
                }
            };
            let mask = ones_at_top(width, prefix_len);
            KeyMatch::Lpm {
                value: and(&value, &mask),
                prefix_len,
            }
        }
        MatchKind::Ternary => {
            let (value, mask) = match text.split_once("&&&") {
                Some((value, mask)) => (bits(width, value)?, bits(width, mask)?),
                None => (bits(width, text)?, digit_mask(width, text)?),
            };
            KeyMatch::Ternary {
                value: and(&value, &mask),
                mask,
            }
        }
        MatchKind::Range => {
            let (low, high) = text.split_once("..").unwrap_or((text, text));
            KeyMatch::Range {
                low: bits(width, low)?,
                high: bits(width, high)?,
            }
        }
        MatchKind::Optional => KeyMatch::Optional(Some(bits(width, text)?)),
    })
}

fn and(a: &Bits, b: &Bits) -> Bits {
    let limbs: Vec<u64> = a
        .to_limbs()
        .iter()
        .zip(b.to_limbs())
        .map(|(a, b)| a & b)
        .collect();
    Bits::from_limbs(a.width(), &limbs)
}

fn ones_at_top(width: u32, count: u32) -> Bits {
    let bytes: Vec<u8> = (0..width).map(|i| u8::from(i < count)).collect();
    let mut limbs = vec![0u64; width.div_ceil(64) as usize];
    for (i, one) in bytes.iter().enumerate() {
        let bit = width as usize - 1 - i;
        limbs[bit / 64] |= u64::from(*one) << (bit % 64);
    }
    Bits::from_limbs(width, &limbs)
}

/// Ones where the text has digits, zeros where it has `*`; digits that are not written do not matter.
fn digit_mask(width: u32, text: &str) -> Result<Bits, String> {
    let (_, bits_per_digit, digits) = radix(text);
    if bits_per_digit == 0 {
        return Err(format!(
            "decimal `{text}` is not supported for a ternary field"
        ));
    }
    let mut limbs = vec![0u64; width.div_ceil(64) as usize];
    for (i, c) in digits.chars().rev().enumerate() {
        for bit in (0..bits_per_digit)
            .map(|b| i as u32 * bits_per_digit + b)
            .filter(|b| *b < width)
        {
            limbs[bit as usize / 64] |= u64::from(c != '*') << (bit % 64);
        }
    }
    Ok(Bits::from_limbs(width, &limbs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ternary_values_mask_what_is_written() {
        let key = KeySchema {
            name: "data.f1".into(),
            kind: MatchKind::Ternary,
            width: 32,
        };
        let KeyMatch::Ternary { value, mask } = key_match(&key, "0x****0101").unwrap() else {
            panic!()
        };
        assert_eq!((value.to_u64(), mask.to_u64()), (Some(0x101), Some(0xffff)));
        let KeyMatch::Ternary { mask, .. } = key_match(&key, "0x5").unwrap() else {
            panic!()
        };
        assert_eq!(mask.to_u64(), Some(0xf));
    }

    #[test]
    fn keys_are_found_by_the_end_of_their_name() {
        let key = |name: &str| KeySchema {
            name: name.into(),
            kind: MatchKind::Exact,
            width: 8,
        };
        let keys = [key("hdr.h[1].x"), key("hdr.e.$valid$"), key("hdr.data.f1")];
        assert_eq!(key_index(&keys, "h$1.x"), Ok(0));
        assert_eq!(key_index(&keys, "hdr.e"), Ok(1));
        assert_eq!(key_index(&keys, "data.f1"), Ok(2));
        assert!(key_index(&keys, "nothing")
            .unwrap_err()
            .contains("there are hdr.h[1].x"));
    }
}
