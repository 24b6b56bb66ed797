// SPDX-License-Identifier: Apache-2.0
//! Runs one STF file against a `Device` in virtual time, and says what is not as the file expects.

use std::collections::BTreeMap;

use anyhow::{ensure, Context, Result};

use crate::control::{Sent, Switch, PORTS};
use crate::stf::{Command, Statement};

/// Tests of p4c's that cannot pass, and why: they do not make the run a failure.
const EXPLANATIONS: [(&str, &str); 2] = [
    (
        "p4_16_samples/extern-funcs-bmv2",
        "calls a C++ extern of its own",
    ),
    (
        "p4_14_samples/counter3",
        "counts 4 bytes a packet that are not in it; p4c's driver does not look at counters, BMv2 counts what we do",
    ),
];

/// Why a test cannot pass, when that is known.
pub fn explanation(test: &str) -> Option<&'static str> {
    let (_, why) = EXPLANATIONS.iter().find(|(name, _)| *name == test)?;
    Some(why)
}

/// Loads the program and runs the statements.
///
/// # Errors
/// The first thing that is not as expected.
pub fn run(json: &[u8], statements: &[Statement]) -> Result<()> {
    let mut switch = Switch::new(json)?;
    switch.allow_changes()?;
    let mut sent = Vec::new();
    for statement in statements {
        switch.step();
        let done = step(&mut switch, &statement.command);
        sent.extend(done.with_context(|| format!("line {}", statement.line))?);
    }
    switch.step();
    sent.extend(switch.settle()?);
    match expects_packets(statements) {
        true => compare(statements, &sent),
        false => Ok(()),
    }
}

/// Does one statement: what leaves.
fn step(switch: &mut Switch, command: &Command) -> Result<Vec<Sent>> {
    if let Command::Packet { port, .. } | Command::Expect { port, .. } = command {
        ensure!(*port < PORTS, "port {port} is not below {PORTS}");
    }
    match command {
        Command::Packet { port, frame } => return switch.packet(*port, frame),
        Command::CheckCounter { name, index, check } => switch.check_counter(name, index, check)?,
        command => {
            for change in switch.changes(command)? {
                switch.apply(&change)?;
            }
        }
    }
    Ok(Vec::new())
}

/// False for a file that looks at counters and at no packet: P4_14's counter1 to counter4.
fn expects_packets(statements: &[Statement]) -> bool {
    let any = |f: fn(&Command) -> bool| statements.iter().any(|s| f(&s.command));
    any(|c| matches!(c, Command::Expect { .. } | Command::NoPacket))
        || !any(|c| matches!(c, Command::CheckCounter { check: Some(_), .. }))
}

/// The frames of each port, in order.
pub fn by_port(sent: &[Sent]) -> BTreeMap<u32, Vec<&[u8]>> {
    let mut ports: BTreeMap<u32, Vec<&[u8]>> = BTreeMap::new();
    for (port, frame) in sent {
        ports.entry(*port).or_default().push(frame);
    }
    ports
}

/// Packets in order on every port; a port that the file does not mention sends none, which p4c's own driver does not look at.
fn compare(statements: &[Statement], sent: &[Sent]) -> Result<()> {
    let mut expected: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for Statement { line, command } in statements {
        if let Command::Expect {
            port,
            pattern,
            exact,
        } = command
        {
            let one = (line, pattern.as_deref(), *exact);
            expected.entry(*port).or_default().push(one);
        }
    }
    let mut sent = by_port(sent);
    for port in sent.keys() {
        expected.entry(*port).or_default();
    }
    for (port, expected) in expected {
        let sent = sent.remove(&port).unwrap_or_default();
        // A lone `expect PORT` is content with any number of packets.
        if let ([(_, None, _)], [_, ..]) = (&expected[..], &sent[..]) {
            continue;
        }
        let (wanted, got) = (expected.len(), sent.len());
        let first = sent
            .first()
            .map(|f| format!("; the first is {}", hex::encode(f)));
        let first = first.unwrap_or_default();
        ensure!(
            wanted == got,
            "port {port}: expected {wanted} packets, got {got}{first}"
        );
        for ((line, pattern, exact), frame) in expected.into_iter().zip(sent) {
            compare_frame(pattern.unwrap_or_default(), exact, frame)
                .with_context(|| format!("line {line}: port {port}"))?;
        }
    }
    Ok(())
}

fn compare_frame(pattern: &str, exact: bool, frame: &[u8]) -> Result<()> {
    let got = hex::encode(frame);
    let mut pairs = pattern.chars().zip(got.chars());
    let same = pairs.all(|(p, g)| p == '*' || p == g);
    let long = got.len() == pattern.len() || !exact && got.len() > pattern.len();
    let end = if exact { "$" } else { "" };
    ensure!(
        same && long,
        "expected {pattern}{end}\n      got      {got}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stf;

    #[test]
    fn a_pattern_without_end_takes_more() {
        assert!(compare_frame("0a*b", false, &[0x0a, 0x1b, 0xff]).is_ok());
        assert!(compare_frame("0a*b", true, &[0x0a, 0x1b, 0xff]).is_err());
        assert!(compare_frame("0a*b", false, &[0x0a]).is_err());
        assert!(compare_frame("0a*b", false, &[0x0a, 0x1c])
            .unwrap_err()
            .to_string()
            .contains("got      0a1c"));
    }

    #[test]
    fn a_packet_on_a_port_that_is_not_mentioned_is_a_failure() {
        let statements = stf::parse("packet 3 01\nexpect 2 01\n").unwrap();
        assert!(compare(&statements, &[(2, vec![1])]).is_ok());
        let error = compare(&statements, &[(0, vec![7]), (2, vec![1])]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "port 0: expected 0 packets, got 1; the first is 07"
        );
    }

    #[test]
    fn a_file_without_expectations_wants_silence_unless_it_looks_at_counters() {
        for (text, looks) in [
            ("packet 0 01", true),
            ("packet 0 01\ncheck_counter c(1)", true),
            ("packet 0 01\ncheck_counter c(1) packets == 1", false),
            (
                "packet 0 01\ncheck_counter c(1) packets == 1\nno_packet",
                true,
            ),
            (
                "packet 0 01\ncheck_counter c(1) packets == 1\nexpect 1",
                true,
            ),
        ] {
            assert_eq!(expects_packets(&stf::parse(text).unwrap()), looks, "{text}");
        }
    }

    #[test]
    fn a_lone_port_takes_any_number_of_packets_but_not_none() {
        let statements = stf::parse("expect 5").unwrap();
        assert!(compare(&statements, &[(5, vec![1]), (5, vec![2])]).is_ok());
        assert!(compare(&statements, &[]).is_err());
    }
}
