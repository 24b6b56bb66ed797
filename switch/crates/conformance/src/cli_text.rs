// SPDX-License-Identifier: Apache-2.0
//! Changes of the control plane as commands of simple_switch_CLI.

use anyhow::{bail, Result};
use v1model::{ActionCall, Bits, EntryAction, EntryKey, KeyMatch, Pipeline};

use crate::control::Change;

/// simple_switch serves the smallest priority first, STF the largest: as p4c's driver turns them around.
const PRIORITY_TOP: i64 = 10_000;

/// The command that makes a change.
///
/// # Errors
/// A name that it cannot write.
pub fn command(pipeline: &Pipeline, change: &Change) -> Result<String> {
    let name = |table| word(&pipeline.table_schema(table).name);
    Ok(match change {
        Change::Member(profile, _, call) => {
            let profile = word(&pipeline.schema().profiles[profile.index()].name)?;
            let (action, args) = call_text(pipeline, call)?;
            format!("act_prof_create_member {profile} {action}{args}")
        }
        Change::Insert(table, entry) => {
            let (name, mut keys) = (name(*table)?, keys_text(&entry.key));
            if !keys.is_empty() {
                keys.push(' ');
            }
            let priority = match pipeline.table_schema(*table).needs_priority() {
                true => format!(" {}", PRIORITY_TOP + 1 - i64::from(entry.key.priority)),
                false => String::new(),
            };
            match &entry.action {
                EntryAction::Direct(call) => {
                    let (action, args) = call_text(pipeline, call)?;
                    format!("table_add {name} {action} {keys}=>{args}{priority}")
                }
                EntryAction::Member(member) => {
                    format!("table_indirect_add {name} {keys}=> {member}{priority}")
                }
                other => bail!("simple_switch_CLI cannot write {other:?}"),
            }
        }
        Change::SetDefault(table, call) => {
            let (action, args) = call_text(pipeline, call)?;
            format!("table_set_default {} {action}{args}", name(*table)?)
        }
        Change::Clear(table) => format!("table_clear {}", name(*table)?),
        Change::Cli(words) => words.join(" "),
    })
}

/// simple_switch_CLI splits at spaces and knows no quotation marks.
fn word(name: &str) -> Result<&str> {
    if name.is_empty() || name.contains(char::is_whitespace) {
        bail!("simple_switch_CLI cannot write the name `{name}`");
    }
    Ok(name)
}

fn call_text<'a>(pipeline: &'a Pipeline, call: &ActionCall) -> Result<(&'a str, String)> {
    let action = pipeline.action_schema(call.action);
    let args = action.values(&call.args);
    let args = args.map(|a| format!(" {}", hex(&a))).collect();
    Ok((word(&action.name)?, args))
}

fn keys_text(key: &EntryKey) -> String {
    let texts: Vec<String> = key.matches.iter().map(match_text).collect();
    texts.join(" ")
}

fn match_text(one: &KeyMatch) -> String {
    match one {
        KeyMatch::Exact(value) => hex(value),
        KeyMatch::Lpm { value, prefix_len } => format!("{}/{prefix_len}", hex(value)),
        KeyMatch::Ternary { value, mask } => format!("{}&&&{}", hex(value), hex(mask)),
        KeyMatch::Range { low, high } => format!("{}->{}", hex(low), hex(high)),
        // p4c writes an optional key as a ternary one.
        KeyMatch::Optional(Some(value)) => {
            format!("{}&&&{}", hex(value), hex(&Bits::ones(value.width())))
        }
        KeyMatch::Optional(None) => "0x0&&&0x0".to_string(),
    }
}

fn hex(value: &Bits) -> String {
    let digits = hex::encode(value.as_be_bytes());
    match digits.trim_start_matches('0') {
        "" => "0x0".to_string(),
        digits => format!("0x{digits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_the_cli_reads_them() {
        let bits = |width, value: u64| Bits::from_limbs(width, &[value]);
        let key = EntryKey {
            matches: vec![
                KeyMatch::Exact(bits(9, 0)),
                KeyMatch::Lpm {
                    value: bits(32, 0x0a00_0000),
                    prefix_len: 8,
                },
                KeyMatch::Ternary {
                    value: bits(16, 0x100),
                    mask: bits(16, 0xff00),
                },
                KeyMatch::Range {
                    low: bits(16, 1),
                    high: bits(16, 0x1f),
                },
                KeyMatch::Optional(Some(bits(9, 3))),
                KeyMatch::Optional(None),
            ],
            priority: 3,
        };
        assert_eq!(
            keys_text(&key),
            "0x0 0xa000000/8 0x100&&&0xff00 0x1->0x1f 0x3&&&0x1ff 0x0&&&0x0"
        );
    }

    #[test]
    fn wide_values_keep_all_their_digits() {
        assert_eq!(
            hex(&Bits::from_limbs(128, &[1, 0x20])),
            "0x200000000000000001"
        );
    }
}
