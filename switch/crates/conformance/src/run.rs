// SPDX-License-Identifier: Apache-2.0
//! Runs one STF file against a `Device` in virtual time, and says what is not as the file expects.

use std::collections::BTreeMap;

use crate::bed::{Bed, Sent};
use crate::stf::{Command, Statement};

struct Expected<'a> {
    line: usize,
    pattern: Option<&'a str>,
    exact: bool,
}

/// Loads the program and runs the statements.
///
/// # Errors
/// The first thing that is not as expected.
pub fn run(json: &[u8], statements: &[Statement]) -> Result<(), String> {
    let mut bed = Bed::new(json)?;
    bed.allow_changes()?;
    let mut sent = Vec::new();
    for statement in statements {
        bed.step();
        let at = |e: String| format!("line {}: {e}", statement.line);
        match &statement.command {
            Command::Packet { port, frame } => {
                check_port(*port).map_err(at)?;
                sent.extend(bed.packet(*port, frame).map_err(at)?);
            }
            Command::Expect { port, .. } => check_port(*port).map_err(at)?,
            command => bed.control(command).map_err(at)?,
        }
    }
    bed.step();
    sent.extend(bed.settle()?);
    if expects_packets(statements) {
        compare(statements, &sent)
    } else {
        Ok(())
    }
}

fn check_port(port: u32) -> Result<(), String> {
    if port < crate::bed::PORTS {
        return Ok(());
    }
    Err(format!("port {port} is not below {}", crate::bed::PORTS))
}

/// False for a file that looks at counters and at no packet: P4_14's counter1 to counter4.
fn expects_packets(statements: &[Statement]) -> bool {
    let any = |f: fn(&Command) -> bool| statements.iter().any(|s| f(&s.command));
    any(|c| matches!(c, Command::Expect { .. } | Command::NoPacket))
        || !any(|c| matches!(c, Command::CheckCounter { check: Some(_), .. }))
}

/// Packets in order on every port; a port that the file does not mention sends none, which p4c's own driver does not look at.
fn compare(statements: &[Statement], sent: &[Sent]) -> Result<(), String> {
    let mut ports: BTreeMap<u32, (Vec<Expected>, Vec<&[u8]>)> = BTreeMap::new();
    for statement in statements {
        if let Command::Expect {
            port,
            pattern,
            exact,
        } = &statement.command
        {
            ports.entry(*port).or_default().0.push(Expected {
                line: statement.line,
                pattern: pattern.as_deref(),
                exact: *exact,
            });
        }
    }
    for (port, frame) in sent {
        ports.entry(*port).or_default().1.push(frame);
    }
    for (port, (expected, sent)) in &ports {
        // A lone `expect PORT` is content with any number of packets.
        if let ([Expected { pattern: None, .. }], [_, ..]) = (expected.as_slice(), sent.as_slice())
        {
            continue;
        }
        if expected.len() != sent.len() {
            return Err(format!(
                "port {port}: expected {} packets, got {}{}",
                expected.len(),
                sent.len(),
                sent.first()
                    .map_or(String::new(), |f| format!("; the first is {}", hex(f)))
            ));
        }
        for (expected, frame) in expected.iter().zip(sent) {
            if let Some(pattern) = expected.pattern {
                compare_frame(pattern, expected.exact, frame)
                    .map_err(|e| format!("line {}: port {port}: {e}", expected.line))?;
            }
        }
    }
    Ok(())
}

/// A frame as hexadecimal digits.
pub fn hex(frame: &[u8]) -> String {
    frame.iter().map(|b| format!("{b:02x}")).collect()
}

fn compare_frame(pattern: &str, exact: bool, frame: &[u8]) -> Result<(), String> {
    let got = hex(frame);
    let differs = pattern
        .chars()
        .zip(got.chars())
        .any(|(p, g)| p != '*' && p != g);
    if got.len() < pattern.len() || exact && got.len() != pattern.len() || differs {
        let end = if exact { "$" } else { "" };
        return Err(format!("expected {pattern}{end}\n      got      {got}"));
    }
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
            .contains("got      0a1c"));
    }

    #[test]
    fn a_packet_on_a_port_that_is_not_mentioned_is_a_failure() {
        let statements = stf::parse("packet 3 01\nexpect 2 01\n").unwrap();
        assert!(compare(&statements, &[(2, vec![1])]).is_ok());
        let error = compare(&statements, &[(0, vec![7]), (2, vec![1])]).unwrap_err();
        assert_eq!(error, "port 0: expected 0 packets, got 1; the first is 07");
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
