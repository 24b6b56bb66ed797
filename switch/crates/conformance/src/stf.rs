// SPDX-License-Identifier: Apache-2.0
//! STF, the packet-test language of p4c's corpus and of P4Testgen: statements of a file, read as p4c's own parser reads them.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::path::Path;
use std::str::FromStr;
use std::vec::IntoIter;

use anyhow::{bail, ensure, Context, Result};

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

type Holds = fn(Ordering) -> bool;

/// Relations of `check_counter`, and when they hold.
pub const RELATIONS: [(&str, Holds); 6] = [
    ("==", Ordering::is_eq),
    ("!=", Ordering::is_ne),
    ("<=", Ordering::is_le),
    (">=", Ordering::is_ge),
    ("<", Ordering::is_lt),
    (">", Ordering::is_gt),
];

/// What `check_counter` wants: unit, relation, number.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub bytes: bool,
    pub relation: &'static str,
    pub number: u64,
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
        /// The name after `=`, by which a counter check can name this entry.
        handle: Option<String>,
    },
    SetDefault {
        table: String,
        call: Call,
    },
    RemoveAll,
    /// `index` is a number, or `$` and the handle of an entry.
    CheckCounter {
        name: String,
        index: String,
        check: Option<Check>,
    },
    /// Commands that p4c's driver passes on to simple_switch_CLI: words.
    Cli(Vec<String>),
    NoPacket,
    Wait,
}

/// Commands for simple_switch_CLI that a file may hold.
const CLI: [&str; 16] = [
    "mirroring_add",
    "mirroring_add_mc",
    "mirroring_delete",
    "mirroring_get",
    "mc_mgrp_create",
    "mc_node_create",
    "mc_node_update",
    "mc_node_associate",
    "counter_read",
    "counter_write",
    "register_read",
    "register_write",
    "register_reset",
    "meter_get_rates",
    "meter_set_rates",
    "meter_array_set_rates",
];

/// All statements of a file; none without a file.
///
/// # Errors
/// When it cannot be read, or the line and what is wrong with it.
pub fn read(file: Option<&Path>) -> Result<Vec<Statement>> {
    let text = file.map(|f| std::fs::read_to_string(f).with_context(|| f.display().to_string()));
    parse(&text.transpose()?.unwrap_or_default())
}

/// All statements of `text`.
///
/// # Errors
/// The line and what is wrong with it.
pub fn parse(text: &str) -> Result<Vec<Statement>> {
    let numbered = |(raw, line)| {
        let command = statement(raw).with_context(|| format!("line {line}"));
        let statement = |command| Statement { line, command };
        Some(command.transpose()?.map(statement))
    };
    text.lines().zip(1..).filter_map(numbered).collect()
}

fn statement(raw: &str) -> Result<Option<Command>> {
    let mut words = raw.split('#').next().unwrap_or_default().split_whitespace();
    let Some(word) = words.next() else {
        return Ok(None);
    };
    // These have no names with quotation marks.
    match word.to_ascii_lowercase() {
        word if word == "packet" => return packet(words).map(Some),
        word if word == "expect" => return expect(words).map(Some),
        word if CLI.contains(&&*word) => {
            let words = words.map(str::to_string);
            return Ok(Some(Command::Cli(
                [word].into_iter().chain(words).collect(),
            )));
        }
        _ => {}
    }
    let mut line = Line(tokens(raw)?.into_iter().peekable());
    let word = line.name("a command")?.to_ascii_lowercase();
    let command = match word.as_str() {
        "add" => add(&mut line)?,
        "setdefault" => Command::SetDefault {
            table: line.name("a table")?,
            call: call(&mut line)?,
        },
        "remove" => match line.name("`all`")?.to_ascii_lowercase().as_str() {
            "all" => Command::RemoveAll,
            other => bail!("`remove {other}`: only `remove all` is known"),
        },
        "check_counter" => check_counter(&mut line)?,
        "no_packet" => Command::NoPacket,
        "wait" => Command::Wait,
        other => bail!("unknown command `{other}`"),
    };
    match line.0.next() {
        Some(token) => bail!("`{}` is too much", token.text),
        None => Ok(Some(command)),
    }
}

/// The longer ones first.
const SIGNS: [&str; 12] = [
    "==", "!=", "<=", ">=", "<", ">", "(", ")", ",", ":", "=", "!",
];

/// A name or a value, or a sign.
struct Token {
    text: String,
    is_name: bool,
    is_quoted: bool,
}

/// All of a line but a comment. A name is pieces with and without quotation marks that touch; a `.` also joins a piece in
/// quotation marks that is beside it.
fn tokens(mut text: &str) -> Result<Vec<Token>> {
    let mut all: Vec<Token> = Vec::new();
    loop {
        let rest = text.trim_start();
        if rest.is_empty() || rest.starts_with('#') {
            return Ok(all);
        }
        let is_beside = rest.len() == text.len();
        let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
        let inside = rest.strip_prefix('"');
        let is_quoted = inside.is_some();
        let (piece, after) = match (sign, inside) {
            (Some(sign), _) => rest.split_at(sign.len()),
            (_, Some(inside)) => inside.split_once('"').context("a closing \" is missing")?,
            _ => {
                let is_end = |c: char| c.is_whitespace() || "\"(),:=#!<>".contains(c);
                rest.split_at(rest.find(is_end).unwrap_or(rest.len()))
            }
        };
        text = after;
        match all.last_mut().filter(|last| last.is_name && sign.is_none()) {
            Some(last)
                if is_beside
                    || last.is_quoted && piece.starts_with('.')
                    || is_quoted && last.text.ends_with('.') =>
            {
                last.text.push_str(piece);
                last.is_quoted |= is_quoted;
            }
            _ => all.push(Token {
                text: piece.to_string(),
                is_name: sign.is_none(),
                is_quoted,
            }),
        }
    }
}

/// What is left of a line.
struct Line(Peekable<IntoIter<Token>>);

impl Line {
    /// Takes `sign` when it is next.
    fn take(&mut self, sign: &str) -> bool {
        let is_it = |token: &Token| !token.is_name && token.text == sign;
        self.0.next_if(is_it).is_some()
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) {
            return Ok(());
        }
        match self.0.next() {
            Some(token) => bail!("a `{sign}` is missing before `{}`", token.text),
            None => bail!("a `{sign}` is missing"),
        }
    }

    fn name(&mut self, what: &str) -> Result<String> {
        let name = self.0.next_if(|token| token.is_name);
        Ok(name.with_context(|| format!("{what} is missing"))?.text)
    }
}

fn packet<'a>(words: impl Iterator<Item = &'a str>) -> Result<Command> {
    let (port, data) = port(words)?;
    let frame = bytes(&data)?;
    Ok(Command::Packet { port, frame })
}

fn expect<'a>(words: impl Iterator<Item = &'a str>) -> Result<Command> {
    let (port, mut digits) = port(words)?;
    let exact = digits.ends_with('$');
    if exact {
        digits.pop();
    }
    if let Some(bad) = digits.chars().find(|c| !c.is_ascii_hexdigit() && *c != '*') {
        bail!("`{bad}` is no hexadecimal digit and not *");
    }
    Ok(Command::Expect {
        port,
        pattern: (!digits.is_empty() || exact).then(|| digits.to_ascii_lowercase()),
        exact,
    })
}

/// The port, and the packet's digits without spaces.
fn port<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<(u32, String)> {
    let port = number(words.next().unwrap_or_default(), "port number")?;
    Ok((port, words.collect()))
}

/// # Errors
/// When the word is no `what`.
pub fn number<T: FromStr>(word: &str, what: &str) -> Result<T> {
    let number = word.parse().ok();
    number.with_context(|| format!("`{word}` is no {what}"))
}

/// Bytes of hexadecimal digits.
///
/// # Errors
/// What is none, and half a byte.
pub fn bytes(digits: &str) -> Result<Vec<u8>> {
    if let Some(bad) = digits.chars().find(|c| !c.is_ascii_hexdigit()) {
        bail!("`{bad}` is no hexadecimal digit");
    }
    let count = digits.len();
    ensure!(
        count.is_multiple_of(2),
        "{count} hexadecimal digits are no whole bytes"
    );
    Ok(hex::decode(digits)?)
}

fn call(line: &mut Line) -> Result<Call> {
    let name = line.name("an action")?;
    line.expect("(")?;
    arguments(line, name)
}

/// The rest of an action call, after its `(`.
fn arguments(line: &mut Line, name: String) -> Result<Call> {
    let mut args = Vec::new();
    while !line.take(")") {
        if !args.is_empty() {
            line.expect(",")?;
        }
        let arg = line.name("an argument")?;
        line.expect(":")?;
        args.push((arg, line.name("a value")?));
    }
    Ok(Call { name, args })
}

fn add(line: &mut Line) -> Result<Command> {
    let table = line.name("a table")?;
    let (mut priority, mut keys) = (None, Vec::new());
    loop {
        let name = line.name("a key, or an action")?;
        if line.take(":") {
            keys.push((name, line.name("a value")?));
        } else if line.take("(") {
            let call = arguments(line, name)?;
            let named = line.take("=");
            let handle = named.then(|| line.name("a name for the entry"));
            let handle = handle.transpose()?;
            return Ok(Command::Add {
                table,
                priority,
                keys,
                call,
                handle,
            });
        } else if keys.is_empty() && priority.is_none() {
            priority = Some(number(&name, "priority")?);
        } else {
            bail!("`{name}` is not key:value");
        }
    }
}

fn check_counter(line: &mut Line) -> Result<Command> {
    let name = line.name("a counter")?;
    line.expect("(")?;
    let index = line.name("an index, or $ and the name of an entry")?;
    line.expect(")")?;
    if line.0.peek().is_none() {
        let check = None;
        return Ok(Command::CheckCounter { name, index, check });
    }
    let bytes = match line.name("packets or bytes")?.to_ascii_lowercase().as_str() {
        "bytes" => true,
        "packets" => false,
        other => bail!("`{other}` is neither packets nor bytes"),
    };
    let wanted = line.0.next().map_or(String::new(), |token| token.text);
    let relation = RELATIONS.iter().find(|(relation, _)| *relation == wanted);
    let wrong = || format!("`{wanted}` is no relation; there are ==, !=, <, <=, >, >=");
    let (relation, _) = relation.with_context(wrong)?;
    let number = number(&line.name("a number")?, "number")?;
    let check = Some(Check {
        bytes,
        relation,
        number,
    });
    Ok(Command::CheckCounter { name, index, check })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_one(text: &str) -> Command {
        let mut all = parse(text).unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0).command
    }

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
            handle: None,
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
    fn quoted_names_hold_any_character() {
        let text =
            r#"add "a table (v2): # 1" 5 "hdr.x[0].y, z":0b1* "do \ it = now"("arg:1":0x2) # end"#;
        assert_eq!(
            parse_one(text),
            Command::Add {
                table: "a table (v2): # 1".into(),
                priority: Some(5),
                keys: vec![("hdr.x[0].y, z".into(), "0b1*".into())],
                call: Call {
                    name: r"do \ it = now".into(),
                    args: vec![("arg:1".into(), "0x2".into())]
                },
                handle: None
            }
        );
        assert_eq!(
            parse_one(r#"setdefault "t" . "x" "a()"()"#),
            Command::SetDefault {
                table: "t.x".into(),
                call: Call {
                    name: "a()".into(),
                    args: Vec::new()
                }
            }
        );
    }

    #[test]
    fn an_entry_has_a_handle_that_a_counter_check_names() {
        let Command::Add { handle, .. } = parse_one("add t k:0x1 a(port:2) = A") else {
            panic!()
        };
        assert_eq!(handle.as_deref(), Some("A"));
        assert_eq!(
            parse_one("check_counter cnt($A) packets >= 3"),
            Command::CheckCounter {
                name: "cnt".into(),
                index: "$A".into(),
                check: Some(Check {
                    bytes: false,
                    relation: ">=",
                    number: 3
                })
            }
        );
        assert!(matches!(
            parse_one("check_counter cnt($A)"),
            Command::CheckCounter { check: None, .. }
        ));
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, message) in [
            ("packet 0 01\nbogus", "line 2: unknown command `bogus`"),
            ("packet x 01", "line 1: `x` is no port number"),
            ("packet 0 0x", "line 1: `x` is no hexadecimal digit"),
            ("add t k:1 2 a()", "line 1: `2` is not key:value"),
            ("add t k:1 a(", "line 1: an argument is missing"),
            ("add \"t k:1 a()", "line 1: a closing \" is missing"),
            ("wait no", "line 1: `no` is too much"),
            (
                "check_counter c(1) packets 3",
                "line 1: `3` is no relation; there are ==, !=, <, <=, >, >=",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(format!("{error:#}"), message, "{text}");
        }
    }
}
