// SPDX-License-Identifier: Apache-2.0
//! One line of STF, taken piece by piece: names (quoted ones with any character in them), signs, relations.

use std::cmp::Ordering;

use anyhow::{bail, ensure, Context, Result};

type Holds = fn(Ordering) -> bool;

/// Relations of `check_counter`, and when they hold; the longer ones first.
pub const RELATIONS: [(&str, Holds); 6] = [
    ("==", Ordering::is_eq),
    ("!=", Ordering::is_ne),
    ("<=", Ordering::is_le),
    (">=", Ordering::is_ge),
    ("<", Ordering::is_lt),
    (">", Ordering::is_gt),
];

/// What is left of a line.
pub struct Line<'a> {
    rest: &'a str,
}

impl<'a> Line<'a> {
    pub fn new(text: &'a str) -> Line<'a> {
        Line { rest: text }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// True when only a comment is left, or nothing.
    pub fn at_end(&mut self) -> bool {
        self.skip_space();
        if self.rest.starts_with('#') {
            self.rest = "";
        }
        self.rest.is_empty()
    }

    /// All that is left but a comment; nothing is left then.
    pub fn rest(&mut self) -> &'a str {
        let text = self.rest.split('#').next().unwrap_or_default();
        self.rest = "";
        text
    }

    pub fn next_is(&mut self, sign: char) -> bool {
        self.skip_space();
        self.rest.starts_with(sign)
    }

    /// Takes `sign` when it is next.
    pub fn take(&mut self, sign: char) -> bool {
        let found = self.next_is(sign);
        if found {
            self.rest = &self.rest[sign.len_utf8()..];
        }
        found
    }

    pub fn expect(&mut self, sign: char) -> Result<()> {
        let found = self.take(sign);
        ensure!(found || !self.at_end(), "a `{sign}` is missing");
        ensure!(found, "a `{sign}` is missing before `{}`", self.rest);
        Ok(())
    }

    /// A name or a value: pieces with and without quotation marks up to a space or a sign; a `.` joins what is beside it.
    pub fn name(&mut self, what: &str) -> Result<String> {
        self.skip_space();
        let (mut out, mut quoted) = (String::new(), false);
        loop {
            if let Some(inside) = self.rest.strip_prefix('"') {
                let (text, rest) = inside.split_once('"').context("a closing \" is missing")?;
                out.push_str(text);
                self.rest = rest;
                quoted = true;
            } else {
                let is_end = |c: char| c.is_whitespace() || "\"(),:=#!<>".contains(c);
                let end = self.rest.find(is_end).unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(end);
                out.push_str(text);
                self.rest = rest;
            }
            let dotted = self.rest.trim_start().starts_with('.') && quoted;
            if dotted || (out.ends_with('.') && self.rest.trim_start().starts_with('"')) {
                self.skip_space();
            } else if !self.rest.starts_with('"') {
                break;
            }
        }
        ensure!(quoted || !out.is_empty(), "{what} is missing");
        Ok(out)
    }

    /// A relation between two numbers.
    pub fn relation(&mut self) -> Result<&'static str> {
        self.skip_space();
        for (relation, _) in RELATIONS {
            if let Some(rest) = self.rest.strip_prefix(relation) {
                self.rest = rest;
                return Ok(relation);
            }
        }
        let rest = self.rest.trim_end();
        bail!("`{rest}` is no relation; there are ==, !=, <, <=, >, >=")
    }
}
