// SPDX-License-Identifier: Apache-2.0
//! STF, the packet-test language of p4c's corpus: statements of a file, read as p4c's own parser reads them.

/// A statement with its line number.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub line: usize,
    pub command: Command,
}

/// `name(arg: value, …)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub args: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Packet {
        port: u32,
        frame: Vec<u8>,
    },
    /// `pattern`: hex digits and `*`, None for any packet; `exact`: it ended with `$`.
    Expect {
        port: u32,
        pattern: Option<String>,
        exact: bool,
    },
    Add {
        table: String,
        priority: Option<i32>,
        keys: Vec<(String, String)>,
        call: Call,
    },
    SetDefault {
        table: String,
        call: Call,
    },
    CheckCounter {
        name: String,
        index: String,
        check: Option<(bool, String, u64)>,
    },
    /// Commands that p4c's driver passes on to simple_switch_CLI: words.
    Cli(Vec<String>),
    NoPacket,
    Wait,
}

/// All statements of `text`.
///
/// # Errors
/// The line and what is wrong with it.
pub fn parse(text: &str) -> Result<Vec<Statement>, String> {
    let mut out = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        let stripped = raw.split('#').next().unwrap_or_default().trim();
        if stripped.is_empty() {
            continue;
        }
        let command = statement(stripped).map_err(|e| format!("line {line}: {e}"))?;
        out.push(Statement { line, command });
    }
    Ok(out)
}

fn statement(line: &str) -> Result<Command, String> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match word.to_ascii_lowercase().as_str() {
        "packet" => {
            let (port, data) = port(rest)?;
            let digits: String = data.split_whitespace().collect();
            Ok(Command::Packet {
                port,
                frame: bytes(&digits)?,
            })
        }
        "expect" => {
            let (port, data) = port(rest)?;
            let mut digits: String = data.split_whitespace().collect();
            let exact = digits.ends_with('$');
            if exact {
                digits.pop();
            }
            if let Some(bad) = digits.chars().find(|c| !c.is_ascii_hexdigit() && *c != '*') {
                return Err(format!("`{bad}` is no hexadecimal digit and not *"));
            }
            let pattern = (!digits.is_empty() || exact).then(|| digits.to_ascii_lowercase());
            Ok(Command::Expect {
                port,
                pattern,
                exact,
            })
        }
        "add" => add(rest),
        "setdefault" => {
            let (table, call_text) = rest
                .split_once(char::is_whitespace)
                .ok_or("an action is missing")?;
            Ok(Command::SetDefault {
                table: table.to_string(),
                call: call(call_text.trim())?,
            })
        }
        "check_counter" => check_counter(rest),
        "no_packet" => Ok(Command::NoPacket),
        "wait" => Ok(Command::Wait),
        "mirroring_add" | "mirroring_add_mc" | "mirroring_delete" | "mc_mgrp_create"
        | "mc_node_create" | "mc_node_associate" | "counter_read" | "counter_write"
        | "register_read" | "register_write" | "register_reset" => Ok(Command::Cli(
            line.split_whitespace().map(str::to_string).collect(),
        )),
        other => Err(format!("unknown command `{other}`")),
    }
}

fn port(text: &str) -> Result<(u32, &str), String> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let port = word
        .parse()
        .map_err(|_| format!("`{word}` is no port number"))?;
    Ok((port, rest))
}

fn bytes(digits: &str) -> Result<Vec<u8>, String> {
    if !digits.len().is_multiple_of(2) {
        return Err(format!(
            "{} hexadecimal digits are no whole bytes",
            digits.len()
        ));
    }
    (0..digits.len() / 2)
        .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).map_err(|e| e.to_string()))
        .collect()
}

fn call(text: &str) -> Result<Call, String> {
    let (name, rest) = text
        .split_once('(')
        .ok_or_else(|| format!("`{text}` is no action call"))?;
    let (inside, _) = rest.split_once(')').ok_or("a `)` is missing")?;
    let mut args = Vec::new();
    for arg in inside.split(',').map(str::trim).filter(|a| !a.is_empty()) {
        let (name, value) = arg
            .split_once(':')
            .ok_or_else(|| format!("`{arg}` is not name:value"))?;
        args.push((name.trim().to_string(), value.trim().to_string()));
    }
    Ok(Call {
        name: name.trim().to_string(),
        args,
    })
}

fn add(rest: &str) -> Result<Command, String> {
    let (head, tail) = rest.split_once('(').ok_or("an action call is missing")?;
    let mut words: Vec<&str> = head.split_whitespace().collect();
    let action = words.pop().ok_or("an action is missing")?;
    let call = call(&format!("{action}({tail}"))?;
    let mut words = words.into_iter();
    let table = words.next().ok_or("a table is missing")?.to_string();
    let (mut priority, mut keys) = (None, Vec::new());
    for word in words {
        match word.rsplit_once(':') {
            Some((name, value)) => keys.push((name.to_string(), value.to_string())),
            None if keys.is_empty() && priority.is_none() => {
                priority = Some(
                    word.parse()
                        .map_err(|_| format!("`{word}` is no priority"))?,
                );
            }
            None => return Err(format!("`{word}` is not key:value")),
        }
    }
    Ok(Command::Add {
        table,
        priority,
        keys,
        call,
    })
}

fn check_counter(rest: &str) -> Result<Command, String> {
    let (name, tail) = rest.split_once('(').ok_or("a `(` is missing")?;
    let (index, tail) = tail.split_once(')').ok_or("a `)` is missing")?;
    let words: Vec<&str> = tail.split_whitespace().collect();
    let check = match words.as_slice() {
        [] => None,
        [unit, relation, number] => {
            let bytes = match *unit {
                "bytes" => true,
                "packets" => false,
                other => return Err(format!("`{other}` is neither packets nor bytes")),
            };
            let number = number
                .parse()
                .map_err(|_| format!("`{number}` is no number"))?;
            Some((bytes, relation.to_string(), number))
        }
        _ => return Err("expected: packets|bytes relation number".to_string()),
    };
    Ok(Command::CheckCounter {
        name: name.trim().to_string(),
        index: index.trim().to_string(),
        check,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_as_in_the_corpus() {
        let text =
            "# comment\nadd test1 10 data.$valid:0b1 data.f1:0x****0101 setb1(val:0x7f, port:2)\n\
                    expect 1 *1010101 03$\npacket 0 0101 02\nexpect 5\nsetdefault t a()\n";
        let all = parse(text).unwrap();
        assert_eq!(all.len(), 5);
        let Command::Add {
            table,
            priority,
            keys,
            call,
        } = &all[0].command
        else {
            panic!()
        };
        assert_eq!(
            (table.as_str(), *priority, keys.len(), call.args.len()),
            ("test1", Some(10), 2, 2)
        );
        assert_eq!(
            all[1].command,
            Command::Expect {
                port: 1,
                pattern: Some("*101010103".into()),
                exact: true
            }
        );
        assert_eq!(
            all[2].command,
            Command::Packet {
                port: 0,
                frame: vec![1, 1, 2]
            }
        );
        assert_eq!(
            all[3].command,
            Command::Expect {
                port: 5,
                pattern: None,
                exact: false
            }
        );
    }

    #[test]
    fn a_bad_line_is_named() {
        assert_eq!(
            parse("packet 0 01\nbogus").unwrap_err(),
            "line 2: unknown command `bogus`"
        );
        assert_eq!(
            parse("packet x 01").unwrap_err(),
            "line 1: `x` is no port number"
        );
    }
}
