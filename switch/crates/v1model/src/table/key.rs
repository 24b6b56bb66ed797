// SPDX-License-Identifier: Apache-2.0
//! Entry keys ⇄ limbs: value, mask and ranges of all fields side by side, with the errors a client sees.

use crate::bits::{limbs_for, Bits};
use crate::entry::{EntryKey, KeyMatch};
use crate::error::{ControlError, ErrorKind};
use crate::schema::{KeySchema, MatchKind, TableSchema};

/// A checked key in limbs. `value` and `mask` lie like a lookup key; both are zero at range fields, whose bounds are
/// in `ranges`: low limbs, then high limbs, field after field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PackedKey {
    pub value: Vec<u64>,
    pub mask: Vec<u64>,
    pub ranges: Vec<u64>,
    pub priority: i32,
}

/// The high `prefix_len` of `width` bits set.
pub fn prefix_mask(width: u32, prefix_len: u32) -> Bits {
    let prefix_len = prefix_len.min(width);
    let mut bytes = vec![0u8; width.div_ceil(8) as usize];
    let spare = bytes.len() as u32 * 8 - width;
    for bit in spare..spare + prefix_len {
        bytes[bit as usize / 8] |= 0x80 >> (bit % 8);
    }
    Bits::from_be_bytes(width, &bytes).expect("the spare bits are zero")
}

/// Bitwise and of two values of one width.
pub fn and(a: &Bits, b: &Bits) -> Bits {
    let limbs: Vec<u64> = a
        .to_limbs()
        .iter()
        .zip(b.to_limbs())
        .map(|(x, y)| x & y)
        .collect();
    Bits::from_limbs(a.width(), &limbs)
}

/// Checks a key against the table's fields and packs it.
pub fn pack(schema: &TableSchema, key: &EntryKey) -> Result<PackedKey, ControlError> {
    let error = |text: String| {
        ControlError::new(
            ErrorKind::InvalidArgument,
            format!("table {}: {text}", schema.name),
        )
    };
    if key.matches.len() != schema.keys.len() {
        let names: Vec<&str> = schema.keys.iter().map(|k| k.name.as_str()).collect();
        return Err(error(format!(
            "the key has {} fields, {} were given; its fields are: {}",
            schema.keys.len(),
            key.matches.len(),
            names.join(", ")
        )));
    }
    match (schema.needs_priority(), key.priority) {
        (true, p) if p <= 0 => {
            return Err(error(format!(
                "priority is {p}; an entry with ternary, range or optional fields needs one of at least 1"
            )))
        }
        (false, p) if p != 0 => {
            return Err(error(format!(
                "priority is {p}; it must be 0 where all fields are exact or lpm"
            )))
        }
        _ => {}
    }
    let limbs = schema.key_limbs();
    let mut packed = PackedKey {
        value: Vec::with_capacity(limbs),
        mask: Vec::with_capacity(limbs),
        ranges: Vec::new(),
        priority: key.priority,
    };
    for (field, given) in schema.keys.iter().zip(&key.matches) {
        pack_field(field, given, &mut packed)
            .map_err(|text| error(format!("key {}: {text}", field.name)))?;
    }
    Ok(packed)
}

fn pack_field(field: &KeySchema, given: &KeyMatch, out: &mut PackedKey) -> Result<(), String> {
    let check = |bits: &Bits, what: &str| {
        if bits.width() == field.width {
            Ok(())
        } else {
            Err(format!(
                "{what} is {} bits wide, the field {}",
                bits.width(),
                field.width
            ))
        }
    };
    let mut push = |value: &Bits, mask: &Bits| {
        value.push_limbs(&mut out.value);
        mask.push_limbs(&mut out.mask);
    };
    match (field.kind, given) {
        (MatchKind::Exact, KeyMatch::Exact(value)) => {
            check(value, "the value")?;
            push(value, &Bits::ones(field.width));
        }
        (MatchKind::Lpm, KeyMatch::Lpm { value, prefix_len }) => {
            check(value, "the value")?;
            if *prefix_len > field.width {
                return Err(format!(
                    "prefix length {prefix_len} is above the width {}",
                    field.width
                ));
            }
            let mask = prefix_mask(field.width, *prefix_len);
            if and(value, &mask) != *value {
                return Err(format!(
                    "value {value} has bits set behind prefix length {prefix_len}"
                ));
            }
            push(value, &mask);
        }
        (MatchKind::Ternary, KeyMatch::Ternary { value, mask }) => {
            check(value, "the value")?;
            check(mask, "the mask")?;
            if and(value, mask) != *value {
                return Err(format!(
                    "value {value} has bits set where mask {mask} is zero"
                ));
            }
            push(value, mask);
        }
        // p4c writes an optional field as ternary into BMv2 JSON; P4Info knows it as optional.
        (MatchKind::Optional | MatchKind::Ternary, KeyMatch::Optional(value)) => match value {
            Some(value) => {
                check(value, "the value")?;
                push(value, &Bits::ones(field.width));
            }
            None => push(&Bits::zero(field.width), &Bits::zero(field.width)),
        },
        (MatchKind::Range, KeyMatch::Range { low, high }) => {
            check(low, "the low bound")?;
            check(high, "the high bound")?;
            if low.as_be_bytes() > high.as_be_bytes() {
                return Err(format!("low bound {low} is above high bound {high}"));
            }
            push(&Bits::zero(field.width), &Bits::zero(field.width));
            low.push_limbs(&mut out.ranges);
            high.push_limbs(&mut out.ranges);
        }
        (kind, given) => {
            return Err(format!(
                "it is matched as {}, not as {}",
                kind_name(kind),
                given_name(given)
            ))
        }
    }
    Ok(())
}

/// The key whose parts these are; the inverse of [`pack`].
pub fn unpack(
    keys: &[KeySchema],
    value: &[u64],
    mask: &[u64],
    ranges: &[u64],
    priority: i32,
) -> EntryKey {
    let (mut at, mut range_at) = (0, 0);
    let matches = keys
        .iter()
        .map(|field| {
            let n = limbs_for(field.width);
            let value_bits = Bits::from_limbs(field.width, &value[at..at + n]);
            let mask_limbs = &mask[at..at + n];
            at += n;
            match field.kind {
                MatchKind::Exact => KeyMatch::Exact(value_bits),
                MatchKind::Lpm => KeyMatch::Lpm {
                    value: value_bits,
                    prefix_len: mask_limbs.iter().map(|l| l.count_ones()).sum(),
                },
                MatchKind::Ternary => KeyMatch::Ternary {
                    value: value_bits,
                    mask: Bits::from_limbs(field.width, mask_limbs),
                },
                MatchKind::Optional => {
                    KeyMatch::Optional(mask_limbs.iter().any(|&l| l != 0).then_some(value_bits))
                }
                MatchKind::Range => {
                    let low = Bits::from_limbs(field.width, &ranges[range_at..range_at + n]);
                    let high =
                        Bits::from_limbs(field.width, &ranges[range_at + n..range_at + 2 * n]);
                    range_at += 2 * n;
                    KeyMatch::Range { low, high }
                }
            }
        })
        .collect();
    EntryKey { matches, priority }
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

fn kind_name(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
    }
}

fn given_name(given: &KeyMatch) -> &'static str {
    match given {
        KeyMatch::Exact(_) => "exact",
        KeyMatch::Lpm { .. } => "lpm",
        KeyMatch::Ternary { .. } => "ternary",
        KeyMatch::Range { .. } => "range",
        KeyMatch::Optional(_) => "optional",
    }
}
