// SPDX-License-Identifier: Apache-2.0
//! STF's names and values of tables, keys and actions, resolved the way p4c's driver resolves them.

use anyhow::{bail, ensure, Context, Result};
use num_bigint::BigUint;
use v1model::{ActionCall, Bits, Key, KeyMatch, KeySchema, MatchKind, Pipeline, TableId};

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
) -> Result<T> {
    if let Some((_, found)) = all.clone().find(|(n, _)| *n == name) {
        return Ok(found);
    }
    let mut found = all.filter(|(n, _)| is_named(n, name));
    let first = found.next();
    let (_, one) = first.with_context(|| format!("there is no {what} `{name}`"))?;
    ensure!(found.next().is_none(), "{what} `{name}` is ambiguous");
    Ok(one)
}

macro_rules! by_name {
    ($($fn:ident, $list:ident, $id:ident;)*) => { $(
        #[doc = concat!("A ", stringify!($fn), " by its full or last name.")]
        pub fn $fn(pipeline: &Pipeline, name: &str) -> Result<v1model::$id> {
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

/// An action call of a table with its arguments in the program's order.
pub fn call(pipeline: &Pipeline, table: TableId, call: &Call) -> Result<ActionCall> {
    let actions = pipeline.table_schema(table).actions.iter();
    let named = actions.map(|&a| (pipeline.action_schema(a).name.as_str(), a));
    let action = resolve("action", &call.name, named)?;
    let (name, schema) = (&call.name, pipeline.action_schema(action));
    let mut args = Vec::new();
    for param in &schema.params {
        let given = call.args.iter().find(|(name, _)| *name == param.name);
        let missing = || format!("argument `{}` of `{name}` is missing", param.name);
        let (_, value) = given.with_context(missing)?;
        bits(param.width, value)?.push_limbs(&mut args);
    }
    for (arg, _) in &call.args {
        let is_known = schema.params.iter().any(|p| p.name == *arg);
        ensure!(is_known, "action `{name}` has no parameter `{arg}`");
    }
    Ok(ActionCall { action, args })
}

/// The key of an entry; fields that are not named match 0 when exact, and anything otherwise.
pub fn key(
    pipeline: &Pipeline,
    table: TableId,
    priority: Option<i32>,
    keys: &[(String, String)],
) -> Result<Key> {
    let schema = pipeline.table_schema(table);
    let mut given = vec![None; schema.keys.len()];
    for (name, value) in keys {
        let index = key_index(&schema.keys, name)?;
        given[index] = Some(key_match(&schema.keys[index], value)?);
    }
    let mut key = Key::new(&schema.keys);
    for (field, given) in schema.keys.iter().zip(given) {
        let pushed = match given {
            Some(given) => key.push(field, &given.as_bytes()),
            None if field.kind == MatchKind::Exact => key.push(field, &KeyMatch::Exact(&[])),
            None => {
                key.push_any(field);
                Ok(())
            }
        };
        pushed.with_context(|| format!("key {}", field.name))?;
    }
    let needs_priority = schema.needs_priority();
    let priority = match needs_priority {
        true => priority.unwrap_or(0).saturating_add(1),
        false => 0,
    };
    Ok(key.with_priority(needs_priority, priority)?)
}

/// The rules of `TableKeyInstance.set` in p4c's driver: `a$1.b` is `a[1].b`; a trailing `$` or `.$valid$` may be
/// left out; else the end of the name decides.
fn key_index(keys: &[KeySchema], name: &str) -> Result<usize> {
    let mut name = name.to_string();
    if let Some((before, after)) = name.rsplit_once('$') {
        let end = after.find(|c: char| !c.is_ascii_digit());
        let (digits, rest) = after.split_at(end.unwrap_or(after.len()));
        if !digits.is_empty() {
            name = format!("{before}[{digits}]{rest}");
        }
    }
    let valid = name == "valid";
    let mut whole = vec![name.clone(), format!("{name}$"), format!("{name}.$valid$")];
    let stem = name.strip_suffix(".valid");
    whole.extend(stem.map(|stem| format!("{stem}.$valid$")));
    let mut ends = vec![format!(".{name}"), format!(".{name}$")];
    ends.extend(valid.then(|| ".$valid$".to_string()));
    let find = |wanted: &str| keys.iter().position(|k| k.name == wanted);
    let by_end = || {
        let is_it = |k: &KeySchema| ends.iter().any(|end| k.name.ends_with(end));
        keys.iter().rposition(is_it)
    };
    let found = whole.iter().find_map(|name| find(name)).or_else(by_end);
    found
        .or_else(|| find("$valid$").filter(|_| valid))
        .with_context(|| {
            let names: Vec<&str> = keys.iter().map(|k| k.name.as_str()).collect();
            let names = names.join(", ");
            format!("there is no key field `{name}`; there are {names}")
        })
}

/// Radix and digits of a number.
fn radix(text: &str) -> (u32, &str) {
    match text.get(..2) {
        Some("0x" | "0X") => (16, &text[2..]),
        Some("0b" | "0B") => (2, &text[2..]),
        Some("0o" | "0O") => (8, &text[2..]),
        _ => (10, text),
    }
}

/// A number in any radix whose digits are what `digit` makes of those of the text.
fn number(text: &str, digit: impl Fn(char) -> char) -> Result<BigUint> {
    let (radix, digits) = radix(text);
    let digits = digits.chars().filter(|c| *c != '_').map(digit);
    let digits: String = std::iter::once('0').chain(digits).collect();
    let number = BigUint::parse_bytes(digits.as_bytes(), radix);
    number.with_context(|| format!("`{text}` is no number"))
}

fn ones(count: u32) -> BigUint {
    (BigUint::from(1u8) << count) - 1u8
}

fn of_number(width: u32, number: BigUint) -> Result<Bits> {
    Ok(Bits::from_be_bytes(width, &number.to_bytes_be())?)
}

/// A number that fits in `width` bits, `*` as 0.
pub fn bits(width: u32, text: &str) -> Result<Bits> {
    of_number(width, number(text, |c| if c == '*' { '0' } else { c })?)
}

/// The bits of a number that `mask` has, and the mask.
fn masked(width: u32, text: &str, mask: BigUint) -> Result<(Bits, Bits)> {
    let value = BigUint::from_bytes_be(bits(width, text)?.as_be_bytes());
    let mask = mask & ones(width);
    Ok((of_number(width, value & &mask)?, of_number(width, mask)?))
}

fn key_match(key: &KeySchema, text: &str) -> Result<KeyMatch> {
    let width = key.width;
    let (radix, digits) = radix(text);
    Ok(match key.kind {
        MatchKind::Exact => KeyMatch::Exact(bits(width, text)?),
        MatchKind::Lpm => {
            let (text, prefix_len) = match text.split_once('/') {
                Some((value, len)) => {
                    let number = len.parse().ok();
                    let wrong = || format!("`{len}` is no length");
                    (value, number.with_context(wrong)?)
                }
                None if radix == 10 => (text, width),
                None => {
                    let written = digits.chars().filter(|c| *c != '*').count();
                    (text, width.min(written as u32 * radix.ilog2()))
                }
            };
            let len = prefix_len.min(width);
            let (value, _) = masked(width, text, ones(len) << (width - len))?;
            KeyMatch::Lpm { value, prefix_len }
        }
        MatchKind::Ternary => {
            let (value, mask) = match text.split_once("&&&") {
                Some((value, mask)) => {
                    let mask = BigUint::from_bytes_be(bits(width, mask)?.as_be_bytes());
                    masked(width, value, mask)?
                }
                None if radix == 10 => {
                    bits(width, text)?;
                    bail!("decimal `{text}` is not supported for a ternary field")
                }
                // Ones where the text has digits; digits that are not written do not matter.
                None => {
                    let most = char::from_digit(radix - 1, radix).expect("a digit");
                    let mask = number(text, |c| if c == '*' { '0' } else { most })?;
                    masked(width, text, mask)?
                }
            };
            KeyMatch::Ternary { value, mask }
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
        assert_eq!(key_index(&keys, "h$1.x").unwrap(), 0);
        assert_eq!(key_index(&keys, "hdr.e").unwrap(), 1);
        assert_eq!(key_index(&keys, "data.f1").unwrap(), 2);
        assert!(key_index(&keys, "nothing")
            .unwrap_err()
            .to_string()
            .contains("there are hdr.h[1].x"));
    }
}
