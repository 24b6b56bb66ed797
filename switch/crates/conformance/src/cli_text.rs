// SPDX-License-Identifier: Apache-2.0
//! Statements for the control plane as commands of simple_switch_CLI.

use std::collections::BTreeMap;

use v1model::{ActionCall, Bits, EntryKey, KeyMatch, Pipeline, ProfileId};

use crate::stf::Command;
use crate::tables;

/// simple_switch serves the smallest priority first, STF the largest: as p4c's driver turns them around.
const PRIORITY_TOP: i64 = 10_000;

/// What has been made, by the handles that simple_switch_CLI gives: 0, 1, …
#[derive(Default)]
pub struct Handles {
    members: BTreeMap<ProfileId, u32>,
}

/// The commands that do `command`; none for what is not for the control plane.
///
/// # Errors
/// What is not as the program says.
pub fn commands(
    pipeline: &Pipeline,
    handles: &mut Handles,
    command: &Command,
) -> Result<Vec<String>, String> {
    match command {
        Command::Add {
            table,
            priority,
            keys,
            call,
            ..
        } => {
            let table = tables::table(pipeline, table)?;
            let call = tables::call(pipeline, table, call)?;
            let key = tables::key(pipeline, table, *priority, keys)?;
            let schema = pipeline.table_schema(table);
            let name = word(&schema.name)?;
            let mut keys = keys_text(&key);
            if !keys.is_empty() {
                keys.push(' ');
            }
            let priority = if schema.needs_priority() {
                format!(" {}", PRIORITY_TOP + 1 - i64::from(key.priority))
            } else {
                String::new()
            };
            let (action, args) = call_text(pipeline, &call)?;
            let Some(profile) = schema.profile else {
                return Ok(vec![format!(
                    "table_add {name} {action} {keys}=>{args}{priority}"
                )]);
            };
            let next = handles.members.entry(profile).or_default();
            let member = *next;
            *next += 1;
            let profile = word(&pipeline.schema().profiles[profile.index()].name)?;
            Ok(vec![
                format!("act_prof_create_member {profile} {action}{args}"),
                format!("table_indirect_add {name} {keys}=> {member}{priority}"),
            ])
        }
        Command::SetDefault { table, call } => {
            let table = tables::table(pipeline, table)?;
            let call = tables::call(pipeline, table, call)?;
            let name = word(&pipeline.table_schema(table).name)?;
            let (action, args) = call_text(pipeline, &call)?;
            Ok(vec![format!("table_set_default {name} {action}{args}")])
        }
        Command::RemoveAll => {
            let tables = pipeline.schema().tables.iter();
            let ours = tables.filter(|t| t.const_entries.is_none());
            ours.map(|t| Ok(format!("table_clear {}", word(&t.name)?)))
                .collect()
        }
        Command::Cli(words) => Ok(vec![words.join(" ")]),
        Command::Packet { .. }
        | Command::Expect { .. }
        | Command::CheckCounter { .. }
        | Command::NoPacket
        | Command::Wait => Ok(Vec::new()),
    }
}

/// simple_switch_CLI splits at spaces and knows no quotation marks.
fn word(name: &str) -> Result<&str, String> {
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(format!("simple_switch_CLI cannot write the name `{name}`"));
    }
    Ok(name)
}

fn call_text<'a>(pipeline: &'a Pipeline, call: &ActionCall) -> Result<(&'a str, String), String> {
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
    let digits = crate::run::hex(value.as_be_bytes());
    let digits = digits.trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
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
